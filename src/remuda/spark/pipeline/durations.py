"""Spans of time as files write them: ``10 min``, ``1 h 30 min``, ``500 ms``."""

from __future__ import annotations

import re
from typing import Final

from remuda.errors import InputError

_UNITS: Final = {
    "ms": 0.001, "millisecond": 0.001,
    "s": 1.0, "sec": 1.0, "second": 1.0,
    "min": 60.0, "minute": 60.0, "m": 60.0,
    "h": 3600.0, "hour": 3600.0,
    "d": 86400.0, "day": 86400.0,
}  # fmt: skip
_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


def parse_duration(text: str) -> float:
    """Seconds, above 0. Raises ``InputError``."""
    position, total = 0, 0.0
    lower = text.lower()
    while position < len(lower):
        match = _PART.match(lower, position)
        unit = match and (_UNITS.get(match[2]) or _UNITS.get(match[2].removesuffix("s")))
        if not match or not unit:
            break
        total += float(match[1]) * unit
        position = match.end()
    if not lower.strip() or position < len(lower) or total <= 0:
        raise InputError(
            f"{text!r} is no span of time", hint='A number and a unit: "10 min", "30 s", "1 h".'
        )
    return total
