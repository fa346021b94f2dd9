"""One moment taken apart, over the whole range of timestamps (Python's dates end with 9999)."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Protocol

from remuda.datatypes.times.intervals import clock_text

_MICROS_PER_DAY: Final = 86_400_000_000
FIRST_DAY: Final = -2_440_588
"""4714-11-24 BC, the first Julian day; the first that there is."""
FIRST_TIMESTAMP: Final = FIRST_DAY * _MICROS_PER_DAY
END_OF_TIMESTAMPS: Final = 9_223_371_331_200_000_000
"""The beginning of the year 294247: later microseconds since 1970 do not fit into 64 bits."""


class Moment:
    """``days`` since 1970-01-01 and the microseconds of the day. ``year`` counts 1 BC as 0."""

    def __init__(self, days: int, micros_of_day: int = 0, *, zoned: bool = False) -> None:
        self.days = days
        self.micros_of_day = micros_of_day
        self.zoned = zoned
        self.year, self.month, self.day = civil(days)
        seconds, self.micros = divmod(micros_of_day, 1_000_000)
        minutes, self.second = divmod(seconds, 60)
        self.hour, self.minute = divmod(minutes, 60)

    @classmethod
    def of_micros(cls, micros: int, *, zoned: bool = False) -> Moment:
        days, rest = divmod(micros, _MICROS_PER_DAY)
        return cls(days, rest, zoned=zoned)

    @property
    def weekday(self) -> int:
        """From 0, Sunday."""
        return (self.days + 4) % 7

    @property
    def day_of_year(self) -> int:
        return self.days - days_from_civil(self.year, 1, 1) + 1

    @cached_property
    def _thursday(self) -> int:
        return self.days - (self.days + 3) % 7 + 3

    @property
    def iso_year(self) -> int:
        return civil(self._thursday)[0]

    @property
    def iso_week(self) -> int:
        return (self._thursday - days_from_civil(self.iso_year, 1, 1)) // 7 + 1


def civil(days: int) -> tuple[int, int, int]:
    """(year, month, day) in the proleptic Gregorian calendar (Hinnant, chrono algorithms)."""
    shifted = days + 719_468
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    day_of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """The inverse of ``civil``; ``day`` may be beyond the month."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + of_era - 719_468


def days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def ordinal_suffix(digits: str) -> str:
    """st, nd, rd or th."""
    if len(digits) > 1 and digits[-2] == "1":
        return "th"
    return {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th")


class Clocks(Protocol):
    """Those of a time zone: their offset to UTC, in microseconds."""

    def at_utc(self, micros: int) -> int: ...

    def at_local(self, micros: int) -> int: ...


def zoned_text(micros: int) -> str:
    """A TIMESTAMPTZ as PostgreSQL shows it in UTC."""
    return _with_offset(timestamp_text(micros), "+00")


def moment_text(micros: int, zone: Clocks) -> str:
    """A TIMESTAMPTZ as PostgreSQL shows it in another zone: ``2024-07-01 12:00:00+02``."""
    offset = zone.at_utc(micros)
    return _with_offset(timestamp_text(micros + offset), offset_text(offset))


def _with_offset(text: str, offset: str) -> str:
    return text + offset if not text.endswith(" BC") else f"{text.removesuffix(' BC')}{offset} BC"


def offset_text(micros: int) -> str:
    """An offset as it stands behind a time: ``+02``, ``-03:30``."""
    return ("-" if micros < 0 else "+") + offset_digits(abs(micros) // 1_000_000)


def offset_digits(seconds: int) -> str:
    """The size of an offset: ``02``, ``03:30``."""
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}"
    if minute or second:
        text += f":{minute:02d}"
    return f"{text}:{second:02d}" if second else text


def timestamp_text(micros: int) -> str:
    """A TIMESTAMP as PostgreSQL shows it."""
    days, time = divmod(micros, _MICROS_PER_DAY)
    text, *era = date_text(days).split(" ")
    return " ".join([text, clock_text(time), *era])


def date_text(days: int) -> str:
    """A DATE as PostgreSQL shows it; years before 1 are counted back from 1 BC."""
    year, month, day = civil(days)
    era = "" if year > 0 else " BC"
    return f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}{era}"
