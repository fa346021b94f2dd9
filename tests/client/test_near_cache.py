"""What a near cache may serve, moment by moment."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.client.operations.near_cache import NearCache, NearEntries
from remuda.errors import InputError

Row = tuple[Any, ...]


class Cache:
    def __init__(self, **options: Any) -> None:
        self.entries = NearEntries(NearCache(**{"max_staleness": 10.0, **options}))
        self.now = 100.0
        self.confirm()

    def confirm(self, position: int = 50) -> None:
        self.entries.confirmed(position, self.now)

    def read(self, key: int, row: Row | None, version: int = 1) -> None:
        read = self.entries.begin(key)
        self.entries.end(read, (key,), row, version, self.now)

    def find(self, key: int, version: int = 1, written: int = 0) -> Row | None:
        return self.entries.find(key, (key,), version, self.now, written)


def test_a_row_is_served_until_it_changes() -> None:
    cache = Cache()
    assert cache.find(1) is None
    cache.read(1, (1, "a"))
    assert cache.find(1) == (1, "a")
    cache.entries.changed([2, 1])
    assert cache.find(1) is None
    found = cache.entries.statistics
    assert (found.hits, found.misses, found.invalidations, found.entries) == (1, 2, 1, 0)


def test_what_was_read_while_it_changed_is_not_kept() -> None:
    cache = Cache()
    early, other = cache.entries.begin(1), cache.entries.begin(2)
    cache.entries.changed([1])
    cache.entries.end(early, (1,), (1, "old"), 1, cache.now)
    cache.entries.end(other, (2,), (2, "b"), 1, cache.now)
    assert cache.find(1) is None
    assert cache.find(2) == (2, "b")
    cache.read(1, (1, "new"))
    assert cache.find(1) == (1, "new")


def test_nothing_is_served_when_members_are_silent() -> None:
    cache = Cache()
    cache.read(1, (1, "a"))
    cache.now += 9.9
    assert cache.find(1) == (1, "a")
    cache.now += 0.2
    assert cache.find(1) is None
    cache.read(2, (2, "b"))
    cache.confirm()  # nothing was lost: what is here is good again
    assert cache.find(1) == (1, "a")
    assert cache.find(2) is None


def test_everything_goes_with_a_reset_also_what_is_on_its_way() -> None:
    cache = Cache()
    cache.read(1, (1, "a"))
    read = cache.entries.begin(2)
    cache.entries.reset()
    assert cache.find(1) is None
    cache.confirm()
    cache.entries.end(read, (2,), (2, "b"), 1, cache.now)
    assert (cache.find(1), cache.find(2)) == (None, None)
    assert cache.entries.statistics.resets == 1


def test_own_writes_are_waited_for() -> None:
    cache = Cache()
    cache.read(1, (1, "a"))
    assert cache.find(1, written=51) is None  # the change may be on its way
    cache.confirm(51)
    assert cache.find(1, written=51) == (1, "a")


def test_bounds() -> None:
    cache = Cache(max_entries=2, ttl=1.0)
    for key in (1, 2):
        cache.read(key, (key, "x"))
    assert cache.find(1) == (1, "x")
    cache.read(3, (3, "x"))  # 2 was read longest ago
    assert [cache.find(key) is not None for key in (1, 2, 3)] == [True, False, True]
    cache.now += 1.0
    assert cache.find(1) is None
    found = cache.entries.statistics
    assert (found.evictions, found.expirations) == (1, 1)
    kept = Cache(max_entries=1, eviction="NONE")
    kept.read(1, (1, "x"))
    kept.read(2, (2, "x"))
    assert (kept.find(1), kept.find(2)) == ((1, "x"), None)


def test_rows_of_another_schema_or_key_are_not_served() -> None:
    cache = Cache()
    cache.read(1, (1, "a"))
    assert cache.find(1, version=2) is None
    assert cache.entries.find(1, (17,), 1, cache.now, 0) is None  # another key with this hash
    cache.read(9, None)
    assert cache.find(9) is None


@pytest.mark.parametrize(
    "options",
    [
        {"max_entries": 0},
        {"max_entries": True},
        {"ttl": 0},
        {"ttl": "1"},
        {"max_staleness": None},
        {"max_staleness": -1.0},
        {"eviction": "FIFO"},
    ],
)
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        NearCache(**options)
