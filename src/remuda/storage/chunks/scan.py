"""Scans: the rows of a map that exist at one timestamp, as Arrow batches."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.limits import BATCH_ROWS, PARTITIONS
from remuda.storage.chunks.chunk import Chunk, Flags
from remuda.storage.chunks.layout import Layouts

GATHERED_ROWS = BATCH_ROWS // 4
"""Batches below this size are put together, up to ``BATCH_ROWS``."""


def partition_flags(partitions: frozenset[int] | None) -> Flags | None:
    """A lookup table by partition number; None when all partitions are wanted."""
    if partitions is None or len(partitions) == PARTITIONS:
        return None
    flags = np.zeros(PARTITIONS, dtype=np.bool_)
    flags[list(partitions)] = True
    return flags


def shown(chunk: Chunk, count: int, at: int, wanted: Flags | None) -> Flags | bool:
    """Which of the first ``count`` rows of a chunk a reader sees; one answer when it is the same
    for all.
    """
    if count == 0:
        return False
    visible = chunk.visible(count, at)
    if visible is False:
        return False
    if wanted is not None:
        inside: npt.NDArray[np.bool_] = wanted[chunk.partitions[:count]]
        visible = inside if visible is True else visible & inside
    return visible


class ScanCursor:
    """A reader's pinned view of a map. ``next`` may be called by one thread at a time, any thread.

    Several cursors may share one view (``share``): each takes the next chunk that no other has
    taken. The iterator over the chunks is all that they have in common, and to take an element from
    a list's iterator is one step of the interpreter, so they need no lock.

    Made by the event loop. Later steps of the loop cannot change it: rows that are added lie
    outside of the pinned chunks and counts, and rows that are closed get an end after the read
    timestamp.
    """

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        chunks: Sequence[Chunk],
        open_tail: Chunk,
        at: int,
        positions: Sequence[int],
        partitions: frozenset[int] | None,
        layouts: Layouts,
    ) -> None:
        """``positions`` are those of the schema of ``layouts``."""
        self._layouts = layouts
        self._chunks: Sequence[Chunk] = chunks
        self._source: Iterator[Chunk] = iter(chunks)
        self._open_tail = open_tail
        self._tail_rows = open_tail.length
        self._at = at
        self._positions = list(positions)
        self._wanted = partition_flags(partitions)
        self._held: pa.RecordBatch | None = None

    def next(self) -> pa.RecordBatch | None:
        """Some visible rows with the projected columns, never empty; None at the end."""
        gathered: list[pa.RecordBatch] = []
        rows = 0
        while rows < BATCH_ROWS:
            batch, self._held = self._held, None
            if batch is None:
                batch = self._next_piece()
            if batch is None:
                break
            if batch.num_rows >= GATHERED_ROWS:
                if not gathered:
                    return batch
                self._held = batch
                break
            gathered.append(batch)
            rows += batch.num_rows
        if len(gathered) > 1:
            return concatenated(gathered)
        return gathered[0] if gathered else None

    def _next_piece(self) -> pa.RecordBatch | None:
        for chunk in self._source:
            batch = self._piece(chunk)
            if batch is not None:
                return batch
        return None

    def _piece(self, chunk: Chunk) -> pa.RecordBatch | None:
        """The visible rows of a chunk; None when there are none."""
        count = self._tail_rows if chunk is self._open_tail else chunk.length
        mask = shown(chunk, count, self._at, self._wanted)
        if mask is False:
            return None
        batch = self._layouts.columns(chunk, count, self._positions)
        if mask is True:
            return batch
        visible = int(np.count_nonzero(mask))
        if visible == count:
            return batch
        return filtered(batch, mask, visible) if visible else None

    def close(self) -> None:
        """Release the pinned chunks; ``next`` gives None afterwards."""
        self._chunks = ()
        self._source = iter(())
        self._held = None

    def share(self) -> ScanCursor:
        """Another cursor over what is left: together they give every row once."""
        other = copy.copy(self)
        other._held = None  # noqa: SLF001 (of its own class)
        return other


def count_shown(chunks: Sequence[Chunk], at: int, partitions: frozenset[int] | None) -> int:
    """The rows of some partitions (None: all) at ``at``."""
    wanted = partition_flags(partitions)
    total = 0
    for chunk in chunks:
        mask = shown(chunk, chunk.length, at, wanted)
        if mask is True:
            total += chunk.length
        elif mask is not False:
            total += int(np.count_nonzero(mask))
    return total


def filtered(batch: pa.RecordBatch, mask: Flags, count: int) -> pa.RecordBatch:
    """The rows under ``mask``, of which there are ``count``."""
    if batch.num_columns == 0:
        return batch.slice(0, count)
    return batch.filter(pa.array(mask))


def concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if batches[0].num_columns:
        return pa.concat_batches(batches)
    rows = sum(batch.num_rows for batch in batches)
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"]).select([])
