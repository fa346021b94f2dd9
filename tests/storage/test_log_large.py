"""Records whose rows are not copied on their way to the disk: large ones, among small ones."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from log_records import commit
from sim_disk import PowerCut, SimulatedDisk

from remuda.storage.format import records as log
from remuda.storage.format.record_codec import APART, decode_record, encode_apart, encode_record
from remuda.storage.format.segment import Identity, encode_frame, encode_front
from remuda.storage.log.files import OpenedLog, open_log
from remuda.storage.log.writer import SyncMode
from remuda.world import Disk

IDENTITY = Identity(b"c" * 16, b"m" * 16)
FOLDER = Path("/log")


def staged(number: int, size: int) -> log.StagedRows:
    return log.StagedRows("j", "p:t", number, 1, 1, Random(number).randbytes(size))


def opened_log(disk: Disk, size: int = 4 * APART) -> OpenedLog:
    return open_log(disk, FOLDER, IDENTITY, SyncMode.FSYNC, segment_size=size)


@pytest.mark.parametrize("size", [0, 10, APART - 1, APART, APART + 1])
def test_a_frame_in_two_parts_is_the_frame(size: int) -> None:
    record = staged(7, size)
    kind, payload, rest = encode_apart(record)
    assert (kind, payload + rest) == encode_record(record)
    assert len(rest) == (size if size >= APART else 0)
    assert encode_front(3, 7, 6, kind, payload, rest) + rest == encode_frame(
        3, 7, 6, kind, payload + rest
    )


def test_a_buffer_is_as_good_as_bytes() -> None:
    for size in (5, APART):
        record = staged(1, size)
        buffered = log.StagedRows("j", "p:t", 1, 1, 1, pa.py_buffer(record.rows))
        kind, payload, rest = encode_apart(buffered)
        assert decode_record(kind, payload + bytes(rest)) == record


def mixed() -> list[log.Record]:
    sizes = (10, APART, APART, 5, 3 * APART, 5 * APART, APART - 1, 9, APART)
    rows = [staged(number, size) for number, size in enumerate(sizes)]
    return [each for n, record in enumerate(rows, 1) for each in (commit(n, Random(n)), record)]


def test_large_and_small_records_come_back_over_segments() -> None:
    """Also one that is larger than a segment, and groups that a large one begins or ends."""
    for group in (1, 2, 3, 100):
        disk, records = SimulatedDisk(Random(group)), mixed()
        opened = opened_log(disk)
        for start in range(0, len(records), group):
            for record in records[start : start + group]:
                opened.writer.append(record)
            while (flush := opened.writer.step()) is not None:
                opened.files.carry_out(flush)
                opened.writer.on_flushed()
        assert len(opened.files.numbers()) > 3
        again = opened_log(disk)
        assert again.tail.end.sequence == len(records)
        assert [entry.record for entry in again.reader.entries(tail=again.tail)] == records


def test_power_cuts_among_large_records() -> None:
    """What was acknowledged is there, what is there was written, and nothing is damage."""
    records = mixed()
    lost = 0
    for cut in range(1, 40):
        disk = SimulatedDisk(Random(cut))
        opened = opened_log(disk)
        disk.power_cut = cut
        try:
            for record in records:
                opened.writer.append(record)
                while (flush := opened.writer.step()) is not None:
                    opened.files.carry_out(flush)
                    opened.writer.on_flushed()
        except PowerCut:
            lost += 1
        disk.lose_power()
        again = opened_log(disk)
        found = [entry.record for entry in again.reader.entries(tail=again.tail)]
        assert found == records[: len(found)]
        assert len(found) >= opened.writer.acknowledged
    assert lost > 20
