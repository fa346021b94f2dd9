"""Bulk commits in doubt whose members are cut off, dropped by views, and come back. Each mutation
of the rules must be noticed by the same simulation."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cluster_of_staged_returns import Returns, simulate

from remuda.member.commits.commits_in_doubt import CommitsInDoubt
from remuda.transaction import staged_commit as tx

SEEDS = 300
MUTANT_SEEDS = 4000


@cache
def played() -> list[Returns]:
    return [simulate(seed) for seed in range(SEEDS)]


def test_what_comes_back_has_ended_as_among_the_members() -> None:
    returned = committed = 0
    for ended in played():
        returned += bool(ended.returned)
        committed += ended.report is not None and ended.report.error is None
    assert returned > SEEDS // 10
    assert committed > SEEDS // 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(SEEDS, 300_000):
        simulate(seed)


def test_a_coordinator_that_lives_rolls_back_only_what_nobody_can_have_committed() -> None:
    """Views change copies and drop members while it waits for votes. What it has not decided,
    nobody has committed: not even those that are cut off and never come back."""
    rolled_back = 0
    for ended in played():
        cut = [ended.nodes[number] for number in ended.cut]
        if 1 in ended.cut or ended.report is None or ended.report.error is None or not cut:
            continue
        rolled_back += any(node.prepared_at is not None for node in cut)
        assert all(node.committed_at is None for node in cut), f"seed {ended.seed}"
    assert rolled_back > SEEDS // 100


def caught(first: int = 0) -> None:
    """``first``: a seed that is known to show what is wrong; then others are tried."""
    with pytest.raises(AssertionError):
        for seed in (first, *range(MUTANT_SEEDS)):
            simulate(seed)


def test_a_donor_that_tells_only_what_is_in_doubt_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its coordinator had told it to commit, and nobody else: the others would roll back."""
    monkeypatch.setattr(CommitsInDoubt, "to_tell", lambda self, _elsewhere: self.undecided())
    caught(1058)


def test_nobody_waits_for_a_copy_that_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tx.Participant, "_waits_for_a_copy", lambda _self: False)
    caught(1058)


def test_a_donor_that_decides_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def adopt(self: CommitsInDoubt, job: str, _answer: Any) -> None:
        self._participants.step(job, tx.Adopted(None))

    monkeypatch.setattr(CommitsInDoubt, "adopt", adopt)
    caught()


def test_an_end_on_a_donor_that_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    told = tx.Participant._donor_told

    def doubting(self: tx.Participant, event: tx.DonorTold) -> list[tx.Effect]:
        if event.outcome is tx.Outcome.COMMITTED:
            return []
        return told(self, event)

    monkeypatch.setattr(tx.Participant, "_donor_told", doubting)
    caught(1058)
