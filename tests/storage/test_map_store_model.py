"""MapStore against a plain model: per key a list of (timestamp, row or None) events."""

from __future__ import annotations

import bisect
from unittest import mock

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.hashes.keyhash import hasher, partition_of
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.values import array_to_values, arrays_to_rows, values_to_array
from remuda.storage.chunks import chunk, chunk_table, key_index, scan, upkeep
from remuda.storage.chunks.chunk import rows_to_batch
from remuda.storage.maps import batch_reads, map_store
from remuda.storage.maps.batch_reads import read_batch
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging import precomputed as ahead

SMALL = [
    mock.patch.object(ahead, "HEAVY_ROWS", 6),
    mock.patch.object(batch_reads, "FEW", 2),
    mock.patch.object(chunk, "TAIL_PIECE_ROWS", 8),
    mock.patch.object(chunk_table, "UNSEALED_MAX", 3),
    mock.patch.object(chunk_table, "CHUNK_ROWS", 32),
    mock.patch.object(chunk_table, "CHUNK_ROWS_MAX", 64),
    mock.patch.object(map_store, "TINY_BATCH_ROWS", 2),
    mock.patch.object(map_store, "RUNS_MAX", 4),
    mock.patch.object(map_store, "DELTA_ENTRIES_MAX", 40),
    mock.patch.object(key_index, "DELTA_ENTRIES", 12),
    mock.patch.object(upkeep, "DELTA_ENTRIES", 12),
    mock.patch.object(key_index, "SMALL_MERGE", 16),
    mock.patch.object(key_index, "SLICE_ENTRIES", 8),
    mock.patch.object(upkeep, "CHUNK_ROWS", 32),
    mock.patch.object(upkeep, "SMALL_CHUNK_ROWS", 16),
    mock.patch.object(upkeep, "CHUNK_ROWS_MAX", 64),
    mock.patch.object(upkeep, "GROUP_CHUNKS", 3),
    mock.patch.object(scan, "GATHERED_ROWS", 8),
    mock.patch.object(scan, "BATCH_ROWS", 16),
]

SCALAR = MapSchema(
    "scalar",
    (Column("k", sql.BIGINT, False), Column("v", sql.VARCHAR), Column("n", sql.decimal(20, 2))),
    ("k",),
    ("k",),
)
COMPOSITE = MapSchema(
    "composite",
    (Column("v", sql.DOUBLE), Column("k", sql.VARCHAR, False), Column("g", sql.INTEGER, False)),
    ("k", "g"),
    ("g",),
)


class Model:
    def __init__(self) -> None:
        self.events: dict[tuple, list] = {}
        self.sequence = 0

    def record(self, key: tuple, timestamp: int, row: tuple | None) -> None:
        self.sequence += 1
        bisect.insort(
            self.events.setdefault(key, []), (timestamp, self.sequence, row), key=lambda e: e[:2]
        )

    def get(self, key: tuple, at: int) -> tuple | None:
        result = None
        for timestamp, _, row in self.events.get(key, []):
            if timestamp <= at:
                result = row
        return result

    def moments(self) -> set[int]:
        """When something has changed."""
        return {event[0] for events in self.events.values() for event in events}

    def rows(self, at: int) -> dict:
        found = {key: self.get(key, at) for key in self.events}
        return {key: row for key, row in found.items() if row is not None}


