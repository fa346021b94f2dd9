"""Logical alternatives in the MEMO: join orders, aggregation below joins, rollups.

``explore`` is the entry; ``region`` and ``joinorder`` enumerate the orders of a tree of joins.
"""
