"""Queries as a whole: SELECT, VALUES, WITH, parentheses, and the clauses around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from remuda.datatypes.coercion import common_type
from remuda.datatypes.sql import VARCHAR, Kind, SqlType
from remuda.errors import (
    DuplicateAlias,
    SqlSyntaxError,
)
from remuda.plan.expression import Expression, Literal
from remuda.plan.logical import Logical, OutputColumn, Project, Union, Values
from remuda.plan.nullability import is_nullable
from remuda.plan.uses import is_by_chance
from remuda.sql.expressions.expressions import Embedding, ExpressionBinder
from remuda.sql.queries.clauses import RowCounts, limited
from remuda.sql.queries.many_rows import MANY, many_rows
from remuda.sql.queries.recursion import RecursionBinder, in_order, is_recursive
from remuda.sql.queries.relations import CommonTable, Environment, bind_common_table
from remuda.sql.queries.select import SelectBinder
from remuda.sql.queries.set_operations import Pending, bind_set_operation, order_keys
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import free_columns, one_row
from remuda.sql.scope.scope import Scope
from remuda.sql.scope.supplied import once
from remuda.sql.trees import ast

_TAIL: Final = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}
"""Clauses that may follow parentheses as well as the query in them."""


@dataclass(slots=True)
class _Built:
    """A query whose types are final."""

    plan: Logical

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.plan.output]

    @property
    def types(self) -> list[SqlType]:
        return [column.type for column in self.plan.output]

    def build(self, targets: Sequence[SqlType | None] | None = None) -> Logical:  # noqa: ARG002
        return self.plan


def bind_query(context: Context, node: ast.Node, environment: Environment) -> Logical:
    """The plan of a query; its output columns carry the result's names."""
    return analyze_query(context, node, environment).build()


def analyze_query(context: Context, node: ast.Node, environment: Environment) -> Pending:
    environment = _with_common_tables(context, node, environment)

    def nested(inner: ast.Node, inner_environment: Environment) -> Logical:
        return bind_query(context, inner, inner_environment)

    if isinstance(node, ast.Select):
        select = SelectBinder(context, node, environment, nested)
        select.analyze()
        return select
    if isinstance(node, ast.Subquery):
        return _parenthesized(context, node, environment)
    if isinstance(node, ast.SetOperation):
        return _Built(bind_set_operation(context, node, environment, analyze_query))
    if isinstance(node, ast.Values):
        return _values(context, node, environment)
    if isinstance(node, ast.Change):
        raise context.unsupported(
            f"{type(node).__name__.upper()} inside of this statement",
            node,
            hint="A WITH query that changes data stands in the WITH of a SELECT that is the whole "
            "statement.",
        )
    names: dict[type[ast.Node], str] = {
        ast.Table: "a table in parentheses",
    }
    what = names.get(type(node), type(node).__name__.upper())
    raise context.unsupported(
        what, node, hint="Supported queries: SELECT, VALUES, TABLE, UNION, INTERSECT, EXCEPT, WITH."
    )


# --- WITH --------------------------------------------------------------------------------------


def _with_common_tables(context: Context, node: ast.Node, environment: Environment) -> Environment:
    clause = node.args.get("with_")
    if clause is None:
        return environment
    context.only(clause, "expressions", "recursive")
    inner = Environment(dict(environment.tables), environment.parent)
    own: set[str] = set()
    recursive = bool(clause.args.get("recursive"))
    for entry in in_order(context, clause.expressions) if recursive else clause.expressions:
        context.only(entry, "this", "alias", "materialized", "search")
        alias = entry.args["alias"]
        context.only(alias, "this", "columns")
        name = identifier(alias.this)
        if name in own:
            raise context.error(
                DuplicateAlias, f'WITH query name "{name}" specified more than once', alias
            )
        own.add(name)
        seen = Environment(dict(inner.tables), environment.parent)
        common = CommonTable(entry.this, list(alias.args.get("columns") or ()), seen)
        context.count_relation(alias)
        search = entry.args.get("search")
        if search is not None and not (recursive and is_recursive(entry)):
            raise context.error(SqlSyntaxError, "WITH query is not recursive", alias)
        if recursive and is_recursive(entry):
            common.make = RecursionBinder(
                context, name, common, lambda n, e: analyze_query(context, n, e)
            ).bind(search)
        else:
            plan = bind_common_table(context, name, common, lambda n, e: bind_query(context, n, e))
            if is_by_chance(plan) and not free_columns(plan):
                common.make = once(context, name, plan)
            else:
                common.first_plan = plan
        inner.tables[name] = common
    return inner


# --- parentheses and set operations ------------------------------------------------------------


def _parenthesized(context: Context, node: ast.Subquery, environment: Environment) -> Pending:
    """``(query) [ORDER BY ...] [LIMIT ...]``; the alias belongs to whoever reads it in FROM."""
    context.only(node, "this", "alias", "with_", "joins", *_TAIL)
    return analyze_query(context, _with_tail(context, node.this, node), environment)


