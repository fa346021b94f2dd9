"""Grouping sets: each row once per set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.plan.logical import Expand, OutputColumn
from remuda.plan.physical import ExpandRows, Physical
from remuda.planner.algebra import expand_results
from remuda.planner.estimates.cardinality import Estimate
from remuda.planner.estimates.distribution import ColumnEstimate
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import PROJECT
from remuda.planner.memo.group_operators import Keys, PlainOperator
from remuda.planner.memo.nodes import Build, Columns, traits_of
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search


@dataclass(frozen=True, slots=True)
class ExpandOperator(PlainOperator):
    """``results`` are the copies and the number of the set."""

    sources: Keys
    sets: tuple[tuple[int, ...], ...]
    results: tuple[OutputColumn, ...]


def expand_group(groups: OperatorGroups, below: Group, node: Expand) -> Group:
    """Copies look like their sources; rows stay where they are."""
    known = below.estimate
    results = expand_results(node)
    columns = dict(known.columns)
    for column, source in zip(results, node.sources, strict=False):
        if source in known.columns:
            columns[column.id] = known.columns[source]
    columns[results[-1].id] = ColumnEstimate(1.0, width=2.0)
    many = len(node.sets)
    made = groups.group(
        ExpandOperator(node.sources, node.sets, results),
        (below.id,),
        (*below.output, *results),
        Estimate(known.rows * many, known.bound * many, columns),
        below.natural,
    )
    made.same = below.same
    return made


def _candidates(
    search: Search,
    group: Group,
    operator: ExpandOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """Rows are repeated where they are."""
    if any(key not in inputs[0].columns for key in required.keys):
        return
    source = search.best(inputs[0], required)
    if source is not None:
        rows = source.rows * len(operator.sets)
        cost = source.cost + PROJECT * search.model.on_one(rows, source.distribution)
        yield Candidate(group, operator, (source,), source.distribution, cost, rows)


def _node(candidate: Candidate, step: ExpandOperator, needed: Columns, build: Build) -> Physical:
    below = candidate.inputs[0]
    kept = needed & below.group.columns.keys()
    child = build(below, kept | set(step.sources))
    output = tuple(column for column in child.output if column.id in kept)
    return ExpandRows(
        (*output, *step.results), traits_of(candidate), child, step.sources, step.sets
    )


register(ExpandOperator, PlainRule("expand", _candidates, _node))
