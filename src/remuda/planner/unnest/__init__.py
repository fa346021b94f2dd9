"""The conversion of subqueries and LATERAL to joins.

``unnest`` converts every subquery before any other rule runs. ``dependent`` computes a subquery
that uses outer columns for all values of these columns at once. ``domain`` gives a plan that is
computed twice the same rows both times.
"""
