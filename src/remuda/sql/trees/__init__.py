"""Syntax trees of statements that sqlglot does not have.

Definitions, sessions, snapshots, transactions and the cluster; queries are trees of sqlglot.
"""
