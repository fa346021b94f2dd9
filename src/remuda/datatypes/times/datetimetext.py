"""Dates and times as PostgreSQL reads them, as numbers, with the errors of SQL. Words that depend
on the moment (``today``) are not read here."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

from remuda.datatypes.times.datetime_fields import (
    BadFormat,
    MonthOrDayOutOfRange,
    OutOfRange,
    UnknownZone,
    ZoneOutOfRange,
    moment_of,
    offset_of,
    time_of,
)
from remuda.datatypes.times.text_forms import MDY
from remuda.errors import (
    DatetimeOverflow,
    InvalidDatetime,
    InvalidParameterValue,
    InvalidZoneDisplacement,
    UnsupportedValue,
)

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND
_PLAIN: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?"
    r"(Z|[+-]\d{2}(?::\d{2})?)?\Z",
    re.ASCII,
)
"""The form of nearly all texts; the others take the longer way."""
_FIRST_DAY: Final = -2_440_588
_LAST_DAY: Final = 2_147_483_494 - 2_440_588
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_date(text: str, order: str = MDY) -> int:
    """Days since 1970-01-01; a time of the day behind the date is checked and dropped. ``order``:
    that of DateStyle.

    Raises InvalidDatetime or DatetimeOverflow, as the others here."""
    days, _, _ = _moment(text, "date", "2013-01-31", order)
    if not _FIRST_DAY <= days < _LAST_DAY:
        raise DatetimeOverflow(f'date out of range: "{text}"')
    return days


def parse_time(text: str) -> int:
    """Microseconds of the day; a zone is not looked at. 24:00:00 is not a time of a day here."""
    micros = _read(time_of, text, "time", "23:59:59.5")
    if micros >= MICROS_PER_DAY:
        raise _out_of_range(text)
    return micros


def parse_timestamp(
    text: str, *, zoned: bool, here: Callable[[int], int] | None = None, order: str = MDY
) -> int:
    """Microseconds since 1970-01-01, in UTC if ``zoned``; else a zone is not looked at. ``here`` is
    the offset at a local time where the text names no zone; None: UTC."""
    kind = "timestamp with time zone" if zoned else "timestamp"
    days, time, offset = _moment(text, kind, "2013-01-31 23:59:59.5", order)
    micros = days * MICROS_PER_DAY + time
    offset = offset or here
    if zoned and offset is not None:
        micros -= offset(micros)
    if not _FIRST_DAY * MICROS_PER_DAY <= micros < 2**63:
        raise DatetimeOverflow(f'timestamp out of range: "{text}"')
    return micros


_Moment: TypeAlias = tuple[int, int, Callable[[int], int] | None]
"""(days, microseconds of the day, offset at a local time)"""


def _moment(text: str, kind: str, example: str, order: str) -> _Moment:
    plain = _PLAIN.match(text)
    if plain is not None:
        year, month, day, hour, minute, second = (int(part or 0) for part in plain.groups()[:6])
        if (
            year and 1 <= month <= 12 and 1 <= day <= month_length(year, month)
            and hour < 24 and minute < 60 and second < 60 and (plain[4] or plain[8] in (None, "Z"))
        ):  # fmt: skip
            micros = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND
            micros += int((plain[7] or "").ljust(6, "0"))
            zone = plain[8] or ""
            east = _read(lambda _: _plain_zone(zone), text, kind, example)
            return days_of(year, month, day), micros, east
    found = _read(lambda each: moment_of(each, order), text, kind, example)
    if found.special.endswith("infinity"):
        raise UnsupportedValue(
            f'infinite values of type {kind} are not supported: "{text.strip()}"',
            hint="NULL, or a day far away such as '9999-12-31', can stand for it.",
        )
    return found.days, found.micros, found.offset


@lru_cache(maxsize=128)
def _plain_zone(text: str) -> Callable[[int], int] | None:
    """The zone of ``Z``, ``+hh`` or ``+hh:mm``, None without one. Raises ZoneOutOfRange."""
    if not text:
        return None
    east = 0 if text == "Z" else offset_of(text)
    return lambda _: east


Found = TypeVar("Found")


def _read(read: Callable[[str], Found], text: str, kind: str, example: str) -> Found:
    try:
        return read(text)
    except BadFormat:
        raise _unreadable(text, kind, example) from None
    except OutOfRange as problem:
        raise _out_of_range(text, isinstance(problem, MonthOrDayOutOfRange)) from None
    except ZoneOutOfRange:
        raise InvalidZoneDisplacement(f'time zone displacement out of range: "{text}"') from None
    except UnknownZone as problem:
        raise InvalidParameterValue(f'time zone "{problem}" not recognized') from None


def _unreadable(text: str, kind: str, example: str) -> InvalidDatetime:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return InvalidDatetime(
        f'invalid input syntax for type {kind}: "{shown}"', hint=f"Write it as '{example}'."
    )


def _out_of_range(text: str, ordered: bool = False) -> DatetimeOverflow:
    """``ordered``: the parts of the date may be in another order."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    return DatetimeOverflow(
        f'date/time field value out of range: "{shown}"',
        hint='Perhaps you need a different "datestyle" setting.' if ordered else "",
    )


def month_length(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _DAYS[month - 1] + (month == 2 and leap)


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date of the proleptic Gregorian calendar; 0 is 1 BC."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + of_era - 719_468
