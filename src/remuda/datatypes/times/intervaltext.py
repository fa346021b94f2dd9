"""Text to INTERVAL: PostgreSQL's own form, the SQL standard's and ISO 8601's.

As PostgreSQL does, the words of a text are read from right to left, so that a number finds the
unit behind it; a number before a time of day counts days.
"""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from typing import Final

from remuda.datatypes.sql import INTERVAL_FIELDS
from remuda.datatypes.times.intervals import (
    DAYS_PER_MONTH,
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_SECOND,
    pack,
    truncated_to,
    unpack,
)
from remuda.datatypes.times.text_forms import signed_by_the_first
from remuda.errors import IntervalFieldOverflow, IntervalOverflow, InvalidDatetime

FIELDS: Final = INTERVAL_FIELDS

MICROS_PER_UNIT: Final = {
    "hour": MICROS_PER_HOUR,
    "minute": 60 * MICROS_PER_SECOND,
    "second": MICROS_PER_SECOND,
    "millisecond": 1_000,
    "microsecond": 1,
}
MONTHS_PER_UNIT: Final = {
    "month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000,
}  # fmt: skip
DAYS_PER_UNIT: Final = {"day": 1, "week": 7}
_NAMES: Final = {
    "mon": "month", "mons": "month", "y": "year", "yr": "year", "yrs": "year", "d": "day",
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "m": "minute",
    "s": "second", "sec": "second", "secs": "second", "w": "week", "ms": "millisecond",
    "msec": "millisecond", "msecs": "millisecond", "mseconds": "millisecond", "us": "microsecond",
    "usec": "microsecond", "usecs": "microsecond", "useconds": "microsecond",
    "qtr": "quarter", "dec": "decade", "decs": "decade", "c": "century", "cent": "century",
    "centuries": "century", "mil": "millennium", "mils": "millennium", "millennia": "millennium",
}  # fmt: skip
_WORD = re.compile(
    # Other signs only part words, and blanks may follow the sign of a number.
    r"[\s!\"#$%&'()*,/:;<=>?@\[\\\]^_`{|}~]*(?:(?P<sign>[+-])\s+(?=[0-9.])"
    r"|(?P<clock>[+-]?[0-9]+(?::[0-9]+){1,2}(?:\.[0-9]*)?)"
    r"|(?P<months>[+-]?[0-9]+-[0-9]+)"
    r"|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?(?![0-9]))"
    r"|(?P<unit>[a-z]+)|(?P<end>\Z))",
    re.IGNORECASE,
)
_ISO_PART = re.compile(r"([+-]?[0-9]*\.?[0-9]*)([YMWDHS])", re.IGNORECASE)
_ISO_DATE = re.compile(r"([+-]?[0-9]+)-([+-]?[0-9]+)(?:-([+-]?[0-9]+(?:\.[0-9]*)?))?\Z")
_ISO_CLOCK = re.compile(r"([0-9]+):([0-9]+)(?::([0-9]+(?:\.[0-9]*)?))?\Z")
_ISO_COMPACT_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})\Z")
_ISO_COMPACT_CLOCK = re.compile(r"([0-9]{2})([0-9]{2})([0-9]{2}(?:\.[0-9]*)?)\Z")
_ISO_UNITS: Final = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME_UNITS: Final = {"H": "hour", "M": "minute", "S": "second"}
_ONE = Decimal(1)
_DIGITS_MAX: Final = 18
"""Beyond this nothing fits; and products with units still fit Decimal's 28 digits."""


