"""The fields that a template has read, put together to a date, a time of the day and a zone.

As in PostgreSQL a field that is zero counts as not given, and later fields of this list win over
earlier ones: the year, the Julian day, an ISO week, the week of a month, the day, the month; the
day of the year counts if no month or no day is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from remuda.datatypes.sql import TIMESTAMP, restricted
from remuda.datatypes.times.calendar import civil, days_from_civil, days_in_month
from remuda.datatypes.times.time_digits import fit_of
from remuda.errors import DatetimeOverflow, InvalidDatetime, InvalidZoneDisplacement

_DAY: Final = 86_400_000_000
_JULIAN_1970: Final = 2_440_588
_ZONE_HOURS_MAX: Final = 15
_MONTHS: Final = range(1, 13)
_DAYS: Final = range(1, 32)


@dataclass
class Values:
    """The fields that a template has read of ``text``. ``iso``: whether its dates are of ISO weeks,
    None while no field tells; ``fraction``: the digits of a field FFn; ``half_day``: hours are 1 to
    12."""

    text: str
    fields: dict[str, int] = field(default_factory=dict)
    iso: bool | None = None
    half_day: bool = False
    year_digits: int = 0
    zone_sign: int = 0
    fraction: int | None = None

    def get(self, name: str) -> int:
        return self.fields.get(name, 0)


class Assembled(NamedTuple):
    """``days`` since 1970-01-01, ``micros`` of the day, ``offset`` of its zone in seconds east of
    UTC."""

    days: int
    micros: int
    offset: int

    @property
    def instant(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return self.days * _DAY + self.micros - self.offset * 1_000_000


def assembled(values: Values) -> Assembled:
    """Raises InvalidDatetime for fields that contradict each other, DatetimeOverflow for what is
    out of range, and InvalidZoneDisplacement."""
    micros_of_hour = _clock(values)
    days = _date(values)
    micros = _checked_time(values, micros_of_hour)
    offset = _offset(values)
    return Assembled(days, micros, offset)


def to_digits(found: Assembled, digits: int | None) -> Assembled:
    """``found`` rounded to the digits of a field FFn. Raises DatetimeOverflow."""
    fit = None if digits is None else fit_of(restricted(TIMESTAMP, digits))
    if fit is None:
        return found
    days, micros = divmod(fit(found.instant) + found.offset * 1_000_000, _DAY)
    return Assembled(days, micros, found.offset)


def _out_of_range(values: Values) -> DatetimeOverflow:
    return DatetimeOverflow(f'date/time field value out of range: "{values.text}"')


def _clock(values: Values) -> tuple[int, int, int]:
    """Hour, minute and second."""
    hour, rest = divmod(values.get("seconds"), 3600)
    minute, second = divmod(rest, 60)
    second, minute = values.get("second") or second, values.get("minute") or minute
    hour = values.get("hour") or hour
    if values.half_day:
        if not 1 <= hour <= 12:
            raise InvalidDatetime(
                f'hour "{hour}" is invalid for the 12-hour clock',
                hint="Use the 24-hour clock, or give an hour between 1 and 12.",
            )
        hour = hour % 12 + 12 * values.get("afternoon")
    return hour, minute, second


def _checked_time(values: Values, clock: tuple[int, int, int]) -> int:
    hour, minute, second = clock
    fraction = values.get("millis") * 1000 + values.get("micros")
    bounds = ((hour, 24), (minute, 60), (second, 60), (fraction, 1_000_000))
    if not all(0 <= value < end for value, end in bounds):
        raise _out_of_range(values)
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction


def _year(values: Values) -> int:
    """1 BC is 0."""
    year, century = values.get("year"), values.get("century")
    christ = -1 if values.get("before christ") else 1
    if not year:
        century *= christ
        return century * 100 + (1 if century < 0 else -99) if century else 0
    if not century or values.year_digits > 2:
        year *= christ
        return year + (year < 0)
    century *= christ
    low = abs(year) % 100 * (-1 if year < 0 else 1)
    if not low:
        return century * 100 + (century < 0)
    return low + (century - 1) * 100 if century >= 0 else (century + 1) * 100 - low + 1


def _date(values: Values) -> int:
    year = _year(values)
    given = {"year"} if values.get("year") or values.get("century") else set()
    month = day = 1
    whole = {"year", "month", "day"}
    if values.get("julian"):
        year, month, day = civil(values.get("julian") - _JULIAN_1970)
        given = whole
    day_of_year, day_of_month = values.get("day of year"), values.get("day")
    if week := values.get("week"):
        if values.iso:
            year, month, day = civil(_iso_week(year, week) + _day_of_week(values))
            given = whole
        else:
            day_of_year = (week - 1) * 7 + 1
    if week_of_month := values.get("week of month"):
        day_of_month = (week_of_month - 1) * 7 + 1
    if day_of_month:
        day, given = day_of_month, given | {"day"}
    if values.get("month"):
        month, given = values.get("month"), given | {"month"}
    if day_of_year and (month <= 1 or day <= 1):
        if not year and not values.get("before christ"):
            raise InvalidDatetime("cannot calculate day of year without year information")
        given_year, given = given, whole
        if values.iso:
            year, month, day = civil(_iso_week(year, 1) - 1 + day_of_year)
        else:
            found = _month_and_day(year, day_of_year)
            month = found[0] if month <= 1 else month
            day = found[1] if day <= 1 else day
            given = given_year | {"month", "day"}
    _check_date(values, year, month, day, given)
    return days_from_civil(year, month, 1) + day - 1


def _month_and_day(year: int, day_of_year: int) -> tuple[int, int]:
    """Month 13 for a day behind the year's last."""
    month, before = 1, 0
    while month < 13 and day_of_year > before + days_in_month(year, min(month, 12)):
        before += days_in_month(year, month)
        month += 1
    return month, day_of_year - before


def _check_date(values: Values, year: int, month: int, day: int, given: set[str]) -> None:
    """Of a date without a year only what is impossible in any month."""
    if ("month" in given and month not in _MONTHS) or ("day" in given and day not in _DAYS):
        raise _out_of_range(values)
    if len(given) == 3 and day > days_in_month(year, month):
        raise _out_of_range(values)


def _iso_week(year: int, week: int) -> int:
    """The Monday of a week, in days since 1970-01-01."""
    fourth = days_from_civil(year, 1, 4)
    return fourth - (fourth + 3) % 7 + (week - 1) * 7


def _day_of_week(values: Values) -> int:
    """Days after Monday; weekdays count from Sunday, which is 1 and ends a week."""
    weekday = values.get("weekday")
    if not weekday:
        return 0
    return weekday - 2 if weekday > 1 else 6


def _offset(values: Values) -> int:
    if not values.zone_sign:
        return 0
    hours, minutes = values.get("zone hours"), values.get("zone minutes")
    if not (0 <= hours <= _ZONE_HOURS_MAX and 0 <= minutes < 60):
        raise InvalidZoneDisplacement(f'time zone displacement out of range: "{values.text}"')
    return (hours * 60 + minutes) * 60 * values.zone_sign
