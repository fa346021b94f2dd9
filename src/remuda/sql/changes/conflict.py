"""INSERT ... ON CONFLICT: the way of rows whose key, or whose values of a unique index, the
map has already."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import INTEGER
from remuda.errors import (
    InvalidColumnReference,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
)
from remuda.plan.expression import Case, ColumnRef, Expression, Literal, conjunction
from remuda.plan.logical import Filter, JoinKind, Logical, OutputColumn
from remuda.sql.changes.generated_columns import refuse_value, with_generated
from remuda.sql.changes.modify import assignments_of
from remuda.sql.definitions.constraints import default_of
from remuda.sql.expressions.conversion import Converter
from remuda.sql.expressions.expressions import Embedding, ExpressionBinder
from remuda.sql.expressions.subqueries import SubqueryPlans
from remuda.sql.queries.queries import bind_query
from remuda.sql.queries.relations import Environment, scan
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import joined, project
from remuda.sql.scope.scope import Scope, column_refs
from remuda.sql.scope.statements import Arbiter, MergeAction, Repeats
from remuda.sql.text.lexemes import end_of
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast

CLAUSE = "ON CONFLICT DO UPDATE"


@dataclass(frozen=True, slots=True)
class Resolved:
    """``plan`` puts out the rows to store, all columns in schema order; if it ``chooses``, as the
    source of a ``ChangeStatement`` that does. ``arbiters`` as there."""

    plan: Logical
    repeats: Repeats
    arbiters: tuple[Arbiter, ...] = ()
    chooses: bool = False
    by_key: bool = True
    """A row that is stored under a key that exists was meant to replace it."""


def bind_conflict(
    context: Context, schema: MapSchema, alias: str, source: Logical, node: ast.OnConflict
) -> Resolved:
    """``source`` puts out the rows that were to be inserted."""
    context.only(node, "action", "conflict_keys", "expressions", "where", "constraint")
    constraint = node.args.get("constraint")
    action = str(node.args["action"].this).upper() if node.args.get("action") else ""
    if not action:
        raise SqlSyntaxError(
            "ON CONFLICT needs DO NOTHING or DO UPDATE", position=end_of(context.text)
        )
    keys = list(node.args.get("conflict_keys") or [])
    arbiters = _arbiters(context, schema, keys, constraint)
    if action == "DO NOTHING":
        plan = source
        for arbiter in arbiters:
            target = scan(context, schema, alias)
            plan = joined(JoinKind.ANTI, plan, target, _equal(context, plan, target, arbiter))
        by_key = any(arbiter.positions == schema.key_positions for arbiter in arbiters)
        return Resolved(plan, Repeats.FIRST, arbiters, by_key=by_key)
    if not keys and constraint is None:
        raise context.error(
            SqlSyntaxError,
            f"{CLAUSE} needs the key columns",
            node.expressions[0] if node.expressions else node,
            hint=f"For example, ON CONFLICT ({', '.join(schema.key)}) DO UPDATE.",
        )
    (arbiter,) = arbiters
    target = scan(context, schema, alias)
    plan = joined(JoinKind.LEFT, source, target, _equal(context, source, target, arbiter))
    chooses = arbiter.positions != schema.key_positions
    if chooses:  # the rows that are there keep their keys
        arbiters = (Arbiter(tuple([p + 1 for p in arbiter.positions]), arbiter.nulls_distinct),)
    updated = _updated(context, schema, alias, plan, node, chooses=chooses)
    return Resolved(updated, Repeats.REFUSE, arbiters, chooses, by_key=not chooses)


def _equal(context: Context, source: Logical, target: Logical, arbiter: Arbiter) -> Expression:
    function = "=" if arbiter.nulls_distinct else "is_not_distinct_from"
    convert = Converter(context)
    found = conjunction(
        tuple(
            convert.call(
                function, [_ref(source.output[p]), _ref(target.output[p])], [None, None], None
            )
            for p in arbiter.positions
        )
    )
    assert found is not None, "an arbiter has columns"
    return found


def _arbiters(
    context: Context, schema: MapSchema, keys: list[ast.Node], constraint: ast.Node | None
) -> tuple[Arbiter, ...]:
    """The unique values that a row may not share with others: all that the map has, or those that
    the statement names. Raises UndefinedObject, InvalidColumnReference."""
    primary = Arbiter(schema.key_positions)
    uniques = {
        index.name: Arbiter(
            tuple([schema.position[name] for name in index.names]), index.nulls_distinct
        )
        for index in schema.uniques
    }
    if constraint is not None:
        name = identifier(constraint)
        named = [index.name for index in schema.uniques if index.constraint]
        if name == schema.primary_key and not schema.has_row_ids:
            return (primary,)
        if name in named:
            return (uniques[name],)
        raise context.error(
            UndefinedObject,
            f'constraint "{name}" for map "{schema.name}" does not exist',
            constraint,
            hint="ON CONFLICT ON CONSTRAINT takes the primary key or a UNIQUE constraint.",
        )
    if not keys:
        return (*(() if schema.has_row_ids else (primary,)), *uniques.values())
    names = _key_names(context, schema, keys)
    if names == set(schema.key):
        return (primary,)
    for index in schema.uniques:
        if set(index.names) == names:
            return (uniques[index.name],)
    shown = "" if schema.has_row_ids else f'The key of map "{schema.name}" is '
    raise context.error(
        InvalidColumnReference,
        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        keys[0].this if isinstance(keys[0], ast.Ordered) else keys[0],
        hint=f"{shown}({', '.join(schema.key)})." if shown else "",
    )


def _key_names(context: Context, schema: MapSchema, keys: list[ast.Node]) -> set[str]:
    names: set[str] = set()
    for key in keys:
        column = key.this if isinstance(key, ast.Ordered) else key
        if not isinstance(column, ast.Column):
            raise context.unsupported(
                "an expression as the target of ON CONFLICT",
                column,
                hint="Name columns of the key or of a UNIQUE constraint.",
            )
        name = identifier(column.this)
        if name not in schema.position:
            raise context.error(
                UndefinedColumn,
                f'column "{name}" does not exist',
                column,
                hint=did_you_mean(name, schema.position),
            )
        names.add(name)
    return names


def _updated(
    context: Context,
    schema: MapSchema,
    alias: str,
    plan: Logical,
    node: ast.OnConflict,
    *,
    chooses: bool,
) -> Logical:
    """New rows as they are, existing ones with the assignments of SET; if it ``chooses`` between
    the action that stores a row and the key of the one that it replaces."""
    width = len(schema.columns)
    excluded, target = plan.output[:width], plan.output[width:]
    scope = Scope()
    scope.add(context, alias, column_refs(target), node)
    scope.add(context, "excluded", column_refs(excluded), node)
    binder = ExpressionBinder(context, scope, _embedding(context, scope))
    is_new = binder.convert.call("is_null", [_ref(target[schema.key_positions[0]])], [None], None)
    values: dict[int, Expression] = {}
    for assignment in assignments_of(context, schema, alias, node.expressions):
        column = schema.columns[assignment.position]
        if assignment.position in schema.key_positions and not chooses:
            raise context.unsupported(
                f"changing a key column in {CLAUSE}",
                assignment.place,
                hint="Delete the row, and insert another one.",
            )
        value = assignment.value
        refuse_value(context, column, value, assignment.place)
        values[assignment.position] = (
            default_of(column)
            if value is None
            else binder.convert.assigned(
                binder.bind(value), column.type, value, f'column "{column.name}"'
            )
        )
    where = node.args.get("where")
    if where is not None:
        chosen = binder.condition(where.this, "WHERE")
        condition = binder.convert.call("or", [is_new, chosen], [None, None], None)
        plan = Filter(plan.output, plan, condition)
    rows: list[Expression] = []
    for position, column in enumerate(schema.columns):
        new: Expression = _ref(excluded[position])
        if chooses or position not in schema.key_positions:
            old = values.get(position, _ref(target[position]))
            new = Case(column.type, ((is_new, new),), old)
        rows.append(new)
    names = [column.name for column in schema.columns]
    if chooses:
        inserted = Literal(INTEGER, MergeAction.INSERT.value)
        action = Case(INTEGER, ((is_new, inserted),), Literal(INTEGER, MergeAction.UPDATE.value))
        old_keys = [_ref(target[position]) for position in schema.key_positions]
        names, rows = ["action", *names, *schema.key], [action, *rows, *old_keys]
    return with_generated(context, schema, project(context, plan, names, rows), int(chooses))


def _embedding(context: Context, scope: Scope) -> Embedding:
    environment = Environment({}, scope)
    plans = SubqueryPlans(lambda inner: bind_query(context, inner, environment))
    return Embedding(context, CLAUSE, plans.plan)


def _ref(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)
