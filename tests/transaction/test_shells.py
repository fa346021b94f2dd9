"""Transactions of members under losses: whole runs from seeds, and mutations that they catch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cluster_of_shells import MAP, SCHEMA, Cluster, Member, Violation, row_of, run

from remuda.datatypes.timestamp import FOREVER
from remuda.member.state.transaction_sets import PartWork, Write
from remuda.member.transactions.pending import PendingParts
from remuda.member.transactions.shell import TransactionShell
from remuda.member.transactions.validation import Validation
from remuda.storage.maps.map_store import MapStore
from remuda.transaction.near import Near
from remuda.transaction.parts import Parts
from remuda.transaction.states import TransactionId

SEEDS = 4
CAUGHT_WITHIN = 200


@pytest.mark.parametrize("seed", range(SEEDS))
def test_histories_are_strictly_serializable(seed: int) -> None:
    found = run(seed)
    assert any(client.outcome.value == "committed" for client in found.clients)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_histories() -> None:
    for seed in range(2_000):
        run(seed)


def caught(first: int = 0) -> str:
    """What the first run that goes wrong says; ``first``: a seed that is known to."""
    for seed in (first, *range(CAUGHT_WITHIN)):
        try:
            run(seed)
        except Violation as problem:
            return str(problem).partition("\n")[0]
    return ""


def test_readers_that_do_not_wait_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendingParts, "awaited_key", lambda *_: None)
    assert caught(20)


def test_snapshots_that_ask_no_other_member_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge excuses a reader beside two single writes; it still sees snapshots that are old."""

    async def own_clock(_self: Cluster, near: Member, _members: set[int]) -> int:
        return near.core.timestamp()

    monkeypatch.setattr(Cluster, "snapshot", own_clock)
    assert "realtime" in caught(18)


def test_reads_without_validation_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Validation, "_check_read", lambda *_: None)
    assert caught(8)


def test_scans_without_validation_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Validation, "_check_scan", lambda *_: None)
    assert caught(1)


def test_writes_that_ignore_the_scans_of_others_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PendingParts, "scans_of", lambda *_: iter(()))
    assert caught(10)


def test_locks_that_are_not_held_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendingParts, "holder", lambda *_, **__: None)
    assert caught()


def test_a_report_before_all_have_finished_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Near.on_vote

    def on_vote(self: Near, now: float, vote: Any) -> Any:
        out = keep(self, now, vote)
        return [*out, *self._report(None)] if self.commit_timestamp else out

    monkeypatch.setattr(Near, "on_vote", on_vote)
    assert caught(1)


def test_a_primary_before_its_backups_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Parts.prepared_here

    def prepared_here(self: Parts, address: Any, timestamp: int) -> Any:
        out = keep(self, address, timestamp)
        part = self._parts[address]
        if not part.ended and part.one_phase:
            out += [*self._end(address, part, timestamp), *self._vote(address, part)]
        return out

    monkeypatch.setattr(Parts, "prepared_here", prepared_here)
    assert caught(19)


def test_a_put_that_is_visible_before_its_backup_has_it_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep = Parts.prepare_alone

    def prepare_alone(self: Parts, address: Any, work: Any, timestamp: int) -> Any:
        out = keep(self, address, work, timestamp)
        if not out:
            return out
        part = self._parts[address]
        return [*out, *self._end(address, part, timestamp), *self._vote(address, part)]

    monkeypatch.setattr(Parts, "prepare_alone", prepare_alone)
    assert caught(17)


def test_a_put_whose_key_others_may_take_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = TransactionShell.begin_alone

    def begin_alone(self: TransactionShell, partition: int, work: PartWork, done: Any) -> bool:
        before = set(self.pending.parts)
        begun = keep(self, partition, work, done)
        for address in set(self.pending.parts) - before:
            self.pending.remove(address)
        return begun

    monkeypatch.setattr(TransactionShell, "begin_alone", begin_alone)
    assert caught()


def test_readers_of_a_promoted_backup_wait_for_what_it_has_kept() -> None:
    store = MapStore(SCHEMA)
    pending = PendingParts(SimpleNamespace(stores={MAP: store}))  # type: ignore[arg-type]
    risen: list[int] = []
    pending.on_lower.append((("a reader",), risen.append))
    works = [PartWork(0, (Write(MAP, 1, (key,), row_of(key, ())),)) for key in (1, 2)]
    parts = [(TransactionId(began, 1), began) for began in (5, 6)]
    for address, work, at in zip(parts, works, (200, 100), strict=True):
        pending.add(address, work, at, readers_wait=False)
    assert not store.pending_at_or_below(300)
    pending.serve_partitions(lambda partition: partition in (5, 6))
    assert [store.pending_at_or_below(at) for at in (99, 100, 200)] == [False, True, True]
    assert pending.awaited_key(MAP, [(1,), (2,)], 150) == (2,)
    pending.decided(parts[1])
    assert [store.pending_at_or_below(at) for at in (100, 199, 200)] == [False, False, True]
    pending.remove(parts[0])
    assert not store.pending_at_or_below(FOREVER - 1)
    assert risen == [MAP, MAP]


def test_keys_that_are_free_before_the_backups_have_finished_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep = TransactionShell._resolve_here

    def resolve_here(self: TransactionShell, address: Any, timestamp: int | None) -> None:
        keep(self, address, timestamp)
        self.pending.remove(address)

    monkeypatch.setattr(TransactionShell, "_resolve_here", resolve_here)
    assert caught(76)


def test_never_forgetting_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parts, "forget", lambda *_: None)
    assert "not forgotten" in caught()


def test_a_view_that_wakes_nobody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Parts, "on_layout", lambda self, layout: setattr(self, "layout", layout) or []
    )
    monkeypatch.setattr(Parts, "on_tick", lambda *_: [])
    assert caught(5)


@pytest.mark.parametrize("waits", ["nobody", "for the key", "for the map", "for any part"])
def test_a_part_that_goes_in_one_step_leaves_what_two_steps_leave(waits: str) -> None:
    address, other = (TransactionId(5, 1), 5), (TransactionId(6, 1), 5)

    def left(remove: Any) -> list[Any]:
        store, heard = MapStore(SCHEMA), list[Any]()
        pending = PendingParts(SimpleNamespace(stores={MAP: store}))  # type: ignore[arg-type]
        pending.on_lower.append((("a reader",), heard.append))
        pending.on_lower.append(((), lambda _: heard.append("nobody")))
        for each, key, at in ((address, 1, 100), (other, 2, 200)):
            pending.add_writes(each, PartWork(at, (Write(MAP, 1, (key,), row_of(key, ())),)), at)
        if waits == "for the key":
            pending.when_free(MAP, (1,), lambda: heard.append(waits))
        elif waits == "for the map":
            pending.when_settled(MAP, lambda: heard.append(waits))
        elif waits == "for any part":
            pending.when_changed(lambda: heard.append(waits))
        found: list[Any] = []
        for each in (address, address, other):
            remove(pending, each)
            found.append((list(heard), store.awaited, list(pending.parts), list(pending.keys)))
            found.append((pending.of_map(MAP), list(pending.writes_of(MAP, 5)), pending.waiters))
        return found

    assert left(PendingParts.remove_writes) == left(PendingParts.remove)
    heard, awaited, parts, keys = left(PendingParts.remove_writes)[-2]
    assert (awaited, parts, keys) == (FOREVER, [], [])
    assert heard.count(waits) == (waits != "nobody")
