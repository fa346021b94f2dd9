"""Dates and times in all forms that PostgreSQL reads, by its own rules.

A text is cut into fields: numbers, dates, times, words, zones. Each field says which parts of the
moment it gives, and no part may be given twice. Ambiguous dates are in
the order that DateStyle says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final, NamedTuple

from remuda.datatypes.times.calendar import civil, days_from_civil, days_in_month
from remuda.datatypes.times.text_forms import MDY
from remuda.datatypes.times.zone_abbreviations import OFFSETS, ZONES
from remuda.datatypes.times.zones import Zone, zone
from remuda.errors import InvalidParameterValue

MICROS_PER_DAY: Final = 86_400_000_000
_JULIAN_EPOCH: Final = 2_440_588
_INT_MAX: Final = 2**31 - 1
_FIELDS_MAX: Final = 25
_ZONE_HOURS_MAX: Final = 15
_DATE: Final = frozenset({"year", "month", "day"})
_FIRST: Final = {MDY: "month", "DMY": "day", "YMD": "year"}
_TIME: Final = frozenset({"hour", "minute", "second"})
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july",
         "aug august", "sep sept september", "oct october", "nov november", "dec december"), 1
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS: Final = frozenset({
    "sun", "sunday", "mon", "monday", "tue", "tues", "tuesday", "wed", "weds", "wednesday", "thu",
    "thur", "thurs", "thursday", "fri", "friday", "sat", "saturday",
})  # fmt: skip
_UNITS: Final = {
    "d": "day", "h": "hour", "j": "julian", "jd": "julian", "julian": "julian", "m": "month",
    "mm": "minute", "s": "second", "y": "year",
}  # fmt: skip
_RESERVED: Final = frozenset({
    "allballs", "epoch", "infinity", "-infinity", "now", "today", "tomorrow", "yesterday",
})  # fmt: skip
_KNOWN: Final = frozenset({
    *_MONTHS, *_WEEKDAYS, *_UNITS, *_RESERVED, "ad", "bc", "am", "pm", "at", "on", "t", "dst",
    "dow", "doy", "isodow", "isoyear",
})  # fmt: skip
_CUT: Final = re.compile(
    r"(?P<time>[0-9]+:[0-9:.]*)"
    r"|(?P<number>[0-9]+\.[0-9]+(?![0-9.])|(?:[0-9]+)(?![0-9./-]))"
    r"|(?P<date>[0-9]+(?:-(?:[0-9]+(?:-[0-9-]*)?|[a-z0-9-]*)|/(?:[0-9]+(?:/[0-9/]*)?|[a-z0-9/]*)"
    r"|\.(?:[0-9]+\.[0-9.]*|[a-z0-9.]*)))"
    r"|(?P<fraction>\.[0-9]*)"
    r"|(?P<word>[a-z]+)"
    r"|(?P<zone>[+-]\s*[0-9][0-9:.-]*)"
    r"|(?P<special>[+-]\s*[a-z]+)"
)
_PUNCTUATION: Final = frozenset("!\"#$%&'()*,./:;<=>?@[\\]^_`{|}~")
_NAME_TAIL: Final = re.compile(r"[a-z0-9+\-/_.:]+")


class BadFormat(ValueError):
    """The text is no date or time."""


class OutOfRange(ValueError):
    """A field has a value that it cannot have."""


class MonthOrDayOutOfRange(OutOfRange):
    """A month or a day that no year has: in another order they might be right."""


class ZoneOutOfRange(ValueError):
    """A displacement from UTC that is too large."""


class UnknownZone(ValueError):
    """A name that may be a zone and is none."""


class Moment(NamedTuple):
    """``special`` is ``epoch``, ``infinity`` or ``-infinity``, then nothing else counts. ``offset``
    gives microseconds east of UTC at a local time; None if the text has no zone."""

    days: int = 0
    micros: int = 0
    offset: Callable[[int], int] | None = None
    special: str = ""


class _Field(NamedTuple):
    kind: str
    text: str


def _cut(text: str) -> list[_Field]:
    lower = text.lower()
    fields: list[_Field] = []
    at = 0
    while at < len(lower):
        if lower[at].isspace():
            at += 1
            continue
        match = _CUT.match(lower, at)
        if match is None:
            if lower[at] not in _PUNCTUATION:
                raise BadFormat
            at += 1
            continue
        kind = str(match.lastgroup)
        found = match[0]
        if kind == "word":
            following = lower[match.end() : match.end() + 1]
            if following in ("-", "/", ".") or (
                (following == "+" or following.isdigit()) and found not in _KNOWN
            ):
                tail = _NAME_TAIL.match(lower, match.end())
                found += tail[0] if tail else ""
                kind = "date"
        elif kind in ("zone", "special"):
            found = found[0] + found[1:].lstrip()
        elif kind == "fraction":
            kind = "number"
        at += len(match[0]) if kind != "date" else len(found)
        fields.append(_Field(kind, found))
    if not fields or len(fields) > _FIELDS_MAX:
        raise BadFormat
    return fields


def _whole(text: str) -> int:
    value = int(text or "0")
    if value > _INT_MAX:
        raise OutOfRange
    return value


def _micros(fraction: str) -> int:
    """``.5`` as microseconds, rounded to even as C's rint does."""
    if fraction == ".":
        return 0
    if not re.fullmatch(r"\.[0-9]+", fraction):
        raise BadFormat
    return round(Fraction(fraction) * 1_000_000)


