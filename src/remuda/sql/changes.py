"""INSERT INTO and SINK INTO: the source in the order and the types of the map's columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import SqlType
from remuda.errors import (
    DuplicateColumn,
    NotNullViolation,
    SqlSyntaxError,
    UndefinedColumn,
)
from remuda.plan.expression import ColumnRef, Expression, Literal
from remuda.plan.logical import Logical
from remuda.sql.conflict import bind_conflict
from remuda.sql.context import Context, identifier
from remuda.sql.conversion import Converter
from remuda.sql.modify import target_of
from remuda.sql.output import project
from remuda.sql.queries import ValuesBinder, analyze_query, rows_plan
from remuda.sql.relations import Environment
from remuda.sql.returning import Outcome, returned
from remuda.sql.scope import Scope, column_refs
from remuda.sql.statements import ChangeStatement, InsertStatement, Repeats
from remuda.sql.suggest import did_you_mean
from remuda.sql.syntax import InsertTree


def bind_insert(context: Context, tree: InsertTree) -> InsertStatement | ChangeStatement:
    """The statement without its parameter types (the caller knows them at the end)."""
    node = tree.root
    context.only(node, "this", "expression", "default", "conflict", "returning", "with_")
    target = node.this
    names: list[exp.Expr] = []
    if isinstance(target, exp.Schema):
        context.only(target, "this", "expressions")
        names, target = list(target.expressions), target.this
    schema, alias = target_of(context, target, "this", "alias")
    if node.args.get("default") or node.expression is None:
        raise context.unsupported("INSERT without VALUES or a query", target)
    _move_common_tables(context, node)
    positions = _positions(context, schema, names)
    _require_key(context, schema, positions, target)
    source = _source(context, schema, positions, node.expression, names or [target])
    conflict, clause = node.args.get("conflict"), node.args.get("returning")
    if conflict is None and clause is None:
        return InsertStatement(schema, source, "sink" if tree.sink else "insert")
    repeats = Repeats.NEVER
    if conflict is not None:
        if tree.sink:
            raise context.unsupported("ON CONFLICT of SINK INTO", conflict)
        resolved = bind_conflict(context, schema, alias, source, conflict)
        source, repeats = resolved.plan, resolved.repeats
    scope = Scope()
    columns = column_refs(source.output)
    scope.add(context, alias, columns, target)
    outcome = returned(context, Outcome(source, scope, [e for _, e in columns]), clause)
    return ChangeStatement(
        verb="SINK" if tree.sink else "INSERT",
        schema=schema,
        source=outcome.plan,
        writes=True,
        removes=False,
        insert_only=not tree.sink and conflict is None,
        reads_target=conflict is not None,
        repeats=repeats,
        returning=outcome.names,
    )


def _move_common_tables(context: Context, node: exp.Insert) -> None:
    """``WITH ... INSERT INTO m SELECT ...``: the query is where the common tables are used."""
    common, query = node.args.get("with_"), node.expression
    if common is None or query.args.get("with_") is common:
        return
    if query.args.get("with_") is not None:
        raise context.unsupported("WITH both before INSERT and before its query", common)
    query.args["with_"] = common


def _positions(context: Context, schema: MapSchema, names: list[exp.Expr]) -> list[int]:
    if not names:
        return list(range(len(schema.columns)))
    found: list[int] = []
    for node in names:
        name = identifier(node)
        position = schema.position.get(name)
        if position is None:
            raise context.error(
                UndefinedColumn,
                f'column "{name}" of map "{schema.name}" does not exist',
                node,
                hint=did_you_mean(name, schema.position),
            )
        if position in found:
            raise context.error(DuplicateColumn, f'column "{name}" specified more than once', node)
        found.append(position)
    return found


def _require_key(context: Context, schema: MapSchema, positions: list[int], node: exp.Expr) -> None:
    """Columns that are left out become NULL: keys and NOT NULL columns cannot."""
    for position, column in enumerate(schema.columns):
        if position not in positions and (not column.nullable or position in schema.key_positions):
            raise context.error(
                NotNullViolation,
                f'column "{column.name}" of map "{schema.name}" is NOT NULL and gets no value',
                node,
            )


def _source(
    context: Context,
    schema: MapSchema,
    positions: Sequence[int],
    node: exp.Expr,
    places: Sequence[exp.Expr],
) -> Logical:
    if isinstance(node, exp.Values) and node.args.get("alias") is not None:
        raise context.unsupported("an alias for the rows of INSERT", node.args["alias"])
    columns = [schema.columns[position] for position in positions]
    pending = analyze_query(context, _without_defaults(node), Environment())
    given = len(pending.names)
    if given > len(columns):
        raise context.error(
            SqlSyntaxError, "INSERT has more expressions than target columns", places[-1]
        )
    if given < len(columns) and len(places) == len(columns) and len(columns) > 1:
        raise context.error(
            SqlSyntaxError, "INSERT has more target columns than expressions", places[given]
        )
    if given < len(columns):
        _require_key(context, schema, list(positions[:given]), places[0])
        columns, positions = columns[:given], positions[:given]
    if isinstance(pending, ValuesBinder):
        return _values(context, schema, pending, columns, positions)
    plan = pending.build([column.type for column in columns])
    return _converted(context, schema, plan, columns, positions)


def _without_defaults(node: exp.Expr) -> exp.Expr:
    """VALUES with NULL for DEFAULT: columns have no other default."""
    if not isinstance(node, exp.Values) or node.find(exp.Var) is None:
        return node
    rows = node.copy()
    for row in rows.expressions:
        for cell in list(row.expressions) if isinstance(row, exp.Tuple) else []:
            if isinstance(cell, exp.Var) and str(cell.this).upper() == "DEFAULT":
                null = exp.Null()
                null.update_positions(cell)
                cell.replace(null)
    return rows


def _values(
    context: Context,
    schema: MapSchema,
    pending: ValuesBinder,
    columns: Sequence[Column],
    positions: Sequence[int],
) -> Logical:
    """VALUES cell by cell, so that every literal is checked against its column at its place."""
    convert = pending.binder.convert
    rows: list[tuple[Expression, ...]] = []
    types: list[SqlType] = [column.type for column in schema.columns]
    for cells, nodes in zip(pending.rows, pending.nodes, strict=True):
        row: list[Expression] = [Literal(t, None) for t in types]
        for cell, node, column, position in zip(cells, nodes, columns, positions, strict=True):
            value = convert.assigned(cell, column.type, node, f'column "{column.name}"')
            if (
                isinstance(value, Literal)
                and value.value is None
                and (not column.nullable or position in schema.key_positions)
            ):
                raise context.error(
                    NotNullViolation,
                    f'null value in column "{column.name}" of map "{schema.name}" '
                    "violates not-null constraint",
                    node,
                )
            row[position] = value
        rows.append(tuple(row))
    return rows_plan(context, [column.name for column in schema.columns], types, rows)


def _converted(
    context: Context,
    schema: MapSchema,
    plan: Logical,
    columns: Sequence[Column],
    positions: Sequence[int],
) -> Logical:
    convert = Converter(context)
    by_position: dict[int, Expression] = {}
    for output, column, position in zip(plan.output, columns, positions, strict=True):
        reference = ColumnRef(output.type, output.id, output.name)
        by_position[position] = convert.assigned(
            reference, column.type, None, f'column "{column.name}"'
        )
    expressions = [
        by_position.get(index, Literal(column.type, None))
        for index, column in enumerate(schema.columns)
    ]
    return project(context, plan, [column.name for column in schema.columns], expressions)
