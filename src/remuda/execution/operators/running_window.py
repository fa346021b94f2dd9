"""Window calls over rows that come in order, a piece at a time: for windows without PARTITION BY
that are larger than memory.

A call needs of all rows before a piece one value that goes from piece to piece: a count, a
sum, an extreme, the first value. lag and lead need so many rows before or after the piece. Calls
over all rows are computed while the rows are put on disk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import INTERVAL, Kind, SqlType
from remuda.execution.arrays import (
    array_from,
    array_with_mask,
    data_of,
    take_or_null,
    validity_mask,
)
from remuda.execution.batch import Batch
from remuda.execution.evaluate.numbers import decimal_array, exact_of, integer_array, shrink
from remuda.execution.memory import Reservation
from remuda.execution.operators.aggregate_states import range_checked
from remuda.execution.operators.group_states import BoundCall, GroupStates
from remuda.execution.operators.input import EMPTY, unify
from remuda.execution.operators.ordering import BoundKey, codes
from remuda.execution.operators.whole_partitions import WholePartitions
from remuda.execution.operators.window_aggregates import window_aggregate
from remuda.execution.operators.window_calls import BoundFrame, BoundWindowCall
from remuda.execution.operators.window_frames import Frames, Segments, frames_of, segments
from remuda.execution.operators.window_functions import NUMBERINGS, last_value, shifted
from remuda.plan.windows import BoundKind, Exclusion, FrameUnit

_NUMBERINGS = ("row_number", "rank", "dense_rank")
_SHIFTS = ("lag", "lead")
_OF_ROWS = ("first_value", "last_value")
_ONLY_WINDOWS = (*NUMBERINGS, *_SHIFTS, *_OF_ROWS, "ntile", "nth_value")


def is_running(call: BoundWindowCall, order: Sequence[BoundKey]) -> bool:
    """Whether the call can be computed piece by piece."""
    if call.function in _NUMBERINGS:
        return bool(order) or call.function == "row_number"
    if call.function in _SHIFTS:
        return call.shift is not None
    if _of_all(call, order):
        return call.function not in _ONLY_WINDOWS or call.function == "first_value"
    exact = call.function == "sum" and call.types[0] != INTERVAL
    known = exact or call.function in ("count", "min", "max", *_OF_ROWS)
    return known and _from_the_first(call.frame)


def _from_the_first(frame: BoundFrame) -> bool:
    return (
        frame.exclude is Exclusion.NO_OTHERS
        and frame.start.kind is BoundKind.UNBOUNDED_PRECEDING
        and frame.end.kind is BoundKind.CURRENT_ROW
    )


def _of_all(call: BoundWindowCall, order: Sequence[BoundKey]) -> bool:
    """Whether every frame is all rows."""
    frame = call.frame
    if frame.exclude is not Exclusion.NO_OTHERS or call.function in (*NUMBERINGS, *_SHIFTS):
        return False
    if frame.start.kind is not BoundKind.UNBOUNDED_PRECEDING:
        return False
    if frame.end.kind is BoundKind.UNBOUNDED_FOLLOWING:
        return True
    peers = frame.unit is not FrameUnit.ROWS and frame.end.kind is BoundKind.CURRENT_ROW
    return peers and not order


def _needs_peers(call: BoundWindowCall) -> bool:
    if call.function in ("rank", "dense_rank"):
        return True
    return call.function not in (*_SHIFTS, "row_number") and call.frame.unit is not FrameUnit.ROWS


class RunningWindow:
    """``see`` every row, in any order; then ``add`` all of them in order, and take the ``rest``.
    The output is the rows with a column for every call."""

    def __init__(
        self,
        types: Sequence[SqlType],
        order: Sequence[BoundKey],
        calls: Sequence[BoundWindowCall],
        memory: Reservation,
    ) -> None:
        self._order = order
        self._calls = calls
        self._totals = {
            place: GroupStates([_whole_call(call)])
            for place, call in enumerate(calls)
            if _of_all(call, order) and call.function != "first_value"
        }
        waits = any(
            _needs_peers(call) and place not in self._totals and call.function != "first_value"
            for place, call in enumerate(calls)
        )
        self._peers = WholePartitions(types, order, memory) if waits and order else None
        self._carries = [_Carry(call) for call in calls]
        self._shifts = _Shifts(types, calls)

    def see(self, batch: Batch) -> None:
        for states in self._totals.values():
            states.add(None, 1, batch)

    def add(self, batch: Batch) -> Batch | None:
        """Raises OutOfMemory when the rows that are equal in the order are too many."""
        piece = batch if self._peers is None else self._peers.add(batch)
        return None if piece is None or not piece.rows else self._shifts.add(self._computed(piece))

    def rest(self) -> Batch | None:
        """At the end; None when there is nothing more."""
        piece = None if self._peers is None else self._peers.rest()
        computed = None if piece is None else self._computed(piece)
        return self._shifts.rest(computed)

    def close(self) -> None:
        if self._peers is not None:
            self._peers.close()
        self._shifts.close()

    def _computed(self, piece: Batch) -> Batch:
        """With a column for every call but lag and lead."""
        parts = [part for key in self._order for part in codes(piece.column(key.position), key)]
        found = segments(piece.rows, [], parts)
        columns = []
        for place, carry in enumerate(self._carries):
            if place in self._totals:
                (total,) = self._totals[place].results(np.zeros(1, np.int64))
                columns.append(take_or_null(total, np.zeros(piece.rows, np.int64)))
            elif carry.call.function not in _SHIFTS:
                columns.append(carry.column(piece, found))
        return piece.beside(Batch(columns, piece.rows))


def _whole_call(call: BoundWindowCall) -> BoundCall:
    return BoundCall(
        call.function, call.arguments, call.types, call.result, condition=call.condition
    )


class _Carry:
    """One call, and its knowledge of the pieces before."""

    def __init__(self, call: BoundWindowCall) -> None:
        self.call = call
        self._rows = 0
        self._peers = 0
        self._number: int | float | None = None
        self._value: pa.Array | None = None

    def column(self, piece: Batch, found: Segments) -> pa.Array:
        match self.call.function:
            case "row_number" | "rank" | "dense_rank":
                return self._numbered(found)
            case "first_value":
                if self._value is None:
                    self._value = self.call.arguments[0](piece).slice(0, 1)
                return take_or_null(self._value, np.zeros(piece.rows, np.int64))
            case "last_value":
                frames = frames_of(self.call.frame, found, piece)
                return last_value(self.call.arguments[0](piece), frames)
            case "min" | "max":
                return self._extreme(piece, found)
            case _:
                return self._summed(piece, found)

    def _numbered(self, found: Segments) -> pa.Array:
        dense = self.call.function == "dense_rank"
        before = self._peers if dense else self._rows
        local = data_of(NUMBERINGS[self.call.function](found))
        self._rows += found.rows
        self._peers += len(found.peer_starts)
        return array_from(local + before, pa.int64())

    def _summed(self, piece: Batch, found: Segments) -> pa.Array:
        """Sums and counts: those of the piece, and those of the pieces before."""
        call = self.call
        here = self._aggregate(piece, frames_of(call.frame, found, piece))
        valid = validity_mask(here)
        missing = None if valid is None or self._number is not None else ~valid
        before = self._number or 0
        if call.result.is_float:
            data = data_of(here) if valid is None else np.where(valid, data_of(here), 0.0)
            with range_checked():
                data = data + before
                self._keep(float(data[-1]), missing)
                return array_with_mask(
                    data, engine_type(call.result), None if missing is None else ~missing
                )
        exact = exact_of(here)
        assert isinstance(exact, np.ndarray)
        exact = exact if valid is None else np.where(valid, exact, 0)
        totals = shrink(exact.astype(object) + before)
        assert isinstance(totals, np.ndarray)
        self._keep(int(totals[-1]), missing)
        if call.result.kind is Kind.DECIMAL:
            return decimal_array(totals, call.result, invalid=missing)
        return integer_array(totals, call.result, engine_type(call.result), invalid=missing)

    def _keep(self, last: float, missing: np.ndarray | None) -> None:
        if missing is None or not missing[-1]:
            self._number = last

    def _extreme(self, piece: Batch, found: Segments) -> pa.Array:
        """The best value before stands as a row in front of the piece."""
        local = frames_of(self.call.frame, found, piece)
        if self._value is None:
            best = self._aggregate(piece, local)
        else:
            (argument,), (type_,) = self.call.arguments, self.call.types
            values = unify([self._value, argument(piece)], type_)
            rows = piece.rows + 1
            frames = Frames(
                segments(rows, [], []), np.zeros(rows, np.int64), np.append(1, local.end + 1)
            )
            condition = self._condition(piece)
            if condition is not None:
                condition = pa.concat_arrays([pa.array([True]), condition])
            types = self.call.types, self.call.result
            best = window_aggregate(self.call.function, [values], types, condition, frames)
            best = best.slice(1)
        self._value = best.slice(len(best) - 1, 1)
        return best

    def _aggregate(self, piece: Batch, frames: Frames) -> pa.Array:
        call = self.call
        arguments = [argument(piece) for argument in call.arguments]
        types = call.types, call.result
        return window_aggregate(call.function, arguments, types, self._condition(piece), frames)

    def _condition(self, piece: Batch) -> pa.Array | None:
        return None if self.call.condition is None else self.call.condition(piece)


class _Shifts:
    """lag and lead: keeps the rows that they still look back to, or are looked forward from. The
    columns of the calls come into their order here."""

    def __init__(self, types: Sequence[SqlType], calls: Sequence[BoundWindowCall]) -> None:
        self._calls = calls
        self._width = len(types)
        others = [call.result for call in calls if call.function not in _SHIFTS]
        self._types = [*types, *others]
        shifts = [
            (call.shift or 0) * (1 if call.function == "lead" else -1)
            for call in calls
            if call.function in _SHIFTS
        ]
        self._back = max((-shift for shift in shifts if shift < 0), default=0)
        self._ahead = max((shift for shift in shifts if shift > 0), default=0)
        self._any = bool(shifts)
        self._held = EMPTY
        self._done = 0
        """Rows of ``_held`` that were put out already."""

    def add(self, piece: Batch) -> Batch | None:
        if not self._any:
            return piece
        self._hold(piece)
        return self._put_out(self._held.rows - self._ahead)

    def rest(self, piece: Batch | None) -> Batch | None:
        if not self._any:
            return piece
        if piece is not None:
            self._hold(piece)
        return self._put_out(self._held.rows)

    def close(self) -> None:
        self._held = EMPTY

    def _hold(self, piece: Batch) -> None:
        if not self._held.rows:
            self._held = piece
            return
        both = zip(self._held.columns(), piece.columns(), self._types, strict=True)
        columns = [unify([held, more], type_) for held, more, type_ in both]
        self._held = Batch(columns, self._held.rows + piece.rows)

    def _put_out(self, end: int) -> Batch | None:
        """The rows up to ``end`` that were not put out yet."""
        first = self._done
        if end <= first:
            return None
        held = self._held
        found = segments(held.rows, [], [])
        others = iter(range(self._width, len(self._types)))
        columns = [held.column(place) for place in range(self._width)]
        for call in self._calls:
            if call.function in _SHIFTS:
                arguments = [argument(held) for argument in call.arguments]
                direction = -1 if call.function == "lag" else 1
                columns.append(shifted(found, arguments, call.result, direction))
            else:
                columns.append(held.column(next(others)))
        made = Batch(columns, held.rows).slice(first, end - first)
        kept = max(0, end - self._back)
        self._held = held.slice(kept, held.rows - kept)
        self._done = end - kept
        return made
