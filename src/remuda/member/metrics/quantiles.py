"""Quantiles of times with a bounded relative error, from counts that can be added up.

A time falls into the bucket whose number is the logarithm of the time, rounded up, so each bucket
is ``GROWTH`` times as wide as the one before (DDSketch, Masson and others, 2019). Fixed buckets, as
metrics have them, would be off by their width, a factor of two and more; samples cannot be merged
exactly. The counts of several members, bucket by bucket, are those of one member that had seen
everything, so quantiles of the cluster have the same bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

RELATIVE_ERROR: Final = 0.025
"""How far a quantile may be from the time that it stands for, as a fraction of it."""
SECONDS_MIN: Final = 1e-6
"""Shorter times count as this long."""
SECONDS_MAX: Final = 1e6
"""Longer times count as this long."""
GROWTH: Final = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_PER_LOG: Final = 1 / math.log(GROWTH)
_FIRST: Final = math.ceil(math.log(SECONDS_MIN) * _PER_LOG)
BUCKETS: Final = math.ceil(math.log(SECONDS_MAX) * _PER_LOG) - _FIRST + 1
"""No time has a bucket with this number or a higher one."""


def bucket(seconds: float) -> int:
    """From 0. On the path of every read by key."""
    if seconds <= SECONDS_MIN:
        return 0
    if seconds >= SECONDS_MAX:
        return BUCKETS - 1
    return math.ceil(math.log(seconds) * _PER_LOG) - _FIRST


def seconds_of(number: int) -> float:
    """The time that stands for those of a bucket: its distance to both ends is the error."""
    return 2 * math.exp((number + _FIRST) / _PER_LOG) / (GROWTH + 1)


def quantile(counts: Mapping[int, int], fraction: float) -> float | None:
    """The time that ``fraction`` of all do not exceed (percentile_disc); None without any."""
    rank = max(1, math.ceil(fraction * sum(counts.values())))
    below = 0
    for number in sorted(counts):
        below += counts[number]
        if below >= rank:
            return seconds_of(number)
    return None
