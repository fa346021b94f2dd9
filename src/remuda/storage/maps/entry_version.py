"""The version of an entry: the commit timestamp of the write that it comes from."""

from __future__ import annotations

from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK
from remuda.storage.chunks.key_index import NOWHERE
from remuda.storage.chunks.keys import Key
from remuda.storage.maps.map_store import MapStore


def entry_version(store: MapStore, key: Key, at: int) -> int | None:
    """When the row of ``key`` that exists at ``at`` was written; None if there is none. The same on
    every copy, since rows move between copies with their times. On the loop's thread."""
    keys, table = store._keys, store._table  # noqa: SLF001 (a part of the store)
    slot = store.lookup.locate(keys.hash(key), key, at)
    if slot == NOWHERE:
        return None
    chunk, offset = table.by_number[slot >> OFFSET_BITS], slot & OFFSET_MASK
    if chunk.origins is not None:
        return int(chunk.origins[offset])
    begins = chunk.begin_view
    return int(chunk.begin if begins is None else begins[offset])
