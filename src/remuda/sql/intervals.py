"""INTERVAL literals: months, days and microseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from remuda.errors import InvalidDatetime

MICROS_PER_UNIT: Final = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
MONTHS_PER_UNIT: Final = {
    "month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000,
}  # fmt: skip
DAYS_PER_UNIT: Final = {"day": 1, "week": 7}
_SHORT: Final = {
    "mon": "month", "mons": "month", "y": "year", "yr": "year", "yrs": "year", "d": "day",
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "m": "minute",
    "s": "second", "sec": "second", "secs": "second", "ms": "millisecond", "us": "microsecond",
    "w": "week", "centuries": "century", "millennia": "millennium",
}  # fmt: skip
_PART = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\s*([+-]?)([0-9]{1,9}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]{1,6})?))?\s*\Z")
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]+)?\s*\Z")
_LIMIT: Final = 2**31


@dataclass(frozen=True, slots=True)
class IntervalValue:
    months: int
    days: int
    micros: int

    def __neg__(self) -> IntervalValue:
        return IntervalValue(-self.months, -self.days, -self.micros)


def parse_interval(text: str, unit: str = "") -> IntervalValue:
    """``'1 year 2 days'``, ``'90' day``, ``'04:05:06'``, ``'1 day 04:05'``.

    Raises InvalidDatetime, without a position.
    """
    if unit or _NUMBER.match(text):
        if not _NUMBER.match(text):
            raise _bad(text)
        return _scaled(Decimal(text.strip()), unit or "second", text)
    total = IntervalValue(0, 0, 0)
    at = 0
    while (match := _PART.match(text, at)) is not None:
        total = _plus(total, _scaled(Decimal(match[1]), match[2], text))
        at = match.end()
    rest = text[at:]
    if rest.strip().lower() == "ago":
        return -total
    if rest.strip():
        clock = _CLOCK.match(rest)
        if clock is None:
            raise _bad(text)
        total = _plus(total, _clock(clock))
    elif at == 0:
        raise _bad(text)
    if max(abs(total.months), abs(total.days)) >= _LIMIT or abs(total.micros) >= 2**62:
        raise InvalidDatetime(f'interval out of range: "{text}"')
    return total


def _bad(text: str) -> InvalidDatetime:
    return InvalidDatetime(
        f'invalid input syntax for type interval: "{text[:60]}"',
        hint="Write it as INTERVAL '3' MONTH or INTERVAL '1 year 2 days 03:04:05'.",
    )


def _plus(a: IntervalValue, b: IntervalValue) -> IntervalValue:
    return IntervalValue(a.months + b.months, a.days + b.days, a.micros + b.micros)


def _clock(match: re.Match[str]) -> IntervalValue:
    micros = (int(match[2]) * 3600 + int(match[3]) * 60) * 1_000_000
    micros += int(Decimal(match[4] or "0") * 1_000_000)
    return IntervalValue(0, 0, -micros if match[1] == "-" else micros)


def _scaled(amount: Decimal, unit: str, text: str) -> IntervalValue:
    """Fractions of months become days of 1/30, fractions of days microseconds, as in PostgreSQL."""
    name = unit.lower()
    name = _SHORT.get(name, name if name in MONTHS_PER_UNIT else name.removesuffix("s"))
    if abs(amount) >= _LIMIT:
        raise InvalidDatetime(f'interval out of range: "{text}"')
    if name in MICROS_PER_UNIT:
        return IntervalValue(0, 0, int(amount * MICROS_PER_UNIT[name]))
    months = days = Decimal(0)
    if name in MONTHS_PER_UNIT:
        exact = amount * MONTHS_PER_UNIT[name]
        months = exact.to_integral_value(rounding="ROUND_DOWN")
        days = (exact - months) * 30
    elif name in DAYS_PER_UNIT:
        days = amount * DAYS_PER_UNIT[name]
    else:
        raise _bad(text)
    whole = days.to_integral_value(rounding="ROUND_DOWN")
    return IntervalValue(int(months), int(whole), int((days - whole) * 86_400_000_000))
