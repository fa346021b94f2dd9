"""The first view of a cluster: which member keeps which partition (design D2)."""

from __future__ import annotations

from remuda.cluster.places import groups_of
from remuda.cluster.replicas import first_table
from remuda.cluster.versions import require_common
from remuda.datatypes.view import MemberInfo, View


def first_view(members: tuple[MemberInfo, ...], backups: int = 0) -> View:
    """Partitions dealt round robin in the order of member numbers, each with ``backups`` further
    copies as far as there are members for them. The cluster works in the highest version that all
    of them have."""
    ordered = tuple(sorted(members, key=lambda member: member.number))
    numbers = [member.number for member in ordered]
    table = first_table(numbers, backups + 1, groups_of(ordered))
    return View(1, ordered, table, max(numbers), backups, version=require_common(ordered))