class _Sum:
    """The parts found so far; a unit may come only once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.months = self.days = self.micros = 0
        self._seen: set[str] = set()

    def mark(self, *units: str) -> None:
        if self._seen.intersection(units):
            raise bad_interval(self.text)
        self._seen.update(units)

    def add(self, amount: Decimal, unit: str) -> None:
        """Fractions of years become months, of months days (1/30), of days time."""
        if unit in MICROS_PER_UNIT:
            whole = amount.quantize(_ONE, ROUND_DOWN)
            # PostgreSQL rounds a product of floats, which shows in the seventh digit.
            rest = round(float(amount - whole) * MICROS_PER_UNIT[unit])
            self.micros += int(whole) * MICROS_PER_UNIT[unit] + rest
            return
        if unit in MONTHS_PER_UNIT:
            months = amount * MONTHS_PER_UNIT[unit]
            if MONTHS_PER_UNIT[unit] >= MONTHS_PER_UNIT["year"]:
                self.months += int(months.quantize(_ONE, ROUND_HALF_EVEN))
                return
            whole = months.quantize(_ONE, ROUND_DOWN)
            self.months += int(whole)
            days = (months - whole) * DAYS_PER_MONTH
        else:
            days = amount * DAYS_PER_UNIT[unit]
        whole = days.quantize(_ONE, ROUND_DOWN)
        self.days += int(whole)
        self.micros += int(((days - whole) * MICROS_PER_DAY).quantize(_ONE, ROUND_HALF_EVEN))

    def packed(self, negative: bool = False) -> bytes:
        sign = -1 if negative else 1
        try:
            return pack(sign * self.months, sign * self.days, sign * self.micros)
        except IntervalOverflow:
            raise _out_of_range(self.text) from None


def parse_interval(text: str, fields: tuple[str, ...] = (), *, one_sign: bool = False) -> bytes:
    """The engine's form of ``'1 year 2 days'``, ``'1-2'``, ``'04:05:06'``, ``'P1Y2DT3H'`` ...

    ``fields`` is what the literal names behind the text, the first and the last of ``FIELDS``
    (``INTERVAL '1-2' YEAR TO MONTH``): it gives a bare number its unit, and smaller parts are cut
    off. ``one_sign``: a minus in front counts for all parts, as in the SQL standard, unless another
    part has a sign. Raises InvalidDatetime or IntervalOverflow, without a position.
    """
    stripped = text.strip()
    if stripped[:1] in ("P", "p"):
        value = _parse_iso(stripped[1:], text)
    else:
        value = _parse_words(stripped, text, fields)
        if one_sign and (sign := signed_by_the_first(stripped)):
            value = pack(*[sign * abs(part) for part in unpack(value)])
    return truncated_to(value, fields[-1]) if fields else value


def is_unit(word: str) -> bool:
    """Whether ``INTERVAL '...' word`` names a unit."""
    name = word.lower()
    return name in FIELDS or name.removesuffix("s") in {*FIELDS, "week", "quarter", "decade"}


def bad_interval(text: str) -> InvalidDatetime:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return InvalidDatetime(
        f'invalid input syntax for type interval: "{shown}"',
        hint="Write it as INTERVAL '3' MONTH or INTERVAL '1 year 2 days 03:04:05'.",
    )


def _out_of_range(text: str) -> IntervalFieldOverflow:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return IntervalFieldOverflow(f'interval field value out of range: "{shown}"')


def _parse_words(stripped: str, text: str, fields: tuple[str, ...]) -> bytes:
    words = _words(stripped, text)
    negative = bool(words) and words[-1] == ("unit", "ago")
    if negative:
        words.pop()
    total = _Sum(text)
    unit = ""
    pending = False  # a unit whose number has not come yet
    for kind, word in reversed(words):
        if kind == "clock":
            if pending:
                raise bad_interval(text)
            total.mark("hour", "minute", "second")
            total.micros += _clock(word, text, fields)
            unit = "day"
        elif kind == "months":
            if pending and unit != "month":
                raise bad_interval(text)
            total.mark("month", "year")
            total.months += _years_and_months(word, text)
            unit, pending = "month", False
        elif kind == "number":
            unit = unit or _default_unit(fields)
            total.mark(unit)
            total.add(_number(word, text), unit)
            unit, pending = ("day" if unit == "hour" else unit), False
        elif kind == "unit" and not pending:
            unit, pending = _unit(word, text), True
        else:
            raise bad_interval(text)
    if pending or not words:
        raise bad_interval(text)
    return total.packed(negative)


def _words(stripped: str, text: str) -> list[tuple[str, str]]:
    words: list[tuple[str, str]] = []
    at = 0
    while at < len(stripped):
        match = _WORD.match(stripped, at)
        if match is None:
            raise bad_interval(text)
        kind = str(match.lastgroup)
        at = match.end()
        if kind == "sign":
            stripped = stripped[:at] + match["sign"] + stripped[at:]
        elif kind != "end":
            words.append((kind, match[kind].lower()))
    return words


def _unit(word: str, text: str) -> str:
    name = _NAMES.get(word) or word.removesuffix("s")
    if name in MICROS_PER_UNIT or name in MONTHS_PER_UNIT or name in DAYS_PER_UNIT:
        return name
    raise bad_interval(text)


def _default_unit(fields: tuple[str, ...]) -> str:
    return "second" if not fields else fields[-1]


def _number(word: str, text: str) -> Decimal:
    value = Decimal(word)
    if value and value.adjusted() > _DIGITS_MAX:
        raise _out_of_range(text)
    return value if value.adjusted() > -_DIGITS_MAX else Decimal(0)


def _years_and_months(word: str, text: str) -> int:
    years, months = word.lstrip("+-").split("-")
    if len(years) > _DIGITS_MAX or len(months) > 2 or int(months) > 11:
        raise _out_of_range(text)
    total = int(years) * 12 + int(months)
    return -total if word[0] == "-" else total


def _clock(word: str, text: str, fields: tuple[str, ...]) -> int:
    """Hours and minutes, or with ``MINUTE TO SECOND`` (or a fraction) minutes and seconds."""
    parts = word.lstrip("+-").split(":")
    if len(word) > 30 or len(parts[0]) > _DIGITS_MAX:
        raise _out_of_range(text)
    if len(parts) == 2:
        minutes_first = "." in parts[1] or fields == ("minute", "second")
        parts = ["0", *parts] if minutes_first else [*parts, "0"]
    hours, minutes, seconds = int(parts[0]), int(parts[1]), Decimal(parts[2])
    if minutes > 59 or seconds > 60:
        raise _out_of_range(text)
    micros = hours * MICROS_PER_HOUR + minutes * MICROS_PER_UNIT["minute"]
    micros += int((seconds * MICROS_PER_SECOND).quantize(_ONE, ROUND_HALF_EVEN))
    return -micros if word[0] == "-" else micros


def _parse_iso(rest: str, text: str) -> bytes:
    """``1Y2M3W4DT5H6M7.8S`` or ``0001-02-03T04:05:06``, the text behind the P."""
    date, mark, time = rest.upper().partition("T")
    total = _Sum(text)
    if not date and not mark:
        raise bad_interval(text)
    match = _ISO_DATE.match(date) or _ISO_COMPACT_DATE.match(date)
    if match is not None:
        total.add(_number(match[1], text), "year")
        total.add(_number(match[2], text), "month")
        total.add(_number(match[3] or "0", text), "day")
    else:
        _iso_parts(total, date, _ISO_UNITS)
    match = _ISO_CLOCK.match(time) or _ISO_COMPACT_CLOCK.match(time)
    if match is not None:
        for amount, unit in zip(match.groups(), ("hour", "minute", "second"), strict=True):
            total.add(_number(amount or "0", text), unit)
    else:
        _iso_parts(total, time, _ISO_TIME_UNITS)
    return total.packed()


def _iso_parts(total: _Sum, part: str, units: dict[str, str]) -> None:
    at = 0
    for match in _ISO_PART.finditer(part):
        unit = units.get(match[2])
        if match.start() != at or unit is None or not any(c.isdigit() for c in match[1]):
            raise bad_interval(total.text)
        total.add(_number(match[1], total.text), unit)
        at = match.end()
    if at != len(part):
        raise bad_interval(total.text)
