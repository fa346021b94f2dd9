"""Whether the value of an expression can be NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remuda.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Subquery,
    SubqueryKind,
)
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS, NullRule
from remuda.plan.logical import Logical
from remuda.plan.sequence_calls import SEQUENCE_FUNCTIONS


def is_nullable(expression: Expression, nullable: Mapping[ColumnId, bool]) -> bool:
    """Whether ``expression`` can be NULL; ``nullable`` tells it of the input columns."""
    match expression:
        case ColumnRef(column=column):
            return nullable.get(column, True)
        case Literal(value=value):
            return value is None
        case Cast(operand=operand):
            return is_nullable(operand, nullable)
        case InList(operand=operand, values=values):
            return any(is_nullable(e, nullable) for e in (operand, *values))
        case Case(branches=branches, otherwise=otherwise):
            return any(is_nullable(e, nullable) for e in (*(v for _, v in branches), otherwise))
        case Call(function=name, arguments=arguments):
            return _call_is_nullable(name, arguments, nullable)
        case Subquery(kind=SubqueryKind.EXISTS):
            return False
        case _:
            return True


def _call_is_nullable(
    name: str, arguments: Sequence[Expression], nullable: Mapping[ColumnId, bool]
) -> bool:
    if name in SEQUENCE_FUNCTIONS:
        return True
    rule = SCALAR_FUNCTIONS[name].nulls
    if rule is NullRule.NEVER:
        return False
    if rule is NullRule.OWN and name not in ("and", "or"):
        every = name in ("coalesce", "greatest", "least")
        return all(is_nullable(e, nullable) for e in arguments) if every else True
    return any(is_nullable(e, nullable) for e in arguments)


def nullability(plan: Logical) -> dict[ColumnId, bool]:
    return {column.id: column.nullable for column in plan.output}
