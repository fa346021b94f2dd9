"""Operators that have one way to run: plans take them as they are.

One module has all that the planner knows of an operator: its class in the MEMO, its group with the
estimate, the rule that finds its candidates, and its physical node. The module registers the rule
(``memo.plain_rules``); ``exploration`` makes the groups.
"""
