"""Constant rows are everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.datatypes.values import PhysicalValue
from remuda.plan.logical import OutputColumn, Values
from remuda.plan.physical import REPLICATED, SINGLETON, Physical, ValuesScan
from remuda.planner.estimates.cardinality import Estimate
from remuda.planner.estimates.distribution import ColumnEstimate
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Build, Columns, traits_of
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search


@dataclass(frozen=True, slots=True)
class ValuesOperator(PlainOperator):
    """``output`` keeps equal rows apart that stand in different places: each has its columns."""

    output: tuple[OutputColumn, ...]
    rows: tuple[tuple[PhysicalValue, ...], ...]


def values_group(groups: OperatorGroups, node: Values) -> Group:
    rows = float(len(node.rows))
    columns = {c.id: ColumnEstimate(max(rows, 1.0)) for c in node.output}
    operator = ValuesOperator(node.output, node.rows)
    group = groups.group(operator, (), node.output, Estimate(rows, rows, columns))
    group.replicated = True
    return group


def _candidates(
    search: Search,
    group: Group,
    operator: ValuesOperator,
    _: tuple[Group, ...],
    _required: Required,
) -> Iterator[Candidate]:
    """Constant rows are everywhere."""
    where = SINGLETON if search.alone else REPLICATED
    yield Candidate(group, operator, (), where, float(len(operator.rows)), group.estimate.rows)


def _node(candidate: Candidate, step: ValuesOperator, needed: Columns, _build: Build) -> Physical:
    every = candidate.group.output
    kept = [i for i, column in enumerate(every) if column.id in needed]
    output = tuple(every[i] for i in kept)
    rows = tuple(tuple(row[i] for i in kept) for row in step.rows)
    return ValuesScan(output, traits_of(candidate), rows)


register(ValuesOperator, PlainRule("values", _candidates, _node))
