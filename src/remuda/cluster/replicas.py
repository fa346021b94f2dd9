"""Which members keep which partition: a primary and backups, placed with little movement. Pure.

A row of the table lists the members that keep a copy of one partition, the primary first; a map
uses as many of the backups as it has been given, so one table serves all maps. Two functions change
it: ``without`` when members are lost (backups move up, and no row is copied anywhere), ``balanced``
for the table to reach in the background, by copying as little as it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from remuda.datatypes.view import Replicas
from remuda.limits import PARTITIONS

Groups: TypeAlias = Mapping[int, tuple[str, ...]]
"""What a member shares with others that fail together with it, the widest first: (its zone, its
rack, its host). All members of a table name equally many."""
NO_GROUPS: Final[Groups] = {}
Domains: TypeAlias = Sequence[Mapping[int, str]]
"""The same the other way round: for each kind, the group of each member."""


def first_table(members: Sequence[int], copies: int, groups: Groups = NO_GROUPS) -> Replicas:
    """Of a new cluster. ``copies`` counts the primary; with fewer members there are fewer."""
    return balanced(((),) * PARTITIONS, members, copies, groups)


def without(table: Replicas, lost: Collection[int]) -> Replicas:
    """The copies that are left; the first of them is the primary from now on."""
    return tuple(tuple(member for member in row if member not in lost) for row in table)


def balanced(
    table: Replicas, members: Sequence[int], copies: int, groups: Groups = NO_GROUPS
) -> Replicas:
    """A table in which every partition has ``copies`` copies on different members, as far as there
    are so many, and members differ by at most one in their primaries and hardly in their backups.

    Copies of a partition are put into different ``groups`` where that is possible: different
    widest ones before all else, then different next ones. That comes before an even number of
    backups. The result depends on the arguments alone: every member finds the same one.
    """
    members = sorted(members)
    apart = _Apart(members, groups)
    rows = [[member for member in row if member in members] for row in table]
    levels = min(copies, len(members))
    for level in range(levels):
        if apart.matters and level:
            _fill_apart(rows, level, apart)
        else:
            _fill(rows, level, apart)
    return tuple(tuple(row[:levels]) for row in rows)


def moves(before: Replicas, after: Replicas) -> list[tuple[int, int]]:
    """What must be copied: (partition, the member that gets it)."""
    return [
        (partition, member)
        for partition, (old, new) in enumerate(zip(before, after, strict=True))
        for member in new
        if member not in old
    ]


class _Apart:
    """Who may have the next copy of a partition: the members that are as far away from those that
    have one as any other member is."""

    def __init__(self, members: Sequence[int], groups: Groups) -> None:
        self.members = members
        self._domains = _domains(members, groups)
        self._known: dict[tuple[int, ...], list[int]] = {}

    @property
    def matters(self) -> bool:
        return bool(self._domains)

    def able(self, before: Sequence[int]) -> list[int]:
        """In the order of ``members``."""
        key = tuple(before)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._farthest(key)
        return found

    def _farthest(self, before: tuple[int, ...]) -> list[int]:
        free = [member for member in self.members if member not in before]
        for group in self._domains:  # the widest one decides first
            taken = {group[member] for member in before}
            free = [member for member in free if group[member] not in taken] or free
        return free


def _domains(members: Sequence[int], groups: Groups) -> Domains:
    """The kinds of groups that tell members apart, but not all of them: only these change
    anything."""
    if not groups:
        return ()
    by_kind = zip(*(groups[member] for member in members), strict=True)
    kinds = [dict(zip(members, names, strict=True)) for names in by_kind]
    return [kind for kind in kinds if 1 < len(set(kind.values())) < len(members)]


def _fill(rows: list[list[int]], level: int, apart: _Apart) -> None:
    """Give every row its member at ``level`` (0: the primary), none more than its share."""
    members = apart.members
    share, extra = divmod(len(rows), len(members))
    counts: Counter[int] = Counter()
    open_rows = []
    over = extra  # so many members may have one more than the others
    for row in rows:
        member = row[level] if level < len(row) else None
        if member is None:
            open_rows.append(row)
        elif counts[member] < share or (counts[member] == share and over):
            over -= counts[member] == share
            counts[member] += 1
        else:
            open_rows.append(row)
    for row in open_rows:
        _place(row, level, _choose(row, level, apart, counts), counts)


def _fill_apart(rows: list[list[int]], level: int, apart: _Apart) -> None:
    """The same where groups stand before evenness: there is no fixed share then. Whoever is far
    enough from the copies before it stays; then copies go from members that have many to those
    that may have them and have at least two fewer, until nothing gets more even by it. What has
    come out so is left as it is when it comes in again."""
    counts: Counter[int] = Counter()
    open_rows = []
    for row in rows:
        if level < len(row) and row[level] in apart.able(row[:level]):
            counts[row[level]] += 1
        else:
            open_rows.append(row)
    for row in open_rows:
        _place(row, level, _choose(row, level, apart, counts), counts)
    evened = True
    while evened:
        evened = False
        for has_it_already in (True, False):
            for row in rows:
                able = apart.able(row[:level])
                some = [m for m in able if m in row[level:]] if has_it_already else able
                least = min(some, key=counts.__getitem__, default=row[level])
                if counts[row[level]] - counts[least] >= 2:
                    counts[row[level]] -= 1
                    _place(row, level, least, counts)
                    evened = True


def _place(row: list[int], level: int, member: int, counts: Counter[int]) -> None:
    counts[member] += 1
    if member in row[level:]:
        row.remove(member)  # it keeps the partition already, further back
    row.insert(level, member)


def _choose(row: list[int], level: int, apart: _Apart, counts: Counter[int]) -> int:
    """The member with the fewest; among those one that has the rows already."""
    able = apart.able(row[:level])
    least = min(counts[member] for member in able)
    some = [member for member in able if counts[member] == least]
    return next((member for member in row[level:] if member in some), some[0])
