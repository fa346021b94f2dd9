"""Staged removals: unseen until the job commits, validated against later changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.conformance import of_keys
from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import JobAborted, SerializationFailure, TypeMismatch, UniqueViolation
from remuda.storage.chunks.chunk import rows_to_batch
from remuda.storage.maps.map_store import MapStore

NUMBERS = MapSchema(
    "numbers", (Column("id", sql.BIGINT, False), Column("n", sql.BIGINT, False)), ("id",), ("id",)
)
NAMES = MapSchema(
    "names", (Column("n", sql.BIGINT, False), Column("id", sql.VARCHAR, False)), ("id",), ("id",)
)


def keys(*values: int) -> pa.RecordBatch:
    return of_keys([pa.array(values, pa.int64())], NUMBERS)


def filled(count: int) -> MapStore:
    store = MapStore(NUMBERS)
    store.upsert_batch(rows_to_batch([(i, 0) for i in range(count)], NUMBERS), 10)
    return store


def prepare(store: MapStore, since: int | None = None, insert_only: bool = False) -> None:
    store.prepare("job", ["task"], overwrite=False, insert_only=insert_only, unchanged_since=since)
    store.mark_prepared("job", 20)


@pytest.mark.parametrize("count", [10, 1000])
def test_removals_appear_at_the_commit(count: int) -> None:
    store = filled(count)
    store.stage_removals("job", "task", 0, keys(*range(0, count, 2)))
    assert store.size(15) == count
    prepare(store, since=12)
    assert store.pending_at_or_below(20)
    store.resolve("job", 20)
    assert store.size(19) == count
    assert store.size(20) == count // 2
    assert store.get((2,), 19) == (2, 0)
    assert store.get((2,), 20) is None
    assert store.rows == count // 2


def test_an_abort_forgets_them() -> None:
    store = filled(10)
    store.stage_removals("job", "task", 0, keys(1, 2))
    assert store.bytes > filled(10).bytes
    prepare(store)
    store.resolve("job", None)
    assert store.size(30) == 10
    assert store.bytes == filled(10).bytes


def test_a_repeated_sequence_and_a_late_batch() -> None:
    store = filled(10)
    assert store.stage_removals("job", "task", 0, keys(1)) == 1
    assert store.stage_removals("job", "task", 0, keys(1)) == 0
    prepare(store)
    with pytest.raises(JobAborted):
        store.stage_removals("job", "task", 1, keys(2))
    store.resolve("job", 20)
    assert store.size(20) == 9


@pytest.mark.parametrize("change", ["put", "remove"])
def test_a_row_that_changed_since_is_refused(change: str) -> None:
    store = filled(10)
    if change == "put":
        store.put((3, 1), 13)
    else:
        store.remove((3,), 13)
    store.stage_removals("job", "task", 0, keys(2, 3))
    with pytest.raises(SerializationFailure):
        prepare(store, since=12)
    store.resolve("job", None)
    store.stage_removals("job", "task", 0, keys(2, 3))
    prepare(store, since=13)


def test_a_row_to_write_that_changed_since_is_refused() -> None:
    store = filled(10)
    store.put((11, 1), 13)
    store.stage("job", "task", 0, rows_to_batch([(11, 5), (2, 5)], NUMBERS))
    with pytest.raises(SerializationFailure):
        prepare(store, since=12)


def test_removed_keys_may_be_taken_by_new_rows() -> None:
    store = filled(4)
    store.stage_removals("job", "task", 0, keys(0, 1, 2, 3))
    store.stage("job", "task", 1, rows_to_batch([(i + 1, 7) for i in range(4)], NUMBERS))
    prepare(store, since=12, insert_only=True)
    store.resolve("job", 20)
    rows = [store.get((i,), 20) for i in range(6)]
    assert rows == [None, (1, 7), (2, 7), (3, 7), (4, 7), None]
    assert store.size(20) == store.rows == 4
    assert store.get((1,), 19) == (1, 0)


def test_other_keys_may_not() -> None:
    store = filled(4)
    store.stage_removals("job", "task", 0, keys(0, 1))
    store.stage("job", "task", 1, rows_to_batch([(1, 7), (3, 7)], NUMBERS))
    with pytest.raises(UniqueViolation) as caught:
        prepare(store, since=12, insert_only=True)
    assert "(id)=(3)" in caught.value.detail


def test_text_keys() -> None:
    store = MapStore(NAMES)
    store.upsert_batch(rows_to_batch([(i, f"key {i}") for i in range(100)], NAMES), 10)
    gone = of_keys([pa.array([f"key {i}" for i in range(30, 150)])], NAMES)
    store.stage_removals("job", "task", 0, gone)
    prepare(store, since=12)
    store.resolve("job", 20)
    assert store.size(20) == 30


def test_keys_of_another_type() -> None:
    with pytest.raises(TypeMismatch):
        of_keys([pa.array(["a"])], NUMBERS)
