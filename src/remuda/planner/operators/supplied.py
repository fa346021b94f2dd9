"""Rows that the initiator supplies, such as those of system relations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.plan.logical import OutputColumn, Supplied
from remuda.plan.physical import SINGLETON, Physical, SuppliedScan
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
class SuppliedOperator(PlainOperator):
    output: tuple[OutputColumn, ...]
    relation: str
    alias: str
    positions: tuple[int, ...]


def supplied_group(groups: OperatorGroups, node: Supplied) -> Group:
    """Rows of the initiator: nothing is known of them but a guess at their number."""
    columns = {c.id: ColumnEstimate(max(node.rows / 4, 1.0)) for c in node.output}
    operator = SuppliedOperator(node.output, node.relation, node.alias, node.positions)
    group = groups.group(operator, (), node.output, Estimate(node.rows, node.rows, columns))
    group.central = True
    return group


def _candidates(
    _search: Search,
    group: Group,
    operator: SuppliedOperator,
    _: tuple[Group, ...],
    _required: Required,
) -> Iterator[Candidate]:
    """Only the initiator has these rows."""
    rows = group.estimate.rows
    yield Candidate(group, operator, (), SINGLETON, rows, rows)


def _node(candidate: Candidate, step: SuppliedOperator, needed: Columns, _build: Build) -> Physical:
    pairs = zip(step.output, step.positions, strict=True)
    kept = [(column, position) for column, position in pairs if column.id in needed]
    return SuppliedScan(
        tuple(column for column, _ in kept),
        traits_of(candidate),
        step.relation,
        step.alias,
        tuple(position for _, position in kept),
    )


register(SuppliedOperator, PlainRule("supplied rows", _candidates, _node))
