"""Implementation rules of joins: where both sides must be so that every member joins by itself.

(The table of join collocation strategies; see ``docs`` and the Hazelcast prototype.) A side that
is REPLICATED joins with anything on the other side, except that an outer, semi or anti join must
see each left row once, so only its right side may be replicated against a partitioned one. Two
PARTITIONED sides must be partitioned by the same join keys. A replicated left side becomes
partitioned by a local filter, a requirement that scans of replicated maps can deliver.
"""

from __future__ import annotations

from collections.abc import Iterator

from remuda.plan.expression import ColumnId
from remuda.plan.logical import JoinKind
from remuda.plan.physical import Distribution, ExchangeKind, Placement
from remuda.planner.memo.candidate import Candidate, ExchangeStep, Group, JoinStep
from remuda.planner.memo.cost import EXCHANGE_START
from remuda.planner.memo.group_operators import JoinOperator, Keys, Operator
from remuda.planner.memo.properties import (
    ANYWHERE,
    AT_INITIATOR,
    EVERYWHERE,
    SPREAD,
    Required,
    mapped_keys,
    partitioned,
)
from remuda.planner.memo.search import JoinKeys, Search

Sides = tuple[Required, Required]
SMALL_SIDES_ROWS = 1_000
"""Rows of both sides together that are joined at the initiator if that is cheapest."""
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
    step = _step(operator)
    options = sides_of_join(search, group, operator, inputs, required)
    for left, right in _plans(search, inputs, options):
        probe = search.model.on_one(left.rows, left.distribution)
        build = search.model.on_one(right.rows, right.distribution)
        distribution = distribution_of_join(group, operator, left, right)
        matches = search.model.on_one(group.estimate.rows, distribution)
        cost = left.cost + right.cost + search.model.hash_join(probe, build, matches)
        cost -= _together(left, right)
        yield Candidate(group, step, (left, right), distribution, cost, group.estimate.rows)


def sides_of_join(
    search: Search,
    group: Group,
    operator: JoinOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> list[Sides]:
    """The properties that an equi-join may ask of its sides so that its rows are where they are
    required."""
    options = _by_replica(search, group, operator, inputs, required)
    if not search.alone and not operator.null_aware:
        options += _by_keys(search, group, operator, inputs, required)
    return options


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
    step = _step(operator)
    for left, right in _plans(
        search, inputs, _by_replica(search, group, operator, inputs, required)
    ):
        outer = search.model.on_one(left.rows, left.distribution)
        inner = search.model.on_one(right.rows, right.distribution)
        distribution = distribution_of_join(group, operator, left, right)
        cost = left.cost + right.cost + search.model.loop_join(outer, inner)
        yield Candidate(group, step, (left, right), distribution, cost, group.estimate.rows)


def _step(operator: JoinOperator) -> JoinStep:
    return JoinStep(
        operator.kind,
        operator.equalities,
        operator.residual,
        operator.mark,
        operator.null_aware,
    )


def _plans(
    search: Search, inputs: tuple[Group, ...], options: list[Sides]
) -> Iterator[tuple[Candidate, Candidate]]:
    for left_required, right_required in dict.fromkeys(options):
        left = search.best(inputs[0], left_required)
        if left is None or left.cost >= search.bound:
            continue
        right = search.best(inputs[1], right_required)
        if right is not None and left.cost + right.cost - _together(left, right) < search.bound:
            yield left, right


def _together(left: Candidate, right: Candidate) -> float:
    """Both sides are gathered at the same moment, so one of the two starts costs no time."""
    gathers = ExchangeKind.GATHER
    both = _moved_by(left) is gathers and _moved_by(right) is gathers
    return EXCHANGE_START if both else 0.0


def _moved_by(side: Candidate) -> ExchangeKind | None:
    return side.step.kind if isinstance(side.step, ExchangeStep) else None


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
    meets = group.central or group.replicated or full or _small(inputs)
    central = [(AT_INITIATOR, AT_INITIATOR)] if meets else []
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


def _small(inputs: tuple[Group, ...]) -> bool:
    """Whether both sides are so small that their rows hardly count, but messages do. By the rows of
    the maps: an estimate behind conditions may be far too low."""
    return sum(side.estimate.bound for side in inputs) <= SMALL_SIDES_ROWS


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
    left = keys_in(required.keys, group, inputs[0])
    if left is not None:
        ways.append((partitioned(left), EVERYWHERE))
    right = keys_in(required.keys, group, inputs[1]) if both_ways else None
    if right is not None:
        ways.append((EVERYWHERE, partitioned(right)))
    return ways


def keys_in(keys: Keys, group: Group, side: Group) -> Keys | None:
    """``keys`` of a join as columns of one of its sides."""
    return mapped_keys(keys, _names_in(group, side))


def _names_in(group: Group, side: Group) -> dict[ColumnId, ColumnId]:
    same = group.same
    names = {same.get(column, column): column for column in side.columns}
    names.update({column: column for column in side.columns})
    return names


def _by_keys(
    search: Search,
    group: Group,
    operator: JoinOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> list[Sides]:
    """Both sides partitioned by the same join keys, whichever side is so already."""
    if required.placement not in (Placement.ANY, Placement.PARTITIONED):
        return []
    known = _join_keys(search, group, operator, inputs)
    if not required.keys:
        return [(partitioned(a), partitioned(b)) for a, b in known.choices]
    keys = mapped_keys(required.keys, known.left)
    other = None if keys is None else mapped_keys(inputs[0].canonical(keys), known.to_right)
    return [] if keys is None or other is None else [(partitioned(keys), partitioned(other))]


def _join_keys(
    search: Search, group: Group, operator: JoinOperator, inputs: tuple[Group, ...]
) -> JoinKeys:
    left, right = inputs
    place = (id(operator), left.id, right.id)
    known = search.join_keys.get(place)
    if known is None:
        to_right = {left.same.get(a, a): b for a, b in operator.equalities}
        to_left = {right.same.get(b, b): a for a, b in operator.equalities}
        ours = [(keys, mapped_keys(keys, to_right)) for keys in left.natural]
        theirs = [(mapped_keys(keys, to_left), keys) for keys in right.natural]
        choices = [(a, b) for a, b in (*ours, *theirs) if a is not None and b is not None]
        if not choices:
            choices.append((tuple(to_right), tuple(to_right.values())))
        known = JoinKeys(to_right, _names_in(group, left), tuple(choices))
        search.join_keys[place] = known
    return known


def distribution_of_join(
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
