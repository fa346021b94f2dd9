"""Expressions that are a given value: nothing is computed, and no column is made, for these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

from remuda.datatypes.sql import Kind
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import Expression, Literal, Parameter

AS_GIVEN: Final = frozenset(
    {
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.DOUBLE,
        Kind.DECIMAL,
        Kind.VARCHAR,
        Kind.BYTEA,
        Kind.DATE,
        Kind.TIME,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
        Kind.UUID,
    }
)
"""Kinds whose values stay as they are in a column: REAL is rounded there, for example."""


def is_given(expression: Expression) -> TypeGuard[Literal | Parameter]:
    """Whether ``given`` knows its value."""
    return isinstance(expression, Literal | Parameter) and expression.type.kind in AS_GIVEN


def given(expression: Literal | Parameter, values: Sequence[PhysicalValue]) -> PhysicalValue:
    """The physical value of the expression; ``values`` are those of the parameters."""
    return expression.value if isinstance(expression, Literal) else values[expression.index]
