"""SortRows: a full sort, by runs on disk beyond the memory, or the first rows only (Top-N)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Indices
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import Reservation
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Gathered, Outgoing, Upstream
from remuda.execution.operators.limit import row_count
from remuda.execution.operators.ordering import BoundKey, bound_keys, first_rows, sorted_rows
from remuda.execution.operators.sorted_runs import SortedRuns
from remuda.limits import BATCH_ROWS
from remuda.plan.physical import SortRows


class SortOperator(Operator):
    """Stable. With ``limit`` each batch is cut to the rows that may still be among the first, and
    the gathered rows are cut again whenever they have grown enough to be worth it."""

    def __init__(
        self,
        source: Operator,
        keys: Sequence[BoundKey],
        types: Sequence[SqlType],
        limit: int | None,
        memory: Reservation,
    ) -> None:
        self._source = Upstream(source, memory)
        self._keys = keys
        self._types = types
        self._limit = limit
        self._memory = memory
        self._gathered = Gathered(types, memory)
        self._runs = SortedRuns(types, keys, memory)
        self._left = limit
        self._sorted: Outgoing | None = None
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._sorted is not None:
            return self._put_out(self._sorted)
        if self._limit == 0:
            self._sorted = Outgoing()
            return self._put_out(self._sorted)
        if self._source.done:
            return self._put_out_runs()
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            self._add(batch)
        if self._source.done:
            self._end_input()
        self._batch = EMPTY
        return Progress.FETCHED

    def _add(self, batch: Batch) -> None:
        limit = self._limit
        if limit is not None:
            columns = [batch.column(key.position) for key in self._keys]
            rows = first_rows(columns, self._keys, limit)
            if rows is not None:
                batch = batch.narrow(rows)
        if limit is not None and self._gathered.rows > max(4 * limit, BATCH_ROWS):
            self._cut()
        added = self._gathered.try_add(batch.columns())
        if not added and limit is not None and self._gathered.rows > 2 * limit:
            self._cut()
            added = self._gathered.try_add(batch.columns())
        if not added:
            self._spill()
            self._gathered.add(batch.columns())

    def _cut(self) -> None:
        kept = self._ordered()
        self._memory.clear()
        self._gathered.add(kept.columns())

    def _end_input(self) -> None:
        if len(self._runs) and self._gathered.rows:
            self._spill()
        elif not len(self._runs):
            self._sorted = Outgoing(self._ordered())

    def _spill(self) -> None:
        batch = self._gathered.batch()
        self._runs.add(batch, self._order(batch))
        self._memory.clear()

    def _ordered(self) -> Batch:
        batch = self._gathered.batch()
        return batch.narrow(self._order(batch)) if batch.rows else EMPTY

    def _order(self, batch: Batch) -> Indices:
        order = sorted_rows([batch.column(key.position) for key in self._keys], self._keys)
        return order if self._limit is None else np.ascontiguousarray(order[: self._limit])

    def _put_out(self, rows: Outgoing) -> Progress:
        self._batch = rows.next()
        return Progress.FETCHED if rows else Progress.FETCHED_DONE

    def _put_out_runs(self) -> Progress:
        batch = self._runs.next()
        self._batch = EMPTY if batch is None else batch
        if self._left is None:
            return Progress.FETCHED if batch is not None else Progress.FETCHED_DONE
        self._batch = self._batch.slice(0, self._left) if self._batch.rows else EMPTY
        self._left -= self._batch.rows
        return Progress.FETCHED if batch is not None and self._left else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._sorted = None
        self._gathered.clear()
        self._runs.close()
        self._memory.clear()
        self._source.close()


@builds(SortRows)
def _sort(node: SortRows, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    return SortOperator(
        inputs[0],
        bound_keys(node.keys, node.input.output),
        [column.type for column in node.input.output],
        row_count(node.limit, "LIMIT", build.context.parameters),
        build.reserve(node),
    )
