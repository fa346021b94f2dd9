"""Rows that a statement keeps for its queries: batches in memory, and beyond it on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.memory import Reservation
from remuda.execution.spill import SpilledBlocks


class StoredRows(Sequence[pa.RecordBatch]):
    """Read as a sequence of batches in engine form. One thread writes; once nothing is added any
    more, any may read."""

    def __init__(self, types: Sequence[SqlType], memory: Reservation) -> None:
        self._types = types
        self._memory = memory
        self._held: list[pa.RecordBatch] = []
        self._blocks: SpilledBlocks | None = None
        self._names: list[str] = []
        self.rows = 0

    def add(self, batch: pa.RecordBatch, size: int | None = None) -> None:
        """``size``: its bytes, if the caller knows them. Raises OutOfMemory where nothing spills,
        DiskFull."""
        self.rows += batch.num_rows
        if self._blocks is None and self._memory.try_grow(batch.nbytes if size is None else size):
            self._held.append(batch)
            return
        if self._blocks is None:
            self._names = batch.schema.names
            self._blocks = self._memory.blocks(self._types)
        self._blocks.write(Batch.of(batch))

    def __len__(self) -> int:
        return len(self._held) + (0 if self._blocks is None else len(self._blocks))

    @overload
    def __getitem__(self, number: int) -> pa.RecordBatch: ...

    @overload
    def __getitem__(self, number: slice) -> list[pa.RecordBatch]: ...

    def __getitem__(self, number: int | slice) -> pa.RecordBatch | list[pa.RecordBatch]:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        if number < 0 or number >= len(self):
            raise IndexError(number)
        if number < len(self._held):
            return self._held[number]
        assert self._blocks is not None
        rows = self._blocks.read(number - len(self._held))
        return pa.RecordBatch.from_arrays(rows.columns(), names=self._names)

    def close(self) -> None:
        """Free everything; may be called again."""
        self._held = []
        self._memory.clear()
        if self._blocks is not None:
            self._blocks.close()
            self._blocks = None
