"""The last record of a log, which no later one speaks for: what a crash leaves of it is cut off,
and what somebody has changed in it is refused."""

from __future__ import annotations

from random import Random

import pytest
from log_damage import flush, records_of
from log_records import commit
from log_runs import FOLDER, IDENTITY
from sim_disk import SimulatedDisk

from remuda.errors import DataCorrupted, DiskFull
from remuda.storage.format import records as log
from remuda.storage.format.segment import HEADER_SIZE, encode_frame
from remuda.storage.log.files import open_log
from remuda.storage.log.reader import LogReader
from remuda.storage.log.torn_tail import changed as changed_since
from remuda.storage.log.writer import SyncMode

SECTOR = 64
PATH = FOLDER / "0000000001.segment"


def two_groups(*, last: int = 3) -> tuple[SimulatedDisk, int]:
    """A log of one record, and of more that are written together; and where the others begin."""
    disk, random = SimulatedDisk(), Random(3)
    disk.sector = SECTOR
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC)
    opened.writer.append(commit(1, random, 20))
    flush(opened)
    start = len(disk.read(PATH))
    for number in range(2, 2 + last):
        opened.writer.append(commit(number, random, 20))
    flush(opened)
    return disk, start


def changed(disk: SimulatedDisk, start: int, content: bytes) -> SimulatedDisk:
    file = disk.names_now[PATH]
    file.content[start:] = content
    file.sync()
    return disk


def with_zeros(disk: SimulatedDisk, zeros: int) -> SimulatedDisk:
    """As the log is while it is written: zeros lie behind its records."""
    return changed(disk, len(disk.read(PATH)), bytes(zeros))


AHEAD = [0, SECTOR - 1, 5 * SECTOR]


@pytest.mark.parametrize("zeros", AHEAD)
@pytest.mark.parametrize("last", [1, 3])
def test_a_changed_byte_is_no_torn_tail(last: int, zeros: int) -> None:
    disk, start = two_groups(last=last)
    whole = disk.read(PATH)
    with_zeros(disk, zeros)
    assert start > HEADER_SIZE
    for offset in range(start, len(whole)):
        mask = 0x01 if whole[offset] != 0x01 else 0x80  # another zero might be a torn one
        disk.flip(PATH, offset, mask)
        with pytest.raises(DataCorrupted) as refused:
            records_of(disk)
        disk.flip(PATH, offset, mask)
        assert "segment 1, offset" in refused.value.message
    assert len(records_of(disk)[0]) == 1 + last


@pytest.mark.parametrize("zeros", AHEAD)
def test_zeros_behind_the_records_are_nothing_that_was_written(zeros: int) -> None:
    disk, _ = two_groups()
    whole = disk.read(PATH)
    opened = open_log(with_zeros(disk, zeros), FOLDER, IDENTITY, SyncMode.FSYNC)
    assert opened.tail.lost == 0
    assert str(opened.tail) == "the log ends after record 4, whole"
    assert len(list(opened.reader.entries(tail=opened.tail))) == 4
    assert disk.read(PATH) == whole, "cut to its records"


@pytest.mark.parametrize("zeros", [3, 40, 61])
@pytest.mark.parametrize("mask", [0x01, 0x40])
def test_a_damaged_size_is_no_torn_tail_if_the_payload_ends_with_zeros(
    zeros: int, mask: int
) -> None:
    """The frame says that it reaches into the zeros behind it, as one does that was torn."""
    disk = SimulatedDisk()
    disk.sector = SECTOR
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC)
    opened.writer.append(log.CatalogChanged(1, 1, b"x" * 30, "\0" * zeros))
    flush(opened)
    with_zeros(disk, 5 * SECTOR)
    for byte in range(4):
        disk.flip(PATH, HEADER_SIZE + 6 + byte, mask)
        with pytest.raises(DataCorrupted, match="damaged at its end") as refused:
            records_of(disk)
        assert "all of its bytes are there" in refused.value.detail
        disk.flip(PATH, HEADER_SIZE + 6 + byte, mask)
    assert len(records_of(disk)[0]) == 1


