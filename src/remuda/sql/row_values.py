"""Rows of values in comparisons: ``(a, b) < (1, 2)``, compared column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from remuda.datatypes.sql import BOOLEAN
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import Call, Expression
from remuda.sql.calls import function_name
from remuda.sql.expressions import ExpressionBinder

_STRICT: Final = {"<": "<", "<=": "<", ">": ">", ">=": ">"}
LONG_LIST: Final = 16
"""From so many rows on, a list is searched by a hash table and not row by row."""
Places = tuple[Sequence[exp.Expr], Sequence[exp.Expr]]


def row_parts(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of ``(a, b)`` or ``ROW(a, b)``; None if ``node`` is not a row of values."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, exp.Anonymous) and function_name(node) == "row":
        return list(node.expressions)
    return None


def rows_of_literals(binder: ExpressionBinder, node: exp.In) -> exp.Values | None:
    """The list of ``(a, b) IN ((1, 2), ...)`` as VALUES, if it is long and its literals mean the
    same there: a literal in quotes does only where text is looked for."""
    operands = row_parts(node.this) or []
    rows = [row_parts(value) or [] for value in node.expressions]
    if len(rows) < LONG_LIST or any(len(row) != len(operands) for row in rows):
        return None
    for place, operand in enumerate(operands):
        text = binder.bind(operand).type.is_text
        for row in rows:
            literal = row[place]
            if not isinstance(literal, exp.Literal) or bool(literal.args["is_string"]) is not text:
                return None
    values = exp.Values()
    # Set by hand: the rows keep their parents in the tree of the statement.
    values.args["expressions"] = [_tuple(value) for value in node.expressions]
    return values


def _tuple(node: exp.Expr) -> exp.Tuple:
    row = exp.Tuple()
    row.args["expressions"] = row_parts(node) or []
    return row


def compared_rows(
    binder: ExpressionBinder,
    name: str,
    sides: tuple[Sequence[Expression], Sequence[Expression]],
    places: Places,
    node: exp.Expr,
) -> Expression:
    """``left name right`` for rows of any width: the first column that differs decides."""
    left, right = sides
    if len(left) != len(right):
        raise binder.context.error(
            SqlSyntaxError, "unequal number of entries in row expressions", node
        )
    if not left:
        raise binder.context.error(SqlSyntaxError, "cannot compare rows of zero length", node)

    def compared(comparison: str, place: int) -> Expression:
        where = [places[0][place], places[1][place]]
        return binder.convert.call(comparison, [left[place], right[place]], where, node)

    if len(left) == 1:
        return compared(name, 0)
    if name in _STRICT:
        last = len(left) - 1
        result = compared(name, last)
        for place in range(last - 1, -1, -1):
            rest = Call(BOOLEAN, "and", (compared("=", place), result))
            result = Call(BOOLEAN, "or", (compared(_STRICT[name], place), rest))
        return result
    every = tuple(compared(name, place) for place in range(len(left)))
    return Call(BOOLEAN, "or" if name in ("<>", "is_distinct_from") else "and", every)
