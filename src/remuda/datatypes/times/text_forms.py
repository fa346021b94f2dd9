"""The forms in which a session writes and reads values as text: DateStyle, IntervalStyle,
bytea_output and extra_float_digits.

``TextForms`` is one value of them. They travel behind the name of the session's time zone, as
``Europe/Berlin;SQL,DMY;iso_8601;escape;-3``: see ``session_zones``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.calendar import civil
from remuda.datatypes.times.intervals import MONTHS_PER_YEAR, clock_text, interval_text

MDY: Final = "MDY"
ORDERS: Final = (MDY, "DMY", "YMD")
STYLES: Final = ("ISO", "SQL", "Postgres", "German")
INTERVAL_STYLES: Final = ("postgres", "postgres_verbose", "sql_standard", "iso_8601")
BYTEA_FORMS: Final = ("hex", "escape")
_MICROS_PER_DAY: Final = 86_400_000_000
_MICROS_PER_SECOND: Final = 1_000_000
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
)  # fmt: skip
_MOMENTS: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_FLOAT_DIGITS: Final = {Kind.REAL: 6, Kind.DOUBLE: 15}
"""The digits that survive any conversion to text and back."""


@dataclass(frozen=True, slots=True)
class TextForms:
    """``float_digits``: extra_float_digits; above 0 numbers are written exactly."""

    style: str = "ISO"
    order: str = MDY
    intervals: str = "postgres"
    bytea: str = "hex"
    float_digits: int = 1

    def encode(self) -> str:
        return f"{self.style},{self.order};{self.intervals};{self.bytea};{self.float_digits}"

    def writes(self, sql_type: SqlType) -> bool:
        """Whether values of the type, or in it, have another text than the usual one."""
        kind = sql_type.kind
        return (
            (kind in _MOMENTS and self.style != "ISO")
            or (kind is Kind.INTERVAL and self.intervals != "postgres")
            or (kind is Kind.BYTEA and self.bytea != "hex")
            or (kind in _FLOAT_DIGITS and self.float_digits < 1)
            or (sql_type.element is not None and self.writes(sql_type.element))
            or any(self.writes(each) for _, each in sql_type.fields)
        )

    def reads(self, sql_type: SqlType) -> bool:
        """Whether texts can mean other values of the type than they usually do."""
        kind = sql_type.kind
        return (
            (kind in _MOMENTS and self.order != MDY)
            or (kind is Kind.INTERVAL and self.intervals == "sql_standard")
            or (sql_type.element is not None and self.reads(sql_type.element))
            or any(self.reads(each) for _, each in sql_type.fields)
        )

    # --- dates --------------------------------------------------------------------------------

    def date(self, days: int) -> str:
        """A DATE, in another style than ISO."""
        year, month, day = civil(days)
        return self._day(year, month, day, "-") + _era(year)

    def timestamp(self, micros: int, zone: str = "") -> str:
        """A clock's time, in another style than ISO. ``zone`` stands behind it."""
        days, rest = divmod(micros, _MICROS_PER_DAY)
        year, month, day = civil(days)
        clock = clock_text(rest)
        if self.style != "Postgres":
            return f"{self._day(year, month, day, '/')} {clock}{zone}{_era(year)}"
        name, weekday = _MONTHS[month - 1], _WEEKDAYS[(days + 3) % 7]
        date = f"{day:02d} {name}" if self.order == "DMY" else f"{name} {day:02d}"
        return f"{weekday} {date} {clock} {_year(year)}{zone}{_era(year)}"

    def _day(self, year: int, month: int, day: int, between: str) -> str:
        if self.style == "German":
            return f"{day:02d}.{month:02d}.{_year(year)}"
        separator = "/" if self.style == "SQL" else between
        first, second = (day, month) if self.order == "DMY" else (month, day)
        return f"{first:02d}{separator}{second:02d}{separator}{_year(year)}"

    # --- other values -------------------------------------------------------------------------

    def interval(self, months: int, days: int, micros: int) -> str:
        match self.intervals:
            case "sql_standard":
                return _standard(months, days, micros)
            case "iso_8601":
                return _iso(months, days, micros)
            case "postgres_verbose":
                return _verbose(months, days, micros)
            case _:
                return interval_text(months, days, micros)

    def float_text(self, value: float, kind: Kind) -> str:
        """With fewer digits than the number has. As C's ``%g`` writes them."""
        return f"{value:.{max(_FLOAT_DIGITS[kind] + self.float_digits, 1)}g}"


