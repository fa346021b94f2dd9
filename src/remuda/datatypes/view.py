"""The numbered view of the cluster: who is in it and who owns which partition (design rule 13)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """A member: ``number`` is small and unique while the cluster lives, ``uuid`` its identity."""

    number: int
    uuid: str
    host: str
    user_port: int
    control_port: int
    data_port: int

    def __str__(self) -> str:
        return f"member {self.number} ({self.host}:{self.user_port})"


@dataclass(frozen=True)
class View:
    """View ``number``; ``owners[p]`` is the member number of the primary of partition ``p``."""

    number: int
    members: tuple[MemberInfo, ...]
    owners: tuple[int, ...]
    last_number: int = 0
    """The highest number that a member of this cluster ever had: none is given twice."""

    @cached_property
    def by_number(self) -> dict[int, MemberInfo]:
        return {member.number: member for member in self.members}

    def partitions_of(self, number: int) -> tuple[int, ...]:
        return tuple(p for p, owner in enumerate(self.owners) if owner == number)
