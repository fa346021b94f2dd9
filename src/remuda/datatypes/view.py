"""The numbered view of the cluster: its members and the owners of partitions (design rule 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from remuda.release import VERSIONS, Versions, __version__

Replicas: TypeAlias = tuple[tuple[int, ...], ...]
"""``Replicas[p]``: the members that keep partition ``p``, the primary first; empty: no member of
the view has a copy."""

NOBODY = 0
"""The owner of a partition of which no member of the view has a copy."""


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
    """The labels of its place from its configuration: (name, value), by name."""
    former: int = 0
    """The number that it had when it wrote the folder with which it joined; 0: there was none."""
    release: str = __version__
    versions: Versions = VERSIONS
    """The versions of the cluster in which it works."""

    def __str__(self) -> str:
        return f"member {self.number} ({self.host}:{self.user_port})"


@dataclass(frozen=True, slots=True)
class Missing:
    """A partition of which no member has a copy, and the members that may bring one back."""

    partition: int
    view: int
    """The last view in which a member kept it."""
    holders: tuple[int, ...] = ()
    """Those who kept it then, and may live; the primary of that view first. None: it is lost."""
    donor: int = 0
    """The holder whose copy is to come back; 0: none has been chosen. The copies of all others are
    void from the view on that names it."""


@dataclass(frozen=True, slots=True)
class Away:
    """A member that left in order and is expected back with its folder."""

    member: MemberInfo
    """As it was; as it is, when it has returned and does not have all of its copies again."""
    until: int
    """A timestamp: if it has not returned then, its copies are made elsewhere."""
    partitions: tuple[int, ...]
    """Those that it kept, in order, without those that it keeps again."""


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
    so), in order. Rows that a member still has of an earlier time are void."""
    missing: tuple[Missing, ...] = ()
    """Of partitions without a copy, in order."""
    former: tuple[MemberInfo, ...] = ()
    """The holders of ``missing``, by number: views have dropped them, and they may live."""
    generations: tuple[tuple[int, int], ...] = ()
    """(partition, how often it has come back or begun again without a row), in order; 0 of those
    that are not named. A copy of a lower generation is void."""
    departed: tuple[tuple[int, str], ...] = ()
    """The last members that views had no more, and why: (number, cause), the latest last."""
    away: tuple[Away, ...] = ()
    """The last members that left and are expected back, the latest last."""
    version: int = VERSIONS.lowest
    """The version of the cluster: no member sends or keeps what came with a later one."""

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
    def absent(self) -> tuple[int, ...]:
        """Partitions of which no member has a copy: unreachable or lost."""
        return tuple(p for p, row in enumerate(self.replicas) if not row)

    @cached_property
    def unreachable(self) -> Mapping[int, Missing]:
        """Partitions of which no member has a copy, and whose last holders may live."""
        return {each.partition: each for each in self.missing if each.holders}

    @cached_property
    def lost(self) -> tuple[int, ...]:
        """Partitions whose every copy is lost."""
        return tuple(p for p in self.absent if p not in self.unreachable)

    @cached_property
    def awaited(self) -> frozenset[int]:
        """Former members whose copies of some partition may come back."""
        return frozenset(
            holder
            for each in self.missing
            for holder in ((each.donor,) if each.donor else each.holders)
        )

    def generation(self, partition: int) -> int:
        """How often the partition has come back, or begun again without a row."""
        return self._generations.get(partition, 0)

    @cached_property
    def _generations(self) -> Mapping[int, int]:
        return dict(self.generations)

    def cause_of_departure(self, number: int) -> str:
        """Why the view does not have the member; empty where that is not known any more."""
        return dict(self.departed).get(number, "")

    def emptied_since(self, number: int) -> frozenset[int]:
        """Partitions that have begun again without a row in a view after ``number``."""
        return frozenset(p for p, since in self.emptied if since > number)

    def partitions_of(self, number: int) -> tuple[int, ...]:
        """Those that the member is the primary of."""
        return tuple(p for p, owner in enumerate(self.owners) if owner == number)

    def backed_up_by(self, number: int) -> tuple[int, ...]:
        """Those that the member keeps a backup of."""
        return tuple(p for p, row in enumerate(self.replicas) if number in row[1:])