class StoreMachine(RuleBasedStateMachine):
    schema = SCALAR
    collide = False

    @initialize()
    def start(self) -> None:
        for patch in SMALL:
            patch.start()
        self.store = MapStore(self.schema)
        if self.collide:
            keys = self.store._keys
            keys.exact = False
            keys._same_hash = False
            real_one, real_many, real_of = keys.hash, keys.hashes, keys.hashes_of
            keys.hash = lambda key: (real_one(key) % 5) << 61
            keys.hashes = lambda batch: (real_many(batch) % 5) << 61
            keys.hashes_of = lambda columns: (real_of(columns) % 5) << 61
        self.model = Model()
        self.now = 1
        self.horizon = 0
        self.jobs: dict[str, tuple[int, list, bool]] = {}
        self.job_number = 0

    def teardown(self) -> None:
        for patch in SMALL:
            patch.stop()

    # --- making rows ---

    def row(self, number: int, value: int) -> tuple:
        if self.schema is SCALAR:
            return (number - 10, None if value % 5 == 0 else f"v{value}", value * 10**17)
        return (None if value % 5 == 0 else value / 2, "k" * (number % 7) + "ü", number // 7)

    def key(self, row: tuple) -> tuple:
        return tuple(row[p] for p in self.schema.key_positions)

    def tick(self) -> int:
        self.now += 2
        return self.now

    def partition(self, row: tuple) -> int:
        positions = self.schema.partition_positions
        types = [self.schema.columns[p].type for p in positions]
        return partition_of(hasher(types)([row[p] for p in positions]))

    # --- writing ---

    @rule(number=st.integers(0, 30), value=st.integers(0, 99), times=st.integers(1, 12))
    def put(self, number: int, value: int, times: int) -> None:
        for extra in range(times):
            row = self.row((number + extra) % 31, value + extra)
            timestamp = self.tick() if value % 7 else self.now
            before = self.model.get(self.key(row), timestamp)
            assert self.store.put(row, timestamp) == before
            self.model.record(self.key(row), timestamp, row)

    @rule(number=st.integers(0, 30), times=st.integers(1, 6))
    def remove(self, number: int, times: int) -> None:
        for extra in range(times):
            key = self.key(self.row((number + extra) % 31, 0))
            timestamp = self.tick()
            before = self.model.get(key, timestamp)
            assert self.store.remove(key, timestamp) == before
            self.model.record(key, timestamp, None)

    @rule(numbers=st.lists(st.integers(0, 200), max_size=90), value=st.integers(0, 99))
    def upsert(self, numbers: list[int], value: int) -> None:
        rows = [self.row(number, value + i) for i, number in enumerate(numbers)]
        timestamp = self.tick()
        self.store.upsert_batch(rows_to_batch(rows, self.schema), timestamp)
        for row in rows:
            self.model.record(self.key(row), timestamp, row)

    # --- staged rows ---

    @rule(
        numbers=st.lists(st.integers(0, 60), max_size=50, unique=True),
        value=st.integers(0, 99),
        overwrite=st.booleans(),
        tasks=st.integers(1, 3),
        early=st.booleans(),
    )
    def prepare(
        self, numbers: list[int], value: int, overwrite: bool, tasks: int, early: bool
    ) -> None:
        self.job_number += 1
        job = f"job{self.job_number}"
        rows = [self.row(number, value) for number in numbers]
        for task in range(tasks):
            mine = rows[task::tasks]
            half = len(mine) // 2
            for sequence, part in enumerate((mine[:half], mine[half:])):
                batch = rows_to_batch(part, self.schema)
                assert self.store.stage(job, f"t{task}", sequence, batch) == len(part)
                assert self.store.stage(job, f"t{task}", sequence, batch) == 0
            assert self.store.staged_rows(job, f"t{task}") == len(mine)
        self.store.stage(job, "other attempt", 0, rows_to_batch(rows, self.schema))
        accepted = [f"t{task}" for task in range(tasks)]
        if early:
            self.work_ahead(job, accepted, overwrite, value)
        count = self.store.prepare(job, accepted, overwrite=overwrite, insert_only=False)
        assert count == len(rows)
        timestamp = self.tick()
        self.store.mark_prepared(job, timestamp)
        assert self.store.pending_at_or_below(timestamp)
        self.jobs[job] = (timestamp, rows, overwrite)

    @precondition(lambda self: self.jobs)
    @rule(
        data=st.data(),
        commit=st.booleans(),
        delay=st.integers(0, 40),
        ahead=st.integers(0, 9),
    )
    def resolve(self, data: st.DataObject, commit: bool, delay: int, ahead: int) -> None:
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        prepared, rows, overwrite = self.jobs.pop(job)
        if not commit:
            assert self.store.resolve(job, None) == 0
            return
        # Odd timestamps are puts, even ones commits: no two events of a key are at one timestamp.
        if ahead:
            self.work_ahead(job, [], overwrite, ahead - 1)
        timestamp = prepared + 2 * delay + 1
        timestamp += 0 if timestamp % 2 == 0 else 1
        while any(e[0] == timestamp for events in self.model.events.values() for e in events):
            timestamp += 2
        assert self.store.resolve(job, timestamp) == len(rows)
        assert self.store.resolve(job, timestamp) == 0
        keys = {self.key(row) for row in rows}
        if overwrite:
            for key in [*self.model.events, *(self.key(self.row(n, 0)) for n in range(201))]:
                if key not in keys:
                    self.model.record(key, timestamp, None)
        for row in rows:
            self.model.record(self.key(row), timestamp, row)
        if timestamp > self.now:
            self.now = timestamp + 1

    def work_ahead(self, job: str, tasks: list[str], overwrite: bool, puts: int) -> None:
        """What the member does on another thread before a step, while the loop goes on."""
        work = self.store.ahead(job, tasks, overwrite=overwrite)
        if work is None:
            return
        for number in range(puts % 3):
            self.put(number * 7, puts, 2)
            self.store.maintain(self.horizon)
        done = work()
        for number in range(puts % 2):
            self.put(number * 5, puts, 1)
            self.store.maintain(self.horizon)
        done()

    # --- upkeep ---

    @rule(steps=st.integers(1, 60), lag=st.integers(0, 80))
    def maintain(self, steps: int, lag: int) -> None:
        horizon = max(self.horizon, self.now - lag)
        pending = [timestamp for timestamp, _, _ in self.jobs.values()]
        horizon = max(self.horizon, min([horizon, *(p - 1 for p in pending)]))
        self.horizon = horizon
        for _ in range(steps):
            if not self.store.maintain(horizon):
                break

    # --- reading ---

    def readable(self, back: int) -> int:
        return max(self.horizon, self.now - back)

    @rule(number=st.integers(0, 61), back=st.integers(0, 200))
    def get(self, number: int, back: int) -> None:
        at = self.readable(back)
        for extra in range(5):
            key = self.key(self.row(number + extra, 0))
            found = self.model.get(key, at)
            assert self.store.get(key, at) == found
            assert self.store.has(key, at) == (found is not None)

    @rule(numbers=st.lists(st.integers(0, 61), min_size=1), back=st.integers(0, 200))
    def get_many(self, numbers: list[int], back: int) -> None:
        at = self.readable(back)
        keys = [self.key(self.row(number, 0)) for number in numbers]
        types = [self.schema.columns[p].type for p in self.schema.key_positions]
        columns = [
            values_to_array(values, each)
            for values, each in zip(zip(*keys, strict=True), types, strict=True)
        ]
        places, rows = read_batch(self.store, columns, at)
        found = [None] * len(keys)
        every = [column.type for column in self.schema.columns]
        for place, row in zip(places.tolist(), arrays_to_rows(rows.columns, every), strict=True):
            assert found[place] is None
            found[place] = row
        assert found == [self.model.get(key, at) for key in keys]

    @rule(back=st.integers(0, 200), step=st.integers(1, 3), steps=st.integers(0, 5))
    def scan_while_writing(self, back: int, step: int, steps: int) -> None:
        """A cursor sees its timestamp whatever upkeep does meanwhile."""
        at = self.readable(back)
        partitions = None if step == 1 else frozenset(range(0, 271, step))
        expected = sorted(
            (
                row
                for row in self.model.rows(at).values()
                if partitions is None or self.partition(row) in partitions
            ),
            key=repr,
        )
        assert self.store.size(at, partitions) == len(expected)
        cursor = self.store.scan(at, range(len(self.schema.columns)), partitions)
        nothing = self.store.scan(at, [], partitions)
        found: list[tuple] = []
        while (batch := cursor.next()) is not None:
            assert batch.num_rows
            found += physical_rows(batch, self.schema)
            self.tick()
            for extra in range(steps):
                self.put(extra * 5, back + extra, 2)
                self.store.maintain(self.now)
            if steps:
                self.horizon = max(self.horizon, self.now)
        assert sorted(found, key=repr) == expected
        count = 0
        while (batch := nothing.next()) is not None:
            count += batch.num_rows
        assert count == len(expected)
        cursor.close()
        assert cursor.next() is None

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "store"):
            assert self.store.rows == len(self.model.rows(2**62))


def physical_rows(batch: pa.RecordBatch, schema: MapSchema) -> list[tuple]:
    assert batch.schema.types == engine_schema(schema).types
    columns = [
        array_to_values(a, c.type) for a, c in zip(batch.columns, schema.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


class CompositeMachine(StoreMachine):
    schema = COMPOSITE


class CollidingMachine(StoreMachine):
    collide = True


class CollidingCompositeMachine(StoreMachine):
    schema = COMPOSITE
    collide = True


_settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestScalar = StoreMachine.TestCase
TestScalar.settings = _settings
TestComposite = CompositeMachine.TestCase
TestComposite.settings = _settings
TestColliding = CollidingMachine.TestCase
TestColliding.settings = _settings
TestCollidingComposite = CollidingCompositeMachine.TestCase
TestCollidingComposite.settings = _settings
