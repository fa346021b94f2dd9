"""Text to values, as ``CAST('...' AS type)`` and typed literals read it, in PostgreSQL's input
syntax. Values are physical (see ``datatypes.values``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import inf
from typing import Final, TypeAlias

from remuda.datatypes.coercion import integer_range
from remuda.datatypes.enums import label_of
from remuda.datatypes.jsons import normalized
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.arraytext import split_array
from remuda.datatypes.times.datetimetext import parse_date, parse_time, parse_timestamp
from remuda.datatypes.times.intervaltext import parse_interval
from remuda.datatypes.times.time_digits import fit_of
from remuda.datatypes.times.zones import Zone
from remuda.datatypes.uuids import parse_uuid
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InvalidText, NumericOverflow, StringTooLong

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND

_TRUE: Final = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|inf(inity)?)\Z|nan\Z",
    re.IGNORECASE,
)


def parse_text(text: str, target: SqlType, zone: Zone | None = None) -> PhysicalValue:
    """The value of ``target`` that ``text`` denotes. ``zone`` is that of the session, for moments
    whose text names none, and has the forms in which the session writes; None: UTC, and the usual
    forms.

    Raises InvalidText, InvalidDatetime, NumericOverflow or StringTooLong, without a position.
    """
    if target.is_text:
        return check_length(text, target)
    if target.enum is not None:
        return label_of(text, target)
    if zone is not None and zone.reads(target):
        return _parse_its_own(text, target, zone)
    parse = _PARSERS.get(target.kind)
    if parse is None:
        raise _bad_text(text, target)
    found = parse(text.strip(), text, target)
    if target.fraction is None and not target.span:
        return found
    fit = fit_of(target)
    return found if fit is None else fit(found)


def _parse_its_own(text: str, target: SqlType, zone: Zone) -> PhysicalValue:
    if target.element is not None:
        items = split_array(text.strip())
        return tuple([None if i is None else parse_text(i, target.element, zone) for i in items])
    order = zone.forms.order
    found: PhysicalValue
    match target.kind:
        case Kind.DATE:
            found = parse_date(text, order)
        case Kind.TIMESTAMP:
            found = parse_timestamp(text, zoned=False, order=order)
        case Kind.TIMESTAMPTZ:
            found = parse_timestamp(text, zoned=True, here=zone.at_local, order=order)
        case Kind.INTERVAL:
            found = parse_interval(text, target.span, one_sign=True)
        case _:
            raise _bad_text(text, target)
    fit = fit_of(target)
    return found if fit is None else fit(found)


def type_name(t: SqlType) -> str:
    """The type as it is written in messages."""
    return str(t) if (t.element or t).kind is Kind.ENUM else str(t).lower()


def check_length(text: str, target: SqlType) -> str:
    """``text``, unless it is longer than CHAR(n) or VARCHAR(n) allow (trailing blanks are cut).
    CHAR(n) is kept without the blanks at its end, which mean nothing there."""
    if target.kind is Kind.CHAR:
        text = text.rstrip(" ")
    if target.length is None or len(text) <= target.length:
        return text
    if text[target.length :].strip(" "):
        raise too_long(target)
    return text[: target.length]


def too_long(target: SqlType) -> StringTooLong:
    """In PostgreSQL's words, for which programs search."""
    name = "character" if target.kind is Kind.CHAR else "character varying"
    return StringTooLong(f"value too long for type {name}({target.length})")


def rescale(unscaled: int, from_scale: int, to_scale: int) -> int:
    """An unscaled decimal at another scale, rounded half away from zero."""
    if to_scale >= from_scale:
        return unscaled * int(10 ** (to_scale - from_scale))
    divisor = int(10 ** (from_scale - to_scale))
    quotient, rest = divmod(abs(unscaled), divisor)
    if 2 * rest >= divisor:
        quotient += 1
    return -quotient if unscaled < 0 else quotient


