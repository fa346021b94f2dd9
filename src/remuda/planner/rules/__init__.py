"""The rewriting rules of ``remuda.planner.normalize``.

``rule`` defines the form of a rule. Each other module holds the rules of one subject, such as
filters, joins or limits. A rule always improves a plan, so the rules run to a fixed point.
"""
