"""RETURNING: expressions over the rows that a statement has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from remuda.errors import GroupingError, WindowingError
from remuda.plan.expression import ColumnRef, Expression
from remuda.plan.logical import Logical
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.queries.queries import bind_query
from remuda.sql.queries.relations import Environment
from remuda.sql.queries.select import SelectBinder
from remuda.sql.queries.select_items import Item
from remuda.sql.scope.context import Context
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast


@dataclass(slots=True)
class Outcome:
    """``plan`` computes a statement's rows, ``scope`` names them, ``stored`` is what goes to the
    map. ``names`` are those of the columns of RETURNING."""

    plan: Logical
    scope: Scope
    stored: Sequence[Expression]
    names: tuple[str, ...] = ()


def returned(context: Context, outcome: Outcome, clause: ast.Node | None) -> Outcome:
    """The same with a plan that puts out ``stored``, then the columns of RETURNING."""
    items = [] if clause is None else clause.expressions
    node = ast.Select(from_=ast.From(), expressions=items)  # with FROM, so that "*" is allowed
    select = SelectBinder(context, node, Environment(), lambda n, e: bind_query(context, n, e))
    select.plan, select.scope = outcome.plan, replace(outcome.scope, owner="RETURNING")
    select.binder = ExpressionBinder(context, select.scope, select)
    if clause is not None:
        context.only(clause, "expressions")
        select.bind_rest()
        refuse_groups(context, select, clause.expressions, "RETURNING")
    names = tuple(item.name for item in select.items)
    select.items[:0] = [
        Item(e.name if isinstance(e, ColumnRef) else "", e, None) for e in outcome.stored
    ]
    return Outcome(select.build(), outcome.scope, outcome.stored, names)


def refuse_groups(
    context: Context, select: SelectBinder, nodes: Sequence[ast.Node], clause: str
) -> None:
    """Neither aggregates nor window functions have a meaning for a single changed row."""
    for item in select.items:
        if select.grouping.uses_aggregate(item.expression):
            raise context.error(
                GroupingError, f"aggregate functions are not allowed in {clause}", item.node
            )
    for node in nodes:
        for part in node.walk(prune=lambda inner: isinstance(inner, ast.Query)):
            if isinstance(part, ast.Window):
                raise context.error(
                    WindowingError, f"window functions are not allowed in {clause}", part
                )
