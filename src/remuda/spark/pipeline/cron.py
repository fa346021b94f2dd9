"""Cron lines: when is it next? The five fields of crontab(5), without its names for users.

A day fits when both day fields do, or one of them if both are restricted: as cron has it.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from remuda.errors import InputError

_FIELDS: Final = (
    ("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12),
    ("day of the week", 0, 7),
)  # fmt: skip
_NAMES: Final = {
    "month": {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name},
    "day of the week": {
        name: number
        for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
    },
}
_SHORT: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_ITEM: Final = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?\Z")
_YEARS_AHEAD: Final = 8
"""29 February on a given day of the week can be that far, and farther: then it is refused."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The values that each field allows; ``zone`` is an IANA name."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    text: str
    zone: str = "UTC"

    def after(self, moment: datetime) -> datetime:
        """The first full minute that fits, after ``moment`` (with a zone); in UTC.

        Local times that a change of clocks leaves out do not come; those that come twice come once.
        Raises InputError when there is none within eight years.
        """
        zone = ZoneInfo(self.zone)
        # Wall time without a zone: days are walked through on the calendar, not by hours.
        local = moment.astimezone(zone).replace(second=0, microsecond=0, tzinfo=None)
        wall = local + timedelta(minutes=1)
        limit = wall.year + _YEARS_AHEAD
        while wall.year <= limit:
            if not self._day_fits(wall):
                wall = datetime(wall.year, wall.month, wall.day) + timedelta(days=1)  # noqa: DTZ001
            elif wall.hour not in self.hours:
                wall = wall.replace(minute=0) + timedelta(hours=1)
            elif wall.minute not in self.minutes:
                wall += timedelta(minutes=1)
            else:
                found = wall.replace(tzinfo=zone).astimezone(UTC)
                exists = found.astimezone(zone).replace(tzinfo=None) == wall
                if exists and found > moment:
                    return found
                wall += timedelta(minutes=1)
        raise InputError(f"the schedule {self.text!r} never comes")

    def _day_fits(self, wall: datetime) -> bool:
        if wall.month not in self.months:
            return False
        by_month = wall.day in self.days
        by_week = wall.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either_day else by_month and by_week


def parse_cron(text: str, zone: str = "UTC") -> Cron:
    """``minute hour day month weekday``, or ``@daily`` and the like. Raises ``InputError``."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"there is no time zone {zone!r}", hint="As Europe/Berlin, UTC.") from None
    words = _SHORT.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        raise InputError(
            f"{text!r} is no cron line: it has {len(words)} fields instead of 5",
            hint='Minute, hour, day of the month, month, day of the week: "*/10 8-18 * * mon-fri".',
        )
    values = [_field(word, *field, text=text) for word, field in zip(words, _FIELDS, strict=True)]
    weekdays = frozenset(value % 7 for value in values[4])
    # A field that begins with a star restricts nothing, as far as this rule goes.
    either = not words[2].startswith("*") and not words[4].startswith("*")
    cron = Cron(values[0], values[1], values[2], values[3], weekdays, either, text.strip(), zone)
    cron.after(datetime(2024, 1, 1, tzinfo=UTC))
    return cron


def _field(word: str, what: str, low: int, high: int, *, text: str) -> frozenset[int]:
    found: set[int] = set()
    for item in word.split(","):
        match = _ITEM.match(item)
        if match is None:
            raise InputError(f"{item!r} in the cron line {text!r} is no {what}")
        star, first, last, step = match.groups()
        start = low if star else _number(first, what, low, high, text)
        # "5/10" goes on from 5, as "5-59/10".
        end = high if star or (step and not last) else start
        if last:
            end = _number(last, what, low, high, text)
        if end < start or (step is not None and int(step) == 0):
            raise InputError(f"{item!r} in the cron line {text!r} holds no {what}")
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)


def _number(word: str, what: str, low: int, high: int, text: str) -> int:
    named = _NAMES.get(what, {}).get(word.lower())
    if named is not None:
        return named
    if not word.isdecimal() or not low <= int(word) <= high:
        raise InputError(
            f"{word!r} in the cron line {text!r} is no {what}: {low} to {high} are allowed"
        )
    return int(word)
