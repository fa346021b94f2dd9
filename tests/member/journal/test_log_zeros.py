"""Zeros ahead of a member's log: when its group commit writes them, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from logged import memory_disk

from remuda.errors import RemudaError
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.journal.group import GroupCommit
from remuda.member.metrics.measures import Measures
from remuda.storage.format.records import CatalogChanged
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import LogFiles, open_log
from remuda.storage.log.writer import SyncMode
from remuda.world import SystemClock, SystemWorkers

FOLDER = Path("/a")
IDENTITY = Identity(b"c" * 16, b"m" * 16)
MIB = 1 << 20


class NoThreads(SystemWorkers):
    def available(self, wanted: int) -> int:
        return 0


def written(
    disk: Any, mode: SyncMode = SyncMode.FSYNC, told: Callable[[], object] = lambda: None
) -> list[RemudaError]:
    """Write 60 records, each in a group of its own, or as many as go until the log fails."""
    failures: list[RemudaError] = []

    async def main() -> None:
        offload = Offload(NoThreads(), "log")
        offload.start(Hop(asyncio.get_running_loop()))
        opened, clock = open_log(disk, FOLDER, IDENTITY, mode), SystemClock()
        durations = Measures(clock).log_writes
        group = GroupCommit(
            opened.files, opened.writer, offload, failures.append, clock=clock, durations=durations
        )
        for number in range(60):
            group.append(CatalogChanged(number, number, b"x" * 200, "written"))
            group.after(told)
            while not group.is_safe and not failures:
                await asyncio.sleep(0)
            await asyncio.sleep(0)  # for the zeros

    asyncio.run(main())
    return failures


def zeros(disk: Any) -> int:
    """At the end of the segment."""
    content = disk.names_now[FOLDER / "0000000001.segment"].content
    return len(content) - len(content.rstrip(b"\0"))


def test_a_log_that_syncs_every_group_writes_zeros_ahead() -> None:
    disk = memory_disk()
    assert written(disk) == []
    assert zeros(disk) > 2000


@pytest.mark.parametrize("mode", [SyncMode.OS, SyncMode.NONE])
def test_other_modes_write_none(mode: SyncMode) -> None:
    disk = memory_disk()
    assert written(disk, mode) == []
    assert zeros(disk) < 10


@pytest.mark.parametrize(("free", "wanted"), [(MIB + 1000, False), (2 * MIB, True)])
def test_zeros_leave_the_room_that_is_kept(free: int, wanted: bool) -> None:
    """1 MiB is kept of a disk of 16 MiB for what is under way."""
    disk = memory_disk()
    disk.space = lambda _path: (free, 16 * MIB)
    assert written(disk) == []
    assert (zeros(disk) > 2000) == wanted


def test_clients_are_told_before_zeros_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    zero_ahead = LogFiles.zero_ahead

    def noted(files: LogFiles) -> None:
        order.append("zeros")
        zero_ahead(files)

    monkeypatch.setattr(LogFiles, "zero_ahead", noted)
    written(memory_disk(), told=lambda: order.append("told"))
    places = [place for place, each in enumerate(order) if each == "zeros"]
    assert 0 < len(places) < 10
    assert all(order[place - 1] == "told" for place in places)
    assert order.count("told") == 60


def test_a_disk_that_fails_to_sync_zeros_ends_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any sync that fails: nobody knows then what is on the disk."""
    disk = memory_disk()
    zero_ahead = LogFiles.zero_ahead

    def failing(files: LogFiles) -> None:
        disk.failing_syncs = 1
        zero_ahead(files)

    monkeypatch.setattr(LogFiles, "zero_ahead", failing)
    (failure,) = written(disk)
    assert "cannot sync" in failure.message
