"""The parser: text to syntax trees.

``parser`` is the entry. ``grammar`` reads queries, changes of data and expressions. The other
modules read definitions, sessions, transactions, snapshots and statements about the cluster.
"""
