"""Background upkeep of a map, in slices of a few milliseconds.

Five kinds of work, the first that is due is taken up: seal a full tail, turn a full delta into a
run, drop chunks that no reader can see anything of, merge runs of the key index, rewrite chunks (to
drop versions that no reader can see, and to put small chunks together). One job is in progress at a
time, as an iterator that is advanced slice by slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import EXPIRY_MARK, FOREVER
from remuda.limits import CHUNK_ROWS, MIB
from remuda.storage.chunks.chunk import CHUNK_ROWS_MAX, Chunk, Flags, Times
from remuda.storage.chunks.chunk_table import ChunkTable
from remuda.storage.chunks.key_index import DELTA_ENTRIES, NOWHERE, Hashes, KeyIndex, Slots
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.chunks.layout import Layouts

DEAD_SHARE: Final = 0.25
"""A chunk is rewritten when at least this share of its rows can no longer be seen."""
DEAD_TAIL_ROWS: Final = 256
DEAD_TAIL_SIZE: Final = MIB
"""A tail with fewer rows, and fewer bytes, that can no longer be seen is left alone."""
SMALL_CHUNK_ROWS: Final = CHUNK_ROWS // 2
GROUP_CHUNKS: Final = 8
"""So many small chunks of about the same size are put together even when they do not fill a
chunk.
"""
REWRITE_SIZE_MAX: Final = 64 * MIB
"""A rewrite copies its chunks, so this is memory that it needs for a moment."""
TAIL_SIZE_MAX: Final = 8 * MIB
"""A tail of wide rows is sealed before it is full: its readers convert all of it."""


class Floors:
    """Versions that ended at or before ``reads`` may be gone. So may those that ended at or before
    ``history``, but of partitions that came with less history than the others have."""

    def __init__(self) -> None:
        self.reads = self.history = 0
        self.returned: Times | None = None
        """By partition, the handover before it came back last; see ``handovers.goes_on``."""

    def lift(self, at: int) -> None:
        self.history = max(self.history, at)
        self.lift_reads(at)

    def lift_reads(self, at: int) -> None:
        """Because of partitions that come with less history."""
        self.reads = max(self.reads, at)

    def came_back(self, cuts: Times) -> None:
        """Partitions that had ended at ``cuts`` go on (0: others). Readers may hold the array of
        before."""
        known = self.returned
        self.returned = cuts if known is None else np.maximum(known, cuts)


class Upkeep:
    """The upkeep of one map on one member; only the event loop uses it."""

    def __init__(self, table: ChunkTable, index: KeyIndex, keys: KeyRule) -> None:
        self._table = table
        self._index = index
        self.keys = keys
        """Of the newest schema: rewritten chunks get it."""
        self._work: Iterator[None] | None = None
        self.floors = Floors()
        self.freed = 0
        """Bytes of chunks dropped so far (estimated)."""
        self.expired = 0
        """Rows collected so far that nothing but time has ended."""

    @property
    def floor(self) -> int:
        """Versions that ended at or before this timestamp may be gone."""
        return self.floors.reads

    def step(self, horizon: int) -> bool:
        """One slice. No reader may ask for a time before ``horizon`` any more. True = there is
        more.
        """
        if self._work is None:
            self._work = self._due(horizon)
            if self._work is None:
                return False
        try:
            next(self._work)
        except StopIteration:
            self._work = None
        return True

    def finish_merges(self) -> None:
        """Finish what is in progress and merge all runs that should be merged."""
        if self._work is not None:
            for _ in self._work:
                pass
            self._work = None
        while (runs := self._index.wanted_merge()) is not None:
            for _ in self._index.merge(runs):
                pass

    def _due(self, horizon: int) -> Iterator[None] | None:
        if self._table.unsealed:
            self._table.seal_one()
            return iter(())
        if self._table.tail.nbytes > TAIL_SIZE_MAX or self._tail_is_dead(horizon):
            self._table.next_tail()
            return iter(())
        if self._index.delta_entries >= DELTA_ENTRIES:
            self._index.freeze()
            return iter(())
        dead = [chunk for chunk in self._settled() if chunk.last_end() <= horizon]
        if dead:
            self.floors.lift(horizon)
            self._index.drop_ended(horizon)
            return self._drop(dead)
        runs = self._index.wanted_merge()
        if runs is not None:
            return self._index.merge(runs)
        group = self._dead_group(horizon) or self._small_group(horizon)
        if group:
            self.floors.lift(horizon)
            return self._rewrite(group, horizon)
        return None

    def _tail_is_dead(self, horizon: int) -> bool:
        """Whether much of the open tail can no longer be seen. Only sealed chunks are collected,
        and a tail whose rows were removed might never fill."""
        tail = self._table.tail
        due = max(1, int(tail.length * DEAD_SHARE))
        if tail.closed < due or tail.first_end > horizon or tail.ends is None:
            return False
        dead = np.count_nonzero(tail.ends[: tail.length] <= horizon)
        large = dead * tail.nbytes >= DEAD_TAIL_SIZE * tail.length
        return bool(dead >= due and (dead >= DEAD_TAIL_ROWS or large))

    # --- what to rewrite ---

    def _settled(self) -> list[Chunk]:
        """Sealed chunks."""
        return [chunk for chunk in self._table.snapshot() if chunk.tuples is None]

    def _dead_group(self, horizon: int) -> list[Chunk]:
        for chunk in self._settled():
            due = max(1, int(chunk.length * DEAD_SHARE))
            if chunk.closed < due or chunk.first_end > horizon or chunk.ends is None:
                continue
            if np.count_nonzero(chunk.ends <= horizon) >= due:
                return [chunk]
        return []

    def _small_group(self, horizon: int) -> list[Chunk]:
        """Small chunks of one size class, once they fill a chunk or are many."""
        classes: dict[int, list[Chunk]] = {}
        for chunk in self._settled():
            alive = chunk.closed < chunk.length or chunk.last_end() > horizon
            small = chunk.length < SMALL_CHUNK_ROWS and chunk.nbytes < REWRITE_SIZE_MAX // 2
            if small and alive:
                group = classes.setdefault(chunk.length.bit_length() // 3, [])
                group.append(chunk)
                rows = sum(member.length for member in group)
                if rows >= CHUNK_ROWS or (len(group) >= 4 * GROUP_CHUNKS):
                    return _bounded(group)
        for group in classes.values():
            if len(group) >= GROUP_CHUNKS:
                return _bounded(group)
        return []

    # --- dropping and rewriting ---

    def _drop(self, dead: list[Chunk]) -> Iterator[None]:
        """Drop chunks whose rows have all ended for every reader: first their index entries."""
        yield from self._index.forget([chunk.number for chunk in dead])
        self._index.drop_ended(self.floor)
        self._remove(dead)

    def _remove(self, chunks: list[Chunk]) -> None:
        self.freed += sum(chunk.nbytes for chunk in chunks)
        self.expired += sum(expired_rows(chunk, self.floor) for chunk in chunks)
        self._table.replace(chunks)

    def _rewrite(self, group: list[Chunk], horizon: int) -> Iterator[None]:
        """Replace chunks by one without the versions that ended at or before ``horizon``.

        The columns and the places in the index are computed in slices; the switch is one step.
        """
        self._index.freeze()
        keys, layouts = self.keys, Layouts(self.keys.schema)
        kept: list[Flags] = []
        batches: list[pa.RecordBatch] = []
        hashes: list[Hashes] = []
        for chunk in group:
            keep = _kept(chunk, horizon)
            kept.append(keep)
            batch = layouts.columns(chunk, chunk.length)
            hashes.append(keys.hashes(batch))
            yield
            batches.append(batch if keep.all() else batch.filter(pa.array(keep)))
            yield
        whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        wanted = np.unique(np.concatenate(hashes))
        yield
        generation = self._index.generation
        runs = len(self._index.runs)
        entries = self._index.find_entries(wanted)
        yield
        if generation != self._index.generation or runs > len(self._index.runs):
            entries = self._index.find_entries(wanted)
        self._switch(group, kept, whole, entries, keys.schema)

    def _switch(
        self,
        group: list[Chunk],
        kept: list[Flags],
        whole: pa.RecordBatch,
        entries: list,  # type: ignore[type-arg]
        schema: MapSchema,
    ) -> None:
        base = NOWHERE
        if whole.num_rows:
            partitions = np.concatenate(
                [c.partitions[: c.length][keep] for c, keep in zip(group, kept, strict=True)]
            )
            begins, ends = _begins(group, kept), _ends(group, kept)
            origins = _origins(group, kept)
            number = self._table.take_numbers(1)
            chunk = self._table.sealed(number, whole, partitions, begins, ends, schema, origins)
            base = chunk.base
        moved: dict[int, Slots] = {}
        placed = 0
        for old, keep in zip(group, kept, strict=True):
            targets = np.full(old.length, NOWHERE, dtype=np.int64)
            count = int(np.count_nonzero(keep))
            targets[keep] = np.arange(base + placed, base + placed + count)
            placed += count
            moved[old.number] = targets
        self._index.relocate(entries, moved)
        self._remove(group)


def _bounded(group: list[Chunk]) -> list[Chunk]:
    """As many of the chunks as fit into one."""
    result: list[Chunk] = []
    rows = size = 0
    for chunk in group:
        rows += chunk.length
        size += chunk.nbytes
        if result and (rows > CHUNK_ROWS_MAX or size > REWRITE_SIZE_MAX):
            break
        result.append(chunk)
    return result if len(result) > 1 else []


def expired_rows(chunk: Chunk, until: int) -> int:
    """Rows that have ended by themselves until then."""
    if not chunk.closed or chunk.first_end > until:
        return 0
    ends = np.asarray(chunk.end) if chunk.ends is None else chunk.ends[: chunk.length]
    gone = np.count_nonzero((ends <= until) & (ends & EXPIRY_MARK == EXPIRY_MARK))
    return int(gone) * (chunk.length if chunk.ends is None else 1)


def _kept(chunk: Chunk, horizon: int) -> Flags:
    if chunk.ends is None:
        return np.full(chunk.length, chunk.end > horizon)
    return chunk.ends[: chunk.length] > horizon


def _begins(group: list[Chunk], kept: list[Flags]) -> Times:
    """The begins of the kept rows. They stay as they are when no reader can tell them apart any
    more: they are the versions of entries, and say how long entries have been idle."""
    return np.concatenate(
        [
            np.full(int(np.count_nonzero(keep)), chunk.begin, dtype=np.int64)
            if chunk.begins is None
            else chunk.begins[: chunk.length][keep]
            for chunk, keep in zip(group, kept, strict=True)
        ]
    )


def _origins(group: list[Chunk], kept: list[Flags]) -> Times | None:
    """When the versions of the kept rows were written; None when their begins say so."""
    if all(chunk.origins is None for chunk in group):
        return None
    begins = [
        np.broadcast_to(np.asarray(chunk.origins_of(offsets), dtype=np.int64), offsets.shape)
        for chunk, offsets in zip(group, map(np.flatnonzero, kept), strict=True)
    ]
    return np.concatenate(begins)


def _ends(group: list[Chunk], kept: list[Flags]) -> Times | None:
    """The ends of the kept rows as they are now; None when no row has one."""
    ends = np.concatenate(
        [
            np.full(int(np.count_nonzero(keep)), chunk.end, dtype=np.int64)
            if chunk.ends is None
            else chunk.ends[: chunk.length][keep]
            for chunk, keep in zip(group, kept, strict=True)
        ]
    )
    return ends if (ends != FOREVER).any() else None
