"""When a member makes snapshots by itself."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from remuda.errors import DiskFull
from remuda.member.snapshots import schedule as snapshot_schedule
from remuda.member.snapshots.schedule import LOOK_EVERY, LOOK_EVERY_MAX, SnapshotSchedule


class Ended(Exception):
    """The test has seen enough."""


def test_a_base_that_cannot_be_made_is_tried_more_and_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each attempt may read every row; another change of the members is followed at once."""
    pauses: list[float] = []
    made: list[int] = []
    view: Any = SimpleNamespace(number=1)
    config = SimpleNamespace(backups=1)
    core: Any = SimpleNamespace(view=view, ready=True, coordinator=0, number=0, config=config)
    full = True

    async def sleep(seconds: float) -> None:
        nonlocal full
        pauses.append(seconds)
        if len(pauses) == 20:
            view.number = 2
        elif len(pauses) == 22:
            full = False
        elif len(pauses) == 30:
            raise Ended

    async def make(_name: str, _increment: bool) -> None:
        made.append(len(pauses))
        if full:
            raise DiskFull("the disk is full")

    async def newest() -> tuple[str, int]:
        return "s", 0

    async def expire(_name: str, _before: int) -> None: ...

    monkeypatch.setattr(snapshot_schedule, "asyncio", SimpleNamespace(sleep=sleep))
    at_rest = SimpleNamespace(progress=lambda *_: {"partitions_to_place": 0})
    monkeypatch.setattr(snapshot_schedule, "movement", at_rest)
    schedule = SnapshotSchedule(core, make, expire, newest)
    with pytest.raises(Ended):
        asyncio.run(schedule._follow())
    assert pauses[:4] == [LOOK_EVERY, LOOK_EVERY, 2 * LOOK_EVERY, 4 * LOOK_EVERY]
    assert pauses[12:20] == [LOOK_EVERY_MAX] * 8
    assert pauses[20:22] == [LOOK_EVERY, 2 * LOOK_EVERY]
    assert pauses[22:] == [LOOK_EVERY] * 8
    assert made == [*range(2, 20), 21, 22]
