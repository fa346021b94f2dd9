"""Which member owns which partition (design D2)."""

from __future__ import annotations

from remuda.datatypes.view import MemberInfo, View
from remuda.limits import PARTITIONS


def first_view(members: tuple[MemberInfo, ...]) -> View:
    """The view of a new cluster: partitions dealt round robin in the order of member numbers."""
    ordered = tuple(sorted(members, key=lambda member: member.number))
    owners = tuple(ordered[p % len(ordered)].number for p in range(PARTITIONS))
    return View(number=1, members=ordered, owners=owners)
