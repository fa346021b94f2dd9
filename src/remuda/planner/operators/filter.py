"""Filters that no scan takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.plan.expression import ColumnId, Expression, columns_of, conjuncts
from remuda.plan.physical import FilterRows, Physical
from remuda.planner.estimates.cardinality import estimate_filter
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import FILTER
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Build, Columns, narrowed, traits_of
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search


@dataclass(frozen=True, slots=True)
class FilterOperator(PlainOperator):
    condition: Expression


def filter_group(
    groups: OperatorGroups, below: Group, condition: Expression, needed: frozenset[ColumnId]
) -> Group:
    columns = tuple(column for column in below.output if column.id in needed)
    estimate = estimate_filter(below.estimate, condition)
    group = groups.group(FilterOperator(condition), (below.id,), columns, estimate, below.natural)
    group.same = below.same
    return group


def _candidates(
    search: Search,
    group: Group,
    operator: FilterOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    source = search.best(inputs[0], required)
    if source is not None:
        rows = search.model.on_one(source.rows, source.distribution)
        cost = source.cost + FILTER * rows * len(conjuncts(operator.condition))
        yield Candidate(
            group,
            operator,
            (source,),
            source.distribution,
            cost,
            group.estimate.rows,
            source.collation,
        )


def _node(candidate: Candidate, step: FilterOperator, needed: Columns, build: Build) -> Physical:
    child = build(candidate.inputs[0], needed | columns_of(step.condition))
    return narrowed(FilterRows(child.output, traits_of(candidate), child, step.condition), needed)


register(FilterOperator, PlainRule("filter", _candidates, _node))
