"""The founding of a cluster: the first member waits until everyone is there, then numbers them.
Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from remuda.cluster.assignment import first_view
from remuda.cluster.versions import require_common
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import InvalidDefinition, MemberUnavailable


class Founding:
    """The knowledge of the first member. It is member 1; the others follow in the order of their
    hosts and ports, whichever came first: the same addresses always give the same numbers. A
    process is met before it joins."""

    def __init__(self, cluster: str, size: int, first: MemberInfo, backups: int = 0) -> None:
        self.cluster = cluster
        self._backups = backups
        self.size = size
        self.members: list[MemberInfo] = [first]

    @property
    def complete(self) -> bool:
        return len(self.members) == self.size

    def join(self, cluster: str, member: MemberInfo) -> MemberInfo:
        """The member with a number for its place, which may change until all are here; one that
        asks again (its answer was lost) has the same place. Raises InvalidDefinition (another
        cluster), VersionMismatch, MemberUnavailable (no place left)."""
        if cluster != self.cluster:
            raise InvalidDefinition(f'this is cluster "{self.cluster}", not "{cluster}"')
        require_common([*(each for each in self.members if each.uuid != member.uuid), member])
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
        """It is not there any more: its place is free."""
        self.members.remove(member)

    def view(self) -> View:
        assert self.complete
        ordered = [self.members[0], *sorted(self.members[1:], key=_address)]
        numbered = [replace(each, number=number) for number, each in enumerate(ordered, 1)]
        return first_view(tuple(numbered), self._backups)


def _address(member: MemberInfo) -> tuple[list[tuple[int, str]], int, int, str]:
    """Numbers in a host's name count as numbers: node-2 and 10.0.0.9 come before node-10 and
    10.0.0.10."""
    words = [
        (int(word), "") if word.isdecimal() else (-1, word)
        for word in re.split(r"(\d+)", member.host)
    ]
    return words, member.user_port, member.control_port, member.uuid
