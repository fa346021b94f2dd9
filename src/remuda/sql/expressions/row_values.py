"""Rows of values in comparisons: ``(a, b) < (1, 2)``, compared column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from remuda.datatypes.sql import BOOLEAN, Kind
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import Call, Expression
from remuda.sql.expressions.expressions import ExpressionBinder, register
from remuda.sql.expressions.nested import field_of
from remuda.sql.scope.context import identifier
from remuda.sql.scope.scope import columns_of_alias
from remuda.sql.text.tokens import CALL_MARK

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
    if isinstance(node, exp.Anonymous) and str(node.this).removeprefix(CALL_MARK).lower() == "row":
        return list(node.expressions)
    return None


def row_values(binder: ExpressionBinder, node: exp.Expr) -> list[exp.Expr] | None:
    """``row_parts``, with a tree for each column of ``s.*`` and for each field of ``(value).*``."""
    parts = row_parts(node)
    return None if parts is None else expanded(binder, parts)


def expanded(binder: ExpressionBinder, parts: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The items of a row, stars replaced by Tags (star, place from 0, number of its columns)."""
    found: list[exp.Expr] = []
    for part in parts:
        width = _width(binder, part) if is_star(part) else None
        if width is None:
            found.append(part)
        else:
            found += tags_of(part, width)
    return found


def is_star(node: exp.Expr) -> bool:
    """Whether ``node`` is ``s.*`` or ``(value).*``."""
    return (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)) or (
        isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star)
    )


def tags_of(node: exp.Expr, width: int) -> list[exp.Expr]:
    """A tree for each of the ``width`` values that ``node`` stands for: Tags, which no PostgreSQL
    statement has: (node, place from 0, width)."""
    found: list[exp.Expr] = []
    for place in range(width):
        tag = exp.Tag()
        # Set by hand: the node keeps its parent in the tree of the statement.
        tag.args.update(this=node, prefix=place, postfix=width)
        found.append(tag)
    return found


def star_column(binder: ExpressionBinder, node: exp.Expr, place: int) -> Expression:
    """One of the values of a star."""
    if isinstance(node, exp.Dot):
        return field_of(binder.settled(node.this), place)
    columns = columns_of_alias(binder.scope, identifier(node.args["table"]))
    assert columns is not None, "the star was expanded in this scope"
    return columns[place][1]


def row_part(binder: ExpressionBinder, node: exp.Expr, place: int, width: int) -> Expression:
    """One of the values of a row that is to have ``width`` of them."""
    parts = row_values(binder, node) or []
    if len(parts) != width:
        raise binder.context.error(
            SqlSyntaxError, "number of columns does not match number of values", node
        )
    return binder.bind(parts[place])


def _width(binder: ExpressionBinder, node: exp.Expr) -> int | None:
    """How many values a star stands for; None for one that ``bind`` refuses."""
    if isinstance(node, exp.Dot):
        type_ = binder.settled(node.this).type
        return len(type_.fields) if type_.kind is Kind.ROW else None
    if node.args.get("table") is None:
        return None
    columns = columns_of_alias(binder.scope, identifier(node.args["table"]))
    return None if columns is None else len(columns)


def row_value(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """``ROW(a, b)`` or ``(a, b)`` as a value."""
    if not node.expressions:
        raise binder.context.unsupported("a row without fields", node)
    parts = expanded(binder, node.expressions)
    values = [binder.settled(part) for part in parts]
    return binder.convert.call("row", values, parts, node)


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


register(exp.Tuple, row_value, "expressions")
