"""The optimizer: relational algebra in, physical fragments out. Pure.

``planner`` runs the phases: ``unnest`` and ``normalize`` rewrite, ``exploration`` fills the
``memo``, its ``search`` finds the cheapest plan by the rules of ``implementation``, ``fragments``
cuts it at its exchanges. Estimates of rows are in ``estimates``.
"""
