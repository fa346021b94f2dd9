"""Staged two-phase commit in simulation: all rows or none, and mutations that must be noticed."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_of_staged_rows import simulate

from remuda.transaction import staged_commit as tx


@pytest.mark.parametrize("first", range(0, 2000, 250))
def test_all_or_nothing_at_every_timestamp(first: int) -> None:
    for seed in range(first, first + 250):
        simulate(seed)


def test_the_simulation_notices_a_commit_timestamp_that_is_too_low(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutation of the rule: the smallest instead of the largest prepare timestamp."""

    def voted(self: tx.Coordinator, now: float, member: int, vote: tx.Voted) -> list[tx.Effect]:
        self._votes[member] = vote
        self._waiting.discard(member)
        if self._waiting:
            return []
        self.commit_timestamp = min(vote.timestamp for vote in self._votes.values())
        return self._decide(now, None)

    monkeypatch.setattr(tx.Coordinator, "_voted", voted)
    with pytest.raises(AssertionError):
        for seed in range(500):
            simulate(seed)


def test_the_simulation_notices_a_missing_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: whoever was asked still obeys the old coordinator."""
    original = tx.Participant._finish

    def finish(self: tx.Participant, timestamp: int | None) -> list[tx.Effect]:
        if self.phase is tx.ParticipantPhase.DECIDING:
            return [*self._resolve(timestamp), tx.TellFinished()]
        return original(self, timestamp)

    monkeypatch.setattr(tx.Participant, "_finish", finish)
    with pytest.raises(AssertionError):
        for seed in range(20_000):
            simulate(seed)


def _caught(stop: int, start: int = 0) -> None:
    with pytest.raises(AssertionError):
        for seed in range(start, stop):
            simulate(seed)


def test_the_simulation_notices_backups_that_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the primaries' votes are enough."""
    monkeypatch.setattr(tx.Coordinator, "keepers", (), raising=False)
    original = tx.Coordinator.__init__

    def init(self: tx.Coordinator, *arguments: Any) -> None:
        original(self, *arguments)
        self.keepers = ()

    monkeypatch.setattr(tx.Coordinator, "__init__", init)
    _caught(20_000)


def test_the_simulation_notices_survivors_that_abort_what_backups_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutation: the rule without backups, whatever a lost primary may have shown."""
    monkeypatch.setattr(tx.Participant, "_verdict", lambda _self: None)
    _caught(20_000)


def test_the_simulation_notices_survivors_that_count_an_answer_of_a_lost_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutation: what others know to be lost does not start the questions again."""
    original = tx.Participant._status

    def status(
        self: tx.Participant, now: float, member: int, _lost: tuple[int, ...]
    ) -> list[tx.Effect]:
        return original(self, now, member, ())

    monkeypatch.setattr(tx.Participant, "_status", status)
    _caught(42_500, 42_400)