PLAIN_FORMS: Final = TextForms()


def decode_forms(text: str) -> TextForms:
    """The inverse of ``TextForms.encode``."""
    dates, intervals, bytea, digits = text.split(";")
    style, order = dates.split(",")
    return TextForms(style, order, intervals, bytea, int(digits))


def escaped_bytes(value: bytes) -> str:
    """A BYTEA as bytea_output escape shows it."""
    return "".join(_ESCAPED[byte] for byte in value)


_ESCAPED: Final = [
    "\\\\" if byte == ord("\\") else chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}"
    for byte in range(256)
]


def _year(year: int) -> str:
    return f"{year if year > 0 else 1 - year:04d}"


def _era(year: int) -> str:
    return "" if year > 0 else " BC"


# --- intervals ---------------------------------------------------------------------------------


def _parts(months: int, micros: int) -> tuple[int, int, int, int, int, int]:
    """Years, months, hours, minutes, seconds and microseconds, all rounded towards zero."""
    sign, size = (-1, -months) if months < 0 else (1, months)
    year, month = sign * (size // MONTHS_PER_YEAR), sign * (size % MONTHS_PER_YEAR)
    sign, size = (-1, -micros) if micros < 0 else (1, micros)
    seconds, fraction = divmod(size, _MICROS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return year, month, sign * hour, sign * minute, sign * second, sign * fraction


def _seconds(second: int, fraction: int, width: int) -> str:
    """Without a sign; the fraction without zeros at its end."""
    text = f"{abs(second):0{width}d}"
    return f"{text}.{abs(fraction):06d}".rstrip("0") if fraction else text


def _standard(months: int, days: int, micros: int) -> str:
    """``1-2``, ``3 4:05:06``, ``-1-2``; of both kinds together ``+1-2 -3 +4:05:06``."""
    if not (months or days or micros):
        return "0"
    year, month, hour, minute, second, fraction = map(abs, _parts(months, micros))
    clock = f"{hour}:{minute:02d}:{_seconds(second, fraction, 2)}"
    amounts = (months, days, micros)
    mixed = min(amounts) < 0 < max(amounts)
    if mixed or (months and (days or micros)):
        signs = ["-" if amount < 0 else "+" for amount in amounts]
        return f"{signs[0]}{year}-{month} {signs[1]}{abs(days)} {signs[2]}{clock}"
    sign = "-" if min(amounts) < 0 else ""
    if months:
        return f"{sign}{year}-{month}"
    return f"{sign}{abs(days)} {clock}" if days else f"{sign}{clock}"


def _iso(months: int, days: int, micros: int) -> str:
    """``P1Y2M3DT4H5M6S``"""
    year, month, hour, minute, second, fraction = _parts(months, micros)
    date = "".join(f"{n}{unit}" for n, unit in ((year, "Y"), (month, "M"), (days, "D")) if n)
    time = "".join(f"{n}{unit}" for n, unit in ((hour, "H"), (minute, "M")) if n)
    if second or fraction:
        time += f"{'-' if micros < 0 else ''}{_seconds(second, fraction, 1)}S"
    if not date and not time:
        return "PT0S"
    return f"P{date}" + (f"T{time}" if time else "")


def _verbose(months: int, days: int, micros: int) -> str:
    """``@ 1 year 2 mons -3 days 4 hours ago``: the first part is positive, or all are ``ago``."""
    year, month, hour, minute, second, fraction = _parts(months, micros)
    units = (("year", year), ("mon", month), ("day", days), ("hour", hour), ("min", minute))
    before = next((n < 0 for n in (year, month, days, micros) if n), False)
    parts = ["@"]
    for name, number in units:
        if number:
            shown = -number if before else number
            parts.append(f"{shown} {name}{'' if shown == 1 else 's'}")
    if second or fraction:
        sign = "-" if (micros < 0) != before else ""
        one = abs(second) == 1 and not fraction
        parts.append(f"{sign}{_seconds(second, fraction, 1)} sec{'' if one else 's'}")
    if len(parts) == 1:
        parts.append("0")
    return " ".join([*parts, "ago"] if before else parts)


_MORE_SIGNS: Final = re.compile(r"\s[+-]")


def signed_by_the_first(text: str) -> int:
    """The sign that all parts of an interval have by the SQL standard: the text begins with a minus
    and has no other sign. 0: each part has its own."""
    stripped = text.strip().lower()
    if not stripped.startswith("-") or _MORE_SIGNS.search(stripped):
        return 0
    return 1 if stripped.endswith("ago") else -1
