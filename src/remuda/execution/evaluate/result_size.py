"""How much a function may make of one batch: repeat(s, 1000000) must not fill the member."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import OutOfMemory
from remuda.execution.evaluate.numbers import Value
from remuda.limits import MIB

RESULT_SIZE_MAX: Final = 256 * MIB
"""Bytes; also far below the 2 GiB that the offsets of an Arrow column reach."""
_ELEMENT_SIZE: Final = 8


def gathered(results: Iterable[Any], function: str) -> list[Any]:
    """The results of a function, row by row: texts, bytes, tuples and None. Raises OutOfMemory as
    soon as they are too large together."""
    found: list[Any] = []
    room = RESULT_SIZE_MAX
    for result in results:
        found.append(result)
        if result is not None:
            room -= len(result) * (_ELEMENT_SIZE if isinstance(result, tuple) else 1)
            if room < 0:
                raise _too_large(function)
    return found


def check_joined(values: Iterable[Value], rows: int, function: str) -> None:
    """Raises OutOfMemory when texts put together row by row are too large."""
    size = 0
    for value in values:
        if isinstance(value, pa.Array):
            size += pc.sum(pc.binary_length(value), min_count=0).as_py()
        else:
            size += pc.binary_length(value).as_py() * rows
    if size > RESULT_SIZE_MAX:
        raise _too_large(function)


def check_size(size: int, function: str) -> None:
    """Raises OutOfMemory when ``size`` bytes are too many for one batch."""
    if size > RESULT_SIZE_MAX:
        raise _too_large(function)


def check_repeated(value: pa.Scalar, rows: int) -> None:
    """Raises OutOfMemory when a text that stands in every row is too large as a column."""
    if rows > 1 and isinstance(value, pa.StringScalar | pa.BinaryScalar) and value.is_valid:
        size = value.as_buffer().size
        if size * rows > RESULT_SIZE_MAX:
            raise _too_large(f"a value of {size} bytes")


def _too_large(function: str) -> OutOfMemory:
    return OutOfMemory(
        f"{function} makes more than {RESULT_SIZE_MAX // MIB} MiB of one batch of rows",
        hint="Make shorter values, or select fewer rows.",
    )
