"""Time zones by name, abbreviation or offset, from the system's time zone database.

Times that a change of clocks skips, and those that it makes happen twice, are taken as standard
time, as PostgreSQL does.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from remuda.datatypes.sql import SqlType, has_moments
from remuda.datatypes.times.text_forms import PLAIN_FORMS, TextForms
from remuda.datatypes.times.zone_abbreviations import OFFSETS, ZONES
from remuda.errors import InvalidParameterValue

_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?\Z")
_POSIX = re.compile(r"[A-Za-z]{3,}([+-]?)([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?\Z")
"""A name that says nothing, and an offset to the west: ``EST5``, ``UTC+3``."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]*\Z")
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a clock without a zone)
_MICRO: Final = dt.timedelta(microseconds=1)
_HOUR: Final = 3600
_CYCLE: Final = 146_097 * 86_400_000_000
"""Microseconds of 400 years."""
_EARLIEST: Final = (dt.datetime(2, 1, 1) - _EPOCH) // _MICRO  # noqa: DTZ001 (no zone)
_LATEST: Final = (dt.datetime(9998, 1, 1) - _EPOCH) // _MICRO  # noqa: DTZ001 (no zone)
"""From one to the other the offsets of a zone stay within the years of Python."""
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2038
_OTHERS: Final = {"ZULU": 0, "MEZ": 3600, "MESZ": 7200, "WET": 0, "WEST": 3600, "Z": 0, "UTC": 0}
"""Abbreviations that hold besides PostgreSQL's."""


class Zone:
    """``at_utc`` and ``at_local``: the offset at a time in UTC, or on the clocks of the zone."""

    def __init__(
        self,
        name: str,
        fixed: int | None,
        info: dt.tzinfo | None,
        abbreviation: str = "",
        forms: TextForms = PLAIN_FORMS,
    ) -> None:
        self.name = name
        self.forms = forms
        """Those of the session whose zone it is."""
        self._abbreviation = abbreviation
        """The zone's own name of its time, for the offset that this name meant then."""
        self.fixed = fixed
        """The offset in microseconds, if it never changes."""
        self._info = info

    def with_forms(self, forms: TextForms) -> Zone:
        return Zone(self.name, self.fixed, self._info, self._abbreviation, forms)

    def writes(self, sql_type: SqlType) -> bool:
        """Whether values of the type have another text in the session than elsewhere."""
        return has_moments(sql_type) or self.forms.writes(sql_type)

    def reads(self, sql_type: SqlType) -> bool:
        """Whether texts can mean other values of the type in the session than elsewhere."""
        return has_moments(sql_type) or self.forms.reads(sql_type)

    def converts(self, source: SqlType, target: SqlType) -> bool:
        """Whether a CAST to text or from text, also of elements of arrays, depends on the
        session."""
        if _innermost(target).is_text:
            return self.writes(source)
        return _innermost(source).is_text and self.reads(target)

    def at_utc(self, micros: int) -> int:
        if self.fixed is not None:
            return self.fixed
        assert self._info is not None
        if self._abbreviation:
            return self._called(micros)
        moment = _moment(micros).replace(tzinfo=dt.UTC).astimezone(self._info)
        return (moment.utcoffset() or dt.timedelta()) // _MICRO

    def at_local(self, micros: int) -> int:
        if self.fixed is not None:
            return self.fixed
        if self._abbreviation:
            return self._called(micros)
        clock = _moment(micros)
        both = [clock.replace(tzinfo=self._info, fold=fold).utcoffset() for fold in (0, 1)]
        return min(offset // _MICRO for offset in both if offset is not None)

    def called(self, micros: int) -> str:
        """The name of the zone's time at a time in UTC: ``CEST``; of a fixed offset, its own."""
        if self._info is None:
            return self.name
        return _moment(micros).replace(tzinfo=dt.UTC).astimezone(self._info).tzname() or ""

    def _called(self, micros: int) -> int:
        """The offset at the last time at which the zone used the abbreviation, or at its first use
        after; its offset at the time itself if it never uses it."""
        clock = _moment(micros)
        here = [clock.replace(tzinfo=self._info, fold=fold) for fold in (0, 1)]
        same = [each.utcoffset() for each in here if each.tzname() == self._abbreviation]
        if not same:
            assert self._info is not None
            uses = _uses(self._info, self._abbreviation)
            place = max(0, bisect(uses, (clock, dt.timedelta.max)) - 1)
            same = [uses[place][1]] if uses else [each.utcoffset() for each in here]
        return min(offset // _MICRO for offset in same if offset is not None)


@lru_cache(maxsize=64)
def _innermost(sql_type: SqlType) -> SqlType:
    return sql_type if sql_type.element is None else _innermost(sql_type.element)


def _uses(info: dt.tzinfo, abbreviation: str) -> list[tuple[dt.datetime, dt.timedelta]]:
    """The months in which a zone uses an abbreviation, with its offsets."""
    found: list[tuple[dt.datetime, dt.timedelta]] = []
    for year in range(_FIRST_YEAR, _LAST_YEAR):
        for month in range(1, 13):
            clock = dt.datetime(year, month, 15)  # noqa: DTZ001 (a clock of the zone)
            there = clock.replace(tzinfo=info)
            if there.tzname() == abbreviation:
                found.append((clock, there.utcoffset() or dt.timedelta()))
    return found


def _moment(micros: int) -> dt.datetime:
    """The time, within the years that Python has: a calendar begins anew every 400 years, and the
    rules of a zone are the same in all years before its first one and after its last one."""
    if micros < _EARLIEST:
        micros += -((micros - _EARLIEST) // _CYCLE) * _CYCLE
    elif micros >= _LATEST:
        micros -= ((micros - _LATEST) // _CYCLE + 1) * _CYCLE
    return _EPOCH + micros * _MICRO


@lru_cache(maxsize=256)
def zone(name: str, posix: bool = True) -> Zone:
    """The zone ``Europe/Berlin``, ``CET``, ``+02:00`` ...; InvalidParameterValue without one.

    With ``posix`` a bare offset counts to the west, as in PostgreSQL's AT TIME ZONE; without, to
    the east, as in the text of a timestamp.
    """
    stripped = name.strip()
    match = _OFFSET.match(stripped) or _POSIX.match(stripped)
    if match is not None:
        offset = int(match[2]) * _HOUR + int(match[3] or 0) * 60 + int(match[4] or 0)
        named = stripped[0] not in "+-"
        east = (match[1] != "-") is not (posix or named)
        return Zone(name, (offset if east else -offset) * 1_000_000, None)
    upper = stripped.upper()
    seconds = OFFSETS.get(upper, _OTHERS.get(upper))
    if seconds is not None:
        return Zone(name, seconds * 1_000_000, None)
    if upper in ZONES:
        return Zone(name, None, _info(ZONES[upper], name), upper)
    if _NAME.match(stripped) is None:
        raise _unknown(name)
    return Zone(name, None, _info(stripped, name))


def _info(key: str, name: str) -> dt.tzinfo:
    spellings = (key, "/".join(_capital(part) for part in key.split("/")), key.upper())
    for spelling in dict.fromkeys(spellings):
        try:
            return ZoneInfo(spelling)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    raise _unknown(name)


def _capital(part: str) -> str:
    return "_".join(word.capitalize() for word in part.split("_"))


def _unknown(name: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f'time zone "{name[:60]}" not recognized',
        hint="Write a name of the time zone database, as 'Europe/Berlin', or an offset, '+02:00'.",
    )
