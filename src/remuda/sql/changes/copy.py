"""COPY: the rows that come in as the source of an INSERT, those that go out as a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remuda.copying.options import CopyOptions, options_of
from remuda.datatypes.schema import Column, MapSchema, ViewDefinition
from remuda.errors import (
    InsufficientPrivilege,
    InvalidColumnReference,
    NotSupported,
    SqlSyntaxError,
    UndefinedColumn,
    WrongObjectType,
)
from remuda.plan.expression import ColumnRef, Expression, Literal
from remuda.plan.logical import Filter, Logical
from remuda.sql.changes.generated_columns import refuse_generated, with_generated
from remuda.sql.changes.modify import target_of
from remuda.sql.changes.rows import insert_positions
from remuda.sql.definitions.constraints import default_of
from remuda.sql.expressions.conversion import Converter
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.queries.numbers import numbered
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import project
from remuda.sql.scope.schema_names import relation_named
from remuda.sql.scope.scope import Scope, column_refs
from remuda.sql.scope.statements import (
    BoundQuery,
    BoundStatement,
    ChangeStatement,
    CopyStatement,
    InsertStatement,
)
from remuda.sql.scope.supplied import supplied
from remuda.sql.trees import ast
from remuda.sql.trees.copy import CopyTree
from remuda.sql.trees.syntax import ChangeTree, InsertTree, MergeTree, QueryTree, Tree

ROWS = "rows of COPY"
"""The relation whose rows the client sends."""
_NO_FILES = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."

Inner = Callable[[Context, Tree], BoundStatement]
"""Binds the query of a COPY."""


def bind_copy(context: Context, tree: CopyTree, bind_inner: Inner) -> CopyStatement:
    _refuse_outside(tree)
    if tree.table is None:
        return _of_query(context, tree, bind_inner)
    _refuse_others(context, tree, tree.table)
    return _incoming(context, tree) if tree.incoming else _outgoing(context, tree, bind_inner)


def _refuse_outside(tree: CopyTree) -> None:
    """Members have no files and no programs for their clients."""
    if tree.outside == "program":
        raise InsufficientPrivilege(
            "must be superuser or have privileges of the pg_execute_server_program role to COPY to "
            "or from an external program",
            hint=_NO_FILES,
        )
    if tree.outside:
        role, way = ("read", "from") if tree.incoming else ("write", "to")
        raise InsufficientPrivilege(
            f"must be superuser or have privileges of the pg_{role}_server_files role to COPY "
            f"{way} a file",
            hint=_NO_FILES,
        )


def _refuse_others(context: Context, tree: CopyTree, table: ast.Table) -> None:
    """Relations whose rows are not copied, by PostgreSQL's words."""
    name, relation = identifier(table.this), relation_named(context, table)
    way = "to" if tree.incoming else "from"
    if isinstance(relation, ViewDefinition):
        raise WrongObjectType(
            f'cannot copy {way} view "{name}"',
            hint=f"Insert into the tables that the view reads: COPY table {way.upper()} STDIN."
            if tree.incoming
            else "Try the COPY (SELECT ...) TO variant.",
        )
    if isinstance(relation, MapSchema) and relation.sequence is not None:
        raise WrongObjectType(f'cannot copy {way} sequence "{name}"')


def _options(
    context: Context, tree: CopyTree, names: Sequence[str], known: Sequence[str]
) -> CopyOptions:
    """``names`` are the columns of the COPY, ``known`` all of the table."""
    options = options_of(tree.options, incoming=tree.incoming)
    for option, columns in (
        ("FORCE_QUOTE", options.force_quote),
        ("FORCE_NOT_NULL", options.force_not_null),
        ("FORCE_NULL", options.force_null),
    ):
        for name in columns if isinstance(columns, tuple) else ():
            if name not in known:
                place = next(p for p in tree.places if identifier(p) == name)
                raise context.error(UndefinedColumn, f'column "{name}" does not exist', place)
            if name not in names:
                raise InvalidColumnReference(f'{option} column "{name}" not referenced by COPY')
    return options


# --- in ----------------------------------------------------------------------------------------


