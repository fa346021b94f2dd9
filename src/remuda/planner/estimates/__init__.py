"""How many rows an expression of the algebra gives, from statistics of columns.

``cardinality`` is the entry; ``selectivity`` estimates predicates from the ``distribution`` of
values.
"""
