"""Prints plans: EXPLAIN, EXPLAIN ANALYZE, the console and the golden tests.

``explain`` prints physical plans as text, ``json`` as data for machines, and ``logical`` prints
relational algebra.
"""
