"""Entries that may have to go: a part of a map's rows, picked by their times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from remuda.storage.chunks.chunk import Chunk, Flags
from remuda.storage.chunks.keys import Key
from remuda.storage.chunks.scan import partition_flags, shown
from remuda.storage.maps.map_store import MapStore

SLICE_ROWS = 2048


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that exists, when it was written, and its partition."""

    key: Key
    begin: int
    partition: int


def written_before(store: MapStore, limit: int, at: int) -> Iterator[list[Candidate]]:
    """All rows that exist at ``at`` and were written before ``limit``, in slices. The loop may
    write between two of them."""
    for chunk in store._table.snapshot():  # noqa: SLF001 (a part of the store)
        offsets = _existing(chunk, at)
        if chunk.origins is not None or chunk.begins is not None:
            offsets = offsets[chunk.origins_of(offsets) < limit]
        elif chunk.begin >= limit:
            continue
        for start in range(0, len(offsets), SLICE_ROWS):
            yield _candidates(store, chunk, offsets[start : start + SLICE_ROWS])


def sampled(
    store: MapStore,
    count: int,
    at: int,
    generator: np.random.Generator,
    partitions: frozenset[int] | None = None,
) -> list[Candidate]:
    """About ``count`` rows of some partitions (None: all) that exist at ``at``, chosen at random,
    each at most once."""
    chunks = [chunk for chunk in store._table.snapshot() if chunk.length]  # noqa: SLF001
    if not chunks:
        return []
    wanted = partition_flags(partitions)
    existing = [_existing(chunk, at, wanted) for chunk in chunks]
    bounds = np.cumsum([len(offsets) for offsets in existing])
    total = int(bounds[-1])
    picked = np.unique(generator.integers(0, total, count)) if total else np.empty(0, np.int64)
    if total <= count:
        picked = np.arange(total)
    found: list[Candidate] = []
    places = np.searchsorted(bounds, picked, side="right")
    for place in np.unique(places):
        first = int(bounds[place - 1]) if place else 0
        offsets = existing[place][picked[places == place] - first]
        found += _candidates(store, chunks[place], offsets)
    return found


def bytes_per_row(store: MapStore) -> float:
    """Estimated memory of one row, with its share of the indexes; at least 1."""
    versions = sum(chunk.length for chunk in store._table.snapshot())  # noqa: SLF001
    return max(1.0, store.bytes / max(1, versions))


def _existing(chunk: Chunk, at: int, partitions: Flags | None = None) -> npt.NDArray[np.int64]:
    mask = shown(chunk, chunk.length, at, partitions)
    if mask is True:
        return np.arange(chunk.length)
    return np.empty(0, np.int64) if mask is False else np.flatnonzero(mask)


def _candidates(store: MapStore, chunk: Chunk, offsets: npt.NDArray[np.int64]) -> list[Candidate]:
    layouts, positions = store._layouts, store.schema.key_positions  # noqa: SLF001
    begins = np.broadcast_to(np.asarray(chunk.origins_of(offsets)), offsets.shape).tolist()
    partitions = chunk.partitions[offsets].tolist()
    return [
        Candidate(layouts.values_at(chunk, offset, positions), begin, partition)
        for offset, begin, partition in zip(offsets.tolist(), begins, partitions, strict=True)
    ]
