"""Text to values: what ``CAST('...' AS type)`` and typed literals read. PostgreSQL's input syntax,
with ISO 8601 dates only. Values are physical (see ``datatypes.values``)."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation
from typing import Final

from remuda.datatypes.coercion import integer_range
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InvalidDatetime, InvalidText, NumericOverflow, StringTooLong

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND
_EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()

_TRUE: Final = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|inf(inity)?)\Z|nan\Z",
    re.IGNORECASE,
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})\Z")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?\Z")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
    r"(?:[ T]+([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
    r"\s*(Z|UTC|[+-][0-9]{1,2}(?::?[0-9]{2})?)?)?\Z",
    re.IGNORECASE,
)


def parse_text(text: str, target: SqlType) -> PhysicalValue:
    """The value of ``target`` that ``text`` denotes.

    Raises InvalidText, InvalidDatetime, NumericOverflow or StringTooLong, without a position.
    """
    kind = target.kind
    if target.is_text:
        return check_length(text, target)
    stripped = text.strip()
    if target.is_integer:
        return _parse_integer(stripped, text, target)
    match kind:
        case Kind.BOOLEAN:
            return _parse_boolean(stripped, text)
        case Kind.REAL | Kind.DOUBLE:
            if _FLOAT.match(stripped) is None:
                raise _bad_text(text, target)
            return float(stripped)
        case Kind.DECIMAL:
            return _parse_decimal(stripped, text, target)
        case Kind.DATE:
            return _parse_date(stripped, text)
        case Kind.TIME:
            return _parse_time(stripped, text)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _parse_timestamp(stripped, text, target)
        case Kind.BYTEA:
            return _parse_bytes(text, target)
        case _:
            raise _bad_text(text, target)


def type_name(t: SqlType) -> str:
    """The type as it is written in messages."""
    return str(t).lower()


def check_length(text: str, target: SqlType) -> str:
    """``text``, unless it is longer than CHAR(n) or VARCHAR(n) allow (trailing blanks are cut)."""
    if target.length is None or len(text) <= target.length:
        return text
    if text[target.length :].strip(" "):
        raise StringTooLong(f"value too long for type {type_name(target)}")
    return text[: target.length]


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
        raise NumericOverflow(f"{value} cannot be converted to {type_name(target)}")
    precision, scale = target.precision or 0, target.scale or 0
    if value and value.adjusted() + 1 > precision - scale:
        raise _field_overflow(target)
    if value and value.adjusted() < -scale - 1:
        return 0
    unscaled = int("".join(map(str, digits)))
    unscaled = rescale(-unscaled if sign else unscaled, max(0, -exponent), scale)
    unscaled *= int(10 ** max(0, exponent))
    if abs(unscaled) >= 10**precision:
        raise _field_overflow(target)
    return unscaled


def _field_overflow(target: SqlType) -> NumericOverflow:
    precision, scale = target.precision or 0, target.scale or 0
    return NumericOverflow(
        "numeric field overflow",
        detail=f"A field with precision {precision}, scale {scale} must round to an absolute "
        f"value less than 10^{precision - scale}.",
    )


def _bad_text(text: str, target: SqlType) -> InvalidText:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return InvalidText(f'invalid input syntax for type {type_name(target)}: "{shown}"')


def _bad_datetime(text: str, kind: str) -> InvalidDatetime:
    shown = text if len(text) <= 60 else text[:57] + "..."
    example = {"date": "2013-01-31", "time": "23:59:59.5"}.get(kind, "2013-01-31 23:59:59.5")
    return InvalidDatetime(
        f'invalid input syntax for type {kind}: "{shown}"', hint=f"Write it as '{example}'."
    )


def _parse_integer(stripped: str, text: str, target: SqlType) -> int:
    if _INTEGER.match(stripped) is None:
        raise _bad_text(text, target)
    low, high = integer_range(target.kind)
    if len(stripped) > 40 or not low <= (value := int(stripped)) <= high:
        raise NumericOverflow(
            f'value "{stripped[:60]}" is out of range for type {type_name(target)}'
        )
    return value


def _parse_boolean(stripped: str, text: str) -> bool:
    word = stripped.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _bad_text(text, SqlType(Kind.BOOLEAN))


def _parse_decimal(stripped: str, text: str, target: SqlType) -> int:
    try:
        value = Decimal(stripped) if "_" not in stripped else None
    except InvalidOperation:
        value = None
    if value is None:
        raise _bad_text(text, target)
    return decimal_to_unscaled(value, target)


def _parse_date(stripped: str, text: str) -> int:
    match = _DATE.match(stripped)
    if match is None:
        raise _bad_datetime(text, "date")
    year, month, day = map(int, match.groups())
    try:
        return datetime.date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError as error:
        raise InvalidDatetime(f'date/time field value out of range: "{text}"') from error


def _parse_time(stripped: str, text: str) -> int:
    match = _TIME.match(stripped)
    if match is None:
        raise _bad_datetime(text, "time")
    hour, minute = int(match[1]), int(match[2])
    second = int(match[3] or 0)
    fraction = round(int((match[4] or "0").ljust(9, "0")) / 1000)
    micros = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction
    if hour > 23 or minute > 59 or second > 59 or micros >= MICROS_PER_DAY:
        raise InvalidDatetime(f'date/time field value out of range: "{text}"')
    return micros


def _parse_timestamp(stripped: str, text: str, target: SqlType) -> int:
    kind = type_name(target)
    match = _TIMESTAMP.match(stripped)
    if match is None:
        raise _bad_datetime(text, kind)
    date, time, zone = match.groups()
    micros = _parse_date(date, text) * MICROS_PER_DAY
    if time:
        micros += _parse_time(time, text)
    if zone:
        if target.kind is Kind.TIMESTAMP:
            raise InvalidDatetime(
                f'invalid input syntax for type {kind}: "{text}"',
                hint="A time zone needs TIMESTAMP WITH TIME ZONE.",
            )
        micros -= _zone_micros(zone, text)
    return micros


def _zone_micros(zone: str, text: str) -> int:
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = (digits[:2], digits[2:]) if len(digits) > 2 else (digits, "0")
    if int(hours) > 15 or int(minutes) > 59:
        raise InvalidDatetime(f'time zone displacement out of range: "{text}"')
    micros = (int(hours) * 60 + int(minutes)) * 60 * MICROS_PER_SECOND
    return -micros if zone[0] == "-" else micros


def _parse_bytes(text: str, target: SqlType) -> bytes:
    """``\\x`` and hexadecimal digits; anything else is taken as UTF-8 text without backslashes."""
    try:
        if text.startswith("\\x"):
            return bytes.fromhex(text[2:])
    except ValueError as error:
        raise _bad_text(text, target) from error
    if "\\" in text:
        raise _bad_text(text, target)
    return text.encode()
