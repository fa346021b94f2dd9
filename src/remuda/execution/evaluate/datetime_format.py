"""Templates of ``to_char``, ``to_date`` and ``to_timestamp`` for dates and times.

A template is cut into fields and literal text once; the fields are PostgreSQL's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from remuda.datatypes.times.calendar import Moment, ordinal_suffix
from remuda.errors import NotSupported

MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August",
                 "September", "October", "November", "December")  # fmt: skip
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ROMAN: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")

NUMERIC_FIELDS: Final = (
    "SSSSS", "SSSS", "HH24", "HH12", "HH", "MI", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4",
    "FF5", "FF6", "Y,YYY", "IYYY", "YYYY", "IYY", "YYY", "IY", "YY", "IDDD", "DDD", "DD", "ID",
    "IW", "WW", "MM", "CC", "TZH", "TZM", "I", "Y", "D", "J", "Q", "W",
)  # fmt: skip
_WORD_FIELDS: Final = (
    "MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy",
    "A.M.", "P.M.", "a.m.", "p.m.", "AM", "PM", "am", "pm", "B.C.", "A.D.", "b.c.", "a.d.",
    "BC", "AD", "bc", "ad", "RM", "rm", "TZ", "tz", "OF", "of",
)  # fmt: skip


def _pattern() -> str:
    """Longer names first, in capital or in small letters as PostgreSQL knows them."""
    small = [name.lower() for name in NUMERIC_FIELDS]
    names = sorted((*NUMERIC_FIELDS, *small, *_WORD_FIELDS), key=len, reverse=True)
    return "|".join(re.escape(name) for name in names)


FIELD: Final = re.compile(
    f"(?P<prefix>(?:FM|fm|TM|tm|FX|fx)*)(?P<name>{_pattern()})(?P<suffix>TH|th|SP|sp)?"
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field; ``fill`` is False behind FM; ``suffix`` is TH, th or ''."""

    name: str
    fill: bool = True
    suffix: str = ""


@lru_cache(maxsize=512)
def fields_of(template: str) -> tuple[Field | str, ...]:
    """Fields, and the text between them."""
    parts: list[Field | str] = []
    text: list[str] = []
    at = 0

    def flush() -> None:
        if text:
            parts.append("".join(text))
            text.clear()

    while at < len(template):
        character = template[at]
        if character == '"':
            at += 1
            while at < len(template) and template[at] != '"':
                at += template[at] == "\\"
                text.append(template[at : at + 1])
                at += 1
            at += 1
            continue
        if template.startswith('\\"', at):
            text.append('"')
            at += 2
            continue
        match = FIELD.match(template, at)
        if match is None:
            if template[at : at + 2].upper() in ("FX", "FM", "TM"):
                at += 2
                continue
            text.append(character)
            at += 1
            continue
        flush()
        parts.append(field_of_match(match))
        at = match.end()
    flush()
    return tuple(parts)


def field_of_match(match: re.Match[str]) -> Field:
    """The field that ``FIELD`` has found; raises NotSupported for the suffix SP."""
    suffix = match["suffix"] or ""
    if suffix.upper() == "SP":
        raise NotSupported(
            '"SP" in a template of to_char is not supported',
            hint="Spell the number in the program that shows it.",
        )
    upper = match["name"].upper()
    name = upper if upper in NUMERIC_FIELDS else match["name"]
    return Field(name, "FM" not in match["prefix"].upper(), suffix)


def to_char(moment: Moment, template: str, east: int = 0, called: str = "UTC") -> str:
    """``moment`` as ``template`` says. It is of a clock ``east`` seconds of UTC, in a zone that is
    ``called`` so, if it is zoned."""
    pieces: list[str] = []
    for part in fields_of(template):
        if isinstance(part, str):
            pieces.append(part)
            continue
        if part.name.upper() in _ZONE_NAMES and moment.zoned:
            pieces.append(_zone_text(part, east, called))
            continue
        text = _text(moment, part)
        if part.suffix and part.name in NUMERIC_FIELDS:
            suffix = ordinal_suffix(text)
            text += suffix.upper() if part.suffix == "TH" else suffix
        pieces.append(text)
    return "".join(pieces)


_ZONE_NAMES: Final = ("TZ", "OF", "TZH", "TZM")


