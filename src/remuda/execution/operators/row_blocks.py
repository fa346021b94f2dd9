"""Rows that are read several times: one block in memory, or many on disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from remuda.datatypes.sql import SqlType
from remuda.errors import OutOfMemory
from remuda.execution.batch import Batch
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import Gathered
from remuda.execution.spill import SpilledBlocks


class RowBlocks:
    """``add`` batches of columns of ``types``, then ``finish``, then read ``block(number)``. There
    is always a first block, empty if there are no rows. Raises OutOfMemory where nothing spills,
    DiskFull."""

    def __init__(self, types: Sequence[SqlType], memory: Reservation) -> None:
        self._types = types
        self._memory = memory
        self._gathered = Gathered(types, memory)
        self._blocks: SpilledBlocks | None = None
        self._held: Batch | None = None
        self._read: tuple[int, Batch] | None = None
        """The block that was read last."""
        self._starts = [0]
        self._largest = 0
        self.rows = 0
        self.complete = False

    @property
    def spilled(self) -> bool:
        return self._blocks is not None

    @property
    def count(self) -> int:
        return max(1, len(self._starts) - 1)

    def add(self, batch: Batch) -> None:
        self.rows += batch.rows
        if not batch.width:
            self._gathered.add_rows(batch.rows)
        elif self._blocks is not None or not self._gathered.try_add(batch.columns()):
            self._spill(batch)

    def _spill(self, batch: Batch) -> None:
        """Blocks are as large as what was held when memory ended, or as one batch."""
        if self._blocks is None:
            self._blocks = self._memory.blocks(self._types)
        if self._gathered.rows:
            self._write(self._gathered.batch())
            self._gathered.release()
        try:
            taken = self._gathered.try_add(batch.columns())
        except OutOfMemory:  # others have all of it
            taken = False
        if not taken:
            self._write(batch)

    def _write(self, block: Batch) -> None:
        assert self._blocks is not None
        self._blocks.write(block)
        self._starts.append(self._starts[-1] + block.rows)
        self._largest = max(self._largest, block.estimated_bytes())

    def finish(self) -> None:
        self.complete = True
        last = self._gathered.batch()
        if self._blocks is None:
            self._held = last
            self._starts.append(last.rows)
            return
        if last.rows:
            self._write(last)
            self._gathered.release()
        # The block at hand. Its size is bounded, so it may be when nothing is left.
        self._memory.try_grow(self._largest)

    def block(self, number: int) -> Batch:
        if self._blocks is None:
            assert self._held is not None
            return self._held
        if self._read is None or self._read[0] != number:
            self._read = number, self._blocks.read(number)
        return self._read[1]

    def first_row(self, number: int) -> int:
        """The rows before the block."""
        return self._starts[number]

    def place(self, row: int) -> tuple[int, int]:
        """(the block that holds the row, its place there)."""
        number = bisect_right(self._starts, row) - 1
        return number, row - self._starts[number]

    def close(self) -> None:
        self._gathered.release()
        self._held = self._read = None
        if self._blocks is not None:
            self._blocks.close()
