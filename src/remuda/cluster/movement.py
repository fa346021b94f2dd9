"""The next step of a primary that brings copies of its partitions to where they should be. Pure.

The table to reach is ``replicas.balanced``; every member computes the same one. Each primary works
on its own partitions, one receiver at a time. It copies the missing partitions to the receiver,
then asks for a view that names it; where nothing is to be copied, it asks at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from remuda.cluster.next_view import Placement
from remuda.cluster.places import groups_of
from remuda.cluster.replicas import balanced
from remuda.datatypes.view import Replicas, View


@dataclass(frozen=True, slots=True)
class Move:
    """Rows of ``placements`` are copied to ``receiver``, then the view is asked for the placements.
    ``receiver`` None: nothing is to be copied, copies change their roles or go."""

    receiver: int | None
    placements: tuple[Placement, ...]

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(place.partition for place in self.placements)


NOBODY: Final[frozenset[int]] = frozenset()


@lru_cache(maxsize=16)
def table_to_reach(
    view: View, members: tuple[int, ...], copies: int, awaited: frozenset[int] = NOBODY
) -> Replicas:
    """Which of ``members`` are to keep what. One that has returned is to keep what it kept. As long
    as others are ``awaited``, their copies are not made elsewhere, and nothing is balanced: only
    what lacks further copies gets them."""
    groups = groups_of(view.by_number[number] for number in members)
    present = frozenset(members)
    target = balanced(_with_returned(view, present), members, copies, groups)
    if not awaited:
        return target
    owed = Counter(
        p for each in view.away if each.member.number in awaited for p in each.partitions
    )
    most = min(copies, len(members) + len(awaited))
    return tuple(
        _only_repaired(row, wanted, most - owed[partition])
        if row and present >= set(row)
        else wanted
        for partition, (row, wanted) in enumerate(zip(view.replicas, target, strict=True))
    )


def _with_returned(view: View, present: frozenset[int]) -> Replicas:
    """The table as if members that have returned had their copies already."""
    rows = list(view.replicas)
    for each in view.away:
        number = each.member.number
        for partition in each.partitions if number in present else ():
            if rows[partition] and number not in rows[partition]:
                rows[partition] = (*rows[partition], number)
    return tuple(rows)


def _only_repaired(row: tuple[int, ...], wanted: tuple[int, ...], count: int) -> tuple[int, ...]:
    more = [member for member in wanted if member not in row]
    return (*row, *more)[: max(len(row), count)]


def _left_behind(
    row: tuple[int, ...],
    wanted: tuple[int, ...],
    leaving: frozenset[int],
    returning: frozenset[int],
) -> tuple[int, ...]:
    """The row that follows while members leave that are expected back. They stay as backups until
    they are gone, as long as a member that stays has a copy."""
    staying = [member for member in row if member not in leaving]
    if staying:
        return (*staying, *(member for member in row if member in returning))
    return wanted


def next_move(  # noqa: PLR0917 (a table, who asks, and what holds it back)
    view: View,
    me: int,
    copies: int,
    together: int,
    leaving: frozenset[int] = NOBODY,
    resting: frozenset[int] = NOBODY,
    returning: frozenset[int] = NOBODY,
    awaited: frozenset[int] = NOBODY,
) -> Move | None:
    """The next move of the partitions that ``me`` is the primary of, at most ``together`` at a
    time; None when all is as it should be. ``leaving`` members are to keep nothing, but those of
    them that are ``returning`` may keep backups; ``awaited`` members have left and are expected
    back; ``resting`` partitions stay where they are."""
    members = [number for number in view.by_number if number not in leaving]
    if not members:
        return None
    target = table_to_reach(view, tuple(members), copies, awaited)
    lacking: dict[int, list[Placement]] = {}
    roles: list[Placement] = []
    for partition in view.partitions_of(me):
        row, wanted = view.replicas[partition], target[partition]
        if returning:
            wanted = _left_behind(row, wanted, leaving, returning)
        if row == wanted or partition in resting:
            continue
        missing = [member for member in wanted if member not in row]
        if not missing:
            roles.append(Placement(partition, row, wanted))
            continue
        after = _after(row, wanted, missing[0], copies)
        lacking.setdefault(missing[0], []).append(Placement(partition, row, after))
    if lacking:  # safety first: whoever has too few copies, then the fewest moves
        receiver = min(lacking, key=lambda member: (_spare(lacking[member], copies), member))
        urgent = sorted(lacking[receiver], key=lambda place: (len(place.before), place.partition))
        return Move(receiver, tuple(urgent[:together]))
    if not leaving and _balancing(view.replicas, target, copies):
        return None  # each copy that is made may change who should be the primary of what
    roles = _given_up(view.replicas, target, me, roles)
    return Move(None, tuple(roles[:together])) if roles else None


def _given_up(
    table: Replicas, target: Replicas, me: int, roles: Sequence[Placement]
) -> list[Placement]:
    """Those of the changes of roles that may be made now: ``me`` gives up no more primaries than it
    has too many. In the target, roles go from member to member. One that passed its own on before
    it has got others would be short of them, and the next target would give it others back."""
    now = Counter(row[0] for row in table if row)
    then = Counter(wanted[0] for row, wanted in zip(table, target, strict=True) if row)
    if now == then:
        return list(roles)
    stay = [place for place in roles if place.after[0] == me]
    go = [place for place in roles if place.after[0] != me]
    return [*stay, *go[: max(0, now[me] - then[me])]]


def _balancing(table: Replicas, target: Replicas, copies: int) -> bool:
    """Whether a partition with enough copies is to get one on another member."""
    return any(
        len(row) >= copies and row != wanted and not set(wanted) <= set(row)
        for row, wanted in zip(table, target, strict=True)
    )


def _after(
    row: tuple[int, ...], wanted: tuple[int, ...], receiver: int, copies: int
) -> tuple[int, ...]:
    """The row when ``receiver`` has a copy: as wanted, as far as there are copies; others stay as
    backups until there are enough. The primary stays, unless it is to keep no copy: another one may
    be wanted when all copies are made."""
    there = {*row, receiver}
    first = [member for member in wanted if member in there]
    if row[0] in first:
        first.remove(row[0])
        first.insert(0, row[0])
    rest = [member for member in row if member not in first]
    return tuple([*first, *rest][:copies])


def _spare(placements: list[Placement], copies: int) -> bool:
    return all(len(place.before) >= copies for place in placements)


def still_needed(
    view: View, me: int, leaving: frozenset[int], returning: frozenset[int]
) -> tuple[int, ...]:
    """Partitions of which a member that leaves keeps a copy that others need. If it is expected
    back, they need it where no member that stays is the primary."""
    return tuple(
        partition
        for partition, row in enumerate(view.replicas)
        if me in row and (me not in returning or row[0] in leaving)
    )


def progress(view: View, copies: int, leaving: frozenset[int] = frozenset()) -> Mapping[str, int]:
    """How far the table is from the one to reach."""
    members = [number for number in view.by_number if number not in leaving]
    target = table_to_reach(view, tuple(members), copies) if members else view.replicas
    pairs = list(zip(view.replicas, target, strict=True))
    return {
        "partitions_to_place": sum(row != wanted for row, wanted in pairs),
        "copies_missing": sum(len(set(wanted) - set(row)) for row, wanted in pairs),
    }
