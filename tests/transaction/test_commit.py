"""Transactions over primaries and backups that are lost at any step. Each mutation of the rules
must be noticed by the same simulation."""

from __future__ import annotations

from collections import Counter, deque

import pytest
from cluster_of_copies import Cluster, Member, ViewOfCopies, Violation, Work, run
from histories import Outcome

from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.parts import Parts
from remuda.transaction.states import State, TransactionId

SEEDS = 60
MUTANT_SEEDS = 600


def test_seeds() -> None:
    outcomes = Counter[Outcome]()
    losses = 0
    for seed in range(SEEDS):
        cluster = run(seed)
        outcomes.update(client.outcome for client in cluster.clients)
        losses += len(cluster.views) - 1
    assert outcomes[Outcome.COMMITTED] > 5 * SEEDS
    assert outcomes[Outcome.ABORTED] > SEEDS
    assert losses > SEEDS // 2


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(SEEDS, 10_000):
        run(seed)


def test_a_seed_replays() -> None:
    assert run(3).log == run(3).log


# --- mutations ----------------------------------------------------------------------------------


def caught(cluster: type[Cluster] = Cluster, first: int = 0) -> bool:
    """``first``: a seed that is known to show what is wrong; then others are tried."""
    for seed in (first, *range(MUTANT_SEEDS)):
        try:
            run(seed, cluster)
        except (Violation, AssertionError):
            return True
    return False


def test_voting_before_the_backups_have_it_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Parts.prepared_here

    def prepared_here(self, address, timestamp):
        out = keep(self, address, timestamp)
        part = self._parts[address]
        if part.state is State.PREPARING and not part.one_phase:
            part.state, part.settled = State.PREPARED, True
            out += self._vote(address, part)
        return out

    monkeypatch.setattr(Parts, "prepared_here", prepared_here)
    assert caught()


def test_reporting_a_rollback_before_it_is_certain_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep = Near._roll_back
    monkeypatch.setattr(
        Near,
        "_roll_back",
        lambda self, now, cause: [*keep(self, now, cause), *self._report(cause)],
    )
    assert caught(first=129)


def test_recovery_that_asks_nobody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Parts, "_ask_others", lambda self, address, part: self._end_recovery(address, part, None)
    )
    assert caught(first=74)


def test_recovery_at_the_own_timestamp_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Parts._end_recovery

    def end_recovery(self, address, part, timestamp):
        own = None if timestamp is None else part.prepare_timestamp
        return keep(self, address, part, own)

    monkeypatch.setattr(Parts, "_end_recovery", end_recovery)
    assert caught()


def test_a_promoted_backup_that_tells_no_others_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def on_layout(self, layout):
        self.layout = layout
        for address, part in self._parts.items():
            part.settled = part.settled or self._primary(address)
        return self._go_on() if layout.alive(self.me) else []

    monkeypatch.setattr(Parts, "on_layout", on_layout)
    assert caught()


def test_one_phase_with_the_primary_first_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Parts.prepared_here

    def prepared_here(self, address, timestamp):
        out = keep(self, address, timestamp)
        part = self._parts[address]
        if part.state is State.PREPARING and part.one_phase:
            out += [*self._end(address, part, timestamp), *self._vote(address, part)]
        return out

    monkeypatch.setattr(Parts, "prepared_here", prepared_here)
    assert caught(first=74)


def test_forgetting_what_others_may_ask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Parts._finish

    def finish(self, sender, message):
        out = keep(self, sender, message)
        part = self._parts.get((message.transaction, message.partition))
        if part is not None and part.settled and part.ended and not part.to_tell:
            del self._parts[message.transaction, message.partition]
        return out

    monkeypatch.setattr(Parts, "_finish", finish)
    assert caught()


def test_reading_without_validation_is_caught() -> None:
    class Careless(Member):
        def conflict(self, address: object, work: Work) -> None:
            return None

    class Unchecked(Cluster):
        def make_member(self, number: int) -> Member:
            return Careless(self, number, self.views[0])

    assert caught(Unchecked)


# --- scripts ------------------------------------------------------------------------------------

T = TransactionId(100, near=9)


def layout(number: int, members: set[int], *copies: int) -> ViewOfCopies:
    """Partition 0 is kept by ``copies``, partition 1 by member 5."""
    return ViewOfCopies(number, frozenset(members), (copies, (5,)))


def test_a_promoted_part_is_told_when_its_backups_have_it() -> None:
    parts = Parts(2, layout(1, {1, 2, 3, 5, 9}, 1, 2, 3), resend=1.0)
    assert [str(e) for e in parts.on_message(1, tx.BackupPrepare(T, 0, 7, (0, 1), "w", False))] == [
        "keep here 9:100 part 0 at 7",
        "to 1: kept 9:100 part 0",
    ]
    # 1, which had voted, and the near member are lost.
    after = parts.on_layout(layout(2, {2, 3, 5}, 2, 3))
    assert [str(e) for e in after] == ["to 3: keep 9:100 part 0 at 7"]
    assert parts.on_message(5, tx.Inquire(T, 0, asking=1)) == []
    assert [str(e) for e in parts.on_message(3, tx.BackupPrepared(T, 0))] == [
        "to 5: inquire 9:100 part 1 for part 0"
    ]
    assert [str(e) for e in parts.on_message(5, tx.Inquire(T, 0, asking=1))] == [
        "to 5: told 9:100 part 0: prepared"
    ]


