"""The log on a real disk, in a temporary folder; its summaries, archive and removal; what the
operating system refuses."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest
from log_histories import History
from log_records import commit
from sim_disk import SimulatedDisk
from tests.storage.log_index import index_of

from remuda.errors import (
    DataCorrupted,
    DiskFull,
    ResourceError,
)
from remuda.storage.format import records as log
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import LogFiles, OpenedLog, open_log
from remuda.storage.log.replay import last_cut
from remuda.storage.log.spans import spans_back_to
from remuda.storage.log.writer import SyncMode
from remuda.world import Disk, SystemAppender, SystemDisk

IDENTITY = Identity(b"c" * 16, b"m" * 16)


def opened_log(disk: Disk, folder: Path, size: int = 600) -> OpenedLog:
    return open_log(disk, folder, IDENTITY, SyncMode.FSYNC, segment_size=size)


def write(opened: OpenedLog, *records: log.Record) -> None:
    for record in records:
        opened.writer.append(record)
    while (flush := opened.writer.step()) is not None:
        opened.files.carry_out(flush)
        opened.writer.on_flushed()


def test_a_log_on_a_real_disk(tmp_path: Path) -> None:
    folder, random = tmp_path / "data" / "log", Random(1)
    records = [commit(number, random) for number in range(1, 40)]
    for start in range(0, 39, 13):
        opened = opened_log(SystemDisk(), folder)
        assert [e.record for e in opened.reader.entries(tail=opened.tail)] == records[:start]
        write(opened, *records[start : start + 13])
        opened.files.close()
    files = LogFiles(SystemDisk(), folder)
    numbers = files.numbers()
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 4

    last = files.path(numbers[-1])
    with last.open("ab") as file:
        file.write(b"\xc7Lhalf a record")
    opened = opened_log(SystemDisk(), folder)
    assert "15 bytes behind it" in str(opened.tail)
    assert [e.record for e in opened.reader.entries()] == records
    assert opened_log(SystemDisk(), folder).tail.lost == 0

    middle = files.path(2)
    data = bytearray(middle.read_bytes())
    data[100] ^= 1
    middle.write_bytes(data)
    opened = opened_log(SystemDisk(), folder)  # only the end is looked at
    with pytest.raises(DataCorrupted) as damage:
        list(opened.reader.entries())
    assert str(middle) in damage.value.detail


def test_what_the_operating_system_refuses(tmp_path: Path) -> None:
    disk = SystemDisk()
    file = tmp_path / "file"
    appender = disk.create(file)
    appender.append(b"abcdef")
    appender.sync()
    appender.close()
    with pytest.raises(ResourceError, match="File exists"):
        disk.create(file)
    assert disk.read_part(file, 2, 2) == b"cd"
    assert disk.read_part(file, 4, 9) == b"ef"
    disk.truncate(file, 3)
    disk.rename(file, tmp_path / "other")
    disk.sync_folder(tmp_path)
    assert disk.names(tmp_path) == ["other"]
    assert disk.read(tmp_path / "other") == b"abc"
    disk.remove(tmp_path / "other")
    assert disk.names(tmp_path / "nowhere") == []
    for refused in (
        lambda: disk.remove(file),
        lambda: disk.truncate(file, 1),
        lambda: disk.rename(file, tmp_path / "x"),
        lambda: disk.read_part(file, 0, 1),
        lambda: disk.sync_folder(tmp_path / "nowhere"),
        lambda: disk.create(tmp_path / "nowhere" / "file"),
    ):
        with pytest.raises(ResourceError, match="No such file"):
            refused()
    full = Path("/dev/full")
    if full.exists():
        appender = SystemAppender.__new__(SystemAppender)
        appender._path, appender._descriptor = full, os.open(full, os.O_WRONLY)
        appender._end = appender._size = 0
        with pytest.raises(DiskFull, match="No space left"):
            appender.append(b"x")
        appender.close()


def test_zeros_ahead_are_written_over_and_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "file"
    appender = SystemDisk().create(file)
    appender.append(b"abc")
    appender.extend(10)
    assert file.read_bytes() == b"abc" + bytes(7)
    appender.append(b"def")
    appender.append(b"0123456")
    assert file.read_bytes() == b"abcdef0123456", "past the zeros, too"
    appender.extend(20)
    appender.append(b"7")
    appender.cut(14)
    appender.append(b"8")
    appender.sync()
    appender.close()
    assert file.read_bytes() == b"abcdef012345678"


def test_zeros_that_the_disk_has_no_room_for_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    appender = SystemDisk().create(file)
    appender.append(b"abc")
    write = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if offset >= 50:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: 50 - offset], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(DiskFull, match="cannot extend"):
            appender.extend(100)
    assert file.read_bytes() == b"abc"
    appender.append(b"d")
    appender.close()
    assert file.read_bytes() == b"abcd"


# --- what a log holds ---------------------------------------------------------------------------


def written(seed: int) -> tuple[OpenedLog, History]:
    """A history in many segments."""
    opened = opened_log(SimulatedDisk(Random(seed)), Path("/log"))
    history = History(seed)
    write(opened, *[entry.record for entry in history.entries])
    return opened, history


def test_the_cuts_of_a_log_are_found_in_its_segments() -> None:
    for seed in range(12):
        opened, history = written(seed)
        index, _ = index_of(opened.reader)
        assert {cut for cut in range(99) if index.cut(cut)} == set(history.finished)
        assert [s.number for s in index.summaries] == opened.files.numbers()
        found = last_cut(opened.reader.entries(0, opened.reader.tail()))
        assert found == max(history.finished, default=0)


def test_segments_before_a_checkpoint_are_not_needed() -> None:
    checked = 0
    for seed in range(12):
        opened, history = written(seed)
        files, reader, writer = opened.files, opened.reader, opened.writer
        closed = max((e.record.timestamp for e in history.entries
                      if isinstance(e.record, log.Closed)), default=0)  # fmt: skip
        _, builder = index_of(reader)
        start = builder.replay_from(closed, writer.last + 1)
        writer.roll()
        write(opened, log.Checkpoint(1, closed, start, "image", b"digest"))
        writer.roll()
        write(opened, log.Closed(history.clock))
        index, follower = index_of(reader)
        assert follower.replay_from(closed, writer.last + 1) == start
        gone = [each.number for each in index.summaries if each.last < start]
        files.remove(gone)
        assert files.numbers() == [n for n in range(1, len(index.summaries) + 1) if n not in gone]
        left = list(reader.entries(start))
        assert left[0].sequence == start
        checked += len(gone)
    assert checked > 12


def test_a_segment_that_is_being_made_is_not_looked_into(tmp_path: Path) -> None:
    opened, random = opened_log(SystemDisk(), tmp_path), Random(1)
    write(opened, *(commit(number, random) for number in range(1, 20)))
    files = opened.files
    spans = spans_back_to(files, 1)
    assert [span.number for span in spans] == files.numbers()[:-1]
    files.path(files.numbers()[-1] + 1).touch()
    assert spans_back_to(files, 1) == spans
