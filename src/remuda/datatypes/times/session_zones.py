"""The time zone of a session: the values of ``SET TimeZone``, and the clock and the forms for
reading and writing texts."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from remuda.datatypes.times.calendar import offset_digits
from remuda.datatypes.times.text_forms import PLAIN_FORMS, TextForms, decode_forms
from remuda.datatypes.times.zones import Zone

UTC: Final = "UTC"
_HOURS: Final = re.compile(r"[+-]?\d{1,4}(\.\d+)?\Z")
"""Hours to the east: ``SET TIME ZONE -7``."""
_FIXED: Final = re.compile(
    r"(?:<(?P<quoted>[A-Za-z0-9+:-]+)>|(?P<plain>[A-Za-z]{3,})|(?=[+-]))"
    r"(?P<sign>[+-]?)(?P<hours>\d{1,3})(?::(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d))?)?\Z"
)
"""POSIX: a name, which may be left out, and an offset to the west."""
_LIMIT: Final = 168 * 3600
_EXAMPLES: Final = "a name of the time zone database such as Europe/Berlin, or hours east of UTC"


def zone_name(value: str) -> str:
    """The name under which ``session_zone`` knows the zone. Raises ValueError with what is
    allowed."""
    value = value.strip()
    if value.lower() in ("local", "default"):
        return UTC
    if _HOURS.match(value):
        return east_of_utc(float(value) * 3600)
    named = _names().get(value.lower())
    if named is not None:
        return named
    fixed = _FIXED.match(value)
    if fixed is None or abs(_west(fixed)) > _LIMIT:
        raise ValueError(_EXAMPLES)
    return value


def east_of_utc(seconds: float) -> str:
    """The POSIX name of an offset, as PostgreSQL shows it: ``<-07>+07``. Raises ValueError."""
    if abs(seconds) > _LIMIT:
        raise ValueError("an offset of at most 168 hours")
    whole = round(seconds)
    text = offset_digits(abs(whole))
    east, west = ("-", "+") if whole < 0 else ("+", "-")
    return f"<{east}{text}>{west}{text}"


def zone_with_forms(name: str, forms: TextForms) -> str:
    """The text by which ``session_zone`` knows a zone and the forms of its session."""
    return name if forms == PLAIN_FORMS else f"{name};{forms.encode()}"


@lru_cache(maxsize=64)
def session_zone(text: str) -> Zone | None:
    """The zone of a name that ``zone_name`` gave, or of a text that ``zone_with_forms`` made. None
    where clocks show UTC, and texts have the usual forms."""
    name, semicolon, forms = text.partition(";")
    found = _named(name)
    if not semicolon:
        return found
    return (found or Zone(UTC, 0, None)).with_forms(decode_forms(forms))


def _named(name: str) -> Zone | None:
    if name == UTC:
        return None
    if name in _names().values():
        info = ZoneInfo(name)
        return None if _is_utc(info) else Zone(name, None, info)
    fixed = _FIXED.match(name)
    assert fixed is not None
    west = _west(fixed)
    called = fixed["quoted"] or fixed["plain"] or ""
    return Zone(called, -west * 1_000_000, None) if west or called != UTC else None


def _west(fixed: re.Match[str]) -> int:
    minutes, seconds = int(fixed["minutes"] or 0), int(fixed["seconds"] or 0)
    size = int(fixed["hours"]) * 3600 + minutes * 60 + seconds
    return -size if fixed["sign"] == "-" else size


def _is_utc(info: ZoneInfo) -> bool:
    """The names of UTC; not GMT, which has another abbreviation."""
    there = dt.datetime(2000, 1, 1, tzinfo=info)
    return there.tzname() == UTC and info.key in _UTC_NAMES


_UTC_NAMES: Final = frozenset(
    {"UTC", "UCT", "Zulu", "Universal", "Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal"}
)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """The zones of the database by their names in small letters."""
    return {name.lower(): name for name in (*available_timezones(), UTC)}
