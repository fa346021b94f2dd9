"""The chunks of one map on one member: sealed ones, full tails that wait for sealing, the open
tail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.limits import CHUNK_ROWS, TAIL_PIECE_ROWS
from remuda.storage.chunk import (
    CHUNK_ROWS_MAX,
    OFFSET_BITS,
    Chunk,
    Offsets,
    Row,
    Times,
)

UNSEALED_MAX = CHUNK_ROWS // TAIL_PIECE_ROWS
"""More full tails than this are sealed by the puts themselves: ``maintain`` has fallen behind."""


class ChunkTable:
    """Number -> chunk. Numbers only grow. Readers pin ``snapshot()``, which is never changed."""

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema
        self.by_number: dict[int, Chunk] = {}
        self.unsealed: deque[Chunk] = deque()
        self._next_number = 0
        self._snapshot: tuple[Chunk, ...] | None = None
        self.tail = self._open_tail()

    def _take_number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def _open_tail(self) -> Chunk:
        tail = Chunk.open(self._take_number(), self.schema)
        self.by_number[tail.number] = tail
        self._snapshot = None
        return tail

    def snapshot(self) -> tuple[Chunk, ...]:
        """All chunks, the open tail among them."""
        if self._snapshot is None:
            self._snapshot = tuple(self.by_number.values())
        return self._snapshot

    def append(self, row: Row, partition: int, timestamp: int) -> int:
        """Add one row to the open tail; returns its slot."""
        if self.tail.length == TAIL_PIECE_ROWS:
            self.next_tail()
        return self.tail.append(row, partition, timestamp)

    def next_tail(self) -> None:
        """Open a new tail after a full one."""
        self.unsealed.append(self.tail)
        if len(self.unsealed) > UNSEALED_MAX:
            self.seal_one()
        self.tail = self._open_tail()

    def seal_one(self) -> None:
        """Seal the oldest full tail (about 3 ms)."""
        self.unsealed.popleft().seal()

    def add(
        self,
        batch: pa.RecordBatch,
        partitions: npt.NDArray[np.uint16],
        begins: Times | int,
        ends: Times | None,
    ) -> Chunk:
        """Add a sealed chunk of at most ``CHUNK_ROWS_MAX`` rows."""
        chunk = Chunk.sealed(self._take_number(), self.schema, batch, partitions, begins, ends)
        self.by_number[chunk.number] = chunk
        self._snapshot = None
        return chunk

    def remove(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            del self.by_number[chunk.number]
        self._snapshot = None

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
    """The same rows in the same order, as batches that make good chunks.

    Large batches are sliced without a copy; neighbours too small for a chunk are put together.
    """
    result: list[pa.RecordBatch] = []
    small: list[pa.RecordBatch] = []
    small_rows = 0

    def flush() -> None:
        nonlocal small_rows
        if small:
            result.append(small[0] if len(small) == 1 else pa.concat_batches(small))
            small.clear()
            small_rows = 0

    for batch in batches:
        if batch.num_rows >= CHUNK_ROWS // 4:
            flush()
            result += [
                batch.slice(start, CHUNK_ROWS_MAX)
                for start in range(0, batch.num_rows, CHUNK_ROWS_MAX)
            ]
        elif batch.num_rows:
            small.append(batch)
            small_rows += batch.num_rows
            if small_rows >= CHUNK_ROWS:
                flush()
    flush()
    return result
