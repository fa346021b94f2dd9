"""Queries as a whole: SELECT, VALUES, UNION, WITH, and what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from remuda.datatypes.coercion import common_type, is_comparable
from remuda.datatypes.sql import VARCHAR, Kind, SqlType
from remuda.datatypes.text import type_name
from remuda.errors import (
    DuplicateAlias,
    SqlSyntaxError,
    TypeMismatch,
    UndefinedColumn,
)
from remuda.plan.expression import ColumnId, ColumnRef, Expression, Literal, SortKey
from remuda.plan.logical import Logical, OutputColumn, Project, Union, Values
from remuda.sql.clauses import limited, matching_output
from remuda.sql.context import Context, identifier
from remuda.sql.expressions import ExpressionBinder, Forbidding
from remuda.sql.output import distinct, is_nullable, one_row
from remuda.sql.relations import CommonTable, Environment, bind_common_table
from remuda.sql.scope import Scope
from remuda.sql.select import SelectBinder


class Pending(Protocol):
    """A query that is analyzed but not yet built (see ``SelectBinder``)."""

    @property
    def names(self) -> list[str]: ...

    @property
    def types(self) -> list[SqlType]: ...

    def build(self, targets: Sequence[SqlType | None] | None = None) -> Logical: ...


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


def bind_query(context: Context, node: exp.Expr, environment: Environment) -> Logical:
    """The plan of a query; its output columns carry the result's names."""
    return analyze_query(context, node, environment).build()


def analyze_query(context: Context, node: exp.Expr, environment: Environment) -> Pending:
    environment = _with_common_tables(context, node, environment)

    def nested(inner: exp.Expr, inner_environment: Environment) -> Logical:
        return bind_query(context, inner, inner_environment)

    if isinstance(node, exp.Select):
        select = SelectBinder(context, node, environment, nested)
        select.analyze()
        return select
    if isinstance(node, exp.Subquery):
        return _parenthesized(context, node, environment)
    if isinstance(node, exp.Union):
        return _Built(_union(context, node, environment))
    if isinstance(node, exp.Values):
        return ValuesBinder(context, node, environment)
    names: dict[type[exp.Expr], str] = {
        exp.Intersect: "INTERSECT",
        exp.Except: "EXCEPT",
        exp.Table: "a table in parentheses",
    }
    what = names.get(type(node), type(node).__name__.upper())
    raise context.unsupported(
        what, node, hint="Supported queries: SELECT, VALUES, UNION, UNION ALL, WITH."
    )


# --- WITH --------------------------------------------------------------------------------------


def _with_common_tables(context: Context, node: exp.Expr, environment: Environment) -> Environment:
    clause = node.args.get("with_")
    if clause is None:
        return environment
    context.only(clause, "expressions")
    inner = Environment(dict(environment.tables), environment.parent)
    own: set[str] = set()
    for entry in clause.expressions:
        context.only(entry, "this", "alias", "materialized")
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
        common.first_plan = bind_common_table(
            context, name, common, lambda n, e: bind_query(context, n, e)
        )
        inner.tables[name] = common
    return inner


# --- parentheses and set operations ------------------------------------------------------------


def _parenthesized(context: Context, node: exp.Subquery, environment: Environment) -> Pending:
    """``(query) [ORDER BY ...] [LIMIT ...]``; the alias belongs to whoever reads it in FROM."""
    context.only(node, "this", "alias", "with_", "order", "limit", "offset", "joins")
    inner = analyze_query(context, node.this, environment)
    if not any(node.args.get(name) for name in ("order", "limit", "offset")):
        return inner
    plan = inner.build()
    return _Built(limited(context, plan, _order_keys(context, plan, node), node))


def _order_keys(context: Context, plan: Logical, node: exp.Expr) -> tuple[SortKey, ...]:
    """ORDER BY over a finished query: ordinals and output names only."""
    order = node.args.get("order")
    if order is None:
        return ()
    context.only(order, "expressions")
    keys: list[SortKey] = []
    seen: set[ColumnId] = set()
    items = [
        _Named(column.name, ColumnRef(column.type, column.id, column.name))
        for column in plan.output
    ]
    for key in order.expressions:
        context.only(key, "this", "desc", "nulls_first")
        index = _output_index(context, items, key.this)
        column = plan.output[index]
        if not is_comparable(column.type):
            raise context.error(TypeMismatch, f"cannot sort type {type_name(column.type)}", key)
        if column.id not in seen:
            seen.add(column.id)
            descending = bool(key.args.get("desc"))
            keys.append(SortKey(column.id, descending, bool(key.args.get("nulls_first"))))
    return tuple(keys)


@dataclass(slots=True)
class _Named:
    name: str
    expression: Expression


def _output_index(context: Context, items: list[_Named], node: exp.Expr) -> int:
    if isinstance(node, exp.Literal) and not node.args["is_string"] and node.this.isdecimal():
        if not 1 <= int(node.this) <= len(items):
            raise context.error(
                UndefinedColumn, f"ORDER BY position {node.this} is not in select list", node
            )
        return int(node.this) - 1
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        found = matching_output(context, items, node)
        if found is not None:
            return found
        raise context.error(
            UndefinedColumn, f'column "{identifier(node.this)}" does not exist', node
        )
    raise context.unsupported(
        "ORDER BY with an expression over a UNION",
        node,
        hint="Use the name or the number of a result column.",
    )


