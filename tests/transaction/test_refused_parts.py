"""Backups without room refuse parts: nothing of a refused transaction is left, and what may be
decided is never refused. Each mutation of the rules must be noticed by the same simulation."""

from __future__ import annotations

from collections import Counter

import pytest
from cluster_of_copies import Cluster, Member, Violation, run
from histories import Outcome

from remuda.errors import OutOfMemory
from remuda.transaction import states as tx
from remuda.transaction.parts import Parts

SEEDS = 40
MUTANT_SEEDS = 600
NO_ROOM = OutOfMemory("no room")


class FullBackups(Cluster):
    """Many parts meet a backup without room."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.full = 0.3


def test_refused_transactions_leave_nothing() -> None:
    outcomes = Counter[Outcome]()
    refused = 0
    for seed in range(SEEDS):
        cluster = run(seed, FullBackups)
        outcomes.update(client.outcome for client in cluster.clients)
        refused += sum("not kept" in line for line in cluster.log)
    assert refused > 2 * SEEDS
    assert outcomes[Outcome.COMMITTED] > SEEDS
    assert outcomes[Outcome.ABORTED] > SEEDS


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_refused_transactions() -> None:
    for seed in range(SEEDS, 10_000):
        run(seed, FullBackups)


class Layout:
    """Member 1 is the primary of partition 0, ``copies`` say who has it."""

    number = 1

    def __init__(self, *copies: int) -> None:
        self.copies = copies

    def primary(self, _partition: int) -> int:
        return self.copies[0]

    def backups(self, _partition: int) -> tuple[int, ...]:
        return self.copies[1:]

    def alive(self, _member: int) -> bool:
        return True


def test_the_refusal_is_told_when_no_copy_keeps_the_part_any_more() -> None:
    name = tx.TransactionId(5, 9)
    primary = Parts(1, Layout(1, 2, 3), resend=1.0)
    primary.on_message(9, tx.Prepare(name, (0,), {0: "work"}))
    primary.prepared_here((name, 0), 10)
    primary.on_message(2, tx.BackupPrepared(name, 0))
    told = primary.on_message(3, tx.BackupRefused(name, 0, NO_ROOM))
    assert tx.ResolveHere(name, 0, None, (0,)) in told
    assert tx.Send(2, tx.BackupFinish(name, 0, None)) in told
    again = primary.on_message(9, tx.Prepare(name, (0,), {0: "work"}))
    assert not any(isinstance(e, tx.Send) and e.to == 9 for e in (*told, *again))
    assert tx.Send(9, tx.Vote(name, 0, refusal=NO_ROOM)) in primary.on_message(
        2, tx.BackupFinished(name, 0)
    )


def test_a_backup_that_has_refused_a_part_never_keeps_it() -> None:
    name = tx.TransactionId(5, 9)
    backup = Parts(2, Layout(1, 2), resend=1.0)
    message = tx.BackupPrepare(name, 0, 10, (0,), "work", one_phase=True)
    assert backup.refuse_to_keep(1, message, NO_ROOM) == [
        tx.Send(1, tx.BackupRefused(name, 0, NO_ROOM))
    ]
    assert backup.on_message(1, message) == [tx.Send(1, tx.BackupEnded(name, 0, None))]
    assert not backup.pending


# --- mutations ----------------------------------------------------------------------------------


def caught(cluster: type[Cluster] = FullBackups) -> bool:
    for seed in range(MUTANT_SEEDS):
        try:
            run(seed, cluster)
        except Violation:
            return True
    return False


def test_a_backup_that_forgets_its_refusal_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it has room, and commits what the primary has rolled back."""

    def refuse_to_keep(self, sender, message, refusal):
        refused = tx.BackupRefused(message.transaction, message.partition, refusal)
        return self._send(sender, refused)

    monkeypatch.setattr(Parts, "refuse_to_keep", refuse_to_keep)
    assert caught()


def test_a_refusal_before_other_backups_have_let_go_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def withdraw(self, address, part):
        return [*self._vote(address, part), *self._spread(address, part)]

    monkeypatch.setattr(Parts, "_withdraw", withdraw)
    with pytest.raises(AssertionError):
        test_the_refusal_is_told_when_no_copy_keeps_the_part_any_more()


def test_a_refusal_of_what_may_be_decided_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup refuses what it has kept, when a promoted member asks again."""

    class Forgetful(FullBackups):
        def has_no_room(self, member: Member, message: tx.BackupPrepare) -> bool:
            address = message.transaction, message.partition
            if address in member.parts.pending and self.random.random() < self.full:
                member.perform(member.parts.let_go((message.partition,)))
                return True
            return super().has_no_room(member, message)

    assert caught(Forgetful)
