"""The founding of a cluster: the first member deals out numbers until everyone is there. Pure."""

from __future__ import annotations

from dataclasses import replace

from remuda.cluster.assignment import first_view
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import InvalidDefinition, MemberUnavailable


class Founding:
    """What the first member knows. Numbers are given in the order of arrival; a member that asks
    again (its answer was lost) gets the number it had. A process is met before it joins."""

    def __init__(self, cluster: str, size: int, first: MemberInfo, backups: int = 0) -> None:
        self.cluster = cluster
        self._backups = backups
        self.size = size
        self.members: list[MemberInfo] = [first]

    @property
    def complete(self) -> bool:
        return len(self.members) == self.size

    def join(self, cluster: str, member: MemberInfo) -> MemberInfo:
        """The member with its number. Raises InvalidDefinition (another cluster),
        MemberUnavailable (no place left)."""
        if cluster != self.cluster:
            raise InvalidDefinition(f'this is cluster "{self.cluster}", not "{cluster}"')
        for index, known in enumerate(self.members):
            if known.uuid == member.uuid:
                self.members[index] = replace(member, number=known.number)
                return self.members[index]
        if self.complete:
            raise MemberUnavailable(
                f'cluster "{self.cluster}" is complete with {self.size} members',
                hint="It lets further members in as soon as its first view is there.",
            )
        taken = {known.number for known in self.members}
        free = next(n for n in range(1, self.size + 1) if n not in taken)
        joined = replace(member, number=free)
        self.members.append(joined)
        return joined

    def forget(self, member: MemberInfo) -> None:
        """It is not there any more: its number is free."""
        self.members.remove(member)

    def view(self) -> View:
        assert self.complete
        return first_view(tuple(self.members), self._backups)
