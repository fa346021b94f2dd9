"""The changes of a map, read from its versions, against what was written."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, VARCHAR, SqlType
from remuda.datatypes.timestamp import (
    EXPIRY_MARK,
    FOREVER,
    HANDOVER_MARK,
    HybridClock,
    expiry,
    handover,
)
from remuda.storage.chunks import keys
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.chunks.layout import Layouts
from remuda.storage.maps import change_log
from remuda.storage.maps.change_log import NONE, ChangeLog, Changes, joined
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import EVERY_PARTITION

Change = tuple[int, Any, Any, Any]
"""Timestamp, key, old value, new value."""


def schema_of(key: SqlType) -> MapSchema:
    columns = (Column("k", key, nullable=False, id=1), Column("v", BIGINT, id=2))
    return MapSchema("m", columns, ("k",), ("k",), map_id=7)


def seen(changes: Changes, schema: MapSchema) -> list[Change]:
    layouts = Layouts(schema)
    rows: list[list[Any]] = []
    for slots in (changes.old, changes.new):
        there = np.flatnonzero(slots != NONE)
        found = changes.rows(slots[there], layouts).to_pylist()
        by_place = dict(zip(there.tolist(), found, strict=True))
        rows.append([by_place.get(place) for place in range(len(slots))])
    result = []
    for time, old, new in zip(changes.times.tolist(), *rows, strict=True):
        some = new or old
        assert old is None or new is None or old["k"] == new["k"]
        result.append((time, some["k"], old and old["v"], new and new["v"]))
    return result


def heard_of(log: ChangeLog, low: int) -> Changes:
    found = joined(list(log.since(low)))
    return found.where(found.times > low)


class Written:
    """Writes that a store gets, and the changes that they are."""

    def __init__(self, schema: MapSchema, key: Any) -> None:
        self.schema, self.key = schema, key
        self.store = MapStore(schema)
        self.now = 1000
        self.rows: dict[Any, int] = {}
        self.changes: list[Change] = []

    def tick(self) -> int:
        self.now += 10
        if self.now & EXPIRY_MARK >= HANDOVER_MARK:  # as clocks do
            self.now += 10
        return self.now

    def put(self, number: int, value: int) -> None:
        key, at = self.key(number), self.tick()
        self.store.put((key, value), at)
        self.changes.append((at, key, self.rows.get(key), value))
        self.rows[key] = value

    def remove(self, number: int) -> None:
        key, at = self.key(number), self.tick()
        self.store.discard((key,), at)
        if key in self.rows:
            self.changes.append((at, key, self.rows.pop(key), None))

    def bulk(self, numbers: list[int], value: int, overwrite: bool) -> None:
        keys_ = [self.key(number) for number in dict.fromkeys(numbers)]
        at = self.tick()
        job = f"job {at}"
        batch = pa.RecordBatch.from_pydict(
            {"k": keys_, "v": [value] * len(keys_)}, schema=engine_schema(self.schema)
        )
        self.store.stage(job, "t", 0, batch)
        self.store.prepare(job, ["t"], overwrite=overwrite, insert_only=False)
        self.store.mark_prepared(job, at)
        self.store.resolve(job, at)
        if overwrite:
            for key in [key for key in self.rows if key not in keys_]:
                self.changes.append((at, key, self.rows.pop(key), None))
        for key in keys_:
            self.changes.append((at, key, self.rows.get(key), value))
            self.rows[key] = value


def step(written: Written, rng: random.Random) -> None:
    kind = rng.random()
    if kind < 0.6:
        written.put(rng.randrange(200), rng.randrange(1000))
    elif kind < 0.9:
        written.remove(rng.randrange(200))
    else:
        numbers = [rng.randrange(200) for _ in range(rng.choice([1, 3, 90]))]
        written.bulk(numbers, rng.randrange(1000), rng.random() < 0.2)


def order(changes: list[Change]) -> list[Change]:
    return sorted(changes, key=repr)


@pytest.mark.parametrize("seed", range(6))
def test_every_change_once(seed: int) -> None:
    rng = random.Random(seed)
    text = seed % 2 == 1
    schema = schema_of(VARCHAR if text else BIGINT)
    written = Written(schema, str if text else int)
    log = ChangeLog(written.now)
    heard: list[Change] = []
    for _ in range(400):
        step(written, rng)
        if rng.random() < 0.2:
            before = log.high
            log.advance(written.store.extraction(EVERY_PARTITION), written.now)
            heard += seen(heard_of(log, before), schema)
        if rng.random() < 0.1:
            written.store.maintain(written.now - 1500)
    log.advance(written.store.extraction(EVERY_PARTITION), written.tick())
    assert order(seen(heard_of(log, 1000), schema)) == order(written.changes)
    assert [change[0] for change in seen(heard_of(log, 1000), schema)] == sorted(
        change[0] for change in written.changes
    )
    assert set(heard) <= set(written.changes)

    late = ChangeLog(log.high)  # who comes later finds what the store still has
    low = written.now - 1400
    assert low >= written.store.floor
    late.reach(written.store.extraction(EVERY_PARTITION), low)
    assert order(seen(heard_of(late, low), schema)) == order(
        [change for change in written.changes if change[0] > low]
    )


def test_what_is_not_closed_yet_is_told_later() -> None:
    schema = schema_of(BIGINT)
    written = Written(schema, int)
    log = ChangeLog(written.now)
    for number in range(10):
        written.put(number, 1)
    middle = written.now
    for number in range(5):
        written.put(number, 2)
    for high in (middle, written.now):
        log.advance(written.store.extraction(EVERY_PARTITION), high)
        found = seen(heard_of(log, 1000), schema)
        assert found == [c for c in written.changes if c[0] <= high]


def test_rows_that_end_by_themselves() -> None:
    schema = schema_of(BIGINT)
    store = MapStore(schema)
    log = ChangeLog(1000)
    start = 5000 << 10
    store.put((1, 10), start, expiry(start, 100))
    store.put((2, 20), start, expiry(start, 50))
    store.put((3, 30), start, expiry(start, 70))
    end2, end3 = expiry(start, 50), expiry(start, 70)
    told: list[Change] = []

    def hear(high: int) -> None:
        before = log.high
        log.advance(store.extraction(EVERY_PARTITION), high)
        told.extend(seen(heard_of(log, before), schema))

    hear(start)
    store.put((1, 11), start + (60 << 10))  # before it would have ended
    hear(start + (60 << 10))
    hear(start + (80 << 10))
    assert told[3:] == [
        (end2, 2, 20, None),
        (start + (60 << 10), 1, 10, 11),
        (end3, 3, 30, None),
    ]


def test_keys_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_hash(self: keys.KeyRule, batch: pa.RecordBatch) -> Any:
        return np.full(batch.num_rows, 5, dtype=np.uint64)

    schema = schema_of(VARCHAR)
    written = Written(schema, str)
    log = ChangeLog(written.now)
    written.bulk([1, 2, 3], 1, overwrite=False)
    written.bulk([3, 4], 2, overwrite=True)
    monkeypatch.setattr(change_log.KeyRule, "hashes", one_hash)
    # Partitions come from the stored rows, so put them all into one.
    for chunk, _ in written.store.extraction(EVERY_PARTITION).chunks:
        chunk.partitions = np.zeros_like(chunk.partitions)
    log.advance(written.store.extraction(EVERY_PARTITION), written.now)
    assert order(seen(heard_of(log, 1000), schema)) == order(written.changes)


def test_a_page_does_not_tear_one_place_apart() -> None:
    zeros = np.zeros(4, dtype=np.int64)
    changes = Changes(
        [], np.array([1, 2, 2, 3]), np.zeros(4, np.uint16), np.array([9, 7, 7, 1], np.uint64),
        zeros, zeros,
    )  # fmt: skip
    assert [len(changes.first(n)) for n in (1, 2, 3, 4)] == [1, 3, 3, 4]
    places = [(0, 0, 0), (1, 0, 8), (1, 0, 9), (2, 0, 6), (2, 0, 7), (2, 1, 0), (9, 0, 0)]
    assert [changes.after(place) for place in places] == [0, 0, 1, 1, 3, 3, 4]
    assert changes.place(1) == (2, 0, 7)


def test_a_log_forgets_and_goes_back() -> None:
    schema = schema_of(BIGINT)
    written = Written(schema, int)
    log = ChangeLog(written.now)
    written.put(1, 1)
    first = written.now
    log.advance(written.store.extraction(EVERY_PARTITION), first)
    written.put(1, 2)
    log.advance(written.store.extraction(EVERY_PARTITION), written.now)
    log.forget(first)
    assert (log.low, log.entries) == (first, 1)
    log.reach(written.store.extraction(EVERY_PARTITION), 1000)
    assert seen(heard_of(log, 1000), schema) == written.changes
    assert written.store.get((1,), FOREVER - 1) == (1, 2)


def test_a_handover_is_no_change() -> None:
    """A partition that was given away comes back: what it had ended then, and begins then again."""
    schema = MapSchema(
        "m", (Column("k", BIGINT, nullable=False), Column("v", BIGINT)), ("k",), ("k",)
    )
    here, elsewhere = MapStore(schema), MapStore(schema)
    for store in (here, elsewhere):
        store.put((1, 10), 5000)
        store.put((1, 11), 6000)
        store.put((2, 20), 6000)
    away = handover(7000)
    here.close_partitions(EVERY_PARTITION, away)
    elsewhere.put((1, 12), 9000)
    elsewhere.discard((2,), 9500)
    extraction = elsewhere.extraction(EVERY_PARTITION)
    arrived = here.arrival(list(extraction.versions()))
    assert here.last_ends_of(EVERY_PARTITION).max() == away
    arrived.begin_after(here.last_ends_of(EVERY_PARTITION))
    here.install(arrived)
    expected = heard_between(elsewhere, schema, 0, 20_000)
    assert len(expected) == 5
    assert heard_between(here, schema, 0, 20_000) == expected


def test_partitions_that_were_given_away_one_after_the_other_come_back_together() -> None:
    """What was written to the first one before the second one went is no part of the handover."""
    schema = MapSchema(
        "m", (Column("k", BIGINT, nullable=False), Column("v", BIGINT)), ("k",), ("k",)
    )
    here, elsewhere = MapStore(schema), MapStore(schema)
    for store in (here, elsewhere):
        store.put((1, 10), 5000)
        store.put((2, 20), 5000)
    (versions,) = elsewhere.extraction(EVERY_PARTITION).versions()
    rule = KeyRule(schema)
    first, second = rule.partitions(versions.batch, rule.hashes(versions.batch)).tolist()
    assert first != second
    here.close_partitions(frozenset([first]), handover(6000))
    elsewhere.put((1, 11), 7000)
    elsewhere.put((1, 12), 7500)
    here.close_partitions(frozenset([second]), handover(9000))
    elsewhere.put((2, 21), 9500)
    arrived = here.arrival(list(elsewhere.extraction(EVERY_PARTITION).versions()))
    arrived.begin_after(here.last_ends_of(EVERY_PARTITION))
    here.install(arrived)
    expected = heard_between(elsewhere, schema, 0, 20_000)
    assert len(expected) == 5
    assert heard_between(here, schema, 0, 20_000) == expected
    assert here.get((1,), 7200) == (1, 11)
    assert here.get((1,), 8000) == (1, 12)
    assert here.get((2,), 8000) == (2, 20)


def heard_between(store: MapStore, schema: MapSchema, low: int, high: int) -> list[Change]:
    log = ChangeLog(low)
    log.advance(store.extraction(EVERY_PARTITION), high)
    return sorted(seen(heard_of(log, low), schema))


def test_clocks_give_out_no_marked_timestamps() -> None:
    clock = HybridClock()
    given = [clock.next(1) for _ in range(3000)]
    assert given == sorted(set(given))
    assert all(timestamp & EXPIRY_MARK < HANDOVER_MARK for timestamp in given)
    at = handover(given[-1])
    assert at >= given[-1]
    assert clock.next(1) != at
    clock.observe(at)
    assert clock.next(1) > at
