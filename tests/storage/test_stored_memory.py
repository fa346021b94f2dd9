"""The account of stored bytes: what fits, what the reserve is for, how limits come about."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.limits import MIB
from remuda.storage.chunks.chunk import Chunk
from remuda.storage.chunks.row_sizes import RowSizes, value_size
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.stored_memory import (
    PROCESS_SIZE,
    RESIDENT_FACTOR,
    StoredMemory,
    Use,
    statement_memory_of,
    stored_memory_of,
)

SCHEMA = MapSchema(
    "t",
    (Column("id", sql.BIGINT, nullable=False), Column("text", sql.VARCHAR)),
    ("id",),
    ("id",),
)


def test_rows_leave_the_reserve_to_internal_maps_and_removals() -> None:
    account = StoredMemory(1000)
    account.measured(900)
    assert [account.fits(50), account.fits(51)] == [True, False]
    assert [account.fits(100, Use.INTERNAL), account.fits(101, Use.INTERNAL)] == [True, False]
    account.measured(2000)  # promoted, say
    assert not account.fits(0)
    assert not account.fits(1, Use.INTERNAL)
    assert account.fits(49, Use.REMOVAL)
    account.admit(49, Use.REMOVAL)
    assert not account.fits(1, Use.REMOVAL)
    account.measured(1900, removals=0)
    assert account.fits(49, Use.REMOVAL)


def test_what_was_admitted_counts_until_it_is_measured() -> None:
    account = StoredMemory(1000)
    account.admit(500)
    assert not account.fits(451)
    account.measured(100)
    assert account.fits(850)
    account.depart(800)
    account.measured(100)
    assert not account.fits(51)
    account.arrive(800)
    assert account.fits(850)


def test_rows_are_taken_in_one_step_exactly_when_they_fit() -> None:
    chance = Random(5)
    one, other = StoredMemory(1000), StoredMemory(1000)
    for _ in range(2000):
        size = chance.randrange(200)
        if chance.random() < 0.2:
            for account in (one, other):
                account.resize(800 + size)
        elif chance.random() < 0.2:
            for account in (one, other):
                account.measured(size * 6)
        elif chance.random() < 0.2:
            for account in (one, other):
                account.depart(size)
        fits = one.fits(size)
        if fits:
            one.admit(size)
        assert other.take(size) == fits
        assert other.held == one.held
        for account in (one, other):
            account._in_flight = 0


def test_all_parts_of_a_members_memory_together_stay_within_its_share() -> None:
    for available in (512 * MIB, 2048 * MIB, 65536 * MIB):
        for wanted in (0, 64 * MIB):
            statements = statement_memory_of(available, wanted)
            stored = stored_memory_of(available, statements, 0)
            assert stored > available // 10
            assert PROCESS_SIZE + statements + stored * RESIDENT_FACTOR <= available
    assert stored_memory_of(128 * MIB, 32 * MIB, 0) == 16 * MIB
    assert stored_memory_of(128 * MIB, 32 * MIB, 7) == 7


def test_texts_of_a_tail_are_counted_once_each() -> None:
    chunk = Chunk.open(0, SCHEMA)
    empty = chunk.nbytes
    for number in range(3):
        chunk.append((number, "x" * 1000), 0, 1)
        assert chunk.nbytes - empty == (number + 1) * RowSizes(SCHEMA).of((0, "x" * 1000))
    chunk.seal()
    assert 3000 < chunk.nbytes - empty + chunk.begins.nbytes < 3300 + chunk.begins.nbytes


def test_the_size_of_a_store_is_that_of_its_chunks_measured_anew() -> None:
    """However puts, bulk writes and upkeep came one after the other."""
    random, store = Random(5), MapStore(SCHEMA)
    for step in range(1, 200):
        if random.random() < 0.2:
            ids = pa.array(random.sample(range(20_000), 300))
            texts = pa.array(["y" * random.randrange(50)] * 300)
            batch = pa.RecordBatch.from_arrays([ids, texts], schema=engine_schema(SCHEMA))
            store.upsert_batch(batch, step)
        else:
            for _ in range(100):
                store.set((random.randrange(20_000), "z" * random.randrange(500)), step)
        store.bytes  # noqa: B018 (measured in between, or not)
        while random.random() < 0.5:
            store.maintain(step - 20)
    for chunk in store._table.snapshot():
        kept = chunk.partitions.nbytes
        kept += sum(0 if each is None else each.nbytes for each in (chunk.begins, chunk.ends))
        if chunk.tuples is None:
            assert chunk.nbytes == kept + chunk.batch.nbytes
        else:
            sizes = RowSizes(SCHEMA)
            assert chunk.nbytes == kept + sum(sizes.of(row) for row in chunk.tuples)


def test_removed_rows_of_a_tail_are_collected_though_it_never_fills() -> None:
    store = MapStore(SCHEMA)
    for key in range(1000):
        store.set((key, "x" * 5000), 10)
    held = store.bytes
    for key in range(900):
        store.discard((key,), 20)
    while store.maintain(15):
        pass
    assert store.bytes > 0.9 * held
    while store.maintain(20):
        pass
    assert store.bytes < 0.2 * held
    assert store.get((950,), 20) == (950, "x" * 5000)


def test_tails_of_wide_rows_are_sealed_before_they_are_full() -> None:
    """And small chunks of wide rows are not put together without end: that copies them."""
    store = MapStore(SCHEMA)
    for key in range(600):
        store.set((key, "x" * 200_000), 10)
        store.maintain(5)
    while store.maintain(5):
        pass
    chunks = store._table.snapshot()
    assert sum(chunk.nbytes for chunk in chunks if chunk.tuples is not None) < 9 * MIB
    assert max(chunk.nbytes for chunk in chunks) <= 65 * MIB
    assert store.size(10) == 600


def test_values_are_counted_with_what_they_contain() -> None:
    assert value_size(["a" * 1000, None]) > 1000
    assert value_size(("a" * 1000, ["b" * 1000])) > 2000
    assert value_size({"k": "v" * 1000}) > 1000
