"""Grouping sets from coarser rows: the input is grouped by all columns of the sets first, and only
the groups are repeated for each set and put together again.

Gray et al., "Data Cube: A Relational Aggregation Operator" (1997), computes super-aggregates from
the core of the GROUP BY where the functions are distributive. It is one more alternative of the
aggregate's group in the MEMO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from remuda.datatypes.sql import Kind
from remuda.plan.expression import Call, Expression, Literal, columns_of
from remuda.plan.functions.aggregates import aggregate_function, combining
from remuda.plan.logical import Aggregate, Expand, OutputColumn, Project
from remuda.planner.algebra import columns, expand_results, make_expand, make_project, reference
from remuda.planner.rules.rule import Rewriting


@dataclass(frozen=True, slots=True)
class CoreFirst:
    """``core`` groups the input of the sets, ``expand`` repeats its rows, ``aggregate`` groups
    these, and ``result`` gives the columns that were asked for."""

    core: Aggregate
    expand: Expand
    aggregate: Aggregate
    result: Project


def core_first(node: Aggregate, rewriting: Rewriting) -> CoreFirst | None:
    """None unless ``node`` groups by grouping sets, with functions that can be combined."""
    expand = node.input
    if not isinstance(expand, Expand) or len(expand.sets) < 2 or not _can_be_combined(node, expand):
        return None
    below = columns(expand.input)
    keys = dict.fromkeys((*expand.sources, *(key for key in node.group if key in below)))
    kept = tuple(column for column in expand.input.output if column.id in keys)
    parts = tuple(rewriting.fresh(call.function, call.type) for call in node.calls)
    group = tuple(column.id for column in kept)
    core = Aggregate((*kept, *parts), expand.input, group, node.calls)
    repeated = make_expand(expand, core)
    totals = tuple(rewriting.fresh(call.function, call.type) for call in node.calls)
    calls = tuple(
        combining(call, reference(part)) for call, part in zip(node.calls, parts, strict=True)
    )
    group_columns = node.output[: len(node.group)]
    aggregate = replace(node, output=(*group_columns, *totals), input=repeated, calls=calls)
    values = tuple(
        _value(call.function, total) for call, total in zip(node.calls, totals, strict=True)
    )
    result = make_project(aggregate, node.output[: len(node.group)])
    result = Project(node.output, aggregate, (*result.expressions, *values))
    return CoreFirst(core, repeated, aggregate, result)


def _can_be_combined(node: Aggregate, expand: Expand) -> bool:
    """REAL is left out: its sums are rounded, and would be rounded twice."""
    results = {column.id for column in expand_results(expand)}
    return all(
        aggregate_function(call.function).combine
        and not (call.distinct or call.order or call.more)
        and call.type.kind is not Kind.REAL
        and not any(columns_of(e) & results for e in call.expressions)
        for call in node.calls
    )


def _value(function: str, total: OutputColumn) -> Expression:
    """The sum of no counts is 0: a set that has a row over no input."""
    value = reference(total)
    if function != "count":
        return value
    return Call(total.type, "coalesce", (value, Literal(total.type, 0)))
