"""Aggregates over rows that a subquery has sorted: they take the rows in that order.

``array_agg(x)`` without an ORDER BY of its own sees, in PostgreSQL, the order of the subquery in
FROM. Exchanges and parallel instances give no order, so the order becomes an ORDER BY of the call,
which every plan keeps. The sort below is then lost work, and a rule of the planner removes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from remuda.plan.expression import AggregateCall, ArgumentOrder, ColumnRef
from remuda.plan.functions.catalog import AGGREGATE_FUNCTIONS
from remuda.plan.logical import Filter, Logical, OutputColumn, Project, Sort, Unfold, Window


@dataclass(frozen=True, slots=True)
class _Key:
    """One key of an order, as a column of the rows."""

    column: OutputColumn
    descending: bool = False
    nulls_first: bool = False


def in_input_order(
    plan: Logical, calls: Iterable[AggregateCall]
) -> tuple[Logical, dict[AggregateCall, AggregateCall]]:
    """The rows of ``plan``, and each call with the order of these rows where it decides the result.

    The plan may have more columns than before: keys of its order that it did not put out."""
    kept = {call: call for call in calls}
    if not any(_sees_order(call) for call in kept):
        return plan, kept
    ordered, keys = _ordered(plan)
    if not keys:
        return plan, kept
    order = tuple(
        ArgumentOrder(
            ColumnRef(key.column.type, key.column.id, key.column.name),
            key.descending,
            key.nulls_first,
        )
        for key in keys
    )
    return ordered, {
        call: replace(call, order=order) if _sees_order(call) else call for call in kept
    }


def _sees_order(call: AggregateCall) -> bool:
    return AGGREGATE_FUNCTIONS[call.function].ordered and not call.order and not call.distinct


def _ordered(plan: Logical) -> tuple[Logical, tuple[_Key, ...]]:
    """``plan`` with the keys of its order among its columns; () when it promises no order."""
    match plan:
        case Sort(input=child, keys=()):
            below, keys = _ordered(child)
            return replace(plan, input=below, output=below.output), keys
        case Sort():
            by_id = {column.id: column for column in plan.output}
            return plan, tuple(
                _Key(by_id[key.column], key.descending, key.nulls_first) for key in plan.keys
            )
        case Filter(input=child):
            below, keys = _ordered(child)
            return replace(plan, input=below, output=below.output), keys
        case Unfold(input=child):
            below, keys = _ordered(child)
            made = plan.output[len(child.output) :]
            return replace(plan, input=below, output=(*below.output, *made)), keys
        case Window(input=child, partition=partition, order=order) if not isinstance(child, Window):
            if not partition and not order:
                below, keys = _ordered(child)
                made = plan.output[len(child.output) :]
                return replace(plan, input=below, output=(*below.output, *made)), keys
            # PostgreSQL sorts for a window, and the rows leave it in that order.
            by_id = {column.id: column for column in plan.output}
            groups = (_Key(by_id[column]) for column in partition)
            inside = (_Key(by_id[k.column], k.descending, k.nulls_first) for k in order)
            return plan, (*groups, *inside)
        case Project():
            return _projected(plan)
        case _:
            return plan, ()


def _projected(plan: Project) -> tuple[Logical, tuple[_Key, ...]]:
    below, keys = _ordered(plan.input)
    passed = {
        expression.column: column
        for expression, column in zip(plan.expressions, plan.output, strict=True)
        if isinstance(expression, ColumnRef)
    }
    hidden = {key.column.id: key.column for key in keys if key.column.id not in passed}
    made = Project(
        (*plan.output, *hidden.values()),
        below,
        (*plan.expressions, *(ColumnRef(c.type, c.id, c.name) for c in hidden.values())),
    )
    found = {**hidden, **passed}
    return made, tuple(replace(key, column=found[key.column.id]) for key in keys)
