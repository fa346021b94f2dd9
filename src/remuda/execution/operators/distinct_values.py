"""The values of DISTINCT calls: each passes once in its group. Beyond memory they go to disk.

Hybrid hashing, as for the groups themselves (``partitioned_aggregate``): the pairs of group and
value that came first stay; rows with others are split by the hash of the pair into files, and each
file is looked through when all rows have come. The result of a call does not depend on the order of
its values, so it does not matter that these come last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import BIGINT, SqlType
from remuda.execution.arrays import Indices, data_of, take, validity_mask
from remuda.execution.batch import Batch
from remuda.execution.keys import IntegerIds, KeyIds
from remuda.execution.memory import Reservation
from remuda.execution.operators.row_partitions import DEPTH_MAX, RowPartitions
from remuda.execution.spill import SpillFile


class DistinctValues:
    """Values are rows of columns of ``types``; ``keeps_nulls``: those whose first one is NULL, too.
    Groups are slots."""

    def __init__(self, types: Sequence[SqlType], *, keeps_nulls: bool, depth: int = 0) -> None:
        self._types = types
        self._keeps_nulls = keeps_nulls
        self._depth = depth
        self._memory: Reservation | None = None
        self._waiting: RowPartitions | None = None
        self._files: list[tuple[SpillFile, int]] = []
        self._reading: tuple[SpillFile, DistinctValues] | None = None
        self._forget()

    def _forget(self) -> None:
        self._values = KeyIds(self._types)
        self._pairs = IntegerIds()

    def first_rows(self, groups: Indices, columns: Sequence[pa.Array]) -> Indices:
        """The rows that were not there before, in order; not those that have to wait on disk."""
        valid = None if self._keeps_nulls else validity_mask(columns[0])
        if self._waiting is not None:
            rows = np.arange(len(groups)) if valid is None else np.flatnonzero(valid)
            self._put_aside(self._waiting, groups, columns, rows)
            return np.zeros(0, np.int64)
        ids = self._values.encode(columns)
        rows = np.arange(len(ids)) if valid is None else np.flatnonzero(valid)
        before = self._pairs.count
        pairs = self._pairs.encode(groups[rows] << 32 | ids[rows])
        new = np.flatnonzero(pairs > before)
        _, first = np.unique(pairs[new], return_index=True)
        return rows[new[first]]

    @property
    def bytes(self) -> int:
        return self._values.bytes + self._pairs.bytes

    # --- on disk ------------------------------------------------------------------------------

    @property
    def spilled(self) -> bool:
        """Values wait on disk."""
        return self._memory is not None

    def spill(self, memory: Reservation) -> None:
        """Keep no further values in memory. Raises DiskFull."""
        self._memory = memory
        types = [BIGINT, *self._types]
        self._waiting = RowPartitions(types, range(len(types)), types, self._depth, memory)

    def _put_aside(
        self, waiting: RowPartitions, groups: Indices, columns: Sequence[pa.Array], rows: Indices
    ) -> None:
        ids, known = self._values.known([take(column, rows) for column in columns])
        known &= self._pairs.lookup(groups[rows] << 32 | ids) > 0
        rows = rows[~known]
        if len(rows):
            slots = pa.array(groups[rows], pa.int64())
            kept = [slots, *(take(column, rows) for column in columns)]
            waiting.add(Batch(kept, len(rows)))

    def replay(self) -> tuple[Indices, list[pa.Array]] | None:
        """After all rows have come: some groups and values that waited; None when none are left.
        Raises OutOfMemory when one file's values cannot be split any more, and do not fit."""
        assert self._memory is not None
        if self._waiting is not None:
            self._forget()
            self._files = [(file, self._depth + 1) for file in self._waiting.finish()]
            self._waiting = None
            self._memory.clear()
        while self._reading is not None or self._files:
            if self._reading is None:
                file, depth = self._files.pop()
                below = DistinctValues(self._types, keeps_nulls=True, depth=depth)
                self._reading = file, below
            found = self._read(*self._reading)
            if found is not None:
                return found
        return None

    def _read(
        self, file: SpillFile, below: DistinctValues
    ) -> tuple[Indices, list[pa.Array]] | None:
        memory = self._memory
        assert memory is not None
        batch = file.read()
        if batch is None:
            file.close()
            found = below.replay() if below.spilled else None
            if found is None:
                self._reading = None
                memory.clear()
            return found
        groups = np.asarray(data_of(batch.column(0)))
        columns = batch.columns()[1:]
        rows = below.first_rows(groups, columns)
        if not below.spilled:
            more = below.bytes - memory.size
            if more > 0 and not memory.try_grow(more):
                if below._depth < DEPTH_MAX:
                    below.spill(memory.beside())
                else:
                    memory.grow(more)
        return groups[rows], [take(column, rows) for column in columns]

    def close(self) -> None:
        """Free what is on disk."""
        if self._waiting is not None:
            self._waiting.close()
        if self._reading is not None:
            self._reading[0].close()
            self._reading[1].close()
        for file, _ in self._files:
            file.close()
        self._waiting = self._reading = None
        self._files = []
        if self._memory is not None:
            self._memory.clear()
        self._forget()
