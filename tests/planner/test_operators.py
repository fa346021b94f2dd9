"""Operators that have one way to run: each module of ``planner.operators`` is complete."""

from __future__ import annotations

from remuda.planner import planner
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.plain_rules import PLAIN_RULES


def test_every_plain_operator_has_a_rule() -> None:
    assert planner.plan_query is not None, "imports the modules of all operators in use"
    operators = {operator.__name__ for operator in PlainOperator.__subclasses__()}
    assert {operator.__name__ for operator in PLAIN_RULES} == operators
