"""The parser: text to syntax trees.

``parser`` is the entry. The modules ``*_grammar`` build on each other, from the names of types to
changes of data: together they read queries, changes and expressions. The other modules read
definitions, sessions, transactions, snapshots and statements about the cluster.
"""
