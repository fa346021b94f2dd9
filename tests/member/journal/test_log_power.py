"""Losses of power at any moment, from seeds: nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from power import losses

from remuda.member.journal.group import GroupCommit
from remuda.member.journal.writer import MemberWal


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.soak)])
def test_everything_acknowledged_is_there(seed: int) -> None:
    assert asyncio.run(losses(seed, 6, backups=seed % 2)) == []


def test_with_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.member.journal.checkpoint.LOOK_EVERY", 0.02)
    assert asyncio.run(losses(7, 8, backups=1, checkpoint_size=2000)) == []


def answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the sync."""
    monkeypatch.setattr(GroupCommit, "after", lambda _self, action: action())


def no_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part votes before it is in the log."""

    def nothing(*_: Any) -> None: ...

    monkeypatch.setattr(MemberWal, "part_prepared", nothing)
    monkeypatch.setattr(MemberWal, "job_prepared", lambda *_, **__: None)


@pytest.mark.parametrize(
    "mutation", [pytest.param(answer_at_once, marks=pytest.mark.soak), no_votes]
)
def test_mutations_are_caught(mutation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would lose what was told; some moment shows it. (``tests/simulation/test_power.py``
    tries both in every run, sooner.)"""

    async def caught() -> bool:
        for seed in range(100, 110):
            if await losses(seed, 6, first=True, backups=0):
                return True
        return False

    mutation(monkeypatch)
    assert asyncio.run(caught())
