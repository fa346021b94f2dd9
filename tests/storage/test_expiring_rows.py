"""Rows that end by themselves, against the model of ``test_map_store_model`` with a clock of its
own: reads at every timestamp, counts, upkeep, staged jobs, transfers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from tests.storage.test_map_store_model import SCALAR, Model, StoreMachine
from tests.storage.test_transfer import TransferMachine

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import (
    EXPIRY_MARK,
    FOREVER,
    HybridClock,
    ended_by_write,
    expiry,
    from_micros,
)
from remuda.errors import SerializationFailure, UniqueViolation
from remuda.storage.chunks.chunk import Row, rows_to_batch
from remuda.storage.maps.expiring_rows import COUNTED_FOR, end_of, estimated_rows
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, EVERY_PARTITION


class ExpiringModel(Model):
    """Remembers with each event until when the row lives."""

    def __init__(self, store: ExpiringStore) -> None:
        super().__init__()
        self.store = store
        self.ends: dict[int, int] = {}

    def record(self, key: tuple, timestamp: int, row: tuple | None) -> None:
        super().record(key, timestamp, row)
        self.ends[self.sequence] = expiry(timestamp, self.store.last_ttl)

    def get(self, key: tuple, at: int) -> tuple | None:
        result = None
        for timestamp, sequence, row in self.events.get(key, []):
            if timestamp <= at:
                result = row if at < self.ends[sequence] else None
        return result

    def moments(self) -> set[int]:
        return super().moments() | {end for end in self.ends.values() if end != FOREVER}


class ExpiringStore(MapStore):
    """All that is written lives for ``ttl``; ``last_ttl`` is that of the last write."""

    ttl = last_ttl = 0

    def __init__(self, schema: MapSchema) -> None:
        super().__init__(schema)
        self.ttls: dict[str, int] = {}

    def put(self, row: Row, timestamp: int, until: int = FOREVER) -> Row | None:
        self.last_ttl = self.ttl
        return super().put(row, timestamp, expiry(timestamp, self.ttl))

    def upsert_batch(self, batch: pa.RecordBatch, timestamp: int, ttl: int = 0) -> None:
        self.last_ttl = self.ttl
        super().upsert_batch(batch, timestamp, self.ttl)

    def prepare(self, job: str, tasks: Any, **options: Any) -> int:
        self.ttls[job] = self.ttl
        return super().prepare(job, tasks, ttl=self.ttl, **options)

    def resolve(self, job: str, commit_timestamp: int | None) -> int:
        self.last_ttl = self.ttls.get(job, 0)
        return super().resolve(job, commit_timestamp)


class Expiring(StoreMachine):
    @initialize()
    def start(self) -> None:
        super().start()
        self.store = ExpiringStore(self.schema)
        self.model: Any = ExpiringModel(self.store)

    def tick(self) -> int:
        super().tick()
        if self.now & EXPIRY_MARK == EXPIRY_MARK:  # as clocks do
            self.now += 2
        return self.now

    @rule(ttl=st.sampled_from((0, 0, 1, 1, 2, 3)), passed=st.integers(0, 1300))
    def choose(self, ttl: int, passed: int) -> None:
        self.store.ttl = ttl
        self.now += 2 * passed
        self.tick()

    @rule(number=st.integers(0, 30))
    def ends_are_known(self, number: int) -> None:
        for extra in range(5):
            key = self.key(self.row(number + extra, 0))
            end = end_of(self.store, key, self.now)
            assert (end is not None) == (self.model.get(key, self.now) is not None)
            if end is not None and end != FOREVER:
                assert not ended_by_write(end)
                assert self.store.get(key, end) is None
                assert self.store.get(key, end - 1) is not None

    @rule(number=st.integers(0, 30), back=st.integers(0, 2000), ahead=st.integers(0, 3000))
    def changes_are_seen(self, number: int, back: int, ahead: int) -> None:
        """What has another row now than it had changed since; what does not end until then and was
        not written did not."""
        since, now = self.readable(back), self.now + ahead
        for extra in range(5):
            key = self.key(self.row(number + extra, 0))
            changed = self.store.changed_after(key, since, now)
            events = self.model.events.get(key, [])
            written = any(since < timestamp <= self.now for timestamp, _, _ in events)
            gone = self.model.get(key, since) is not None and self.model.get(key, now) is None
            if not written:
                assert changed == gone
            elif self.model.get(key, self.now) is not None:
                assert changed


class PlainStores(Expiring):
    """The store alone."""


class CollidingStores(Expiring):
    collide = True

    @initialize()
    def start(self) -> None:
        super().start()
        keys = self.store._keys
        keys.exact = False
        keys._same_hash = False
        real_one, real_many, real_of = keys.hash, keys.hashes, keys.hashes_of
        keys.hash = lambda key: (real_one(key) % 5) << 61
        keys.hashes = lambda batch: (real_many(batch) % 5) << 61
        keys.hashes_of = lambda columns: (real_of(columns) % 5) << 61


class ExpiringTransfers(Expiring, TransferMachine):
    """The ends go with the rows, to backups and to new owners."""


_settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestStores = PlainStores.TestCase
TestStores.settings = _settings
TestCollidingStores = CollidingStores.TestCase
TestCollidingStores.settings = _settings
TestTransfers = ExpiringTransfers.TestCase
TestTransfers.settings = _settings

SECOND = 10**6
NOW = from_micros(1_700_000_000 * SECOND)


def rows(*numbers: int) -> pa.RecordBatch:
    return rows_to_batch([(number, "v", 1) for number in numbers], SCALAR)


def test_no_clock_gives_out_the_end_of_a_row() -> None:
    clock = HybridClock(NOW)
    for _ in range(3000):
        assert ended_by_write(clock.next(0))
    assert ended_by_write(clock.next(1_800_000_000 * SECOND))
    assert not ended_by_write(FOREVER)
    assert not ended_by_write(expiry(NOW + 5, 1))
    assert expiry(NOW + 5, SECOND) - NOW == from_micros(SECOND) + EXPIRY_MARK
    assert expiry(NOW, 0) == FOREVER


def test_a_put_that_comes_late_outlives_the_row_that_it_replaces() -> None:
    """Other keys were written later, and the old row is over by then: only a removal would end the
    new one."""
    store = MapStore(SCALAR)
    until = expiry(NOW, SECOND)
    store.put((1, "old", 1), NOW, until)
    store.put((2, "other", 1), until + 10)
    assert store.put((1, "new", 1), until - 2000) == (1, "old", 1)
    assert store.get((1,), until + 10) == (1, "new", 1)
    batch = rows(1)
    store.upsert_batch(batch, until - 1000)
    assert store.get((1,), until + 10) == (1, "v", 1)


def test_an_insert_meets_rows_until_they_end() -> None:
    store = MapStore(SCALAR)
    store.upsert_batch(rows(1, 2), NOW, SECOND)
    store.stage("job", "t", 0, rows(1))
    with pytest.raises(UniqueViolation):
        store.prepare("job", ["t"], overwrite=False, insert_only=True, now=NOW + 10)
    later = expiry(NOW, SECOND) + 2
    store.prepare("job", ["t"], overwrite=False, insert_only=True, now=later)
    store.mark_prepared("job", later)
    assert store.resolve("job", later) == 1
    assert store.size(later) == 1


def test_a_statement_whose_row_has_ended_since_is_run_again() -> None:
    store = MapStore(SCALAR)
    store.upsert_batch(rows(1), NOW, SECOND)
    store.stage("job", "t", 0, rows(1))
    alive, over = NOW + 100, expiry(NOW, SECOND)
    prepare = {"overwrite": False, "insert_only": False, "unchanged_since": NOW + 10}
    assert store.prepare("job", ["t"], now=alive, **prepare) == 1
    with pytest.raises(SerializationFailure):
        store.prepare("job", ["t"], now=over, **prepare)


def test_counts_and_statistics_follow_the_clock() -> None:
    store = MapStore(SCALAR)
    store.upsert_batch(rows(*range(100)), NOW, SECOND)
    assert store.rows == 0
    assert store.size(NOW) == 100
    assert estimated_rows(store) == 100
    assert store.statistics().rows == 100
    later = expiry(NOW, SECOND) + COUNTED_FOR
    assert store.size(later) == 0
    store.put((500, "v", 1), later + 1)
    assert estimated_rows(store) == 1
    for _ in range(50):
        store.maintain(later)
    assert store.get((500,), later + 1) == (500, "v", 1)
    assert store.freed > 0


def test_a_job_that_commits_late_outlives_the_rows_that_it_replaces() -> None:
    """It was prepared while the old row lived; other keys were written after that had ended."""
    store = MapStore(SCALAR)
    store.upsert_batch(rows(*range(100)), NOW, SECOND)
    over = expiry(NOW, SECOND)
    store.stage("job", "t", 0, rows(*range(100)))
    store.prepare("job", ["t"], overwrite=False, insert_only=False)
    store.mark_prepared("job", NOW + 100)
    store.put((1000, "v", 1), over + 50)
    assert store.resolve("job", over - 1000) == 100
    assert store.size(over + 50) == 101
    assert store.get((7,), over + 50) == (7, "v", 1)


def test_what_will_end_later_has_not_changed() -> None:
    store = MapStore(SCALAR)
    store.put((1, "v", 1), NOW, expiry(NOW, SECOND))
    assert store.changed_after((1,), NOW - 1, NOW + 10)
    assert not store.changed_after((1,), NOW, NOW + 10)
    assert store.changed_after((1,), NOW, expiry(NOW, SECOND))
    store.remove((1,), NOW + 100)
    assert store.changed_after((1,), NOW + 50, NOW + 60)
    assert not store.changed_after((1,), NOW + 100, NOW + 200)


def test_ends_to_come_go_with_the_rows_and_removals_to_come_do_not() -> None:
    source, target = MapStore(SCALAR), MapStore(SCALAR)
    end = expiry(NOW, SECOND)
    source.put((1, "v", 1), NOW, end)
    source.put((2, "v", 1), NOW + 2, end)
    source.remove((2,), NOW + 100)
    (versions,) = source.extraction(EVERY_PARTITION, ALWAYS, NOW + 50).versions()
    assert sorted(versions.ends.tolist()) == [end, FOREVER]
    target.install(target.arrival([versions]))
    assert end_of(target, (1,), NOW + 50) == end
    assert target.expiring
    assert not target.last_ends_of(EVERY_PARTITION).any()
    target.put((3, "v", 1), NOW + 60)  # not late, although ends are to come
    assert target.size(NOW + 60) == 3
    assert target.size(end) == 2
