"""DEFAULT values and CHECK conditions: expressions that a schema keeps as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from remuda.catalog.enums import enums_of
from remuda.datatypes.schema import Check, Column, Default, MapSchema, Namespace
from remuda.datatypes.sql import EnumType, SqlType, unrestricted
from remuda.errors import NotSupported, RemudaError
from remuda.plan.expression import ColumnId, ColumnRef, Expression, Literal, columns_of
from remuda.sql.expressions import calls, operators
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.expressions.functions import sequences
from remuda.sql.expressions.functions.sequences import refuse_calls
from remuda.sql.parsing.snippets import expression_of, parse_expression
from remuda.sql.scope.context import Context
from remuda.sql.scope.resolution import Kept
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import Snippet

EXPRESSIONS_KEPT = 1024

assert calls
assert operators
assert sequences
"""Importing them registers their handlers."""


class NoMaps:
    """The catalog for expressions that read no relations. Of the types of users they may name those
    of the ``columns`` beside them."""

    version = 0
    namespaces: Sequence[Namespace] = ()

    def __init__(self, columns: Iterable[Column] = ()) -> None:
        self.types: Sequence[EnumType] = tuple(dict.fromkeys(enums_of(columns)))

    def find(self, name: str) -> None:  # noqa: ARG002
        return None

    def find_view(self, name: str) -> None:  # noqa: ARG002
        return None

    def names(self) -> Sequence[str]:
        return ()

    def view_names(self) -> Sequence[str]:
        return ()


# --- definitions -------------------------------------------------------------------------------


def bind_default(context: Context, name: str, target: SqlType, snippet: Snippet) -> Default | None:
    """DEFAULT as it is kept; None for DEFAULT NULL, which says nothing."""
    node = expression_of(context, snippet)
    if node.find(ast.Column) is not None:
        raise context.error(
            NotSupported,
            "cannot use column reference in DEFAULT expression",
            node.find(ast.Column),
            hint="Give a value or an expression without columns.",
        )
    kept, context.kept = context.kept, Kept()
    try:
        bound = _default(context, node, target, name)
        text = context.kept.text(snippet.text, snippet.tokens[0].start)
    finally:
        context.kept = kept
    if isinstance(bound, Literal) and bound.value is None:
        return None
    return Default(text)


def _default(context: Context, node: ast.Node, target: SqlType, name: str) -> Expression:
    clause = "DEFAULT expressions"
    binder = ExpressionBinder(context, Scope(), Forbidding(context, clause))
    return binder.convert.assigned(binder.bind(node), target, node, f'column "{name}"')


def bind_check(context: Context, schema: MapSchema, snippet: Snippet) -> None:
    """Raises what is wrong with a CHECK of a map of this schema."""
    node = expression_of(context, snippet)
    kept, context.kept = context.kept, Kept()
    try:
        _condition(context, schema, node)
    finally:
        context.kept = kept


def _condition(context: Context, schema: MapSchema, node: ast.Node) -> Expression:
    scope = Scope()
    columns: list[tuple[str, Expression]] = [
        (column.name, ColumnRef(unrestricted(column.type), position, column.name))
        for position, column in enumerate(schema.columns)
    ]
    scope.add(context, schema.name, columns, node)
    binder = ExpressionBinder(context, scope, Forbidding(context, "check constraints"))
    return refuse_calls(context, binder.condition(node, "CHECK"), "check constraints", node)


# --- use ---------------------------------------------------------------------------------------


def default_of(column: Column) -> Expression:
    """The value of the column where a row says nothing, of exactly its type."""
    default = column.default
    if default is None:
        return Literal(unrestricted(column.type), None)
    if default.constant:
        return Literal(unrestricted(column.type), default.value)
    return _kept_default(default.text, column)


@lru_cache(maxsize=EXPRESSIONS_KEPT)
def _kept_default(text: str, column: Column) -> Expression:
    target, name = column.type, column.name
    context = Context(text, NoMaps([column]), 0)
    try:
        return _default(context, parse_expression(text), target, name)
    except RemudaError as error:
        raise error.saying(f'default of column "{name}": {error.message}') from error.__cause__


def check_condition(schema: MapSchema, check: Check) -> tuple[Expression, tuple[ColumnId, ...]]:
    """The condition, whose column ids are schema positions, and the positions that it reads."""
    context = Context(check.text, NoMaps(schema.columns), 0)
    condition = _condition(context, schema, parse_expression(check.text))
    return condition, tuple(sorted(columns_of(condition)))


def condition_columns(schema: MapSchema, check: Check) -> tuple[int, ...]:
    """The schema positions of the columns that a CHECK looks at."""
    return check_condition(schema, check)[1]
