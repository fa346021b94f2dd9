"""A transaction of one part on the primary that is its near member as well: the short way takes the
machines to the same states, with the same messages, as asking itself does."""

from __future__ import annotations

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
    told = []
    for way in (long_way, short_way):
        near, parts, effects = way(layout(1, *copies))
        said = [str(effect) for effect in effects]
        if len(copies) > 1:
            effects = parts.on_message(2, tx.BackupPrepared(T, 0))
            said += [str(effect) for effect in effects]
        (vote,) = [e.message for e in effects if isinstance(e, tx.Send)]
        assert isinstance(vote, tx.Vote)
        said += [str(effect) for effect in near.on_vote(6.0, vote)]
        assert near.done
        told.append((said, near.state, near.commit_timestamp, str(parts)))
    assert told[0] == told[1]
    assert told[0][1:3] == (tx.State.COMMITTED, AT)


def test_another_primary_is_asked_when_this_member_is_none_any_more() -> None:
    asked = []
    for way in (long_way, short_way):
        near, parts, _ = way(layout(1, 1, 2))
        view = layout(2, 2, 3)
        effects = [*parts.on_layout(view), *near.on_layout(7.0, view)]
        asked.append([str(effect) for effect in effects])
        refused = tx.Vote(T, 0, refusal=SerializationFailure("its key has changed"))
        reports = [e for e in near.on_vote(8.0, refused) if isinstance(e, tx.Report)]
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
