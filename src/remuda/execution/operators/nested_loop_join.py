"""NestedLoopJoin: any condition, or none; the right side is held in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Indices, Mask
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.memory import Reservation
from remuda.execution.operators.hash_join import (
    KEEPS_LEFT,
    KEEPS_RIGHT,
    LEFT_ONLY,
    NEEDS_LEFT,
    mark_column,
)
from remuda.execution.operators.input import EMPTY, Gathered, Upstream
from remuda.limits import BATCH_ROWS
from remuda.plan.logical import JoinKind


class NestedLoopJoinOperator(Operator):
    """Tests pairs in pieces of ``BATCH_ROWS``: some left rows against all right rows, or one left
    row against some. ``output`` are positions in (left columns, right columns kept)."""

    def __init__(
        self,
        *,
        kind: JoinKind,
        left: Operator,
        right: Operator,
        left_types: Sequence[SqlType],
        right_kept: Sequence[int],
        right_types: Sequence[SqlType],
        condition: Predicate | None,
        output: Sequence[int],
        memory: Reservation,
        unknown: Predicate | None = None,
    ) -> None:
        """MARK: ``output`` leaves out the mark, ``unknown`` finds the pairs for which the condition
        is NULL."""
        self._kind = kind
        self._left = Upstream(left)
        self._right = Upstream(right)
        self._left_types = left_types
        self._right_kept = right_kept
        self._condition = condition
        self._unknown = unknown
        self._left_unknown: Mask = np.zeros(0, np.bool_)
        self._output = list(output)
        self._memory = memory
        self._gathered = Gathered(right_types, memory)
        self._rows: Batch | None = None
        self._current: Batch | None = None
        self._next = 0
        self._left_matched: Mask = np.zeros(0, np.bool_)
        self._right_matched: Mask = np.zeros(0, np.bool_)
        self._rest: Indices | None = None
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._rows is None:
            return self._gather()
        if self._current is not None:
            self._piece(self._current, self._rows)
            return Progress.FETCHED
        if self._left.done:
            return self._finish()
        batch = self._left.fetch()
        if batch is None:
            return Progress.WAIT
        self._batch = EMPTY
        if batch.rows:
            self._current, self._next = batch, 0
            self._left_matched = np.zeros(batch.rows, np.bool_)
            self._left_unknown = np.zeros(batch.rows, np.bool_)
        return Progress.FETCHED

    def _gather(self) -> Progress:
        batch = self._right.fetch() if not self._right.done else EMPTY
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            if self._right_kept:
                self._gathered.add([batch.column(position) for position in self._right_kept])
            else:
                self._gathered.add_rows(batch.rows)
        if self._right.done:
            self._rows = self._gathered.batch()
            self._right_matched = np.zeros(self._rows.rows, np.bool_)
            if not self._rows.rows and self._kind not in NEEDS_LEFT:
                self._left.done = True
        self._batch = EMPTY
        return Progress.FETCHED

    def _piece(self, batch: Batch, rows: Batch) -> None:
        """Test the next pairs of the current left batch, or put out its unmatched rows."""
        self._batch = EMPTY
        total = batch.rows * rows.rows
        if self._next >= total:
            self._current = None
            self._put_unmatched(batch, rows)
            return
        last = min(self._next + BATCH_ROWS, total)
        left, right = np.divmod(np.arange(self._next, last), rows.rows)
        self._next = last
        pairs = batch.narrow(left).beside(rows.narrow(right))
        if self._unknown is not None:
            open_pairs = self._unknown.select(pairs)
            self._left_unknown[left if open_pairs is None else left[open_pairs]] = True
        if self._condition is not None:
            passed = self._condition.select(pairs)
            if passed is not None:
                pairs, left, right = pairs.narrow(passed), left[passed], right[passed]
        self._left_matched[left] = True
        self._right_matched[right] = True
        if pairs.rows and self._kind not in LEFT_ONLY:
            self._batch = pairs.project(self._output)

    def _put_unmatched(self, batch: Batch, rows: Batch) -> None:
        if self._kind is JoinKind.MARK:
            marks = mark_column(self._left_matched, self._left_unknown)
            columns = batch.project(self._output).columns()
            self._batch = Batch([*columns, marks], batch.rows)
        elif self._kind is JoinKind.SEMI:
            self._batch = batch.narrow(np.flatnonzero(self._left_matched)).project(self._output)
        elif self._kind is JoinKind.ANTI or self._kind in KEEPS_LEFT:
            wanted = np.flatnonzero(~self._left_matched)
            if len(wanted) == 0:
                return
            kept = batch.narrow(wanted)
            if self._kind in KEEPS_LEFT:
                kept = kept.beside(rows.narrow(np.full(len(wanted), -1, np.int64), outer=True))
            self._batch = kept.project(self._output)

    def _finish(self) -> Progress:
        self._batch = EMPTY
        if self._kind not in KEEPS_RIGHT:
            return Progress.FETCHED_DONE
        if self._rest is None:
            self._rest = np.flatnonzero(~self._right_matched)
        rest, self._rest = self._rest[:BATCH_ROWS], self._rest[BATCH_ROWS:]
        if len(rest) == 0:
            return Progress.FETCHED_DONE
        assert self._rows is not None
        missing = [pa.nulls(len(rest), engine_type(type_)) for type_ in self._left_types]
        batch = Batch(missing, len(rest)).beside(self._rows.narrow(rest))
        self._batch = batch.project(self._output)
        return Progress.FETCHED if len(self._rest) else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._rows = self._current = None
        self._gathered.clear()
        self._memory.clear()
        self._left.close()
        self._right.close()
