"""INTERVAL: months, days and microseconds that stay apart, as PostgreSQL keeps them.

Inside the engine a value is 16 bytes: months and days as 32-bit, microseconds as 64-bit
little-endian integers. Two intervals compare by their length with months of 30 days and days of
24 hours, so different intervals may be equal ('1 mon' = '30 days').
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import Final

from remuda.errors import IntervalOverflow

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_MINUTE: Final = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR: Final = 3_600 * MICROS_PER_SECOND
MICROS_PER_DAY: Final = 24 * MICROS_PER_HOUR
DAYS_PER_MONTH: Final = 30
MONTHS_PER_YEAR: Final = 12

LAYOUT: Final = struct.Struct("<iiq")


class Interval:
    """A span of time as a user sees it: ``months``, ``days`` and ``microseconds``, each signed.

    Immutable. Two are equal when all three parts are. ``str`` gives PostgreSQL's text. ValueError
    for parts out of range (32, 32 and 64 bits).
    """

    __slots__ = ("days", "microseconds", "months")

    months: int
    days: int
    microseconds: int

    def __init__(self, months: int = 0, days: int = 0, microseconds: int = 0) -> None:
        for part, bits in ((months, 31), (days, 31), (microseconds, 63)):
            if not -(1 << bits) <= part < 1 << bits:
                raise ValueError(f"{part} is out of range for an interval")
        object.__setattr__(self, "months", months)
        object.__setattr__(self, "days", days)
        object.__setattr__(self, "microseconds", microseconds)

    @classmethod
    def of(cls, span: dt.timedelta) -> Interval:
        """Days and microseconds of a ``timedelta``."""
        return cls(0, span.days, span.seconds * MICROS_PER_SECOND + span.microseconds)

    def to_timedelta(self) -> dt.timedelta:
        """ValueError when there are months, which have no fixed length."""
        if self.months:
            raise ValueError(f"{self} has months and is no timedelta")
        return dt.timedelta(days=self.days, microseconds=self.microseconds)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an Interval cannot be changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return f"Interval({self.months}, {self.days}, {self.microseconds})"

    def __str__(self) -> str:
        return interval_text(*self._parts())

    def __reduce__(self) -> tuple[type[Interval], tuple[int, int, int]]:
        return Interval, self._parts()

    def _parts(self) -> tuple[int, int, int]:
        return self.months, self.days, self.microseconds


def pack(months: int, days: int, micros: int) -> bytes:
    """The engine's form; raises IntervalOverflow."""
    try:
        return LAYOUT.pack(months, days, micros)
    except struct.error as error:
        raise IntervalOverflow("interval out of range") from error


def unpack(value: bytes) -> tuple[int, int, int]:
    """(months, days, microseconds)"""
    months, days, micros = LAYOUT.unpack(value)
    return months, days, micros


# --- text --------------------------------------------------------------------------------------


def interval_text(months: int, days: int, micros: int) -> str:
    """``1 year 2 mons -3 days +04:05:06.5``: PostgreSQL's output style."""
    years, months = _truncated(months, MONTHS_PER_YEAR)
    parts: list[str] = []
    negative_before = False
    for amount, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if amount:
            sign = "+" if negative_before and amount > 0 else ""
            parts.append(f"{sign}{amount} {unit}{'' if amount == 1 else 's'}")
            negative_before = amount < 0
    if micros or not parts:
        sign = "-" if micros < 0 else "+" if negative_before else ""
        parts.append(sign + clock_text(abs(micros)))
    return " ".join(parts)


def clock_text(micros: int) -> str:
    """``04:05:06.5`` of a number of microseconds that is not negative."""
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def _truncated(value: int, divisor: int) -> tuple[int, int]:
    """Quotient and remainder, rounded towards zero."""
    quotient = abs(value) // divisor
    quotient = -quotient if value < 0 else quotient
    return quotient, value - quotient * divisor


# --- arithmetic of single values -----------------------------------------------------------------


def scaled(value: bytes, factor: float) -> bytes:
    """``value * factor``; fractions of months become days (1/30), fractions of days time.

    The algorithm is PostgreSQL's ``interval_mul``. Raises IntervalOverflow.
    """
    months, days, micros = unpack(value)
    return _rescaled(months * factor, days * factor, micros * factor)


def divided(value: bytes, divisor: float) -> bytes:
    """``value / divisor`` (not 0). Raises IntervalOverflow."""
    months, days, micros = unpack(value)
    return _rescaled(months / divisor, days / divisor, micros / divisor)


def _rescaled(months: float, days: float, micros: float) -> bytes:
    try:
        whole_months, whole_days = int(months), int(days)
        more_days = _rounded((months - whole_months) * DAYS_PER_MONTH)
        seconds = (days - whole_days + more_days - int(more_days)) * 86_400
        seconds = _rounded(seconds)
        if abs(seconds) >= 86_400:
            whole_days += int(seconds / 86_400)
            seconds -= int(seconds / 86_400) * 86_400
        whole_days += int(more_days)
        return pack(whole_months, whole_days, round(micros + seconds * MICROS_PER_SECOND))
    except (OverflowError, ValueError) as error:
        raise IntervalOverflow("interval out of range") from error


def _rounded(value: float) -> float:
    return round(value * 1e6) / 1e6


def justify_hours(months: int, days: int, micros: int) -> tuple[int, int, int]:
    """24 hours become a day; time and days get one sign."""
    return months, *_carried(days, micros, MICROS_PER_DAY)


def justify_days(months: int, days: int, micros: int) -> tuple[int, int, int]:
    """30 days become a month; days and months get one sign."""
    return *_carried(months, days, DAYS_PER_MONTH), micros


def _carried(whole: int, parts: int, size: int) -> tuple[int, int]:
    """``size`` parts become a whole one; both get one sign."""
    more, parts = _truncated(parts, size)
    whole += more
    if whole > 0 > parts:
        return whole - 1, parts + size
    if whole < 0 < parts:
        return whole + 1, parts - size
    return whole, parts


def justify_interval(months: int, days: int, micros: int) -> tuple[int, int, int]:
    """Both, and one sign for all parts."""
    if (days > 0 and micros > 0) or (days < 0 and micros < 0):
        more, days = _truncated(days, DAYS_PER_MONTH)
        months += more
    more, micros = _truncated(micros, MICROS_PER_DAY)
    days += more
    more, days = _truncated(days, DAYS_PER_MONTH)
    months += more
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + DAYS_PER_MONTH
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - DAYS_PER_MONTH
    if days > 0 > micros:
        days, micros = days - 1, micros + MICROS_PER_DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - MICROS_PER_DAY
    return months, days, micros


def truncated_to(value: bytes, field: str) -> bytes:
    """Without the parts that are smaller than ``field`` (``CAST(x AS INTERVAL HOUR)``)."""
    months, days, micros = LAYOUT.unpack(value)
    match field:
        case "year":
            return pack(_towards_zero(months, MONTHS_PER_YEAR), 0, 0)
        case "month":
            return pack(months, 0, 0)
        case "day":
            return pack(months, days, 0)
        case "hour":
            return pack(months, days, _towards_zero(micros, MICROS_PER_HOUR))
        case "minute":
            return pack(months, days, _towards_zero(micros, MICROS_PER_MINUTE))
        case _:  # a second has digits of its own
            return value


def _towards_zero(amount: int, unit: int) -> int:
    whole = abs(amount) // unit * unit
    return -whole if amount < 0 else whole