def test_what_an_earlier_primary_has_ended_stays_so() -> None:
    parts = Parts(2, layout(1, {1, 2, 3, 5, 9}, 1, 2, 3), resend=1.0)
    parts.on_message(1, tx.BackupPrepare(T, 0, 7, (0, 1), "w", False))
    parts.on_layout(layout(2, {2, 3, 5, 9}, 2, 3))
    ended = parts.on_message(3, tx.BackupEnded(T, 0, 20))
    assert [str(e) for e in ended] == [
        "resolve here 9:100 part 0 committed at 20",
        "to 3: backup finish 9:100 part 0 committed at 20",
    ]


def test_a_part_that_nobody_prepared_never_will_be() -> None:
    parts = Parts(2, layout(1, {2, 5}, 2), resend=1.0)
    assert [str(e) for e in parts.on_message(5, tx.Inquire(T, 0, asking=1))] == [
        "to 5: told 9:100 part 0: rolled back"
    ]


def test_a_late_prepare_finds_that_it_is_over() -> None:
    parts = Parts(2, layout(1, {2, 5, 9}, 2), resend=1.0)
    finished = parts.on_message(9, tx.Finish(T, 0, None))
    assert [str(e) for e in finished] == ["to 9: finished 9:100 part 0"]
    (vote,) = parts.on_message(9, tx.Prepare(T, (0, 1), {0: "w"}))
    assert str(vote) == ("to 9: refuse 9:100 part 0: the transaction was rolled back meanwhile")
    parts.forget(9, 101)
    assert parts.on_message(9, tx.Prepare(T, (0, 1), {0: "w"})) == []
    assert len(parts) == 0


def test_a_copy_that_was_moved_away_lets_go_when_the_transaction_is_finished() -> None:
    parts = Parts(2, layout(1, {1, 2, 9}, 1, 2), resend=1.0)
    parts.on_message(1, tx.BackupPrepare(T, 0, 7, (0, 1), "w", False))
    parts.on_layout(layout(2, {1, 2, 3, 9}, 1, 3))
    assert [str(e) for e in parts.forget(9, 101)] == [
        str(tx.ResolveHere(T, 0, None)),
    ]
    assert len(parts) == 0


def test_a_promoted_primary_frees_the_keys_of_what_is_finished_everywhere() -> None:
    parts = Parts(2, layout(1, {1, 2, 3, 9}, 1, 2), resend=1.0)
    parts.on_message(1, tx.BackupPrepare(T, 0, 7, (0,), "w", True))
    held = parts.on_layout(layout(2, {1, 2, 3, 9}, 2, 3))
    assert tx.HoldHere(T, 0, "w") in held
    assert parts.forget(9, 101) == [tx.SettledHere(T, 0)]


def test_a_new_copy_answers_for_what_had_ended_before_it_was_made() -> None:
    parts = Parts(3, layout(2, {1, 2, 3, 9}, 3, 2), resend=1.0)
    finished = parts.on_message(9, tx.Finish(T, 0, 20))
    assert [str(e) for e in finished] == ["to 9: finished 9:100 part 0"]
    backup = Parts(3, layout(2, {1, 2, 3, 9}, 2, 3), resend=1.0)
    assert "backup finished" in str(backup.on_message(2, tx.BackupFinish(T, 0, 20))[0])


def test_parts_of_a_former_copy_are_not_applied_to_a_new_one() -> None:
    parts = Parts(2, layout(1, {1, 2, 9}, 1, 2), resend=1.0)
    parts.on_message(1, tx.BackupPrepare(T, 0, 7, (0, 1), "w", False))
    parts.on_layout(layout(2, {1, 2, 3, 9}, 1, 3))
    assert parts.let_go({1}) == []
    assert [str(e) for e in parts.let_go({0})] == [str(tx.ResolveHere(T, 0, None))]
    assert parts.on_layout(layout(3, {1, 2, 3, 9}, 2, 1)) == []
    assert len(parts) == 0


def test_what_the_user_was_told_outlives_the_only_copy_of_a_part() -> None:
    """Member 1 is the near member and has the only copy of partition 0, as every member has of a
    REPLICATED map; it is lost as soon as it has told the user."""
    transaction, before = TransactionId(100, near=1), layout(1, {1, 5}, 1)
    near = Near(1, transaction, {0: "w", 1: "w"}, before, resend=1.0)
    parts = {me: Parts(me, before, resend=1.0) for me in (1, 5)}
    waiting = deque((1, effect) for effect in near.prepare(0.0))
    ends: dict[tuple[int, int], int | None] = {}
    while waiting:
        me, effect = waiting.popleft()
        out: list[tx.Effect] = []
        match effect:
            case tx.Send(to, tx.Vote() as vote):
                assert to == 1
                out = near.on_vote(0.0, vote)
            case tx.Send(to, tx.Finished() as finished):
                out = near.on_finished(finished)
            case tx.Send(to, message):
                out = parts[to].on_message(me, message)
                me = to
            case tx.PrepareHere(_, partition):
                out = parts[me].prepared_here((transaction, partition), 20 + partition)
            case tx.ResolveHere(_, partition, timestamp):
                ends[me, partition] = timestamp
            case tx.Report(_, state, timestamp):
                assert (state, timestamp) == (State.COMMITTED, 21)
                break
        waiting.extend((me, each) for each in out)
    else:
        raise AssertionError("the user was told nothing")
    for effect in parts[5].on_layout(layout(2, {5})):
        if isinstance(effect, tx.ResolveHere):
            ends[5, effect.partition] = effect.timestamp
    assert ends[5, 1] == 21
