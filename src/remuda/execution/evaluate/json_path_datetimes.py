"""Dates and times in SQL/JSON paths: how ``.datetime()`` reads a text, and how they compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from remuda.datatypes.times.calendar import date_text, timestamp_text
from remuda.datatypes.times.intervals import clock_text
from remuda.errors import (
    DatetimeOverflow,
    InvalidDatetime,
    InvalidJsonDatetimeArgument,
    UnsupportedValue,
)
from remuda.execution.evaluate.datetime_strict import StrictReader

_DAY: Final = 86_400_000_000
DATE, TIME, TIMETZ = "date", "time without time zone", "time with time zone"
TIMESTAMP, TIMESTAMPTZ = "timestamp without time zone", "timestamp with time zone"
_SHORT: Final = {TIME: "time", TIMETZ: "timetz", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamptz"}
_PLAIN: Final = (
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS",
    'yyyy-mm-dd"T"HH24:MI:SS.USTZH:TZM',
    'yyyy-mm-dd"T"HH24:MI:SS.USTZH',
    'yyyy-mm-dd"T"HH24:MI:SS.US',
    'yyyy-mm-dd"T"HH24:MI:SSTZH:TZM',
    'yyyy-mm-dd"T"HH24:MI:SSTZH',
    'yyyy-mm-dd"T"HH24:MI:SS',
)
"""The forms that are tried, in this order, without a template."""


class JsonMoment(NamedTuple):
    """``days`` since 1970-01-01 and microseconds of the day, both of the clock on the wall;
    ``offset`` is the zone's, in seconds east of UTC. Fields that the type does not have are 0."""

    type: str
    days: int = 0
    micros: int = 0
    offset: int = 0

    @property
    def instant(self) -> int:
        return self.days * _DAY + self.micros - self.offset * 1_000_000

    def text(self) -> str:
        if self.type == DATE:
            return date_text(self.days)
        zone = _zone_text(self.offset) if self.type in (TIMETZ, TIMESTAMPTZ) else ""
        if self.type in (TIME, TIMETZ):
            return clock_text(self.micros) + zone
        shown = timestamp_text(self.days * _DAY + self.micros).replace(" ", "T", 1)
        if shown.endswith(" BC"):
            return shown.removesuffix(" BC") + zone + " BC"
        return shown + zone


def _zone_text(offset: int) -> str:
    minutes, seconds = divmod(abs(offset), 60)
    shown = f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{shown}:{seconds:02d}" if seconds else shown


def moment_of(text: str, template: str | None) -> JsonMoment:
    """Raises InvalidDatetime for a text that the template does not fit (or for the template), and
    InvalidJsonDatetimeArgument for a text in none of the standard forms."""
    if template is not None:
        return _read(text, template)
    for form in _forms(text):
        try:
            return _read(text, form)
        except InvalidDatetime:
            continue
    raise InvalidJsonDatetimeArgument(
        f'datetime format is not recognized: "{text}"',
        hint="Use a datetime template argument to specify the input data format.",
    )


def _forms(text: str) -> Iterator[str]:
    """Those that can fit at all; the others would only cost time."""
    for form in _PLAIN:
        if (":" in form) == (":" in text) and (".US" in form) == ("." in text):
            yield form


def _read(text: str, template: str) -> JsonMoment:
    reader = StrictReader(text, template)
    dated, timed, zoned = reader.dated, reader.timed, reader.zoned
    if not dated and not timed:
        raise InvalidDatetime("datetime format is not dated and not timed")
    if zoned and not timed:
        raise InvalidDatetime("datetime format is zoned but not timed")
    days, micros, offset = reader.moment()
    if not dated:
        return JsonMoment(TIMETZ if zoned else TIME, 0, micros, offset)
    if not timed:
        return JsonMoment(DATE, days)
    moment = JsonMoment(TIMESTAMPTZ if zoned else TIMESTAMP, days, micros, offset)
    if not -(2**63) < moment.instant - 946_684_800_000_000 < 2**63:
        raise DatetimeOverflow("timestamp out of range")
    return moment


def compared(left: JsonMoment, right: JsonMoment, zones: bool) -> int | None:
    """-1, 0 or 1; None if values of these types do not compare. Raises UnsupportedValue where the
    session's zone would decide and ``zones`` does not allow it; this zone is UTC."""
    times = left.type in (TIME, TIMETZ), right.type in (TIME, TIMETZ)
    if times[0] != times[1]:
        return None
    zoned = left.type in (TIMETZ, TIMESTAMPTZ), right.type in (TIMETZ, TIMESTAMPTZ)
    if zoned[0] != zoned[1] and not zones:
        plain, other = (left, right) if zoned[1] else (right, left)
        raise UnsupportedValue(
            f"cannot convert value from {_SHORT.get(plain.type, plain.type)} to "
            f"{_SHORT[other.type]} without time zone usage",
            hint="Use *_tz() function for time zone support.",
        )
    difference = left.instant - right.instant
    if difference == 0 and all(times) and any(zoned):
        difference = right.offset - left.offset  # PostgreSQL orders by the zone then
    return (difference > 0) - (difference < 0)
