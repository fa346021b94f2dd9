"""MergeJoin: both sides come sorted by the keys, in the same order (Blasgen, Eswaran 1977).

A left row can be joined as soon as the right side is known to be past its key, so the left side
streams, and of the right side only the rows are held that a left row still to come may match: those
of one key, beside what came with them. Nothing waits for the end of an input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Data, Indices, Mask
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.keys import null_rows
from remuda.execution.memory import Reservation
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Upstream, unify
from remuda.execution.operators.ordering import BoundKey, codes, key_ids, places_of
from remuda.limits import BATCH_ROWS
from remuda.plan.expression import ColumnId
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import MergeJoin

_WINDOW: Final = 4096
"""Rows of a side that are compared at a time while the other side has few."""

_KEEPS_LEFT: Final = (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)
"""Kinds that put out left rows without a match."""
_KEEPS_RIGHT: Final = (JoinKind.RIGHT, JoinKind.FULL)
_LEFT_ONLY: Final = (JoinKind.SEMI, JoinKind.ANTI)


class MergeSide:
    """A sorted input and those of its rows that are not done with; ``keys`` are in the order of
    the collation. Rows with a NULL in the key match nothing, so they are set aside at once."""

    def __init__(self, source: Operator, keys: Sequence[BoundKey], types: Sequence[SqlType]):
        self.source = Upstream(source)
        self.keys = keys
        self.types = types
        self.rows = 0
        self.need = 1
        """So many rows make the next step possible."""
        self.without_key = EMPTY
        self.matched: Mask = np.zeros(0, np.bool_)
        """Of the first rows held; those beyond have met no row of the other side yet."""
        self._held: deque[Batch] = deque()

    @property
    def ready(self) -> bool:
        return self.source.done or self.rows >= self.need

    @property
    def finished(self) -> bool:
        return self.source.done and self.rows == 0

    @property
    def bytes(self) -> int:
        return sum(batch.estimated_bytes() for batch in self._held)

    def fetch(self) -> bool:
        """Take the next batch; False to WAIT."""
        batch = self.source.fetch()
        if batch is None:
            return False
        if batch.rows:
            missing = null_rows([batch.column(key.position) for key in self.keys])
            if missing is not None and missing.any():
                self.without_key = batch.narrow(np.flatnonzero(missing))
                batch = batch.narrow(np.flatnonzero(~missing))
            if batch.rows:
                # Materialized: a selection would hold the whole batch below it.
                self._held.append(Batch(batch.columns(), batch.rows))
                self.rows += batch.rows
        return True

    def first(self, count: int) -> Batch:
        """The first ``count`` rows, as one batch."""
        if count == 0:
            return Batch([pa.array([], engine_type(type_)) for type_ in self.types], 0)
        taken: list[Batch] = []
        rows = 0
        while rows < count:
            batch = self._held.popleft()
            taken.append(batch)
            rows += batch.rows
        whole = taken[0]
        if len(taken) > 1:
            columns = [
                unify([batch.column(place) for batch in taken], type_)
                for place, type_ in enumerate(self.types)
            ]
            whole = Batch(columns, rows)
        self._held.appendleft(whole)
        return whole.slice(0, count)

    def drop(self, count: int) -> None:
        """The first ``count`` rows are done with."""
        self.rows -= count
        self.matched = self.matched[count:]
        while count:
            batch = self._held.popleft()
            if batch.rows > count:
                self._held.appendleft(batch.slice(count, batch.rows - count))
                return
            count -= batch.rows

    def nothing(self, rows: int) -> Batch:
        return Batch([pa.nulls(rows, engine_type(type_)) for type_ in self.types], rows)

    def close(self) -> None:
        self._held.clear()
        self.rows = 0
        self.without_key = EMPTY
        self.matched = self.matched[:0]
        self.source.close()


class _Step:
    """Left rows that find all their matches among the right rows at hand: pairs are a virtual list,
    cut wherever it must be. ``padded``: a left row without a match is a pair with row -1."""

    def __init__(
        self, left: Batch, right: Batch, begins: Indices, ends: Indices, padded: bool
    ) -> None:
        self.left = left
        self.right = right
        self.padded = padded
        self._begins = begins
        counts = ends - begins
        self.found: Mask = counts > 0
        if padded:
            counts = np.maximum(counts, 1)
        self._ends = np.cumsum(counts)
        self._starts = self._ends - counts
        self.total = int(self._ends[-1]) if len(counts) else 0
        self._next = 0
        self.done_right = 0
        """Right rows that no later left row can match."""

    @property
    def exhausted(self) -> bool:
        return self._next >= self.total

    def pairs(self) -> tuple[Indices, Indices]:
        first = self._next
        last = self._next = min(first + BATCH_ROWS, self.total)
        places = np.arange(first, last)
        left = np.searchsorted(self._ends, places, side="right")
        right = self._begins.take(left) + (places - self._starts.take(left))
        if self.padded:
            right = np.where(self.found.take(left), right, -1)
        return left, right


class MergeJoinOperator(Operator):
    """``output`` are positions in (left columns, right columns)."""

    def __init__(
        self,
        *,
        kind: JoinKind,
        left: MergeSide,
        right: MergeSide,
        residual: Predicate | None,
        output: Sequence[int],
        memory: Reservation,
    ) -> None:
        self._kind = kind
        self._left = left
        self._right = right
        self._residual = residual
        self._output = list(output)
        self._memory = memory
        self._step: _Step | None = None
        self._left_matched: Mask = np.zeros(0, np.bool_)
        self._right_rest: Batch = EMPTY
        self._batch = EMPTY

    def advance(self) -> Progress:
        self._batch = EMPTY
        if self._right_rest.rows:
            self._put_out_right()
            return Progress.FETCHED
        if self._step is not None:
            self._put_out(self._step)
            return Progress.FETCHED
        if self._over():
            return Progress.FETCHED_DONE
        for side in (self._left, self._right):
            if not side.ready:
                if not side.fetch():
                    return Progress.WAIT
                self._memory.resize(self._left.bytes + self._right.bytes)
                self._put_out_without_key(side)
                return Progress.FETCHED
        self._next_step()
        return Progress.FETCHED

    def _over(self) -> bool:
        """Whether nothing can come any more: then the other side is not read to its end."""
        if self._left.finished:
            return self._kind not in _KEEPS_RIGHT or self._right.finished
        return self._right.finished and self._kind not in _KEEPS_LEFT

    # --- which rows can be joined ---------------------------------------------------------------

    def _next_step(self) -> None:
        left, right = self._left, self._right
        left_rows = min(left.rows, max(_WINDOW, 2 * right.rows))
        right_rows = min(right.rows, max(_WINDOW, right.need, 2 * left.rows))
        left_open = left_rows < left.rows or not left.source.done
        right_open = right_rows < right.rows or not right.source.done
        ours, theirs = left.first(left_rows), right.first(right_rows)
        left_ids, right_ids = self._ids(ours, theirs)
        # Later right rows may have the last key at hand, too.
        cut = left_rows
        if right_open:
            cut = int(np.searchsorted(left_ids, right_ids[-1], side="left"))
        # Later left rows have the first key that is left over, or a later one.
        done = right_rows
        if cut < left_rows:
            done = int(np.searchsorted(right_ids, left_ids[cut], side="left"))
        elif left_open:
            done = int(np.searchsorted(right_ids, left_ids[-1], side="left"))
        if not cut and not done:
            right.need = 2 * right_rows  # all of them have one key
            return
        right.need = 1
        begins = np.searchsorted(right_ids, left_ids[:cut], side="left")
        ends = np.searchsorted(right_ids, left_ids[:cut], side="right")
        padded = self._residual is None and self._kind in (JoinKind.LEFT, JoinKind.FULL)
        step = _Step(ours.slice(0, cut), theirs, begins, ends, padded)
        step.done_right = done
        if self._kind in _KEEPS_RIGHT and len(right.matched) < right_rows:
            fresh = np.zeros(right_rows - len(right.matched), np.bool_)
            right.matched = np.concatenate([right.matched, fresh])
        self._left_matched = np.zeros(cut, np.bool_)
        if self._residual is None:
            self._left_matched = step.found
            if self._kind in _LEFT_ONLY:
                step.total = 0
        left.drop(cut)
        self._step = step

    def _ids(self, left: Batch, right: Batch) -> tuple[Data, Data]:
        """Numbers of the keys of both sides that are in their order, and equal where they are."""
        parts: list[Data] = []
        for ours, theirs in zip(self._left.keys, self._right.keys, strict=True):
            columns = [left.column(ours.position), right.column(theirs.position)]
            parts += codes(unify(columns, theirs.type), theirs)
        ids = key_ids(parts)
        return ids[: left.rows], ids[left.rows :]

    # --- what comes out -------------------------------------------------------------------------

    def _put_out(self, step: _Step) -> None:
        if step.exhausted:
            self._finish(step)
            return
        left, right = step.pairs()
        pairs = step.left.narrow(left).beside(step.right.narrow(right, outer=step.padded))
        if self._residual is not None:
            passed = self._residual.select(pairs)
            if passed is not None:
                pairs, left, right = pairs.narrow(passed), left[passed], right[passed]
            self._left_matched[left] = True
        if self._kind in _KEEPS_RIGHT:
            self._right.matched[right[right >= 0]] = True
        if self._kind not in _LEFT_ONLY:
            self._batch = pairs.project(self._output)

    def _finish(self, step: _Step) -> None:
        """All pairs are out: now left rows by themselves, and right rows that nobody matched."""
        self._step = None
        if self._kind is JoinKind.SEMI:
            self._put_out_left(step.left.narrow(np.flatnonzero(self._left_matched)))
        elif self._kind in _KEEPS_LEFT and not step.padded:
            self._put_out_left(step.left.narrow(np.flatnonzero(~self._left_matched)))
        if self._kind in _KEEPS_RIGHT:
            rest = np.flatnonzero(~self._right.matched[: step.done_right])
            self._right_rest = step.right.narrow(rest)
        self._right.drop(step.done_right)

    def _put_out_without_key(self, side: MergeSide) -> None:
        rows, side.without_key = side.without_key, EMPTY
        if not rows.rows:
            return
        if side is self._left and self._kind in _KEEPS_LEFT:
            self._put_out_left(rows)
        elif side is self._right and self._kind in _KEEPS_RIGHT:
            self._right_rest = rows

    def _put_out_left(self, rows: Batch) -> None:
        if self._kind not in _LEFT_ONLY:
            rows = rows.beside(self._right.nothing(rows.rows))
        self._batch = rows.project(self._output)

    def _put_out_right(self) -> None:
        rows, self._right_rest = self._right_rest, EMPTY
        self._batch = self._left.nothing(rows.rows).beside(rows).project(self._output)

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = self._right_rest = EMPTY
        self._step = None
        self._left.close()
        self._right.close()
        self._memory.clear()


@builds(MergeJoin)
def _merge_join(node: MergeJoin, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    left, right = inputs
    columns = (*node.left.output, *node.right.output)
    places = places_of(columns)
    residual = None
    if node.residual is not None:
        residual = Predicate(node.residual, build.compiler(columns))
    return MergeJoinOperator(
        kind=node.kind,
        left=_side(node, left, node.left.output, node.left_keys),
        right=_side(node, right, node.right.output, node.right_keys),
        residual=residual,
        output=[places[column.id] for column in node.output],
        memory=build.reserve(node),
    )


def _side(
    node: MergeJoin,
    source: Operator,
    columns: Sequence[OutputColumn],
    keys: Sequence[ColumnId],
) -> MergeSide:
    places = places_of(columns)
    bound = [
        BoundKey(places[key], columns[places[key]].type, by.descending, by.nulls_first)
        for key, by in zip(keys, node.order, strict=True)
    ]
    return MergeSide(source, bound, [column.type for column in columns])
