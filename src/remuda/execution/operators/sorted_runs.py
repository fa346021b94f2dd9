"""Sorting beyond memory: sorted runs on disk, merged (Knuth, volume 3, section 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Data, Indices, take
from remuda.execution.batch import Batch
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import unify
from remuda.execution.operators.ordering import BoundKey, codes, sorted_rows
from remuda.execution.spill import SpillFile
from remuda.limits import BATCH_ROWS

RUNS_MAX: Final = 32
"""Runs that are merged at once; more become one first, so files and blocks stay few."""
_BLOCK_ROWS_MIN: Final = 64


class SortedRuns:
    """Runs of sorted rows, in the order in which they were added, which ties keep."""

    def __init__(
        self, types: Sequence[SqlType], keys: Sequence[BoundKey], memory: Reservation
    ) -> None:
        self._types = types
        self._keys = keys
        self._memory = memory
        self._files: list[SpillFile] = []
        self._merge: _Merge | None = None

    def __len__(self) -> int:
        return len(self._files)

    def add(self, rows: Batch, order: Indices) -> None:
        """The rows of ``rows`` in ``order`` as one more run. Raises DiskFull, OutOfMemory."""
        width = max(rows.estimated_bytes() // max(rows.rows, 1), 1)
        step = self._block_rows(width)
        self._store(lambda at: rows.narrow(order[at : at + step]) if at < len(order) else None)
        if len(self._files) == RUNS_MAX:
            merge = _Merge(self._files, self._types, self._keys)
            self._files = []
            self._store(lambda _: merge.next())

    def next(self) -> Batch | None:
        """The next rows of all runs in order; None at the end. Nothing can be added any more."""
        if self._merge is None:
            self._merge = _Merge(self._files, self._types, self._keys)
            # The blocks at hand. Their size is bounded, so they may be when nothing is left.
            self._memory.try_grow(self._memory.share // 2)
        return self._merge.next()

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._files = []
        self._merge = None

    def _block_rows(self, width: int) -> int:
        """As many as let a block of every run fit into half of the operator's share."""
        fitting = self._memory.share // (2 * RUNS_MAX * width)
        return max(_BLOCK_ROWS_MIN, min(BATCH_ROWS, fitting))

    def _store(self, next_block: Callable[[int], Batch | None]) -> None:
        file = self._memory.file(self._types)
        self._files.append(file)
        while (block := next_block(file.rows)) is not None:
            file.write(block)


class _Merge:
    """All rows up to the smallest last row of the blocks at hand are in place, whatever comes
    later: they are found by bisection, sorted and put out; the rest of the blocks stays."""

    def __init__(
        self, files: Sequence[SpillFile], types: Sequence[SqlType], keys: Sequence[BoundKey]
    ) -> None:
        self._files = list(files)
        self._types = types
        self._keys = keys
        self._heads: list[Batch | None] = [None] * len(self._files)

    def next(self) -> Batch | None:
        self._fill()
        heads = [head for head in self._heads if head is not None]
        if heads and not self._keys:  # no order but that in which they came
            self._heads[self._heads.index(heads[0])] = None
            return heads[0]
        if len(heads) < 2:
            self._heads = [None] * len(self._heads)
            return heads[0] if heads else None
        counts = self._in_place(heads)
        parts = [head.slice(0, count) for head, count in zip(heads, counts, strict=True) if count]
        self._heads = [
            head.slice(count, head.rows) if count < head.rows else None
            for head, count in zip(heads, counts, strict=True)
        ]
        return self._sorted(parts)

    def _fill(self) -> None:
        """A block of every run that has one left; files that are read are closed."""
        files, heads = [], []
        for file, head in zip(self._files, self._heads, strict=True):
            block = head if head is not None else file.read()
            if block is None:
                file.close()
            else:
                files.append(file)
                heads.append(block)
        self._files, self._heads = files, [*heads]

    def _in_place(self, heads: Sequence[Batch]) -> list[int]:
        """How many rows of each block come before everything that is still on disk: those before
        the smallest last row. Of equal ones, those of its own run and of earlier runs."""
        ends = np.cumsum([head.rows for head in heads])
        starts = ends - [head.rows for head in heads]
        columns = [
            unify([head.column(key.position) for head in heads], key.type) for key in self._keys
        ]
        lasts = [take(column, ends - 1) for column in columns]
        smallest = int(sorted_rows(lasts, self._keys)[0])
        may_equal = np.arange(len(heads)) <= smallest
        low: Data = starts.copy()
        high: Data = ends.copy()
        bound = np.array([ends[smallest] - 1])
        while True:
            open_ = np.flatnonzero(low < high)
            if len(open_) == 0:
                return [int(count) for count in low - starts]
            middle = (low[open_] + high[open_]) // 2
            less, equal = self._compared(columns, np.concatenate([middle, bound]))
            before = less | (equal & may_equal[open_])
            low[open_[before]] = middle[before] + 1
            high[open_[~before]] = middle[~before]

    def _compared(self, columns: Sequence[pa.Array], rows: Indices) -> tuple[Data, Data]:
        """Of all ``rows`` but the last: which come before the last one, which are equal to it."""
        count = len(rows) - 1
        less = np.zeros(count, np.bool_)
        equal = np.ones(count, np.bool_)
        for column, key in zip(columns, self._keys, strict=True):
            for part in codes(take(column, rows), key):
                less |= equal & (part[:-1] < part[-1])
                equal &= part[:-1] == part[-1]
        return less, equal

    def _sorted(self, parts: Sequence[Batch]) -> Batch:
        if len(parts) == 1:
            return parts[0]
        columns = [
            unify([part.column(place) for part in parts], type_)
            for place, type_ in enumerate(self._types)
        ]
        order = sorted_rows([columns[key.position] for key in self._keys], self._keys)
        return Batch(columns, len(order)).narrow(order)
