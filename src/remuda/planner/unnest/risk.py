"""Which expressions may fail on values that the query never asks for."""

from __future__ import annotations

from remuda.plan.expression import Call, Cast, Expression, Subquery, walk
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS
from remuda.plan.logical import Logical, Supplied
from remuda.plan.uses import expressions_of
from remuda.planner.algebra import nodes_of

_OVERFLOWS = frozenset({"+", "-", "*", "neg", "abs"})
"""They fail on values near the ends of their types only, but stand everywhere: to guard them all
would cost every subquery its cheap plan."""


def is_risky(expression: Expression) -> bool:
    """Whether ``expression`` (not what is inside of subqueries) may raise on ordinary values."""
    for part in walk(expression):
        if isinstance(part, Call):
            function = SCALAR_FUNCTIONS.get(part.function)
            if function is None or (function.raises and part.function not in _OVERFLOWS):
                return True
        elif isinstance(part, Cast) and part.operand.type.holds_text and not part.type.is_text:
            return True
    return False


def has_risk(node: Logical) -> bool:
    """Whether anything in the plan ``node`` is risky, its subqueries included. So is a correlated
    recursive CTE: for values that the query never asks for it may have no end."""
    for below in nodes_of(node):
        if isinstance(below, Supplied) and below.parameters:
            return True
        for expression in expressions_of(below):
            if is_risky(expression):
                return True
            for part in walk(expression):
                if isinstance(part, Subquery) and has_risk(part.plan):
                    return True
    return False
