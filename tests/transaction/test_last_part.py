"""The last part of a transaction over two members decides: histories of many runs stay strictly
serializable while members and messages are lost, and each mutation of the rules is noticed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from cluster_of_copies import Cluster, ViewOfCopies
from cluster_of_copies import run as run_machines
from cluster_of_pairs import ClusterOfPairs
from cluster_of_shells import run
from cluster_with_cuts import ClusterWithCuts
from cluster_with_returns import ReturningCluster
from histories import Outcome

from remuda.errors import OutOfMemory, SerializationFailure
from remuda.member.transactions.asked_last import AskedLast
from remuda.member.transactions.validation import Validation
from remuda.transaction import states as tx
from remuda.transaction.last_part import LastParts, common_backup, last_part
from remuda.transaction.near import Near
from remuda.transaction.part import Part
from remuda.transaction.parts import Parts
from remuda.transaction.states import State

Patch = pytest.MonkeyPatch
SEEDS = 10
SHELL_SEEDS = 4
CLOCKS_DIFFER = 2004
"""A reader beside two single writes sees the later one alone (docs/transactions.md)."""
MUTANT_SEEDS = 200
T = tx.TransactionId(100, 1)


class Deciding(Cluster):
    decided_by_last = True


class DecidingWithoutRoom(Deciding):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.full = 0.3


class DecidingWithReturns(ReturningCluster):
    decided_by_last = True


class DecidingWithCuts(ClusterWithCuts):
    decided_by_last = True


CLUSTERS = (Deciding, DecidingWithoutRoom, DecidingWithReturns, DecidingWithCuts)


# --- many runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_machines_keep_every_promise(cluster: type[Cluster]) -> None:
    outcomes = Counter[Outcome]()
    decided = 0
    for seed in range(SEEDS):
        found = run_machines(seed, cluster)
        outcomes.update(client.outcome for client in found.clients)
        decided += sum("then commit part" in line for line in found.log)
    assert decided > SEEDS
    assert outcomes[Outcome.COMMITTED] > SEEDS


@pytest.mark.parametrize("seed", [*range(SHELL_SEEDS), CLOCKS_DIFFER])
def test_members_keep_every_promise(seed: int) -> None:
    found = run(seed, ClusterOfPairs)
    assert isinstance(found, ClusterOfPairs)
    assert found.decided_by_last


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_machines_keep_every_promise_in_many_runs(cluster: type[Cluster]) -> None:
    for seed in range(SEEDS, 1_100):
        run_machines(seed, cluster)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_members_keep_every_promise_in_many_runs() -> None:
    for seed in range(SHELL_SEEDS, 2_000):
        run(seed, ClusterOfPairs)


# --- mutations ------------------------------------------------------------------------------------


def caught(*clusters: type[Cluster]) -> str:
    """The complaint of the first run that goes wrong."""
    for seed in range(MUTANT_SEEDS):
        for cluster in clusters or CLUSTERS:
            try:
                run_machines(seed, cluster)
            except AssertionError as problem:
                return str(problem).partition("\n")[0]
    return ""


def caught_in_shells(first: int = 0) -> str:
    """The same; ``first``: a seed that is known to."""
    for seed in (first, *range(MUTANT_SEEDS)):
        try:
            run(seed, ClusterOfPairs)
        except AssertionError as problem:
            return str(problem).partition("\n")[0]
    return ""


def test_a_decision_before_it_is_on_the_backup_is_caught(monkeypatch: Patch) -> None:
    original = Parts.prepared_here

    def prepared_here(self: Parts, address: Any, timestamp: int) -> Any:
        out = original(self, address, timestamp)
        part = self._parts[address]
        if part.companions and not part.ended:
            out += self._end(address, part, timestamp)
            out += [*self._end_companions(address[0], part), *self._vote(address, part)]
        return out

    monkeypatch.setattr(Parts, "prepared_here", prepared_here)
    assert caught()


def test_a_last_part_that_commits_without_the_others_is_caught(monkeypatch: Patch) -> None:
    """It keeps nothing of the others, and commits the last one nevertheless."""
    monkeypatch.setattr(LastParts, "_keeps", lambda *_: True)
    monkeypatch.setattr(LastParts, "keep_companion", lambda *_: [])
    assert caught()


def test_a_common_backup_that_says_so_before_it_has_all_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(LastParts, "has_kept_all", lambda *_: True)
    assert caught()


def test_rolling_back_after_the_last_part_was_asked_is_caught(monkeypatch: Patch) -> None:
    def rollback(self: Near, now: float, cause: Any) -> Any:
        self._last_asked = False
        return original(self, now, cause)

    original = Near.rollback
    monkeypatch.setattr(Near, "rollback", rollback)
    assert caught()


def test_a_last_part_that_is_asked_before_all_votes_is_caught(monkeypatch: Patch) -> None:
    """It is asked to commit though others may be refused."""
    original = Near._send

    def send(self: Near, now: float) -> Any:
        out = original(self, now)
        asking = self.state is State.PREPARING and self._last is not None
        if asking and self._last not in self._votes and not self._last_asked:
            out += self._ask_last(self._last)
        return out

    monkeypatch.setattr(Near, "_send", send)
    assert caught()


def test_a_backup_that_is_told_the_end_of_what_it_does_not_have_is_caught(
    monkeypatch: Patch,
) -> None:
    def commit_at_once(self: Parts, address: Any, part: Part, timestamp: int) -> Any:
        return [*self._end(address, part, timestamp), *self._spread(address, part)]

    monkeypatch.setattr(Parts, "_commit_when_kept", commit_at_once)
    view = ViewOfCopies(1, frozenset({1, 2, 3}), ((1, 2), (2, 3)))
    later = ViewOfCopies(2, frozenset({1, 3}), ((1, 3), (3,)))
    parts = Parts(1, view, resend=1)
    parts.prepare_companion((T, 0), (0, 1), "w", 101)
    parts.on_layout(later)
    told = parts.on_message(3, tx.Finish(T, 0, 105))
    assert tx.Send(3, tx.BackupFinish(T, 0, 105)) in told, "the mutation"
    monkeypatch.undo()
    parts = Parts(1, view, resend=1)
    parts.prepare_companion((T, 0), (0, 1), "w", 101)
    parts.on_layout(later)
    asked = tx.BackupPrepare(T, 0, 101, (0, 1), "w", one_phase=False)
    assert parts.on_message(3, tx.Finish(T, 0, 105)) == [tx.Send(3, asked)]
    ended = parts.on_message(3, tx.BackupPrepared(T, 0))
    assert tx.Send(3, tx.BackupFinish(T, 0, 105)) in ended


def test_reads_of_the_other_member_without_validation_are_caught(monkeypatch: Patch) -> None:
    """The last part's own reads, on the member that decides."""
    original = Validation.conflict

    def conflict(self: Validation, address: Any, work: Any) -> Any:
        if address[0].near != self._core.number:
            work = type(work)(0, work.writes)
        return original(self, address, work)

    monkeypatch.setattr(Validation, "conflict", conflict)
    assert caught_in_shells()


