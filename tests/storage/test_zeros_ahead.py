"""How far segments are filled with zeros ahead of their records, and when they are not."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from log_records import commit
from log_runs import FOLDER, IDENTITY
from sim_disk import SimulatedDisk

from remuda.storage.log.files import OpenedLog, open_log
from remuda.storage.log.writer import SyncMode
from remuda.storage.log.zeros_ahead import BLOCK, STRETCH_MAX, STRETCH_MIN, ZerosAhead

SEGMENT = 64 << 20


def grown(ahead: ZerosAhead, groups: list[int]) -> list[int]:
    """The sizes to which the file was extended, while groups of so many bytes were appended."""
    end, found = 72, []
    ahead.on_segment(end)
    for size in groups:
        end += size
        ahead.on_group(size, end)
        target = ahead.target(end)
        if target:
            assert target > max(ahead.size, end)
            assert target - end <= min(end, STRETCH_MAX) + BLOCK
            ahead.on_extended(target)
            found.append(target)
    return found


def test_zeros_double_with_the_segment_up_to_a_bound() -> None:
    found = grown(ZerosAhead(SEGMENT), [100] * 60_000)
    assert found[0] < 4 * STRETCH_MIN, "a log of a few records takes no room"
    assert max(b - a for a, b in pairwise(found)) <= STRETCH_MAX
    assert len(found) < 30, "a sync of zeros serves thousands of records"


def test_a_bulk_load_writes_no_zeros() -> None:
    assert grown(ZerosAhead(SEGMENT), [STRETCH_MAX] * 30) == []
    assert grown(ZerosAhead(SEGMENT), [8 << 20] * 7) == []


def test_zeros_end_with_the_segment() -> None:
    found = grown(ZerosAhead(100_000), [100] * 999)
    assert max(found) == 100_000
    assert all(size % BLOCK == 0 for size in found[:-1])


def test_after_a_refusal_the_segment_does_without() -> None:
    ahead = ZerosAhead(SEGMENT)
    ahead.on_segment(72)
    ahead.on_group(100, 50_000)
    assert ahead.target(50_000)
    ahead.on_refused()
    assert not ahead.target(50_000)
    ahead.on_segment(72)
    ahead.on_group(100, 50_000)
    assert ahead.target(50_000)


# --- in files -----------------------------------------------------------------------------------


def opened_log(disk: SimulatedDisk) -> OpenedLog:
    return open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC, segment_size=40_000)


def write(opened: OpenedLog, numbers: range, random: Random) -> None:
    """Each with zeros ahead, if the log wants them."""
    for number in numbers:
        opened.writer.append(commit(number, random, 400))
        flush = opened.writer.step()
        assert flush is not None
        opened.files.carry_out(flush)
        opened.writer.on_flushed()
        opened.files.zero_ahead()


def sizes(disk: SimulatedDisk) -> list[tuple[int, int]]:
    """Of each segment: the bytes of its file, and those of its records."""
    files = [file.content for _, file in sorted(disk.names_now.items())]
    return [(len(content), len(content.rstrip(b"\0"))) for content in files]


def test_only_the_last_segment_ends_with_zeros() -> None:
    disk = SimulatedDisk()
    opened = opened_log(disk)
    write(opened, range(1, 440), Random(1))
    *complete, last = sizes(disk)
    assert len(complete) > 1
    assert all(size - records < 8 for size, records in complete), "zeros of their last record"
    assert last[0] > last[1] + 1000
    again = opened_log(disk)
    assert again.tail.lost == 0
    assert len(list(again.reader.entries(tail=again.tail))) == 439


def test_a_record_over_zeros_makes_no_file_longer() -> None:
    disk = SimulatedDisk()
    opened = opened_log(disk)
    write(opened, range(1, 60), Random(1))
    before = disk.used
    opened.writer.append(commit(60, Random(2), 400))
    flush = opened.writer.step()
    assert flush is not None
    disk.capacity = before  # it has its room already
    opened.files.carry_out(flush)
    assert disk.used == before


@pytest.mark.parametrize("room", [0, 1, 3000])
def test_a_disk_without_room_for_zeros_takes_records_as_before(room: int) -> None:
    disk = SimulatedDisk()
    opened = opened_log(disk)
    write(opened, range(1, 20), Random(1))
    while not opened.files.zeros_wanted():
        number = opened.writer.last + 1
        opened.writer.append(commit(number, Random(number), 400))
        flush = opened.writer.step()
        assert flush is not None
        opened.files.carry_out(flush)
        opened.writer.on_flushed()
    before = disk.used
    disk.capacity = before + room
    opened.files.zero_ahead()
    assert disk.used == before
    assert opened.files.zeros_wanted() == 0
    disk.capacity = None
    records = opened.writer.last
    write(opened, range(records + 1, records + 30), Random(3))
    assert len(list(opened_log(disk).reader.entries())) == records + 29
