"""NestedLoopJoin: any condition, or none; block by block where the right side exceeds memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.errors import OutOfMemory
from remuda.execution.arrays import Mask
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.memory import Reservation
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.hash_join import (
    KEEPS_LEFT,
    KEEPS_RIGHT,
    LEFT_ONLY,
    NEEDS_LEFT,
    mark_column,
)
from remuda.execution.operators.input import EMPTY, Gathered, Upstream
from remuda.execution.operators.join_columns import join_columns, unknown_matches
from remuda.execution.operators.row_blocks import RowBlocks
from remuda.execution.restarts import is_fixed
from remuda.limits import BATCH_ROWS
from remuda.plan.logical import JoinKind
from remuda.plan.physical import NestedLoopJoin


class NestedLoopJoinOperator(Operator):
    """Tests pairs in pieces of ``BATCH_ROWS``: some left rows against all rows of a right block, or
    one left row against some. ``output`` are positions in (left columns, right columns kept).

    The right side is one block in memory, or several on disk. Then as many left rows as fit are
    gathered before the blocks are read for them, so the right side is read as seldom as can be.
    """

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
        fixed_right: bool = False,
    ) -> None:
        """MARK: ``output`` leaves out the mark, ``unknown`` finds the pairs for which the condition
        is NULL. ``fixed_right``: the right side is the same after each restart."""
        self._kind = kind
        self._left = Upstream(left, memory)
        self._right = Upstream(right, memory)
        self._left_types = left_types
        self._right_kept = right_kept
        self._right_types = right_types
        self._condition = condition
        self._unknown = unknown
        self._output = list(output)
        self._memory = memory
        self._fixed_right = fixed_right
        self._rows = RowBlocks(right_types, memory)
        self._gathered = Gathered(left_types, memory.beside())
        self._ahead: Batch | None = None
        """A left batch that did not fit beside those gathered."""
        self._current: Batch | None = None
        """The left rows that are tested now."""
        self._block = 0
        self._right_rows = EMPTY
        self._next = 0
        self._left_matched: Mask = np.zeros(0, np.bool_)
        self._left_unknown: Mask = np.zeros(0, np.bool_)
        self._right_matched: Mask = np.zeros(0, np.bool_)
        self._rest = 0
        self._batch = EMPTY

    def advance(self) -> Progress:
        self._batch = EMPTY
        if not self._rows.complete:
            return self._gather()
        if self._current is not None:
            self._piece(self._current)
            return Progress.FETCHED
        if self._left.done and self._ahead is None and not self._gathered.rows:
            return self._finish()
        return self._take_left()

    def _gather(self) -> Progress:
        batch = self._right.fetch() if not self._right.done else EMPTY
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            self._rows.add(batch.project(self._right_kept))
        if self._right.done:
            self._rows.finish()
            if self._kind in KEEPS_RIGHT:
                self._memory.grow(self._rows.rows)
                self._right_matched = np.zeros(self._rows.rows, np.bool_)
            self._skip_left_of_nothing()
        return Progress.FETCHED

    def _skip_left_of_nothing(self) -> None:
        if not self._rows.rows and self._kind not in NEEDS_LEFT:
            self._left.done = True

    # --- the left side ------------------------------------------------------------------------

    def _take_left(self) -> Progress:
        """The next left rows: a batch, or several where the right side is on disk."""
        batch, self._ahead = self._ahead, None
        if batch is None and not self._left.done:
            batch = self._left.fetch()
            if batch is None:
                return Progress.WAIT
        if batch is not None and batch.rows:
            if not self._rows.spilled:
                self._begin(batch)
                return Progress.FETCHED
            if not self._gather_left(batch):
                if not self._gathered.rows:
                    self._begin(batch)
                    return Progress.FETCHED
                self._ahead = batch
        if self._gathered.rows and (self._ahead is not None or self._left.done):
            self._begin(self._gathered.batch())
        return Progress.FETCHED

    def _gather_left(self, batch: Batch) -> bool:
        if not batch.width:
            self._gathered.add_rows(batch.rows)
            return True
        try:
            return self._gathered.try_add(batch.columns())
        except OutOfMemory:  # others have all of it
            return False

    def _begin(self, batch: Batch) -> None:
        self._current, self._block, self._next = batch, 0, 0
        self._left_matched = np.zeros(batch.rows, np.bool_)
        self._left_unknown = np.zeros(batch.rows, np.bool_)
        self._right_rows = self._rows.block(0)

    # --- pairs --------------------------------------------------------------------------------

    def _piece(self, batch: Batch) -> None:
        """Test the next pairs of the current left rows, or put out the unmatched ones."""
        rows = self._right_rows
        total = batch.rows * rows.rows
        if self._next >= total:
            self._block += 1
            self._next = 0
            if self._block < self._rows.count:
                self._right_rows = self._rows.block(self._block)
            else:
                self._current = None
                self._put_unmatched(batch)
                self._gathered.release()
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
        if self._kind in KEEPS_RIGHT:
            self._right_matched[right + self._rows.first_row(self._block)] = True
        if pairs.rows and self._kind not in LEFT_ONLY:
            self._batch = pairs.project(self._output)

    def _put_unmatched(self, batch: Batch) -> None:
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
                kept = kept.beside(_missing(self._right_types, kept.rows))
            self._batch = kept.project(self._output)

    def _finish(self) -> Progress:
        """The right rows that nobody matched, a piece at a time."""
        if self._kind not in KEEPS_RIGHT or self._rest >= self._rows.rows:
            return Progress.FETCHED_DONE
        number, first = self._rows.place(self._rest)
        block = self._rows.block(number)
        last = min(block.rows, first + BATCH_ROWS)
        wanted = first + np.flatnonzero(
            ~self._right_matched[self._rest : self._rest + last - first]
        )
        self._rest += last - first
        if len(wanted):
            nothing = _missing(self._left_types, len(wanted))
            self._batch = nothing.beside(block.narrow(wanted)).project(self._output)
        return Progress.FETCHED if self._rest < self._rows.rows else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        """The blocks of a fixed right side stay."""
        if not self._fixed_right or not self._rows.complete or not self._left.restart():
            return False
        self._current = self._ahead = None
        self._gathered.release()
        self._rest = 0
        if self._kind in KEEPS_RIGHT:
            self._right_matched = np.zeros(self._rows.rows, np.bool_)
        self._skip_left_of_nothing()
        return True

    def close(self) -> None:
        self._batch = self._right_rows = EMPTY
        self._current = self._ahead = None
        self._gathered.release()
        self._rows.close()
        self._memory.clear()
        self._left.close()
        self._right.close()


def _missing(types: Sequence[SqlType], rows: int) -> Batch:
    return Batch([pa.nulls(rows, engine_type(type_)) for type_ in types], rows)


@builds(NestedLoopJoin)
def _nested_loop_join(
    node: NestedLoopJoin, inputs: Sequence[Operator], build: BuildContext
) -> Operator:
    kept, columns, output = join_columns(node, node.condition)
    condition = None
    if node.condition is not None:
        condition = Predicate(node.condition, build.compiler(node.left.output, columns))
    return NestedLoopJoinOperator(
        kind=node.kind,
        left=inputs[0],
        right=inputs[1],
        left_types=[column.type for column in node.left.output],
        right_kept=kept,
        right_types=[column.type for column in columns],
        condition=condition,
        output=output,
        memory=build.reserve(node),
        unknown=unknown_matches(node, node.condition, columns, build),
        fixed_right=is_fixed(node.right, build.context.rounds),
    )