def test_parts_that_others_may_write_meanwhile_are_caught(monkeypatch: Patch) -> None:
    original = AskedLast.begin

    def begin(self: AskedLast, *arguments: Any) -> bool:
        pending = self._shell.pending
        before = set(pending.parts)
        begun = original(self, *arguments)
        for address in set(pending.parts) - before:
            pending.remove(address)
        return begun

    monkeypatch.setattr(AskedLast, "begin", begin)
    assert caught_in_shells(5)


# --- single steps ---------------------------------------------------------------------------------


def view(*table: tuple[int, ...]) -> ViewOfCopies:
    return ViewOfCopies(1, frozenset({1, 2, 3}), table)


def test_which_part_decides() -> None:
    assert last_part(1, (0, 1), view((1, 2), (2, 3))) == 1
    assert last_part(1, (0, 1), view((2, 1), (1, 2))) == 0
    assert last_part(1, (0, 1, 2), view((1, 2), (1, 2), (2, 3))) == 2
    assert last_part(1, (0,), view((2, 1))) is None, "one part commits by itself"
    assert last_part(1, (0, 1), view((1, 2), (1, 2))) is None, "nobody else takes part"
    assert last_part(1, (0, 1), view((1, 3), (2, 3))) is None, "it does not keep the other one"
    assert last_part(1, (0, 1), view((1, 2, 3), (2, 3))) is None, "nor does it alone"
    assert last_part(1, (0, 1), view((1, 2), (2, 3, 1))) is None, "it has two backups"
    assert last_part(1, (0, 1, 2), view((1, 2), (2, 3), (2, 3))) is None, "two would decide"
    assert last_part(1, (0, 1, 2), view((1, 2), (2, 3), (3, 1))) is None, "as would two members"
    assert last_part(1, (271, 272), view()) is None, "each member has its copy of such a map"


