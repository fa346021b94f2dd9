"""Functions that may take long for one row are evaluated for some rows of a batch at a time."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.execution.checkpoint import checkpoint
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import Value
from remuda.execution.evaluate.result_size import check_size

PIECE_ROWS: Final = 4096
"""Rows between two looks at the cancellation: a vectorized function loses some nanoseconds per row
by it."""


def in_pieces(kernel: Kernel, type_: SqlType, function: str) -> Kernel:
    """The same kernel, which ends between two pieces when the query was cancelled. ``type_`` is
    that of its results."""

    def pieced(values: list[Value], rows: int) -> Value:
        if rows <= PIECE_ROWS:
            return kernel(values, rows)
        pieces: list[pa.Array] = []
        size = 0
        for first in range(0, rows, PIECE_ROWS):
            checkpoint()
            count = min(PIECE_ROWS, rows - first)
            part = kernel([_slice(value, first, count) for value in values], count)
            piece = part if isinstance(part, pa.Array) else pa.repeat(part, count)
            size += piece.nbytes
            check_size(size, function)
            pieces.append(piece)
        if any(piece.type != pieces[0].type for piece in pieces):
            pieces = [canonical(piece, type_) for piece in pieces]
        return pa.concat_arrays(pieces)

    return pieced


def _slice(value: Value, first: int, count: int) -> Value:
    return value.slice(first, count) if isinstance(value, pa.Array) else value
