"""Where members are: the labels that say so, and the members that fail together. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from remuda.cluster.spread import Groups
from remuda.datatypes.view import MemberInfo

KINDS = ("zone", "rack", "host")
"""The labels that count, the widest first. ``host`` is the host of the member's address unless a
label says otherwise."""


def groups_of(members: Iterable[MemberInfo]) -> Groups:
    """For each member its zone, its rack in that zone, its host. One without a zone or a rack is
    alone in its own."""
    return {member.number: _groups(member) for member in members}


def _groups(member: MemberInfo) -> tuple[str, ...]:
    labels = {"host": member.host, **dict(member.labels)}
    alone = f"#{member.number}"
    zone = labels.get("zone", "")
    rack = labels.get("rack", "")
    return (zone or alone, f"{zone}/{rack}" if rack else alone, labels["host"])
