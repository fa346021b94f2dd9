"""What the primary of partitions does next to bring their copies to where they should be. Pure.

The table to reach is ``replicas.balanced``, of which every member finds the same. Each primary
works on its own partitions, one receiver at a time: what a member lacks is copied to it, then the
view is asked to name it; where nothing is to be copied, the view is asked at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

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


@lru_cache(maxsize=16)
def table_to_reach(view: View, members: tuple[int, ...], copies: int) -> Replicas:
    """Which of ``members`` are to keep what."""
    groups = groups_of(view.by_number[number] for number in members)
    return balanced(view.replicas, members, copies, groups)


def next_move(  # noqa: PLR0917 (a table, who asks, and what holds it back)
    view: View,
    me: int,
    copies: int,
    together: int,
    leaving: frozenset[int] = frozenset(),
    resting: frozenset[int] = frozenset(),
) -> Move | None:
    """The next move of the partitions that ``me`` is the primary of, at most ``together`` at a
    time; None when all is as it should be. ``leaving`` members are to keep nothing; ``resting``
    partitions stay where they are."""
    members = [number for number in view.by_number if number not in leaving]
    if not members:
        return None
    target = table_to_reach(view, tuple(members), copies)
    lacking: dict[int, list[Placement]] = {}
    roles: list[Placement] = []
    for partition in view.partitions_of(me):
        row, wanted = view.replicas[partition], target[partition]
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
    return Move(None, tuple(roles[:together])) if roles else None


def _after(
    row: tuple[int, ...], wanted: tuple[int, ...], receiver: int, copies: int
) -> tuple[int, ...]:
    """The row when ``receiver`` has a copy: as wanted, as far as there are copies; others stay as
    backups until there are enough."""
    there = {*row, receiver}
    first = [member for member in wanted if member in there]
    if wanted[0] not in there and row[0] in first:
        first.remove(row[0])
        first.insert(0, row[0])
    rest = [member for member in row if member not in first]
    return tuple([*first, *rest][:copies])


def _spare(placements: list[Placement], copies: int) -> bool:
    return all(len(place.before) >= copies for place in placements)


def progress(view: View, copies: int, leaving: frozenset[int] = frozenset()) -> Mapping[str, int]:
    """How far the table is from the one to reach."""
    members = [number for number in view.by_number if number not in leaving]
    target = table_to_reach(view, tuple(members), copies) if members else view.replicas
    pairs = list(zip(view.replicas, target, strict=True))
    return {
        "partitions_to_place": sum(row != wanted for row, wanted in pairs),
        "copies_missing": sum(len(set(wanted) - set(row)) for row, wanted in pairs),
    }