def test_what_is_refused_can_be_given_up() -> None:
    disk, start = two_groups()
    disk.flip(PATH, start + 30, 1)
    with pytest.raises(DataCorrupted, match="damaged at its end") as refused:
        records_of(disk)
    assert f"cut {PATH} to {start} bytes" in refused.value.hint
    disk.truncate(PATH, start)
    assert len(records_of(disk)[0]) == 1


def test_a_file_that_ends_early_is_a_torn_tail() -> None:
    disk, start = two_groups()
    whole = disk.read(PATH)
    for end in range(start, len(whole)):
        disk, _ = two_groups()
        records, lost = records_of(changed(disk, end, b""))
        assert len(records) < 4
        assert lost <= end - start


@pytest.mark.parametrize("zeros", AHEAD)
def test_sectors_that_were_not_written_are_a_torn_tail(zeros: int) -> None:
    disk, start = two_groups()
    whole = disk.read(PATH)
    sectors = range(start - start % SECTOR, len(whole), SECTOR)
    for missing in range(1, 2 ** len(sectors)):
        disk, _ = two_groups()
        content = bytearray(whole)
        for place, sector in enumerate(sectors):
            if missing >> place & 1:
                first, stop = max(sector, start), min(sector + SECTOR, len(whole))
                content[first:stop] = bytes(stop - first)
        left = bytes(content[start:]).rstrip(b"\0")
        records, lost = records_of(changed(disk, start, bytes(content[start:]) + bytes(zeros)))
        assert len(records) < 4
        assert (lost > 0) == bool(left)


def test_a_large_record_that_has_met_a_full_disk_is_torn_like_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its rows are written by themselves; nothing of it may be on the disk before they fit."""
    monkeypatch.setattr("remuda.storage.format.record_codec.APART", 100)
    disk = SimulatedDisk()
    disk.sector = SECTOR
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC)
    opened.writer.append(log.StagedRows("j", "p:t", 1, 1, 1, Random(1).randbytes(400)))
    out = opened.writer.step()
    assert out is not None
    disk.capacity = disk.used + HEADER_SIZE + 200
    with pytest.raises(DiskFull):
        opened.files.carry_out(out)
    assert opened.files.stopped_at is not None
    before = disk.read(PATH)
    assert before == disk.names_now[PATH].stored
    disk.capacity = None
    opened.files.carry_out(out, opened.files.stopped_at)
    whole = disk.read(PATH)
    sectors = range(0, len(whole), SECTOR)
    for missing in range(1, 2 ** len(sectors)):
        content = bytearray(whole)
        for place, sector in enumerate(sectors):
            if missing >> place & 1:
                old = before[sector : sector + SECTOR]
                size = min(SECTOR, len(whole) - sector)
                content[sector : sector + size] = old.ljust(size, b"\0")
        if content == whole:
            continue
        disk.names_now[PATH].content[:] = content
        reader = LogReader(opened.files, IDENTITY)
        assert reader.tail().end.sequence == 0


def test_bytes_that_begin_no_record_are_refused() -> None:
    disk, _ = two_groups()
    end = len(disk.read(PATH))
    with pytest.raises(DataCorrupted, match="damaged at its end"):
        records_of(changed(disk, end, b"something else"))


@pytest.mark.parametrize("behind", [-1, 0, 1, 5])
def test_a_record_that_says_that_it_was_itself_on_the_disk_is_damage(behind: int) -> None:
    """A frame names the last record that was on the disk when it was written, which lies before it.
    One that names itself or a later one is no torn frame, although the file ends in it."""
    salt, sequence = 7, 4
    frame = encode_frame(salt, sequence, sequence + behind, 2, b"x" * 40)
    torn = frame[:-10]
    why = changed_since(torn, 0, None, sequence, salt=salt, sector=SECTOR)
    if behind < 0:
        assert why == ""
    else:
        assert why == f"it says that record {sequence + behind} was on the disk"