def asked(last: Parts, *, keep: bool = True) -> list[tx.Effect]:
    """Member 2 gets the last part, 1, and keeps part 0."""
    kept = tx.BackupPrepare(T, 0, 101, (0, 1), "w", one_phase=False)
    out = last.keep_companion(kept) if keep else []
    return [*out, *last.on_message(1, tx.Prepare(T, (0, 1), {1: "v"}, True, (0,)))]


def test_one_message_brings_the_others_and_one_vote_ends_them() -> None:
    layout = view((1, 2), (2, 3))
    near = Near(1, T, {0: "w", 1: "v"}, layout, resend=1.0, last=1)
    first, second, backup = (Parts(number, layout, resend=1) for number in (1, 2, 3))
    first.prepare_companion((T, 0), (0, 1), "w", 101)
    near.begin_with_last(5.0)
    assert asked(second) == [tx.KeepHere(T, 0, 101, "w"), tx.PrepareHere(T, 1, "v")]
    (spread,) = second.prepared_here((T, 1), 102)
    assert isinstance(spread, tx.Send)
    assert spread.to == 3
    (*_, answer) = backup.on_message(2, spread.message)
    assert isinstance(answer, tx.Send)
    effects = second.on_message(3, answer.message)
    assert tx.ResolveHere(T, 0, 102, (0, 1)) in effects
    vote = tx.Vote(T, 1, 102, True, companions=(0,))
    assert effects[-1] == tx.Send(1, vote)
    report, finish = near.on_vote(6.0, vote)
    assert report == tx.Report(T, State.COMMITTED, 102)
    assert finish == tx.Send(1, tx.Finish(T, 0, 102, (2,)))
    effects = first.on_message(1, tx.Finish(T, 0, 102, (2,)))
    assert effects == [
        tx.ResolveHere(T, 0, 102, (0, 1)),
        tx.SettledHere(T, 0),
        tx.Send(1, tx.Finished(T, 0)),
    ]
    near.on_finished(tx.Finished(T, 0))
    assert near.done


# --- the straight steps beside the general ones ---------------------------------------------------

KEPT = tx.BackupPrepare(T, 0, 101, (0, 1), "w", one_phase=False)
LAST = tx.PrepareLast(T, (0, 1), 1, "v", (KEPT,))


def asked_member(*, straight: bool) -> tuple[Parts, tx.Effect]:
    """Member 2 when it has prepared the last part at 102, and what it has said."""
    second = Parts(2, view((1, 2), (2, 3)), resend=1)
    if straight:
        assert second.may_prepare_last(LAST)
        return second, second.prepare_last(LAST, 102)
    asked(second)
    (said,) = second.prepared_here((T, 1), 102)
    return second, said


def near_member() -> tuple[Near, Parts]:
    layout = view((1, 2), (2, 3))
    near, first = (
        Near(1, T, {0: "w", 1: "v"}, layout, resend=1.0, last=1),
        Parts(1, layout, resend=1),
    )
    first.prepare_companion((T, 0), (0, 1), "w", 101)
    near.begin_with_last(5.0)
    return near, first


def test_the_straight_steps_lead_to_the_same_states() -> None:
    (general, said), (short, told) = (asked_member(straight=way) for way in (False, True))
    assert said == told == tx.Send(3, tx.BackupPrepare(T, 1, 102, (0, 1), "v", one_phase=True))
    assert short._parts == general._parts
    effects = general.on_message(3, tx.BackupPrepared(T, 1))
    settled = short.settle_last((T, 1), 3)
    assert settled is not None
    assert short._parts == general._parts
    assert effects[-1] == tx.Send(1, settled.vote)
    applied = {effect[:2] for effect in effects if isinstance(effect, tx.ResolveHere)}
    assert applied == {address for address, _ in settled.ended} == {(T, 0), (T, 1)}
    ends = []
    for straight in (False, True):
        near, first = near_member()
        if straight:
            assert near.ends_with(settled.vote)
            assert first.settle_companions(settled.vote, 2) is not None
            report = near.committed_with_last(settled.vote.timestamp)
        else:
            report, finish = near.on_vote(6.0, settled.vote)
            assert isinstance(finish, tx.Send)
            first.on_message(1, finish.message)
            near.on_finished(tx.Finished(T, 0))
        assert near.done
        ends.append((report, near.commit_timestamp, first._parts))
    assert ends[0] == ends[1]


