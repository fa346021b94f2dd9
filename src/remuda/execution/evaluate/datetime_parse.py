"""``to_date`` and ``to_timestamp``: the fields of a template read from a text.

The rules are PostgreSQL's. A number takes all digits that follow if no other number can follow in
the template, and as many characters as its field's name has otherwise. Without FX a blank or a
separator in the template matches one in the text or nothing, blanks around fields are passed over,
and any other character matches any one. ``datetime_assembly`` says what the fields come to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from remuda.datatypes.times.zones import Zone
from remuda.errors import DatetimeOverflow, InvalidDatetime, UnsupportedValue
from remuda.execution.evaluate.datetime_assembly import Values, assembled, to_digits
from remuda.execution.evaluate.datetime_format import (
    DAYS,
    FIELD,
    MONTHS,
    NUMERIC_FIELDS,
    ROMAN,
    Field,
    field_of_match,
)

FIXED: Final = Field("FX")
"""From here on every character of the template stands for one of the text."""
_SLOTS: Final = {
    "HH": "hour", "HH12": "hour", "HH24": "hour", "MI": "minute", "SS": "second",
    "SSSS": "seconds", "SSSSS": "seconds", "MS": "millis", "US": "micros", "TZH": "zone hours",
    "TZM": "zone minutes", "MM": "month", "DD": "day", "DDD": "day of year",
    "IDDD": "day of year", "D": "weekday", "ID": "weekday", "WW": "week", "IW": "week",
    "W": "week of month", "CC": "century", "J": "julian", "Q": "",
    **dict.fromkeys(("YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I"), "year"),
    **{f"FF{n}": "micros" for n in range(1, 7)},
}  # fmt: skip
"""Which value a field of digits gives; PostgreSQL reads a quarter and forgets it."""
_WIDTHS: Final = {
    "HH12": 2, "HH24": 2, "MS": 3, "US": 6, "TZH": 2, "TZM": 2, "ID": 1, "IDDD": 3,
    **{f"FF{n}": n for n in range(1, 7)},
}  # fmt: skip
"""Characters of a field that are not those of its name."""
_BEGIN_WITH_DIGITS: Final = frozenset(NUMERIC_FIELDS) - {"TZH"}
_WITH_ORDINALS: Final = frozenset(NUMERIC_FIELDS) - {"TZH", "TZM"}
_ISO: Final = frozenset({"IYYY", "IYY", "IY", "I", "IW", "ID", "IDDD"})
_GREGORIAN: Final = frozenset({
    "Y,YYY", "YYYY", "YYY", "YY", "Y", "MM", "MONTH", "MON", "RM", "DDD", "DD", "D", "WW", "W",
})  # fmt: skip
_ZONE_FIELDS: Final = ("zone hours", "zone minutes")
_FRACTIONS: Final = {"millis": 3, "micros": 6}
_NAMES: Final = {
    "MONTH": ("month", tuple(MONTHS)),
    "MON": ("month", tuple(name[:3] for name in MONTHS)),
    "DAY": ("weekday", tuple(DAYS)),
    "DY": ("weekday", tuple(name[:3] for name in DAYS)),
}
_PAIRS: Final = {
    **dict.fromkeys(("AM", "PM"), ("afternoon", ("am", "pm"))),
    **dict.fromkeys(("A.M.", "P.M."), ("afternoon", ("a.m.", "p.m."))),
    **dict.fromkeys(("AD", "BC"), ("before christ", ("ad", "bc"))),
    **dict.fromkeys(("A.D.", "B.C."), ("before christ", ("a.d.", "b.c."))),
}
_ONLY_SHOWN: Final = frozenset({"TZ", "OF"})
_PREFIXES: Final = ("FX", "fx", "FM", "fm", "TM", "tm")
_NUMBER: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_THOUSANDS: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+),([0-9]{1,3})")
_BLANKS: Final = " \t\n\v\f\r"
_INT32: Final = range(-(2**31), 2**31)
_FIXED_HINT: Final = 'If your source string is not fixed-width, try using the "FM" modifier.'


@dataclass(frozen=True, slots=True)
class Between:
    """One character of a template between its fields."""

    character: str
    quoted: bool

    @property
    def is_separator(self) -> bool:
        """A blank, or a mark that is neither letter nor digit, outside of quotes."""
        here = self.character
        return not self.quoted and (here in _BLANKS or _is_mark(here))


Node: TypeAlias = Field | Between


def _is_mark(character: str) -> bool:
    return "!" <= character <= "~" and not character.isalnum()


@lru_cache(maxsize=512)
def nodes_of(template: str) -> tuple[Node, ...]:
    """The fields of a template, and the characters between them."""
    nodes: list[Node] = []
    at = 0
    while at < len(template):
        if template[at] == '"':
            at += 1
            while at < len(template) and template[at] != '"':
                at += template[at] == "\\" and at + 1 < len(template)
                nodes.append(Between(template[at], quoted=True))
                at += 1
            at += 1
            continue
        match = FIELD.match(template, at)
        if match is not None:
            if "FX" in match["prefix"].upper():
                nodes.append(FIXED)
            nodes.append(field_of_match(match))
            at = match.end()
            continue
        prefix = template[at : at + 2]
        if prefix in _PREFIXES:
            nodes += [FIXED] if prefix in ("FX", "fx") else []
            at += 2
            continue
        at += template.startswith('\\"', at)
        nodes.append(Between(template[at], quoted=False))
        at += 1
    return tuple(nodes)


class Reader:
    """The values of the fields of a template in a text.

    Raises InvalidDatetime, and DatetimeOverflow for numbers beyond 32 bits.
    """

    def __init__(self, text: str, template: str) -> None:
        self.text = text
        self.at = 0
        self.values = Values(text)
        self.fixed = False
        self._skipped = 0
        """Characters that were passed over, and that the template has not asked for."""
        self.read(nodes_of(template))

    def read(self, nodes: tuple[Node, ...]) -> None:
        for place, node in enumerate(nodes):
            if self.at >= len(self.text):
                return
            if not self.fixed and node is not FIXED and (isinstance(node, Field) or place == 0):
                self._skipped += self._skip_blanks()
            if isinstance(node, Between):
                self._between(node)
            elif node is FIXED:
                self.fixed = True
            else:
                following = nodes[place + 1] if place + 1 < len(nodes) else None
                self.field(node, following)
                if not self.fixed:
                    self._skipped = self._skip_blanks()

    def _between(self, node: Between) -> None:
        if self.fixed:
            self.at += 1
        elif node.is_separator:
            here = self.text[self.at : self.at + 1]
            found = bool(here) and (here in _BLANKS or _is_mark(here))
            self.at += found
            self._skipped += found - 1
        elif self._skipped > 0:
            self._skipped -= 1
        else:
            self.at += 1

    def _skip_blanks(self) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1
        return self.at - start

    def field(self, field: Field, following: Node | None) -> None:
        """Reads one field; ``following`` says where a number without fixed width ends."""
        name = field.name.upper()
        self._check_calendar(name)
        if name in _ONLY_SHOWN:
            raise UnsupportedValue(f'formatting field "{field.name}" is only supported in to_char')
        if name in _SLOTS:
            self._number(field, following)
        elif name == "Y,YYY":
            self._thousands(field)
        elif name in _NAMES:
            slot, names = _NAMES[name]
            place = self._one_of(names, field)
            self._set(slot, place + 1, field, place if slot == "weekday" else place + 1)
        elif name == "RM":
            romans = tuple(reversed(ROMAN))
            self._set("month", len(ROMAN) - self._one_of(romans, field), field)
        else:
            slot, names = _PAIRS[name]
            self._set(slot, self._one_of(names, field), field)
            self.values.half_day |= slot == "afternoon"
        if name in _WITH_ORDINALS and field.suffix:
            self.at = min(len(self.text), self.at + 2)

    def _check_calendar(self, name: str) -> None:
        if name not in _ISO and name not in _GREGORIAN:
            return
        iso = name in _ISO
        if self.values.iso not in (None, iso):
            raise InvalidDatetime(
                "invalid combination of date conventions",
                hint="Do not mix Gregorian and ISO week date conventions in a formatting template.",
            )
        self.values.iso = iso

    def _number(self, field: Field, following: Node | None) -> None:
        name = field.name
        if name == "TZH":
            self._zone_sign()
        start = self.at
        given = value = self._integer(field, _WIDTHS.get(name, len(name)), following)
        read = self.at - start
        values, slot = self.values, _SLOTS[name]
        match slot:
            case "millis" | "micros":
                value *= 10 ** max(0, _FRACTIONS[slot] - read)
                if name.startswith("FF"):
                    values.fraction = int(name[2])
            case "year":
                values.year_digits = min(4, len(name))
                value = _near_2020(value) if read < 4 and len(name) < 4 else value
            case "hour":
                values.half_day |= name != "HH24"
            case "weekday" if name == "ID":
                value = value + 1 if value < 7 else 1  # Sunday is 1
            case "zone minutes":
                values.zone_sign = values.zone_sign or 1
        if slot:
            self._set(slot, value, field, given)

    def _zone_sign(self) -> None:
        """A minus that was taken for a separator is the sign of the zone."""
        here = self.text[self.at : self.at + 1]
        if here in ("+", "-", " "):
            self.values.zone_sign = -1 if here == "-" else 1
            self.at += 1
        else:
            minus = self._skipped > 0 and self.text[self.at - 1] == "-"
            self.values.zone_sign = -1 if minus else 1

    def _integer(self, field: Field, width: int, following: Node | None) -> int:
        rest = self.text[self.at :]
        free = not field.fill or bool(field.suffix) or not _begins_with_digit(following)
        stripped = rest.lstrip(_BLANKS)
        given = rest if free else stripped[:width]
        match = _NUMBER.match(given)
        if not free:
            self._check_width(field, width, stripped, match)
            self.at += len(rest) - len(stripped)
        self.at += 0 if match is None else match.end()
        if len(rest) == len(self.text) - self.at:
            raise InvalidDatetime(
                f'invalid value "{rest[:width]}" for "{field.name}"',
                detail="Value must be an integer.",
            )
        value = 0 if match is None else int(match[1])
        if value not in _INT32:
            raise DatetimeOverflow(
                f'value for "{field.name}" in source string is out of range',
                detail=f"Value must be in the range {_INT32.start} to {_INT32.stop - 1}.",
            )
        return value

    @staticmethod
    def _check_width(field: Field, width: int, given: str, match: re.Match[str] | None) -> None:
        if len(given) < width:
            raise InvalidDatetime(
                f'source string too short for "{field.name}" formatting field',
                detail=f"Field requires {width} characters, but only {len(given)} remain.",
                hint=_FIXED_HINT,
            )
        if match is not None and match.end() < width:
            raise InvalidDatetime(
                f'invalid value "{given[:width]}" for "{field.name}"',
                detail=f"Field requires {width} characters, but only {match.end()} could be "
                "parsed.",
                hint=_FIXED_HINT,
            )

    def _thousands(self, field: Field) -> None:
        match = _THOUSANDS.match(self.text, self.at)
        if match is None:
            raise InvalidDatetime('invalid input string for "Y,YYY"')
        self.values.year_digits = 4
        self._set("year", int(match[1]) * 1000 + int(match[2]), field)
        self.at = match.end()

    def _one_of(self, names: tuple[str, ...], field: Field) -> int:
        """The place of the first name that the text goes on with, in any case."""
        rest = self.text[self.at :].lower()
        for place, name in enumerate(names):
            if rest.startswith(name.lower()):
                self.at += len(name)
                return place
        shown = (self.text[self.at :].split() or [""])[0]
        raise InvalidDatetime(
            f'invalid value "{shown}" for "{field.name}"',
            detail="The given value did not match any of the allowed values for this field.",
        )

    def _set(self, slot: str, value: int, field: Field, given: int | None = None) -> None:
        """Raises InvalidDatetime if the slot has another value than ``given``, which the text has
        in the field's own units."""
        if self.values.get(slot) not in (0, value if given is None else given):
            raise InvalidDatetime(
                f'conflicting values for "{field.name}" field in formatting string',
                detail="This value contradicts a previous setting for the same field type.",
            )
        self.values.fields[slot] = value


def _begins_with_digit(node: Node | None) -> bool:
    if isinstance(node, Field):
        return node.name in _BEGIN_WITH_DIGITS
    return node is not None and "0" <= node.character <= "9"


def _near_2020(value: int) -> int:
    """A year of one to three digits as the one next to 2020."""
    if value < 70:
        return value + 2000
    if value < 100:
        return value + 1900
    return value + (2000 if value < 520 else 1000 if value < 1000 else 0)


def parsed_micros(text: str, template: str, zone: Zone | None = None) -> int:
    """Microseconds since 1970-01-01 UTC; by the clocks of ``zone`` unless the template has a zone.
    Raises InvalidDatetime or DatetimeOverflow."""
    values = Reader(text, template).values
    found = to_digits(assembled(values), values.fraction).instant
    if zone is None or not values.fields.keys().isdisjoint(_ZONE_FIELDS):
        return found
    return found - zone.at_local(found)


def parsed_days(text: str, template: str) -> int:
    """Days since 1970-01-01; the time of the day is checked and left out."""
    return assembled(Reader(text, template).values).days
