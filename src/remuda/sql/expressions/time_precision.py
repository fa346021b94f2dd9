"""How many digits of a second are kept by calls: current_timestamp(0)."""

from __future__ import annotations

from remuda.datatypes.sql import FRACTION_MAX, restricted
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import Expression
from remuda.sql.expressions.conversion import Converter
from remuda.sql.scope.context import Context
from remuda.sql.trees import ast


def to_precision(context: Context, bound: Expression, digits: ast.Node | None) -> Expression:
    """``current_timestamp(digits)``. Raises SqlSyntaxError unless ``digits`` is a whole number."""
    if digits is None:
        return bound
    known = _whole(digits)
    if known is None:
        raise context.error(SqlSyntaxError, "a precision is a whole number", digits)
    kept = restricted(bound.type, min(known, FRACTION_MAX))
    return Converter(context).kept(bound, kept, digits)


def _whole(node: object) -> int | None:
    if isinstance(node, ast.Literal) and not node.is_string and node.this.isdecimal():
        return int(node.this)
    return None
