"""NOT, pushed into the tests that have an opposite."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BOOLEAN
from remuda.plan.expression import Call, Expression

_OPPOSITE: Final = {
    "is_null": "is_not_null",
    "is_true": "is_not_true",
    "is_false": "is_not_false",
    "is_distinct_from": "is_not_distinct_from",
}
_OPPOSITES: Final = {**_OPPOSITE, **{b: a for a, b in _OPPOSITE.items()}}


def negation(expression: Expression) -> Expression:
    if isinstance(expression, Call):
        if expression.function in _OPPOSITES:
            return Call(BOOLEAN, _OPPOSITES[expression.function], expression.arguments)
        if expression.function == "not":
            return expression.arguments[0]
    return Call(BOOLEAN, "not", (expression,))
