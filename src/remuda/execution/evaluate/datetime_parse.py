"""``to_date`` and ``to_timestamp``: text read as a template says."""

from __future__ import annotations

import re
from typing import Final

from remuda.datatypes.calendar import days_from_civil, days_in_month
from remuda.errors import DatetimeOverflow, InvalidDatetime, InvalidZoneDisplacement
from remuda.execution.evaluate.datetime_format import (
    DAYS,
    MONTHS,
    NUMERIC_FIELDS,
    ROMAN,
    Field,
    fields_of,
)

_DIGITS: Final = {
    "Y,YYY": 5, "YYYY": 4, "IYYY": 4, "YYY": 3, "IYY": 3, "YY": 2, "IY": 2, "Y": 1, "I": 1,
    "MM": 2, "DDD": 3, "IDDD": 3, "DD": 2, "D": 1, "ID": 1, "WW": 2, "IW": 2, "W": 1, "Q": 1,
    "CC": 2, "J": 7, "HH24": 2, "HH12": 2, "HH": 2, "MI": 2, "SS": 2, "MS": 3, "US": 6,
    "SSSS": 5, "SSSSS": 5, "TZH": 2, "TZM": 2, **{f"FF{n}": n for n in range(1, 7)},
}  # fmt: skip
_BEGIN_WITH_DIGITS: Final = frozenset(NUMERIC_FIELDS) - {"TZH"}
_DAY: Final = 86_400_000_000
_ZONE_HOURS_MAX: Final = 15


