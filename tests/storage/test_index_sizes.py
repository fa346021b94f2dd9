"""What indexes will take is known before they are built, near enough to refuse them in time."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from remuda.catalog.indexes import with_index
from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import Column, MapSchema
from remuda.storage.indexes.sizes import WriteSizes, entries_size
from remuda.storage.maps.map_store import MapStore

ROWS = 20_000
SCHEMA = MapSchema(
    "t",
    (
        Column("id", sql.BIGINT, nullable=False, id=1),
        Column("n", sql.INTEGER, id=2),
        Column("text", sql.VARCHAR, id=3),
        Column("few", sql.VARCHAR, id=4),
        Column("large", sql.decimal(38, 2), id=5),
    ),
    ("id",),
    ("id",),
    map_id=7,
    version=1,
)
CASES = [
    (IndexKind.SORTED, ("n",)),
    (IndexKind.SORTED, ("text",)),
    (IndexKind.SORTED, ("n", "text")),
    (IndexKind.SORTED, ("large",)),
    (IndexKind.HASH, ("text",)),
    (IndexKind.HASH, ("n", "few")),
    (IndexKind.BITMAP, ("few",)),
    (IndexKind.BITMAP, ("n",)),
]


def batch(first: int) -> pa.RecordBatch:
    ids = range(first, first + ROWS)
    form = engine_schema(SCHEMA)
    columns = [
        pa.array(ids),
        pa.array([i % 5000 for i in ids], form.field(1).type),
        pa.array([None if i % 50 == 0 else f"{i:040}" for i in ids], form.field(2).type),
        pa.array([f"value {i % 7}" for i in ids], form.field(3).type),
        pa.array([i * 100 for i in ids], pa.int64()).cast(form.field(4).type, safe=False),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=form)


def filled() -> MapStore:
    store = MapStore(SCHEMA)
    for step in range(3):
        store.upsert_batch(batch(step * ROWS), step + 1)
    for key in range(100):
        store.set((10**6 + key, 1, "x", "y", 1), 10)
    return store


def indexed(schema: MapSchema, kind: IndexKind, names: tuple[str, ...]) -> MapSchema:
    columns = tuple(IndexedColumn(name) for name in names)
    return with_index(schema, IndexDefinition("i", kind, columns, index_id=1))


@pytest.mark.parametrize(("kind", "names"), CASES, ids=[f"{k.value} {n}" for k, n in CASES])
def test_the_size_of_an_index_is_expected_and_found(
    kind: IndexKind, names: tuple[str, ...]
) -> None:
    store = filled()
    wanted = indexed(SCHEMA, kind, names)
    expected = store.indexes.expected(wanted)
    before = store.bytes
    store.define_indexes(wanted)
    assert store.indexes.expected(wanted) == 0
    assert store.indexes.unbuilt == expected
    left = [expected]
    while store.maintain(5):
        left.append(store.indexes.unbuilt)
    assert left == sorted(left, reverse=True)
    assert store.indexes.unbuilt == 0
    took = store.indexes.nbytes
    assert store.bytes >= before + took - 1_000_000  # upkeep may have put chunks together
    assert took * 0.9 < expected
    if kind is not IndexKind.BITMAP:  # which keeps bits where they are smaller
        assert expected < took * 1.5 + 100 * 100
    assert entries_size(wanted, batch(0)) * 3 <= expected


@pytest.mark.parametrize(("kind", "names"), CASES, ids=[f"{k.value} {n}" for k, n in CASES])
def test_single_rows_count_with_their_entries_before_these_are_made(
    kind: IndexKind, names: tuple[str, ...]
) -> None:
    """In the tail, where lookups make them, and in sealed chunks, where upkeep makes them."""
    schema = indexed(SCHEMA, kind, names)
    store, sizes, rows_alone = MapStore(schema), WriteSizes(schema), WriteSizes(SCHEMA)
    empty, admitted, entries = store.bytes, 0, 0
    for key in range(5000):
        row = (key, key, f"{key:040}", f"value {key}", key * 100)
        store.set(row, 10)
        admitted += sizes.of(row)
        entries += sizes.of(row) - rows_alone.of(row)
    tail = store._table.tail
    for index in store.indexes.by_id.values():
        index.delta(tail, tail.tuples or (), tail.length)
    assert 0 < store.indexes.nbytes <= entries
    while store.maintain(5):
        assert store.indexes.nbytes <= entries
    store._table.next_tail()
    while store.maintain(5):
        assert store.indexes.nbytes <= entries
    assert store.bytes - empty <= admitted


def test_columns_that_were_renamed_added_and_dropped_since_the_rows_were_written() -> None:
    store = filled()
    number, text = SCHEMA.columns[1], SCHEMA.columns[2]
    altered = replace(
        SCHEMA,
        columns=(SCHEMA.columns[0], replace(text, name="label"), Column("new", sql.VARCHAR, id=9)),
        version=2,
    )
    sizes = [
        store.indexes.expected(indexed(altered, IndexKind.SORTED, names))
        for names in (("label",), ("new",), ("label", "new"))
    ]
    before = store.indexes.expected(indexed(SCHEMA, IndexKind.SORTED, ("text",)))
    assert sizes[0] == before
    assert 0 < sizes[1] < sizes[0] < sizes[2]
    assert number.name not in altered.position
