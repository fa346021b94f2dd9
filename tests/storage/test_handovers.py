"""Partitions that were given away and come back: what this store tells others of their versions is
what any other copy tells, and nothing has happened to rows that nobody wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT
from remuda.datatypes.timestamp import FOREVER, handover
from remuda.errors import SerializationFailure
from remuda.storage.chunks import upkeep
from remuda.storage.maps.candidates import written_before
from remuda.storage.maps.change_log import ChangeLog
from remuda.storage.maps.copy_comparison import Inventory
from remuda.storage.maps.entry_version import entry_version
from remuda.storage.maps.late_decisions import take_versions
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, EVERY_PARTITION, Arrival, Extraction

SCHEMA = MapSchema("m", (Column("k", BIGINT, nullable=False), Column("v", BIGINT)), ("k",), ("k",))
AWAY, AGAIN = handover(7000), handover(20_000)
BACK = 12_000
Described = list[tuple[int, int, int, int]]


def described(extraction: Extraction) -> Described:
    found: Described = []
    for each in extraction.versions():
        rows = each.batch.to_pydict()
        columns = (each.begins.tolist(), each.ends.tolist(), rows["k"], rows["v"])
        found += zip(*columns, strict=True)
    return sorted(found)


def whole(store: MapStore, low: int = ALWAYS, high: int = FOREVER - 1) -> Described:
    return described(store.extraction(EVERY_PARTITION, low, high))


def comes_back(here: MapStore, elsewhere: MapStore) -> None:
    cuts = here.last_ends_of(EVERY_PARTITION)
    here.come_back(here.arrival(list(elsewhere.extraction(EVERY_PARTITION).versions())), cuts)


@pytest.fixture
def stores() -> tuple[MapStore, MapStore]:
    """A store that every partition has come back to, and another copy. Key 1 was written before
    the handover alone, key 2 on both sides, key 3 was removed before, key 4 while it was away."""
    here, elsewhere = MapStore(SCHEMA), MapStore(SCHEMA)
    for store in (here, elsewhere):
        for key in (1, 2, 3, 4):
            store.put((key, key * 10), 5000 + key)
        store.discard((3,), 6000)
    here.close_partitions(EVERY_PARTITION, AWAY)
    elsewhere.put((2, 21), 9000)
    elsewhere.discard((4,), 9500)
    comes_back(here, elsewhere)
    for store in (here, elsewhere):
        store.put((5, 50), BACK)
    return here, elsewhere


def settled(store: MapStore, horizon: int) -> None:
    while store.maintain(horizon):
        pass


def rewritten(store: MapStore) -> Iterator[None]:
    """Small chunks are put together, and what ended until the handover is dropped."""
    for key in range(100, 100 + 2 * upkeep.GROUP_CHUNKS):
        store.put((key, 0), 13_000)
        store._table.next_tail()
    yield
    settled(store, 13_500)


def test_versions_that_came_back_are_those_of_the_other_copies(
    stores: tuple[MapStore, MapStore],
) -> None:
    here, elsewhere = stores
    assert whole(here) == whole(elsewhere)
    assert (5001, FOREVER, 1, 10) in whole(here)


@pytest.mark.parametrize("high", [5500, 6500, 8000, 9200, 11_000, 12_500])
@pytest.mark.parametrize("low", [ALWAYS, 5500, 6500, 8000, 9200, 11_000])
def test_rounds_of_a_copy_are_those_of_the_other_copies(
    stores: tuple[MapStore, MapStore], low: int, high: int
) -> None:
    """From one moment to another one, the handover is no change."""
    here, elsewhere = stores
    assert whole(here, low, high) == whole(elsewhere, low, high)


def test_the_comparison_of_copies_finds_nothing(stores: tuple[MapStore, MapStore]) -> None:
    digests = [
        Inventory(store.extraction(EVERY_PARTITION), sorted(EVERY_PARTITION)).digests(0)
        for store in stores
    ]
    assert np.array_equal(*digests)


def test_every_moment_is_read_as_on_the_other_copies(stores: tuple[MapStore, MapStore]) -> None:
    here, elsewhere = stores
    for at in (4000, 5500, 6500, AWAY - 1, AWAY, AWAY + 1, 9000, 9600, BACK):
        for key in range(1, 6):
            assert here.get((key,), at) == elsewhere.get((key,), at), (key, at)
        assert here.size(at) == elsewhere.size(at), at


def test_the_version_of_an_entry_stays(stores: tuple[MapStore, MapStore]) -> None:
    here, elsewhere = stores
    for key in (1, 2, 5):
        assert entry_version(here, (key,), BACK) == entry_version(elsewhere, (key,), BACK)
    assert entry_version(here, (1,), BACK) == 5001


def test_an_entry_has_been_idle_since_it_was_written(stores: tuple[MapStore, MapStore]) -> None:
    found = [
        {c.key: c.begin for some in written_before(store, AWAY, BACK) for c in some}
        for store in stores
    ]
    assert found[0] == found[1] == {(1,): 5001}


def test_a_handover_is_no_conflict(stores: tuple[MapStore, MapStore]) -> None:
    here, elsewhere = stores
    for since in (5500, 6500, 8000, 11_000):
        for key in range(1, 6):
            changed = [store.changed_after((key,), since, BACK) for store in stores]
            assert changed[0] == changed[1], (key, since)
    assert not here.changed_after((1,), 6500, BACK)
    for store in stores:
        (versions,) = whole_rows(elsewhere, 1)
        store.stage("job", "task", 0, versions)
        store.prepare("job", ["task"], overwrite=False, insert_only=False, unchanged_since=6500)
        store.resolve("job", None)
        (versions,) = whole_rows(elsewhere, 2)
        store.stage("late", "task", 0, versions)
        with pytest.raises(SerializationFailure):
            store.prepare(
                "late", ["task"], overwrite=False, insert_only=False, unchanged_since=6500
            )
        store.resolve("late", None)


def whole_rows(store: MapStore, key: int) -> list:  # type: ignore[type-arg]
    """The newest row of a key, as a batch."""
    (versions,) = store.extraction(EVERY_PARTITION).versions()
    wanted = np.array(versions.batch.column(0).to_pylist()) == key
    return [versions.where(wanted & (versions.ends == FOREVER)).batch]


def test_what_was_given_away_again_has_ended(stores: tuple[MapStore, MapStore]) -> None:
    """Its next primary may have written since: nobody here may say that nothing has happened."""
    here, elsewhere = stores
    before = whole(here)
    here.close_partitions(EVERY_PARTITION, AGAIN)
    assert here.changed_after((1,), BACK, 30_000)
    assert [end for _, end, key, _ in whole(here) if key == 1] == [AGAIN]
    elsewhere.put((1, 11), 25_000)
    comes_back(here, elsewhere)
    assert whole(here) == whole(elsewhere)
    assert before != whole(here)
    assert here.get((1,), 6500) == here.get((1,), AGAIN) == (1, 10)
    assert here.get((1,), 25_000) == (1, 11)


def test_upkeep_keeps_when_versions_were_written(stores: tuple[MapStore, MapStore]) -> None:
    for store in stores:
        for _ in rewritten(store):
            chunks = len(store._table.snapshot())
        assert len(store._table.snapshot()) < chunks
    here, elsewhere = stores
    floor = max(here.floor, elsewhere.floor)
    assert floor > AWAY
    alive = [[each for each in whole(store) if each[1] > floor] for store in stores]
    assert alive[0] == alive[1]
    assert entry_version(here, (1,), 14_000) == 5001


LATE = (1, 2, 3, 4, 6)
"""Keys of which a write was undecided at the handover."""


def write_late(store: MapStore, at: int) -> None:
    store.put((1, 12), at)
    store.discard((2,), at)
    store.put((3, 32), at)
    store.put((6, 60), at)


def check_same(here: MapStore, elsewhere: MapStore) -> None:
    assert whole(here) == whole(elsewhere)
    for at in (4000, 5500, 6100, 6400, 6500, 6700, AWAY, 9000, 12_000, AGAIN, 26_000):
        for key in range(1, 7):
            assert here.get((key,), at) == elsewhere.get((key,), at), (key, at)
        assert here.size(at) == elsewhere.size(at), at
    assert here.rows == elsewhere.rows
    logs = [ChangeLog(0) for _ in range(2)]
    for log, store in zip(logs, (here, elsewhere), strict=True):
        log.advance(store.extraction(EVERY_PARTITION), 30_000)
    told = [[(c.times.tolist(), c.hashes.tolist()) for c in log.since(0)] for log in logs]
    assert told[0] == told[1]


@pytest.mark.parametrize("pending", [False, True], ids=["decided while away", "decided at last"])
def test_what_was_written_below_the_handover_comes_back(pending: bool) -> None:
    """Its write was undecided when the partition was given away; twice, the second time."""
    here, elsewhere = MapStore(SCHEMA), MapStore(SCHEMA)
    for store in (here, elsewhere):
        for key in (1, 2, 3, 4):
            store.put((key, key * 10), 5000 + key)
        store.discard((3,), 6000)
    for away, decided in ((AWAY, not pending), (AGAIN, pending)):
        here.close_partitions(EVERY_PARTITION, away)
        if decided:
            write_late(elsewhere, 6500)
        elsewhere.put((2, 23), away + 1000)
        cuts = here.last_ends_of(EVERY_PARTITION)
        comes_back(here, elsewhere)
        take_versions(here, elsewhere, [(key,) for key in LATE], cuts)
    check_same(here, elsewhere)
    for store in (here, elsewhere):  # one was undecided all the time
        store.put((4, 44), 6200)
    check_same(here, elsewhere)
    (rows,) = whole_rows(elsewhere, 3)
    for store in (here, elsewhere):  # so was a job
        store.stage("job", "task", 0, rows)
        store.prepare("job", ["task"], overwrite=False, insert_only=False)
        store.resolve("job", 6150)
    check_same(here, elsewhere)


def test_who_reads_rows_while_their_partition_comes_back() -> None:
    """A scan that has begun reads below what was undecided, and finds what it would have found."""
    here, elsewhere = MapStore(SCHEMA), MapStore(SCHEMA)
    for store in (here, elsewhere):
        store.put((1, 10), 5001)
        store.put((2, 20), 5002)
    here.close_partitions(EVERY_PARTITION, AWAY)
    write_late(elsewhere, 6500)
    before = here.scan(6400, (0, 1))
    cuts = here.last_ends_of(EVERY_PARTITION)
    comes_back(here, elsewhere)
    take_versions(here, elsewhere, [(key,) for key in LATE], cuts)
    rows = []
    while (batch := before.next()) is not None:
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    assert sorted(rows) == [(1, 10), (2, 20)]


def no_origins(patch: pytest.MonkeyPatch) -> None:
    """A version that came back begins at the handover, for everybody."""

    def begin_after(self: Arrival, cuts: np.ndarray) -> None:  # type: ignore[type-arg]
        self.begins = np.maximum(self.begins, cuts[self.rows.partitions])

    patch.setattr(Arrival, "begin_after", begin_after)


def upkeep_forgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(upkeep, "_origins", lambda _group, _kept: None)


@pytest.mark.parametrize(
    ("mutation", "test"),
    [
        (no_origins, test_versions_that_came_back_are_those_of_the_other_copies),
        (no_origins, test_the_comparison_of_copies_finds_nothing),
        (no_origins, test_the_version_of_an_entry_stays),
        (no_origins, test_a_handover_is_no_conflict),
        (upkeep_forgets, test_upkeep_keeps_when_versions_were_written),
    ],
)
def test_a_broken_return_is_noticed(
    mutation: Callable[[pytest.MonkeyPatch], None],
    test: Callable[[tuple[MapStore, MapStore]], None],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    mutation(monkeypatch)
    with pytest.raises((AssertionError, SerializationFailure)):
        test(request.getfixturevalue("stores"))
