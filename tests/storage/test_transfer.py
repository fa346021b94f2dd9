"""Transfers of partitions against the model of ``test_map_store_model``: whatever is written
meanwhile, the copy answers at every timestamp as the original does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.storage.test_map_store_model import (
    COMPOSITE,
    SCALAR,
    StoreMachine,
    physical_rows,
)

from remuda.datatypes.timestamp import FOREVER, expiry
from remuda.errors import SchemaChanged, SerializationFailure
from remuda.limits import PARTITIONS
from remuda.storage.maps import transfer
from remuda.storage.maps.copy_comparison import (
    BUCKETS_MAX,
    Inventory,
    Marks,
    bucket_bits,
    compared,
    differing,
)
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, Versions

MOVED = frozenset(range(0, 271, 2))


def installed(store: MapStore, versions: list[Versions], low: int = ALWAYS) -> None:
    """What the receiver does with a round."""
    for each in versions:
        fresh, ended = transfer.split(each, low)
        if ended is not None:
            store.end_versions(store.arrival([ended]), low)
        if fresh is not None:
            store.install(store.arrival([fresh]))


def wired(versions: Versions) -> Versions:
    return transfer.from_wire(versions.on_wire(), versions.schema)


def reconciled(mine: MapStore, old: MapStore, target: MapStore, high: int, bits: int) -> int:
    """Make ``target`` of what ``old`` has rightly, and of what it lacks; how much that was."""
    partitions = sorted(MOVED)
    source = Inventory(mine.extraction(MOVED, ALWAYS, high), partitions)
    kept = Inventory(old.extraction(MOVED), partitions)
    buckets = differing(source.digests(bits), kept.digests(bits))
    mine_inside, theirs_inside = source.inside(bits, buckets), kept.inside(bits, buckets)
    theirs = Marks.from_bytes(kept.marks.where(theirs_inside).to_bytes())
    lacking, void = compared(source.marks.where(mine_inside), theirs)
    sent, good = mine_inside.copy(), ~theirs_inside
    sent[mine_inside], good[theirs_inside] = lacking, ~void
    installed(target, [wired(versions) for versions in kept.versions(good)])
    installed(target, [wired(versions) for versions in source.versions(sent)])
    return int(np.count_nonzero(sent))


def described(store: MapStore) -> list[tuple[int, int, str]]:
    found = []
    for versions in store.extraction(MOVED).versions():
        rows = physical_rows(versions.batch, store.schema)
        times = zip(versions.begins.tolist(), versions.ends.tolist(), rows, strict=True)
        found += [(begin, end, repr(row)) for begin, end, row in times]
    return sorted(found)


class TransferMachine(StoreMachine):
    """One copy is brought up to date by rounds; ``moved`` is made in one go, as a promotion is."""

    copy: MapStore | None = None
    low = ALWAYS
    old: MapStore | None = None
    old_at = 0
    wrong = 0
    """Versions, at most, that ``old`` has otherwise than the store, or has collected."""

    @precondition(lambda self: hasattr(self, "store"))
    @rule(
        lag=st.integers(0, 20),
        steps=st.integers(0, 20),
        again=st.integers(0, 4),
        number=st.integers(0, 30),
    )
    def round(self, lag: int, steps: int, again: int, number: int) -> None:
        if self.copy is None or again == 0:
            self.copy, self.low = self.like(), ALWAYS
        if again == 1:  # what the copy has is replaced, and collected as far as may be
            self.put(number, again, 12)
            self.maintain(60, 0)
        decided = min([self.now, *(prepared - 1 for prepared, _, _ in self.jobs.values())])
        high = decided - lag
        if high <= self.low:
            return
        self.copy.raise_floor(self.store.floor)
        extraction = self.store.extraction(MOVED, self.low, high)
        pieces = transfer.joined(extraction.versions(), steps)
        installed(self.copy, [wired(piece) for piece in pieces], self.low)
        self.low = self.store.kept_from = high
        self.check(self.copy, high)
        for _ in range(steps):
            self.copy.maintain(min(self.horizon, high))
        self.check(self.copy, high)

    @precondition(lambda self: hasattr(self, "store"))
    @rule(
        steps=st.integers(0, 20),
        wrong=st.integers(0, 3),
        number=st.integers(0, 30),
        bits=st.integers(0, 8),
    )
    def come_back(self, steps: int, wrong: int, number: int, bits: int) -> None:
        """An old copy, which may have what was never written, is brought up to date by the
        difference: then it is a whole copy. The next one begins with the state of now."""
        decided = min([self.now - 1, *(prepared - 1 for prepared, _, _ in self.jobs.values())])
        whole = self.like()
        installed(whole, list(self.store.extraction(MOVED, ALWAYS, decided).versions()))
        if self.old is not None:
            target = self.like()
            sent = reconciled(self.store, self.old, target, decided, bits)
            assert described(target) == described(whole)
            target.raise_floor(self.store.floor)
            self.check(target, decided)
            whole_size = len(Inventory(whole.extraction(MOVED), sorted(MOVED)))
            assert sent <= whole_size
            if not self.changed_since(self.old_at):
                assert sent <= self.wrong, "nothing has changed"
        self.old, self.old_at, self.wrong = whole, decided, 10**6 if steps else 0
        if wrong:  # what the copy has, and no other one
            row, at = self.row(number, wrong), self.now + 1
            self.wrong += 2
            if wrong == 1:
                self.old.put(row, at)
            elif wrong == 2:
                self.old.put(row, at, expiry(at, 1000))
            else:
                self.old.discard(self.key(row), at)
        for _ in range(steps):
            self.old.maintain(min(self.horizon, decided))

    def changed_since(self, at: int) -> bool:
        return bool(self.jobs) or any(moment > at for moment in self.model.moments())

    @precondition(lambda self: hasattr(self, "store"))
    @rule(number=st.integers(0, 30), writes=st.integers(0, 9), cut=st.booleans())
    def move(self, number: int, writes: int, cut: bool) -> None:
        """A local move: rows are written, and upkeep asks to run, between its two halves."""
        target = self.like()
        target.raise_floor(self.store.floor)
        self.store.resting += 1
        extraction = self.store.extraction(MOVED)
        versions = list(extraction.versions())
        arrived = target.arrival(versions) if versions else None
        if writes:
            self.put(number, writes, writes)
            self.remove(number, writes)
        for _ in range(writes * 4):
            self.store.maintain(self.now)
        if writes:
            self.horizon = max(self.horizon, self.now)
        ends, more = self.store.refreshed(extraction)
        self.store.resting -= 1
        at = self.now if cut else ALWAYS
        if arrived is not None:
            arrived.ends = ends
            arrived.begin_after(np.full(PARTITIONS, at))
            target.install(arrived)
        if more:
            rest = target.arrival(more)
            rest.begin_after(np.full(PARTITIONS, at))
            target.install(rest)
        self.check(target, FOREVER - 1, low=at)
        assert target.size(self.now) == self.store.size(self.now, MOVED)

    @precondition(lambda self: hasattr(self, "store"))
    @rule(back=st.integers(0, 50))
    def hand_over(self, back: int) -> None:
        """Rows closed at a timestamp are there below it, discarded ones nowhere."""
        if self.jobs:
            return
        source = self.like()
        source.raise_floor(self.store.floor)
        installed(source, list(self.store.extraction(frozenset(range(271))).versions()))
        at = self.tick()
        source.close_partitions(MOVED, at)
        assert source.last_ends_of(MOVED).max() <= at
        below = max(self.horizon, at - 1 - back)
        everything = sorted(self.model.rows(below).values(), key=repr)
        left = [row for row in self.model.rows(at).values() if self.partition(row) not in MOVED]
        assert self.scanned(source, below) == everything
        assert self.scanned(source, at) == sorted(left, key=repr)
        assert source.size(at) == len(left)
        source.discard_partitions(MOVED)
        assert self.scanned(source, at) == sorted(left, key=repr)
        assert not source.last_ends_of(MOVED).any()
        assert source.size(at) == len(left)
        remaining = [r for r in self.model.rows(below).values() if self.partition(r) not in MOVED]
        assert self.scanned(source, below) == sorted(remaining, key=repr)

    def like(self) -> MapStore:
        store = MapStore(self.schema)
        if self.collide:
            mine, theirs = store._keys, self.store._keys
            mine.exact = False
            mine._same_hash = False
            mine.hash, mine.hashes = theirs.hash, theirs.hashes
        return store

    def check(self, copy: MapStore, high: int, low: int = ALWAYS) -> None:
        ats = self.model.moments()
        ats |= {at - 1 for at in ats} | {min(high, self.now)}
        readable = sorted(at for at in ats if max(self.horizon, low) <= at <= high)[-12:]
        for at in readable:
            rows = {k: r for k, r in self.model.rows(at).items() if self.partition(r) in MOVED}
            assert self.scanned(copy, at) == sorted(rows.values(), key=repr)
            for key, row in list(rows.items())[:5]:
                assert copy.get(key, at) == row

    def scanned(self, store: MapStore, at: int) -> list[tuple[Any, ...]]:
        cursor = store.scan(at, range(len(self.schema.columns)))
        found: list[tuple[Any, ...]] = []
        while (batch := cursor.next()) is not None:
            found += physical_rows(batch, self.schema)
        return sorted(found, key=repr)


class CompositeTransfers(TransferMachine):
    schema = COMPOSITE


class CollidingTransfers(TransferMachine):
    collide = True


_settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestTransfers = TransferMachine.TestCase
TestTransfers.settings = _settings
TestCompositeTransfers = CompositeTransfers.TestCase
TestCompositeTransfers.settings = _settings
TestCollidingTransfers = CollidingTransfers.TestCase
TestCollidingTransfers.settings = _settings


def test_rows_of_another_schema_are_refused() -> None:
    store = MapStore(SCALAR)
    store.put((1, "a", 5), 10)
    (versions,) = store.extraction(frozenset(range(271))).versions()
    with pytest.raises(SchemaChanged):
        transfer.from_wire(versions.on_wire(), COMPOSITE)


def test_rows_that_came_before_the_write_that_made_them_survive_it() -> None:
    """The sender has carried out a replacing write that the receiver, which keeps other partitions,
    has still to carry out: what came with the copy is not what is replaced."""
    source, target = MapStore(SCALAR), MapStore(SCALAR)
    target.put((1, "old", 5), 10)
    target.prepare("job", (), overwrite=True, insert_only=False)
    target.mark_prepared("job", 90)
    source.put((2, "new", 5), 100)
    installed(target, list(source.extraction(frozenset(range(271))).versions()))
    target.resolve("job", 100)
    assert target.get((1,), 100) is None
    assert target.get((2,), 100) == (2, "new", 5)
    assert target.rows == 1


def test_changes_before_the_floor_refuse_a_statement() -> None:
    """The member that had the partition before may have removed its rows since they were read."""
    store = MapStore(SCALAR)
    store.raise_floor(50)
    with pytest.raises(SerializationFailure):
        store.prepare("job", (), overwrite=False, insert_only=False, unchanged_since=49)
    store.prepare("job", (), overwrite=False, insert_only=False, unchanged_since=50)


def marks(*each: tuple[int, int, int]) -> Marks:
    hashes, begins, ends = zip(*each, strict=True) if each else ((), (), ())
    return Marks(
        np.array(hashes, dtype=np.uint64),
        np.array(begins, dtype=np.int64),
        np.array(ends, dtype=np.int64),
    )


def test_what_two_copies_have_otherwise_is_lacking_or_void() -> None:
    mine = marks((1, 10, FOREVER), (2, 10, 30), (3, 10, FOREVER), (2**64 - 1, 10, FOREVER))
    theirs = marks((2, 10, FOREVER), (1, 10, FOREVER), (4, 10, FOREVER))
    lacking, void = compared(mine, theirs)
    assert lacking.tolist() == [False, True, True, True]
    assert void.tolist() == [True, False, True]
    for flags in compared(marks(), marks()):
        assert not len(flags)
    assert compared(mine, marks())[0].all()
    assert compared(marks(), theirs)[1].all()


def test_keys_with_equal_hashes_are_told_apart_by_their_number() -> None:
    """Two keys were written by one commit, and one of them was removed since: which one is not
    seen, so both are sent."""
    lacking, void = compared(
        marks((1, 10, FOREVER), (1, 10, 20)), marks((1, 10, FOREVER), (1, 10, FOREVER))
    )
    assert lacking.all()
    assert void.all()
    lacking, void = compared(*2 * [marks((1, 10, FOREVER), (1, 10, FOREVER))])
    assert not lacking.any()
    assert not void.any()


@pytest.mark.parametrize(("rows", "partitions"), [(0, 1), (10, 1), (10**6, 90), (10**9, 271)])
def test_there_are_never_too_many_buckets(rows: int, partitions: int) -> None:
    bits = bucket_bits(rows, partitions)
    assert partitions << bits <= BUCKETS_MAX
    assert bits == 0 or rows / (partitions << bits) >= 32


def test_rows_travel_in_batches_of_bounded_rows_and_bytes() -> None:
    """A frame has a largest size, and the memory of a batch is not counted as stored."""
    few = [b"x" * (200_000 if number % 10 == 0 else 10) for number in range(700)]
    for values in (few, [b"y"] * 40_000, [b"z" * 2 * transfer.SENT_SIZE], []):
        batch = pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], names=["v"])
        found = list(transfer.wire_batches(batch))
        assert [value for each in found for value in each.column(0).to_pylist()] == values
        for each in found:
            assert each.num_rows <= transfer.SENT_ROWS
            assert each.nbytes <= transfer.SENT_SIZE or each.num_rows == 1


def test_small_pieces_are_joined_until_they_fill_a_batch() -> None:
    schema: Any = None  # of any map
    wide = pa.RecordBatch.from_arrays([pa.array([b"x" * 1_000_000])], names=["v"])
    times = np.zeros(1, dtype=np.int64)
    pieces = [transfer.Versions(schema, wide, times, times)] * 30
    found = list(transfer.joined(iter(pieces)))
    assert sum(each.rows for each in found) == 30
    assert max(each.rows for each in found) == transfer.SENT_SIZE // 1_000_000 + 1
