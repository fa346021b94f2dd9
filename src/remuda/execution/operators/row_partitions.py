"""Rows split by the hash of a key into files on disk, so that each part fits into memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from remuda.datatypes.hashes.keyhash import hash_arrays
from remuda.datatypes.sql import SqlType
from remuda.errors import DiskFull
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import EMPTY, unify
from remuda.execution.spill import SpillFile
from remuda.limits import BATCH_ROWS

FAN_OUT: Final = 32
DEPTH_MAX: Final = 4
"""Levels of splitting: 32 ** 4 parts are enough for any disk, unless one key has most rows."""
_BITS: Final = 5
_FIRST_BIT: Final = 40
_BLOCK_ROWS_MIN: Final = 64


class RowPartitions:
    """``FAN_OUT`` files; a row goes to that of its key's hash. ``keys`` are positions.

    ``depth`` chooses the bits of the hash: those of a part's own level split it again.
    """

    def __init__(
        self,
        types: Sequence[SqlType],
        keys: Sequence[int],
        key_types: Sequence[SqlType],
        depth: int,
        memory: Reservation,
    ) -> None:
        self._types = types
        self._keys = keys
        self._key_types = key_types
        self._shift = np.uint64(_FIRST_BIT + _BITS * depth)
        self._block_bytes = memory.share // (2 * FAN_OUT)
        self._waiting: list[list[Batch]] = [[] for _ in range(FAN_OUT)]
        self._rows = [0] * FAN_OUT
        self.files: list[SpillFile] = []
        try:
            for _ in range(FAN_OUT):
                self.files.append(memory.file(types))
        except DiskFull:
            self.close()  # nobody else has those that there was room for
            raise
        # What waits to be written is bounded, so it may wait when nothing is left.
        memory.try_grow(memory.share // 2)

    def add(self, batch: Batch) -> None:
        """Raises DiskFull, and OutOfMemory above the limit of the disk space."""
        if batch.rows == 0:
            return
        keys = [
            canonical(batch.column(position), type_)
            for position, type_ in zip(self._keys, self._key_types, strict=True)
        ]
        parts = (hash_arrays(keys, self._key_types) >> self._shift).astype(np.int64) % FAN_OUT
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=FAN_OUT))
        width = max(batch.estimated_bytes() // batch.rows, 1)
        block = max(_BLOCK_ROWS_MIN, min(BATCH_ROWS, self._block_bytes // width))
        start = 0
        for part, end in enumerate(ends):
            if end > start:
                # Materialized: a selection would hold the whole batch.
                rows = Batch(batch.narrow(order[start:end]).columns(), int(end - start))
                self._waiting[part].append(rows)
                self._rows[part] += rows.rows
                if self._rows[part] >= block:
                    self._write(part)
            start = end

    def finish(self) -> list[SpillFile]:
        """The files, complete; they are the caller's to close. Raises as ``flush``."""
        self.flush()
        files, self.files = self.files, []
        return files

    def flush(self) -> None:
        """Write what waits. Raises DiskFull, and OutOfMemory above the limit of the disk space."""
        for part in range(FAN_OUT):
            self._write(part)

    def close(self) -> None:
        self._waiting = [[] for _ in range(FAN_OUT)]
        for file in self.files:
            file.close()
        self.files = []

    def _write(self, part: int) -> None:
        waiting, self._waiting[part] = self._waiting[part], []
        if not waiting:
            return
        columns = [
            unify([batch.column(place) for batch in waiting], type_)
            for place, type_ in enumerate(self._types)
        ]
        self.files[part].write(Batch(columns, self._rows[part]))
        self._rows[part] = 0


class FileScan(Operator):
    """The rows of a file, which is closed with the operator."""

    def __init__(self, file: SpillFile) -> None:
        self._file = file
        self._batch = EMPTY

    def advance(self) -> Progress:
        batch = self._file.read()
        self._batch = EMPTY if batch is None else batch
        return Progress.FETCHED_DONE if batch is None else Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._file.close()


class HeldRows(Operator):
    """Batches that are at hand, given away one by one."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches[::-1]
        self._batch = EMPTY

    def replace(self, batches: list[Batch]) -> None:
        """Give these after a restart, which must follow."""
        self._batches = batches[::-1]

    def restart(self) -> bool:
        """Rows that were given away are gone: see ``replace``."""
        return True

    def advance(self) -> Progress:
        self._batch = self._batches.pop() if self._batches else EMPTY
        return Progress.FETCHED if self._batches else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batches.clear()
        self._batch = EMPTY
