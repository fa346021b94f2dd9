"""How much work the replay of a log is, counted, and that it leaves the rows that it should."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from logged import logged_cluster, memory_disk, on_disk, sim_disk

from remuda.catalog.catalog import Catalog
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapOptions, MapSchema
from remuda.datatypes.sql import BIGINT
from remuda.datatypes.timestamp import FOREVER
from remuda.limits import PARTITIONS
from remuda.member.journal import checkpoint as wal_checkpoint
from remuda.member.journal.replay import restored
from remuda.member.state.transaction_sets import Write
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.snapshot.log_replay import Restored
from remuda.snapshot.log_rows import Packings, encode_batch, key_columns
from remuda.storage.chunks.chunk import Chunk
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.format import records as log
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import open_log
from remuda.storage.log.writer import SyncMode
from remuda.storage.maps import transfer

FOLDER = Path("/log")
IDENTITY = Identity(b"c" * 16, b"m" * 16)
COLUMNS = (Column("id", BIGINT, False), Column("x", BIGINT, True))


def catalog_of(maps: int, replicated: int = 0) -> Catalog:
    catalog = Catalog()
    for number in range(maps + replicated):
        schema = MapSchema(
            f"t{number}", COLUMNS, ("id",), ("id",), replicated=number >= maps, options=MapOptions()
        )
        catalog, _ = catalog.with_map(schema, if_not_exists=False)
    return catalog


@dataclass
class Journal:
    """A log as a member writes it, and the rows that it should leave."""

    catalog: Catalog
    rows: dict[int, dict[int, int]] = field(default_factory=dict)
    clock: int = 1
    packings: Packings = field(default_factory=Packings)

    def __post_init__(self) -> None:
        self.disk = sim_disk.SimulatedDisk()
        self.opened = open_log(self.disk, FOLDER, IDENTITY, SyncMode.NONE, segment_size=20_000)
        self.packings.learn(self.catalog.maps)
        self.rows = {schema.map_id: {} for schema in self.catalog.maps}
        state = control_pb2.CatalogState(
            version=self.catalog.version,
            maps=[codec.encode_schema(schema) for schema in self.catalog.maps],
        )
        self.note(log.CatalogChanged(1, 1, state.SerializeToString(), "maps"))

    def note(self, record: log.Record) -> None:
        self.opened.writer.append(record)

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def partition(self, schema: MapSchema, key: int) -> int:
        keys = KeyRule(schema)
        return keys.partition((key, None), keys.hash((key,)))

    def put(self, schema: MapSchema, key: int, x: int | None, *, prepared: bool = False) -> None:
        at = self.now()
        row = None if x is None else (key, x)
        change = self.packings.change(Write(schema.map_id, schema.version, (key,), row))
        assert change is not None
        place = PARTITIONS + 1 if schema.replicated else self.partition(schema, key)
        part = log.PartId(at, 1, place)
        if prepared:
            self.note(log.Prepared(part, at, (place,), b"", (change,)))
        self.note(log.Committed(part, at, (place,), None if prepared else (change,)))
        if x is None:
            self.rows[schema.map_id].pop(key, None)
        else:
            self.rows[schema.map_id][key] = x

    def batch(self, schema: MapSchema, keys: list[int], x: int) -> pa.RecordBatch:
        arrays = [pa.array(keys, pa.int64()), pa.array([x] * len(keys), pa.int64())]
        return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(schema))

    def job(self, schema: MapSchema, keys: list[int], x: int, removed: list[int]) -> None:
        at, (name, version) = self.now(), (f"j{self.clock}", schema.version)
        rows = encode_batch(self.batch(schema, keys, x))
        self.note(log.StagedRows(name, "p:t", 1, schema.map_id, version, rows))
        gone = key_columns(self.batch(schema, removed, 0), schema)
        self.note(log.StagedKeys(name, "p:t", 2, schema.map_id, version, encode_batch(gone)))
        self.note(log.JobPrepared(name, at, schema.map_id, ("p:t",), False, (1,)))
        self.note(log.JobCommitted(name, at))
        held = self.rows[schema.map_id]
        held.update(dict.fromkeys(keys, x))
        for key in removed:
            held.pop(key, None)

    def void(self, partition: int, *, taken: bool) -> None:
        if taken:
            self.note(log.PartitionTaken(1, partition, self.now()))
        else:
            self.note(log.PartitionLeft(1, partition))
        for schema in self.catalog.maps:
            if not schema.replicated:
                held = self.rows[schema.map_id]
                for key in [k for k in held if self.partition(schema, k) == partition]:
                    del held[key]

    def void_map(self, schema: MapSchema) -> None:
        self.note(log.PartitionTaken(1, PARTITIONS + schema.map_id, self.now()))
        self.rows[schema.map_id].clear()

    def copied(self, schema: MapSchema, keys: list[int], x: int) -> None:
        batch, at = self.batch(schema, keys, x), self.now()
        begins = pa.array([at] * len(keys), pa.int64()).to_numpy()
        ends = pa.array([FOREVER] * len(keys), pa.int64()).to_numpy()
        versions = transfer.Versions(schema, batch, begins, ends)
        place = PARTITIONS + schema.map_id if schema.replicated else -1
        rows = encode_batch(versions.on_wire(), (transfer.ALWAYS, 0))
        self.note(log.CopiedRows(1, place, schema.map_id, schema.version, rows))
        self.rows[schema.map_id].update(dict.fromkeys(keys, x))

    def replayed(self) -> Restored:
        while (flush := self.opened.writer.step()) is not None:
            self.opened.files.carry_out(flush)
            self.opened.writer.on_flushed()
        return restored(self.disk, FOLDER / "image", self.opened.reader)

    def check(self) -> Restored:
        made = self.replayed()
        for map_id, store in made.stores.items():
            cursor = store.scan(FOREVER - 1, (0, 1))
            found: dict[int, int] = {}
            while (batch := cursor.next()) is not None:
                keys, values = (column.to_pylist() for column in batch.columns)
                assert not found.keys() & set(keys), "one row for each key"
                found.update(zip(keys, values, strict=True))
            assert found == self.rows[map_id]
            assert store.rows == len(found)
        return made


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_come_and_go_with_their_partitions(seed: int) -> None:
    random = Random(seed)
    journal = Journal(catalog_of(2, 1))
    maps = list(journal.catalog.maps)
    for number in range(150):
        schema = random.choice(maps)
        keys = random.sample(range(60), 6)
        held = journal.rows[schema.map_id]
        match random.randrange(8):
            case 0 | 1 | 2:
                journal.put(schema, keys[0], random.choice([number, number, None]))
            case 3:
                journal.put(schema, keys[0], number, prepared=True)
            case 4:
                journal.job(schema, keys[:4], number, keys[4:])
            case 5 if held and not schema.replicated:
                place = journal.partition(schema, random.choice(list(held)))
                journal.void(place, taken=random.random() < 0.5)
            case 6 if schema.replicated:
                journal.void_map(schema)
                journal.copied(schema, keys, number)
            case 6:
                place = journal.partition(schema, keys[0])
                journal.void(place, taken=True)
                fresh = [k for k in range(60) if journal.partition(schema, k) == place]
                journal.copied(schema, fresh, number)
            case _:
                journal.note(log.PartitionReady(1, random.randrange(PARTITIONS), True))
    journal.check()


class Counted:
    """Counts what a replay does to chunks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passes = self.rows = 0
        discard, close_many = transfer.discard, Chunk.close_many

        def count(chunks: Any, partitions: frozenset[int]) -> int:
            self.passes += len(chunks)
            self.rows += sum(chunk.length for chunk in chunks)
            return discard(chunks, partitions)

        def count_rows(chunk: Chunk, offsets: Any, at: int) -> int:
            self.rows += len(offsets)
            return close_many(chunk, offsets, at)

        monkeypatch.setattr(transfer, "discard", count)
        monkeypatch.setattr(Chunk, "close_many", count_rows)


