"""Rows that end by themselves: when they do, and how many there are."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.timestamp import from_micros
from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK
from remuda.storage.chunks.key_index import NOWHERE
from remuda.storage.chunks.keys import Key
from remuda.storage.chunks.upkeep import expired_rows
from remuda.storage.maps.map_store import MapStore

COUNTED_FOR: Final = from_micros(200_000)
"""An estimate holds for so long: to count means to look at the end of every row."""


def end_of(store: MapStore, key: Key, at: int) -> int | None:
    """The end of the row of ``key`` that exists at ``at``; None if there is none."""
    keys = store._keys  # noqa: SLF001 (a part of the store)
    slot = store.lookup.locate(keys.hash(key), key, at)
    if slot == NOWHERE:
        return None
    chunk = store._table.by_number[slot >> OFFSET_BITS]  # noqa: SLF001
    ends = chunk.end_view
    return int(chunk.end if ends is None else ends[slot & OFFSET_MASK])


def estimated_rows(store: MapStore) -> int:
    """The rows that exist now, or, where rows end by themselves, did when the map was last written
    to (and a moment longer)."""
    if not store.expiring:
        return store.rows
    at, (counted_at, count) = store.seen, store.counted
    if not counted_at or at - counted_at > COUNTED_FOR:
        count = store.size(at)
        store.counted = at, count
    return count


def expirations(store: MapStore, at: int) -> int:
    """The rows that have ended by themselves until ``at``, on this copy."""
    if not store.expiring:
        return 0
    chunks = store._table.snapshot()  # noqa: SLF001
    there = sum(expired_rows(chunk, at) for chunk in chunks)
    return there + store._upkeep.expired  # noqa: SLF001
