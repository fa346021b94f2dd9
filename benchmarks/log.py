"""The write-ahead log: records per second beside a plain loop of appends and syncs of the same
bytes in the same groups, what of a group's time the disk, the thread and the records take, rows per
second that a start replays, and the time for a log of many maps whose partitions have often moved.

``python benchmarks/log.py [--folder DIR]``: DIR lies on the disk that is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import uvloop

from remuda.catalog.catalog import Catalog
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, DOUBLE
from remuda.limits import PARTITIONS, SWITCH_INTERVAL
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.journal.group import GroupCommit
from remuda.member.journal.replay import restored
from remuda.member.metrics.measures import Measures
from remuda.member.state.transaction_sets import Write
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.snapshot.log_rows import Packings, encode_batch
from remuda.storage.format import records as log
from remuda.storage.format.record_codec import encode_record
from remuda.storage.format.segment import FRAME_OVERHEAD, Identity
from remuda.storage.log.files import OpenedLog, open_log
from remuda.storage.log.writer import SyncMode
from remuda.world import SystemClock, SystemDisk, SystemWorkers

ROUNDS = 7
GROUPS = 200
TOGETHER = (1, 16, 256)
"""Records that are waited for together: as many clients write at a time."""
SMALL_ROWS = 100_000
BULK_ROWS = 2_000_000
BATCH = 100_000
MOVED_MAPS = 43
MOVED_ROWS = 14_761
VIEW_CHANGES = 160
IDENTITY = Identity(b"c" * 16, b"m" * 16)


def schema() -> MapSchema:
    columns = (Column("id", BIGINT, False), Column("a", DOUBLE, True), Column("b", DOUBLE, True))
    catalog, made = Catalog().with_map(
        MapSchema("t", columns, ("id",), ("id",)), if_not_exists=False
    )
    assert catalog.version == 1
    return made


def commit(packings: Packings, made: MapSchema, number: int) -> log.Committed:
    write = Write(made.map_id, made.version, (number,), (number, number / 2, None))
    change = packings.change(write)
    assert change is not None
    return log.Committed(log.PartId(number, 1, number % 271), number, (number % 271,), (change,))


def opened(folder: Path, mode: SyncMode = SyncMode.FSYNC) -> OpenedLog:
    return open_log(SystemDisk(), folder, IDENTITY, mode)


# --- throughput -----------------------------------------------------------------------------------


def plain(path: Path, piece: bytes, together: int) -> float:
    """Seconds for the groups, of ``together`` pieces each."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    began = time.perf_counter()
    for _ in range(GROUPS):
        os.write(descriptor, piece * together)
        os.fdatasync(descriptor)
    taken = time.perf_counter() - began
    os.close(descriptor)
    return taken


def into_zeros(path: Path, piece: bytes, together: int) -> float:
    """The same into a file that has its size already."""
    descriptor = zeroed(path, len(piece) * together * GROUPS)
    began = time.perf_counter()
    for number in range(GROUPS):
        os.pwrite(descriptor, piece * together, number * len(piece) * together)
        os.fdatasync(descriptor)
    taken = time.perf_counter() - began
    os.close(descriptor)
    return taken


async def handed_over(path: Path, piece: bytes, together: int) -> float:
    """That on the thread of a log, from the event loop and back to it, with nothing else to do."""
    offload = Offload(SystemWorkers(), "log")
    offload.start(Hop(asyncio.get_running_loop()))
    descriptor = zeroed(path, len(piece) * together * GROUPS)

    def write(number: int) -> None:
        os.pwrite(descriptor, piece * together, number * len(piece) * together)
        os.fdatasync(descriptor)

    await offload.result(partial(write, 0))
    began = time.perf_counter()
    for number in range(GROUPS):
        await offload.result(partial(write, number))
    taken = time.perf_counter() - began
    offload.close()
    os.close(descriptor)
    return taken


def zeroed(path: Path, size: int) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, bytes(size))
    os.fsync(descriptor)
    return descriptor


async def ours(folder: Path, records: list[log.Committed], together: int, frame: int) -> float:
    offload = Offload(SystemWorkers(), "log")
    offload.start(Hop(asyncio.get_running_loop()))
    found = opened(folder)
    clock = SystemClock()
    durations = Measures(clock).log_writes
    group = GroupCommit(found.files, found.writer, offload, print, clock=clock, durations=durations)
    await waited(group, records[:1])  # the first one makes the segment
    began = time.perf_counter()
    for number in range(GROUPS):
        await waited(group, records[number * together : (number + 1) * together])
    taken = time.perf_counter() - began
    offload.close()
    found.files.close()
    assert group.groups == GROUPS + 1, "as many syncs as the plain loop"
    assert group.bytes == frame * (GROUPS * together + 1), "as many bytes"
    return taken


async def waited(group: GroupCommit, records: list[log.Committed]) -> None:
    for record in records:
        group.append(record)
    await group.safe()


