"""Aggregates over scans in the order of an index: a LIMIT above ends them early.

A hash aggregate reads everything before its first group is finished. Where rows come in the order
of the groups, the first groups are there after the first rows, so ``GROUP BY a ORDER BY a LIMIT n``
reads as much as n groups have. (Orders that an input has anyway, from a sort or a window, are used
by ``implementation.aggregate``.)
"""

from __future__ import annotations

from collections.abc import Iterator

from remuda.plan.expression import SortKey
from remuda.plan.physical import ExchangeKind, Placement
from remuda.planner.implementation.aggregate import (
    final_phase,
    groups_of,
    partial_phase,
    placements,
    single_phase,
    splits_by_member,
)
from remuda.planner.implementation.index import cut_short, index_scans_in_order, limited
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.group_operators import AggregateOperator, Operator
from remuda.planner.memo.operators import literal_rows
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search

Order = tuple[SortKey, ...]


def ordered_aggregate(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    assert isinstance(operator, AggregateOperator)
    wanted = {key.column for key in required.collation}
    if operator.always or not wanted <= set(operator.group):
        return
    for order in _orders(operator, required.collation):
        yield from _in_one_phase(search, group, operator, inputs[0], required, order=order)
        spread = required.placement in (Placement.ANY, Placement.SINGLETON) and not search.alone
        if spread and splits_by_member(operator):
            yield from _in_two_phases(search, group, operator, inputs[0], required, order=order)


def _orders(operator: AggregateOperator, collation: Order) -> list[Order]:
    """Orders of all group columns that begin with ``collation``."""
    fixed = {key.column for key in collation}
    rest = [column for column in operator.group if column not in fixed]
    if not rest:
        return [collation]
    return [
        # NULLs as an index has them: last going up, first going down.
        (*collation, *(SortKey(column, descending, descending) for column in rest))
        for descending in (False, True)
    ]


def _in_one_phase(
    search: Search,
    group: Group,
    operator: AggregateOperator,
    below: Group,
    required: Required,
    *,
    order: Order,
) -> Iterator[Candidate]:
    """Where groups are whole: of one member, a replicated map, or partitioned by group columns."""
    options = [Required(collation=order)]
    if not search.alone and required.placement in (Placement.ANY, Placement.PARTITIONED):
        options += [
            Required(Placement.PARTITIONED, keys, order)
            for keys in placements(operator, below, required)
        ]
    for option in options:
        for source in index_scans_in_order(search, below, option):
            read = _read(search, operator, source, required)
            found = single_phase(
                search, group, operator, cut_short(source, read), option, share=read
            )
            if found is not None:
                yield _fetched(found, required)


def _in_two_phases(
    search: Search,
    group: Group,
    operator: AggregateOperator,
    below: Group,
    required: Required,
    *,
    order: Order,
) -> Iterator[Candidate]:
    """Sorted states are merged. The first n groups of all are among the first n of each member."""
    asked = Required(Placement.PARTITIONED, collation=order)
    for source in index_scans_in_order(search, below, asked):
        read = _read(search, operator, source, required)
        partial = partial_phase(search, group, operator, cut_short(source, read), read)
        partial = _fetched(partial, required)
        final = final_phase(search, operator, partial, below, kind=ExchangeKind.MERGE, share=read)
        yield _fetched(final, required)


def _read(
    search: Search, operator: AggregateOperator, source: Candidate, required: Required
) -> float:
    """Which share of ``source`` is read until the groups asked for are finished."""
    top = literal_rows(required.fetch)
    if top is None:
        return 1.0
    _, groups = groups_of(operator, source.group)
    whole = bool(source.distribution.keys) and set(source.distribution.keys[0]) <= set(
        operator.group
    )
    if whole and source.distribution.placement is Placement.PARTITIONED:
        groups /= search.model.members
    return min(1.0, (top + 1.0) / max(groups, 1.0))


def _fetched(found: Candidate, required: Required) -> Candidate:
    if required.fetch is None:
        return found
    rows = literal_rows(required.fetch) or found.rows
    return limited(found, required, min(found.rows, rows))