def decimal_to_unscaled(value: Decimal, target: SqlType) -> int:
    """``value`` rounded to the scale of ``target``; NumericOverflow beyond its precision."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NumericOverflow(
            f"{value} cannot be converted to {type_name(target)}",
            hint="DECIMAL has finite values alone; DOUBLE PRECISION has NaN and infinities.",
        )
    precision, scale = target.precision or 0, target.scale or 0
    if value and value.adjusted() + 1 > precision - scale:
        raise field_overflow(target)
    if value and value.adjusted() < -scale - 1:
        return 0
    unscaled = int("".join(map(str, digits)))
    unscaled = rescale(-unscaled if sign else unscaled, max(0, -exponent), scale)
    unscaled *= int(10 ** max(0, exponent))
    if abs(unscaled) >= 10**precision:
        raise field_overflow(target)
    return unscaled


def field_overflow(target: SqlType) -> NumericOverflow:
    precision, scale = target.precision or 0, target.scale or 0
    return NumericOverflow(
        "numeric field overflow",
        detail=f"A field with precision {precision}, scale {scale} must round to an absolute "
        f"value less than 10^{precision - scale}.",
    )


def _bad_text(text: str, target: SqlType) -> InvalidText:
    shown = text if len(text) <= 60 else text[:57] + "..."
    name = "numeric" if target.kind is Kind.DECIMAL else type_name(target)
    return InvalidText(f'invalid input syntax for type {name}: "{shown}"')


def _parse_integer(stripped: str, text: str, target: SqlType) -> int:
    if _INTEGER.match(stripped) is None:
        raise _bad_text(text, target)
    low, high = integer_range(target.kind)
    if len(stripped) > 40 or not low <= (value := int(stripped)) <= high:
        raise NumericOverflow(
            f'value "{stripped[:60]}" is out of range for type {type_name(target)}'
        )
    return value


def _parse_float(stripped: str, text: str, target: SqlType) -> float:
    if _FLOAT.match(stripped) is None:
        raise _bad_text(text, target)
    value = float(stripped)
    limit, smallest = (3.4028235677973366e38, 7.0e-46) if target.kind is Kind.REAL else (inf, 0.0)
    digits = re.split("e", stripped, flags=re.IGNORECASE)[0]
    if (abs(value) >= limit or abs(value) <= smallest) and re.search("[1-9]", digits):
        raise NumericOverflow(f'"{stripped[:60]}" is out of range for type {type_name(target)}')
    return value


def _parse_boolean(stripped: str, text: str, target: SqlType) -> bool:
    word = stripped.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _bad_text(text, target)


def _parse_decimal(stripped: str, text: str, target: SqlType) -> int:
    try:
        value = Decimal(stripped) if "_" not in stripped else None
    except InvalidOperation:
        value = None
    if value is None:
        raise _bad_text(text, target)
    return decimal_to_unscaled(value, target)


def _parse_array(text: str, target: SqlType) -> PhysicalValue:
    assert target.element is not None
    element = target.element
    return tuple(
        [None if item is None else parse_text(item, element) for item in split_array(text)]
    )


def _parse_bytes(text: str, target: SqlType) -> bytes:
    """``\\x`` and hexadecimal digits, or UTF-8 text with ``\\\\`` and octal ``\\ooo`` for bytes."""
    try:
        if text.startswith("\\x"):
            return bytes.fromhex(text[2:])
    except ValueError as error:
        raise _bad_text(text, target) from error
    return text.encode() if "\\" not in text else unescaped_bytes(text)


_ESCAPED_BYTE = re.compile(rb"\\(?:([0-3][0-7]{2})|(\\)|)")


def unescaped_bytes(text: str) -> bytes:
    """Text with ``\\\\`` and octal ``\\ooo``: as BYTEA is written, and ``decode`` reads it.

    Raises InvalidText for any other backslash."""

    def byte(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return bytes([int(match[1], 8)])
        if match[2]:
            return b"\\"
        raise InvalidText("invalid input syntax for type bytea")

    return _ESCAPED_BYTE.sub(byte, text.encode())


_Parser: TypeAlias = Callable[[str, str, SqlType], PhysicalValue]
"""(text without blanks around it, the whole text, type)"""
_PARSERS: Final[dict[Kind, _Parser]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.TINYINT: _parse_integer,
    Kind.SMALLINT: _parse_integer,
    Kind.INTEGER: _parse_integer,
    Kind.BIGINT: _parse_integer,
    Kind.REAL: _parse_float,
    Kind.DOUBLE: _parse_float,
    Kind.DECIMAL: _parse_decimal,
    Kind.DATE: lambda _, text, _target: parse_date(text),
    Kind.TIME: lambda _, text, _target: parse_time(text),
    Kind.TIMESTAMP: lambda _, text, _target: parse_timestamp(text, zoned=False),
    Kind.TIMESTAMPTZ: lambda _, text, _target: parse_timestamp(text, zoned=True),
    Kind.BYTEA: lambda _, text, target: _parse_bytes(text, target),
    Kind.INTERVAL: lambda _, text, target: parse_interval(text, target.span),
    Kind.UUID: lambda _, text, _target: parse_uuid(text),
    Kind.JSON: lambda _, text, _target: normalized(text),
    Kind.ARRAY: lambda _, text, target: _parse_array(text, target),
}
