"""Rows of older schemas, read and written under newer ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.widening import widening
from remuda.errors import SchemaChanged
from remuda.storage.maps.map_store import MapStore

FIRST = MapSchema(
    "m",
    (
        Column("a", sql.VARCHAR, id=1),
        Column("id", sql.BIGINT, nullable=False, id=2),
        Column("n", sql.INTEGER, id=3),
    ),
    ("id",),
    ("id",),
    columns_made=3,
)


def altered(schema: MapSchema, *columns: Column) -> MapSchema:
    return replace(schema, columns=columns, version=schema.version + 1)


def rows_of(store: MapStore, at: int, version: int = 0) -> list[tuple[object, ...]]:
    schema = store.schema if not version else None
    width = len(schema.columns) if schema is not None else 3
    cursor = store.scan(at, range(width), None, version)
    found: list[tuple[object, ...]] = []
    while (batch := cursor.next()) is not None:
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return sorted(found, key=repr)


def filled() -> MapStore:
    """Rows in a bulk chunk, in a sealed tail, and in the open one."""
    store = MapStore(FIRST)
    ids = np.arange(100)
    batch = pa.record_batch(
        [pa.array([f"b{i}" for i in ids]), pa.array(ids), pa.array(ids, pa.int32())],
        schema=engine_schema(FIRST),
    )
    store.upsert_batch(batch, 1)
    store.put(("t", 1000, 7), 2)
    return store


def test_columns_come_go_and_change_their_names_and_types() -> None:
    store = filled()
    _a, key, n = FIRST.columns
    second = altered(
        FIRST,
        replace(key, name="key"),
        replace(n, name="wide", type=sql.BIGINT),
        Column("new", sql.INTEGER, id=4, missing=5),
        Column("empty", sql.VARCHAR, id=5),
    )
    second = replace(second, key=("key",), partition_by=("key",))
    store.alter(second)
    assert store.get((3,), 10) == (3, 3, 5, None)
    assert store.get((1000,), 10) == (1000, 7, 5, None)
    store.put((1000, 2**40, 6, "x"), 11)
    assert store.get((1000,), 11) == (1000, 2**40, 6, "x")
    assert store.get((1000,), 10) == (1000, 7, 5, None)
    assert rows_of(store, 11)[:2] == [(0, 0, 5, None), (1, 1, 5, None)]
    assert len(rows_of(store, 11)) == 101
    assert store.remove((5,), 12) == (5, 5, 5, None)
    store.put((6, 60, 61, None), 13)
    assert store.get((6,), 13) == (6, 60, 61, None)
    assert store.size(13) == 100
    statistics = store.statistics()
    assert statistics.columns[1].maximum == 2**40
    assert statistics.columns[2].minimum == 5


def test_numbers_become_texts() -> None:
    store = filled()
    first, key, n = FIRST.columns
    store.alter(altered(FIRST, first, key, replace(n, type=sql.VARCHAR)))
    assert store.get((3,), 10) == ("b3", 3, "3")
    assert store.get((1000,), 10) == ("t", 1000, "7")
    assert ("b42", 42, "42") in rows_of(store, 10)
    store.put(("t", 1000, "seven"), 11)
    assert rows_of(store, 11)[-1] == ("t", 1000, "seven")
    statistics = store.statistics()
    assert statistics.columns[2].distinct > 50


def test_upkeep_rewrites_old_chunks_in_the_new_schema() -> None:
    store = filled()
    _a, key, n = FIRST.columns
    store.alter(altered(FIRST, key, n, Column("new", sql.INTEGER, id=4, missing=5)))
    for i in range(50):
        store.put((i, 0, 0), 20 + i)
    while store.maintain(1000):
        pass
    assert store.get((60,), 1000) == (60, 60, 5)
    assert store.get((6,), 1000) == (6, 0, 0)
    assert store.get((1000,), 1000) == (1000, 7, 5)
    assert len(rows_of(store, 1000)) == 101


def test_a_scan_goes_on_under_the_schema_that_it_began_with() -> None:
    store = filled()
    cursor = store.scan(5, [0, 1, 2])
    store.alter(altered(FIRST, FIRST.columns[1]))
    store.put((7,), 6)
    found = cursor.next()
    assert found is not None
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    assert ("b7", 7, 7) in rows
    assert ("t", 1000, 7) in rows


def test_an_older_version_stays_readable_while_its_columns_are_there() -> None:
    store = filled()
    added = altered(FIRST, *FIRST.columns, Column("new", sql.INTEGER, id=4))
    store.alter(added)
    store.put(("z", 2000, 1, 2), 5)
    assert store.reads(1)
    assert store.get((2000,), 5, 1) == ("z", 2000, 1)
    assert ("z", 2000, 1) in rows_of(store, 5, 1)
    store.alter(altered(added, *added.columns[1:]))
    assert not store.reads(1)
    assert not store.reads(2)
    with pytest.raises(SchemaChanged):
        store.scan(5, [0], None, 1)


def test_a_job_that_is_prepared_keeps_its_schema() -> None:
    store = filled()
    batch = pa.record_batch(
        [pa.array(["j", "j"]), pa.array([3, 5000]), pa.array([1, 2], pa.int32())],
        schema=engine_schema(FIRST),
    )
    store.stage("1:1", "0:0", 0, batch)
    store.prepare("1:1", ["0:0"], overwrite=False, insert_only=False)
    store.mark_prepared("1:1", 30)
    key, n = FIRST.columns[1:]
    store.alter(altered(FIRST, n, key))
    store.resolve("1:1", 31)
    assert store.get((3,), 31) == (1, 3)
    assert store.get((5000,), 31) == (2, 5000)


def test_a_column_of_the_name_of_a_dropped_one_is_another() -> None:
    store = filled()
    a, key, _n = FIRST.columns
    store.alter(altered(FIRST, a, key, Column("n", sql.INTEGER, id=4)))
    assert store.get((3,), 10) == ("b3", 3, None)


@pytest.mark.parametrize(
    ("stored", "wanted", "value", "converted"),
    [
        (sql.INTEGER, sql.BIGINT, 5, 5),
        (sql.INTEGER, sql.DOUBLE, 5, 5.0),
        (sql.INTEGER, sql.decimal(12, 2), 5, 500),
        (sql.BIGINT, sql.decimal(38, 4), -5, -50000),
        (sql.decimal(9, 2), sql.decimal(20, 3), 123, 1230),
        (sql.REAL, sql.DOUBLE, 0.5, 0.5),
        (sql.varchar(3), sql.VARCHAR, "abc", "abc"),
        (sql.varchar(3), sql.varchar(5), "abc", "abc"),
        (sql.DATE, sql.TIMESTAMP, 2, 2 * 86_400_000_000),
    ],
)
def test_widening_keeps_values(
    stored: sql.SqlType, wanted: sql.SqlType, value: object, converted: object
) -> None:
    first = MapSchema(
        "w", (Column("id", sql.BIGINT, False, id=1), Column("v", stored, id=2)), ("id",), ("id",)
    )
    store = MapStore(first)
    store.put((1, value), 1)  # type: ignore[arg-type]
    store.put((2, None), 1)
    store.alter(altered(first, first.columns[0], Column("v", wanted, id=2)))
    assert store.get((1,), 2) == (1, converted)
    batch = store.scan(2, [1]).next()
    assert batch is not None
    assert batch.schema.types == engine_schema(store.schema).types[1:]
    assert sorted(batch.column(0).is_valid().to_pylist()) == [False, True]


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (sql.BIGINT, sql.INTEGER),
        (sql.BIGINT, sql.DOUBLE),
        (sql.INTEGER, sql.decimal(10, 2)),
        (sql.decimal(9, 2), sql.decimal(9, 1)),
        (sql.VARCHAR, sql.varchar(5)),
        (sql.DOUBLE, sql.REAL),
        (sql.VARCHAR, sql.INTEGER),
    ],
)
def test_what_could_lose_something_is_no_widening(stored: sql.SqlType, wanted: sql.SqlType) -> None:
    assert widening(stored, wanted) is None
