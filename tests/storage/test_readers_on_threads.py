"""Scans and lookups on other threads, while the loop writes, replaces, removes and tidies up."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from unittest import mock

import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.storage.chunks import chunk, chunk_table, key_index, scan, upkeep
from remuda.storage.chunks.chunk import Chunk, rows_to_batch
from remuda.storage.chunks.chunk_table import ChunkTable
from remuda.storage.chunks.key_index import KeyIndex
from remuda.storage.maps import map_store
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging import precomputed as ahead

SCHEMAS = [
    MapSchema("numbers", (Column("k", sql.BIGINT, False), Column("v", sql.BIGINT)), ("k",), ("k",)),
    MapSchema("words", (Column("k", sql.VARCHAR, False), Column("v", sql.BIGINT)), ("k",), ("k",)),
]
SMALL = (
    (chunk, "TAIL_PIECE_ROWS", 16),
    (chunk_table, "TAIL_PIECE_ROWS", 16),
    (chunk_table, "CHUNK_ROWS_MAX", 128),
    (map_store, "TINY_BATCH_ROWS", 4),
    (map_store, "DELTA_ENTRIES_MAX", 200),
    (upkeep, "DELTA_ENTRIES", 40),
    (key_index, "SMALL_MERGE", 64),
    (key_index, "SLICE_ENTRIES", 32),
    (upkeep, "CHUNK_ROWS", 64),
    (upkeep, "SMALL_CHUNK_ROWS", 32),
    (upkeep, "GROUP_CHUNKS", 3),
    (scan, "GATHERED_ROWS", 16),
    (scan, "BATCH_ROWS", 64),
    (ahead, "HEAVY_ROWS", 50),
)
STEPS = (
    (ChunkTable, ("sealed", "replace", "next_tail", "seal_one")),
    (KeyIndex, ("add", "add_run", "freeze", "_replace", "relocate", "end_all", "drop_ended")),
    (Chunk, ("append", "close", "close_many", "close_all", "seal")),
)
"""What the loop does in several steps; a thread may read before and after each."""
KEYS = 600
ROUNDS = 300
READERS = 3

Key = tuple[int | str, ...]


@pytest.fixture
def small() -> Iterator[None]:
    """Everything happens often: small chunks and runs, threads that switch at every chance."""
    patches = [mock.patch.object(*what) for what in SMALL]
    before = sys.getswitchinterval()
    for patch in patches:
        patch.start()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    for patch in patches:
        patch.stop()


class Moments:
    """What the map holds at the newest timestamp, and which timestamps are being read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: tuple[int, dict[Key, tuple]] = (0, {})
        self._reading: list[int] = []

    def publish(self, at: int, rows: dict[Key, tuple]) -> None:
        with self._lock:
            self._newest = at, dict(rows)

    def begin(self) -> tuple[int, dict[Key, tuple]]:
        with self._lock:
            self._reading.append(self._newest[0])
            return self._newest

    def end(self, at: int) -> None:
        with self._lock:
            self._reading.remove(at)

    def horizon(self) -> int:
        with self._lock:
            return min([*self._reading, self._newest[0]])


