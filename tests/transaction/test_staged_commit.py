"""Staged two-phase commit: golden event orders."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.errors import RemudaError, UniqueViolation
from remuda.transaction import staged_commit as tx

DUPLICATE = UniqueViolation("a row with this key exists")

COORDINATOR: dict[str, list[tx.Event]] = {
    "commit": [
        tx.Begin(),
        tx.Voted(2, 20, 5),
        tx.Voted(1, 30, 4),
        tx.Voted(3, 10, 3),
        tx.Finished(1),
        tx.Finished(3),
        tx.Finished(2),
    ],
    "refusal": [
        tx.Begin(),
        tx.Voted(1, 10, 4),
        tx.Refused(2, DUPLICATE),
        tx.Voted(3, 12, 1),
        tx.Finished(1),
        tx.Finished(2),
        tx.Finished(3),
    ],
    "participant_lost_before_vote": [
        tx.Begin(),
        tx.Voted(1, 10, 4),
        tx.MemberLost(3, "connection reset"),
        tx.Voted(2, 11, 4),
        tx.Finished(1),
        tx.Finished(2),
    ],
    "participant_lost_after_decision": [
        tx.Begin(),
        tx.Voted(1, 10, 4),
        tx.Voted(2, 11, 4),
        tx.Voted(3, 12, 4),
        tx.Finished(1),
        tx.MemberLost(2, "connection reset"),
        tx.Finished(3),
    ],
    "lost_and_repeated_messages": [
        tx.Begin(),
        tx.Voted(1, 10, 4),
        tx.Tick(),
        tx.Voted(1, 10, 4),
        tx.Voted(2, 11, 4),
        tx.Voted(3, 12, 4),
        tx.Tick(),
        tx.Finished(1),
        tx.Finished(1),
        tx.Tick(),
        tx.Finished(2),
        tx.Finished(3),
        tx.Tick(),
    ],
    "stalled_while_the_others_aborted": [
        tx.Begin(),
        tx.Voted(1, 10, 4),
        tx.Voted(2, 11, 4),
        tx.Voted(3, 12, 4),
        tx.Finished(1),
        tx.Finished(2, contradicts=True),
        tx.Finished(3, contradicts=True),
    ],
    "given_up_by_a_participant": [
        tx.Begin(),
        tx.Voted(1, 10, 4),
        tx.StatusAsked(1),
        tx.Voted(2, 11, 4),
        tx.Voted(3, 12, 4),
        tx.StatusAsked(1),
        tx.Finished(1),
        tx.Finished(2),
        tx.Finished(3),
    ],
}

BACKED = ((1, 2), (2, 3), (3, 1))
COORDINATOR_WITH_BACKUPS: dict[str, list[tx.Event]] = {
    "commit": [
        tx.Begin(),
        tx.Voted(2, 20, 5),
        tx.Voted(1, 30, 4),
        tx.Voted(3, 10, 3),
        tx.Kept(1),
        tx.Kept(3),
        tx.Tick(),
        tx.Kept(2),
        tx.Finished(1),
        tx.Finished(3),
        tx.Finished(2),
    ],
    "backup_refuses": [
        tx.Begin(),
        tx.Voted(2, 20, 5),
        tx.Voted(1, 30, 4),
        tx.Voted(3, 10, 3),
        tx.Refused(3, DUPLICATE),
        tx.Kept(1),
        tx.Finished(1),
        tx.Finished(2),
        tx.Finished(3),
    ],
    "lost_while_it_keeps": [
        tx.Begin(),
        tx.Voted(2, 20, 5),
        tx.Voted(1, 30, 4),
        tx.Voted(3, 10, 3),
        tx.Kept(1),
        tx.MemberLost(3, "connection reset"),
        tx.Finished(1),
        tx.Finished(2),
    ],
}

ASK = tx.PrepareAsked(1, (1, 2, 3))
ASK_BACKED = tx.PrepareAsked(1, (1, 2, 3), BACKED)
KEEP = tx.KeepAsked(1, (1, 2, 3), BACKED, 30)
PARTICIPANT: dict[str, list[tx.Event]] = {
    "commit": [ASK, tx.PreparedHere(20, 5), tx.FinishAsked(30)],
    "abort": [ASK, tx.PreparedHere(20, 5), tx.FinishAsked(None)],
    "abort_before_prepare": [tx.FinishAsked(None), ASK],
    "refusal": [ASK, tx.RefusedHere(DUPLICATE), tx.FinishAsked(None), ASK],
    "repeated_messages": [
        ASK,
        tx.PreparedHere(20, 5),
        ASK,
        tx.FinishAsked(30),
        tx.FinishAsked(30),
        ASK,
    ],
    "coordinator_lost_nobody_committed": [
        ASK,
        tx.PreparedHere(20, 5),
        tx.MemberLost(1, "connection reset"),
        tx.FinishAsked(30),
        tx.StatusTold(3, tx.Outcome.PREPARED, None, 1),
        tx.FinishAsked(30),
    ],
    "told_to_commit_what_was_aborted": [
        ASK,
        tx.PreparedHere(20, 5),
        tx.MemberLost(1, "no heartbeat"),
        tx.StatusTold(3, tx.Outcome.ABORTED, None, 1),
        tx.FinishAsked(30),
    ],
    "coordinator_lost_one_committed": [
        ASK,
        tx.PreparedHere(20, 5),
        tx.MemberLost(1, "connection reset"),
        tx.Tick(),
        tx.StatusTold(3, tx.Outcome.COMMITTED, 30, 1),
        tx.StatusAsked(3),
    ],
    "coordinator_and_others_lost": [
        ASK,
        tx.PreparedHere(20, 5),
        tx.MemberLost(3, "connection reset"),
        tx.MemberLost(1, "connection reset"),
    ],
    "coordinator_lost_before_prepare": [tx.MemberLost(1, "connection reset"), ASK],
    "backups_commit": [ASK_BACKED, tx.PreparedHere(20, 5), KEEP, tx.KeptHere(), tx.FinishAsked(30)],
    "backup_refused": [ASK_BACKED, tx.PreparedHere(20, 5), KEEP, tx.RefusedHere(DUPLICATE), KEEP],
    "backups_all_kept": [
        ASK_BACKED,
        tx.PreparedHere(20, 5),
        KEEP,
        tx.KeptHere(),
        tx.MemberLost(1, "connection reset"),
        tx.FinishAsked(None),
        tx.StatusTold(3, tx.Outcome.KEPT, 30, 1),
        tx.StatusAsked(3, (1,)),
    ],
    "backups_not_all_kept": [
        ASK_BACKED,
        tx.PreparedHere(20, 5),
        KEEP,
        tx.KeptHere(),
        tx.MemberLost(1, "connection reset"),
        tx.StatusTold(3, tx.Outcome.PREPARED, None, 1),
    ],
    "backups_a_part_is_lost": [
        ASK_BACKED,
        tx.PreparedHere(20, 5),
        KEEP,
        tx.KeptHere(),
        tx.MemberLost(1, "connection reset"),
        tx.MemberLost(3, "connection reset"),
    ],
    "backups_told_of_another_loss": [
        tx.KeepAsked(1, (1, 2, 3, 4), ((3, 2), (4, 2)), 30),
        tx.KeptHere(),
        tx.MemberLost(1, "connection reset"),
        tx.StatusTold(4, tx.Outcome.PREPARED, None, 1),
        tx.StatusAsked(3, (1, 4)),
        tx.StatusTold(4, tx.Outcome.PREPARED, None, 1),
        tx.StatusTold(3, tx.Outcome.PREPARED, None, 2),
    ],
    "asked_while_staging": [tx.StatusAsked(3), ASK],
    "asked_while_prepared": [
        ASK,
        tx.PreparedHere(20, 5),
        tx.StatusAsked(3),
        tx.FinishAsked(30),
        tx.StatusTold(3, tx.Outcome.PREPARED, None, 1),
        tx.StatusTold(1, tx.Outcome.ABORTED, None, 1),
    ],
}


def _text(value: object) -> str:
    text = repr(value)
    for error in (RemudaError,):
        if isinstance(getattr(value, "error", None), error):
            text = text.replace(repr(value.error), f"{type(value.error).__name__}: {value.error}")
    return (
        text.replace("<Outcome.", "")
        .replace(": 'prepared'>", "")
        .replace(": 'committed'>", "")
        .replace(": 'aborted'>", "")
        .replace(": 'unknown'>", "")
        .replace(": 'kept'>", "")
        .replace(", parts=()", "")
    )


def _script(machine: Any, events: list[tx.Event]) -> str:
    """Each event with the effects below it; time goes on by more than the resend time."""
    lines = []
    for index, event in enumerate(events):
        lines.append(_text(event))
        effects = machine.step(index * 1.5 * tx.RESEND_AFTER, event)
        lines += [f"    {_text(effect)}" for effect in effects]
    lines.append(f"-> {machine.phase.value}")
    return "\n".join(lines)


@pytest.mark.parametrize("name", COORDINATOR)
def test_coordinator_scripts(name: str, golden: Any) -> None:
    machine = tx.Coordinator("1-a", (3, 1, 2))
    golden.check(f"transaction/coordinator_{name}.golden", _script(machine, COORDINATOR[name]))


@pytest.mark.parametrize("name", COORDINATOR_WITH_BACKUPS)
def test_coordinator_scripts_with_backups(name: str, golden: Any) -> None:
    machine = tx.Coordinator("1-a", (3, 1, 2), BACKED)
    script = _script(machine, COORDINATOR_WITH_BACKUPS[name])
    golden.check(f"transaction/coordinator_backups_{name}.golden", script)


@pytest.mark.parametrize("name", PARTICIPANT)
def test_participant_scripts(name: str, golden: Any) -> None:
    machine = tx.Participant(2, "1-a")
    golden.check(f"transaction/participant_{name}.golden", _script(machine, PARTICIPANT[name]))
