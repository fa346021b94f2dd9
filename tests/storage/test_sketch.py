"""HyperLogLog sketches and the statistics made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.hashes.keyhash import hash_arrays
from remuda.datatypes.schema import Column, MapSchema
from remuda.storage.maps import statistics
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.sketch import REGISTERS, decoded, distinct, merged, sketch_of

SCHEMA = MapSchema(
    "visits",
    (
        Column("id", sql.BIGINT, nullable=False),
        Column("customer", sql.BIGINT),
        Column("country", sql.VARCHAR),
        Column("price", sql.decimal(9, 2)),
        Column("took", sql.INTERVAL),
    ),
    ("id",),
    ("id",),
)


def sketch(values: np.ndarray) -> np.ndarray:
    return sketch_of(hash_arrays([pa.array(values, pa.int64())], [sql.BIGINT]))


def visits(first: int, count: int) -> pa.RecordBatch:
    ids = np.arange(first, first + count)
    country = pa.array(["CZ" if i % 10 else "DE" if i % 20 else None for i in ids.tolist()])
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids),
            pa.array(ids // 4),
            country,
            pa.array(ids % 1000 * 100),
            pa.nulls(count, engine_schema(SCHEMA).field("took").type),
        ],
        schema=engine_schema(SCHEMA),
    )


@pytest.mark.parametrize("count", [0, 1, 10, 1_000, 30_000, 1_000_000])
def test_counts_within_three_standard_errors(count: int) -> None:
    found = distinct(sketch(np.arange(count) * 7919))
    assert found == pytest.approx(count, rel=0.07, abs=0.5)


def test_repeated_values_count_once() -> None:
    values = np.arange(5_000)
    assert (sketch(np.repeat(values, 3)) == sketch(values)).all()


def test_merged_is_the_sketch_of_the_union() -> None:
    parts = [np.arange(0, 40_000), np.arange(20_000, 60_000), np.arange(0)]
    assert (merged(map(sketch, parts)) == sketch(np.arange(60_000))).all()
    assert distinct(merged([])) == 0.0


def test_bytes_and_back() -> None:
    made = sketch(np.arange(100))
    assert (decoded(made.tobytes()) == made).all()
    assert len(made) == REGISTERS
    assert decoded(b"") is None


def test_a_clustered_column_is_counted_over_all_rows() -> None:
    """A sample of one row in four sees nearly every customer once: it cannot tell their number."""
    store = MapStore(SCHEMA)
    store.upsert_batch(visits(0, 400_000), 1)
    key, customer, country, price, took = store.statistics().columns
    assert customer.distinct == pytest.approx(100_000, rel=0.08)
    assert key.distinct == pytest.approx(400_000, rel=0.08)
    assert (country.distinct, price.distinct, took.distinct) == (2, 1000, 0)
    assert took.null_fraction == 1.0


def test_chunks_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(visits(0, 200_000), 1)
    store.statistics()
    hashed: list[int] = []

    def counting(arrays: list[pa.Array], types: list[sql.SqlType]) -> np.ndarray:
        hashed.append(len(arrays[0]))
        return hash_arrays(arrays, types)

    monkeypatch.setattr("remuda.storage.maps.statistics.hash_arrays", counting)
    store.upsert_batch(visits(200_000, 100_000), 2)
    found = store.statistics()
    assert found.columns[1].distinct == pytest.approx(75_000, rel=0.08)
    # Two ambiguous columns over the new rows only, and the values of the sample of the others.
    assert sum(hashed) <= 2 * 100_000 + 2_000


def test_statistics_of_wide_values_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed of a sample takes several times its size, and no limit counts it."""
    monkeypatch.setattr(statistics, "SAMPLE_SIZE", 100_000)
    monkeypatch.setattr(statistics, "SKETCHED_SIZE", 100_000)
    hashed: list[int] = []
    taken: list[int] = []
    sample = statistics._sample

    def sampling(*arguments: Any) -> pa.ChunkedArray:
        taken.append(len(found := sample(*arguments)))
        assert found.nbytes < 150_000
        return found

    def counting(arrays: list[pa.Array], types: list[sql.SqlType]) -> np.ndarray:
        hashed.append(arrays[0].nbytes)
        return hash_arrays(arrays, types)

    monkeypatch.setattr(statistics, "_sample", sampling)
    monkeypatch.setattr(statistics, "hash_arrays", counting)
    columns = (Column("id", sql.BIGINT, nullable=False), Column("v", sql.VARCHAR))
    schema = MapSchema("wide", columns, ("id",), ("id",))
    store = MapStore(schema)
    for start in range(0, 4000, 1000):
        texts = [f"{number % 1500:0500}" for number in range(start, start + 1000)]
        arrays = [pa.array(range(start, start + 1000)), pa.array(texts)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=engine_schema(schema))
        store.upsert_batch(batch, start + 1)
    key, wide = store.statistics().columns
    assert taken[0] == 4000
    assert 150 <= taken[1] <= 200
    assert max(hashed) < 150_000
    assert (key.distinct, wide.width) == (4000, pytest.approx(504, abs=5))
    assert wide.distinct == pytest.approx(1500, rel=0.08)


def test_histogram_and_common_values() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(visits(0, 100_000), 1)
    key, customer, country, price, took = store.statistics().columns
    assert len(key.histogram) == 65
    assert list(key.histogram) == sorted(key.histogram)
    assert key.histogram[32] == pytest.approx(50_000, rel=0.05)
    assert price.histogram[-1] > price.histogram[0] >= 0
    assert [value for value, _ in country.common] == ["CZ", "DE"]
    assert country.common[0][1] == pytest.approx(0.9, abs=0.01)
    assert customer.common == ()
    assert (took.histogram, took.common) == ((), ())


def test_statistics_taken_elsewhere_are_kept_until_a_tenth_has_changed() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(visits(0, 1_000), 1)
    work = store.statistics_work()
    assert work is not None
    taken = work()
    store.keep_statistics(taken)
    assert store.statistics() is taken
    assert store.statistics_work() is None
    store.upsert_batch(visits(1_000, 500), 2)
    assert store.kept_statistics is taken
    assert store.statistics().rows == 1_500