def throughput(root: Path) -> None:
    made, packings = schema(), Packings()
    packings.learn([made])
    frame = FRAME_OVERHEAD + len(encode_record(commit(packings, made, 1))[1])
    for together in TOGETHER:
        records = [commit(packings, made, number) for number in range(1, GROUPS * together + 1)]
        theirs, own, ready, handed = [], [], [], []
        for turn in range(ROUNDS):
            piece, name = b"x" * frame, f"{together}-{turn}"
            theirs.append(plain(root / f"plain-{name}", piece, together))
            own.append(uvloop.run(ours(root / f"log-{name}", records, together, frame)))
            ready.append(into_zeros(root / f"zeros-{name}", piece, together))
            handed.append(uvloop.run(handed_over(root / f"thread-{name}", piece, together)))
        rate = GROUPS * together / statistics.median(own)
        ratio = statistics.median(a / b for a, b in zip(theirs, own, strict=True))
        print(
            f"{together:4} at a time: {rate:10,.0f} records/s, {ratio:.2f} x append and fdatasync"
        )
        append, zeros, thread, whole = (
            1e6 * statistics.median(each) / GROUPS for each in (theirs, ready, handed, own)
        )
        print(
            f"     µs of a group: {append:.0f} appended and synced, {zeros:.0f} into zeros,"
            f" {thread:.0f} on a thread, {whole:.0f} as records"
        )


# --- replay ---------------------------------------------------------------------------------------


def written(folder: Path, records: list[log.Record]) -> None:
    found = opened(folder, SyncMode.NONE)
    for record in records:
        found.writer.append(record)
    while (flush := found.writer.step()) is not None:
        found.files.carry_out(flush)
        found.writer.on_flushed()
    found.files.close()


def replayed(folder: Path, rows: int, what: str) -> None:
    found = opened(folder, SyncMode.NONE)
    began = time.perf_counter()
    made = restored(SystemDisk(), folder / "image", found.reader)
    taken = time.perf_counter() - began
    assert made.rows == rows, made.rows
    print(f"replay of {what}: {rows / taken:12,.0f} rows/s")


def replays(root: Path) -> None:
    made, packings = schema(), Packings()
    packings.learn([made])
    state = control_pb2.CatalogState(version=1, maps=[codec.encode_schema(made)])
    catalog = log.CatalogChanged(1, 1, state.SerializeToString(), "one map")
    small: list[log.Record] = [commit(packings, made, number) for number in range(1, SMALL_ROWS)]
    written(root / "small", [catalog, *small])
    replayed(root / "small", len(small), "single puts")
    bulk: list[log.Record] = []
    for number, start in enumerate(range(0, BULK_ROWS, BATCH)):
        ids = np.arange(start, start + BATCH)
        columns = [pa.array(ids), pa.array(ids / 2), pa.array(ids / 3)]
        batch = pa.RecordBatch.from_arrays(columns, schema=engine_schema(made))
        bulk.append(log.StagedRows("j", "t", number, 1, 1, encode_batch(batch)))
    prepared = log.JobPrepared("j", 5, 1, ("t",), False, (1,))
    written(root / "bulk", [catalog, *bulk, prepared, log.JobCommitted("j", 5)])
    replayed(root / "bulk", BULK_ROWS, "a bulk load")


def moved(root: Path) -> None:
    """Maps that fill slowly while every view change moves half of the partitions away."""
    catalog = Catalog()
    for number in range(MOVED_MAPS):
        made = MapSchema(f"t{number}", schema().columns, ("id",), ("id",))
        catalog, _ = catalog.with_map(made, if_not_exists=False)
    packings = Packings()
    packings.learn(catalog.maps)
    state = control_pb2.CatalogState(
        version=catalog.version, maps=[codec.encode_schema(each) for each in catalog.maps]
    )
    records: list[log.Record] = [log.CatalogChanged(1, 1, state.SerializeToString(), "maps")]
    for change in range(VIEW_CHANGES):
        records += [
            commit(packings, catalog.maps[number % MOVED_MAPS], number + 2)
            for number in range(change, MOVED_ROWS, VIEW_CHANGES)
        ]
        records += [
            log.PartitionTaken(change, partition, MOVED_ROWS)
            for partition in range(change % 2, PARTITIONS, 2)
        ]
    written(root / "moved", records)
    size = sum(path.stat().st_size for path in (root / "moved").iterdir())
    found = opened(root / "moved", SyncMode.NONE)
    began = time.process_time()
    restored(SystemDisk(), root / "moved" / "image", found.reader)
    taken = time.process_time() - began
    print(
        f"replay of {MOVED_ROWS:,} rows of {MOVED_MAPS} maps over {VIEW_CHANGES} view changes"
        f" ({size / 1e6:.1f} MB): {taken:.2f} s of processor"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default="", help="on the disk that is measured")
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL)  # as members do, which run on uvloop, too
    with tempfile.TemporaryDirectory(dir=options.folder or None) as name:
        throughput(Path(name))
        replays(Path(name))
        moved(Path(name))


if __name__ == "__main__":
    main()