def test_nothing_is_prepared_straight_of_what_is_known() -> None:
    for known in (KEPT, tx.BackupPrepare(T, 1, 102, (0, 1), "v", one_phase=True)):
        second = Parts(2, view((1, 2), (2, 3)), resend=1)
        second.on_message(1, known)
        assert not second.may_prepare_last(LAST)
    for layout in (view((1, 2), (3, 2)), view((1, 2), (2,)), view((1, 2), (2, 1, 3))):
        assert not Parts(2, layout, resend=1).may_prepare_last(LAST), "another number of copies"
    forgetful = Parts(2, view((1, 2), (2, 3)), resend=1)
    forgetful.forget(1, T.began + 1)
    assert not forgetful.may_prepare_last(LAST)


def test_a_last_part_settles_straight_when_its_only_backup_has_it() -> None:
    for way in (False, True):
        second, _ = asked_member(straight=way)
        assert second.settle_last((T, 1), 1) is None, "that is no backup of it"
        assert second.settle_last((T, 0), 3) is None, "that part is not the last one"
        assert second.pending == [(T, 0), (T, 1)], "nothing has changed"
        assert second.settle_last((T, 1), 3) is not None
        assert second.settle_last((T, 1), 3) is None, "an answer that comes twice"
    for later in (((1, 2), (3, 2)), ((1, 2), (2, 1, 3)), ((2, 1), (2, 1))):
        second, _ = asked_member(straight=True)
        second.on_layout(ViewOfCopies(2, frozenset({1, 2, 3}), later))
        assert second.settle_last((T, 1), 3) is None
    second, _ = asked_member(straight=True)
    second.on_layout(ViewOfCopies(2, frozenset({2, 3}), ((2,), (2, 3))))
    assert second.settle_last((T, 1), 3) is None, "the near member is lost: others may ask"


def test_the_near_member_ends_straight_what_its_only_backup_has_ended() -> None:
    vote = tx.Vote(T, 1, 102, True, companions=(0,))
    near, first = near_member()
    for other in (vote._replace(companions=()), vote._replace(committed=False)):
        assert not near.ends_with(other)
    assert first.settle_companions(vote, 3) is None, "that is not the backup"
    first.on_layout(ViewOfCopies(2, frozenset({1, 2, 3}), ((1, 2, 3), (2, 3))))
    assert first.settle_companions(vote, 2) is None, "another copy is being made"
    assert first.pending == [(T, 0)]


def test_a_straight_decision_before_it_is_on_the_backup_is_caught(monkeypatch: Patch) -> None:
    original = AskedLast._prepare

    def prepare(self: AskedLast, message: tx.PrepareLast, parts: Parts) -> int | None:
        rows = original(self, message, parts)
        if rows is not None:
            kept = tx.BackupPrepared(message.transaction, message.partition)
            (backup,) = parts.layout.backups(message.partition)
            self._settle(backup, kept, parts)
        return rows

    monkeypatch.setattr(AskedLast, "_prepare", prepare)
    assert caught_in_shells(17)


def test_a_straight_end_of_parts_that_their_backup_has_not_ended_is_caught(
    monkeypatch: Patch,
) -> None:
    """The near member believes any committed vote, and the keeper ends nothing."""
    original = Parts.settle_last

    def settle_last(self: Parts, address: Any, backup: int) -> Any:
        settled = original(self, address, backup)
        if settled is None:
            return None
        for kept, part in settled.ended[1:]:
            self._end(kept, part, None)
        return settled._replace(ended=settled.ended[:1])

    monkeypatch.setattr(Parts, "settle_last", settle_last)
    assert caught_in_shells()


def test_a_last_part_waits_for_others_that_were_not_kept() -> None:
    second = Parts(2, view((1, 2), (2, 3)), resend=1)
    assert asked(second, keep=False) == []
    kept = tx.BackupPrepare(T, 0, 101, (0, 1), "w", one_phase=False)
    second.refuse_to_keep(1, kept, OutOfMemory("no room"))
    assert asked(second, keep=False) == [], "nor after it was refused"