def _union(context: Context, node: exp.Union, environment: Environment) -> Logical:
    context.only(
        node, "this", "expression", "distinct", "order", "limit", "offset", "with_"
    )  # fmt: skip
    unique = bool(node.args.get("distinct"))
    branches = [analyze_query(context, part, environment) for part in _branches(context, node)]
    width = len(branches[0].types)
    places = _branches(context, node)
    for branch, place in zip(branches, places, strict=True):
        if len(branch.types) != width:
            raise context.error(
                SqlSyntaxError, "each UNION query must have the same number of columns", place
            )
    targets: list[SqlType] = []
    for index in range(width):
        types = [branch.types[index] for branch in branches]
        common = common_type(types)
        if common is None:
            known = [type_name(t) for t in dict.fromkeys(types) if t.kind is not Kind.NULL]
            raise context.error(
                TypeMismatch,
                f"UNION types {known[0]} and {known[1]} cannot be matched "
                f'(column {index + 1}, "{branches[0].names[index]}")',
                places[-1],
                hint="Convert one of them with CAST.",
            )
        targets.append(common)
    plans = [converted(context, branch.build(targets), targets) for branch in branches]
    output = tuple(
        OutputColumn(context.new_id(), name, target, any(plan.output[i].nullable for plan in plans))
        for i, (name, target) in enumerate(zip(branches[0].names, targets, strict=True))
    )
    plan: Logical = Union(output, tuple(plans))
    if unique:
        plan = distinct(plan)
    return limited(context, plan, _order_keys(context, plan, node), node)


def _branches(context: Context, node: exp.Union) -> list[exp.Expr]:
    """The inputs of a chain of equal UNIONs, without recursion on its left side."""
    unique = bool(node.args.get("distinct"))
    found: list[exp.Expr] = []
    current: exp.Expr = node
    while (
        isinstance(current, exp.Union)
        and bool(current.args.get("distinct")) == unique
        and (current is node or not _has_own_clauses(current))
    ):
        if current is not node:
            context.only(current, "this", "expression", "distinct")
        found.append(current.args["expression"])
        current = current.args["this"]
    found.append(current)
    for part in found[1:]:
        if isinstance(part, exp.Select) and any(
            part.args.get(name) for name in ("order", "limit", "offset")
        ):
            raise context.error(
                SqlSyntaxError,
                "ORDER BY and LIMIT before UNION need parentheses around their query",
                part.args.get("order") or part.args.get("limit") or part,
            )
    return found[::-1]


def _has_own_clauses(node: exp.Expr) -> bool:
    return any(node.args.get(name) for name in ("order", "limit", "offset", "with_"))


def converted(context: Context, plan: Logical, targets: Sequence[SqlType]) -> Logical:
    """``plan`` with columns of exactly the types ``targets`` (implicit conversions)."""
    if all(c.type == t for c, t in zip(plan.output, targets, strict=True)):
        return plan
    converter = ExpressionBinder(context, Scope(), Forbidding(context, "VALUES")).convert
    expressions: list[Expression] = []
    output: list[OutputColumn] = []
    for column, target in zip(plan.output, targets, strict=True):
        reference = ColumnRef(column.type, column.id, column.name)
        if column.type == target:
            expressions.append(reference)
            output.append(column)
            continue
        expressions.append(converter.cast(reference, target, None))
        output.append(OutputColumn(context.new_id(), column.name, target, column.nullable))
    return Project(tuple(output), plan, tuple(expressions))


# --- VALUES ------------------------------------------------------------------------------------


class ValuesBinder:
    """VALUES (...), (...): analyzed rows that can still take types from an INSERT or a UNION."""

    def __init__(self, context: Context, node: exp.Values, environment: Environment) -> None:
        context.only(node, "expressions", "alias", "with_")
        self.context = context
        self.binder = ExpressionBinder(
            context, Scope(parent=environment.parent), Forbidding(context, "VALUES")
        )
        self.nodes: list[list[exp.Expr]] = []
        self.rows: list[list[Expression]] = []
        for row in node.expressions:
            cells = list(row.expressions) if isinstance(row, exp.Tuple) else [row]
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
                found.append(common_type(kinds) or self._unmatched(index))
        return found

    def _unmatched(self, index: int) -> SqlType:
        cells = [row[index] for row in self.rows]
        self.binder.convert.unified(cells, [row[index] for row in self.nodes], "VALUES")
        raise AssertionError("unified must have failed")

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
    """Rows of expressions without columns: constants become Values, others a projection each."""
    if all(isinstance(cell, Literal) for row in rows for cell in row):
        nullable = [any(_nullable(row[i]) for row in rows) for i in range(len(names))]
        return Values(
            _output(context, names, types, nullable),
            tuple(tuple(cell.value for cell in row if isinstance(cell, Literal)) for row in rows),
        )
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
