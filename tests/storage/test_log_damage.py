"""Every byte of a log matters: one that is changed is found, with its place."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_damage import RECORDS, flush, places, records_of, small_log
from log_records import commit
from log_runs import FOLDER, IDENTITY
from sim_disk import SimulatedDisk

from remuda.errors import DataCorrupted
from remuda.storage.format.records import CatalogChanged
from remuda.storage.format.segment import FRAME_OVERHEAD, HEADER_SIZE, Identity
from remuda.storage.log.files import open_log
from remuda.storage.log.writer import SyncMode


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_byte_that_is_changed_is_found(mask: int) -> None:
    whole, _ = records_of(small_log())
    last = small_log()
    last_name = max(path.name for path in last.names_now)
    last_size = len(last.names_now[FOLDER / last_name].content)
    mark = last_size - FRAME_OVERHEAD - 8
    for name, offset in places(small_log()):
        disk = small_log()
        disk.flip(FOLDER / name, offset, mask)
        if name == last_name and offset >= mark:  # nothing says that the mark itself was there
            records, lost = records_of(disk)
            assert records == whole[:RECORDS]
            assert 0 < lost <= FRAME_OVERHEAD + 8
            continue
        before = {path: bytes(file.content) for path, file in disk.names_now.items()}
        with pytest.raises(DataCorrupted) as damage:
            records_of(disk)
        assert name in damage.value.detail
        number = int(name.partition(".")[0])
        assert f"segment {number}, offset" in damage.value.message
        if offset >= HEADER_SIZE:
            said = int(damage.value.message.partition("offset ")[2].partition(",")[0])
            assert said <= offset < said + 200
            assert "record" in damage.value.message
        assert before == {path: bytes(file.content) for path, file in disk.names_now.items()}


def test_without_a_mark_the_last_record_is_reported_as_cut_off() -> None:
    disk = small_log(mark=False)
    name = max(path.name for path in disk.names_now)
    size = len(disk.names_now[FOLDER / name].content)
    disk.flip(FOLDER / name, size - 1, 1)
    records, lost = records_of(disk)
    assert len(records) == RECORDS - 1
    assert lost > 0
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC)
    assert str(opened.tail) == f"the log ends after record {RECORDS - 1}, whole"


def test_every_cut_of_the_last_segment_is_a_torn_tail_or_damage() -> None:
    whole, _ = records_of(small_log())
    name = max(path.name for path in small_log().names_now)
    size = len(small_log().names_now[FOLDER / name].content)
    for keep in range(size):
        disk = small_log()
        disk.truncate(FOLDER / name, keep)
        records, _ = records_of(disk)
        assert records == whole[: len(records)]


def test_a_segment_in_the_middle_that_is_cut_is_refused() -> None:
    size = len(small_log().names_now[FOLDER / "0000000002.segment"].content)
    for keep in range(size):
        disk = small_log()
        disk.truncate(FOLDER / "0000000002.segment", keep)
        with pytest.raises(DataCorrupted, match=r"segment [23], offset"):
            records_of(disk)


def test_missing_and_exchanged_segments_are_refused() -> None:
    disk = small_log()
    disk.remove(FOLDER / "0000000002.segment")
    with pytest.raises(DataCorrupted, match=r"missing: .*0000000002\.segment"):
        records_of(disk)
    disk = small_log()
    disk.rename(FOLDER / "0000000001.segment", FOLDER / "0000000002.segment")
    with pytest.raises(DataCorrupted) as damage:
        records_of(disk)
    assert "it is segment 1" in damage.value.detail


def test_the_log_of_another_member_is_refused() -> None:
    other = Identity(b"c" * 16, b"n" * 16)
    with pytest.raises(DataCorrupted) as damage:
        open_log(small_log(), FOLDER, other, SyncMode.FSYNC)
    assert IDENTITY.member.hex() in damage.value.detail


def test_a_segment_of_another_history_is_refused() -> None:
    """Same member, same numbers, other records."""
    disk, other = small_log(), SimulatedDisk()
    opened = open_log(other, FOLDER, IDENTITY, SyncMode.FSYNC, segment_size=330)
    random = Random(4)
    for number in range(1, RECORDS + 1):
        opened.writer.append(commit(number, random, 20))
        flush(opened)
    path = FOLDER / "0000000002.segment"
    disk.names_now[path] = other.names_now[path]
    with pytest.raises(DataCorrupted, match=r"segment [23], offset 0"):
        records_of(disk)


def test_a_frame_inside_a_value_is_no_frame() -> None:
    """A user may keep a piece of a log in a map: of another segment it is not read as one."""
    donor = bytes(small_log().names_now[FOLDER / "0000000002.segment"].content)
    disk = SimulatedDisk()
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC)
    opened.writer.append(CatalogChanged(1, 1, donor * 2, "x"))
    flush(opened)
    disk.truncate(FOLDER / "0000000001.segment", HEADER_SIZE + 600)
    records, lost = records_of(disk)
    assert records == []
    assert 0 < lost <= 600  # zeros at its end count for nothing


@given(st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_whatever_happens_to_the_files_it_is_damage_or_a_shorter_log(random: Random) -> None:
    """Bytes cut out, put in, exchanged, zeroed: of several files at once."""
    whole, _ = records_of(small_log())
    disk = small_log()
    for _ in range(random.randrange(1, 4)):
        file = random.choice(list(disk.names_now.values()))
        start = random.randrange(len(file.content))
        stop = min(len(file.content), start + random.randrange(1, 200))
        piece = file.content[start:stop]
        other = random.choice(list(disk.names_now.values())).content
        new = random.choice([b"", bytes(len(piece)), piece * 2, other[start:stop], piece[::-1]])
        file.content[start:stop] = new
        file.sync()
    try:
        records, _ = records_of(disk)
    except DataCorrupted:
        return
    assert records == whole[: len(records)]


def test_reading_from_the_middle() -> None:
    disk = small_log()
    opened = open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC)
    for start in range(1, RECORDS + 2):
        assert [entry.sequence for entry in opened.reader.entries(start)] == list(
            range(start, RECORDS + 2)
        )
    disk.remove(FOLDER / "0000000001.segment")
    with pytest.raises(DataCorrupted, match="record 1 is needed"):
        list(opened.reader.entries(1))
    assert list(opened.reader.entries(RECORDS))
