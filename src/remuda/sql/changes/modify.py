"""UPDATE, DELETE and TRUNCATE: a query for the rows that change, and their new values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remuda.catalog.system_relations import SystemRelation
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.errors import (
    InvalidDefinition,
    SqlSyntaxError,
    UndefinedColumn,
    WrongObjectType,
)
from remuda.plan.expression import ColumnId, ColumnRef, Expression
from remuda.plan.logical import Logical
from remuda.sql.changes.element_assignments import element_path, with_element
from remuda.sql.changes.generated_columns import computed, refuse_value
from remuda.sql.changes.returning import Outcome, refuse_groups, returned
from remuda.sql.definitions.constraints import default_of
from remuda.sql.expressions.row_values import is_star, row_parts, tags_of
from remuda.sql.expressions.subqueries import columns_of_query
from remuda.sql.queries.queries import analyze_query
from remuda.sql.queries.relations import CommonTable, Environment, undefined_map
from remuda.sql.queries.select import SelectBinder
from remuda.sql.queries.select_items import Item
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.origins import note_origins
from remuda.sql.scope.schema_names import relation_named, written
from remuda.sql.scope.scope import Scope
from remuda.sql.scope.statements import (
    ChangeStatement,
    Repeats,
)
from remuda.sql.text.lexemes import end_of
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import ChangeTree


@dataclass(frozen=True, slots=True)
class Assignment:
    """``column = value``: the column's schema position, its place, the value (None: DEFAULT)."""

    position: int
    place: ast.Node
    value: ast.Node | None


def bind_change(context: Context, tree: ChangeTree) -> ChangeStatement:
    """The statement without its parameter types (the caller knows them at the end)."""
    if isinstance(tree.root, ast.Update):
        return _update(context, tree.root)
    return _delete(context, tree.root)


def target_of(context: Context, node: ast.Node, *consumed: str) -> tuple[MapSchema, str]:
    """The map that a statement changes, and the name that stands for it there."""
    if not isinstance(node, ast.Table):
        raise context.unsupported("a change of this", node, hint="Change a map by its name.")
    context.only(node, "db", "catalog", "only", *consumed)
    name, schema = identifier(node.this), relation_named(context, node)
    if isinstance(schema, SystemRelation):
        raise context.error(
            WrongObjectType, f'"{name}" is a system relation and cannot be changed', node.this
        )
    if isinstance(schema, ViewDefinition):
        raise context.error(
            WrongObjectType,
            f'"{name}" is a view and cannot be changed',
            node.this,
            hint="Change the maps that it reads.",
        )
    if schema is None:
        raise undefined_map(context, written(node), node.this)
    if schema.sequence is not None:
        raise context.error(
            WrongObjectType,
            f'cannot change sequence "{name}"',
            node.this,
            hint="Use setval or ALTER SEQUENCE.",
        )
    alias = node.args.get("alias")
    if alias is None:
        return schema, name
    context.only(alias, "this")
    return schema, identifier(alias.this)


def _update(context: Context, node: ast.Update) -> ChangeStatement:
    context.only(node, "this", "expressions", "from_", "where", "returning", "with_")
    schema, alias = target_of(context, node.this, "this", "alias")
    if not node.expressions:
        raise SqlSyntaxError("SET needs column = value", position=end_of(context.text))
    assignments = assignments_of(context, schema, alias, node.expressions)
    other = node.args.get("from_")
    values = [a.value if a.value is not None else ast.Null() for a in assignments]
    select = _analyzed(context, node, alias, [] if other is None else [other.this], values)
    refuse_groups(context, select, values, "UPDATE")
    for assignment, item in zip(assignments, select.items, strict=True):
        column = schema.columns[assignment.position]
        refuse_value(context, column, assignment.value, assignment.place)
        item.expression = (
            default_of(column)
            if assignment.value is None
            else select.binder.convert.assigned(
                item.expression, column.type, assignment.value, f'column "{column.name}"'
            )
        )
    old = [reference for _, reference in select.scope.relations[alias]]
    plan = _with_all_columns(select)
    changed = plan.output[len(plan.output) - len(assignments) :]
    rows: list[Expression] = list(old)
    for assignment, output in zip(assignments, changed, strict=True):
        rows[assignment.position] = ColumnRef(output.type, output.id, output.name)
    rows = computed(schema, rows)
    removes = any(a.position in schema.key_positions for a in assignments)
    keys = [old[position] for position in schema.key_positions] if removes else []
    unique = {schema.position[name] for index in schema.uniques for name in index.names}
    unique.update(schema.position[name] for key in schema.foreign_keys for name in key.columns)
    scope = _replaced(select.scope, alias, rows)
    note_origins(context, schema.oid, scope.relations[alias])
    clause = node.args.get("returning")
    outcome = returned(context, Outcome(plan, scope, [*rows, *keys]), clause)
    return ChangeStatement(
        verb="UPDATE",
        schema=schema,
        source=outcome.plan,
        writes=True,
        removes=removes,
        insert_only=removes,
        reads_target=True,
        repeats=Repeats.NEVER if other is None else Repeats.FIRST,
        returning=outcome.names,
        keeps_uniques=not removes and all(rows[place] is old[place] for place in unique),
    )


