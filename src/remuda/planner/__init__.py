"""The optimizer: relational algebra in, physical fragments out. Pure.

``planner`` runs the phases: ``unnest`` and ``normalize`` rewrite, ``explore`` fills the ``memo``,
``search`` finds the cheapest plan, ``fragments`` cuts it at its exchanges. Estimates are in
``cardinality`` and ``selectivity``, costs in ``cost``.
"""
