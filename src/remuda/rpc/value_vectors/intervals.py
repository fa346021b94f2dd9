"""INTERVAL: months, days and milliseconds of 32 bits each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import IntervalOverflow

_ARROW: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
_DRILL: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("millis", "<i4"), ("unused", "<i4")])
"""Drill's Java and C++ clients step by 16 bytes from one interval to the next, and read 12."""
_NANOS_PER_MILLI: Final = 1_000_000
_DAY_MILLIS: Final = 24 * 60 * 60 * 1000
_MAX: Final = 2**31 - 1


def interval_values(array: pa.Array) -> npt.NDArray[Any]:
    """Fractions of a millisecond are cut off. Hours beyond 24 days do not fit their 32 bits: they
    become days, as justify_hours does. Raises IntervalOverflow when these do not fit either."""
    records = np.frombuffer(array.buffers()[1], _ARROW, count=array.offset + len(array))
    records = records[array.offset :]
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    nanos = np.where(valid, records["nanos"], 0)
    millis = np.sign(nanos) * (np.abs(nanos) // _NANOS_PER_MILLI)
    days = np.where(valid, records["days"], 0).astype(np.int64)
    large = np.abs(millis) > _MAX
    whole = np.where(large, np.sign(millis) * (np.abs(millis) // _DAY_MILLIS), 0)
    days += whole
    if (np.abs(days) > _MAX).any():
        raise IntervalOverflow(
            "an interval has more days than Drill's intervals can have",
            hint="Convert it to text.",
        )
    found = np.zeros(len(array), _DRILL)
    found["months"] = np.where(valid, records["months"], 0)
    found["days"] = days
    found["millis"] = millis - whole * _DAY_MILLIS
    return found
