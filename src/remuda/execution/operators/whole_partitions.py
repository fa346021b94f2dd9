"""Sorted batches cut at the ends of window partitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Data
from remuda.execution.batch import Batch
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import Gathered, unify
from remuda.execution.operators.ordering import BoundKey, codes


class WholePartitions:
    """Holds the rows of the last partition until the next one begins."""

    def __init__(
        self, types: Sequence[SqlType], partition: Sequence[BoundKey], memory: Reservation
    ) -> None:
        self._partition = partition
        self._memory = memory
        self._open = Gathered(types, memory)
        self._last: list[pa.Array] = []

    def add(self, batch: Batch) -> Batch | None:
        """The rows of the partitions that end before the last row of ``batch``, if there are any.

        Raises OutOfMemory when one partition is too large.
        """
        columns = [batch.column(key.position) for key in self._partition]
        begin = self._begin_of_last(columns, batch.rows)
        ended = None
        if begin:
            self._open.add(batch.slice(0, begin).columns())
        if begin or self._begins(columns):
            ended = self.rest()
        self._open.add(batch.slice(begin, batch.rows - begin).columns())
        self._last = [column.slice(len(column) - 1, 1) for column in columns]
        return ended

    def rest(self) -> Batch | None:
        """The rows that are held; None if there are none. Its memory is free when the caller is
        done with it."""
        if not self._open.rows:
            return None
        rows = self._open.batch()
        self._memory.clear()
        return rows

    def close(self) -> None:
        self._open.clear()
        self._memory.clear()
        self._last = []

    def _begin_of_last(self, columns: Sequence[pa.Array], rows: int) -> int:
        """The first row of the batch that is in the partition of its last row."""
        same = np.ones(rows, np.bool_)
        for part in self._codes(columns):
            same &= part == part[-1]
        return int(same.argmax())

    def _begins(self, columns: Sequence[pa.Array]) -> bool:
        """Whether the first row begins another partition than that of the rows held."""
        if not self._open.rows:
            return False
        pair = [
            unify([last, column.slice(0, 1)], key.type)
            for last, column, key in zip(self._last, columns, self._partition, strict=True)
        ]
        return any(part[0] != part[1] for part in self._codes(pair))

    def _codes(self, columns: Sequence[pa.Array]) -> list[Data]:
        return [
            part
            for column, key in zip(columns, self._partition, strict=True)
            for part in codes(column, key)
        ]
