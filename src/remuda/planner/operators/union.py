"""UNION ALL, where the rows of its inputs are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.plan.logical import OutputColumn
from remuda.plan.physical import REPLICATED, SINGLETON, Distribution, Physical, Placement, UnionRows
from remuda.planner.estimates.cardinality import Estimate
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Build, Columns, ordered, traits_of
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import ANYWHERE, AT_INITIATOR, EVERYWHERE, SPREAD, Required
from remuda.planner.memo.search import Search


@dataclass(frozen=True, slots=True)
class UnionOperator(PlainOperator):
    """``columns[i]`` are the columns of input i, in the order of the group's output."""

    columns: tuple[tuple[OutputColumn, ...], ...]


def union_group(
    groups: OperatorGroups,
    below: list[Group],
    orders: tuple[tuple[OutputColumn, ...], ...],
    output: tuple[OutputColumn, ...],
) -> Group:
    rows = sum(group.estimate.rows for group in below)
    bound = sum(group.estimate.bound for group in below)
    first = below[0].estimate.columns
    columns = {
        column.id: first[source.id]
        for column, source in zip(output, orders[0], strict=True)
        if source.id in first
    }
    return groups.group(
        UnionOperator(orders),
        tuple(group.id for group in below),
        output,
        Estimate(rows, bound, columns),
    )


def _candidates(
    search: Search,
    group: Group,
    operator: UnionOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    if search.alone:
        options = [ANYWHERE]
    else:
        options = {
            Placement.ANY: [SPREAD, AT_INITIATOR, EVERYWHERE],
            Placement.SINGLETON: [AT_INITIATOR],
            Placement.REPLICATED: [EVERYWHERE],
            Placement.PARTITIONED: [] if required.keys else [SPREAD],
        }[required.placement]
    for option in options:
        sources = [search.best(child, option) for child in inputs]
        done = tuple(source for source in sources if source is not None)
        if len(done) < len(sources):
            continue
        distribution = {
            Placement.PARTITIONED: Distribution(Placement.PARTITIONED),
            Placement.REPLICATED: REPLICATED,
        }.get(option.placement, SINGLETON)
        cost = sum(source.cost for source in done)
        yield Candidate(group, operator, done, distribution, cost, group.estimate.rows)


def _node(candidate: Candidate, step: UnionOperator, needed: Columns, build: Build) -> Physical:
    every = candidate.group.output
    kept = [i for i, column in enumerate(every) if column.id in needed]
    inputs = []
    for source, columns in zip(candidate.inputs, step.columns, strict=True):
        wanted = tuple(columns[i] for i in kept)
        child = build(source, frozenset(column.id for column in wanted))
        inputs.append(ordered(child, wanted))
    output = tuple(every[i] for i in kept)
    return UnionRows(output, traits_of(candidate), tuple(inputs))


register(UnionOperator, PlainRule("union", _candidates, _node))
