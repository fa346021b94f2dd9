"""Implementation rules of aggregates: in one phase where groups are whole, else in two."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from remuda.plan.function_aggregates import splits
from remuda.plan.physical import (
    AggregatePhase,
    Distribution,
    ExchangeKind,
    Placement,
)
from remuda.planner.candidate import AggregateStep, Candidate
from remuda.planner.cardinality import estimate_groups
from remuda.planner.memo import AggregateOperator, Group, Keys, Operator
from remuda.planner.properties import (
    ANYWHERE,
    AT_INITIATOR,
    SPREAD,
    Required,
    mapped_keys,
    partitioned,
)
from remuda.planner.search import Search


def implement_aggregate(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    assert isinstance(operator, AggregateOperator)
    yield from _in_one_phase(search, group, operator, inputs[0], required)
    if _splits(operator) and not search.alone:
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
    splits = _splits(operator)
    if not search.alone:
        if operator.group and required.placement in (Placement.ANY, Placement.PARTITIONED):
            requirements += [partitioned(keys) for keys in _placements(operator, below, required)]
        if not splits:
            requirements.append(AT_INITIATOR)
            if operator.group:
                requirements.append(partitioned(required.keys or operator.group))
    for option in dict.fromkeys(requirements):
        source = search.best(below, option)
        if source is None:
            continue
        spread = source.distribution.placement is Placement.PARTITIONED
        if spread and (not option.keys or operator.always):
            # What is always there, every member would put out.
            continue
        groups, likely = _groups(operator, below)
        rows = search.model.on_one(_rows(below), source.distribution)
        each = search.model.on_one(likely, source.distribution)
        distribution = source.distribution
        if spread:
            names = {below.same.get(column, column): column for column in operator.group}
            names.update((column, column) for column in operator.group)
            kept = [n for k in source.distribution.keys if (n := mapped_keys(k, names))]
            distribution = Distribution(Placement.PARTITIONED, tuple(kept))
        yield Candidate(
            group,
            AggregateStep(operator, AggregatePhase.SINGLE),
            (source,),
            distribution,
            source.cost + search.model.aggregate(rows, each),
            groups,
        )


def _placements(operator: AggregateOperator, below: Group, required: Required) -> list[Keys]:
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
    members = search.model.members
    groups, likely = _groups(operator, below)
    each = min(likely, _rows(below) / members)
    partial = Candidate(
        group,
        AggregateStep(operator, AggregatePhase.PARTIAL),
        (source,),
        Distribution(Placement.PARTITIONED, source.distribution.keys),
        source.cost + search.model.aggregate(_rows(below) / members, each),
        min(groups * members, source.rows),
    )
    states = each * members
    width = below.estimate.width(operator.group) + 8.0 * len(operator.calls)
    kinds: list[tuple[ExchangeKind, Keys]] = []
    if required.placement in (Placement.ANY, Placement.SINGLETON):
        kinds.append((ExchangeKind.GATHER, ()))
    if operator.group and required.placement in (Placement.ANY, Placement.PARTITIONED):
        keys = required.keys or operator.group
        if set(keys) <= set(operator.group):
            kinds.append((ExchangeKind.UNICAST, keys))
    for kind, keys in kinds:
        moved = search.exchange(partial, kind, states, width, keys)
        rows = search.model.on_one(states, moved.distribution)
        final = search.model.on_one(likely, moved.distribution)
        yield Candidate(
            group,
            AggregateStep(operator, AggregatePhase.FINAL),
            (moved,),
            moved.distribution,
            moved.cost + search.model.aggregate(rows, final),
            groups,
        )


def _splits(operator: AggregateOperator) -> bool:
    """Distinct values, say, cannot be counted member by member."""
    return all(splits(call) for call in operator.calls)


def _groups(operator: AggregateOperator, below: Group) -> tuple[float, float]:
    if not operator.group:
        return 1.0, 1.0
    return estimate_groups(below.estimate, operator.group)


def _rows(below: Group) -> float:
    """Input rows to reckon with: like groups, between the estimate and the bound."""
    known = below.estimate
    return max(known.rows, sqrt(known.rows * known.bound))
