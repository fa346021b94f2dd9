"""Pieces of queries that SELECT and set operations share: output names, ordinals, LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from remuda.datatypes.sql import BIGINT
from remuda.errors import (
    AmbiguousColumn,
    InvalidColumnReference,
    InvalidOffset,
    InvalidRowCount,
    SqlSyntaxError,
)
from remuda.plan.expression import ColumnRef, Expression, Literal, SortKey, walk
from remuda.plan.logical import Logical, Sort
from remuda.sql.expressions import calls
from remuda.sql.expressions.expressions import Embedding, ExpressionBinder
from remuda.sql.queries.first_rows import limited_by_columns, with_ties
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.scope import Scope, is_of_this_level
from remuda.sql.trees import ast


def ordinal_of(node: ast.Node) -> int | None:
    inner = node.unnest()
    if isinstance(inner, ast.Literal) and not inner.args["is_string"]:
        return int(inner.this) if str(inner.this).isdecimal() else None
    return None


def refuse_constant(context: Context, node: ast.Node, clause: str) -> None:
    """A number that is no place, a text, TRUE or NULL says nothing about rows."""
    if isinstance(node.unnest(), ast.Literal | ast.Boolean | ast.Null):
        raise context.error(SqlSyntaxError, f"non-integer constant in {clause}", node)


def matching_output(
    context: Context, items: Sequence[Any], node: ast.Column, clause: str = "ORDER BY"
) -> int | None:
    """The index of the output column called like ``node``; AmbiguousColumn if two differ."""
    name = identifier(node.this)
    found = [index for index, item in enumerate(items) if item.name == name]
    if len({items[index].expression for index in found}) > 1:
        raise context.error(AmbiguousColumn, f'{clause} "{name}" is ambiguous', node)
    return found[0] if found else None


_TRIM_NAMES: Final = {"LEADING": "ltrim", "TRAILING": "rtrim"}
_SHORT_TYPE_NAMES: Final = {
    "boolean": "bool",
    "smallint": "int2",
    "integer": "int4",
    "int": "int4",
    "bigint": "int8",
    "real": "float4",
    "float": "float8",
    "double": "float8",
    "double precision": "float8",
    "decimal": "numeric",
    "dec": "numeric",
    "character varying": "varchar",
    "char": "bpchar",
    "character": "bpchar",
    "string": "text",
    "datetime": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time with time zone": "timetz",
}
"""Names of types -> those of PostgreSQL's catalog."""


def default_name(node: ast.Node) -> str:
    """The name of an unnamed output column, as PostgreSQL chooses it."""
    inner = node.unnest()
    if isinstance(inner, ast.Column):
        return identifier(inner.this)
    if isinstance(inner, ast.Cast):
        named = _strong_name(inner.operand)
        if named is not None:
            return named
        name = str(inner.to.this)
        return _SHORT_TYPE_NAMES.get(name, name)
    if isinstance(inner, ast.Filter | ast.Window | ast.RespectNulls | ast.WithinGroup):
        return default_name(inner.this)
    if isinstance(inner, ast.Call):
        return calls.function_name(inner)
    if isinstance(inner, ast.Case):
        return _strong_name(inner.otherwise) or "case"
    if isinstance(inner, ast.Trim):
        return _TRIM_NAMES.get(inner.side, "btrim")
    if isinstance(inner, ast.Bracket):
        return default_name(inner.operand)
    if isinstance(inner, ast.Dot):
        return identifier(inner.expression)
    if isinstance(inner, ast.Select):
        # Parentheses around a query are gone as well.
        selected = inner.expressions
        first = selected[0] if selected else ast.Null()
        return (
            identifier(first.args["alias"]) if isinstance(first, ast.Alias) else default_name(first)
        )
    names: dict[type[ast.Node], str] = {
        ast.Exists: "exists",
        ast.Extract: "extract",
        ast.Array: "array",
        ast.ArrayQuery: "array",
        ast.IntervalLiteral: "interval",
        ast.Tuple: "row",
        ast.AtTimeZone: "timezone",
        ast.Substring: "substring",
        ast.StrPosition: "position",
        ast.CurrentDate: "current_date",
        ast.CurrentCatalog: "current_catalog",
        ast.CurrentSchema: "current_schema",
        ast.CurrentUser: "current_user",
        ast.SessionUser: "session_user",
        ast.CurrentTimestamp: "current_timestamp",
        ast.Localtimestamp: "localtimestamp",
        ast.CurrentTime: "current_time",
        ast.Localtime: "localtime",
        ast.Overlay: "overlay",
        ast.Overlaps: "overlaps",
        ast.Date: "date",
    }
    return names.get(type(inner), "?column?")


