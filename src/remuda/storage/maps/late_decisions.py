"""Writes that commit below the handover of their partition, decided by the member that got it.

When the partition comes back, the rows that stayed here end at the handover, and the rows that come
begin there (``storage.chunks.handovers``). That is wrong for a key whose write was undecided then:
the write may have committed below the handover, where this store lacks it. So the versions of such
a key become those of the copy that comes, with their own begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK, Chunk, Times
from remuda.storage.chunks.keys import Key
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import NEVER, Versions


def take_versions(target: MapStore, source: MapStore, keys: Iterable[Key], cuts: Times) -> None:
    """Let the versions of ``keys`` in ``target`` be those of ``source``, which ``target`` has taken
    over with ``cuts`` (``MapStore.come_back``) in this step of the loop. Rows of before stay where
    they are: readers on other threads may be in the midst of them. They read below the prepare
    timestamp of the write, and nothing changes there."""
    lacking = [each for key in keys for each in _lacking(target, source, key, cuts)]
    if lacking:
        target.install(target.arrival([_row(source, each) for each in lacking]))


def _lacking(target: MapStore, source: MapStore, key: Key, cuts: Times) -> Iterator[_Version]:
    """Set the ends of the rows of a key; which versions are not among them."""
    here: dict[int, list[_Version]] = {}
    for each in _versions(target, key):
        here.setdefault(each.origin, []).append(each)
    for true in _versions(source, key):
        begin, end = true.begin, true.end
        cut = cuts[true.chunk.partitions[true.offset]]
        mine = sorted(here.get(begin, ()), key=lambda each: each.begin)
        kept = [each for each in mine if not begin < each.begin == cut]
        for each in mine:
            if each not in kept:  # it came just now, and begins at the cut
                target.set_end(each.chunk, each.offset, NEVER)
        for each in kept:
            if end <= each.begin:
                target.set_end(each.chunk, each.offset, NEVER)
            elif each is kept[-1] or end <= each.end:
                target.set_end(each.chunk, each.offset, end)
        if not kept:
            yield true


def _row(store: MapStore, version: _Version) -> Versions:
    """One version, as it is sent between stores."""
    columns = store._layouts.columns(version.chunk, version.offset + 1)  # noqa: SLF001
    begins, ends = np.array([version.begin]), np.array([version.end])
    return Versions(store.schema, columns.slice(version.offset), begins, ends)


class _Version(NamedTuple):
    """A row that shows a version of a key from ``begin`` to ``end``; written at ``origin``."""

    chunk: Chunk
    offset: int
    begin: int
    end: int
    origin: int


def _versions(store: MapStore, key: Key) -> Iterator[_Version]:
    """Those that some reader may see."""
    keys, chunks = store._keys, store._table.by_number  # noqa: SLF001 (a part of the store)
    for slot in store._index.slots(keys.hash(key)):  # noqa: SLF001
        chunk, offset = chunks[slot >> OFFSET_BITS], slot & OFFSET_MASK
        begins, ends = chunk.begin_view, chunk.end_view
        begin = int(chunk.begin if begins is None else begins[offset])
        end = int(chunk.end if ends is None else ends[offset])
        origin = begin if chunk.origins is None else int(chunk.origins[offset])
        if begin < end and (keys.exact or keys.holds(chunk, offset, key)):
            yield _Version(chunk, offset, begin, end, origin)