def offset_of(text: str) -> int:
    """Microseconds east of UTC of ``+hh``, ``+hhmm``, ``+hh:mm`` or ``+hh:mm:ss``.

    Raises BadFormat or ZoneOutOfRange."""
    match = re.match(r"([+-])([0-9]*)(?::([0-9]*)(?::([0-9]*))?)?", text)
    if match is None:
        raise BadFormat
    hours, minutes, seconds = int(match[2] or 0), int(match[3] or 0), int(match[4] or 0)
    if match[3] is None and match.end() == len(text) and len(text) > 3:
        hours, minutes = divmod(hours, 100)
    if hours > _ZONE_HOURS_MAX or minutes > 59 or seconds > 59:
        raise ZoneOutOfRange
    if match.end() != len(text):
        raise BadFormat
    total = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    return -total if match[1] == "-" else total


class _Decoder:
    """The fields of one text. ``only_time``: a TIME is read."""

    def __init__(self, text: str, only_time: bool, order: str = MDY) -> None:
        self.fields = _cut(text)
        self.only_time = only_time
        self.order = order
        self.given: frozenset[str] = frozenset()
        self.values = dict.fromkeys((*_DATE, *_TIME, "micros", "doy"), 0)
        self.label = ""
        """The meaning of the next number, given by a word before it."""
        self.text_month = self.julian = self.two_digits = self.bc = False
        self.half = ""
        self.special = ""
        self.fixed: int | None = None
        self.named: Zone | None = None
        self.summer = 0

    def decoded(self) -> Moment:
        for place, field in enumerate(self.fields):
            found = self._field(place, field)
            if found & self.given:
                raise BadFormat
            self.given |= found
        self._check_date()
        self._apply_half()
        whole = self.given >= _DATE
        if self.only_time:
            self._check_time()
            if not self.given >= _TIME or (self.named and self.named.fixed is None and not whole):
                raise BadFormat
        elif not self.special and not whole:
            raise BadFormat
        if "summer" in self.given and (self.named is not None or "zone" not in self.given):
            raise BadFormat
        days = days_from_civil(*(self.values[n] for n in ("year", "month", "day"))) if whole else 0
        return Moment(days, self._time_of_day(), self._zone(), self.special)

    def _zone(self) -> Callable[[int], int] | None:
        if self.named is not None:
            return self.named.at_local
        if self.fixed is None and not self.summer:
            return None
        total = (self.fixed or 0) + self.summer
        return lambda _: total

    def _time_of_day(self) -> int:
        values = self.values
        seconds = (values["hour"] * 60 + values["minute"]) * 60 + values["second"]
        return seconds * 1_000_000 + values["micros"]

    def _check_date(self) -> None:
        values, given = self.values, self.given
        if "year" in given and not self.julian:
            year = values["year"]
            if year <= 0 and (self.bc or not self.two_digits):
                raise OutOfRange
            if self.bc:
                values["year"] = 1 - year
            elif self.two_digits:
                values["year"] += 2000 if year < 70 else 1900 if year < 100 else 0
        if "doy" in given:
            day = days_from_civil(values["year"], 1, 1) + values["doy"] - 1
            values["year"], values["month"], values["day"] = civil(day)
        if "month" in given and not 1 <= values["month"] <= 12:
            raise MonthOrDayOutOfRange
        if "day" in given and not 1 <= values["day"] <= 31:
            raise MonthOrDayOutOfRange
        if given >= _DATE and values["day"] > days_in_month(values["year"], values["month"]):
            raise OutOfRange

    def _apply_half(self) -> None:
        hour = self.values["hour"]
        if self.half and hour > 12:
            raise OutOfRange
        if self.half:
            self.values["hour"] = hour % 12 + (12 if self.half == "pm" else 0)

    def _check_time(self) -> None:
        values = self.values
        if (
            values["hour"] > 24
            or values["minute"] > 59
            or values["second"] > 60
            or self._time_of_day() > MICROS_PER_DAY
        ):
            raise OutOfRange

    # --- fields ---

    def _field(self, place: int, field: _Field) -> frozenset[str]:
        match field.kind:
            case "date":
                return self._date_field(place, field.text)
            case "time":
                if self.label not in ("", "time") and not self.only_time:
                    raise BadFormat
                self.label = ""
                return self._clock(field.text)
            case "zone":
                self.fixed = offset_of(field.text)
                return frozenset({"zone"})
            case "number":
                if self.label:
                    return self._labelled(field.text)
                return self._number_field(place, field.text)
            case _:
                return self._word(place, field.text)

    def _date_field(self, place: int, text: str) -> frozenset[str]:
        if self.only_time:
            last = self.fields[-1].kind
            if place == 0 and len(self.fields) >= 2 and (
                last == "date" or self.fields[1].kind == "time"
            ):  # fmt: skip
                return self._date(text)
        elif self.label == "julian":
            match = re.match("[0-9]*", text)
            digits = match[0] if match else ""
            self._set_julian(_whole(digits))
            self.fixed = offset_of(text[len(digits) :])
            self.label = ""
            return _DATE | _TIME | {"zone"}
        elif not self.label and not self.given >= {"month", "day"}:
            return self._date(text)
        if text[0].isdigit() or (self.label and not self.only_time):
            if self.label not in ("", "time") or self.given >= _TIME or "-" not in text:
                raise BadFormat
            self.label = ""
            digits, _, _ = text.partition("-")
            self.fixed = offset_of(text[len(digits) :])
            known = self.only_time or self.given >= _DATE
            return self._concatenated(digits, date_known=known) | {"zone"}
        self._name_zone(text)
        return frozenset({"zone"})

    def _name_zone(self, text: str) -> None:
        try:
            self.named = zone(text, posix=False)
        except InvalidParameterValue:
            raise UnknownZone(text) from None

    def _clock(self, text: str) -> frozenset[str]:
        match = re.fullmatch(r"([0-9]+):([0-9]*)(?::([0-9]*))?(\..*)?", text)
        if match is None:
            raise BadFormat
        hour, minute, second = _whole(match[1]), _whole(match[2]), _whole(match[3] or "")
        micros = _micros(match[4]) if match[4] else 0
        if match[4] and match[3] is None:
            hour, minute, second = 0, hour, minute
        if minute > 59 or second > 60:
            raise OutOfRange
        self.values.update(hour=hour, minute=minute, second=second, micros=micros)
        self._check_time()
        return _TIME

    def _labelled(self, text: str) -> frozenset[str]:
        label, self.label = self.label, ""
        digits, point, fraction = text.partition(".")
        if point and label not in ("julian", "time", "second"):
            raise BadFormat
        if label == "time":
            found = self._concatenated(text, date_known=True)
            if found != _TIME:
                raise BadFormat
            return found
        value = _whole(digits)
        if label == "julian":
            self._set_julian(value)
            if not point:
                return _DATE
            micros = round(Fraction(f"0.{fraction or 0}") * MICROS_PER_DAY)
            self.values["second"], self.values["micros"] = divmod(micros, 1_000_000)
            self.values["minute"], self.values["second"] = divmod(self.values["second"], 60)
            self.values["hour"], self.values["minute"] = divmod(self.values["minute"], 60)
            return _DATE | _TIME
        if label == "month" and self.given >= {"month", "hour"}:
            label = "minute"
        self.values[label] = value
        if point:
            self.values["micros"] = _micros(point + fraction)
        return frozenset({label})

    def _set_julian(self, day: int) -> None:
        self.values["year"], self.values["month"], self.values["day"] = civil(day - _JULIAN_EPOCH)
        self.julian = True

    def _number_field(self, place: int, text: str) -> frozenset[str]:
        before, point, _ = text.partition(".")
        if self.only_time:
            if point:
                if place == 0 and len(self.fields) >= 2 and self.fields[-1].kind == "date":
                    return self._date(text)
                if len(before) <= 2:
                    raise BadFormat
            if point or len(text) > 4:
                return self._concatenated(text, date_known=True)
            return self._number(text, self.given | _DATE, text_month=False)
        if point and not self.given & _DATE:
            return self._date(text)
        if (point and len(before) > 2) or (
            len(text) >= 6 and not (self.given & _DATE and self.given & _TIME)
        ):
            return self._concatenated(text, date_known=self.given >= _DATE)
        return self._number(text, self.given, self.text_month)

    def _concatenated(self, text: str, date_known: bool) -> frozenset[str]:
        """``yyyymmdd``, ``yymmdd``, ``hhmmss`` or ``hhmm``."""
        digits, point, fraction = text.partition(".")
        if point:
            self.values["micros"] = round(Fraction(f"0.{fraction or 0}") * 1_000_000)
        elif not date_known and len(digits) >= 6:
            year = _whole(digits[:-4])
            self.values.update(year=year, month=int(digits[-4:-2]), day=int(digits[-2:]))
            self.two_digits = len(digits) == 6
            return _DATE
        if not self.given >= _TIME and len(digits) in (4, 6):
            self.values.update(
                hour=int(digits[:2]), minute=int(digits[2:4]), second=int(digits[4:] or 0)
            )
            return _TIME
        raise BadFormat

    def _date(self, text: str) -> frozenset[str]:
        """``1999-01-08``, ``08-jan-99``, ``1999.008`` ..."""
        parts: list[str] = []
        at = 0
        while at < len(text):
            match = re.compile(r"[^0-9a-z]*([0-9]+|[a-z]+)").match(text, at)
            if match is None:
                raise BadFormat
            parts.append(match[1])
            at = match.end() + 1
        given = self.given
        text_month = False
        for part in parts:
            if part.isalpha() and part not in ("at", "on"):
                if part not in _MONTHS or "month" in given:
                    raise BadFormat
                self.values["month"] = _MONTHS[part]
                text_month = True
                given |= {"month"}
        for part in parts:
            if part.isdigit():
                found = self._number(part, given, text_month)
                if found & given:
                    raise BadFormat
                given |= found
        if given - {"doy", "zone"} != _DATE:
            raise BadFormat
        return given - self.given

    def _number(self, text: str, given: frozenset[str], text_month: bool) -> frozenset[str]:
        """A single number: which part of a date it is follows from those before it."""
        digits, point, fraction = text.partition(".")
        if not digits:
            raise BadFormat
        value = _whole(digits)
        if point:
            if len(digits) > 2:
                return self._concatenated(text, date_known=True)
            self.values["micros"] = _micros(point + fraction)
        date = given & _DATE
        if len(text) == 3 and date == {"year"} and 1 <= value <= 366:
            self.values["doy"] = value
            return frozenset({"doy", "month", "day"})
        if date == _DATE:
            return self._concatenated(text, date_known=True)
        if not date:
            part = "year" if len(text) >= 3 else _FIRST[self.order]
        elif date == {"month"}:
            year_first = len(text) >= 3 or self.order == "YMD"
            part = "year" if text_month and year_first else "day"
        elif date == {"year", "month"}:
            part = "day"
            if text_month and len(text) >= 3 and self.two_digits:
                value, self.values["year"] = self.values["year"], value
                self.two_digits = False
        else:
            part = "year" if date == {"month", "day"} else "month"
        self.values[part] = value
        if part == "year":
            self.two_digits = len(text) <= 2
        return frozenset({part})

    # --- words ---

    def _word(self, place: int, text: str) -> frozenset[str]:
        upper = text.upper()
        if upper in OFFSETS:
            self.fixed = OFFSETS[upper] * 1_000_000
            return frozenset({"zone"})
        if upper in ZONES:
            self.named = zone(text)
            return frozenset({"zone"})
        if text in _RESERVED:
            return self._reserved(text)
        if text in _MONTHS or text in _WEEKDAYS:
            return self._named_day(text)
        if text in ("am", "pm"):
            self.half = text
            return frozenset({"half"})
        if text in ("ad", "bc"):
            self.bc = text == "bc"
            return frozenset({"era"})
        if text in ("at", "on"):
            return frozenset()
        if text in _UNITS:
            self.label = _UNITS[text]
            return frozenset()
        if text == "t":
            following = [field.kind for field in self.fields[place + 1 : place + 2]]
            dated = self.only_time or self.given >= _DATE
            if not dated or not following or following[0] not in ("number", "time", "date"):
                raise BadFormat
            self.label = "time"
            return frozenset()
        if text == "dst":
            self.summer = 3_600_000_000
            return frozenset({"summer"})
        if text in _KNOWN:
            raise BadFormat
        try:
            self.named = zone(text)
        except InvalidParameterValue:
            raise BadFormat from None
        return frozenset({"zone"})

    def _reserved(self, text: str) -> frozenset[str]:
        if text == "allballs":
            self.fixed = 0
            return _TIME | {"zone"}
        if self.only_time or text not in ("epoch", "infinity", "-infinity"):
            raise BadFormat
        self.special = text
        return frozenset({"reserved"})

    def _named_day(self, text: str) -> frozenset[str]:
        if self.only_time:
            raise BadFormat
        if text in _WEEKDAYS:
            return frozenset({"weekday"})
        month, self.values["month"] = self.values["month"], _MONTHS[text]
        moved = "month" in self.given and not self.text_month and "day" not in self.given
        self.text_month = True
        if moved and 1 <= month <= 31:
            self.values["day"] = month
            return frozenset({"day"})
        return frozenset({"month"})


def moment_of(text: str, order: str = MDY) -> Moment:
    """A date, with a time and a zone or without. Raises BadFormat, OutOfRange, ZoneOutOfRange or
    UnknownZone."""
    found = _Decoder(text, only_time=False, order=order).decoded()
    return found._replace(days=0, micros=0) if found.special else found


def time_of(text: str) -> int:
    """Microseconds of the day; up to 24:00. Raises as ``moment_of``."""
    return _Decoder(text, only_time=True).decoded().micros
