"""Locks on keys that one member holds for transactions: shared and exclusive, first come, first
served. Pure.

A request waits while a holder, or somebody who came earlier and waits, stands in its way; so nobody
starves. The exception is a holder of a shared lock that wants the exclusive one: it goes before
everyone who waits, because none of them can be served before it lets go. ``blockers`` says for whom
a transaction waits here; ``transaction.deadlock`` finds cycles among them over all members.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
K = TypeVar("K", bound=Hashable)


class Mode(Enum):
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


@dataclass(frozen=True, slots=True)
class Granted(Generic[T, K]):
    """The lock that was waited for is granted."""

    transaction: T
    key: K
    mode: Mode


@dataclass(slots=True)
class _Lock(Generic[T]):
    holders: dict[T, Mode] = field(default_factory=dict)
    waiting: list[tuple[T, Mode]] = field(default_factory=list)

    def obstacles(self, transaction: T, mode: Mode, before: int) -> list[T]:
        """The owners in the way of a request that only the first ``before`` waiters precede."""
        ahead = [*self.holders.items(), *self.waiting[:before]]
        return [
            other
            for other, held in ahead
            if other != transaction and Mode.EXCLUSIVE in (held, mode)
        ]

    def grant(self, transaction: T, mode: Mode) -> None:
        if self.holders.get(transaction) is not Mode.EXCLUSIVE:
            self.holders[transaction] = mode


class LockTable(Generic[T, K]):
    """``T`` identifies transactions, ``K`` keys."""

    def __init__(self) -> None:
        self.held: dict[K, _Lock[T]] = {}
        """Keys that are locked."""
        self._held: dict[T, set[K]] = {}
        self._awaited: dict[T, set[K]] = {}

    def acquire(self, transaction: T, key: K, mode: Mode, *, wait: bool = True) -> list[T]:
        """Empty: granted. Otherwise those who stand in the way; with ``wait`` the request waits,
        without it nothing has changed. A transaction that waits for a key asks for it only once."""
        lock = self.held.setdefault(key, _Lock())
        if lock.holders.get(transaction) in (mode, Mode.EXCLUSIVE):
            return []
        upgrades = transaction in lock.holders
        place = 0 if upgrades else len(lock.waiting)
        obstacles = lock.obstacles(transaction, mode, place)
        if not obstacles:
            lock.grant(transaction, mode)
            self._held.setdefault(transaction, set()).add(key)
        elif wait:
            assert key not in self._awaited.get(transaction, ()), "it waits for this key already"
            lock.waiting.insert(place, (transaction, mode))
            self._awaited.setdefault(transaction, set()).add(key)
        return obstacles

    def release(self, transaction: T) -> list[Granted[T, K]]:
        """Give up all locks and all waiting of ``transaction``; the requests that this serves."""
        keys = self._held.pop(transaction, set()) | self._awaited.pop(transaction, set())
        served: list[Granted[T, K]] = []
        for key in keys:
            lock = self.held[key]
            lock.holders.pop(transaction, None)
            lock.waiting = [request for request in lock.waiting if request[0] != transaction]
            served += self._serve(key, lock)
            if not lock.holders and not lock.waiting:
                del self.held[key]
        return served

    def stop_waiting(self, transaction: T) -> list[Granted[T, K]]:
        """Give up all waiting, but no lock; the requests of others that this serves."""
        served: list[Granted[T, K]] = []
        for key in self._awaited.pop(transaction, set()):
            lock = self.held[key]
            lock.waiting = [request for request in lock.waiting if request[0] != transaction]
            served += self._serve(key, lock)
            if not lock.holders and not lock.waiting:
                del self.held[key]
        return served

    def obstacle(self, key: K, mode: Mode, transaction: T | None) -> T | None:
        """A holder other than ``transaction`` whose lock excludes ``mode``."""
        lock = self.held.get(key)
        if lock is not None:
            for holder, held in lock.holders.items():
                if holder != transaction and Mode.EXCLUSIVE in (held, mode):
                    return holder
        return None

    @property
    def transactions(self) -> frozenset[T]:
        """The owners that hold something or wait."""
        return frozenset(self._held) | frozenset(self._awaited)

    def _serve(self, key: K, lock: _Lock[T]) -> list[Granted[T, K]]:
        served = []
        while lock.waiting:
            transaction, mode = lock.waiting[0]
            if lock.obstacles(transaction, mode, 0):
                break
            lock.waiting.pop(0)
            lock.grant(transaction, mode)
            self._held.setdefault(transaction, set()).add(key)
            self._awaited[transaction].discard(key)
            if not self._awaited[transaction]:
                del self._awaited[transaction]
            served.append(Granted(transaction, key, mode))
        return served

    def holds(self, transaction: T, key: K) -> Mode | None:
        lock = self.held.get(key)
        return None if lock is None else lock.holders.get(transaction)

    def blockers(self, transaction: T) -> frozenset[T]:
        """For whom it waits here."""
        found: set[T] = set()
        for key in self._awaited.get(transaction, ()):
            lock = self.held[key]
            for place, (waiter, mode) in enumerate(lock.waiting):
                if waiter == transaction:
                    found.update(lock.obstacles(transaction, mode, place))
        return frozenset(found)

    @property
    def waiters(self) -> frozenset[T]:
        return frozenset(self._awaited)

    def __len__(self) -> int:
        """Keys that are locked."""
        return len(self.held)

    def __str__(self) -> str:
        lines = []
        for key, lock in self.held.items():
            held = " ".join(f"{tx}:{mode.value}" for tx, mode in lock.holders.items())
            waits = " ".join(f"{tx}:{mode.value}" for tx, mode in lock.waiting)
            lines.append(f"{key} held by {held}" + (f", awaited by {waits}" if waits else ""))
        return "\n".join(lines) or "no locks"
