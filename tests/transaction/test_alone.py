"""A transaction of one part on the primary that is its near member as well: the short way takes the
machines to the same states, with the same messages, as asking itself does."""

from __future__ import annotations

from random import Random

import pytest
from cluster_of_copies import ViewOfCopies

from remuda.errors import SerializationFailure
from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.parts import Parts

ME = 1
T = tx.TransactionId(100, ME)
ADDRESS = (T, 0)
AT = 107


def layout(number: int, *copies: int) -> ViewOfCopies:
    return ViewOfCopies(number, frozenset({1, 2, 3}), (copies,))


def long_way(view: ViewOfCopies) -> tuple[Near, Parts, list[tx.Effect]]:
    near, parts = Near(ME, T, {0: "w"}, view, one_phase=True, resend=1.0), Parts(ME, view, resend=1)
    (asked,) = near.prepare(5.0)
    assert isinstance(asked, tx.Send)
    assert asked.to == ME
    assert parts.on_message(ME, asked.message) == [tx.PrepareHere(T, 0, "w")]
    return near, parts, parts.prepared_here(ADDRESS, AT)


def short_way(view: ViewOfCopies) -> tuple[Near, Parts, list[tx.Effect]]:
    near, parts = Near(ME, T, {0: "w"}, view, one_phase=True, resend=1.0), Parts(ME, view, resend=1)
    near.begin_alone(5.0)
    return near, parts, parts.prepare_alone(ADDRESS, "w", AT)


@pytest.mark.parametrize("copies", [(1,), (1, 2)])
def test_both_ways_end_the_same(copies: tuple[int, ...]) -> None:
    ends = []
    for way in (long_way, short_way):
        near, parts, effects = way(layout(1, *copies))
        backups = copies[1:]
        asked = [str(effect) for effect in effects if backups]
        if way is short_way:
            part = parts.settle_alone(ADDRESS, backups)
            assert part is not None
            applied = part.prepare_timestamp, part.partitions
            report = near.committed_alone(AT)
        else:
            if backups:
                effects = parts.on_message(2, tx.BackupPrepared(T, 0))
            (end,) = (effect for effect in effects if isinstance(effect, tx.ResolveHere))
            applied = end.timestamp, end.partitions
            assert tx.SettledHere(*ADDRESS) in effects
            (vote,) = (effect.message for effect in effects if isinstance(effect, tx.Send))
            assert isinstance(vote, tx.Vote)
            (report,) = near.on_vote(6.0, vote)
        assert near.done
        known = parts._parts[ADDRESS]
        ends.append((asked, applied, report, near.state, near.commit_timestamp, known))
    assert ends[0] == ends[1]
    assert ends[0][3:5] == (tx.State.COMMITTED, AT)


@pytest.mark.parametrize("kept", [(), (3,), (2, 3)])
def test_the_primary_commits_when_all_its_backups_have(kept: tuple[int, ...]) -> None:
    _, parts, _ = short_way(layout(1, 1, 2))
    assert parts.settle_alone(ADDRESS, kept) is None
    assert parts.pending == [ADDRESS]
    assert parts.settle_alone(ADDRESS, (2,)) is not None
    assert parts.settle_alone(ADDRESS, (2,)) is None, "an answer that comes twice"


def test_an_answer_after_another_view_takes_the_general_way() -> None:
    for copies in ((2, 1), (1, 3), (1, 2, 3)):
        _, parts, _ = short_way(layout(1, 1, 2))
        parts.on_layout(layout(2, *copies))
        assert parts.settle_alone(ADDRESS, (2,)) is None
        assert parts.pending == [ADDRESS]


KEPT = tx.BackupPrepare(T, 0, AT, (0,), "w", one_phase=True)


def test_a_backup_keeps_a_part_as_the_general_way_does() -> None:
    general, short = (Parts(2, layout(1, 1, 2), resend=1) for _ in range(2))
    effects = general.on_message(1, KEPT)
    answer = tx.Send(1, tx.BackupPrepared(T, 0))
    assert tx.ResolveHere(T, 0, AT, (0,)) in effects
    assert answer in effects
    assert short.keep_alone(KEPT)
    assert short._parts == general._parts
    assert not short.keep_alone(KEPT), "sent twice"
    assert short.on_message(1, KEPT) == general.on_message(1, KEPT) == [answer]


def test_a_backup_keeps_nothing_of_what_it_has_forgotten() -> None:
    parts = Parts(2, layout(1, 1, 2), resend=1)
    parts.forget(ME, T.began + 1)
    assert not parts.keep_alone(KEPT)
    assert not len(parts)


def test_a_near_member_reports_once() -> None:
    near, _, _ = short_way(layout(1, 1, 2))
    assert near.committed_alone(AT) == tx.Report(T, tx.State.COMMITTED, AT)
    assert near.committed_alone(AT) is None


