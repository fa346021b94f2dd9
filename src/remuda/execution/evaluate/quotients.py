"""Division of DECIMAL columns: long division over whole columns, with PostgreSQL's digits.

PostgreSQL rounds each quotient to a scale of its own (``numeric.significant_scale``). So does this,
and fills up with zeros to the one scale of the result's type. Columns of 64-bit integers stay
columns: values that outgrow 64 bits are carried as two words.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.datatypes.numeric import Numeric, rounded, significant_scale
from remuda.datatypes.sql import Kind, SqlType
from remuda.execution.arrays import Data, pack_bits
from remuda.execution.evaluate.decimals import without_zeros
from remuda.execution.evaluate.numbers import (
    DECIMAL_LIMIT,
    INT64_MAX,
    Exact,
    Value,
    bounds,
    decimal_array,
    exact_of,
    invalid_mask,
    shrink,
)

Words: TypeAlias = tuple[Data, Data]
"""Unsigned integers of 128 bits: high and low words (uint64)."""
_GROUP = 4
_SIGNIFICANT = 16
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_LEAST_STEP = 2
"""Digits that long division yields at a time; fewer, and it is slower than Python's integers."""


def divide(left: Value, right: Value, types: tuple[SqlType, SqlType], result: SqlType) -> pa.Array:
    """Quotients rounded half away from zero. Raises DivisionByZero, NumericOverflow."""
    invalid = invalid_mask(left, right)
    dividend, divisor = exact_of(left), without_zeros(exact_of(right), invalid)
    scales = _scale(types[0]), _scale(types[1])
    least = _least_digits(types, result)
    words = None
    if _is_short(dividend) and _is_short(divisor):
        words = _by_columns(dividend, divisor, scales, result, least)
    if words is None:
        data = _by_rows(dividend, divisor, scales, result, least)
        return decimal_array(data, result, left, right, invalid=invalid)
    bits = None if invalid is None else pack_bits(~invalid)
    negative = (dividend < 0) != (divisor < 0)
    if isinstance(words, np.ndarray):
        data = np.where(negative, -words, words)
        return decimal_array(data, result, left, right, invalid=invalid)
    limbs = np.empty((len(words[0]), 2), np.uint64)
    high, low = words
    limbs[:, 1] = np.where(negative, ~high + (low == 0), high)
    limbs[:, 0] = np.where(negative, ~low + np.uint64(1), low)
    type_ = pa.decimal128(38, result.scale or 0)
    return pa.Array.from_buffers(type_, len(limbs), [bits, pa.py_buffer(limbs)])


def _scale(type_: SqlType) -> int:
    return type_.scale or 0 if type_.kind is Kind.DECIMAL else 0


def _least_digits(types: tuple[SqlType, SqlType], result: SqlType) -> int:
    """All digits of the result's scale if it is not shown by PostgreSQL's rules."""
    if result.digits is None:
        return result.scale or 0
    return max(t.digits[1] if t.digits else _scale(t) for t in types)


def _is_short(data: Exact) -> bool:
    if isinstance(data, int):
        return abs(data) < 2**62
    if data.dtype == object:
        return False
    low, high = bounds(data)
    return low > -(2**62) and high < 2**62


# --- columns of 64-bit integers ---------------------------------------------------------------


def _by_columns(
    dividend: Any, divisor: Any, scales: tuple[int, int], result: SqlType, least: int
) -> Data | Words | None:
    """Magnitudes of the quotients; None if they are too large for this way."""
    top, bottom = np.abs(dividend), np.abs(divisor)
    scale = result.scale or 0
    step = 18 - len(str(int(np.max(bottom, initial=1))))
    whole, rest = np.divmod(top, bottom)
    largest = int(np.max(whole, initial=0)) + 1
    if step < _LEAST_STEP or largest * 10 ** max(0, scale + scales[1] - scales[0]) >= DECIMAL_LIMIT:
        return None
    shown = _digits(top, bottom, scales, scale, least)
    low, high = int(np.min(shown, initial=scale)), int(np.max(shown, initial=0))
    if low + scales[1] - scales[0] < 0:
        return None
    form = _Form(scale, scales[1] - scales[0], step)
    bottom = np.broadcast_to(bottom, whole.shape)
    parts = (whole, rest, bottom)
    if len(whole) == 0 or low == high:
        return _quotients(parts, largest, high, form)
    high_words, low_words = (np.zeros(len(whole), np.uint64) for _ in range(2))
    wide = False
    for digits in np.unique(shown).tolist():
        rows = np.flatnonzero(shown == digits)
        some = (whole[rows], rest[rows], bottom[rows])
        reach = int(some[0].max()) + 1
        found = _quotients(some, reach, digits, form)
        if isinstance(found, np.ndarray):
            low_words[rows] = found.view(np.uint64)
        else:
            high_words[rows], low_words[rows] = found
            wide = True
    return (high_words, low_words) if wide else low_words.view(np.int64)


