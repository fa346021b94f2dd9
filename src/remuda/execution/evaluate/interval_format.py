"""``to_char`` of intervals: the fields of templates that a length of time has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remuda.datatypes.times.calendar import ordinal_suffix
from remuda.datatypes.times.intervals import unpack
from remuda.errors import InvalidDatetime, NotSupported
from remuda.execution.evaluate.datetime_format import NUMERIC_FIELDS, ROMAN, Field, fields_of

_SECOND: Final = 1_000_000
_OF_DATES: Final = frozenset({"D", "ID"})
"""Numbers that only a date has; PostgreSQL refuses them, as all names of days and months."""
_UNKNOWN: Final = frozenset({"J", "WW", "CC", "IYYY", "IYY", "IY", "I", "IDDD", "IW", "W"})


@dataclass(frozen=True, slots=True)
class _Length:
    """Every part has the sign of what it is part of."""

    years: int
    months: int
    days: int
    micros: int

    def units(self, size: int, below: int = 0) -> int:
        """Whole units of ``size`` microseconds, of ``below`` where that counts further."""
        found = abs(self.micros) // size
        if below:
            found %= below
        return -found if self.micros < 0 else found


def interval_to_char(value: bytes, template: str) -> str:
    """Raises InvalidDatetime for fields that only a date has."""
    months, days, micros = unpack(value)
    years = abs(months) // 12 * (-1 if months < 0 else 1)
    length = _Length(years, months - 12 * years, days, micros)
    pieces: list[str] = []
    for part in fields_of(template):
        if isinstance(part, str):
            pieces.append(part)
            continue
        text = _text(length, part)
        if part.suffix and part.name in NUMERIC_FIELDS:
            suffix = ordinal_suffix(text)
            text += suffix.upper() if part.suffix == "TH" else suffix
        pieces.append(text)
    return "".join(pieces)


def _text(length: _Length, field: Field) -> str:
    name, upper = field.name, field.name.upper()
    if upper in ("AM", "PM", "A.M.", "P.M."):
        word = "PM" if length.units(3600 * _SECOND, 24) >= 12 else "AM"
        word = f"{word[0]}.{word[1]}." if "." in name else word
        return word.lower() if name.islower() else word
    if upper == "RM":
        return _roman(length, field)
    if name not in NUMERIC_FIELDS or name in _OF_DATES or name in ("TZH", "TZM"):
        raise InvalidDatetime(
            "invalid format specification for an interval value",
            hint="Intervals are not tied to specific calendar dates.",
        )
    if name in _UNKNOWN:
        raise NotSupported(
            f'"{name}" in a template of to_char for an interval is not supported',
            hint="Use HH24, MI, SS, DD, MM, YYYY, or extract(... FROM interval).",
        )
    if name == "Q":
        # Division towards zero, as PostgreSQL's.
        return str(int((length.months - 1) / 3) + 1) if length.months else ""
    if name == "Y,YYY":
        thousands = abs(length.years) // 1000 * (-1 if length.years < 0 else 1)
        return f"{thousands},{_filled(length.years - 1000 * thousands, 3, signed=False)}"
    number, width, signed = _number(length, name)
    if name in ("MS", "US") or name.startswith("FF"):
        return _filled(number, width, signed=True)
    return _filled(number, width if field.fill else 0, signed=signed)


def _filled(number: int, width: int, *, signed: bool) -> str:
    """``signed``: the sign needs a place of its own."""
    return f"{number:0{width + (signed and number < 0)}d}" if width else str(number)


def _roman(length: _Length, field: Field) -> str:
    if not (length.months or length.years):
        return ""
    place = length.months - 1 if length.months > 0 else 11 if not length.months else 12
    text = ROMAN[place + min(0, length.months)]
    text = text.ljust(4) if field.fill else text
    return text.lower() if field.name == "rm" else text


def _number(length: _Length, name: str) -> tuple[int, int, bool]:
    """(value, digits it is filled to, whether a sign comes on top of these)"""
    match name:
        case "HH24":
            return length.units(3600 * _SECOND), 2, True
        case "HH12" | "HH":
            return length.units(3600 * _SECOND, 12) or 12, 2, True
        case "MI":
            return length.units(60 * _SECOND, 60), 2, True
        case "SS":
            return length.units(_SECOND, 60), 2, True
        case "SSSS" | "SSSSS":
            return length.units(_SECOND), 0, False
        case "MS":
            return length.units(1000, 1000), 3, True
        case "US":
            return length.units(1, _SECOND), 6, True
        case _ if name.startswith("FF"):
            digits = int(name[2])
            return length.units(10 ** (6 - digits), 10**digits), digits, True
        case "DD":
            return length.days, 2, False
        case "DDD":
            return 360 * length.years + 30 * length.months + length.days, 3, False
        case "MM":
            return length.months, 2, True
    digits = len(name)
    shown = abs(length.years) if digits == 4 else abs(length.years) % 10**digits
    return -shown if length.years < 0 else shown, digits, True
