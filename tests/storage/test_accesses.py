"""Who used an entry when, and which rows are candidates to go."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.timestamp import expiry
from remuda.storage.chunks.chunk import rows_to_batch
from remuda.storage.maps.accesses import HALF_LIFE, Accesses
from remuda.storage.maps.candidates import Candidate, bytes_per_row, sampled, written_before
from remuda.storage.maps.map_store import MapStore

SCHEMA = MapSchema("m", (Column("k", sql.BIGINT, False), Column("v", sql.VARCHAR)), ("k",), ("k",))
SECOND = 10**6


def store_of(numbers: range, begin: int, ttl: int = 0) -> MapStore:
    store = MapStore(SCHEMA)
    rows = [(number, "v") for number in numbers]
    store.upsert_batch(rows_to_batch(rows, SCHEMA), begin, ttl)
    return store


def keys(candidates: list[Candidate]) -> list[int]:
    return sorted(candidate.key[0] for candidate in candidates)


def test_the_last_of_writing_reading_and_the_start_counts() -> None:
    accesses = Accesses(100, counting=False)
    assert accesses.used((1,), 50) == 100
    assert accesses.used((1,), 150) == 150
    accesses.touch_all([(1,), (2,)], [b"row", None], 200)
    assert accesses.used((1,), 150) == 200
    assert accesses.used((2,), 150) == 150
    accesses.forget((1,))
    assert (accesses.used((1,), 150), len(accesses)) == (150, 0)


def test_uses_count_less_as_they_get_older() -> None:
    accesses = Accesses(0, counting=True)
    assert accesses.frequency((1,), 0, 0) == 1
    assert accesses.frequency((1,), 0, 2 * HALF_LIFE) == 0.25
    for _ in range(7):
        accesses.touch((1,), 0)
    assert accesses.frequency((1,), 0, 0) == 8
    assert accesses.frequency((1,), 0, 3 * HALF_LIFE) == 1
    accesses.touch((1,), 3 * HALF_LIFE)
    assert accesses.frequency((1,), 0, 3 * HALF_LIFE) == 2


def test_candidates_are_rows_that_exist() -> None:
    store = store_of(range(5000), 10)
    store.put((1, "new"), 30)
    store.put((9000, "tail"), 30)
    store.remove((2,), 40)
    found = [each for some in written_before(store, 20, 50) for each in some]
    assert keys(found) == [n for n in range(5000) if n not in {1, 2}]
    assert all(candidate.begin == 10 for candidate in found)
    assert keys([each for some in written_before(store, 10, 50) for each in some]) == []
    assert bytes_per_row(store) > 1


@settings(deadline=None, max_examples=30, derandomize=True)
@given(rows=st.integers(0, 300), count=st.integers(1, 100), seed=st.integers(0, 99))
def test_a_sample_has_each_row_once_at_most(rows: int, count: int, seed: int) -> None:
    store = store_of(range(rows), 10)
    for number in range(0, rows, 3):
        store.put((number, "again"), 20)
    found = sampled(store, count, 30, np.random.default_rng(seed))
    assert len({candidate.key for candidate in found}) == len(found)
    assert set(keys(found)) <= set(range(rows))
    if count >= rows:
        assert len(found) == rows
    else:
        assert 0 < len(found) <= count
    for candidate in found:
        assert candidate.begin == (20 if candidate.key[0] % 3 == 0 else 10)


def test_rows_whose_time_is_over_are_no_candidates() -> None:
    store = store_of(range(100), 1 << 40, SECOND)
    over = expiry(1 << 40, SECOND)
    generator = np.random.default_rng(1)
    assert len(sampled(store, 1000, over - 1, generator)) == 100
    assert sampled(store, 1000, over, generator) == []
    assert list(written_before(store, over, over)) == []
