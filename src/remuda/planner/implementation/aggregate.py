"""Implementation rules of aggregates: in one phase where groups are whole, else in two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

from remuda.plan.functions.aggregates import splits
from remuda.plan.physical import (
    AggregatePhase,
    Distribution,
    ExchangeKind,
    Placement,
)
from remuda.planner.estimates.cardinality import estimate_groups
from remuda.planner.memo.candidate import AggregateStep, Candidate, Group
from remuda.planner.memo.group_operators import AggregateOperator, Keys, Operator
from remuda.planner.memo.properties import (
    ANYWHERE,
    AT_INITIATOR,
    SPREAD,
    Required,
    mapped_keys,
    partitioned,
)
from remuda.planner.memo.search import Search


def implement_aggregate(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    assert isinstance(operator, AggregateOperator)
    yield from _in_one_phase(search, group, operator, inputs[0], required)
    if splits_by_member(operator) and not search.alone:
        yield from _in_two_phases(search, group, operator, inputs[0], required)


def _in_one_phase(
    search: Search,
    group: Group,
    operator: AggregateOperator,
    below: Group,
    required: Required,
) -> Iterator[Candidate]:
    """Over rows of which every group is on one member: all rows in one place, or partitioned by
    (some of) the group columns."""
    requirements = [ANYWHERE]
    splits = splits_by_member(operator)
    if not search.alone:
        if operator.group and required.placement in (Placement.ANY, Placement.PARTITIONED):
            requirements += [partitioned(keys) for keys in placements(operator, below, required)]
        if not splits:
            requirements.append(AT_INITIATOR)
            if operator.group:
                requirements.append(partitioned(required.keys or operator.group))
    for option in dict.fromkeys(requirements):
        source = search.best(below, option)
        found = None if source is None else single_phase(search, group, operator, source, option)
        if found is not None:
            yield found


def single_phase(
    search: Search,
    group: Group,
    operator: AggregateOperator,
    source: Candidate,
    asked: Required,
    *,
    share: float = 1.0,
) -> Candidate | None:
    """Over ``source``, of which ``asked`` was asked; None when groups are on several members.
    ``share``: as much of it as somebody reads."""
    below = source.group
    distribution = source.distribution
    groups, likely = groups_of(operator, below)
    rows = share * search.model.on_one(_rows(below), distribution)
    each = share * search.model.on_one(likely, distribution)
    if distribution.placement is Placement.PARTITIONED:
        if not asked.keys or operator.always:
            # What is always there, every member would put out.
            return None
        names = {below.same.get(column, column): column for column in operator.group}
        names.update((column, column) for column in operator.group)
        kept = [n for k in source.distribution.keys if (n := mapped_keys(k, names))]
        distribution = Distribution(Placement.PARTITIONED, tuple(kept))
    found = Candidate(
        group,
        AggregateStep(operator, AggregatePhase.SINGLE),
        (source,),
        distribution,
        source.cost,
        share * groups,
    )
    return _worked_out(search, found, rows, each)


def _worked_out(search: Search, found: Candidate, rows: float, groups: float) -> Candidate:
    """``found`` with the cost of aggregating so many rows to so many groups, on the busiest member.
    Rows that come in an order of the group columns need no hash table, and groups keep that order.
    """
    (source,) = found.inputs
    step = found.step
    assert isinstance(step, AggregateStep)
    group = step.operator.group
    order = source.collation[: len(group)]
    if step.operator.always or not order or {key.column for key in order} != set(group):
        return replace(found, cost=source.cost + search.model.aggregate(rows, groups))
    return replace(
        found,
        step=replace(step, streaming=True),
        cost=source.cost + search.model.streaming_aggregate(rows, groups),
        collation=order,
    )


def placements(operator: AggregateOperator, below: Group, required: Required) -> list[Keys]:
    """Partitionings of the input, had without moving rows, that keep groups whole."""
    columns = set(below.canonical(operator.group))
    if required.keys:
        keys = below.canonical(required.keys)
        return [keys] if keys in below.natural and set(keys) <= columns else []
    return [keys for keys in below.natural if set(keys) <= columns]


def _in_two_phases(
    search: Search,
    group: Group,
    operator: AggregateOperator,
    below: Group,
    required: Required,
) -> Iterator[Candidate]:
    """Each member makes states of its own rows; the states of a group meet on one member: the
    owner of its hash, or the initiator, which is one exchange less when groups are few."""
    source = search.best(below, SPREAD)
    if source is None:
        return
    partial = partial_phase(search, group, operator, source)
    kinds: list[tuple[ExchangeKind, Keys]] = []
    if required.placement in (Placement.ANY, Placement.SINGLETON):
        kinds.append((ExchangeKind.GATHER, ()))
        if partial.collation:
            kinds.append((ExchangeKind.MERGE, ()))
    if operator.group and required.placement in (Placement.ANY, Placement.PARTITIONED):
        keys = required.keys or operator.group
        if set(keys) <= set(operator.group):
            kinds.append((ExchangeKind.UNICAST, keys))
    for kind, keys in kinds:
        yield final_phase(search, operator, partial, below, kind=kind, keys=keys)


def partial_phase(
    search: Search,
    group: Group,
    operator: AggregateOperator,
    source: Candidate,
    share: float = 1.0,
) -> Candidate:
    """Each member's states of its own rows; ``share`` as in ``single_phase``."""
    below = source.group
    members = search.model.members
    groups, likely = groups_of(operator, below)
    rows = _rows(below) / members
    found = Candidate(
        group,
        AggregateStep(operator, AggregatePhase.PARTIAL),
        (source,),
        Distribution(Placement.PARTITIONED, source.distribution.keys),
        source.cost,
        share * min(groups * members, source.rows / share),
    )
    return _worked_out(search, found, share * rows, share * min(likely, rows))


def final_phase(
    search: Search,
    operator: AggregateOperator,
    partial: Candidate,
    below: Group,
    *,
    kind: ExchangeKind,
    keys: Keys = (),
    share: float = 1.0,
) -> Candidate:
    """The results, once an exchange has brought the states of each group together."""
    members = search.model.members
    groups, likely = groups_of(operator, below)
    states = share * min(likely, _rows(below) / members) * members
    width = below.estimate.width(operator.group) + 8.0 * len(operator.calls)
    moved = search.exchange(partial, kind, states, width, keys)
    found = Candidate(
        partial.group,
        AggregateStep(operator, AggregatePhase.FINAL),
        (moved,),
        moved.distribution,
        moved.cost,
        share * groups,
    )
    rows = search.model.on_one(states, moved.distribution)
    return _worked_out(search, found, rows, share * search.model.on_one(likely, moved.distribution))


def splits_by_member(operator: AggregateOperator) -> bool:
    """Distinct values, say, cannot be counted member by member."""
    return all(splits(call) for call in operator.calls)


def groups_of(operator: AggregateOperator, below: Group) -> tuple[float, float]:
    if not operator.group:
        return 1.0, 1.0
    return estimate_groups(below.estimate, operator.group)


def _rows(below: Group) -> float:
    """Input rows to reckon with: like groups, between the estimate and the bound."""
    known = below.estimate
    return max(known.rows, sqrt(known.rows * known.bound))
