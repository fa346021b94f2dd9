"""GroupLimitRows: drops rows that cannot be among the first of their partition.

Below an exchange to a window function of which only small ranks are asked for: each member keeps
what may still be among the first of a partition, seen from its own rows. Ties are kept. Where
little can be dropped, rows pass as they are: the filter above the window decides in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import data_of
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.execution.memory import Reservation
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Gathered, Outgoing, Upstream
from remuda.execution.operators.ordering import BoundKey, bound_keys, codes, first_rows, order_of
from remuda.execution.operators.window_frames import segments
from remuda.execution.operators.window_functions import NUMBERINGS
from remuda.limits import BATCH_ROWS
from remuda.plan.expression import SortKey
from remuda.plan.physical import GroupLimitRows

_CUT_ROWS = 4 * BATCH_ROWS
"""Rows to gather before it is worth while to look for some to drop."""
_USELESS = 0.75
"""A larger share of rows that stay means that cutting does not pay."""


class GroupLimitOperator(Operator):
    """``limit``: the largest rank that matters; ``order`` is not empty."""

    def __init__(
        self,
        source: Operator,
        *,
        types: Sequence[SqlType],
        partition: Sequence[BoundKey],
        order: Sequence[BoundKey],
        limit: int,
        memory: Reservation,
    ) -> None:
        self._source = Upstream(source, memory)
        self._partition = partition
        self._order = order
        self._limit = limit
        self._memory = memory
        self._gathered = Gathered(types, memory)
        self._cut_at = _CUT_ROWS
        self._passing = False
        self._out = Outgoing()
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._out:
            return self._put_out()
        if self._source.done:
            self._batch = EMPTY
            return Progress.FETCHED_DONE
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        self._batch = batch
        if self._passing:
            return Progress.FETCHED_DONE if self._source.done else Progress.FETCHED
        self._batch = EMPTY
        if batch.rows:
            self._add(batch)
        if self._source.done and not self._passing:
            self._cut()
            self._release()
        return Progress.FETCHED

    def _add(self, batch: Batch) -> None:
        batch = self._leading(batch)
        if self._gathered.try_add(batch.columns()):
            if self._gathered.rows >= self._cut_at and not self._cut():
                self._release()
            return
        if self._cut():
            self._gathered.add(batch.columns())
        else:
            self._gathered.add(batch.columns())
            self._release()

    def _leading(self, batch: Batch) -> Batch:
        """Without partitions: the rows that one look at the first key leaves."""
        if self._partition or self._limit == 0:
            return batch
        columns = [batch.column(key.position) for key in self._order]
        rows = first_rows(columns, self._order, self._limit)
        return batch if rows is None else batch.narrow(rows)

    def _cut(self) -> bool:
        """Drop what has too high a rank; False when that was hardly anything."""
        before = self._gathered.rows
        if before == 0:
            return True
        kept = self._first(self._gathered.batch())
        self._memory.clear()
        self._gathered.add(kept.columns())
        self._cut_at = max(_CUT_ROWS, 2 * kept.rows)
        return kept.rows <= before * _USELESS

    def _first(self, batch: Batch) -> Batch:
        partition = [c for key in self._partition for c in codes(batch.column(key.position), key)]
        order = [c for key in self._order for c in codes(batch.column(key.position), key)]
        rows = order_of([*partition, *order])
        found = segments(
            batch.rows, [part[rows] for part in partition], [part[rows] for part in order]
        )
        ranks = data_of(NUMBERINGS["rank"](found))
        return batch.narrow(np.sort(rows[ranks <= self._limit]))

    def _release(self) -> None:
        """Gathered rows go out; later ones pass."""
        self._out = Outgoing(self._gathered.batch())
        self._passing = True

    def _put_out(self) -> Progress:
        self._batch = self._out.next()
        if self._out:
            return Progress.FETCHED
        self._out = Outgoing()
        self._memory.clear()
        return Progress.FETCHED_DONE if self._source.done else Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._out = Outgoing()
        self._gathered.clear()
        self._memory.clear()
        self._source.close()


@builds(GroupLimitRows)
def _group_limit(node: GroupLimitRows, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    columns = node.input.output
    limit = evaluate_constant(node.limit, build.context.parameters)
    assert limit is None or isinstance(limit, int)
    return GroupLimitOperator(
        inputs[0],
        types=[column.type for column in columns],
        partition=bound_keys([SortKey(column) for column in node.partition], columns),
        order=bound_keys(node.order, columns),
        limit=max(limit or 0, 0),
        memory=build.reserve(node),
    )
