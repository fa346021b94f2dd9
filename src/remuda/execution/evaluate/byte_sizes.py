"""``pg_size_bytes``: a size as people write it, such as ``1.5 GB``, as a number of bytes."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from remuda.errors import InvalidParameterValue, NumericOverflow

_SPACES: Final = " \t\n\r\f\v"
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?", re.ASCII)
_UNITS: Final = {"": 0, "bytes": 0, "kb": 10, "mb": 20, "gb": 30, "tb": 40, "pb": 50}
"""The power of two of each unit, whatever the case of its letters."""
_DIGITS_MAX: Final = 131_072
_PLACES_MAX: Final = 16_383
"""Digits before and behind the point of a NUMERIC."""
_EXPONENT_MAX: Final = 2**30
"""PostgreSQL reads no longer exponents, also of zero."""
_SURE: Final = 60
"""Digits of a number that is too great in any unit, and zeros of one that is zero in any."""
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def size_bytes(text: str) -> int:
    """Raises InvalidParameterValue, NumericOverflow."""
    written = text.strip(_SPACES)
    number = _NUMBER.match(written)
    if number is None:
        raise InvalidParameterValue(f'invalid size: "{text}"')
    unit = written[number.end() :].lstrip(_SPACES)
    power = _UNITS.get(unit.lower())
    if power is None:
        raise InvalidParameterValue(
            f'invalid size: "{text}"',
            detail=f'Invalid size unit: "{unit}".',
            hint='Valid units are "bytes", "kB", "MB", "GB", "TB", and "PB".',
        )
    found = _bytes(number, power)
    if not _LEAST <= found <= _GREATEST:
        raise NumericOverflow("bigint out of range")
    return found


def _bytes(number: re.Match[str], power: int) -> int:
    """Rounded half away from zero. Raises NumericOverflow."""
    exponent = number[1]
    if exponent is not None and abs(int(exponent[:12])) >= _EXPONENT_MAX:
        raise NumericOverflow("value overflows numeric format")
    value = Decimal(number[0])
    size, places = value.adjusted(), -int(value.as_tuple().exponent)
    if places > _PLACES_MAX or (value and size >= _DIGITS_MAX):
        raise NumericOverflow("value overflows numeric format")
    if value and size > _SURE:
        raise NumericOverflow("bigint out of range")
    if not value or size < -_SURE:
        return 0
    exact = Context(prec=len(value.as_tuple().digits) + 2 * _SURE, rounding=ROUND_HALF_UP)
    return int(exact.to_integral_value(exact.multiply(value, Decimal(1 << power))))
