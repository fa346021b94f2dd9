"""Values as text, in PostgreSQL's output form, for CAST to text and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from remuda.datatypes.numeric import shown_scale
from remuda.datatypes.sql import INTEGER_KINDS, TEXT_KINDS, Kind, SqlType
from remuda.datatypes.texts.arraytext import array_text, row_text
from remuda.datatypes.times.calendar import (
    date_text,
    moment_text,
    timestamp_text,
    zoned_text,
)
from remuda.datatypes.times.intervals import clock_text, interval_text, unpack
from remuda.datatypes.times.text_forms import escaped_bytes
from remuda.datatypes.uuids import uuid_text
from remuda.datatypes.values import from_physical

if TYPE_CHECKING:  # many processes write texts, few know zones
    from remuda.datatypes.times.zones import Zone


def text_of(source: SqlType, zone: Zone | None = None) -> Callable[[Any], str]:
    """The function from a physical value (not NULL) to its text; for every type. Moments are
    written by the clocks of ``zone``, values in the forms of its session; None: UTC, and the usual
    forms."""
    if zone is not None:
        own = _own_text(source, zone)
        if own is not None:
            return own
    simple = _TEXTS.get(source.kind)
    if simple is not None:
        return simple
    match source.kind:
        case Kind.INTERVAL:
            return lambda value: interval_text(*unpack(value))
        case Kind.ARRAY:
            assert source.element is not None
            element = part_text(source.element, zone)
            return lambda value: array_text([None if v is None else element(v) for v in value])
        case Kind.ROW:
            fields = [part_text(t, zone) for _, t in source.fields]
            return lambda value: row_text(
                [None if v is None else text(v) for v, text in zip(value, fields, strict=True)]
            )
        case kind if kind in (*TEXT_KINDS, *INTEGER_KINDS, Kind.JSON, Kind.ENUM):
            return str
        case Kind.REAL:
            return lambda value: float_text(
                value, np.format_float_scientific(np.float32(value)), _REAL_DIGITS
            )
        case Kind.DOUBLE:
            return lambda value: float_text(value, np.format_float_scientific(value))
        case Kind.DECIMAL:
            scale = source.scale or 0
            if source.digits is not None:
                return _computed_text(scale, *source.digits)
            return lambda value: decimal_text(value, scale)
        case Kind.BYTEA:
            return lambda value: "\\x" + value.hex()
        case _:
            return lambda value: str(from_physical(value, source))


def _own_text(source: SqlType, zone: Zone) -> Callable[[Any], str] | None:
    """As the session of the zone writes a value that is no array and no row."""
    forms = zone.forms
    if source.kind is Kind.TIMESTAMPTZ and forms.style != "ISO":
        return lambda value: _named_moment(value, zone)
    if source.kind is Kind.TIMESTAMPTZ:
        return lambda value: moment_text(value, zone)
    if not forms.writes(source):
        return None
    match source.kind:
        case Kind.DATE:
            return forms.date
        case Kind.TIMESTAMP:
            return forms.timestamp
        case Kind.INTERVAL:
            return lambda value: forms.interval(*unpack(value))
        case Kind.BYTEA:
            return escaped_bytes
        case Kind.REAL | Kind.DOUBLE as kind:
            general = text_of(source)
            return lambda value: (
                forms.float_text(value, kind) if np.isfinite(value) else general(value)
            )
        case _:
            return None


def _named_moment(value: int, zone: Zone) -> str:
    """With the name of the zone's time: ``01/02/2024 10:00:00 CET``."""
    return zone.forms.timestamp(value + zone.at_utc(value), f" {zone.called(value)}")


def part_text(source: SqlType, zone: Zone | None = None) -> Callable[[Any], str]:
    """Inside arrays and rows a truth value is one letter, as in PostgreSQL."""
    if source.kind is Kind.BOOLEAN:
        return lambda value: "t" if value else "f"
    return text_of(source, zone)


_TEXTS: Final[dict[Kind, Callable[[Any], str]]] = {
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.UUID: uuid_text,
    Kind.DATE: date_text,
    Kind.TIME: clock_text,
    Kind.TIMESTAMP: timestamp_text,
    Kind.TIMESTAMPTZ: zoned_text,
}


def _computed_text(scale: int, step: int, least: int) -> Callable[[Any], str]:
    def text(value: int) -> str:
        shown = shown_scale(value, scale, step, least)
        return decimal_text(value // 10 ** (scale - shown), shown)

    return text


def decimal_text(unscaled: int, scale: int) -> str:
    sign = "-" if unscaled < 0 else ""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


_REAL_DIGITS: Final = 6
_DOUBLE_DIGITS: Final = 15


def float_text(value: float, scientific: str, whole: int = _DOUBLE_DIGITS) -> str:
    """PostgreSQL's output of floats: shortest digits, exponent form below 1e-4, and from a number
    with more than ``whole`` digits before its point on."""
    if np.isnan(value):
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    mantissa, exponent_text = scientific.split("e")
    exponent = int(exponent_text)
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "").rstrip("0") or "0"
    if value == 0:
        return sign + "0"
    if exponent < -4 or exponent >= whole:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return sign + digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
