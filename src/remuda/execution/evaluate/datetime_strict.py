"""Texts read by a template as the SQL standard has it: ``.datetime(template)`` of jsonpath.

In contrast to ``to_timestamp``, what stands between the fields must be there as it is in the
template, and the text must be as long as the template.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from remuda.errors import DatetimeOverflow, InvalidDatetime, UnsupportedValue
from remuda.execution.evaluate.datetime_format import FIELD, Field, field_of_match
from remuda.execution.evaluate.datetime_parse import (
    Reader,
    days_of,
    micros_of,
    offset_of,
)

_SEPARATORS: Final = "-./,':; "
_ONLY_SHOWN: Final = ("TZ", "tz", "OF")
_ZONED: Final = ("TZH", "TZM")
_TIMED: Final = frozenset({
    "SSSSS", "SSSS", "HH24", "HH12", "HH", "MI", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4",
    "FF5", "FF6", "AM", "PM", "A.M.", "P.M.",
})  # fmt: skip
_DAY: Final = 86_400_000_000
_DAYS: Final = range(-2_440_588, 2_145_031_949)


class _Between(NamedTuple):
    """One character between fields, quoted or a separator."""

    character: str
    quoted: bool


@lru_cache(maxsize=512)
def _parts(template: str) -> tuple[Field | _Between, ...]:
    """Raises InvalidDatetime for what can be no separator."""
    parts: list[Field | _Between] = []
    at = 0
    while at < len(template):
        character = template[at]
        if character == '"':
            at += 1
            while at < len(template) and template[at] != '"':
                at += template[at] == "\\" and at + 1 < len(template)
                parts.append(_Between(template[at], quoted=True))
                at += 1
            at += 1
            continue
        match = FIELD.match(template, at)
        if match is not None:
            parts.append(field_of_match(match))
            at = match.end()
            continue
        if character not in _SEPARATORS:
            raise InvalidDatetime(f'invalid datetime format separator: "{character}"')
        parts.append(_Between(character, quoted=False))
        at += 1
    return tuple(parts)


class StrictReader(Reader):
    """``dated``, ``timed`` and ``zoned``: of which kinds the fields of the template are."""

    def read(self, template: str) -> None:
        parts = _parts(template)
        names = {part.name.upper() for part in parts if isinstance(part, Field)}
        self.zoned = not names.isdisjoint((*_ZONED, *_ONLY_SHOWN))
        self.timed = not names.isdisjoint(_TIMED)
        self.dated = bool(names - _TIMED - {*_ZONED, *_ONLY_SHOWN})
        for place, part in enumerate(parts):
            if self.at >= len(self.text):
                raise InvalidDatetime("input string is too short for datetime format")
            if isinstance(part, _Between):
                self._between(part)
                continue
            if part.name in _ONLY_SHOWN:
                raise UnsupportedValue(
                    f'formatting field "{part.name}" is only supported in to_char'
                )
            following = parts[place + 1] if place + 1 < len(parts) else None
            before = dict(self.values)
            self.field(part, following if isinstance(following, Field) else None)
            self._check_agreement(part, before)
        if template and self.text[self.at :].strip():
            raise InvalidDatetime(
                "trailing characters remain in input string after datetime format"
            )

    def _between(self, part: _Between) -> None:
        if self.text[self.at] != part.character:
            kind = "character" if part.quoted else "separator"
            raise InvalidDatetime(f'unmatched format {kind} "{part.character}"')
        self.at += 1

    def _check_agreement(self, field: Field, before: dict[str, int]) -> None:
        for name, value in self.values.items():
            if before.get(name, value) not in (value, 0):
                raise InvalidDatetime(
                    f'conflicting values for "{field.name}" field in formatting string',
                    detail="This value contradicts a previous setting for the same field type.",
                )

    def days(self) -> int:
        found = days_of(self.values, self.text)
        if found not in _DAYS:
            raise DatetimeOverflow(f'date out of range: "{self.text}"')
        return found

    def micros(self) -> int:
        if self.values.get("HH24", 0) > 23 or self.values.get("SS", 0) > 59:
            raise DatetimeOverflow(f'date/time field value out of range: "{self.text}"')
        return micros_of(self.values, self.text)

    def offset(self) -> int:
        return offset_of(self.values, self.text)
