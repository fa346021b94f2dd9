"""Set-returning functions: each row as often as their calls give rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.plan.functions.set_functions import SetCall
from remuda.plan.logical import OutputColumn, Unfold
from remuda.plan.physical import Physical, UnfoldRows
from remuda.planner.algebra import unfold_results
from remuda.planner.estimates.cardinality import Estimate, default_width
from remuda.planner.estimates.distribution import ColumnEstimate
from remuda.planner.estimates.set_rows import expected_rows
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import PROJECT
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Build, Columns, narrowed, traits_of, used_by
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search


@dataclass(frozen=True, slots=True)
class UnfoldOperator(PlainOperator):
    calls: tuple[SetCall, ...]
    ordinality: bool
    outer: bool
    results: tuple[OutputColumn, ...]


def unfold_group(groups: OperatorGroups, below: Group, node: Unfold) -> Group:
    """As many rows as the longest call gives, for each row of the input."""
    known = below.estimate
    results = unfold_results(node)
    each = max(expected_rows(call) for call in node.calls)
    columns = dict(known.columns)
    for column in results:
        rows = max(known.rows * each, 1.0)
        columns[column.id] = ColumnEstimate(rows, width=default_width(column.type))
    made = groups.group(
        UnfoldOperator(node.calls, node.ordinality, node.outer, results),
        (below.id,),
        (*below.output, *results),
        Estimate(known.rows * each, known.bound * each, columns),
        below.natural,
    )
    made.same = below.same
    return made


def _candidates(
    search: Search,
    group: Group,
    operator: UnfoldOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """Rows are made where their input rows are."""
    if any(key not in inputs[0].columns for key in required.keys):
        return
    source = search.best(inputs[0], required)
    if source is not None:
        rows = max(group.estimate.rows, 1.0)
        cost = source.cost + PROJECT * search.model.on_one(rows, source.distribution)
        yield Candidate(group, operator, (source,), source.distribution, cost, rows)


def _node(candidate: Candidate, step: UnfoldOperator, needed: Columns, build: Build) -> Physical:
    below = candidate.inputs[0]
    kept = needed & below.group.columns.keys()
    used = used_by(part for call in step.calls for part in call.arguments)
    child = build(below, kept | used)
    output = tuple(column for column in child.output if column.id in kept)
    rows = UnfoldRows(
        (*output, *step.results),
        traits_of(candidate),
        child,
        step.calls,
        step.ordinality,
        step.outer,
        step.results,
    )
    return narrowed(rows, needed)


register(UnfoldOperator, PlainRule("unfold", _candidates, _node))
