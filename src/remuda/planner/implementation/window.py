"""Implementation rule of window functions: partitions must be whole on their member."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.plan.expression import SortKey
from remuda.plan.physical import SINGLETON, Distribution, Placement
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import PROJECT
from remuda.planner.memo.group_operators import Operator, WindowOperator
from remuda.planner.memo.properties import ANYWHERE, AT_INITIATOR, Required, partitioned
from remuda.planner.memo.search import Search


def implement_window(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """All rows in one place, or rows partitioned by some of the PARTITION BY columns."""
    assert isinstance(operator, WindowOperator)
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
