"""How many digits of a second are kept: TIMESTAMP(3), TIME(0), current_timestamp(0)."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from remuda.datatypes.sql import INTEGER, SqlType
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import Call, Expression, Literal
from remuda.sql.context import Context

_DIGITS_MAX: Final = 6
"""Microseconds; PostgreSQL, too, takes more digits for this many."""
_TYPES: Final = (
    exp.DataType.Type.TIME,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.INTERVAL,
)


def type_without_precision(to: Any) -> tuple[Any, int | None]:
    """The type of a CAST (a tree of sqlglot) without the digits of its seconds, and these if they
    are fewer than all."""
    if not isinstance(to, exp.DataType) or to.this not in _TYPES or len(to.expressions) != 1:
        return to, None
    digits = _whole(to.expressions[0].this)
    if digits is None:
        return to, None
    bare = to.copy()
    bare.set("expressions", [])
    return bare, digits if digits < _DIGITS_MAX else None


def to_precision(context: Context, bound: Expression, digits: exp.Expr | None) -> Expression:
    """``current_timestamp(digits)``. Raises SqlSyntaxError unless ``digits`` is a whole number."""
    if digits is None:
        return bound
    known = _whole(digits)
    if known is None:
        raise context.error(SqlSyntaxError, "a precision is a whole number", digits)
    return rounded(bound, known) if known < _DIGITS_MAX else bound


def rounded(bound: Expression, digits: int) -> Expression:
    made: SqlType = bound.type
    return Call(made, "round_fraction", (bound, Literal(INTEGER, digits)))


def _whole(node: object) -> int | None:
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        return int(node.this)
    return None
