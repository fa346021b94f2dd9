"""Binds queries to relational algebra.

``queries`` is the entry; ``select`` binds one SELECT, ``relations`` its FROM, and the other
modules bind clauses: grouping, windows, set operations, recursion.
"""
