"""Arithmetic and functions of INTERVAL: types of arguments and results."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import (
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
)
from remuda.plan.functions.signatures import (
    Resolver,
    ScalarFunction,
    Signature,
    Types,
    fixed,
    overloads,
    unknown,
)

_POINTS: Final = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ)
INTERVAL_FIELDS: Final = (
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "month", "quarter", "year",
    "decade", "century", "millennium", "epoch",
)  # fmt: skip
"""The fields that ``extract`` takes out of an interval."""


def moved_type(point: SqlType) -> SqlType:
    """The type of ``point + interval``."""
    return TIMESTAMP if point == DATE else point


def plus(types: Types) -> Signature | None:
    """interval + interval; a date, time or timestamp + interval; DATE + TIME."""
    if len(types) != 2:
        return None
    left, right = types
    if types in ((DATE, TIME), (TIME, DATE)):
        return Signature(types, TIMESTAMP)
    if unknown(right) and left in (TIMESTAMP, TIMESTAMPTZ):
        return Signature((left, INTERVAL), left)
    if unknown(left) and right in (TIMESTAMP, TIMESTAMPTZ):
        return Signature((INTERVAL, right), right)
    if INTERVAL not in types:
        return None
    if left in _POINTS:
        return Signature(types, moved_type(left))
    if right in _POINTS:
        return Signature(types, moved_type(right))
    return _both_intervals(types)


def minus(types: Types) -> Signature | None:
    """interval - interval; a date, time or timestamp - interval; the interval between two times or
    timestamps."""
    if len(types) != 2:
        return None
    left, right = types
    if right == INTERVAL and left in _POINTS:
        return Signature(types, moved_type(left))
    if INTERVAL in types:
        return _both_intervals(types)
    if TIME in types and all(t == TIME or unknown(t) for t in types):
        return Signature((TIME, TIME), INTERVAL)
    for common in (TIMESTAMPTZ, TIMESTAMP):
        if common in types:
            fits = all(t in (DATE, TIMESTAMP, TIMESTAMPTZ) or unknown(t) for t in types)
            return Signature((common, common), INTERVAL) if fits else None
    return None


def _both_intervals(types: Types) -> Signature | None:
    fits = all(t == INTERVAL or unknown(t) for t in types)
    return Signature((INTERVAL, INTERVAL), INTERVAL) if fits else None


def times(types: Types) -> Signature | None:
    """interval * number, number * interval"""
    if len(types) != 2 or INTERVAL not in types:
        return None
    wanted = (INTERVAL, DOUBLE) if types[0] == INTERVAL else (DOUBLE, INTERVAL)
    number = types[1] if types[0] == INTERVAL else types[0]
    return Signature(wanted, INTERVAL) if number.is_numeric or unknown(number) else None


def divided(types: Types) -> Signature | None:
    """interval / number"""
    if len(types) != 2 or types[0] != INTERVAL:
        return None
    fits = types[1].is_numeric or unknown(types[1])
    return Signature((INTERVAL, DOUBLE), INTERVAL) if fits else None


def negated(types: Types) -> Signature | None:
    return Signature(types, INTERVAL) if types == (INTERVAL,) else None


def _age(types: Types) -> Signature | None:
    """(later, earlier) of one type; the binder adds the second one where it is left out."""
    if len(types) != 2:
        return None
    common = TIMESTAMPTZ if TIMESTAMPTZ in types else TIMESTAMP
    fits = all(t in (DATE, TIMESTAMP, TIMESTAMPTZ) or unknown(t) for t in types)
    return Signature((common, common), INTERVAL) if fits else None


_ONE: Final[Resolver] = fixed(INTERVAL, INTERVAL)
_MAKE: Final[Resolver] = fixed(INTERVAL, *[INTEGER] * 6, DOUBLE, optional=7)

_ZONE: Final[Resolver] = overloads(
    fixed(TIMESTAMPTZ, VARCHAR, TIMESTAMP),
    fixed(TIMESTAMP, VARCHAR, TIMESTAMPTZ),
    fixed(TIMESTAMPTZ, INTERVAL, TIMESTAMP),
    fixed(TIMESTAMP, INTERVAL, TIMESTAMPTZ),
)

FUNCTIONS: Final = (
    ScalarFunction("age", _age, summary="(later, earlier): years, months, days and time between"),
    ScalarFunction("justify_days", _ONE, summary="30 days become a month", raises=True),
    ScalarFunction("justify_hours", _ONE, summary="24 hours become a day", raises=True),
    ScalarFunction("justify_interval", _ONE, summary="both, and one sign for all", raises=True),
    ScalarFunction(
        "make_interval", _MAKE, raises=True,
        summary="years, months, weeks, days, hours, mins, secs; each may be left out",
    ),
    ScalarFunction("timezone", _ZONE, raises=True,
                   summary="zone, timestamp: the clock there, or the moment of a clock there"),
    ScalarFunction("interval_fields", fixed(INTERVAL, INTERVAL, INTEGER),
                   summary="cut off what is smaller than a field"),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {}