def test_view_changes_cost_nothing_for_each_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many maps, and many partitions that move away: the replay looks at no row for it."""
    counted = Counted(monkeypatch)
    journal = Journal(catalog_of(40))
    for change in range(10):
        for schema in journal.catalog.maps:
            for key in range(5):
                journal.put(schema, key + change, change)
        for partition in range(PARTITIONS):
            journal.void(partition, taken=partition % 2 == 0)
    for schema in journal.catalog.maps:
        journal.put(schema, 1, 7)
    made = journal.check()
    assert counted.passes == 0
    assert counted.rows == 0
    assert made.rows == 40, "only rows that stay are applied"


def test_an_image_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a checkpoint has of copies that went later is taken away by one look at each map."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a")]
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            client = await cluster.client()
            for number in range(4):
                await client.sql(f"CREATE TABLE t{number} (id BIGINT PRIMARY KEY)")
                values = ", ".join(f"({key})" for key in range(300))
                await client.sql(f"INSERT INTO t{number} VALUES {values}")
            member = cluster.members[0]
            assert member.recovery.checkpoints is not None
            await member.recovery.checkpoints.take()
            for partition in range(1, PARTITIONS):
                member.core.wal.append(log.PartitionLeft(1, partition))  # type: ignore[attr-defined]
            await member.core.wal.safe()
            state = member.recovery.state
            assert state is not None
            reader = open_log(disk, Path("/a/log-0001"), state.identity, SyncMode.FSYNC).reader
            counted = Counted(monkeypatch)
            made = restored(disk, Path("/a/image-0001"), reader)
            chunks = sum(len(store._table.snapshot()) for store in made.stores.values())
            assert counted.passes == chunks, "each chunk once"
            for store in made.stores.values():
                rows = store.extraction(transfer.EVERY_PARTITION, transfer.ALWAYS, FOREVER - 1)
                assert sum(versions.rows for versions in rows.versions()) == store.rows < 10

    asyncio.run(scenario())


def test_open_parts_of_a_void_copy_are_found_by_their_partition() -> None:
    """And those of a member are not taken for those of a replicated map with its number."""
    journal = Journal(catalog_of(1, 1))
    for number, place in enumerate((3, 4, PARTITIONS + 2)):
        journal.note(log.Prepared(log.PartId(number, 1, place), 5, (place, 9), b"", ()))
    journal.void(3, taken=False)
    journal.void_map(journal.catalog.maps[1])
    assert journal.catalog.maps[1].map_id == 2
    made = journal.replayed()
    assert sorted(prepared.part.partition for prepared in made.parts) == [4, PARTITIONS + 2]


def test_a_start_that_has_replayed_much_takes_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wal_checkpoint, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(wal_checkpoint, "REPLAYED_MAX", 100)

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a")]
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            await client.sql("INSERT INTO t VALUES (1), (2)")
            assert not cluster.members[0].core.wal.gauges()["log_checkpoint"]
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            while not cluster.members[0].core.wal.gauges()["log_checkpoint"]:
                await asyncio.sleep(0)
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            assert await (await cluster.client()).sql("SELECT count(*) FROM t") == [(2,)]

    asyncio.run(scenario())
