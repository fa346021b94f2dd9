"""Dates and times as PostgreSQL reads them: ISO 8601, months by name, month/day/year with slashes,
compact digits, AM and PM, BC, ``epoch``. What depends on the moment (``today``) is not read."""

from __future__ import annotations

import re
from typing import Final

from remuda.datatypes.zones import zone
from remuda.errors import (
    DatetimeOverflow,
    InvalidDatetime,
    InvalidParameterValue,
    InvalidZoneDisplacement,
    UnsupportedValue,
)

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_MONTH: Final = (
    r"(?P<name{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATE: Final = (
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?(?:"
    r"(?P<y1>\d{4,6})-(?P<m1>\d{1,2})-(?P<d1>\d{1,2})"
    r"|(?P<y2>\d{4,6})[/.](?P<m2>\d{1,2})[/.](?P<d2>\d{1,2})"
    r"|(?P<m3>\d{1,2})[-/.](?P<d3>\d{1,2})[-/.](?P<y3>\d{4,6})"
    r"|(?P<y4>\d{4})(?P<m4>\d{2})(?P<d4>\d{2})"
    r"|" + _MONTH.format(5) + r"[\s-]*(?P<d5>\d{1,2})(?:st|nd|rd|th)?,?[\s-]+(?P<y5>\d{4,6})"
    r"|(?P<d6>\d{1,2})(?:st|nd|rd|th)?[\s-]*" + _MONTH.format(6) + r",?[\s-]*(?P<y6>\d{4,6})"
    r"|(?P<y7>\d{4,6})[\s-]+" + _MONTH.format(7) + r"[\s-]+(?P<d7>\d{1,2})"
    r"|j(?P<julian>\d{1,8}))"
)
_TIME: Final = (
    r"(?:(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,12}))?)?"
    r"|(?P<compact>\d{4}(?:\d{2})?)(?:\.(?P<compact_fraction>\d{1,12}))?)"
    r"\s*(?:(?P<half>am|pm)(?![a-z]))?"
)
_ZONE: Final = (
    r"\s*(?P<zone>z|(?:utc|gmt)?[+-]\d{1,2}(?::?\d{2})?(?::\d{2})?"
    r"|(?!bc\b|ad\b)[a-z][a-z_]+(?:/[a-z0-9_+-]+){0,2})?"
)
_ERA: Final = r"\s*(?P<era>bc|ad)?"
_TIME_ONLY = re.compile(rf"(?:{_DATE}[\st]+)?t?{_TIME}{_ZONE}\Z", re.IGNORECASE)
_EARLY_ERA: Final = r"(?:\s*(?P<early_era>bc|ad)(?![a-z]))?"
_MOMENT = re.compile(
    rf"{_DATE}(?:(?:\s+|\s*t\s*){_TIME}|(?!-)){_EARLY_ERA}{_ZONE}{_ERA}\Z", re.IGNORECASE
)
_ZONE_LIMIT: Final = 16 * 3600 * MICROS_PER_SECOND
_FIRST_DAY: Final = -2_440_588
_LAST_DAY: Final = 2_147_483_647 - 10_957
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_date(text: str) -> int:
    """Days since 1970-01-01; a time of the day behind the date is checked and dropped.

    Raises InvalidDatetime or DatetimeOverflow, as the others here."""
    stripped = text.strip()
    if stripped.lower() == "epoch":
        return 0
    match = _MOMENT.match(stripped)
    if match is None:
        raise _unreadable(text, "date", "2013-01-31")
    if match["hour"] or match["compact"]:
        _time(match, text)
    if match["zone"]:
        _from_zone(0, match["zone"], text, "date")
    return _date(match, text)


def parse_time(text: str) -> int:
    """Microseconds of the day; a zone is not looked at. 24:00:00 is not a time of a day here."""
    match = _TIME_ONLY.match(text.strip())
    if match is None:
        raise _unreadable(text, "time", "23:59:59.5")
    micros = _time(match, text)
    if micros >= MICROS_PER_DAY:
        raise _out_of_range(text)
    return micros


def parse_timestamp(text: str, *, zoned: bool) -> int:
    """Microseconds since 1970-01-01, in UTC if ``zoned``; else a zone is not looked at."""
    kind = "timestamp with time zone" if zoned else "timestamp"
    stripped = text.strip()
    if stripped.lower() == "epoch":
        return 0
    match = _MOMENT.match(stripped)
    if match is None:
        raise _unreadable(text, kind, "2013-01-31 23:59:59.5")
    micros = _date(match, text) * MICROS_PER_DAY
    if match["hour"] or match["compact"]:
        micros += _time(match, text)
    if match["zone"]:
        there = _from_zone(micros, match["zone"], text, kind)
        micros = there if zoned else micros
    if not -(2**63) <= micros < 2**63:
        raise DatetimeOverflow(f'timestamp out of range: "{text}"')
    return micros


_INFINITE: Final = frozenset({"infinity", "-infinity", "+infinity"})


def _unreadable(text: str, kind: str, example: str) -> InvalidDatetime | UnsupportedValue:
    if text.strip().lower() in _INFINITE:
        return UnsupportedValue(
            f'infinite values of type {kind} are not supported: "{text.strip()}"',
            hint="NULL, or a day far away such as '9999-12-31', can stand for it.",
        )
    shown = text if len(text) <= 60 else text[:57] + "..."
    return InvalidDatetime(
        f'invalid input syntax for type {kind}: "{shown}"', hint=f"Write it as '{example}'."
    )


def _out_of_range(text: str) -> DatetimeOverflow:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return DatetimeOverflow(f'date/time field value out of range: "{shown}"')


def _date(match: re.Match[str], text: str) -> int:
    if match["julian"]:
        return int(match["julian"]) - 2_440_588
    form = next(n for n in range(1, 8) if match[f"y{n}"])
    year, day = int(match[f"y{form}"]), int(match[f"d{form}"])
    month = (
        int(match[f"m{form}"]) if form < 5 else _MONTHS.index(match[f"name{form}"][:3].lower()) + 1
    )
    groups = match.groupdict()
    if (groups.get("era") or groups.get("early_era") or "").lower() == "bc":
        year = 1 - year
    elif year == 0:
        raise _out_of_range(text)
    if not 1 <= month <= 12 or not 1 <= day <= month_length(year, month):
        raise _out_of_range(text)
    days = days_of(year, month, day)
    if not _FIRST_DAY <= days < _LAST_DAY:
        raise DatetimeOverflow(f'date out of range: "{text}"')
    return days


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


def _time(match: re.Match[str], text: str) -> int:
    if match["compact"]:
        digits = match["compact"].ljust(6, "0")
        hour, minute, second = int(digits[:2]), int(digits[2:4]), int(digits[4:])
        fraction = match["compact_fraction"]
    else:
        hour, minute = int(match["hour"]), int(match["minute"])
        second, fraction = int(match["second"] or 0), match["fraction"]
    if match["half"]:
        if not 1 <= hour <= 12:
            raise _out_of_range(text)
        hour = hour % 12 + (12 if match["half"].lower() == "pm" else 0)
    micros = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND
    micros += round(int((fraction or "0").ljust(12, "0")) / 1_000_000)
    if hour > 24 or minute > 59 or second > 60 or micros > MICROS_PER_DAY:
        raise _out_of_range(text)
    return micros


def _from_zone(micros: int, name: str, text: str, kind: str) -> int:
    """Local time as UTC."""
    if name.lower() in ("z", "utc", "gmt"):
        return micros
    try:
        offset = zone(name, posix=False).at_local(micros)
    except InvalidParameterValue:
        raise _unreadable(text, kind, "2013-01-31 23:59:59.5+01") from None
    if abs(offset) >= _ZONE_LIMIT:
        raise InvalidZoneDisplacement(f'time zone displacement out of range: "{text}"')
    return micros - offset
