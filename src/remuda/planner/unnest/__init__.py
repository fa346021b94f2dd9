"""The conversion of subqueries and LATERAL to joins.

``unnest`` converts every subquery before any other rule runs. ``dependent`` computes a subquery
that uses outer columns for all values of these columns at once; ``domain`` finds these values.
"""
