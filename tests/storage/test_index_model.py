"""Secondary indexes of every kind against a plain model, under everything a map goes through."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.values import values_to_array
from remuda.storage.chunks import row_set
from remuda.storage.indexes import index_set
from remuda.storage.indexes import runs as index_runs
from remuda.storage.indexes import scan as index_scan
from remuda.storage.indexes import sorted as index_sorted
from remuda.storage.indexes import tail as index_tail
from remuda.storage.indexes.access import AllOf, AnyOf, Equal, Probe, Range, StartsWith, Test

sys.path.insert(0, str(Path(__file__).parent))
from test_map_store_model import COMPOSITE, SCALAR, StoreMachine, physical_rows

SMALL = [
    mock.patch.object(index_runs, "WORD_SLICE", 8),
    mock.patch.object(index_runs, "STRING_SLICE", 5),
    mock.patch.object(index_set, "GROUP_ROWS", 24),
    mock.patch.object(index_sorted, "MERGED_RUNS", 2),
    mock.patch.object(index_sorted, "FEW_SLOTS", 6),
    mock.patch.object(index_scan, "FIRST_WINDOW", 3),
    mock.patch.object(index_scan, "FEW_ROWS", 4),
    mock.patch.object(index_tail, "FRESH_ROWS_MAX", 3),
    mock.patch.object(row_set, "DENSE_SHARE", 4),
]


def defined(number: int, kind: IndexKind, *columns: str) -> IndexDefinition:
    parsed = [IndexedColumn(c.removeprefix("-"), c.startswith("-")) for c in columns]
    return IndexDefinition(f"i{number}", kind, tuple(parsed), number, ready=True)


SCALAR_INDEXES = (
    defined(1, IndexKind.SORTED, "v"),
    defined(2, IndexKind.SORTED, "n"),
    defined(3, IndexKind.SORTED, "-v", "k"),
    defined(4, IndexKind.HASH, "v"),
    defined(5, IndexKind.HASH, "k", "n"),
    defined(6, IndexKind.BITMAP, "v"),
    defined(7, IndexKind.BITMAP, "n"),
)
COMPOSITE_INDEXES = (
    defined(1, IndexKind.SORTED, "v"),
    defined(2, IndexKind.SORTED, "g"),
    defined(3, IndexKind.SORTED, "g", "-v"),
    defined(4, IndexKind.HASH, "v"),
    defined(5, IndexKind.HASH, "k"),
    defined(6, IndexKind.BITMAP, "g"),
    defined(7, IndexKind.BITMAP, "v"),
)


def passes(value: object, test: Test) -> bool:
    match test:
        case Equal(value=wanted):
            return value is None if wanted is None else value == wanted
        case StartsWith(prefix=prefix):
            return isinstance(value, str) and value.startswith(prefix)
        case Range(low=low, low_inclusive=from_low, high=high, high_inclusive=to_high):
            if value is None:
                return False
            above = low is None or value > low or (from_low and value == low)
            return above and (high is None or value < high or (to_high and value == high))


class IndexMachine(StoreMachine):
    indexes = SCALAR_INDEXES

    @initialize()
    def start(self) -> None:
        super().start()
        for patch in SMALL:
            patch.start()
        self.indexed = replace(self.schema, indexes=self.indexes)
        self.store.define_indexes(self.indexed)

    def teardown(self) -> None:
        for patch in SMALL:
            patch.stop()
        super().teardown()

    @rule(kept=st.integers(0, 7))
    def define_again(self, kept: int) -> None:
        """All indexes but one are dropped, and made anew under other numbers."""
        self.store.define_indexes(replace(self.schema, indexes=self.indexes[kept : kept + 1]))
        self.store.maintain(self.horizon)
        self.store.define_indexes(self.indexed)

    # --- what is asked ---

    def position(self, index: IndexDefinition, place: int) -> int:
        return self.schema.position[index.names[place]]

    def value(self, index: IndexDefinition, place: int, seed: int) -> object:
        return self.row(seed % 31, seed)[self.position(index, place)]

    def a_test(self, index: IndexDefinition, place: int, seed: int, last: bool) -> Test:
        value, other = (self.value(index, place, s) for s in (seed, seed * 7 + 3))
        choice = seed % 5
        if not last or index.kind is IndexKind.HASH or choice < 2:
            return Equal(value)
        if choice == 2 and isinstance(value, str):
            return StartsWith(value[: seed % 3])
        return Range(value, seed % 2 == 0, None if choice == 3 else other, seed % 3 == 0)

    def tests(self, index: IndexDefinition, seed: int) -> tuple[Test, ...]:
        count = len(index.columns)
        if index.kind is IndexKind.SORTED:
            count = seed % (count + 1)
        return tuple(self.a_test(index, i, seed + i, i == count - 1) for i in range(count))

    def fits(self, index: IndexDefinition, row: tuple, tests: tuple[Test, ...]) -> bool:
        return all(passes(row[self.position(index, i)], test) for i, test in enumerate(tests))

    def wanted(self, at: int, step: int) -> tuple[frozenset[int] | None, list[tuple]]:
        partitions = None if step == 1 else frozenset(range(0, 271, step))
        rows = self.model.rows(at).values()
        return partitions, [
            r for r in rows if partitions is None or self.partition(r) in partitions
        ]

    def read(self, cursor: object, writes: int) -> list[tuple]:
        found: list[tuple] = []
        while (batch := cursor.next()) is not None:  # type: ignore[attr-defined]
            assert batch.num_rows
            found += physical_rows(batch, self.schema)
            self.tick()
            for extra in range(writes):
                self.put(extra * 5, extra, 2)
                self.store.maintain(self.now)
            if writes:
                self.horizon = max(self.horizon, self.now)
        cursor.close()  # type: ignore[attr-defined]
        assert cursor.next() is None  # type: ignore[attr-defined]
        return found

    @rule(
        number=st.integers(0, 6),
        seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3),
        back=st.integers(0, 200),
        step=st.integers(1, 3),
        writes=st.integers(0, 3),
    )
    def probe(self, number: int, seeds: list[int], back: int, step: int, writes: int) -> None:
        at = self.readable(back)
        index = self.indexes[number]
        partitions, rows = self.wanted(at, step)
        choices = tuple(self.tests(index, seed) for seed in seeds)
        negated = index.kind is IndexKind.BITMAP and seeds[0] % 3 == 0
        probe = Probe(index.index_id, choices, negated)

        def fits(row: tuple) -> bool:
            hit = any(self.fits(index, row, tests) for tests in choices)
            if negated:
                return not hit and row[self.position(index, 0)] is not None
            return hit

        cursor = self.store.indexes.scan(at, range(len(self.schema.columns)), partitions, 0, probe)
        found = self.read(cursor, writes)
        assert len(set(found)) == len(found)
        assert set(found) <= set(rows)
        assert {row for row in found if fits(row)} == {row for row in rows if fits(row)}

    @rule(
        numbers=st.lists(st.integers(0, 6), min_size=2, max_size=3),
        seed=st.integers(0, 99),
        back=st.integers(0, 200),
        union=st.booleans(),
    )
    def combine(self, numbers: list[int], seed: int, back: int, union: bool) -> None:
        at = self.readable(back)
        parts = [
            (self.indexes[number], self.tests(self.indexes[number], seed + 11 * i))
            for i, number in enumerate(numbers)
        ]
        probes = tuple(Probe(index.index_id, (tests,)) for index, tests in parts)
        access = AnyOf(probes) if union else AllOf(probes)
        both = any if union else all
        _, rows = self.wanted(at, 1)
        cursor = self.store.indexes.scan(at, range(len(self.schema.columns)), None, 0, access)
        found = self.read(cursor, 0)
        assert len(set(found)) == len(found)
        assert set(found) <= set(rows)
        expected = {r for r in rows if both(self.fits(i, r, tests) for i, tests in parts)}
        assert expected <= set(found)

    def order(self, index: IndexDefinition, row: tuple) -> tuple:
        parts: list[object] = []
        for column in index.columns:
            value = row[self.schema.position[column.name]]
            missing = value is None
            if isinstance(value, str):
                value = value.encode()
            down = column.descending and len(index.columns) > 1
            parts.append((missing ^ down, _Reversed(value) if down else _Plain(value)))
        return tuple(parts)

    @rule(
        number=st.integers(0, 2),
        seed=st.integers(0, 99),
        back=st.integers(0, 200),
        step=st.integers(1, 3),
        descending=st.booleans(),
        writes=st.integers(0, 3),
    )
    def in_order(
        self, number: int, seed: int, back: int, step: int, descending: bool, writes: int
    ) -> None:
        at = self.readable(back)
        index = self.indexes[number]
        tests = self.tests(index, seed)
        partitions, rows = self.wanted(at, step)
        positions = range(len(self.schema.columns))
        cursor = self.store.indexes.ordered(
            at, positions, partitions, 0, index.index_id, (tests,), descending
        )
        found = self.read(cursor, writes)
        assert sorted(found, key=repr) == sorted(
            (row for row in rows if self.fits(index, row, tests)), key=repr
        )
        keys = [self.order(index, row) for row in found]
        assert keys == sorted(keys, reverse=descending)

    @rule(number=st.integers(0, 4), seeds=st.lists(st.integers(0, 99), max_size=40))
    def match(self, number: int, seeds: list[int]) -> None:
        at = self.now
        index = self.indexes[number]
        count = len(index.columns) if index.kind is IndexKind.HASH else 1
        keys = [tuple(self.value(index, i, seed) for i in range(count)) for seed in seeds]
        keys = [key for key in keys if None not in key]
        types = [self.schema.columns[self.position(index, i)].type for i in range(count)]
        columns = [values_to_array([k[i] for k in keys], t) for i, t in enumerate(types)]
        matched = self.store.indexes.match(
            at, range(len(self.schema.columns)), None, 0, index.index_id, columns
        )
        pairs = (
            []
            if matched is None
            else list(zip(physical_rows(matched[0], self.schema), matched[1].tolist(), strict=True))
        )
        expected = {
            (row, i)
            for row in self.model.rows(at).values()
            for i, key in enumerate(keys)
            if all(row[self.position(index, place)] == key[place] for place in range(count))
        }
        assert set(pairs) == expected
        assert len(pairs) == len(expected)

    @rule()
    def finish(self) -> None:
        """Everything is covered in the end, and nothing is left to do."""
        if self.jobs:
            return
        for _ in range(2000):
            if not self.store.maintain(self.horizon):
                break
        else:
            raise AssertionError("upkeep does not come to an end")
        assert self.store.indexes.built == {index.index_id for index in self.indexes}
        sealed = [c for c in self.store._table.snapshot() if c.tuples is None and c.length]
        for index in self.store.indexes.by_id.values():
            assert index.covered() >= {chunk.number for chunk in sealed}
        assert self.store.indexes.nbytes >= 0


class _Plain:
    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return self.value == other.value  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: _Plain) -> bool:
        if self.value is None or other.value is None:
            return False
        return self.value < other.value  # type: ignore[operator]


class _Reversed(_Plain):
    def __lt__(self, other: _Plain) -> bool:
        if self.value is None or other.value is None:
            return False
        return self.value > other.value  # type: ignore[operator]


class CompositeIndexMachine(IndexMachine):
    schema = COMPOSITE
    indexes = COMPOSITE_INDEXES


_settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
assert SCALAR is IndexMachine.schema
TestScalarIndexes = IndexMachine.TestCase
TestScalarIndexes.settings = _settings
TestCompositeIndexes = CompositeIndexMachine.TestCase
TestCompositeIndexes.settings = _settings