def test_another_primary_is_asked_when_this_member_is_none_any_more() -> None:
    asked = []
    for way in (long_way, short_way):
        near, parts, _ = way(layout(1, 1, 2))
        view = layout(2, 2, 3)
        effects = [*parts.on_layout(view), *near.on_layout(7.0, view)]
        asked.append([str(effect) for effect in effects])
        refused = tx.Vote(T, 0, refusal=SerializationFailure("its key has changed"))
        effects = [*near.on_vote(8.0, refused), *near.on_finished(tx.Finished(T, 0))]
        reports = [e for e in effects if isinstance(e, tx.Report)]
        assert [report.state for report in reports] == [tx.State.ROLLED_BACK]
    assert asked[0] == asked[1] == ["to 2: prepare 1:100 parts [0] in one phase"]


def test_what_is_not_answered_is_sent_again() -> None:
    sent = []
    for way in (long_way, short_way):
        near, parts, effects = way(layout(1, 1, 2))
        assert near.on_tick(5.5) == []
        (again,) = near.on_tick(6.0)
        assert isinstance(again, tx.Send)
        repeated = parts.on_message(ME, again.message)
        assert [str(e) for e in repeated] == [str(e) for e in effects]
        sent.append([str(e) for e in repeated])
    assert sent[0] == sent[1] == ["to 2: keep 1:100 part 0 at 107 in one phase"]


# --- the same events both ways -----------------------------------------------------------------


class Copies:
    """The machines of two members over one part, and what they have done."""

    def __init__(self, *, short: bool) -> None:
        view = layout(1, 1, 2)
        self.short = short
        self.members = {number: Parts(number, view, resend=1.0) for number in (1, 2, 3)}
        self.near = Near(ME, T, {0: "w"}, view, one_phase=True, resend=1.0)
        self.near.begin_alone(5.0)
        self.done: list[str] = []
        self.carry_out(ME, self.members[ME].prepare_alone(ADDRESS, "w", AT))

    def hear(self, me: int, sender: int, message: tx.Message) -> None:
        parts = self.members[me]
        if self.short and isinstance(message, tx.BackupPrepare) and parts.keep_alone(message):
            self.done.append(f"{me} applies at {message.timestamp}")
            self.done.append(f"{me} to {sender}: {tx.BackupPrepared(*ADDRESS)}")
        elif (
            self.short
            and isinstance(message, tx.BackupPrepared)
            and (part := parts.settle_alone(ADDRESS, (sender,))) is not None
        ):
            self.done.append(f"{me} applies at {part.commit_timestamp}")
            report = self.near.committed_alone(part.prepare_timestamp)
            vote = tx.Vote(*ADDRESS, part.prepare_timestamp, committed=True)
            told = self.near.on_vote(6.0, vote) if report is None else [report]
            self.done += [str(each) for each in told]
        else:
            self.carry_out(me, parts.on_message(sender, message))

    def carry_out(self, me: int, effects: list[tx.Effect]) -> None:
        for effect in effects:
            match effect:
                case tx.ResolveHere(timestamp=timestamp):
                    self.done.append(f"{me} applies at {timestamp}")
                case tx.Send(to, tx.Vote() as vote) if to == ME:
                    self.done += [str(each) for each in self.near.on_vote(6.0, vote)]
                case tx.Send(to, message):
                    self.done.append(f"{me} to {to}: {message}")
                case tx.PrepareHere():
                    refusal = SerializationFailure("its key has changed")
                    self.carry_out(me, self.members[me].refused_here(ADDRESS, refusal))

    def see(self, view: ViewOfCopies) -> None:
        for number, parts in self.members.items():
            self.carry_out(number, parts.on_layout(view))
        self.carry_out(ME, self.near.on_layout(7.0, view))

    @property
    def state(self) -> object:
        near = self.near
        parts = {number: parts._parts for number, parts in self.members.items()}
        return near.state, near.done, near.commit_timestamp, parts, self.done


@pytest.mark.parametrize("seed", range(200))
def test_any_order_of_events_ends_both_ways_the_same(seed: int) -> None:
    general, short = Copies(short=False), Copies(short=True)
    chance = Random(seed)
    number = 1
    for _ in range(12):
        event, sender = chance.randrange(8), chance.choice((1, 1, 1, 3))
        rows = chance.choice([(1, 2), (1, 2), (2, 1), (1, 3), (1, 2, 3), (1,), (2,)])
        below = chance.choice((T.began, T.began + 1))
        number += 1
        for copies in (general, short):
            if event < 3:
                copies.hear(2, sender, KEPT)
            elif event < 6:
                copies.hear(1, 2, tx.BackupPrepared(*ADDRESS))
            elif event == 6:
                copies.see(layout(number, *rows))
            else:
                copies.carry_out(2, copies.members[2].forget(ME, below))
        assert short.state == general.state