class _Form(NamedTuple):
    """``scale`` of the result; by how much the divisor's scale is above the dividend's; digits that
    long division yields at a time."""

    scale: int
    difference: int
    step: int


def _quotients(
    parts: tuple[Data, Data, Data], reach: int, digits: int, form: _Form
) -> Data | Words:
    """Quotients from whole parts (below ``reach``), rests and divisors, rounded to ``digits``
    after the point, at the scale of ``form``."""
    whole, rest, bottom = parts
    value: Data | Words = whole
    left = digits + form.difference
    while left:
        now = min(form.step, left)
        digit, rest = np.divmod(rest * 10**now, bottom)
        reach *= 10**now
        value = _appended(value, 10**now, digit, reach)
        left -= now
    value = _appended(value, 1, (2 * rest >= bottom).astype(np.int64), reach + 1)
    zeros = form.scale - digits
    while zeros > 0:
        now = min(18, zeros)
        reach *= 10**now
        value = _appended(value, 10**now, np.zeros(len(whole), np.int64), reach)
        zeros -= now
    return value


def _appended(value: Data | Words, factor: int, digit: Data, reach: int) -> Data | Words:
    """``value * factor + digit``, which stays below ``reach``."""
    if isinstance(value, np.ndarray):
        if reach <= INT64_MAX:
            return value * factor + digit
        value = (np.zeros(len(value), np.uint64), value.view(np.uint64))
    high, low = value
    if factor != 1:
        first, second = np.uint64(factor & 0xFFFFFFFF), np.uint64(factor >> 32)
        top, bottom = low >> _HALF, low & _LOW
        lowest, left, right = bottom * first, bottom * second, top * first
        middle = (lowest >> _HALF) + (left & _LOW) + (right & _LOW)
        carry = top * second + (left >> _HALF) + (right >> _HALF) + (middle >> _HALF)
        high = high * np.uint64(factor) + carry
        low = (middle << _HALF) | (lowest & _LOW)
    added = digit.view(np.uint64)
    low = low + added
    return high + (low < added), low


def _digits(top: Any, bottom: Any, scales: tuple[int, int], scale: int, least: int) -> Any:
    """The digits after the point of each quotient: one number, or a column of them."""
    if least >= scale:
        return np.int64(scale)
    weight, first = _first_groups(top, scales[0])
    other_weight, other_first = _first_groups(bottom, scales[1])
    weights = weight - other_weight - (first <= other_first)
    return np.clip(_SIGNIFICANT - _GROUP * weights, least, scale)


def _first_groups(data: Any, scale: int) -> tuple[Any, Any]:
    """Of magnitudes: the exponent of 10000 of the first group of digits, and its value."""
    if isinstance(data, int | np.integer):
        value = Numeric(int(data), scale)
        return value.weight, value.first_group
    lowest = -scale // _GROUP
    weight = np.full(len(data), lowest, np.int64)
    first = data * 10 ** -(_GROUP * lowest + scale)
    limit = int(np.max(data, initial=0))
    above = lowest + 1
    while (power := 10 ** (_GROUP * above + scale)) <= limit:
        reached = data >= power
        weight += reached
        first = np.where(reached, data // power, first)
        above += 1
    return np.where(data == 0, 0, weight), first


# --- any integers --------------------------------------------------------------------------------


def _by_rows(
    dividend: Exact, divisor: Exact, scales: tuple[int, int], result: SqlType, least: int
) -> Data:
    """Unscaled quotients, one row after the other."""
    tops, bottoms = np.broadcast_arrays(dividend, divisor)
    scale = result.scale or 0
    found = np.empty(tops.shape, object)
    for row, (top, bottom) in enumerate(zip(tops.tolist(), bottoms.tolist(), strict=True)):
        wanted = significant_scale(Numeric(top, scales[0]), Numeric(bottom, scales[1]))
        digits = min(scale, max(least, wanted))
        shift = digits + scales[1] - scales[0]
        quotient = rounded(top * 10 ** max(0, shift), bottom * 10 ** max(0, -shift))
        found[row] = quotient * 10 ** (scale - digits)
    data = shrink(found)
    assert isinstance(data, np.ndarray)
    return data
