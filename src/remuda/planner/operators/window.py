"""Window functions: partitions must be whole on their member."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from remuda.plan.expression import SortKey
from remuda.plan.logical import OutputColumn, Window
from remuda.plan.physical import SINGLETON, Distribution, Physical, Placement, WindowRows
from remuda.plan.windows import WindowCall, expressions_of
from remuda.planner.algebra import window_results
from remuda.planner.estimates.cardinality import default_width, estimate_groups
from remuda.planner.estimates.distribution import ColumnEstimate
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import PROJECT
from remuda.planner.memo.group_operators import Keys, PlainOperator
from remuda.planner.memo.nodes import Build, Columns, narrowed, traits_of, used_by
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import ANYWHERE, AT_INITIATOR, Required, partitioned
from remuda.planner.memo.search import Search

_NUMBERINGS = frozenset({"row_number", "rank", "dense_rank"})
"""Window functions that count the rows of a partition from 1."""


@dataclass(frozen=True, slots=True)
class WindowOperator(PlainOperator):
    partition: Keys
    order: tuple[SortKey, ...]
    results: tuple[OutputColumn, ...]
    calls: tuple[WindowCall, ...]


def window_group(groups: OperatorGroups, below: Group, node: Window) -> Group:
    """All rows of the input stay, where the partitions are whole."""
    known = below.estimate
    results = window_results(node)
    columns = dict(known.columns)
    partitions = estimate_groups(known, node.partition)[0] if node.partition else 1.0
    each = max(known.rows / partitions, 1.0)
    for column, call in zip(results, node.calls, strict=True):
        width = default_width(column.type)
        columns[column.id] = ColumnEstimate(max(known.rows, 1.0), width=width)
        if call.function in _NUMBERINGS:
            columns[column.id] = ColumnEstimate(each, minimum=1, maximum=round(each))
    whole = set(below.canonical(node.partition))
    natural = tuple(keys for keys in below.natural if set(keys) <= whole)
    made = groups.group(
        WindowOperator(node.partition, node.order, results, node.calls),
        (below.id,),
        (*below.output, *results),
        replace(known, columns=columns),
        natural,
    )
    made.same = below.same
    made.central |= not node.partition
    return made


def _candidates(
    search: Search,
    group: Group,
    operator: WindowOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """All rows in one place, or rows partitioned by some of the PARTITION BY columns."""
    below = inputs[0]
    for option in _requirements(search, operator, below, required):
        source = search.best(below, option)
        if source is None:
            continue
        distribution = source.distribution
        if not search.alone and not _whole(operator, below, distribution):
            continue
        if distribution.placement is Placement.REPLICATED:
            # Members number the peers of a replicated input in different orders.
            distribution = SINGLETON
        rows = search.model.on_one(max(below.estimate.rows, 1.0), distribution)
        cost = search.model.sort(rows, None) if operator.partition or operator.order else 0.0
        cost += PROJECT * rows * len(operator.calls)
        yield Candidate(
            group,
            operator,
            (source,),
            distribution,
            source.cost + cost,
            group.estimate.rows,
            # The operator puts rows out as it sorted them: an ORDER BY above may need nothing more.
            (*(SortKey(column) for column in operator.partition), *operator.order),
        )


def _whole(operator: WindowOperator, below: Group, distribution: Distribution) -> bool:
    """Whether rows of one partition are on one member."""
    if distribution.placement is not Placement.PARTITIONED:
        return True
    columns = set(below.canonical(operator.partition))
    return any(set(below.canonical(keys)) <= columns for keys in distribution.keys if keys)


def _requirements(
    search: Search, operator: WindowOperator, below: Group, required: Required
) -> list[Required]:
    if search.alone:
        return [ANYWHERE]
    options = [ANYWHERE, AT_INITIATOR]
    if operator.partition and required.placement in (Placement.ANY, Placement.PARTITIONED):
        columns = set(below.canonical(operator.partition))
        if required.keys:
            keys = below.canonical(required.keys)
            return [partitioned(keys)] if set(keys) <= columns else []
        options += [partitioned(keys) for keys in below.natural if set(keys) <= columns]
        options.append(partitioned(below.canonical(operator.partition)))
    return list(dict.fromkeys(options))


def _node(candidate: Candidate, step: WindowOperator, needed: Columns, build: Build) -> Physical:
    used = used_by(e for call in step.calls for e in expressions_of(call))
    used |= set(step.partition) | {key.column for key in step.order}
    below = candidate.inputs[0]
    child = build(below, (needed & below.group.columns.keys()) | used)
    rows = WindowRows(
        (*child.output, *step.results),
        traits_of(candidate),
        child,
        step.partition,
        step.order,
        step.calls,
    )
    return narrowed(rows, needed)


register(WindowOperator, PlainRule("window", _candidates, _node))