class Reader:
    """The values of the fields of a template in a text."""

    def __init__(self, text: str, template: str) -> None:
        self.text = text
        self.at = 0
        self.values: dict[str, int] = {}
        self.read(template)

    def read(self, template: str) -> None:
        parts = fields_of(template)
        for place, part in enumerate(parts):
            following = parts[place + 1] if place + 1 < len(parts) else None
            if isinstance(part, str):
                self._literal(part)
            elif self.at < len(self.text) or self._blank():
                if self.at >= len(self.text):
                    break
                self._skip_blanks()
                self.field(part, following)

    def _blank(self) -> bool:
        return self.at >= len(self.text)

    def _literal(self, part: str) -> None:
        """Separators match separators, and other characters any character."""
        for character in part:
            if self.at >= len(self.text):
                return
            here = self.text[self.at]
            if character.isspace() or not character.isalnum():
                while self.at < len(self.text) and self.text[self.at].isspace():
                    self.at += 1
                if (self.at < len(self.text) and not (
                    self.text[self.at].isalnum() or self.text[self.at] in "+-"
                    or self.text[self.at].isspace()
                )) or (here == character and not here.isspace()):  # fmt: skip
                    self.at += 1
            else:
                self.at += 1

    def _skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def field(self, field: Field, following: Field | str | None) -> None:
        """Reads one field; ``following`` says where a number without fixed width ends."""
        if self.at >= len(self.text):
            return
        if field.name in NUMERIC_FIELDS:
            self._number(field, following)
            if field.suffix:
                self.at = min(len(self.text), self.at + 2)
        else:
            self._word(field.name.upper())

    def _number(self, field: Field, following: Field | str | None) -> None:
        """As many characters as the field has; of the last field before other text, all digits."""
        name = field.name
        if name == "TZH":
            sign = self.text[self.at]
            self.values["TZ sign"] = -1 if sign == "-" else 1
            self.at += sign in "+-"
        limit = _DIGITS[name]
        alone = not (isinstance(following, Field) and following.name in _BEGIN_WITH_DIGITS)
        free = alone or not field.fill
        given = self.text[self.at :] if free else self.text[self.at : self.at + limit]
        pattern = r"\d{1,3},\d{3}" if name == "Y,YYY" else r"\s*[+-]?\d+"
        match = re.match(pattern, given)
        if match is None:
            raise InvalidDatetime(
                f'invalid value "{given[:limit]}" for "{name}"', detail="Value must be an integer."
            )
        if name != "Y,YYY" and not free and match.end() < limit:
            raise self._too_short(name, given, limit, match.end())
        self.at += match.end()
        digits = match[0].replace(",", "").strip()
        value = int(digits)
        if name in ("MS", "US") or name.startswith("FF"):
            size = 3 if name == "MS" else 6
            value = int(digits.ljust(size, "0")) * 10 ** (6 - size)
            if name.startswith("FF"):
                self.values["fraction digits"] = int(name[2])
            name, value = "micros", self.values.get("micros", 0) + value
        elif name in ("YYY", "YY", "Y"):
            if len(digits) < 4:
                value = _near_2020(value)
            name = "YYYY"
        elif name == "Y,YYY":
            name = "YYYY"
        elif name in ("IYY", "IY", "I"):
            name, value = "IYYY", _near_2020(value) if len(digits) < 4 else value
        self.values[name] = value

    @staticmethod
    def _too_short(name: str, given: str, limit: int, read: int) -> InvalidDatetime:
        if len(given) < limit:
            return InvalidDatetime(
                f'source string too short for "{name}" formatting field',
                detail=f"Field requires {limit} characters, but only {len(given)} remain.",
                hint='If your source string is not fixed-width, try using the "FM" modifier.',
            )
        return InvalidDatetime(
            f'invalid value "{given}" for "{name}"',
            detail=f"Field requires {limit} characters, but only {read} could be parsed.",
            hint='If your source string is not fixed-width, try using the "FM" modifier.',
        )

    def _word(self, name: str) -> None:
        rest = self.text[self.at :].lower()
        if name in ("MONTH", "MON"):
            self.values["MM"] = self._one_of(rest, [m.lower() for m in MONTHS], name) + 1
        elif name in ("DAY", "DY"):
            self._one_of(rest, [d.lower() for d in DAYS], name)
        elif name == "RM":
            romans = [r.lower() for r in ROMAN]
            found = [r for r in romans if rest.startswith(r)]
            if not found:
                raise InvalidDatetime(f'invalid value "{rest[:4]}" for "RM"')
            longest = max(found, key=len)
            self.at += len(longest)
            self.values["MM"] = romans.index(longest) + 1
        elif name in ("AM", "PM", "A.M.", "P.M.", "BC", "AD", "B.C.", "A.D."):
            for word in ("a.m.", "p.m.", "b.c.", "a.d.", "am", "pm", "bc", "ad"):
                if rest.startswith(word):
                    self.at += len(word)
                    self.values[word.replace(".", "")] = 1
                    return
            raise InvalidDatetime(
                f'invalid value "{self.text[self.at : self.at + 2]}" for "{name}"'
            )
        elif name in ("TZ", "OF"):
            match = re.compile(r"[+-]\d{1,2}(:?\d{2})?|[a-z]+").match(rest)
            if match is not None and match[0][0] in "+-":
                self.values["TZ sign"] = -1 if match[0][0] == "-" else 1
                self.values["TZH"] = int(match[0][1:3].rstrip(":"))
                self.values["TZM"] = int((match[1] or "0").replace(":", ""))
            self.at += 0 if match is None else match.end()

    def _one_of(self, rest: str, names: list[str], field: str) -> int:
        short = field in ("MON", "DY")
        for place, name in enumerate(names):
            wanted = name[:3] if short else name
            if rest.startswith(wanted):
                self.at += len(wanted)
                return place
        for place, name in enumerate(names):
            if rest.startswith(name[:3]):
                self.at += 3
                return place
        shown = self.text[self.at : self.at + 9].split(" ", 1)[0]
        raise InvalidDatetime(
            f'invalid value "{shown}" for "{field}"',
            detail="The given value did not match any of the allowed values for this field.",
        )


def _near_2020(value: int) -> int:
    """Two digits, or three, as the year next to 2020."""
    if value < 70:
        return value + 2000
    return value + 1900 if value < 100 else value + (2000 if value < 520 else 1000)