def _strong_name(node: ast.Node | None) -> str | None:
    """The name of ``node`` if it is stronger than that of a CASE or a cast around it."""
    inner = None if node is None else node.unnest()
    if isinstance(inner, ast.Cast):
        return _strong_name(inner.operand)
    if isinstance(inner, ast.Case):
        return _strong_name(inner.otherwise)
    if inner is None or isinstance(inner, ast.Boolean):
        return None
    named = default_name(inner)
    return None if named == "?column?" else named


@dataclass(frozen=True)
class RowCounts:
    """Binds the numbers of rows in LIMIT, OFFSET and FETCH. ``plan_of`` binds subqueries in these,
    ``level`` has the columns of this query and, in its parents, of those around it."""

    context: Context
    plan_of: Callable[[ast.Node], Logical]
    level: Scope

    def bound(self, node: ast.Node, clause: str) -> Expression | None:
        """A BIGINT; None for NULL, which stands for no limit."""
        self._refuse_own_columns(node, clause)
        binder = ExpressionBinder(
            self.context, self.level, Embedding(self.context, clause, self.plan_of)
        )
        bound = binder.bind(node)
        value = binder.convert.assigned(bound, BIGINT, node, f"argument of {clause}")
        if isinstance(value, Literal):
            if value.value is None:
                return None
            if isinstance(value.value, int) and value.value < 0:
                kind = InvalidOffset if clause == "OFFSET" else InvalidRowCount
                raise self.context.error(kind, f"{clause} must not be negative", node)
        return value

    def _refuse_own_columns(self, node: ast.Node, clause: str) -> None:
        outside = node.walk(prune=lambda part: isinstance(part, ast.Query))
        for part in outside:
            if not isinstance(part, ast.Column) or isinstance(part.this, ast.Star):
                continue
            alone = self.level.parent is None
            if alone or is_of_this_level(self.context, self.level, part):
                raise self.context.error(
                    InvalidColumnReference, f"argument of {clause} must not contain variables", part
                )


def limited(counts: RowCounts, plan: Logical, keys: tuple[SortKey, ...], node: ast.Node) -> Logical:
    """``plan`` under the ORDER BY keys and the LIMIT, OFFSET, FETCH of ``node``."""
    context = counts.context
    limit = offset = None
    ties = False
    if (clause := node.args.get("limit")) is not None:
        limit = _limit(counts, clause)
        ties = _has_ties(context, clause, keys, limit)
    if (clause := node.args.get("offset")) is not None:
        context.only(clause, "expression")
        offset = counts.bound(clause.args["expression"], "OFFSET")
    if not keys and limit is None and offset is None:
        return plan
    if any(has_columns(count) for count in (limit, offset)):
        if ties:
            raise context.unsupported(
                "WITH TIES by columns of a query around it",
                node,
                hint="Use rank() in a subquery, and keep the first ranks.",
            )
        return limited_by_columns(context, plan, keys, limit, offset)
    if ties and limit is not None:
        return with_ties(context, plan, keys, limit, offset)
    return Sort(plan.output, plan, keys, limit, offset)


def _has_ties(
    context: Context, clause: ast.Node, keys: tuple[SortKey, ...], limit: Expression | None
) -> bool:
    if not clause.args.get("with_ties"):
        return False
    place = clause.args.get("count")
    if not keys:
        raise context.error(
            SqlSyntaxError, "WITH TIES cannot be specified without ORDER BY clause", place
        )
    if limit is None:
        raise context.error(
            InvalidRowCount, "row count cannot be null in FETCH FIRST ... WITH TIES clause", place
        )
    return True


def has_columns(count: Expression | None) -> bool:
    """Whether LIMIT or OFFSET depend on a row of a query around this one."""
    return count is not None and any(isinstance(part, ColumnRef) for part in walk(count))


def _limit(counts: RowCounts, clause: ast.Node) -> Expression | None:
    context = counts.context
    if isinstance(clause, ast.Fetch):
        context.only(clause, "count", "with_ties")
        count = clause.args.get("count")
        return Literal(BIGINT, 1) if count is None else counts.bound(count, "FETCH")
    context.only(clause, "expression")
    value = clause.args["expression"]
    if isinstance(value, ast.Var) and str(value.this).upper() == "ALL":
        return None
    return counts.bound(value, "LIMIT")
