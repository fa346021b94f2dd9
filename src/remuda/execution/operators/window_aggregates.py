"""Aggregates over the frames of sorted rows.

Counts and exact sums are differences of prefix sums. Floating sums and extremes, which cannot be
taken back, are folded from blocks of 2, 4, 8 ... rows (the bottom-up query of a segment tree, all
frames at once: O(rows log rows) whatever the frames are), or by one running pass where all frames
begin with their partition. Any other aggregate is computed frame by frame from its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import INTERVAL, Kind, SqlType
from remuda.errors import NumericOverflow
from remuda.execution.arrays import (
    Data,
    Indices,
    Mask,
    array_from,
    array_with_mask,
    data_of,
    mask_of,
    take,
    take_or_null,
    validity_mask,
)
from remuda.execution.evaluate.numbers import (
    bounds,
    decimal_array,
    exact_of,
    integer_array,
    shrink,
)
from remuda.execution.operators.aggregate_choice import new_state
from remuda.execution.operators.aggregate_states import range_checked
from remuda.execution.operators.ordering import BoundKey, codes
from remuda.execution.operators.window_frames import Frames
from remuda.plan.functions.aggregates import aggregate_function

_PAIRS_AT_ONCE: Final = 1 << 20
_RUNNING_ROWS: Final = 32
"""Rows per partition from which one running pass per partition is worth its call."""
_LOW: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class _Input:
    """``counted``: the rows that take part, None when all do; ``some``: frames that have such."""

    columns: Sequence[pa.Array]
    types: Sequence[SqlType]
    counted: Mask | None
    some: Mask
    frames: Frames

    @property
    def values(self) -> pa.Array:
        """Of the first argument."""
        return self.columns[0]

    @property
    def type(self) -> SqlType:
        return self.types[0]

    @property
    def valid(self) -> Mask | None:
        """The validity of the results: NULL where nothing took part."""
        return None if self.some.all() else self.some


def window_aggregate(
    function: str,
    columns: Sequence[pa.Array],
    types: tuple[Sequence[SqlType], SqlType],
    condition: pa.Array | None,
    frames: Frames,
) -> pa.Array:
    """``function(columns) FILTER (WHERE condition)`` over the frame of every row; ``types`` are of
    the arguments and of the result. No columns: count(*)."""
    arguments, result = types
    dropping = columns and not aggregate_function(function).keeps_nulls
    counted = _counted(columns[0] if dropping else None, condition)
    counts = frames.size() if counted is None else _difference(counted.astype(np.int64), frames)
    if function == "count":
        return array_from(counts, pa.int64())
    given = _Input(columns, arguments, counted, counts > 0, frames)
    if function == "sum" and given.type != INTERVAL:
        return _float_sum(given, result) if given.type.is_float else _exact_sum(given, result)
    if function in ("min", "max"):
        return _extreme(given, function == "min")
    return frame_by_frame(function, given, result)


def _counted(values: pa.Array | None, condition: pa.Array | None) -> Mask | None:
    valid = None if values is None else validity_mask(values)
    if condition is None:
        return valid
    wanted = mask_of(condition)
    return wanted if valid is None else wanted & valid


# --- sums --------------------------------------------------------------------------------------


def _exact_sum(given: _Input, result: SqlType) -> pa.Array:
    data = exact_of(given.values)
    assert isinstance(data, np.ndarray)
    if given.counted is not None:
        data = np.where(given.counted, data, 0)
    totals = _difference(data, given.frames)
    invalid = None if given.valid is None else ~given.some
    if result.kind is Kind.DECIMAL:
        return decimal_array(totals, result, invalid=invalid)
    return integer_array(totals, result, engine_type(result), invalid=invalid)


def _difference(data: Data, frames: Frames) -> Data:
    """Sums of integers over the rows of every frame."""
    totals = _between(data, frames.start, frames.end)
    for start, end in frames.more:
        more = _between(data, start, end)
        if totals.dtype != object and max(map(abs, (*bounds(totals), *bounds(more)))) >= 2**62:
            totals = totals.astype(object)
        totals = totals + more
    return _shrunk(totals) if frames.more and totals.dtype == object else totals


def _between(data: Data, start: Indices, end: Indices) -> Data:
    """Sums of integers between rows; of the two halves of each where 64 bits could overflow."""
    if data.dtype == object:
        before = np.concatenate([np.array([0], object), np.cumsum(data)])
        return _shrunk(before[end] - before[start])
    low, high = bounds(data)
    if max(-low, high) * len(data) < 2**63:
        before = np.append(0, np.cumsum(data))
        small: Data = before[end] - before[start]
        return small
    lows = np.append(0, np.cumsum(data & _LOW))
    highs = np.append(0, np.cumsum(data >> 32))
    lower = (lows[end] - lows[start]).astype(object)
    return _shrunk(((highs[end] - highs[start]).astype(object) << 32) + lower)


def _shrunk(data: Data) -> Data:
    narrow = shrink(data)
    assert isinstance(narrow, np.ndarray)
    return narrow


def _float_sum(given: _Input, result: SqlType) -> pa.Array:
    data = data_of(given.values).astype(np.float64)
    if given.counted is not None:
        data = np.where(given.counted, data, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        # Blocks may reach over the ends of frames: an overflow counts only if a frame has it.
        totals = fold(np.add, data, 0.0, given.frames)
    unbounded = ~np.isfinite(totals)
    if unbounded.any():
        excused = fold(np.logical_or, ~np.isfinite(data), False, given.frames)
        if (unbounded & ~excused).any():
            raise NumericOverflow("value out of range: overflow")
    with range_checked():
        return array_with_mask(totals, engine_type(result), given.valid)


# --- extremes ----------------------------------------------------------------------------------


def _extreme(given: _Input, smallest: bool) -> pa.Array:
    """By order-preserving codes, so that NaN is the largest and text goes by its bytes."""
    values = given.values
    data = codes(values, BoundKey(0, given.type))[-1].astype(np.int64)
    worst = np.iinfo(np.int64).max if smallest else np.iinfo(np.int64).min
    if given.counted is not None:
        data = np.where(given.counted, data, worst)
    best = fold(np.minimum if smallest else np.maximum, data, worst, given.frames)
    if _is_own_code(values, given.type):
        return array_with_mask(np.where(given.some, best, 0), values.type, given.valid)
    order = np.argsort(data, kind="stable")
    place = np.searchsorted(data[order], best).clip(0, len(order) - 1)
    return take_or_null(values, np.where(given.some, order[place], -1))


def _is_own_code(values: pa.Array, type_: SqlType) -> bool:
    if type_.kind is Kind.DECIMAL:
        return bool(values.type == pa.int64())
    return not (
        type_.ordered_by_key
        or type_.is_text
        or type_.is_float
        or type_.kind in (Kind.BYTEA, Kind.BOOLEAN, Kind.UUID)
    )


# --- folding -----------------------------------------------------------------------------------


def fold(function: np.ufunc, data: Data, nothing: Any, frames: Frames) -> Data:
    """``function`` over the rows of every frame; ``nothing`` is its neutral element."""
    if frames.more:
        results = [fold(function, data, nothing, Frames(frames.found, *p)) for p in frames.parts]
        joined: Data = function.reduce(results)
        return joined
    found = frames.found
    if np.array_equal(frames.start, found.first):
        if np.array_equal(frames.end, found.end):
            totals: Data = function.reduceat(data, found.starts)[found.partition]
            return totals
        if len(found.starts) * _RUNNING_ROWS <= found.rows:
            return _running(function, data, nothing, frames)
    return _blocks(function, data, nothing, frames)


def _running(function: np.ufunc, data: Data, nothing: Any, frames: Frames) -> Data:
    running = np.empty_like(data)
    found = frames.found
    for first, last in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
        function.accumulate(data[first:last], out=running[first:last])
    last_rows = np.maximum(frames.end - 1, 0)
    return np.where(frames.start < frames.end, running[last_rows], nothing)


def _blocks(function: np.ufunc, data: Data, nothing: Any, frames: Frames) -> Data:
    low, high = frames.start.copy(), frames.end.copy()
    result: Data = np.full(len(low), nothing, data.dtype)
    block = data
    while True:
        open_frames = low < high
        if not open_frames.any():
            return result
        rows = np.flatnonzero(open_frames & (low & 1 == 1))
        result[rows] = function(result[rows], block[low[rows]])
        low[rows] += 1
        rows = np.flatnonzero(open_frames & (high & 1 == 1))
        high[rows] -= 1
        result[rows] = function(result[rows], block[high[rows]])
        low >>= 1
        high >>= 1
        if len(block) % 2:
            block = np.append(block, np.array([nothing], data.dtype))
        block = function(block[0::2], block[1::2])


# --- any other aggregate -----------------------------------------------------------------------


def frame_by_frame(function: str, given: _Input, result: SqlType) -> pa.Array:
    """By the states of aggregation: every frame is a group of its rows. Equal frames count once."""
    edges = np.stack([edge for part in given.frames.parts for edge in part])
    frames, which = np.unique(edges, axis=1, return_inverse=True)
    starts, lengths = frames[0::2], frames[1::2] - frames[0::2]
    parts, counted = len(starts), given.counted
    state = new_state(function, given.types, result)
    state.resize(starts.shape[1])
    # The rows of a frame are those of its parts, one part after the other.
    begins, sizes = starts.T.reshape(-1), lengths.T.reshape(-1)
    after = np.cumsum(sizes)
    first = 0
    while first < len(begins):
        before = int(after[first - 1]) if first else 0
        last = int(np.searchsorted(after, before + _PAIRS_AT_ONCE, "right"))
        last = max(last, first + 1)
        size = sizes[first:last]
        groups = np.repeat(np.arange(first, last) // parts, size)
        rows = np.arange(len(groups)) - np.repeat(np.cumsum(size) - size, size)
        rows += np.repeat(begins[first:last], size)
        if counted is not None:
            kept = counted[rows]
            groups, rows = groups[kept], rows[kept]
        if len(rows):
            state.add_columns(groups, [take(column, rows) for column in given.columns])
        first = last
    return state.finish(which.reshape(-1).astype(np.int64))