def parsed_micros(text: str, template: str) -> int:
    """Microseconds since 1970-01-01 UTC. Raises InvalidDatetime or DatetimeOverflow."""
    values = Reader(text, template).values
    days = days_of(values, text)
    return days * _DAY + _time(values, text)


def parsed_days(text: str, template: str) -> int:
    """Days since 1970-01-01; the time of the day is not looked at."""
    return days_of(Reader(text, template).values, text)


def days_of(values: dict[str, int], text: str) -> int:
    """Days since 1970-01-01."""
    if "J" in values:
        return values["J"] - 2_440_588
    if "IYYY" in values:
        return _iso_days(values)
    year = values.get("YYYY", 0)
    if "bc" in values and year > 0:
        year = 1 - year
    elif year < 0:
        year += 1
    elif year == 0 and "CC" in values:
        year = (values["CC"] - 1) * 100 + 1
    elif "YYYY" not in values or year == 0:
        year = 0  # 1 BC, as in PostgreSQL
    # A zero counts as nothing said, as in PostgreSQL.
    month, day = values.get("MM", 0) or 1, values.get("DD", 0) or 1
    if values.get("DDD", 0) > 0 and (month == 1 or day == 1):
        length = 366 if days_in_month(year, 2) == 29 else 365
        if not 1 <= values["DDD"] <= length:
            raise _out_of_range(text)
        return days_from_civil(year, 1, 1) + values["DDD"] - 1
    if "WW" in values and "MM" not in values and "DD" not in values:
        return days_from_civil(year, 1, 1) + (values["WW"] - 1) * 7
    if "W" in values and "DD" not in values:
        day = (values["W"] - 1) * 7 + 1
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        raise _out_of_range(text)
    return days_from_civil(year, month, day)


def _iso_days(values: dict[str, int]) -> int:
    first = days_from_civil(values["IYYY"], 1, 4)
    monday = first - (first + 3) % 7
    if "IDDD" in values:
        return monday + values["IDDD"] - 1
    return monday + (values.get("IW", 1) - 1) * 7 + values.get("ID", 1) - 1


def _time(values: dict[str, int], text: str) -> int:
    """Microseconds since midnight in UTC."""
    return micros_of(values, text) - offset_of(values, text) * 1_000_000


def offset_of(values: dict[str, int], text: str) -> int:
    """Seconds east of UTC. Raises InvalidZoneDisplacement."""
    hours, minutes = values.get("TZH", 0), values.get("TZM", 0)
    if not (0 <= hours <= _ZONE_HOURS_MAX and 0 <= minutes <= 59):
        raise InvalidZoneDisplacement(f'time zone displacement out of range: "{text}"')
    return (hours * 60 + minutes) * 60 * values.get("TZ sign", 1)


def micros_of(values: dict[str, int], text: str) -> int:
    """Microseconds of the day, whatever the zone."""
    seconds = values.get("SSSSS", values.get("SSSS"))
    if seconds is None:
        hour = values.get("HH24", 0)
        half = values.get("HH12", values.get("HH"))
        if half is not None:
            if not 1 <= half <= 12:
                raise InvalidDatetime(
                    f'hour "{half}" is invalid for the 12-hour clock',
                    hint="Use the 24-hour clock, or give an hour between 1 and 12.",
                )
            hour = half % 12 + (12 if "pm" in values else 0) if {"am", "pm"} & set(values) else half
        minute, second = values.get("MI", 0), values.get("SS", 0)
        if hour > 24 or minute > 59 or second > 60:
            raise _out_of_range(text)
        seconds = (hour * 60 + minute) * 60 + second
    elif seconds > 86_400:
        raise _out_of_range(text)
    micros = values.get("micros", 0)
    if not 0 <= micros < 1_000_000:
        raise _out_of_range(text)
    unit: int = 10 ** (6 - values.get("fraction digits", 6))
    return seconds * 1_000_000 + (micros + unit // 2) // unit * unit


def _out_of_range(text: str) -> DatetimeOverflow:
    return DatetimeOverflow(f'date/time field value out of range: "{text}"')
