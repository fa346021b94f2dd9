"""Ways to break what each guarantee of transactions rests on; a storm of a known seed finds each.

A mutation patches the product and says which storm, of which level, sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from remuda.datatypes.timestamp import from_micros
from remuda.member.queries.fragments import LocalSources
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.state.transaction_sets import ReadSet
from remuda.member.transactions.key_locks import KeyLocks
from remuda.member.transactions.validation import Validation
from remuda.storage.maps.map_store import MapStore
from remuda.transaction.own_writes import OwnWrites

Patch = pytest.MonkeyPatch
LOCKING = "pessimistic repeatable read"


@dataclass(frozen=True)
class Seen:
    """``says``: a word of what the checker tells."""

    says: str
    work: str = "lists"
    level: str | None = "serializable"
    seed: int = 0


MUTATIONS: list[Callable[[Patch], Seen]] = []


def mutation(change: Callable[[Patch], Seen]) -> Callable[[Patch], Seen]:
    MUTATIONS.append(change)
    return change


def nothing(*_: Any, **__: Any) -> None:
    return None


@mutation
def conditions_are_not_checked(patch: Patch) -> Seen:
    patch.setattr(Validation, "_check_scan", nothing)
    return Seen("G2", seed=18)


@mutation
def keys_that_are_written_are_not_checked(patch: Patch) -> Seen:
    """The first committer does not win: lost updates."""
    patch.setattr(Validation, "_check_unchanged", nothing)
    return Seen("counter", "counters", "repeatable read")


@mutation
def readers_wait_for_nobody(patch: Patch) -> Seen:
    """A SUM meets half of a transfer."""
    patch.setattr(LocalSources, "ready", lambda *_: True)
    return Seen("sum and number", "bank", seed=1)


@mutation
def scans_wait_for_nobody(patch: Patch) -> Seen:
    """A set is seen with a part of what was put together, or one sees what another does not."""
    patch.setattr(LocalSources, "ready", lambda *_: True)
    return Seen("only a part|long fork", "set", seed=1)


@mutation
def gets_read_what_was_a_moment_ago(patch: Patch) -> Seen:
    original = MapStore.get

    def get(self: MapStore, key: Any, at: int, version: int = 0) -> Any:
        return original(self, key, at - from_micros(100_000), version)

    patch.setattr(MapStore, "get", get)
    return Seen("registers: key", "registers")


@mutation
def a_rollback_to_a_savepoint_undoes_nothing(patch: Patch) -> Seen:
    patch.setattr(OwnWrites, "rollback_to", nothing)
    return Seen("G1a", level="read committed", seed=2)


@mutation
def who_switches_off_does_not_look(patch: Patch) -> Seen:
    """Write skew: both looked, and both went."""
    patch.setattr(Validation, "_check_read", nothing)
    patch.setattr(Validation, "_check_scan", nothing)
    return Seen("nobody of pair", "skew")


@mutation
def own_writes_are_not_seen(patch: Patch) -> Seen:
    patch.setattr(OpenTransaction, "overlay", lambda *_: ())
    patch.setattr(OpenTransaction, "own", lambda *_: (False, None))
    return Seen("own write lost", seed=3)


@mutation
def what_is_read_under_locks_is_not_checked(patch: Patch) -> Seen:
    """Locks are lost with their primary, and bulk writes pass them by."""
    patch.setattr(OpenTransaction, "reads_under_locks", nothing)
    return Seen("lists: ", level=LOCKING, seed=8)


@mutation
def what_is_read_under_locks_is_checked_since_the_last_one(patch: Patch) -> Seen:
    original = OpenTransaction.reads_under_locks

    def since_the_last(transaction: OpenTransaction) -> ReadSet | None:
        reads = original(transaction)
        return None if reads is None else replace(reads, since={})

    patch.setattr(OpenTransaction, "reads_under_locks", since_the_last)
    return Seen("lists: ", level=LOCKING, seed=8)


@mutation
def locks_are_given_on_what_is_undecided(patch: Patch) -> Seen:
    """What is read under the lock is not what the transaction meets later."""
    patch.setattr(KeyLocks, "_when_decided", KeyLocks._grant)
    return Seen("lists: ", level=LOCKING, seed=16)
