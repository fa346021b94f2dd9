"""Rows of values in comparisons: ``(a, b) < (1, 2)``, compared column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from remuda.datatypes.sql import BOOLEAN, Kind
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import Call, Expression
from remuda.sql.expressions.expressions import ExpressionBinder, register
from remuda.sql.expressions.nested import field_of
from remuda.sql.scope.context import identifier
from remuda.sql.scope.scope import columns_of_alias
from remuda.sql.trees import ast

_STRICT: Final = {"<": "<", "<=": "<", ">": ">", ">=": ">"}
LONG_LIST: Final = 16
"""From so many rows on, a list is searched by a hash table and not row by row."""
Places = tuple[Sequence[ast.Node], Sequence[ast.Node]]


def row_parts(node: ast.Node) -> list[ast.Node] | None:
    """The values of ``(a, b)`` or ``ROW(a, b)``; None if ``node`` is not a row of values."""
    while isinstance(node, ast.Paren):
        node = node.this
    if isinstance(node, ast.Tuple):
        return list(node.expressions)
    if isinstance(node, ast.Call) and str(node.this).lower() == "row":
        return list(node.expressions)
    return None


def row_values(binder: ExpressionBinder, node: ast.Node) -> list[ast.Node] | None:
    """``row_parts``, with a tree for each column of ``s.*`` and for each field of ``(value).*``."""
    parts = row_parts(node)
    return None if parts is None else expanded(binder, parts)


def expanded(binder: ExpressionBinder, parts: Sequence[ast.Node]) -> list[ast.Node]:
    """The items of a row, stars replaced by Tags (star, place from 0, number of its columns)."""
    found: list[ast.Node] = []
    for part in parts:
        width = _width(binder, part) if is_star(part) else None
        if width is None:
            found.append(part)
        else:
            found += tags_of(part, width)
    return found


def is_star(node: ast.Node) -> bool:
    """Whether ``node`` is ``s.*`` or ``(value).*``."""
    return (isinstance(node, ast.Column) and isinstance(node.this, ast.Star)) or (
        isinstance(node, ast.Dot) and isinstance(node.expression, ast.Star)
    )


def tags_of(node: ast.Node, width: int) -> list[ast.Node]:
    """A tree for each of the ``width`` values that ``node`` stands for: Tags, which no PostgreSQL
    statement has: (node, place from 0, width)."""
    return [ast.Tag(this=node, prefix=place, postfix=width) for place in range(width)]


def star_column(binder: ExpressionBinder, node: ast.Node, place: int) -> Expression:
    """One of the values of a star."""
    if isinstance(node, ast.Dot):
        return field_of(binder.settled(node.this), place)
    columns = columns_of_alias(binder.scope, identifier(node.args["table"]))
    assert columns is not None, "the star was expanded in this scope"
    return columns[place][1]


def row_part(binder: ExpressionBinder, node: ast.Node, place: int, width: int) -> Expression:
    """One of the values of a row that is to have ``width`` of them."""
    parts = row_values(binder, node) or []
    if len(parts) != width:
        raise binder.context.error(
            SqlSyntaxError, "number of columns does not match number of values", node
        )
    return binder.bind(parts[place])


def _width(binder: ExpressionBinder, node: ast.Node) -> int | None:
    """How many values a star stands for; None for one that ``bind`` refuses."""
    if isinstance(node, ast.Dot):
        type_ = binder.settled(node.this).type
        return len(type_.fields) if type_.kind is Kind.ROW else None
    if node.args.get("table") is None:
        return None
    columns = columns_of_alias(binder.scope, identifier(node.args["table"]))
    return None if columns is None else len(columns)


def row_value(binder: ExpressionBinder, node: ast.Node) -> Expression:
    """``ROW(a, b)`` or ``(a, b)`` as a value."""
    if not node.expressions:
        raise binder.context.unsupported(
            "a row without fields", node, hint="Give the row at least one field."
        )
    parts = expanded(binder, node.expressions)
    values = [binder.settled(part) for part in parts]
    return binder.convert.call("row", values, parts, node)


def rows_of_literals(
    binder: ExpressionBinder, operand: ast.Node, values: Sequence[ast.Node]
) -> ast.Values | None:
    """The list of ``(a, b) IN ((1, 2), ...)`` as VALUES, if it is long and its literals mean the
    same there: a literal in quotes does only where text is looked for."""
    operands = row_parts(operand) or []
    rows = [row_parts(value) or [] for value in values]
    if len(rows) < LONG_LIST or any(len(row) != len(operands) for row in rows):
        return None
    for place, part in enumerate(operands):
        text = binder.bind(part).type.is_text
        for row in rows:
            literal = row[place]
            if not isinstance(literal, ast.Literal) or bool(literal.args["is_string"]) is not text:
                return None
    return ast.Values(expressions=[_tuple(value) for value in values])


def _tuple(node: ast.Node) -> ast.Tuple:
    return ast.Tuple(expressions=row_parts(node) or [])


def compared_rows(
    binder: ExpressionBinder,
    name: str,
    sides: tuple[Sequence[Expression], Sequence[Expression]],
    places: Places,
    node: ast.Node,
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


register(ast.Tuple, row_value, "expressions")
