"""Parts whose timestamp was given out before another member was the primary: that one may have
served reads above it, so nothing commits at it any more, unless the near member counts on it."""

from __future__ import annotations

import pytest
from cluster_of_copies import ViewOfCopies, run

from remuda.errors import SerializationFailure
from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.parts import Parts
from remuda.transaction.states import Effect, State, TransactionId

T = TransactionId(100, near=9)
KEEP = tx.BackupPrepare(T, 0, 7, (0, 1), "w", one_phase=False)


def layout(number: int, *copies: int, near: bool = True) -> ViewOfCopies:
    """Partition 0 is kept by ``copies``, partition 1 by member 5."""
    members = {*copies, 5, 9} if near else {*copies, 5}
    return ViewOfCopies(number, frozenset(members), (copies, (5,)))


def told(effects: list[Effect]) -> list[str]:
    return [str(effect) for effect in effects]


def kept_by_3() -> Parts:
    """Member 1 prepares the part, and only member 3 hears of it. Then 2 is the primary."""
    parts = Parts(3, layout(1, 1, 2, 3), resend=1.0)
    parts.on_message(1, KEEP)
    parts.on_layout(layout(2, 2, 3, 4))
    return parts


def prepared_by_1() -> Parts:
    """No backup has answered when member 2 becomes the primary."""
    parts = Parts(1, layout(1, 1, 2, 3), resend=1.0)
    parts.on_message(9, tx.Prepare(T, (0, 1), {0: "w"}))
    parts.prepared_here((T, 0), 7)
    parts.on_layout(layout(2, 2, 1, 3))
    return parts


def test_a_part_is_prepared_anew_when_nobody_has_voted_for_it() -> None:
    parts = kept_by_3()
    assert told(parts.on_layout(layout(3, 3, 4))) == []
    assert parts.on_tick(10.0) == []
    anew = parts.on_message(9, tx.Prepare(T, (0, 1), {0: "w"}))
    assert told(anew) == ["prepare here 9:100 part 0"]
    assert told(parts.prepared_here((T, 0), 50)) == ["to 4: keep 9:100 part 0 at 50"]
    assert told(parts.on_message(4, tx.BackupPrepared(T, 0))) == [
        "to 9: prepared 9:100 part 0 at 50"
    ]


def test_a_part_that_meets_others_meanwhile_is_refused_when_no_copy_keeps_it() -> None:
    parts = kept_by_3()
    parts.on_layout(layout(3, 3, 4))
    parts.on_message(9, tx.Prepare(T, (0, 1), {0: "w"}))
    assert told(parts.refused_here((T, 0), SerializationFailure("changed"))) == [
        "resolve here 9:100 part 0 rolled back",
        "to 4: backup finish 9:100 part 0 rolled back",
    ]
    assert told(parts.on_message(4, tx.BackupFinished(T, 0))) == [
        "to 9: refuse 9:100 part 0: changed"
    ]


def test_a_part_ends_as_its_near_member_says() -> None:
    """It has the vote of the first primary: its user may have been told of the commit."""
    parts = kept_by_3()
    parts.on_layout(layout(3, 3, 4))
    assert "resolve here 9:100 part 0 committed at 7" in told(
        parts.on_message(9, tx.Finish(T, 0, 7))
    )


def test_a_part_that_every_primary_knew_keeps_its_timestamp() -> None:
    parts = kept_by_3()
    parts.on_message(2, KEEP)
    assert told(parts.on_layout(layout(3, 3, 4))) == ["to 4: keep 9:100 part 0 at 7"]


def test_a_backup_that_is_promoted_at_once_keeps_the_timestamp() -> None:
    parts = Parts(3, layout(1, 1, 3, 4), resend=1.0)
    parts.on_message(1, KEEP)
    assert told(parts.on_layout(layout(2, 3, 4))) == ["to 4: keep 9:100 part 0 at 7"]


def test_views_that_were_never_seen_may_have_had_another_primary() -> None:
    parts = Parts(1, layout(1, 1, 2), resend=1.0)
    parts.on_message(9, tx.Prepare(T, (0, 1), {0: "w"}))
    parts.prepared_here((T, 0), 7)
    assert parts.on_layout(layout(3, 1, 2)) == []
    anew = parts.on_message(9, tx.Prepare(T, (0, 1), {0: "w"}))
    assert told(anew) == ["prepare here 9:100 part 0"]


def test_without_its_near_member_a_part_that_nobody_counts_on_is_rolled_back() -> None:
    parts = prepared_by_1()
    assert told(parts.on_layout(layout(3, 1, 3, near=False))) == [
        "resolve here 9:100 part 0 rolled back",
        "to 3: backup finish 9:100 part 0 rolled back",
    ]


def test_without_its_near_member_a_part_that_may_be_decided_goes_on() -> None:
    parts = kept_by_3()
    assert told(parts.on_layout(layout(3, 3, 4, near=False))) == ["to 4: keep 9:100 part 0 at 7"]


def test_a_donor_gives_no_part_that_nobody_counts_on() -> None:
    (given,) = prepared_by_1().given([0])
    assert (given.state, given.work) == (State.ROLLED_BACK, None)
    (given,) = kept_by_3().given([0])
    assert (given.state, given.timestamp, given.work) == (State.PREPARED, 7, "w")


def test_a_part_with_two_backups_commits_in_two_phases() -> None:
    """Its near member has counted one. In one phase, a backup would show what the other one, which
    may be promoted, knows nothing of."""
    near = Near(9, T, {0: "w"}, layout(1, 1, 2), one_phase=True, resend=1.0)
    ((to, prepare),) = near.prepare(0.0)
    assert (to, prepare.one_phase) == (1, True)
    parts = Parts(1, layout(2, 1, 2, 3), resend=1.0)
    parts.on_message(9, prepare)
    assert told(parts.prepared_here((T, 0), 7)) == [
        "to 2: keep 9:100 part 0 at 7",
        "to 3: keep 9:100 part 0 at 7",
    ]
    parts.on_message(2, tx.BackupPrepared(T, 0))
    (vote,) = parts.on_message(3, tx.BackupPrepared(T, 0))
    assert told(near.on_vote(1.0, vote.message)) == [
        "report 9:100 committed",
        "to 1: finish 9:100 part 0 committed at 7",
    ]


def test_a_refusal_is_certain_when_no_primary_was_asked_before() -> None:
    """A backup may have kept the part that an earlier primary had prepared, and be promoted."""
    near = Near(9, T, {0: "w"}, layout(1, 1, 2, 3), resend=1.0)
    near.prepare(0.0)
    near.on_layout(1.0, layout(2, 2, 3))
    refused = tx.Vote(T, 0, refusal=SerializationFailure("a conflict"))
    assert told(near.on_vote(2.0, refused)) == ["to 2: finish 9:100 part 0 rolled back"]
    assert told(near.on_finished(tx.Finished(T, 0))) == ["report 9:100 rolled back"]


def test_a_user_who_was_told_of_a_rollback_finds_none_of_its_writes() -> None:
    """A seed in which two members are lost and the last one had kept the refused part."""
    run(5171)


def test_parts_that_never_lapse_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parts, "_lapse", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_part_is_prepared_anew_when_nobody_has_voted_for_it()
