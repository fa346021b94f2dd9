"""The functions that are only called with OVER: numbering, and values of other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.sql import SqlType
from remuda.errors import InvalidNthValueArgument, InvalidNtileArgument
from remuda.execution.arrays import (
    Indices,
    Mask,
    array_from,
    array_with_mask,
    data_of,
    take_or_null,
    validity_mask,
)
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.operators.window_frames import Frames, Segments

Numbering: TypeAlias = Callable[[Segments], pa.Array]


def _row_number(found: Segments) -> pa.Array:
    return array_from(np.arange(1, found.rows + 1) - found.first, pa.int64())


def _rank(found: Segments) -> pa.Array:
    return array_from(found.peer_first - found.first + 1, pa.int64())


def _dense_rank(found: Segments) -> pa.Array:
    return array_from(found.peer - found.peer[found.first] + 1, pa.int64())


def _percent_rank(found: Segments) -> pa.Array:
    others = np.maximum(found.end - found.first - 1, 1)
    return array_from((found.peer_first - found.first) / others, pa.float64())


def _cume_dist(found: Segments) -> pa.Array:
    return array_from((found.peer_end - found.first) / (found.end - found.first), pa.float64())


NUMBERINGS: Final[dict[str, Numbering]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}


def ntile(found: Segments, buckets: pa.Array) -> pa.Array:
    """The first ``rows % n`` buckets have one row more. ``n`` is the first row's of a partition."""
    valid = validity_mask(buckets)
    known = None if valid is None else valid[found.first]
    count = data_of(buckets).astype(np.int64)[found.first]
    if known is not None:
        count = np.where(known, count, 1)
    if (count <= 0).any():
        raise InvalidNtileArgument("argument of ntile must be greater than zero")
    size, larger = np.divmod(found.end - found.first, count)
    row = np.arange(found.rows) - found.first
    in_larger = larger * (size + 1)
    later = larger + (row - in_larger) // np.maximum(size, 1)
    number = np.where(row < in_larger, row // (size + 1), later) + 1
    return array_with_mask(number, pa.int32(), known)


def shifted(
    found: Segments, arguments: Sequence[pa.Array], type_: SqlType, direction: int
) -> pa.Array:
    """``lag`` (direction -1) and ``lead`` (1): (values, rows = 1, default = NULL).

    A NULL offset gives NULL; an offset out of the partition gives the default of the row itself.
    """
    values = arguments[0]
    offset: Indices | int = 1
    known: Mask | None = None
    if len(arguments) > 1:
        known = validity_mask(arguments[1])
        offset = data_of(arguments[1]).astype(np.int64)
        if known is not None:
            offset = np.where(known, offset, 0)
    row = np.arange(found.rows) + direction * offset
    inside = (row >= found.first) & (row < found.end)
    row = np.where(inside, row, -1)
    if known is not None:
        row = np.where(known, row, -1)
        inside |= ~known
    taken = take_or_null(values, row)
    if len(arguments) < 3 or inside.all():
        return taken
    default = arguments[2]
    if taken.type != default.type:
        taken, default = canonical(taken, type_), canonical(default, type_)
    return pc.if_else(pa.array(inside), taken, default)


def first_value(values: pa.Array, frames: Frames) -> pa.Array:
    return take_or_null(values, frames.place(np.zeros(frames.found.rows, np.int64)))


def last_value(values: pa.Array, frames: Frames) -> pa.Array:
    return take_or_null(values, frames.place(frames.size() - 1))


def nth_value(values: pa.Array, number: pa.Array, frames: Frames) -> pa.Array:
    known = validity_mask(number)
    count = data_of(number).astype(np.int64)
    if known is not None:
        count = np.where(known, count, 1)
    if (count <= 0).any():
        raise InvalidNthValueArgument("argument of nth_value must be greater than zero")
    rows = frames.place(count - 1)
    return take_or_null(values, rows if known is None else np.where(known, rows, -1))