def test_a_donor_leaves_it_to_the_others_whether_its_last_part_commits() -> None:
    second = Parts(2, view((1, 2), (2, 3)), resend=1)
    asked(second)
    second.prepared_here((T, 1), 102)
    (given,) = second.given({1})
    assert (given.state, given.one_phase) == (State.PREPARED, False)
    alone = tx.TransactionId(200, 2)
    second.prepare_alone((alone, 1), "v", 200)
    assert [part.one_phase for part in second.given({1})] == [False, True]


def test_a_refusal_of_the_last_part_rolls_the_others_back() -> None:
    layout = view((1, 2), (2, 3))
    near = Near(1, T, {0: "w", 1: "v"}, layout, resend=1.0, last=1)
    near.begin_with_last(5.0)
    refusal = SerializationFailure("a key has changed")
    *finishes, report = near.on_vote(6.0, tx.Vote(T, 1, refusal=refusal))
    assert finishes == [tx.Send(1, tx.Finish(T, 0, None)), tx.Send(2, tx.Finish(T, 1, None))]
    assert report == tx.Report(T, State.ROLLED_BACK, cause=refusal)


def test_a_timeout_asks_the_last_part_first() -> None:
    layout, late = view((1, 2), (2, 3)), SerializationFailure("late")
    ask = tx.Send(2, tx.Inquire(T, 1, asking=1))
    for state in (State.ROLLED_BACK, State.COMMITTED):
        near = Near(1, T, {0: "w", 1: "v"}, layout, resend=1.0, last=1)
        near.begin_with_last(5.0)
        assert near.rollback(5.5, late) == [ask]
        assert near.on_tick(7.0) == [ask], "until it is answered"
        out = near.on_told(8.0, tx.Told(T, 1, 1, state, 102))
        ends = [effect for effect in out if isinstance(effect, tx.Report)]
        assert [end.state for end in ends] == [state]
    second = Parts(2, layout, resend=1)
    assert second.on_message(1, ask.message)[0] == tx.Send(3, tx.BackupFinish(T, 1, None))
    assert not [e for e in asked(second) if isinstance(e, tx.PrepareHere)], "refused for good"


def test_the_common_backup_of_all_parts_commits_them_at_once() -> None:
    layout = view((1, 2), (1, 2))
    assert common_backup(1, (0, 1), layout) == 2
    others = (((1, 2), (1, 3)), ((1, 2), (2, 1)), ((1,), (1,)), ((1, 2, 3), (1, 2, 3)))
    for copies in others:
        assert common_backup(1, (0, 1), view(*copies)) is None
    near = Near(1, T, {0: "w", 1: "v"}, layout, resend=1.0)
    first, second = Parts(1, layout, resend=1), Parts(2, layout, resend=1)
    for partition, work in enumerate("wv"):
        first.prepare_companion((T, partition), (0, 1), work, 101)
    near.begin_with_last(5.0)
    message = tx.KeepAll(T, 101, {0: "w", 1: "v"})
    assert second.keep_all(message)
    assert not second.keep_all(message), "it came twice"
    assert second.has_kept_all(message)
    report, *finishes = near.on_kept_all(6.0, 2, 101)
    assert report == tx.Report(T, State.COMMITTED, 101)
    for send in finishes:
        assert isinstance(send, tx.Send)
        (resolved, settled, _) = first.on_message(1, send.message)
        assert isinstance(resolved, tx.ResolveHere)
        assert isinstance(settled, tx.SettledHere)
    for partition in (0, 1):
        near.on_finished(tx.Finished(T, partition))
    assert near.done


def test_a_common_backup_that_knows_one_part_keeps_none_at_once() -> None:
    second = Parts(2, view((1, 2), (1, 2)), resend=1)
    second.on_message(1, tx.BackupPrepare(T, 0, 101, (0, 1), "w", one_phase=False))
    message = tx.KeepAll(T, 101, {0: "w", 1: "v"})
    assert not second.keep_all(message)
    assert not second.has_kept_all(message)
    assert second.pending == [(T, 0)]


def test_a_lost_request_is_made_again_when_the_others_are_prepared() -> None:
    layout = view((1, 2), (2, 3))
    near = Near(1, T, {0: "w", 1: "v"}, layout, resend=1.0, last=1)
    near.begin_with_last(5.0)
    assert near.on_tick(7.0) == [tx.Send(1, tx.Prepare(T, (0, 1), {0: "w"}))]
    assert near.on_vote(7.1, tx.Vote(T, 0, 101)) == []
    assert near.on_tick(10.0) == [tx.Send(2, tx.Prepare(T, (0, 1), {1: "v"}, True))]
