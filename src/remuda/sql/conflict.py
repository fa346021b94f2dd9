"""INSERT ... ON CONFLICT: what happens to rows whose key the map has already."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    InvalidColumnReference,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
)
from remuda.plan.expression import Case, ColumnRef, Expression, conjunction
from remuda.plan.logical import Filter, JoinKind, Logical, OutputColumn
from remuda.sql.constraints import default_of
from remuda.sql.context import Context, identifier
from remuda.sql.conversion import Converter
from remuda.sql.expressions import Embedding, ExpressionBinder
from remuda.sql.modify import assignments_of
from remuda.sql.output import joined, project
from remuda.sql.places import end_of
from remuda.sql.queries import bind_query
from remuda.sql.relations import Environment, scan
from remuda.sql.scope import Scope, column_refs
from remuda.sql.statements import Repeats
from remuda.sql.subqueries import SubqueryPlans
from remuda.sql.suggest import did_you_mean

CLAUSE = "ON CONFLICT DO UPDATE"


@dataclass(frozen=True, slots=True)
class Resolved:
    """``plan`` puts out the rows to store, all columns in schema order."""

    plan: Logical
    repeats: Repeats


def bind_conflict(
    context: Context, schema: MapSchema, alias: str, source: Logical, node: exp.OnConflict
) -> Resolved:
    """``source`` puts out the rows that were to be inserted."""
    context.only(node, "action", "conflict_keys", "expressions", "where", "constraint")
    constraint = node.args.get("constraint")
    if constraint is not None and identifier(constraint) != schema.primary_key:
        raise context.error(
            UndefinedObject,
            f'constraint "{identifier(constraint)}" for map "{schema.name}" is not its primary key',
            constraint,
            hint=f"Name the key columns: ON CONFLICT ({', '.join(schema.key)}).",
        )
    action = str(node.args["action"].this).upper() if node.args.get("action") else ""
    if not action:
        raise SqlSyntaxError(
            "ON CONFLICT needs DO NOTHING or DO UPDATE", position=end_of(context.text)
        )
    keys = list(node.args.get("conflict_keys") or [])
    _check_keys(context, schema, keys)
    target = scan(context, schema, alias)
    convert = Converter(context)
    equal = conjunction(
        tuple(
            convert.call("=", [_ref(source.output[p]), _ref(target.output[p])], [None, None], None)
            for p in schema.key_positions
        )
    )
    if action == "DO NOTHING":
        return Resolved(joined(JoinKind.ANTI, source, target, equal), Repeats.FIRST)
    if not keys and constraint is None:
        raise context.error(
            SqlSyntaxError,
            f"{CLAUSE} needs the key columns",
            node.expressions[0] if node.expressions else node,
            hint=f"For example, ON CONFLICT ({', '.join(schema.key)}) DO UPDATE.",
        )
    plan = joined(JoinKind.LEFT, source, target, equal)
    return Resolved(_updated(context, schema, alias, plan, node), Repeats.REFUSE)


def _check_keys(context: Context, schema: MapSchema, keys: list[exp.Expr]) -> None:
    names: set[str] = set()
    for key in keys:
        column = key.this if isinstance(key, exp.Ordered) else key
        if not isinstance(column, exp.Column):
            raise context.unsupported("an expression as the target of ON CONFLICT", column)
        name = identifier(column.this)
        if name not in schema.position:
            raise context.error(
                UndefinedColumn,
                f'column "{name}" does not exist',
                column,
                hint=did_you_mean(name, schema.position),
            )
        names.add(name)
    if keys and names != set(schema.key):
        raise context.error(
            InvalidColumnReference,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            keys[0].this if isinstance(keys[0], exp.Ordered) else keys[0],
            hint=f'The key of map "{schema.name}" is ({", ".join(schema.key)}).',
        )


def _updated(
    context: Context, schema: MapSchema, alias: str, plan: Logical, node: exp.OnConflict
) -> Logical:
    """New rows as they are, existing ones with the assignments of SET."""
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
        if assignment.position in schema.key_positions:
            raise context.unsupported(f"changing a key column in {CLAUSE}", assignment.place)
        value = assignment.value
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
        if position not in schema.key_positions:
            old = values.get(position, _ref(target[position]))
            new = Case(column.type, ((is_new, new),), old)
        rows.append(new)
    return project(context, plan, [column.name for column in schema.columns], rows)


def _embedding(context: Context, scope: Scope) -> Embedding:
    environment = Environment({}, scope)
    plans = SubqueryPlans(lambda inner: bind_query(context, inner, environment))
    return Embedding(context, CLAUSE, plans.plan)


def _ref(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)
