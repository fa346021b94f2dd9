"""What the model of secondary indexes does not show: when work is saved, and on other threads."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import SchemaChanged
from remuda.storage.indexes.access import Equal, Probe, Range
from remuda.storage.maps.map_store import MapStore

COLUMNS = (Column("k", sql.BIGINT, False), Column("v", sql.BIGINT), Column("s", sql.VARCHAR))
PLAIN = MapSchema("m", COLUMNS, ("k",), ("k",))


def index(number: int, kind: IndexKind, *columns: str) -> IndexDefinition:
    return IndexDefinition(f"i{number}", kind, tuple(map(IndexedColumn, columns)), number, True)


SCHEMA = replace(
    PLAIN,
    indexes=(
        index(1, IndexKind.SORTED, "v"),
        index(2, IndexKind.HASH, "s"),
        index(3, IndexKind.BITMAP, "v"),
    ),
)


def batch(first: int, rows: int) -> pa.RecordBatch:
    keys = range(first, first + rows)
    columns = [list(keys), [key % 1000 for key in keys], [f"s{key % 77}" for key in keys]]
    schema = engine_schema(PLAIN)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def tidied(store: MapStore) -> MapStore:
    while store.maintain(0):
        pass
    return store


def count(store: MapStore, at: int, access: Probe) -> int:
    cursor = store.indexes.scan(at, [0], None, 0, access)
    total = 0
    while (found := cursor.next()) is not None:
        total += found.num_rows
    return total


def test_an_index_reads_only_what_it_names() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(0, 50_000), 5)
    assert store.indexes.built == {1, 2, 3}, "they were made with the map"
    assert count(store, 9, Probe(1, ((Equal(7),),))) == 50_000, "not covered yet: all rows"
    tidied(store)
    assert count(store, 9, Probe(1, ((Equal(7),),))) == 50
    assert count(store, 9, Probe(3, ((Equal(7),),))) == 50
    assert count(store, 9, Probe(2, ((Equal("s7"),),))) == len(range(7, 50_000, 77))
    assert count(store, 4, Probe(1, ((Equal(7),),))) == 0, "before they came"


def test_a_range_of_many_rows_is_read_as_a_scan() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(0, 100_000), 5)
    tidied(store)
    assert count(store, 9, Probe(1, ((Range(0, True, 30, False),),))) == 3_000
    assert count(store, 9, Probe(1, ((Range(0, True, 900, False),),))) == 100_000


def test_building_goes_in_slices_and_says_when_it_is_done() -> None:
    store = MapStore(PLAIN)
    store.upsert_batch(batch(0, 200_000), 5)
    tidied(store)
    store.define_indexes(SCHEMA)
    assert store.indexes.built == frozenset()
    slices = 0
    while store.indexes.step():
        slices += 1
    assert slices > 5
    assert store.indexes.built == {1, 2, 3}
    size = store.bytes
    store.define_indexes(PLAIN)
    assert store.bytes < size - 200_000 * 32, "the memory of all three is free"


def test_a_dropped_index_still_answers_who_was_about_to_use_it() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(0, 5_000), 5)
    tidied(store)
    store.define_indexes(PLAIN)
    assert count(store, 9, Probe(1, ((Equal(7),),))) == 5_000
    cursor = store.indexes.ordered(9, [1], None, 0, 1, ((),), True)
    first = cursor.next()
    assert first is not None
    assert first.column(0)[0].as_py() == 999
    with pytest.raises(SchemaChanged):
        store.indexes.get(99)


def test_readers_on_threads_see_their_timestamp() -> None:
    """The loop puts, removes, loads and tidies up; every reader counts the rows of its time."""
    store = MapStore(SCHEMA)
    newest = [(0, dict[int, int]())]
    failures: list[str] = []
    stop = threading.Event()

    def read(seed: int) -> None:
        chance = random.Random(seed)
        while not stop.is_set():
            at, rows = newest[-1]
            value = chance.randrange(20)
            expected = sum(v == value for v in rows.values())
            probe = Probe(1, ((Equal(value),),))
            cursor = store.indexes.scan(at, [0, 1], None, 0, probe)
            found = 0
            while (part := cursor.next()) is not None:
                found += sum(v == value for v in part.column(1).to_pylist())
            if found != expected:
                failures.append(f"{value} at {at}: {found}, not {expected}")

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for reader in readers:
        reader.start()
    chance = random.Random(1)
    rows: dict[int, int] = {}
    at = 0
    for step in range(300):
        for _ in range(20):
            at += 1
            key, value = chance.randrange(800), chance.randrange(20)
            if chance.random() < 0.2:
                store.discard((key,), at)
                rows.pop(key, None)
            else:
                store.set((key, value, None), at)
                rows[key] = value
        if step % 20 == 0:
            at += 1
            keys = chance.sample(range(800), 200)
            columns = [keys, [key % 20 for key in keys], [None] * 200]
            arrays = [
                pa.array(c, f.type) for c, f in zip(columns, engine_schema(PLAIN), strict=True)
            ]
            loaded = pa.RecordBatch.from_arrays(arrays, schema=engine_schema(PLAIN))
            store.upsert_batch(loaded, at)
            rows.update({key: key % 20 for key in keys})
        newest.append((at, dict(rows)))
        for _ in range(3):
            store.maintain(0)
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []
