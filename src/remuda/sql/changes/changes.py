"""INSERT INTO and SINK INTO: the source in the order and the types of the map's columns."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.schema import ROW_ID, Column, MapSchema
from remuda.datatypes.sql import unrestricted
from remuda.datatypes.violations import null_value
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import ColumnRef, Expression, Literal
from remuda.plan.logical import Logical
from remuda.sql.changes.conflict import bind_conflict
from remuda.sql.changes.generated_columns import refuse_given, with_generated
from remuda.sql.changes.modify import target_of
from remuda.sql.changes.returning import Outcome, returned
from remuda.sql.changes.rows import insert_positions
from remuda.sql.definitions.constraints import default_of
from remuda.sql.expressions.conversion import Converter
from remuda.sql.parsing.alternatives import conflict_of
from remuda.sql.queries.numbers import numbered_rows
from remuda.sql.queries.queries import ValuesBinder, analyze_query, rows_plan
from remuda.sql.queries.relations import Environment
from remuda.sql.scope.context import Context
from remuda.sql.scope.origins import note_origins
from remuda.sql.scope.output import project
from remuda.sql.scope.scope import Scope, column_refs
from remuda.sql.scope.statements import ChangeStatement, InsertStatement, Repeats
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import InsertTree


def bind_insert(context: Context, tree: InsertTree) -> InsertStatement | ChangeStatement:
    """The statement without its parameter types (the caller knows them at the end)."""
    node = tree.root
    context.only(
        node, "this", "columns", "expression", "default", "conflict", "returning", "with_",
        "alternative", "overriding")  # fmt: skip
    target = node.this
    names: list[ast.Node] = list(node.args.get("columns") or ())
    schema, alias = target_of(context, target, "this", "alias")
    if node.args.get("default"):
        source = _rows(context, schema, [[default_of(column) for column in schema.columns]])
    elif node.expression is None:
        raise context.unsupported(
            "INSERT without VALUES or a query",
            target,
            hint="Give VALUES (...), a SELECT, or DEFAULT VALUES.",
        )
    else:
        query = _with_common_tables(context, node)
        positions = insert_positions(context, schema, names)
        refused = bool(node.args.get("conflict") or node.args.get("alternative"))
        query = _overridden(context, schema, positions, query, tree)
        source = _source(
            context, schema, positions, query, names or [target],
            refuse_nulls=refused, overrides=tree.overriding == "SYSTEM",
        )  # fmt: skip
    source = with_generated(context, schema, source)
    conflict, clause = node.args.get("conflict"), node.args.get("returning")
    alternative = str(node.args.get("alternative") or "").upper()
    if alternative and conflict is not None:
        raise context.unsupported(
            f"INSERT OR {alternative} with ON CONFLICT", conflict, hint="Give one of the two."
        )
    if alternative:
        conflict = conflict_of(context, schema, alternative, node)
    if (
        conflict is not None
        and schema.has_row_ids
        and not (schema.uniques or conflict.args.get("conflict_keys"))
    ):
        conflict = None  # every row gets a key of its own
    if conflict is None and clause is None:
        return InsertStatement(schema, source, "sink" if tree.sink else "insert")
    repeats = Repeats.NEVER
    resolved = None
    if conflict is not None:
        if tree.sink:
            raise context.unsupported(
                "ON CONFLICT of SINK INTO", conflict, hint="Use INSERT INTO ... ON CONFLICT."
            )
        resolved = bind_conflict(context, schema, alias, source, conflict)
        source, repeats = resolved.plan, resolved.repeats
    scope = Scope()
    stored = column_refs(source.output)
    chooses = resolved is not None and resolved.chooses
    columns = stored[1 : 1 + len(schema.columns)] if chooses else stored
    scope.add(context, alias, columns, target)
    note_origins(context, schema.oid, columns)
    outcome = returned(context, Outcome(source, scope, [e for _, e in stored]), clause)
    return ChangeStatement(
        verb="SINK" if tree.sink else "INSERT",
        schema=schema,
        source=outcome.plan,
        writes=True,
        removes=chooses,
        insert_only=not tree.sink and (resolved is None or not resolved.by_key),
        reads_target=conflict is not None,
        repeats=repeats,
        returning=outcome.names,
        chooses=chooses,
        arbiters=() if resolved is None else resolved.arbiters,
    )


def _overridden(
    context: Context, schema: MapSchema, positions: list[int], query: ast.Node, tree: InsertTree
) -> ast.Node:
    """The rows, with DEFAULT in place of values for identity columns if the statement is OVERRIDING
    USER VALUE."""
    columns = [schema.columns[position] for position in positions]
    if tree.overriding != "USER" or not any(column.identity for column in columns):
        return query
    return _with_defaults(context, columns, query)


def _with_defaults(context: Context, columns: Sequence[Column], query: ast.Node) -> ast.Node:
    """The rows with DEFAULT in place of the values for identity columns."""
    if not isinstance(query, ast.Values):
        raise context.unsupported(
            "OVERRIDING USER VALUE of a query",
            query,
            hint="Leave the identity column out of the columns of INSERT.",
        )
    rows: list[ast.Node] = []
    for row in query.expressions:
        cells = [
            ast.Var(cell.start, cell.end, this="DEFAULT")
            if number < len(columns) and columns[number].identity is not None
            else cell
            for number, cell in enumerate(row.expressions)
        ]
        rows.append(row.with_args(expressions=cells))
    return query.with_args(expressions=rows)


def _with_common_tables(context: Context, node: ast.Insert) -> ast.Node:
    """``WITH ... INSERT INTO m SELECT ...``: the query is where the common tables are used."""
    common: ast.Node | None = node.args.get("with_")
    query: ast.Node = node.expression
    if common is None:
        return query
    if query.args.get("with_") is not None:
        raise context.unsupported(
            "WITH both before INSERT and before its query",
            common,
            hint="Write all WITH queries before INSERT.",
        )
    return query.with_args(with_=common)


def _source(
    context: Context,
    schema: MapSchema,
    positions: Sequence[int],
    node: ast.Node,
    places: Sequence[ast.Node],
    *,
    refuse_nulls: bool,
    overrides: bool,
) -> Logical:
    """``refuse_nulls``: a row of VALUES may not have NULL in a NOT NULL column even if the
    statement then leaves the row out, because one with its key exists. ``overrides``: it may give
    values of its own for identity columns. Raises GeneratedAlways."""
    columns = [schema.columns[position] for position in positions]
    node, defaults = _without_defaults(node)
    pending = analyze_query(context, node, Environment())
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
        columns, positions = columns[:given], positions[:given]
    for number, column in enumerate(columns):
        lines = len(pending.rows) if isinstance(pending, ValuesBinder) else 1
        if any((line, number) not in defaults for line in range(lines)):
            place = places[number] if number < len(places) else places[0]
            refuse_given(context, column, place, overrides=overrides)
    if isinstance(pending, ValuesBinder):
        rows = _values(schema, pending, columns, positions, defaults)
        if refuse_nulls:
            _refuse_nulls(context, schema, rows, places[0])
        return _rows(context, schema, rows)
    plan = pending.build([column.type for column in columns])
    return _converted(context, schema, plan, columns, positions)


def _without_defaults(node: ast.Node) -> tuple[ast.Node, set[tuple[int, int]]]:
    """VALUES with NULL for DEFAULT, and where that was: (row, cell)."""
    found: set[tuple[int, int]] = set()
    if not isinstance(node, ast.Values):
        return node, found
    for number, row in enumerate(node.expressions):
        for place, cell in enumerate(row.expressions):
            if isinstance(cell, ast.Var):
                found.add((number, place))
    if not found:
        return node, found
    rows: list[ast.Node] = []
    for row in node.expressions:
        cells = [ast.Null(c.start, c.end) if isinstance(c, ast.Var) else c for c in row.expressions]
        rows.append(row.with_args(expressions=cells))
    return node.with_args(expressions=rows), found


def _values(
    schema: MapSchema,
    pending: ValuesBinder,
    columns: Sequence[Column],
    positions: Sequence[int],
    defaults: set[tuple[int, int]],
) -> list[list[Expression]]:
    """VALUES cell by cell, so that every literal is checked against its column at its place."""
    convert = pending.binder.convert
    rows: list[list[Expression]] = []
    for number, (cells, nodes) in enumerate(zip(pending.rows, pending.nodes, strict=True)):
        row = [default_of(column) for column in schema.columns]
        for place, (cell, node, column, position) in enumerate(
            zip(cells, nodes, columns, positions, strict=True)
        ):
            if (number, place) in defaults:
                value = row[position]
            else:
                value = convert.assigned(cell, column.type, node, f'column "{column.name}"')
            row[position] = value
        rows.append(row)
    return rows


def _refuse_nulls(
    context: Context, schema: MapSchema, rows: Sequence[Sequence[Expression]], place: ast.Node
) -> None:
    for row in rows:
        for position, column in enumerate(schema.columns):
            value = row[position]
            required = not column.nullable and column.name != ROW_ID and not column.generated
            if required and isinstance(value, Literal) and value.value is None:
                values = [each.value for each in row if isinstance(each, Literal)]
                known = values if len(values) == len(row) else None
                raise context.located(null_value(schema, column, known), place)


def _rows(context: Context, schema: MapSchema, rows: Sequence[Sequence[Expression]]) -> Logical:
    names = [column.name for column in schema.columns]
    types = [unrestricted(column.type) for column in schema.columns]
    if context.takes_numbers or schema.takes_numbers:
        return numbered_rows(context, names, types, rows)
    return rows_plan(context, names, types, [tuple(row) for row in rows])


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
        by_position.get(index) or default_of(column) for index, column in enumerate(schema.columns)
    ]
    return project(context, plan, [column.name for column in schema.columns], expressions)
