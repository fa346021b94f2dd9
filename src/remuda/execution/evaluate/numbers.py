"""Exact integers for integer and decimal arithmetic: int64 when they fit, else Python integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import NumericOverflow
from remuda.execution.arrays import (
    Data,
    Mask,
    array_from,
    data_of,
    pack_bits,
    shared_validity,
    validity_mask,
)

Value: TypeAlias = pa.Array | pa.Scalar
"""An evaluated expression: a column, or one value for all rows."""
Exact: TypeAlias = Data | int
"""Integers: an int64 array, an object array of Python integers, or one Python integer."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
DECIMAL_LIMIT = 10**38
_MASK_64 = 2**64 - 1
INTEGER_LIMITS = {
    Kind.TINYINT: ("tinyint", 2**7),
    Kind.SMALLINT: ("smallint", 2**15),
    Kind.INTEGER: ("integer", 2**31),
    Kind.BIGINT: ("bigint", 2**63),
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def exact_of(value: Value) -> Exact:
    """The integers, dates, times or unscaled decimals of ``value`` (not a NULL scalar)."""
    if isinstance(value, pa.Scalar):
        if pa.types.is_decimal(value.type):
            return _unscaled_scalar(value)
        return int(value.value if hasattr(value, "value") else value.as_py())
    if pa.types.is_decimal(value.type):
        return _unscaled_array(value)
    data = data_of(value)
    return data if data.dtype == np.int64 else data.astype(np.int64)


def _unscaled_scalar(value: pa.Scalar) -> int:
    sign, digits, exponent = value.as_py().as_tuple()
    number = int("".join(map(str, digits)))
    number *= int(10 ** (exponent + value.type.scale))
    return -number if sign else number


def decimal_limbs(array: pa.Array) -> Data:
    """The 128-bit values of a decimal128 array as (rows, 2) int64: low (bits), high."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.empty((0, 2), np.int64)
    return np.frombuffer(buffer, np.int64, 2 * len(array), 16 * array.offset).reshape(-1, 2)


def _unscaled_array(array: pa.Array) -> Data:
    if pa.types.is_decimal256(array.type):
        array = array.cast(pa.decimal128(38, array.type.scale))
    limbs = decimal_limbs(array)
    low, high = limbs[:, 0], limbs[:, 1]
    valid = validity_mask(array)
    if valid is not None:
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if np.array_equal(high, low >> 63):
        return np.ascontiguousarray(low)
    wide: Data = (high.astype(object) << 64) | low.view(np.uint64).astype(object)
    return wide


def is_wide(data: Exact) -> bool:
    return isinstance(data, np.ndarray) and data.dtype == object


def bounds(data: Exact) -> tuple[int, int]:
    if isinstance(data, np.ndarray):
        return (int(data.min()), int(data.max())) if len(data) else (0, 0)
    return data, data


def compute(function: str, left: Exact, right: Exact, invalid: Mask | None) -> Exact:
    """``left function right`` exactly, for ``+``, ``-`` and ``*``.

    Stays in int64 when interval arithmetic over the minima and maxima shows that no row can
    overflow (two fast passes instead of a check per row). ``invalid`` marks rows whose value does
    not count (NULL): a value that lies there must not cause an overflow.
    """
    apply = OPERATORS[function]
    if not is_wide(left) and not is_wide(right) and _fits(function, left, right):
        return apply(left, right)  # type: ignore[no-any-return]
    if invalid is not None:
        left, right = _blank(left, invalid), _blank(right, invalid)
    if isinstance(left, np.ndarray):
        left = left.astype(object)
    elif isinstance(right, np.ndarray):
        right = right.astype(object)
    return shrink(apply(left, right))


def _fits(function: str, left: Exact, right: Exact) -> bool:
    low, high = bounds(left)
    other_low, other_high = bounds(right)
    if function == "+":
        ends = (low + other_low, high + other_high)
    elif function == "-":
        ends = (low - other_high, high - other_low)
    else:
        products = (low * other_low, low * other_high, high * other_low, high * other_high)
        ends = (min(products), max(products))
    return (
        ends[0] >= INT64_MIN
        and ends[1] <= INT64_MAX
        # a Python integer operand must itself fit, or NumPy refuses it
        and min(low, other_low) >= INT64_MIN
        and max(high, other_high) <= INT64_MAX
    )


def _blank(data: Exact, invalid: Mask) -> Exact:
    return np.where(invalid, 0, data) if isinstance(data, np.ndarray) else data


def shrink(data: Exact) -> Exact:
    """An object array becomes int64 when all its values fit."""
    if is_wide(data):
        low, high = bounds(data)
        if low >= INT64_MIN and high <= INT64_MAX:
            assert isinstance(data, np.ndarray)
            return data.astype(np.int64)
    return data


def invalid_mask(*values: Value) -> Mask | None:
    """True where any of the columns is NULL; None when none is."""
    result: Mask | None = None
    for value in values:
        if isinstance(value, pa.Array) and value.null_count:
            valid = validity_mask(value)
            assert valid is not None
            result = ~valid if result is None else result | ~valid
    return result


def validity(*values: Value) -> pa.Buffer | None:
    return shared_validity(*(value for value in values if isinstance(value, pa.Array)))


def integer_array(
    data: Data, type_: SqlType, arrow: pa.DataType, *sources: Value, invalid: Mask | None = None
) -> pa.Array:
    """An integer column of ``type_``, NULL where a source (or ``invalid``) is.

    Raises NumericOverflow with PostgreSQL's words when a value does not fit."""
    name, limit = INTEGER_LIMITS[type_.kind]
    buffer = validity(*sources) if invalid is None else pack_bits(~invalid)
    if data.dtype == object or limit < 2**63:
        low, high = bounds(data)
        if low < -limit or high >= limit:
            if invalid is None:
                invalid = invalid_mask(*sources)
            if invalid is None or _out_of(np.where(invalid, 0, data), limit):
                raise NumericOverflow(f"{name} out of range")
            data = np.where(invalid, 0, data)
    return array_from(data, arrow, buffer)


def _out_of(data: Data, limit: int) -> bool:
    low, high = bounds(data)
    return low < -limit or high >= limit


def decimal_array(
    data: Data, type_: SqlType, *sources: Value, invalid: Mask | None = None
) -> pa.Array:
    """A decimal column from unscaled values: int64 when they fit, else decimal128.

    Raises NumericOverflow beyond 38 digits. That the values have at most ``type_.precision``
    digits follows from the type rules; casts check it themselves."""
    if invalid is None:
        invalid = invalid_mask(*sources)
    buffer = None if invalid is None else pack_bits(~invalid)
    if data.dtype != object:
        return array_from(data, pa.int64(), buffer)
    if invalid is not None:
        data = np.where(invalid, 0, data)
    narrow = shrink(data)
    assert isinstance(narrow, np.ndarray)
    if narrow.dtype != object:
        return array_from(narrow, pa.int64(), buffer)
    low, high = bounds(data)
    if low <= -DECIMAL_LIMIT or high >= DECIMAL_LIMIT:
        raise numeric_overflow()
    return wide_decimal(data, type_.scale or 0, buffer)


def numeric_overflow(detail: str = "A value needs more than 38 digits.") -> NumericOverflow:
    return NumericOverflow("numeric field overflow", detail=detail)


def wide_decimal(data: Data, scale: int, validity_bits: pa.Buffer | None) -> pa.Array:
    """decimal128(38, scale) from int64 or Python integers."""
    limbs = np.empty((len(data), 2), np.int64)
    if data.dtype == object:
        low = np.array([value & _MASK_64 for value in data], np.uint64)
        limbs[:, 0] = low.view(np.int64)
        limbs[:, 1] = np.array([value >> 64 for value in data], np.int64)
    else:
        limbs[:, 0] = data
        limbs[:, 1] = data >> 63
    return pa.Array.from_buffers(
        pa.decimal128(38, scale), len(data), [validity_bits, pa.py_buffer(limbs)]
    )


def rescale(data: Exact, up: int, invalid: Mask | None) -> Exact:
    """Unscaled values times 10**up; a negative ``up`` divides, rounding half away from zero."""
    if up == 0:
        return data
    if up > 0:
        return compute("*", data, 10**up, invalid)
    return divide_rounded(data, 10**-up)


def divide_rounded(data: Exact, divisor: Exact) -> Exact:
    """Quotient rounded half away from zero. Divisors are not zero."""
    wide = is_wide(data) or is_wide(divisor)
    low, high = bounds(data)
    biggest = max(-low, high)
    divisor_low, divisor_high = bounds(divisor)
    reach = max(-divisor_low, divisor_high)
    if isinstance(data, int) and isinstance(divisor, int):
        quotient = (2 * abs(data) + abs(divisor)) // (2 * abs(divisor))
        return quotient if (data < 0) == (divisor < 0) else -quotient
    if wide or 2 * biggest + reach > INT64_MAX:
        data = data.astype(object) if isinstance(data, np.ndarray) else data
        divisor = divisor.astype(object) if isinstance(divisor, np.ndarray) else divisor
    magnitude: Any = abs(divisor)
    doubled: Any = 2 * abs(data)  # type: ignore[operator]  # object arrays, too
    quotients: Data = (doubled + magnitude) // (2 * magnitude)
    negative = (data < 0) != (divisor < 0)
    return shrink(np.where(negative, -quotients, quotients))