def _incoming(context: Context, tree: CopyTree) -> CopyStatement:
    assert tree.table is not None
    schema, _ = target_of(context, tree.table, "this")
    positions = insert_positions(context, schema, list(tree.columns))
    refuse_generated(context, schema, tree.columns)
    positions = [place for place in positions if place not in schema.generated]
    columns = tuple(schema.columns[position] for position in positions)
    names = [column.name for column in columns]
    options = _options(context, tree, names, [column.name for column in schema.shown])
    relation = context.unique(ROWS)
    given = supplied(context, relation, [Column(c.name, c.type) for c in columns])
    plan = _with_all_columns(context, schema, given, columns, positions)
    if tree.where is not None:
        # every row takes its numbers, also one that WHERE leaves out: the condition sees them
        plan = _filtered(context, schema, numbered(context, plan), tree.where)
    plan = with_generated(context, schema, plan)
    if schema.takes_numbers or context.takes_numbers:
        plan = numbered(context, plan)
    return CopyStatement(
        options=options,
        columns=columns,
        source=InsertStatement(schema, plan, "insert"),
        relation=relation,
        direct=None if tree.where is not None else _direct(schema, positions),
    )


def _with_all_columns(
    context: Context,
    schema: MapSchema,
    given: Logical,
    columns: Sequence[Column],
    positions: Sequence[int],
) -> Logical:
    convert = Converter(context)
    found: dict[int, Expression] = {}
    for output, column, position in zip(given.output, columns, positions, strict=True):
        reference = ColumnRef(output.type, output.id, output.name)
        found[position] = convert.assigned(reference, column.type, None, f'column "{column.name}"')
    expressions = [
        found.get(place) or default_of(column) for place, column in enumerate(schema.columns)
    ]
    return project(context, given, [column.name for column in schema.columns], expressions)


def _filtered(context: Context, schema: MapSchema, plan: Logical, where: ast.Node) -> Logical:
    scope = Scope()
    scope.add(context, schema.name, column_refs(plan.output), where)
    binder = ExpressionBinder(context, scope, Forbidding(context, "COPY FROM WHERE conditions"))
    return Filter(plan.output, plan, binder.condition(where, "WHERE"))


def _direct(schema: MapSchema, positions: Sequence[int]) -> tuple[int | Literal, ...] | None:
    found: list[int | Literal] = []
    if schema.generated:
        return None
    for place, column in enumerate(schema.columns):
        if place in positions:
            found.append(positions.index(place))
            continue
        default = default_of(column)
        if not isinstance(default, Literal):
            return None
        found.append(default)
    return tuple(found)


# --- out ---------------------------------------------------------------------------------------


def _outgoing(context: Context, tree: CopyTree, bind_inner: Inner) -> CopyStatement:
    assert tree.table is not None
    found = relation_named(context, tree.table)
    schema = found if isinstance(found, MapSchema) else None
    items: list[ast.Node] = [ast.Star()]
    if tree.columns and schema is not None:
        insert_positions(
            context, schema, list(tree.columns)
        )  # it refuses unknown and repeated ones
        refuse_generated(context, schema, tree.columns)
    if tree.columns:
        items = [ast.Column(this=name) for name in tree.columns]
    elif schema is not None and schema.generated:
        given = [column.name for column in schema.shown if not column.generated]
        items = [ast.Column(this=ast.name(name)) for name in given]
    query = ast.Select(expressions=items, from_=ast.From(this=tree.table))
    inner = bind_inner(context, QueryTree(query))
    assert isinstance(inner, BoundQuery)
    known = inner.names if schema is None else [column.name for column in schema.shown]
    return CopyStatement(_options(context, tree, inner.names, known), inner)


def _of_query(context: Context, tree: CopyTree, bind_inner: Inner) -> CopyStatement:
    inner = bind_inner(context, _inner_tree(tree.query))
    if isinstance(inner, ChangeStatement):
        names = inner.returning if inner.query is None else inner.query.names
    else:
        names = inner.names if isinstance(inner, BoundQuery) else ()
    if not names and not isinstance(inner, BoundQuery):
        raise NotSupported(
            "COPY query must have a RETURNING clause",
            position=tree.position,
            hint="Add RETURNING with the columns to copy, or run the statement without COPY.",
        )
    assert isinstance(inner, BoundQuery | ChangeStatement)
    if isinstance(inner, BoundQuery) and inner.effects:
        raise NotSupported(
            "COPY of a query that signals sessions, sleeps or changes settings is not supported",
            position=tree.position,
            hint="Run the query without COPY.",
        )
    return CopyStatement(_options(context, tree, names, names), inner)


def _inner_tree(node: ast.Node | None) -> Tree:
    match node:
        case ast.Insert():
            return InsertTree(node, sink=False, overriding=str(node.args.get("overriding") or ""))
        case ast.Merge():
            return MergeTree(node)
        case ast.Update() | ast.Delete():
            return ChangeTree(node)
        case None:
            raise SqlSyntaxError("COPY needs a table or a query")
        case _:
            return QueryTree(node)
