"""How far apart copies of a partition lie: zones, racks and hosts are groups of members. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

Groups: TypeAlias = Mapping[int, tuple[str, ...]]
"""The places that a member shares with others that fail together with it, the widest first: (its
zone, its rack, its host). All members of a table name equally many."""
NO_GROUPS: Final[Groups] = {}
Domains: TypeAlias = Sequence[Mapping[int, str]]
"""The same the other way round: for each kind, the group of each member."""


class Apart:
    """Tells which members may have the next copy of a partition: those that are as far away from
    the copies before it as any other member is."""

    def __init__(self, members: Sequence[int], groups: Groups = NO_GROUPS) -> None:
        self.members = members
        self._domains = _domains(members, groups)
        self._known: dict[frozenset[int], frozenset[int]] = {}

    @property
    def matters(self) -> bool:
        """Whether there are groups that tell members apart."""
        return bool(self._domains)

    def able(self, before: Iterable[int]) -> frozenset[int]:
        """The members that may have a copy besides ``before``."""
        key = frozenset(before)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._farthest(key)
        return found

    def allows(self, before: Iterable[int], member: int) -> bool:
        """Whether ``member`` may have a copy besides ``before``, which does not contain it."""
        return not self.matters or member in self.able(before)

    def chain(self, first: Sequence[int], rest: Iterable[int], length: int) -> list[int]:
        """``first`` and those of ``rest`` that may follow, each as early as it may; at most
        ``length`` members."""
        row, waiting = list(first), [member for member in rest if member not in first]
        if not self.matters:
            return (row + waiting)[:length]
        while waiting and len(row) < length:
            after = next((member for member in waiting if self.allows(row, member)), None)
            if after is None:
                break
            row.append(after)
            waiting.remove(after)
        return row

    def _farthest(self, before: frozenset[int]) -> frozenset[int]:
        free = [member for member in self.members if member not in before]
        for group in self._domains:  # the widest one decides first
            taken = {group[member] for member in before}
            free = [member for member in free if group[member] not in taken] or free
        return frozenset(free)


def _domains(members: Sequence[int], groups: Groups) -> Domains:
    """The kinds of groups that tell members apart, but not all of them: only these change
    anything."""
    if not groups:
        return ()
    by_kind = zip(*(groups[member] for member in members), strict=True)
    kinds = [dict(zip(members, names, strict=True)) for names in by_kind]
    return [kind for kind in kinds if 1 < len(set(kind.values())) < len(members)]