def _with_tail(context: Context, inner: ast.Node, outer: ast.Node) -> ast.Node:
    """``inner`` under the ORDER BY, LIMIT and OFFSET that follow its parentheses."""
    tail = {name: outer.args[name] for name in _TAIL if outer.args.get(name)}
    if not tail:
        return inner
    for name, clause in tail.items():
        if inner.args.get(name):
            raise context.error(
                SqlSyntaxError, f"multiple {_TAIL[name]} clauses not allowed", clause
            )
    return inner.with_args(**tail)


def _values(context: Context, node: ast.Values, environment: Environment) -> Pending:
    context.only(node, "expressions", "alias", "with_", *_TAIL)
    values = ValuesBinder(context, node, environment)
    if not any(node.args.get(name) for name in _TAIL):
        return values
    plan = values.build()
    counts = RowCounts(
        context,
        lambda inner: bind_query(context, inner, environment),
        Scope(parent=environment.parent),
    )
    return _Built(limited(counts, plan, order_keys(context, plan, node), node))


# --- VALUES ------------------------------------------------------------------------------------


class ValuesBinder:
    """VALUES (...), (...): analyzed rows that can still take types from an INSERT or a UNION."""

    def __init__(self, context: Context, node: ast.Values, environment: Environment) -> None:
        self.context = context
        self.binder = ExpressionBinder(
            context,
            Scope(parent=environment.parent),
            Embedding(context, "VALUES", lambda inner: bind_query(context, inner, environment)),
        )
        self.nodes: list[list[ast.Node]] = []
        self.rows: list[list[Expression]] = []
        for row in node.expressions:
            cells = list(row.expressions) if isinstance(row, ast.Tuple) else [row]
            if not cells:
                raise context.error(SqlSyntaxError, 'syntax error at or near ")"', row)
            if self.nodes and len(cells) != len(self.nodes[0]):
                raise context.error(
                    SqlSyntaxError, "VALUES lists must all be the same length", cells[0]
                )
            self.nodes.append(cells)
            self.rows.append([self.binder.bind(cell) for cell in cells])

    @property
    def names(self) -> list[str]:
        return [f"column{index + 1}" for index in range(len(self.nodes[0]))]

    @property
    def types(self) -> list[SqlType]:
        found: list[SqlType] = []
        for index in range(len(self.nodes[0])):
            kinds = [row[index].type for row in self.rows]
            if all(t.kind is Kind.NULL for t in kinds):
                found.append(kinds[0])
            else:
                found.append(common_type(kinds) or self._unified(index))
        return found

    def _unified(self, index: int) -> SqlType:
        """The type of a column whose cells have no common one before they are adapted to each
        other; TypeMismatch if there is none."""
        cells = [row[index] for row in self.rows]
        nodes = [row[index] for row in self.nodes]
        return self.binder.convert.unified(cells, nodes, "VALUES")[0].type

    def build(self, targets: Sequence[SqlType | None] | None = None) -> Logical:
        """Each cell of the column's common type. A single row may be cast further by its reader."""
        wanted = [
            target if found.kind is Kind.NULL and target is not None else found
            for found, target in zip(
                self.types, targets or [None] * len(self.nodes[0]), strict=True
            )
        ]
        return self.of_types([VARCHAR if t.kind is Kind.NULL else t for t in wanted])

    def of_types(self, types: Sequence[SqlType]) -> Logical:
        convert = self.binder.convert
        rows = [
            tuple(
                convert.implicit(cell, t, node)
                for cell, node, t in zip(cells, nodes, types, strict=True)
            )
            for cells, nodes in zip(self.rows, self.nodes, strict=True)
        ]
        return rows_plan(self.context, self.names, types, rows)


def rows_plan(
    context: Context,
    names: Sequence[str],
    types: Sequence[SqlType],
    rows: Sequence[tuple[Expression, ...]],
) -> Logical:
    """Rows of expressions without columns: constants become Values, others a projection each,
    or one for all if they are many."""
    if all(isinstance(cell, Literal) for row in rows for cell in row):
        nullable = [any(_nullable(row[i]) for row in rows) for i in range(len(names))]
        return Values(
            _output(context, names, types, nullable),
            tuple(tuple(cell.value for cell in row if isinstance(cell, Literal)) for row in rows),
        )
    if len(rows) >= MANY:
        nullable = [any(_nullable(row[i]) for row in rows) for i in range(len(names))]
        together = many_rows(context, _output(context, names, types, nullable), rows)
        if together is not None:
            return together
    plans: list[Logical] = [
        Project(_output(context, names, types, [_nullable(c) for c in row]), one_row(), row)
        for row in rows
    ]
    if len(plans) == 1:
        return plans[0]
    nullable = [any(p.output[i].nullable for p in plans) for i in range(len(names))]
    return Union(_output(context, names, types, nullable), tuple(plans))


def _nullable(cell: Expression) -> bool:
    return is_nullable(cell, {})


def _output(
    context: Context, names: Sequence[str], types: Sequence[SqlType], nullable: Sequence[bool]
) -> tuple[OutputColumn, ...]:
    return tuple(
        OutputColumn(context.new_id(), name, t, n)
        for name, t, n in zip(names, types, nullable, strict=True)
    )