def _zone_text(field: Field, east: int, called: str) -> str:
    hours, minutes = divmod(abs(east) // 60, 60)
    sign = "-" if east < 0 else "+"
    match field.name.upper():
        case "TZ":
            return called.lower() if field.name == "tz" else called.upper()
        case "TZM":
            return f"{minutes:02d}"
        case "OF" if minutes:
            return f"{sign}{hours:02d}:{minutes:02d}"
        case _:
            return f"{sign}{hours:02d}" if field.fill else f"{sign}{hours}"


def _text(moment: Moment, field: Field) -> str:
    name = field.name
    if name in NUMERIC_FIELDS:
        return _numeric(moment, name, field.fill)
    upper = name.upper()
    if upper in ("AM", "PM", "A.M.", "P.M."):
        text = "PM" if moment.hour >= 12 else "AM"
        return _dotted(text, name)
    if upper in ("BC", "AD", "B.C.", "A.D."):
        return _dotted("BC" if moment.year <= 0 else "AD", name)
    if upper in ("TZ", "OF"):
        return "" if upper == "TZ" else "+00"
    if upper == "RM":
        text = ROMAN[moment.month - 1]
        text = text.ljust(4) if field.fill else text
        return text.lower() if name == "rm" else text
    if upper in ("MONTH", "MON"):
        text = MONTHS[moment.month - 1]
        width = 9 if upper == "MONTH" else 3
    else:
        text = DAYS[moment.weekday]
        width = 9 if upper == "DAY" else 3
    if width == 3:
        text = text[:3]
    if name.isupper():
        text = text.upper()
    elif name.islower():
        text = text.lower()
    return text.ljust(width) if field.fill and width == 9 else text


def _dotted(text: str, name: str) -> str:
    if "." in name:
        text = f"{text[0]}.{text[1]}."
    return text.lower() if name.islower() else text


def _numeric(moment: Moment, name: str, fill: bool) -> str:
    value, width = _number(moment, name)
    if name == "Y,YYY":
        thousands, rest = divmod(value, 1000)
        return f"{thousands},{rest:03d}"
    if name == "TZH":
        return f"+{value:02d}" if fill else f"+{value}"
    if name in ("MS", "US", "TZM") or name.startswith("FF"):
        return str(value).zfill(width)
    if not fill or width == 0:
        return str(value)
    return f"-{-value:0{width - 1}d}" if value < 0 else f"{value:0{width}d}"


def _number(moment: Moment, name: str) -> tuple[int, int]:
    """(value, digits it is filled to)"""
    year = abs(moment.year) if moment.year > 0 else 1 - moment.year
    iso = moment.iso_year if moment.iso_year > 0 else 1 - moment.iso_year
    hour = moment.hour
    match name:
        case "SSSSS" | "SSSS":
            return moment.micros_of_day // 1_000_000, 0
        case "HH24":
            return hour, 2
        case "HH12" | "HH":
            return (hour - 1) % 12 + 1, 2
        case "MI":
            return moment.minute, 2
        case "SS":
            return moment.second, 2
        case "MS":
            return moment.micros // 1000, 3
        case "US":
            return moment.micros, 6
        case _ if name.startswith("FF"):
            digits = int(name[2])
            return int(moment.micros // 10 ** (6 - digits)), digits
        case "Y,YYY":
            return year, 0
        case "YYYY" | "YYY" | "YY" | "Y":
            return year if name == "YYYY" else year % 10 ** len(name), len(name)
        case "IYYY" | "IYY" | "IY" | "I":
            return iso if name == "IYYY" else iso % 10 ** len(name), len(name)
    return _calendar_number(moment, name)


def _calendar_number(moment: Moment, name: str) -> tuple[int, int]:
    weekday = moment.weekday
    century = (moment.year - 1) // 100 + 1 if moment.year > 0 else -(-moment.year // 100) - 1
    found = {
        "MM": (moment.month, 2),
        "DDD": (moment.day_of_year, 3),
        "IDDD": ((moment.iso_week - 1) * 7 + (weekday or 7), 3),
        "DD": (moment.day, 2),
        "D": (weekday + 1, 0),
        "ID": (weekday or 7, 0),
        "W": ((moment.day - 1) // 7 + 1, 0),
        "WW": ((moment.day_of_year - 1) // 7 + 1, 2),
        "IW": (moment.iso_week, 2),
        "CC": (century, 2 if century >= 0 else 3),
        "J": (moment.days + 2_440_588, 0),
        "Q": ((moment.month - 1) // 3 + 1, 0),
    }
    return found.get(name, (0, 2))  # TZH and TZM
