"""The parser: text to syntax trees.

``parser`` is the entry. sqlglot reads queries; the other modules read definitions, sessions,
transactions, snapshots and statements about the cluster.
"""
