"""SortRows: a full sort in memory, or the first rows only (Top-N)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import Gathered, Upstream
from remuda.execution.operators.ordering import BoundKey, first_rows, sorted_rows
from remuda.limits import BATCH_ROWS

_EMPTY = Batch([], 0)


class SortOperator(Operator):
    """Stable. With ``limit`` each batch is cut to the rows that may still be among the first, and
    what was gathered is cut again whenever it has grown enough to be worth it."""

    def __init__(
        self,
        source: Operator,
        keys: Sequence[BoundKey],
        types: Sequence[SqlType],
        limit: int | None,
        memory: Reservation,
    ) -> None:
        self._source = Upstream(source)
        self._keys = keys
        self._types = types
        self._limit = limit
        self._memory = memory
        self._gathered = Gathered(types, memory)
        self._sorted: Batch | None = None
        self._next = 0
        self._batch = _EMPTY

    def advance(self) -> Progress:
        if self._sorted is not None:
            return self._put_out(self._sorted)
        if self._limit == 0:
            self._sorted = _EMPTY
            return self._put_out(_EMPTY)
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            self._add(batch)
        if self._source.done:
            self._sorted = self._ordered()
            self._gathered.clear()
        self._batch = _EMPTY
        return Progress.FETCHED

    def _add(self, batch: Batch) -> None:
        limit = self._limit
        if limit is not None:
            columns = [batch.column(key.position) for key in self._keys]
            rows = first_rows(columns, self._keys, limit)
            if rows is not None:
                batch = batch.narrow(rows)
        self._gathered.add(batch.columns())
        if limit is not None and self._gathered.rows > max(4 * limit, BATCH_ROWS):
            kept = self._ordered()
            self._memory.clear()
            self._gathered.add(kept.columns())

    def _ordered(self) -> Batch:
        batch = self._gathered.batch()
        if batch.rows == 0:
            return _EMPTY
        order = sorted_rows([batch.column(key.position) for key in self._keys], self._keys)
        if self._limit is not None:
            order = np.ascontiguousarray(order[: self._limit])
        return batch.narrow(order)

    def _put_out(self, rows: Batch) -> Progress:
        self._batch = rows.slice(self._next, BATCH_ROWS) if rows.rows else _EMPTY
        self._next += BATCH_ROWS
        return Progress.FETCHED if self._next < rows.rows else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = _EMPTY
        self._sorted = None
        self._gathered.clear()
        self._memory.clear()
        self._source.close()
