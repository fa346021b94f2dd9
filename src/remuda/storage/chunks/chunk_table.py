"""The chunks of one map on one member: sealed ones, full tails that wait for sealing, the open
tail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.limits import CHUNK_ROWS, MIB, TAIL_PIECE_ROWS
from remuda.storage.chunks.chunk import (
    CHUNK_ROWS_MAX,
    OFFSET_BITS,
    Chunk,
    Offsets,
    Times,
)

PIECE_SIZE: Final = 64 * MIB
"""Bulk loads of wide rows make chunks of about this size, with fewer rows."""
UNSEALED_MAX = CHUNK_ROWS // TAIL_PIECE_ROWS
"""More full tails than this are sealed by the puts themselves: ``maintain`` has fallen behind."""

RowTimes: TypeAlias = tuple[Times | int, Times | None, Times | None]
"""Begins, ends and origins of rows, as ``Chunk.sealed`` takes them."""


class TableView(NamedTuple):
    """All chunks at one moment; ``tail`` is the one among them that is open."""

    chunks: tuple[Chunk, ...]
    tail: Chunk


class ChunkTable:
    """Number -> chunk. Numbers only grow and are never used again.

    ``view`` is what readers on other threads pin: one attribute, replaced as a whole by the event
    loop when chunks come or go, so that no reader meets a rewritten chunk beside its original.
    """

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema
        self.by_number: dict[int, Chunk] = {}
        self.unsealed: deque[Chunk] = deque()
        self._next_number = 0
        self._open_tail()

    def take_numbers(self, count: int) -> int:
        """Set ``count`` numbers aside for chunks made later; returns the first."""
        first = self._next_number
        self._next_number += count
        return first

    def _open_tail(self) -> None:
        self.tail = Chunk.open(self.take_numbers(1), self.schema)
        self.by_number[self.tail.number] = self.tail
        self._publish()

    def _publish(self) -> None:
        self.view = TableView(tuple(self.by_number.values()), self.tail)

    def snapshot(self) -> tuple[Chunk, ...]:
        """All chunks, the open tail among them."""
        return self.view.chunks

    def alter(self, schema: MapSchema) -> None:
        """From now on rows of ``schema`` are appended; those that are there keep theirs."""
        self.schema = schema
        if self.tail.length:
            self.next_tail()
        else:
            del self.by_number[self.tail.number]
            self._open_tail()

    def next_tail(self) -> None:
        """Open a new tail after a full one."""
        self.unsealed.append(self.tail)
        if len(self.unsealed) > UNSEALED_MAX:
            self.seal_one()
        self._open_tail()

    def seal_one(self) -> None:
        """Seal the oldest full tail (about 3 ms)."""
        self.unsealed.popleft().seal()

    def sealed(  # noqa: PLR0917 (a chunk's parts, in order)
        self,
        number: int,
        batch: pa.RecordBatch,
        partitions: npt.NDArray[np.uint16],
        begins: Times | int,
        ends: Times | None,
        schema: MapSchema | None = None,
        origins: Times | None = None,
    ) -> Chunk:
        """A sealed chunk of at most ``CHUNK_ROWS_MAX`` rows that lookups find; scans find it when
        it is published with ``replace``. ``schema`` is that of the batch, if not the newest.
        """
        schema = schema or self.schema
        chunk = Chunk.sealed(number, schema, batch, partitions, begins, ends, origins)
        self.by_number[number] = chunk
        return chunk

    def seal_all(
        self,
        number: int,
        batches: Iterable[pa.RecordBatch],
        partitions: npt.NDArray[np.uint16],
        times: RowTimes,
        schema: MapSchema,
    ) -> Iterator[Chunk]:
        """A sealed chunk of each batch, with numbers from ``number`` on. ``partitions`` and
        ``times`` are those of all rows, in order."""
        first = 0
        for place, batch in enumerate(batches):
            rows = slice(first, first + batch.num_rows)
            begins, ends, origins = times
            begins = begins if isinstance(begins, int) else begins[rows].copy()
            ends = None if ends is None else ends[rows].copy()
            origins = None if origins is None else origins[rows].copy()
            yield self.sealed(
                number + place, batch, partitions[rows], begins, ends, schema, origins
            )
            first = rows.stop

    def replace(self, old: Iterable[Chunk]) -> None:
        """In one step for scans: chunks made by ``sealed`` come, ``old`` ones go."""
        for chunk in old:
            del self.by_number[chunk.number]
        self._publish()

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self.by_number.values())

    def groups(self, slots: npt.NDArray[np.int64]) -> Iterator[tuple[Chunk, Offsets, Offsets]]:
        """The slots by chunk: (chunk, indexes into ``slots``, offsets in the chunk)."""
        if not len(slots):
            return
        numbers = slots >> OFFSET_BITS
        offsets = slots & (CHUNK_ROWS_MAX - 1)
        lowest, highest = int(numbers.min()), int(numbers.max())
        if lowest == highest:
            yield self.by_number[lowest], np.arange(len(slots)), offsets
            return
        numbers -= lowest
        if highest - lowest < 1 << 16:
            numbers = numbers.astype(np.uint16)  # NumPy sorts 16-bit integers by radix
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        bounds = np.flatnonzero(np.diff(numbers)) + 1
        for indexes in np.split(order, bounds):
            number = int(slots[indexes[0]]) >> OFFSET_BITS
            yield self.by_number[number], indexes, offsets[indexes]


def pieces(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows in the same order, as batches that make good chunks: all but the last have
    ``CHUNK_ROWS_MAX`` rows or about ``PIECE_SIZE``, or half as many and came like that.

    Only a batch that fits alone, or fills half a chunk, is taken as it is; everything else is
    copied, so that no chunk keeps memory of other rows (a larger batch, a received frame) alive.
    """
    result: list[pa.RecordBatch] = []
    parts: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        total, nbytes = batch.num_rows, batch.nbytes
        if not parts and _good_chunk(batch, nbytes):
            result.append(batch)
            continue
        width = nbytes / max(total, 1)
        start = 0
        while start < total:
            room = min(CHUNK_ROWS_MAX - rows, int((PIECE_SIZE - size) / max(width, 1.0)) + 1)
            part = batch.slice(start, room)
            parts.append(part)
            start += part.num_rows
            rows += part.num_rows
            size += int(width * part.num_rows) + 1
            if rows >= CHUNK_ROWS_MAX or size >= PIECE_SIZE:
                result.append(_piece(parts, whole=len(parts) == 1 and part.num_rows == total))
                parts = []
                rows = size = 0
    if parts:
        whole = len(batches) == 1 and not result and _alone(batches[0], batches[0].nbytes)
        result.append(_piece(parts, whole=whole))
    return result


def _good_chunk(batch: pa.RecordBatch, nbytes: int) -> bool:
    """Whether it is large enough, not too large, and no part of a larger one."""
    if not CHUNK_ROWS_MAX // 2 <= batch.num_rows <= CHUNK_ROWS_MAX or nbytes > PIECE_SIZE:
        return False
    return _alone(batch, nbytes)


def _alone(batch: pa.RecordBatch, nbytes: int) -> bool:
    """Whether it is not a small part of a larger one, whose memory it would keep alive."""
    held: int = batch.get_total_buffer_size()
    return held <= nbytes + nbytes // 4


def _piece(parts: list[pa.RecordBatch], *, whole: bool) -> pa.RecordBatch:
    if whole:
        return parts[0]
    return pa.concat_batches(parts if len(parts) > 1 else [parts[0], parts[0].slice(0, 0)])
