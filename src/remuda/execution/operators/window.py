"""WindowRows: gathers and sorts its rows, then adds a column for every call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.errors import OutOfMemory
from remuda.execution.arrays import Data
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.memory import Reservation
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Gathered, Outgoing, Upstream
from remuda.execution.operators.ordering import BoundKey, bound_keys, codes, order_of, sorted_rows
from remuda.execution.operators.running_window import RunningWindow, is_running
from remuda.execution.operators.sorted_runs import SortedRuns
from remuda.execution.operators.whole_partitions import WholePartitions
from remuda.execution.operators.window_aggregates import window_aggregate
from remuda.execution.operators.window_binding import bound_window_calls
from remuda.execution.operators.window_calls import BoundFrame, BoundWindowCall
from remuda.execution.operators.window_frames import Frames, Segments, frames_of, segments
from remuda.execution.operators.window_functions import (
    NUMBERINGS,
    first_value,
    last_value,
    nth_value,
    ntile,
    shifted,
)
from remuda.plan.expression import SortKey
from remuda.plan.physical import WindowRows

_WORK_ARRAYS = 10
"""Arrays of 8-byte items per row while frames are found."""
_CALL_ARRAYS = 4
"""And for each call."""


class WindowOperator(Operator):
    """Stable: peers stay in the order in which they came.

    All rows are held in memory, or, beyond it, sorted on disk: then what is held is the largest
    partition; without partitions, if all calls can go along with the rows, next to nothing.
    """

    def __init__(
        self,
        source: Operator,
        *,
        types: Sequence[SqlType],
        partition: Sequence[BoundKey],
        order: Sequence[BoundKey],
        calls: Sequence[BoundWindowCall],
        memory: Reservation,
    ) -> None:
        self._source = Upstream(source, memory)
        self._types = types
        self._partition = partition
        self._order = order
        self._calls = calls
        self._memory = memory
        self._gathered = Gathered(types, memory)
        self._running: RunningWindow | None = None
        if not partition and all(is_running(call, order) for call in calls):
            self._running = RunningWindow(types, order, calls, memory.beside())
        can = bool(partition) or self._running is not None
        self._spills = can and bool(types) and memory.spill is not None
        self._runs = SortedRuns(types, [*partition, *order], memory)
        self._whole = WholePartitions(types, partition, memory.beside())
        self._results: Outgoing | None = None
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._results is not None:
            return self._put_out(self._results)
        if self._source.done:
            return self._next_partitions()
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            self._add(batch)
        if self._source.done:
            if len(self._runs) or not self._room():
                self._spill()
            else:
                self._results = Outgoing(self._computed(self._gathered.batch()))
        self._batch = EMPTY
        return Progress.FETCHED

    def _add(self, batch: Batch) -> None:
        if not batch.width:
            self._gathered.add_rows(batch.rows)
        elif not self._spills:
            self._gathered.add(batch.columns())
        elif not self._gathered.try_add(batch.columns()):
            self._spill()
            self._gathered.add(batch.columns())

    def _room(self) -> bool:
        """Whether all rows can be computed at once; if not, they come back from disk by
        partitions, which need less."""
        if not self._spills:
            return True
        held = self._memory.size
        try:
            self._memory.grow(self._work(self._gathered.rows))
        except OutOfMemory:
            return False
        self._memory.resize(held)
        return True

    def _work(self, rows: int) -> int:
        """Bytes to compute the calls of so many rows, beside the rows."""
        return 8 * rows * (_WORK_ARRAYS + _CALL_ARRAYS * len(self._calls))

    def _spill(self) -> None:
        batch = self._gathered.batch()
        keys = [*self._partition, *self._order]
        columns = [batch.column(key.position) for key in keys]
        self._runs.add(batch, sorted_rows(columns, keys) if keys else np.arange(batch.rows))
        self._memory.clear()
        if self._running is not None:
            self._running.see(batch)

    def _next_partitions(self) -> Progress:
        """Rows come sorted from disk; those of whole partitions are computed at once."""
        batch = self._runs.next()
        if self._running is not None:
            made = self._running.rest() if batch is None else self._running.add(batch)
            self._batch = EMPTY if made is None else made
            return Progress.FETCHED if batch is not None else Progress.FETCHED_DONE
        ended = self._whole.rest() if batch is None else self._whole.add(batch)
        self._batch = EMPTY
        if ended is not None:
            self._batch = self._computed(ended)
        return Progress.FETCHED if batch is not None else Progress.FETCHED_DONE

    def _computed(self, batch: Batch) -> Batch:
        if batch.rows == 0:
            return EMPTY
        held = self._memory.size
        self._memory.grow(self._work(batch.rows))
        partition, order = _codes(batch, self._partition), _codes(batch, self._order)
        if partition or order:
            rows = order_of([*partition, *order])
            batch = batch.narrow(rows)
            partition = [part[rows] for part in partition]
            order = [part[rows] for part in order]
        found = segments(batch.rows, partition, order)
        results = _results(self._calls, found, batch)
        kept = 0 if len(self._runs) else sum(result.nbytes for result in results)
        self._memory.resize(held + kept)
        return batch.beside(Batch(results, batch.rows))

    def _put_out(self, rows: Outgoing) -> Progress:
        self._batch = rows.next()
        return Progress.FETCHED if rows else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._results = None
        self._gathered.clear()
        self._runs.close()
        self._whole.close()
        if self._running is not None:
            self._running.close()
        self._memory.clear()
        self._source.close()


def _codes(batch: Batch, keys: Sequence[BoundKey]) -> list[Data]:
    return [part for key in keys for part in codes(batch.column(key.position), key)]


def _results(calls: Sequence[BoundWindowCall], found: Segments, batch: Batch) -> list[pa.Array]:
    """Frames that calls have in common are found once."""
    frames: dict[BoundFrame, Frames] = {}
    results = []
    for call in calls:
        if call.function in NUMBERINGS:
            results.append(NUMBERINGS[call.function](found))
            continue
        arguments = [argument(batch) for argument in call.arguments]
        if call.function == "ntile":
            results.append(ntile(found, arguments[0]))
        elif call.function in ("lag", "lead"):
            direction = -1 if call.function == "lag" else 1
            results.append(shifted(found, arguments, call.result, direction))
        else:
            frame = frames.get(call.frame)
            if frame is None:
                frame = frames[call.frame] = frames_of(call.frame, found, batch)
            results.append(_framed(call, arguments, batch, frame))
    return results


def _framed(
    call: BoundWindowCall, arguments: list[pa.Array], batch: Batch, frames: Frames
) -> pa.Array:
    match call.function:
        case "first_value":
            return first_value(arguments[0], frames)
        case "last_value":
            return last_value(arguments[0], frames)
        case "nth_value":
            return nth_value(arguments[0], arguments[1], frames)
    return window_aggregate(
        call.function,
        arguments,
        (call.types, call.result),
        None if call.condition is None else call.condition(batch),
        frames,
    )


@builds(WindowRows)
def _window(node: WindowRows, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    partition = [SortKey(column) for column in node.partition]
    columns = node.input.output
    parameters = build.context.parameters
    return WindowOperator(
        inputs[0],
        types=[column.type for column in columns],
        partition=bound_keys(partition, columns),
        order=bound_keys(node.order, columns),
        calls=bound_window_calls(node, build.compiler(columns), parameters),
        memory=build.reserve(node),
    )
