"""Which members keep which partition: a primary and backups, placed with little movement. Pure.

A row of the table lists the members that keep a copy of one partition, the primary first. Two
functions change it: ``without`` when members are lost (backups move up, and no row is copied
anywhere), ``balanced`` for the table to reach in the background, by copying as little as it can.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from remuda.cluster.balancing import Rows
from remuda.cluster.spread import NO_GROUPS, Apart, Groups
from remuda.datatypes.view import Replicas
from remuda.limits import PARTITIONS


def first_table(members: Sequence[int], copies: int, groups: Groups = NO_GROUPS) -> Replicas:
    """Of a new cluster. ``copies`` counts the primary; with fewer members there are fewer."""
    return balanced(((),) * PARTITIONS, members, copies, groups)


def without(table: Replicas, lost: Collection[int]) -> Replicas:
    """The copies that are left; the first of them is the primary from now on."""
    return tuple(tuple(member for member in row if member not in lost) for row in table)


def balanced(
    table: Replicas, members: Sequence[int], copies: int, groups: Groups = NO_GROUPS
) -> Replicas:
    """A table in which every partition has ``copies`` copies on different members, or as many as
    there are members.

    Members differ by at most one in their primaries, by at most one in all their copies together,
    and hardly in the partitions that they inherit first (as the first backup). Copies of a
    partition are put into different ``groups`` where that is possible: different widest ones before
    all else, then different next ones. That comes before an even number of copies, which then is as
    even as the primaries and nested groups allow.

    The result depends on the arguments alone, so every member finds the same one, and ``balanced``
    leaves it as it is. It keeps copies where they are as far as it can: a copy that is there may
    change its role, which costs nothing, before another one is made.
    """
    if not members:
        return ((),) * len(table)
    members = sorted(members)
    rows = Rows(table, Apart(members, groups), min(copies, len(members)))
    rows.even_primaries()
    rows.fill()
    rows.even_copies()
    rows.even_first_backups()
    while rows.even_copies():  # another order of backups may have opened a way
        rows.even_first_backups()
    return rows.table()


def moves(before: Replicas, after: Replicas) -> list[tuple[int, int]]:
    """The copies to make: (partition, the member that gets it)."""
    return [
        (partition, member)
        for partition, (old, new) in enumerate(zip(before, after, strict=True))
        for member in new
        if member not in old
    ]
