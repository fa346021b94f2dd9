"""The optimizer: relational algebra in, physical fragments out. Pure.

``planner`` runs the phases: ``unnest`` and ``normalize`` rewrite, ``exploration`` fills the
``memo``, its ``search`` finds the cheapest plan by the rules of ``implementation``, ``build`` makes
the physical nodes, ``fragments`` cuts them at the exchanges. ``operators`` has one module for each
operator with one way to run. Estimates of rows are in ``estimates``.
"""
