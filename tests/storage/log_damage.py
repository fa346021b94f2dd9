"""A small log, and what is read from it when one of its bytes is changed."""

from __future__ import annotations

from random import Random

from log_records import commit
from log_runs import FOLDER, IDENTITY
from sim_disk import SimulatedDisk

from remuda.errors import DataCorrupted
from remuda.storage.log.files import open_log
from remuda.storage.log.writer import SyncMode

RECORDS = 9


def small_log(*, mark: bool = True) -> SimulatedDisk:
    """Three segments of three records or so; with ``mark``, a fourth record tells that all are
    durable."""
    disk, random = SimulatedDisk(), Random(3)
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC, segment_size=330)
    for number in range(1, RECORDS + 1):
        opened.writer.append(commit(number, random, 20))
        flush(opened)
    if mark:
        assert opened.writer.idle_mark(0) == RECORDS + 1
        flush(opened)
        assert opened.writer.idle_mark(0) is None
    assert len(opened.files.numbers()) >= 3
    return disk


def flush(opened) -> None:
    out = opened.writer.step()
    assert out is not None
    opened.files.carry_out(out)
    opened.writer.on_flushed()


def records_of(disk: SimulatedDisk) -> tuple[list[object], int]:
    """What is read, and how many bytes were cut off."""
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC)
    return [entry.record for entry in opened.reader.entries(tail=opened.tail)], opened.tail.lost


def places(disk: SimulatedDisk) -> list[tuple[str, int]]:
    return [
        (path.name, offset)
        for path, file in sorted(disk.names_now.items())
        for offset in range(len(file.content))
    ]


def silent_losses(mask: int = 0x40) -> list[tuple[str, int]]:
    """Bytes whose change loses a record that was acknowledged without an error."""
    whole, _ = records_of(small_log())
    found = []
    for name, offset in places(small_log()):
        disk = small_log()
        disk.flip(FOLDER / name, offset, mask)
        try:
            records, _ = records_of(disk)
        except DataCorrupted:
            continue
        if records[:RECORDS] != whole[:RECORDS]:
            found.append((name, offset))
    return found
