"""Which members keep which partition: a primary and backups, placed with little movement. Pure.

A row of the table lists the members that keep a copy of one partition, the primary first; a map
uses as many of the backups as it has been given, so one table serves all maps. Two functions change
it: ``without`` when members are lost (backups move up, and no row is copied anywhere), ``balanced``
for the table to reach in the background, by copying as little as it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from remuda.datatypes.view import Replicas
from remuda.limits import PARTITIONS


def first_table(members: Sequence[int], copies: int, groups: Mapping[int, str] = {}) -> Replicas:
    """Of a new cluster. ``copies`` counts the primary; with fewer members there are fewer."""
    return balanced(((),) * PARTITIONS, members, copies, groups)


def without(table: Replicas, lost: Collection[int]) -> Replicas:
    """The copies that are left; the first of them is the primary from now on."""
    return tuple(tuple(member for member in row if member not in lost) for row in table)


def balanced(
    table: Replicas, members: Sequence[int], copies: int, groups: Mapping[int, str] = {}
) -> Replicas:
    """A table in which every partition has ``copies`` copies on different members, as far as there
    are so many, and members differ by at most one in their primaries and hardly in their backups.

    ``groups`` names what members share when it fails, such as a rack or a machine: copies of a
    partition are put into different groups where that is possible; a member without a name is a
    group of its own. The result depends on the arguments alone: every member finds the same one.
    """
    members = sorted(members)
    rows = [[member for member in row if member in members] for row in table]
    levels = min(copies, len(members))
    for level in range(levels):
        _fill(rows, level, members, groups)
    return tuple(tuple(row[:levels]) for row in rows)


def moves(before: Replicas, after: Replicas) -> list[tuple[int, int]]:
    """What must be copied: (partition, the member that gets it)."""
    return [
        (partition, member)
        for partition, (old, new) in enumerate(zip(before, after, strict=True))
        for member in new
        if member not in old
    ]


def _fill(
    rows: list[list[int]], level: int, members: Sequence[int], groups: Mapping[int, str]
) -> None:
    """Give every row its member at ``level`` (0: the primary), none more than its share."""
    share, extra = divmod(len(rows), len(members))
    counts: Counter[int] = Counter()
    open_rows = []
    over = extra  # so many members may have one more than the others
    for row in rows:
        member = row[level] if level < len(row) else None
        if member is None or not _apart(row, level, member, groups, members):
            open_rows.append(row)
        elif counts[member] < share or (counts[member] == share and over):
            over -= counts[member] == share
            counts[member] += 1
        else:
            open_rows.append(row)
    for row in open_rows:
        member = _choose(row, level, members, groups, counts)
        counts[member] += 1
        if member in row[level:]:
            row.remove(member)  # it keeps the partition already, further back
        row.insert(level, member)


def _choose(
    row: list[int],
    level: int,
    members: Sequence[int],
    groups: Mapping[int, str],
    counts: Counter[int],
) -> int:
    """The member with the fewest; among those one that has the rows already."""
    free = [member for member in members if member not in row[:level]]
    apart = [member for member in free if _apart(row, level, member, groups, members)]
    least = min(counts[member] for member in apart or free)
    some = [member for member in apart or free if counts[member] == least]
    return next((member for member in row[level:] if member in some), some[0])


def _apart(
    row: list[int], level: int, member: int, groups: Mapping[int, str], members: Sequence[int]
) -> bool:
    """Whether ``member`` shares no group with the copies before it, or every free member does."""
    used = {groups[other] for other in row[:level] if other in groups}
    if groups.get(member) not in used or not used:
        return True
    return all(groups.get(other) in used for other in members if other not in row[:level])
