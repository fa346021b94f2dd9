"""MapStore: single situations, one per test. The broad coverage is in test_map_store_model.py."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.errors import (
    InternalError,
    JobAborted,
    NotNullViolation,
    SnapshotTooOld,
    TypeMismatch,
    UniqueViolation,
)
from remuda.storage.chunks.chunk import rows_to_batch
from remuda.storage.chunks.key_index import TIER
from remuda.storage.maps.entry_version import entry_version
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging.staging import PreparedRows

SCHEMA = MapSchema(
    "prices",
    (Column("id", sql.BIGINT, nullable=False), Column("name", sql.VARCHAR)),
    ("id",),
    ("id",),
)
FLOATS = MapSchema(
    "floats",
    (Column("x", sql.DOUBLE, False), Column("y", sql.REAL, False), Column("v", sql.BIGINT)),
    ("x", "y"),
    ("x",),
)


def batch(ids: np.ndarray | list[int], name: str = "a") -> pa.RecordBatch:
    arrays = [pa.array(ids, pa.int64()), pa.array([name] * len(ids), pa.string())]
    return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(SCHEMA))


def drain(store: MapStore, at: int, partitions: frozenset[int] | None = None) -> pa.Table:
    cursor = store.scan(at, [0, 1], partitions)
    batches = []
    while (found := cursor.next()) is not None:
        batches.append(found)
    return pa.Table.from_batches(batches, schema=engine_schema(SCHEMA))


def maintain(store: MapStore, horizon: int) -> None:
    while store.maintain(horizon):
        pass


def prepared(
    store: MapStore, job: str, rows: list[tuple], at: int, overwrite: bool = False
) -> None:
    store.stage(job, "t", 0, rows_to_batch(rows, store.schema))
    store.prepare(job, ["t"], overwrite=overwrite, insert_only=False)
    store.mark_prepared(job, at)


# --- versions ---


def test_a_put_below_a_later_one_goes_in_as_an_older_version() -> None:
    store = MapStore(SCHEMA)
    store.put((1, "late"), 20)
    assert store.put((1, "early"), 10) is None
    assert [store.get((1,), at) for at in (9, 10, 19, 20)] == [
        None, (1, "early"), (1, "early"), (1, "late"),
    ]  # fmt: skip
    assert store.put((1, "between"), 15) == (1, "early")
    assert store.get((1,), 16) == (1, "between")
    assert store.get((1,), 25) == (1, "late")
    assert store.rows == 1


def test_a_put_into_a_closed_version_ends_with_it() -> None:
    store = MapStore(SCHEMA)
    store.put((1, "a"), 10)
    store.remove((1,), 30)
    assert store.put((1, "b"), 20) == (1, "a")
    assert store.get((1,), 29) == (1, "b")
    assert store.get((1,), 30) is None
    assert store.rows == 0


def test_two_puts_at_one_timestamp_the_later_call_counts() -> None:
    store = MapStore(SCHEMA)
    store.put((1, "a"), 10)
    assert store.put((1, "b"), 10) == (1, "a")
    assert store.get((1,), 10) == (1, "b")
    assert drain(store, 10).to_pylist() == [{"id": 1, "name": "b"}]


def test_a_removed_key_can_be_put_again() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(np.arange(100)), 10)
    assert store.remove((7,), 20) == (7, "a")
    assert store.remove((7,), 21) is None
    assert store.put((7, "b"), 30) is None
    assert [store.get((7,), at) for at in (10, 20, 30)] == [(7, "a"), None, (7, "b")]
    maintain(store, 40)
    assert store.get((7,), 40) == (7, "b")


def test_float_keys_find_nan_and_both_zeros() -> None:
    store = MapStore(FLOATS)
    nan = float("nan")
    store.put((nan, -0.0, 1), 1)
    assert store.put((float("nan"), 0.0, 2), 2) == (nan, -0.0, 1) or store.rows == 1
    rows = [(nan, 0.0, 3), *((float(i), 1.0, i) for i in range(100))]
    store.upsert_batch(rows_to_batch(rows, FLOATS), 3)
    found = store.get((nan, -0.0), 3)
    assert found is not None
    assert found[2] == 3
    assert store.rows == 101


# --- bulk ---


def test_of_equal_keys_in_a_batch_the_last_counts() -> None:
    store = MapStore(SCHEMA)
    ids = np.concatenate([np.arange(200), np.arange(50)])
    names = ["first"] * 200 + ["last"] * 50
    store.upsert_batch(
        pa.RecordBatch.from_arrays([pa.array(ids), pa.array(names)], schema=engine_schema(SCHEMA)),
        1,
    )
    assert store.rows == 200
    assert store.get((3,), 1) == (3, "last")
    assert store.get((60,), 1) == (60, "first")


def test_rows_that_do_not_fit_are_refused_and_nothing_is_stored() -> None:
    store = MapStore(SCHEMA)
    wrong = pa.RecordBatch.from_pydict({"id": ["x"], "name": ["y"]})
    with pytest.raises(TypeMismatch, match="prices"):
        store.upsert_batch(wrong, 1)
    hole = batch([*range(100)]).set_column(0, "id", pa.array([None, *range(99)], pa.int64()))
    with pytest.raises(NotNullViolation, match='column "id" of relation "prices"'):
        store.upsert_batch(hole, 1)
    with pytest.raises(NotNullViolation):
        store.put((None, "x"), 1)
    assert store.rows == 0
    assert store.size(5) == 0


def test_an_unchanged_bulk_load_is_scanned_without_a_copy() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(np.arange(300_000)), 1)
    cursor = store.scan(1, [1, 0])
    addresses = set()
    rows = 0
    while (found := cursor.next()) is not None:
        rows += found.num_rows
        addresses.add(found.column(1).buffers()[1].address)
        assert found.num_rows <= 128 * 1024
    assert rows == 300_000
    stored = [chunk.batch for chunk in store._table.view.chunks if chunk.batch is not None]
    assert addresses == {kept.column(0).buffers()[1].address for kept in stored}


def test_many_small_batches_leave_few_runs_and_chunks() -> None:
    store = MapStore(SCHEMA)
    for number in range(300):
        store.upsert_batch(batch(np.arange(number * 1000, number * 1000 + 1000)), number + 1)
        store.maintain(number)
    maintain(store, 1000)
    assert store.rows == 300_000
    sizes = [len(run) for run in store._index.runs]
    assert all(older > TIER * newer for older, newer in itertools.pairwise(sizes))
    assert len(store._table.by_number) < 40
    assert store.get((123_456,), 1000) == (123_456, "a")
    assert sorted(drain(store, 1000).column("id").to_pylist()) == list(range(300_000))


# --- staged rows ---


def test_a_put_after_the_commit_timestamp_stays_in_front() -> None:
    store = MapStore(SCHEMA)
    store.put((1, "old"), 5)
    prepared(store, "job", [(1, "job"), (2, "job")], 10)
    store.put((1, "put"), 20)
    store.put((2, "put"), 21)
    assert store.resolve("job", 15) == 2
    assert [store.get((1,), at) for at in (14, 15, 20)] == [(1, "old"), (1, "job"), (1, "put")]
    assert [store.get((2,), at) for at in (14, 15, 21)] == [None, (2, "job"), (2, "put")]
    assert store.rows == 2


def test_a_key_that_was_absent_and_removed_meanwhile_stays_removed() -> None:
    store = MapStore(SCHEMA)
    prepared(store, "job", [(1, "job"), (2, "job")], 10)
    assert store.remove((1,), 20) is None
    store.resolve("job", 15)
    assert store.get((1,), 19) == (1, "job")
    assert store.get((1,), 20) is None
    assert store.get((2,), 20) == (2, "job")
    assert store.rows == 1


def test_overwrite_replaces_the_map_but_not_what_came_after() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(np.arange(100)), 5)
    prepared(store, "job", [(1, "job"), (500, "job")], 10, overwrite=True)
    store.put((7, "put"), 20)
    assert store.size(14) == 100
    store.resolve("job", 15)
    assert drain(store, 15).sort_by("id").column("id").to_pylist() == [1, 500]
    assert drain(store, 20).sort_by("id").column("id").to_pylist() == [1, 7, 500]
    assert store.size(14) == 100
    assert store.rows == 3


def test_replaced_chunks_and_their_index_entries_are_dropped_whole() -> None:
    store = MapStore(SCHEMA)
    rows = 200_000
    for at in (10, 20, 30, 40):
        store.stage(f"job {at}", "t", 0, batch(np.arange(rows), f"at {at}"))
        store.prepare(f"job {at}", ["t"], overwrite=True, insert_only=False)
        store.mark_prepared(f"job {at}", at)
        assert store.resolve(f"job {at}", at) == rows
        assert store.rows == rows
        if at == 10:
            one = store.bytes
        maintain(store, 5)
    assert all(chunk.ends is None for chunk in store._table.view.chunks if chunk.tuples is None)
    assert [len(run) for run in store._index.runs] == [rows] * 4  # not merged: they will go
    assert [store.get((7,), at) for at in (19, 20, 45)] == [
        (7, "at 10"),
        (7, "at 20"),
        (7, "at 40"),
    ]
    maintain(store, 29)
    assert [run.until for run in store._index.runs] == [30, 40, FOREVER]
    assert store.get((7,), 29) == (7, "at 20")
    maintain(store, 45)
    assert [len(run) for run in store._index.runs] == [rows]
    assert store.bytes < 1.1 * one
    assert store.freed > 2.5 * one
    assert drain(store, 45).column("name").unique().to_pylist() == ["at 40"]


def test_heavy_steps_of_a_job_are_worked_out_ahead_and_again_after_a_put() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(np.arange(100_000)), 5)
    store.stage("job", "t", 0, batch(np.arange(50_000, 150_000), "job"))
    assert store.ahead("unknown", ["t"], overwrite=False) is None
    work = store.ahead("job", ["t"], overwrite=False)
    assert work is not None
    with pytest.raises(JobAborted, match="takes no more rows"):
        store.stage("job", "t", 1, batch([1]))
    assert not store.maintain(5)
    store.put((149_999, "put"), 6)
    work()()
    assert store.prepare("job", ["t"], overwrite=False, insert_only=False) == 100_000
    store.mark_prepared("job", 10)
    again = store.ahead("job", ["t"], overwrite=False)
    assert again is not None  # the put has made the matches void
    again()()
    assert store.ahead("job", ["t"], overwrite=False) is None
    assert store.resolve("job", 10) == 100_000
    assert store.rows == 150_000
    assert [store.get((149_999,), at) for at in (9, 10)] == [(149_999, "put"), (149_999, "job")]


def test_a_refusal_found_ahead_is_raised_by_prepare() -> None:
    store = MapStore(SCHEMA)
    store.stage("job", "t", 0, batch(np.arange(50_000)))
    store.stage("job", "u", 0, batch([49_999]))
    work = store.ahead("job", ["t", "u"], overwrite=False)
    assert work is not None
    work()()
    with pytest.raises(UniqueViolation) as raised:
        store.prepare("job", ["t", "u"], overwrite=False, insert_only=False)
    assert "(id)=(49999)" in str(raised.value.detail)
    assert store.resolve("job", None) == 0
    assert store.rows == 0


def test_an_aborted_job_leaves_nothing_of_what_was_worked_out_ahead() -> None:
    store = MapStore(SCHEMA)
    store.stage("job", "t", 0, batch(np.arange(50_000)))
    work = store.ahead("job", ["t"], overwrite=False)
    assert work is not None
    assert store.resolve("job", None) == 0
    work()()
    assert store._staging.jobs == {}
    assert not store.maintain(1)
    assert drain(store, 1).num_rows == 0


def test_readers_wait_from_prepare_to_resolve() -> None:
    store = MapStore(SCHEMA)
    prepared(store, "job", [(1, "job")], 10)
    assert not store.pending_at_or_below(9)
    assert store.pending_at_or_below(10)
    assert store.get((1,), 100) is None
    store.resolve("job", None)
    assert not store.pending_at_or_below(10)
    assert store.get((1,), 100) is None
    assert store.rows == 0


def test_readers_wait_until_the_last_row_is_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MapStore(SCHEMA)
    prepared(store, "job", [(1, "job")], 10)
    prepared(store, "other", [(2, "other")], 20)
    waiting: list[tuple[bool, bool]] = []
    install = store._install

    def installed(rows: PreparedRows, timestamp: int) -> None:
        waiting.append((store.pending_at_or_below(9), store.pending_at_or_below(11)))
        install(rows, timestamp)
        waiting.append((store.pending_at_or_below(9), store.pending_at_or_below(11)))

    monkeypatch.setattr(store, "_install", installed)
    store.resolve("job", 11)
    assert waiting == [(False, True)] * 2
    assert not store.pending_at_or_below(19)
    assert store.pending_at_or_below(20)


def test_equal_keys_of_two_tasks_are_refused_by_name() -> None:
    store = MapStore(SCHEMA)
    store.stage("job", "t0", 0, batch(np.arange(1000)))
    store.stage("job", "t1", 0, batch([5000, 321]))
    with pytest.raises(UniqueViolation, match="prices_pkey") as caught:
        store.prepare("job", ["t0", "t1"], overwrite=False, insert_only=False)
    assert "(id)=(321)" in caught.value.detail
    assert store.resolve("job", None) == 0


def test_insert_only_refuses_an_existing_key_by_name() -> None:
    store = MapStore(SCHEMA)
    store.put((41, "x"), 1)
    store.put((42, "x"), 1)
    store.remove((41,), 2)
    store.stage("good", "t", 0, batch([41, 43]))
    assert store.prepare("good", ["t"], overwrite=False, insert_only=True) == 2
    store.stage("bad", "t", 0, batch([41, 42]))
    with pytest.raises(UniqueViolation, match="prices_pkey") as caught:
        store.prepare("bad", ["t"], overwrite=False, insert_only=True)
    assert "(id)=(42)" in caught.value.detail


def test_two_jobs_cannot_insert_one_key() -> None:
    store = MapStore(SCHEMA)
    for job in ("one", "two"):
        store.stage(job, "t", 0, batch([7, 8] if job == "one" else [8, 9]))
    store.prepare("one", ["t"], overwrite=False, insert_only=True)
    store.mark_prepared("one", 5)
    with pytest.raises(UniqueViolation, match="prices_pkey") as caught:
        store.prepare("two", ["t"], overwrite=False, insert_only=True)
    assert "(id)=(8)" in caught.value.detail
    assert "one" in caught.value.hint
    store.resolve("two", None)
    assert store.resolve("one", 6) == 2


def test_only_accepted_attempts_count_and_late_rows_are_refused() -> None:
    store = MapStore(SCHEMA)
    store.stage("job", "t.attempt0", 0, batch([1, 2, 3]))
    store.stage("job", "t.attempt1", 0, batch([1, 2]))
    assert store.staged_rows("job", "t.attempt1") == 2
    assert store.prepare("job", ["t.attempt1"], overwrite=False, insert_only=False) == 2
    with pytest.raises(JobAborted):
        store.stage("job", "t.attempt0", 1, batch([9]))
    store.mark_prepared("job", 5)
    store.resolve("job", 6)
    assert store.rows == 2


def test_mark_prepared_needs_prepare() -> None:
    with pytest.raises(InternalError):
        MapStore(SCHEMA).mark_prepared("job", 1)


# --- upkeep ---


def test_collected_versions_are_refused_and_their_memory_is_freed() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(np.arange(100_000)), 10)
    size = store.bytes
    store.upsert_batch(batch(np.arange(100_000)), 20)
    assert store.bytes > 1.8 * size
    maintain(store, 19)
    assert store.get((5,), 19) == (5, "a")
    maintain(store, 20)
    assert store.bytes < 1.3 * size
    with pytest.raises(SnapshotTooOld):
        store.get((5,), 19)
    with pytest.raises(SnapshotTooOld):
        store.scan(19, [0])


def test_upkeep_keeps_the_versions_of_entries() -> None:
    store = MapStore(SCHEMA)
    for number in range(1, 21):
        store.upsert_batch(batch(np.arange(100 * number, 100 * number + 100)), 10 * number)
    store.put((107, "later"), 250)
    maintain(store, 1000)
    assert len(store._table.snapshot()) < 20
    found = [entry_version(store, (key,), 1000) for key in (100, 107, 399, 2099)]
    assert found == [10, 250, 30, 200]


def test_upkeep_keeps_what_a_pending_job_may_need() -> None:
    store = MapStore(SCHEMA)
    store.upsert_batch(batch(np.arange(1000)), 5)
    prepared(store, "job", [(1, "job")], 10)
    store.upsert_batch(batch(np.arange(1000), "later"), 20)
    maintain(store, 30)
    store.resolve("job", 12)
    assert [store.get((1,), at) for at in (11, 12, 20)] == [(1, "a"), (1, "job"), (1, "later")]


def test_a_scan_in_another_thread_sees_its_timestamp_while_the_loop_writes() -> None:
    store = MapStore(SCHEMA)
    rows = 40_000
    store.upsert_batch(batch(np.arange(rows)), 1)
    for key in range(3000):
        store.put((rows + key, "a"), 2)
    results: list[int] = []
    cursors = [store.scan(2, [0, 1]) for _ in range(20)]

    def read() -> None:
        for cursor in cursors:
            names: set[str] = set()
            count = 0
            while (found := cursor.next()) is not None:
                count += found.num_rows
                names.update(found.column(1).unique().to_pylist())
            results.append(count if names == {"a"} else -1)

    reader = threading.Thread(target=read)
    reader.start()
    clock = 10
    while reader.is_alive() or clock < 20_000:
        clock += 1
        store.put((clock * 7 % (rows + 9000), "b"), clock)
        if clock % 64 == 0:
            store.maintain(clock)
    reader.join()
    assert results == [rows + 3000] * 20


# --- statistics ---


def test_statistics_of_columns() -> None:
    store = MapStore(SCHEMA)
    assert store.statistics().rows == 0
    names = pa.array([None if i % 4 == 0 else f"n{i % 10}" for i in range(200_000)])
    store.upsert_batch(
        pa.RecordBatch.from_arrays(
            [pa.array(np.arange(200_000)), names], schema=engine_schema(SCHEMA)
        ),
        1,
    )
    found = store.statistics()
    key, name = found.columns
    assert found.rows == 200_000
    assert (key.minimum, key.maximum, key.null_fraction) == (0, 199_999, 0.0)
    assert 190_000 <= key.distinct <= 200_000
    assert name.distinct == 10
    assert name.null_fraction == pytest.approx(0.25, abs=0.01)
    store.put((5, "changed"), 2)
    assert store.statistics() is found
    store.upsert_batch(batch(np.arange(300_000, 330_000)), 3)
    assert store.statistics().columns[0].maximum == 329_999
