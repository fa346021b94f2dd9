"""The numbered view of the cluster: who is in it and who owns which partition (design rule 13)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

Replicas: TypeAlias = tuple[tuple[int, ...], ...]
"""``Replicas[p]``: the members that keep partition ``p``, the primary first; empty: it is lost."""

NOBODY = 0
"""The owner of a partition whose every copy is lost."""


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """A member: ``number`` is small and unique while the cluster lives, ``uuid`` its identity."""

    number: int
    uuid: str
    host: str
    user_port: int
    control_port: int
    data_port: int
    labels: tuple[tuple[str, str], ...] = ()
    """What its configuration says of its place: (name, value), by name."""

    def __str__(self) -> str:
        return f"member {self.number} ({self.host}:{self.user_port})"


@dataclass(frozen=True)
class View:
    """View ``number``. A member that ``replicas`` names has a whole copy of the partition."""

    number: int
    members: tuple[MemberInfo, ...]
    replicas: Replicas
    last_number: int = 0
    """The highest number that a member of this cluster ever had: none is given twice."""
    backups: int = 0
    """How many copies a partition should have besides the primary."""
    emptied: tuple[tuple[int, int], ...] = ()
    """Partitions that were lost and began again without a row: (partition, the view that has said
    so), in order. Whatever a member still has of an earlier time is void."""

    @cached_property
    def by_number(self) -> dict[int, MemberInfo]:
        return {member.number: member for member in self.members}

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """``owners[p]``: the member that is the primary of partition ``p``, or ``NOBODY``."""
        return tuple(row[0] if row else NOBODY for row in self.replicas)

    @cached_property
    def primaries(self) -> tuple[int, ...]:
        """The members that are the primary of some partition, in order."""
        return tuple(sorted(set(self.owners) - {NOBODY}))

    @cached_property
    def lost(self) -> tuple[int, ...]:
        """Partitions whose every copy is lost."""
        return tuple(p for p, row in enumerate(self.replicas) if not row)

    def emptied_since(self, number: int) -> frozenset[int]:
        """Partitions that have begun again without a row in a view after ``number``."""
        return frozenset(p for p, since in self.emptied if since > number)

    def partitions_of(self, number: int) -> tuple[int, ...]:
        """Those that the member is the primary of."""
        return tuple(p for p, owner in enumerate(self.owners) if owner == number)

    def backed_up_by(self, number: int) -> tuple[int, ...]:
        """Those that the member keeps a backup of."""
        return tuple(p for p, row in enumerate(self.replicas) if number in row[1:])
