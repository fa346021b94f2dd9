"""Time zones by name, abbreviation or offset, from the system's time zone database.

Times that a change of clocks skips, and those that it makes happen twice, are taken as standard
time, as PostgreSQL does.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from remuda.errors import DatetimeOverflow, InvalidParameterValue

_OFFSET = re.compile(
    r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?\Z", re.IGNORECASE
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]*\Z")
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a clock without a zone)
_MICRO: Final = dt.timedelta(microseconds=1)
_HOUR: Final = 3600
_ABBREVIATIONS: Final = {
    "UTC": 0, "GMT": 0, "Z": 0, "ZULU": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2,
    "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3, "MSK": 3, "AST": -4, "ADT": -3, "EST": -5, "EDT": -4,
    "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8,
    "HST": -10, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
}  # fmt: skip
"""Hours east of UTC."""


class Zone:
    """``at_utc`` and ``at_local``: the offset at a time in UTC, or on the clocks of the zone."""

    def __init__(self, name: str, fixed: int | None, info: dt.tzinfo | None) -> None:
        self.name = name
        self.fixed = fixed
        """The offset in microseconds, if it never changes."""
        self._info = info

    def at_utc(self, micros: int) -> int:
        """Raises DatetimeOverflow outside of the years 1 to 9999."""
        if self.fixed is not None:
            return self.fixed
        assert self._info is not None
        moment = _moment(micros).replace(tzinfo=dt.UTC).astimezone(self._info)
        return (moment.utcoffset() or dt.timedelta()) // _MICRO

    def at_local(self, micros: int) -> int:
        """Raises DatetimeOverflow outside of the years 1 to 9999."""
        if self.fixed is not None:
            return self.fixed
        clock = _moment(micros)
        both = [clock.replace(tzinfo=self._info, fold=fold).utcoffset() for fold in (0, 1)]
        return min(offset // _MICRO for offset in both if offset is not None)


def _moment(micros: int) -> dt.datetime:
    try:
        return _EPOCH + micros * _MICRO
    except OverflowError as error:
        raise DatetimeOverflow("timestamp out of range for a time zone") from error


@lru_cache(maxsize=256)
def zone(name: str, posix: bool = True) -> Zone:
    """The zone ``Europe/Berlin``, ``CET``, ``+02:00`` ...; InvalidParameterValue without one.

    With ``posix`` a bare offset counts to the west, as in PostgreSQL's AT TIME ZONE; without, to
    the east, as in the text of a timestamp.
    """
    stripped = name.strip()
    match = _OFFSET.match(stripped)
    if match is not None:
        seconds = int(match[2]) * _HOUR + int(match[3] or 0) * 60 + int(match[4] or 0)
        east = (match[1] == "+") is not posix
        return Zone(name, (seconds if east else -seconds) * 1_000_000, None)
    hours = _ABBREVIATIONS.get(stripped.upper())
    if hours is not None:
        return Zone(name, hours * _HOUR * 1_000_000, None)
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
