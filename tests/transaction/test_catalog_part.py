"""The catalog is the last part of a transaction with definitions: its rows are there if and only if
its definitions are, whatever is lost. Each mutation of the rules must be noticed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from cluster_of_copies import run
from cluster_with_catalog import ClusterWithCatalog, MemberWithCatalog
from histories import Outcome

from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.recovered_parts import RecoveredParts
from remuda.transaction.states import CATALOG, State

Patch = pytest.MonkeyPatch
SEEDS = 50
MUTANT_SEEDS = 1500


def test_rows_and_definitions_commit_together() -> None:
    outcomes = Counter[Outcome]()
    made = resolved = 0
    for seed in range(SEEDS):
        cluster = run(seed, ClusterWithCatalog)
        assert isinstance(cluster, ClusterWithCatalog)
        outcomes.update(client.outcome for client in cluster.clients)
        made += len(cluster.made)
        resolved += sum(f"part {CATALOG}: " in line for line in cluster.log)
    assert outcomes[Outcome.COMMITTED] > 5 * SEEDS, outcomes
    assert outcomes[Outcome.ABORTED] > SEEDS, outcomes
    assert made > outcomes[Outcome.COMMITTED]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(SEEDS, 15_000):
        run(seed, ClusterWithCatalog)


def caught() -> None:
    with pytest.raises(AssertionError):
        for seed in range(MUTANT_SEEDS):
            run(seed, ClusterWithCatalog)


def test_parts_that_decide_by_themselves(monkeypatch: Patch) -> None:
    def decide(self: Any, address: Any, part: Any) -> list[tx.Effect]:
        if {*part.partitions} - {address[1], *part.told} != {CATALOG}:
            return []
        at = [part.prepare_timestamp, *(each.timestamp for each in part.told.values())]
        return self._end_recovery(address, part, max(at))

    monkeypatch.setattr(RecoveredParts, "_ask_catalog", decide)
    caught()


def test_a_lost_partition_that_outvotes_the_catalog(monkeypatch: Patch) -> None:
    ask = RecoveredParts._ask_catalog

    def hasty(self: Any, address: Any, part: Any) -> list[tx.Effect]:
        if any(each.state is State.UNKNOWN for each in part.told.values()):
            return self._end_recovery(address, part, None)
        return ask(self, address, part)

    monkeypatch.setattr(RecoveredParts, "_ask_catalog", hasty)
    caught()


def test_a_catalog_that_answers_without_a_note(monkeypatch: Patch) -> None:
    def resolve(self: Any, member: Any, sender: int, message: tx.Inquire) -> None:
        noted = message.transaction in self.decided
        original(self, member, sender, message)
        if not noted:
            del self.decided[message.transaction]
            self.moved.remove(message.transaction)

    original = ClusterWithCatalog.resolve
    monkeypatch.setattr(ClusterWithCatalog, "resolve", resolve)
    caught()


def test_a_catalog_that_does_not_note_what_it_commits(monkeypatch: Patch) -> None:
    """The answer is lost, and the second edit finds its own name taken."""
    monkeypatch.setattr(ClusterWithCatalog, "is_made", lambda *_: False)
    caught()


def test_a_note_that_is_forgotten_too_early(monkeypatch: Patch) -> None:
    tick = MemberWithCatalog.tick

    def forgetting(self: Any) -> None:
        tick(self)
        for transaction in list(self.world.decided):
            if transaction.near == self.number:
                self.world.forget(transaction)

    monkeypatch.setattr(MemberWithCatalog, "tick", forgetting)
    caught()


def test_a_transaction_that_rolls_back_after_the_catalog_was_asked(monkeypatch: Patch) -> None:
    rollback = Near.rollback

    def hasty(self: Any, now: float, cause: Any) -> list[tx.Effect]:
        if self.state is State.PREPARING and self._last_asked:
            return [*self._roll_back(now, cause), *self._report(cause)]
        return rollback(self, now, cause)

    monkeypatch.setattr(Near, "rollback", hasty)
    caught()


def test_a_transaction_that_commits_before_the_catalog_answers(monkeypatch: Patch) -> None:
    ask = Near._ask_catalog

    def hasty(self: Any) -> list[tx.Effect]:
        return [*ask(self), *self._decided(0.0, max(self._votes.values()))]

    monkeypatch.setattr(Near, "_ask_catalog", hasty)
    caught()


def test_a_lost_partition_after_the_catalog_was_asked(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Near, "_catalog_asked", property(lambda _: False))
    caught()


def test_an_edit_before_all_have_voted(monkeypatch: Patch) -> None:
    send = Near._send

    def hasty(self: Any, now: float) -> list[tx.Effect]:
        out = send(self, now)
        if self.state is State.PREPARING and self._votes and not self._last_asked:
            self._last_asked = True
            return [*out, tx.DecideHere(self.transaction, max(self._votes.values()))]
        return out

    monkeypatch.setattr(Near, "_send", hasty)
    caught()
