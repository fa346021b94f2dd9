"""Columns of short DECIMALs in PostgreSQL's binary form of NUMERIC, by array operations.

A NUMERIC is a head (the number of digits, the weight of the first one, the sign, the scale) and
digits of base 10,000 without zeros at either end.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.buffers import validity_of, values_of
from remuda.datatypes.sql import SqlType

_BASE: Final = 10_000
_GROUP: Final = 4
"""Decimal digits of one digit of base 10,000."""
_HEAD_WORDS: Final = 4
_NEGATIVE: Final = 0x4000
_LARGEST: Final = 2**63 // 1_000 - 1
"""Numbers up to this one can be multiplied by 1,000."""


def short_decimals(array: pa.Array, sql_type: SqlType) -> pa.Array | None:
    """An engine-form column of unscaled 64-bit numbers as an array of bytes; None: some of them
    are too large for this way."""
    unscaled = values_of(array, "<i8")
    scale = sql_type.scale or 0
    size = np.abs(unscaled)
    if len(size) and (int(size.max()) > _LARGEST or int(size.min()) < 0):
        return None
    fraction = (scale + _GROUP - 1) // _GROUP
    digits = _digits(size * 10 ** (fraction * _GROUP - scale), max(fraction, 1))
    groups = digits.shape[1]
    used = digits != 0
    any_used = used.any(axis=1)
    first = np.where(any_used, used.argmax(axis=1), 0)
    last = groups - 1 - used[:, ::-1].argmax(axis=1)
    counts = np.where(any_used, last - first + 1, 0)
    words = np.zeros((len(size), _HEAD_WORDS + groups), ">u2")
    words[:, 0] = counts
    words[:, 1] = np.where(any_used, groups - fraction - 1 - first, 0).astype(np.int16)
    words[:, 2] = np.where(unscaled < 0, _NEGATIVE, 0)
    words[:, 3] = scale
    places = np.minimum(first[:, None] + np.arange(groups), groups - 1)
    words[:, _HEAD_WORDS:] = np.take_along_axis(digits, places, axis=1)
    return _rows_of_bytes(words, 2 * (_HEAD_WORDS + counts), array)


def _digits(size: npt.NDArray[np.int64], least: int) -> npt.NDArray[np.int64]:
    """The digits of base 10,000 of each number, the highest one first; all have as many."""
    found: list[npt.NDArray[np.int64]] = []
    while len(found) < least or size.any():
        size, digit = np.divmod(size, _BASE)
        found.append(digit)
    return np.stack(found[::-1], axis=1)


def _rows_of_bytes(words: npt.NDArray[Any], lengths: npt.NDArray[Any], like: pa.Array) -> pa.Array:
    """The first bytes of each row; NULLs are those of ``like``."""
    data = words.view(np.uint8).reshape(len(words), 2 * words.shape[1])
    kept = data[np.arange(data.shape[1]) < lengths[:, None]]
    offsets = np.zeros(len(words) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [validity_of(like), pa.py_buffer(offsets), pa.py_buffer(kept)]
    return pa.Array.from_buffers(pa.binary(), len(words), buffers)
