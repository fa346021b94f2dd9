"""Implementation rules of joins: where both sides must be so that every member joins by itself.

(The table of join collocation strategies; see ``docs`` and the Hazelcast prototype.) A side that
is REPLICATED joins with anything on the other side, except that an outer, semi or anti join must
see each left row once, so only its right side may be replicated against a partitioned one. Two
PARTITIONED sides must be partitioned by the same join keys. A replicated left side becomes
partitioned by a local filter, a requirement that scans of replicated maps can deliver.
"""

from __future__ import annotations

from collections.abc import Iterator

from remuda.plan.logical import JoinKind
from remuda.plan.physical import Distribution, Placement
from remuda.planner.candidate import Candidate, JoinStep
from remuda.planner.memo import Group, JoinOperator, Keys, Operator
from remuda.planner.properties import (
    ANYWHERE,
    AT_INITIATOR,
    EVERYWHERE,
    SPREAD,
    Required,
    mapped_keys,
    partitioned,
)
from remuda.planner.search import Search

Sides = tuple[Required, Required]
ALTERNATIVES_MAX = 6
"""Equivalent key tuples remembered in a distribution."""


def implement_hash_join(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    assert isinstance(operator, JoinOperator)
    if not operator.equalities:
        return
    step = JoinStep(operator.kind, operator.equalities, operator.residual)
    options = _by_replica(search, group, operator, inputs, required)
    if not search.alone:
        options += _by_keys(group, operator, inputs, required)
    for left, right in _plans(search, inputs, options):
        probe = search.model.on_one(left.rows, left.distribution)
        build = search.model.on_one(right.rows, right.distribution)
        distribution = _distribution(group, operator, left, right)
        matches = search.model.on_one(group.estimate.rows, distribution)
        cost = left.cost + right.cost + search.model.hash_join(probe, build, matches)
        yield Candidate(group, step, (left, right), distribution, cost, group.estimate.rows)


def implement_loop_join(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    assert isinstance(operator, JoinOperator)
    if operator.equalities:
        return
    step = JoinStep(operator.kind, (), operator.residual)
    for left, right in _plans(
        search, inputs, _by_replica(search, group, operator, inputs, required)
    ):
        outer = search.model.on_one(left.rows, left.distribution)
        inner = search.model.on_one(right.rows, right.distribution)
        distribution = _distribution(group, operator, left, right)
        cost = left.cost + right.cost + search.model.loop_join(outer, inner)
        yield Candidate(group, step, (left, right), distribution, cost, group.estimate.rows)


def _plans(
    search: Search, inputs: tuple[Group, ...], options: list[Sides]
) -> Iterator[tuple[Candidate, Candidate]]:
    for left_required, right_required in dict.fromkeys(options):
        left = search.best(inputs[0], left_required)
        if left is None or left.cost >= search.bound:
            continue
        right = search.best(inputs[1], right_required)
        if right is not None and left.cost + right.cost < search.bound:
            yield left, right


def _by_replica(
    search: Search,
    group: Group,
    operator: JoinOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> list[Sides]:
    """Strategies that need no keys: one side everywhere, or both at the initiator.

    Both everywhere or both at the initiator is tried only where that costs no more exchanges than
    moving the result of the join.
    """
    if search.alone:
        return [(ANYWHERE, ANYWHERE)]
    full = operator.kind is JoinKind.FULL
    central = [(AT_INITIATOR, AT_INITIATOR)] if group.central or group.replicated or full else []
    match required.placement:
        case Placement.SINGLETON:
            return central
        case Placement.REPLICATED:
            return [(EVERYWHERE, EVERYWHERE)] if group.replicated else []
        case Placement.ANY if full:
            return central
        case Placement.ANY:
            ways = [(ANYWHERE, EVERYWHERE)]
            if operator.kind is JoinKind.INNER:
                ways.append((EVERYWHERE, ANYWHERE))
            return central + ways
        case Placement.PARTITIONED:
            return [] if full else _partitioned_by_replica(group, operator, inputs, required)


def _partitioned_by_replica(
    group: Group, operator: JoinOperator, inputs: tuple[Group, ...], required: Required
) -> list[Sides]:
    both_ways = operator.kind is JoinKind.INNER
    if not required.keys:
        ways = [(SPREAD, EVERYWHERE)]
        return [*ways, (EVERYWHERE, SPREAD)] if both_ways else ways
    if required.keys not in group.natural:
        # Some side would have to be moved: better the result (or both sides, by join keys).
        return []
    ways = []
    left = _keys_in(required.keys, group, inputs[0])
    if left is not None:
        ways.append((partitioned(left), EVERYWHERE))
    right = _keys_in(required.keys, group, inputs[1]) if both_ways else None
    if right is not None:
        ways.append((EVERYWHERE, partitioned(right)))
    return ways


def _keys_in(keys: Keys, group: Group, side: Group) -> Keys | None:
    """``keys`` of a join as columns of one of its sides."""
    names = {group.same.get(column, column): column for column in side.columns}
    names.update((column, column) for column in side.columns)
    return mapped_keys(keys, names)


def _by_keys(
    group: Group, operator: JoinOperator, inputs: tuple[Group, ...], required: Required
) -> list[Sides]:
    """Both sides partitioned by the same join keys, whichever side is so already."""
    if required.placement not in (Placement.ANY, Placement.PARTITIONED):
        return []
    left, right = inputs
    to_right = {left.same.get(a, a): b for a, b in operator.equalities}
    to_left = {right.same.get(b, b): a for a, b in operator.equalities}
    choices: list[tuple[Keys, Keys]] = []
    if required.keys:
        keys = _keys_in(required.keys, group, left)
        other = None if keys is None else mapped_keys(left.canonical(keys), to_right)
        if keys is not None and other is not None:
            choices.append((keys, other))
    else:
        ours = [(keys, mapped_keys(keys, to_right)) for keys in left.natural]
        choices += [(keys, other) for keys, other in ours if other is not None]
        theirs = [(mapped_keys(keys, to_left), keys) for keys in right.natural]
        choices += [(other, keys) for other, keys in theirs if other is not None]
        if not choices:
            choices.append((tuple(to_right), tuple(to_right.values())))
    return [(partitioned(a), partitioned(b)) for a, b in choices]


def _distribution(
    group: Group, operator: JoinOperator, left: Candidate, right: Candidate
) -> Distribution:
    """Where the rows of the join are; both sides' keys place them if the join is INNER."""
    sides = [left.distribution, right.distribution]
    spread = [side for side in sides if side.placement is Placement.PARTITIONED]
    if not spread:
        placements = {side.placement for side in sides}
        singleton = Placement.SINGLETON in placements
        return Distribution(Placement.SINGLETON if singleton else Placement.REPLICATED)
    if operator.kind is JoinKind.FULL:
        return Distribution(Placement.PARTITIONED)
    if operator.kind is not JoinKind.INNER:
        return left.distribution
    keys = [k for side in spread for k in side.keys]
    found = dict.fromkeys([group.canonical(k) for k in keys] + keys)
    return Distribution(Placement.PARTITIONED, tuple(found)[:ALTERNATIVES_MAX])
