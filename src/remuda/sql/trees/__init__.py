"""Syntax trees of all statements.

``ast`` has queries, changes and expressions; the others definitions, sessions, snapshots,
transactions and the cluster.
"""