def _delete(context: Context, node: ast.Delete) -> ChangeStatement:
    context.only(node, "this", "using", "where", "returning", "with_")
    schema, alias = target_of(context, node.this, "this", "alias")
    using = list(node.args.get("using") or [])
    select = _analyzed(context, node, alias, using, [ast.Boolean(this=True)])
    old = [reference for _, reference in select.scope.relations[alias]]
    plan = _with_all_columns(select)
    keys = [old[position] for position in schema.key_positions]
    outcome = returned(context, Outcome(plan, select.scope, keys), node.args.get("returning"))
    return ChangeStatement(
        verb="DELETE",
        schema=schema,
        source=outcome.plan,
        writes=False,
        removes=True,
        insert_only=False,
        reads_target=True,
        repeats=Repeats.FIRST if using else Repeats.NEVER,
        returning=outcome.names,
    )


def _one_value(node: ast.Node) -> ast.Node:
    """As an item of a select list: ``v.*`` with an alias, because here it is a row and no list."""
    if not is_star(node):
        return node
    return ast.Alias(this=node, alias=ast.name("value"))


def _analyzed(
    context: Context,
    node: ast.Update | ast.Delete,
    alias: str,
    others: Sequence[ast.Node],
    values: Sequence[ast.Node],
) -> SelectBinder:
    """``SELECT values FROM target, others WHERE ...``."""
    common = node.args.get("with_")
    for table in common.expressions if common is not None else ():
        if identifier(table.args["alias"].this) == identifier(node.this.this):
            raise context.error(
                InvalidDefinition, f'WITH query "{alias}" cannot be changed', node.this
            )
    query = ast.Select(
        expressions=[_one_value(value) for value in values],
        from_=ast.From(this=node.this),
        joins=[ast.Join(this=other) for other in others],
        where=node.args.get("where"),
        with_=common,
    )
    pending = analyze_query(context, query, Environment())
    assert isinstance(pending, SelectBinder)
    return pending


def joined_rows(
    context: Context, first: ast.Node, joins: Sequence[ast.Node], common: ast.Node | None
) -> tuple[Logical, Scope, dict[str, CommonTable]]:
    """All columns of ``first`` and what is joined to it, what they are called, and the CTEs."""
    query = ast.Select(
        expressions=[ast.Boolean(this=True)],
        from_=ast.From(this=first),
        joins=list(joins),
        with_=common,
    )
    pending = analyze_query(context, query, Environment())
    assert isinstance(pending, SelectBinder)
    return _with_all_columns(pending), pending.scope, pending.environment.tables


def _with_all_columns(select: SelectBinder) -> Logical:
    """The plan with every column of FROM, under its id, before the items."""
    columns = {reference.column: reference for reference in _columns(select.scope)}
    select.items[:0] = [Item(r.name, r, None) for r in columns.values()]
    return select.build()


def _columns(scope: Scope) -> Iterator[ColumnRef]:
    for listed in (*scope.relations.values(), scope.visible):
        yield from (e for _, e in listed if isinstance(e, ColumnRef))


def _replaced(scope: Scope, alias: str, rows: Sequence[Expression]) -> Scope:
    """The scope with the new values of the target's columns instead of the old ones."""
    news: dict[ColumnId, Expression] = {}
    for (_, old), new in zip(scope.relations[alias], rows, strict=True):
        if isinstance(old, ColumnRef):
            news[old.column] = new

    def replaced(listed: list[tuple[str, Expression]]) -> list[tuple[str, Expression]]:
        return [
            (name, news.get(e.column, e) if isinstance(e, ColumnRef) else e) for name, e in listed
        ]

    relations = {name: replaced(columns) for name, columns in scope.relations.items()}
    return Scope(replaced(scope.visible), relations)


