"""Finding transactions that wait for each other in a circle over several members. Pure.

Source: K. M. Chandy, J. Misra, L. M. Haas, "Distributed Deadlock Detection" (1983), edge chasing.
A transaction that has waited for a while sends probes along the edges "waits for"::

    member where T1 waits          near member of T2           member where T2 waits
    Probe(T1 -> T2)   ---------->  knows where T2 waits  --->  Probe(T1 -> T2 -> T3) ...

A probe that comes back to T1 has found a circle. Its youngest transaction is the victim: it has
done the least, and all who find the circle pick the same one. A member lets a transaction be passed
once in each round of probes, so a round takes as many messages as there are edges, not as many as
there are paths. A lost message is sent again with the next round, while T1 still waits. A circle
that a release has just opened may still be reported: the victim's rollback is then unnecessary,
never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from remuda.transaction.locks import LockTable

ROUNDS_KEPT: Final = 4096
"""Transactions whose last round a member remembers; beyond that some messages go twice."""


class Aged(Protocol):
    """An identity by which transactions are ordered: the later one began later."""

    @property
    def near(self) -> int:
        """The member that coordinates it."""

    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


T = TypeVar("T", bound=Aged)


@dataclass(frozen=True, slots=True)
class Probe(Generic[T]):
    """Each of ``path`` waits for the next one, and the last one for ``target``. ``round`` tells
    the probes of one search from those of an earlier one of the same transaction."""

    round: int
    path: tuple[T, ...]
    target: T


@dataclass(frozen=True, slots=True)
class ToNear(Generic[T]):
    """Send to the near member of ``probe.target``."""

    probe: Probe[T]


@dataclass(frozen=True, slots=True)
class ToMember(Generic[T]):
    """Send to ``member``, where ``probe.target`` waits."""

    member: int
    probe: Probe[T]


@dataclass(frozen=True, slots=True)
class Victim(Generic[T]):
    """Tell the near member of ``transaction`` to roll it back; ``cycle`` begins with it, and each
    waits for the next one."""

    transaction: T
    cycle: tuple[T, ...]


def forwarded(probe: Probe[T], waits_at: Iterable[int]) -> list[ToMember[T]]:
    """On the near member of the target, which waits at these members now (none: no deadlock)."""
    return [ToMember(member, probe) for member in waits_at]


class Search(Generic[T]):
    """One member's part, over the locks that it holds."""

    def __init__(self, locks: LockTable[T, Any]) -> None:
        self._locks = locks
        self._rounds: OrderedDict[T, tuple[int, set[T]]] = OrderedDict()

    def started(self, transaction: T, number: int) -> list[ToNear[T]]:
        """``transaction`` waits here: look for a circle through it, for the ``number``-th time."""
        others = sorted(self._locks.blockers(transaction))
        return [ToNear(Probe(number, (transaction,), other)) for other in others]

    def continued(self, probe: Probe[T]) -> list[ToNear[T] | Victim[T]]:
        """The target waits here: go on to those that it waits for."""
        if not self._first(probe):
            return []
        path = (*probe.path, probe.target)
        found: list[ToNear[T] | Victim[T]] = []
        for blocker in sorted(self._locks.blockers(probe.target)):
            if blocker == path[0]:
                victim = max(path)
                place = path.index(victim)
                found.append(Victim(victim, path[place:] + path[:place]))
            else:
                found.append(ToNear(Probe(probe.round, path, blocker)))
        return found

    def _first(self, probe: Probe[T]) -> bool:
        """Whether the target is passed for the first time in this round, and no later one began."""
        start = probe.path[0]
        number, passed = self._rounds.get(start, (-1, set()))
        if probe.round > number:
            passed = set()
            self._rounds[start] = (probe.round, passed)
        self._rounds.move_to_end(start)
        if len(self._rounds) > ROUNDS_KEPT:
            self._rounds.popitem(last=False)
        if probe.round < number or probe.target in passed:
            return False
        passed.add(probe.target)
        return True
