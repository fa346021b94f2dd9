"""NUMERIC in PostgreSQL's binary form: digits to the base of 10,000."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Final

from remuda.errors import InvalidText

_HEAD: Final = struct.Struct("!HhHH")
_BASE: Final = 10_000
_BASE_DIGITS: Final = 4
_NEGATIVE: Final = 0x4000
_SPECIAL: Final = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
_SCALE_MAX: Final = 16_383


def encode_numeric(unscaled: int, scale: int) -> bytes:
    """``unscaled / 10**scale``, shown with ``scale`` digits after the point."""
    sign = _NEGATIVE if unscaled < 0 else 0
    rest = abs(unscaled)
    fraction_groups = -(-scale // _BASE_DIGITS)
    rest *= 10 ** (fraction_groups * _BASE_DIGITS - scale)
    digits: list[int] = []
    while rest:
        rest, digit = divmod(rest, _BASE)
        digits.append(digit)
    weight = len(digits) - fraction_groups - 1
    start = 0
    while start < len(digits) and digits[start] == 0:  # groups of zeros at the end are not sent
        start += 1
    shown = digits[start:][::-1]
    if not shown:
        weight = sign = 0
    return _HEAD.pack(len(shown), weight, sign, scale) + struct.pack(f"!{len(shown)}H", *shown)


def decode_numeric(data: bytes) -> Decimal:
    """NaN and the infinities included. Raises InvalidText."""
    if len(data) < _HEAD.size:
        raise _invalid("too short")
    count, weight, sign, scale = _HEAD.unpack_from(data)
    if sign in _SPECIAL:
        return Decimal(_SPECIAL[sign])
    if len(data) != _HEAD.size + 2 * count or sign not in (0, _NEGATIVE) or scale > _SCALE_MAX:
        raise _invalid("wrong length, sign or scale")
    digits = struct.unpack_from(f"!{count}H", data, _HEAD.size)
    value = 0
    for digit in digits:
        if digit >= _BASE:
            raise _invalid("a digit above 9999")
        value = value * _BASE + digit
    exponent = (weight - count + 1) * _BASE_DIGITS
    # The digits that are shown decide, not the zeros with which the last group is filled.
    if exponent > -scale:
        value *= 10 ** (exponent + scale)
    elif exponent < -scale:
        value //= 10 ** (-scale - exponent)
    return Decimal((int(sign == _NEGATIVE and value != 0), _digits(value), -scale))


def _digits(value: int) -> tuple[int, ...]:
    return tuple(map(int, str(value)))


def _invalid(why: str) -> InvalidText:
    return InvalidText(f"invalid binary value of type numeric: {why}")