# --- SET ---------------------------------------------------------------------------------------


def assignments_of(
    context: Context, schema: MapSchema, alias: str, nodes: Sequence[ast.Node]
) -> list[Assignment]:
    """The assignments of SET. ``alias`` stands for the map, where a value needs the old one of a
    column."""
    found: list[Assignment] = []
    for target, value in _pairs(context, nodes):
        column, path = element_path(target)
        position = _target(context, schema, column)
        if path:
            _assign_part(context, found, (position, alias), target, value)
            continue
        if any(position == other.position for other in found):
            name = schema.columns[position].name
            raise context.error(
                SqlSyntaxError, f'multiple assignments to same column "{name}"', target
            )
        found.append(Assignment(position, target, None if _is_default(value) else value))
    return found


def _assign_part(
    context: Context,
    found: list[Assignment],
    where: tuple[int, str],
    target: ast.Node,
    value: ast.Node,
) -> None:
    """``column[...] = value``; assignments to parts of one column follow each other. ``where``: the
    column's schema position, and the name of the map."""
    position, alias = where
    column, path = element_path(target)
    if _is_default(value):
        raise context.error(SqlSyntaxError, "cannot set an array element to DEFAULT", target)
    earlier = next((place for place, a in enumerate(found) if a.position == position), None)
    if earlier is None:
        old = column.with_args(table=ast.name(alias))
        found.append(Assignment(position, target, with_element(old, path, value)))
        return
    before = found[earlier]
    if before.value is None or not element_path(before.place)[1]:
        raise context.error(
            SqlSyntaxError, f'multiple assignments to same column "{column.name}"', target
        )
    found[earlier] = Assignment(position, before.place, with_element(before.value, path, value))


def _pairs(context: Context, nodes: Sequence[ast.Node]) -> Iterator[tuple[ast.Node, ast.Node]]:
    for node in nodes:
        if not isinstance(node, ast.EQ):
            raise context.error(SqlSyntaxError, "SET needs column = value", node)
        target, value = _bare(node.this), _bare(node.expression)
        if not isinstance(target, ast.Tuple):
            of_one = isinstance(node.this, ast.Paren) and row_parts(value) is not None
            yield target, tags_of(value, 1)[0] if of_one else value
            continue
        if isinstance(value, ast.Query | ast.Subquery):
            yield from zip(
                target.expressions, columns_of_query(value, len(target.expressions)), strict=True
            )
            continue
        values = row_parts(value) or [value]
        if any(is_star(part) for part in values) and row_parts(value) is not None:
            # How many columns a star stands for is known when FROM is bound.
            yield from zip(target.expressions, tags_of(value, len(target.expressions)), strict=True)
            continue
        if len(values) != len(target.expressions):
            raise context.error(
                SqlSyntaxError,
                "number of columns does not match number of values",
                values[-1] if len(values) > len(target.expressions) else target.expressions[-1],
            )
        yield from zip(target.expressions, values, strict=True)


def _bare(node: ast.Node) -> ast.Node:
    """Without the parentheses around it; a subquery keeps one pair."""
    while isinstance(node, ast.Paren) or (
        isinstance(node, ast.Subquery) and isinstance(node.this, ast.Subquery)
    ):
        node = node.this
    return node


def _is_default(node: ast.Node) -> bool:
    """The keyword DEFAULT."""
    return isinstance(node, ast.Var) and str(node.this).upper() == "DEFAULT"


def _target(context: Context, schema: MapSchema, node: ast.Node) -> int:
    if not isinstance(node, ast.Column) or isinstance(node.this, ast.Star):
        raise context.error(SqlSyntaxError, "SET needs the name of a column", node)
    qualifier = node.args.get("table")
    if qualifier is not None:
        raise context.error(
            UndefinedColumn,
            f'column "{identifier(qualifier)}" of map "{schema.name}" does not exist',
            node,
            hint="Columns to be set are written without the name of their map.",
        )
    name = identifier(node.this)
    position = schema.position.get(name)
    if position is None:
        raise context.error(
            UndefinedColumn,
            f'column "{name}" of map "{schema.name}" does not exist',
            node,
            hint=did_you_mean(name, schema.position),
        )
    return position
