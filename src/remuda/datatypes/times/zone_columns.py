"""Offsets of a time zone for a column of times: looked up once per quarter of an hour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from remuda.datatypes.times.zones import Zone

Numbers: TypeAlias = npt.NDArray[Any]
_QUARTER = 900_000_000


def offsets(found: Zone, data: Numbers, to_utc: bool) -> Numbers:
    """At times in UTC, or at those of its own clocks (``to_utc``), in microseconds."""
    if found.fixed is not None:
        return np.full(len(data), found.fixed, np.int64)
    quarters, inverse = np.unique(data // _QUARTER, return_inverse=True)
    look_up: Callable[[int], int] = found.at_local if to_utc else found.at_utc
    found_at = np.array([look_up(int(q) * _QUARTER) for q in quarters], np.int64)
    taken: Numbers = found_at[inverse] if len(found_at) else np.zeros(0, np.int64)
    return taken