class Writer:
    """The loop's part."""

    def __init__(self, schema: MapSchema, moments: Moments) -> None:
        self.store = MapStore(schema)
        self.rows: dict[Key, tuple] = {}
        self.chance = random.Random(schema.name)
        self._text = schema.columns[0].type.is_text
        self._moments = moments
        self._clock = 0

    def key(self, number: int) -> int | str:
        return f"key {number}" if self._text else number

    def round(self) -> None:
        self._clock += 1
        kind = self.chance.random()
        if kind < 0.6:
            self._single()
        elif kind < 0.9:
            self._batch(self.chance.randrange(1, KEYS // 4), overwrite=False)
        else:
            self._batch(self.chance.randrange(1, KEYS), overwrite=True)
        self._moments.publish(self._clock, self.rows)
        for _ in range(self.chance.randrange(12)):
            self.store.maintain(self._moments.horizon())

    def _single(self) -> None:
        for _ in range(self.chance.randrange(1, 40)):
            key = self.key(self.chance.randrange(KEYS))
            if self.chance.random() < 0.3:
                assert self.store.remove((key,), self._clock) == self.rows.pop((key,), None)
            else:
                self.store.put((key, self._clock), self._clock)
                self.rows[key,] = (key, self._clock)
            self._clock += 1

    def _batch(self, size: int, *, overwrite: bool) -> None:
        numbers = self.chance.sample(range(KEYS), size)
        rows = [(self.key(number), self._clock) for number in numbers]
        job = f"job {self._clock}"
        self.store.stage(job, "t", 0, rows_to_batch(rows, self.store.schema))
        work = self.store.ahead(job, ["t"], overwrite=overwrite)
        if work is not None:
            work()()
        self.store.prepare(job, ["t"], overwrite=overwrite, insert_only=False)
        self.store.mark_prepared(job, self._clock)
        assert self.store.resolve(job, self._clock) == size
        if overwrite:
            self.rows.clear()
        self.rows.update({row[:1]: row for row in rows})


def read(store: MapStore, moments: Moments, seed: int, found: list[str]) -> None:
    at, expected = moments.begin()
    chance = random.Random(seed)
    cursor = store.scan(at, [0, 1])
    is_text = store.schema.columns[0].type.is_text
    batches: list[pa.RecordBatch] = []
    while (batch := cursor.next()) is not None:
        batches.append(batch)
        for number in chance.sample(range(KEYS), 5):
            key: Key = (f"key {number}",) if is_text else (number,)
            row = store.get(key, at)
            if row != expected.get(key):
                found.append(f"{key} at {at}: {row}, not {expected.get(key)}")
    columns = pa.Table.from_batches(batches).to_pydict() if batches else {"k": [], "v": []}
    rows = sorted(zip(columns["k"], columns["v"], strict=True))
    if rows != sorted(expected.values()):
        found.append(f"scan at {at}: {len(rows)} rows, not {len(expected)}")
    moments.end(at)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
@pytest.mark.usefixtures("small")
def test_readers_between_the_steps_of_a_write(
    schema: MapSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same without threads: a reader comes in wherever one could."""
    moments = Moments()
    writer = Writer(schema, moments)
    found: list[str] = []
    steps = 0
    reading = False

    def between(kind: type, name: str) -> None:
        nonlocal steps, reading
        steps += 1
        often = 40 if kind is Chunk or name == "add" else 1
        if steps % often == 0 and not reading:
            reading = True
            read(writer.store, moments, steps, found)
            reading = False

    def watched(kind: type, name: str) -> None:
        real = getattr(kind, name)

        def step(*arguments: object, **named: object) -> object:
            between(kind, name)
            result = real(*arguments, **named)
            between(kind, name)
            return result

        monkeypatch.setattr(kind, name, step)

    for kind, names in STEPS:
        for name in names:
            watched(kind, name)
    for _ in range(ROUNDS // 3):
        writer.round()
        assert found == []
    assert steps > 1000


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
@pytest.mark.usefixtures("small")
def test_readers_on_threads_see_exactly_their_timestamp(schema: MapSchema) -> None:
    moments = Moments()
    writer = Writer(schema, moments)
    found: list[str] = []
    reads = [0] * READERS
    over = threading.Event()

    def reader(number: int) -> None:
        while not over.is_set() or reads[number] < 3:
            reads[number] += 1
            try:
                read(writer.store, moments, reads[number], found)
            except Exception as error:  # noqa: BLE001 (what a thread raises is the finding)
                found.append(repr(error))
            if found:
                return

    threads = [threading.Thread(target=reader, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    for _ in range(ROUNDS):
        writer.round()
        if found:
            break
    over.set()
    for thread in threads:
        thread.join()
    assert found == []
    assert all(reads)
