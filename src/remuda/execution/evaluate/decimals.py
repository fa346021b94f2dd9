"""DECIMAL arithmetic on unscaled integers, and the canonical form of decimal columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import DivisionByZero
from remuda.execution.arrays import Data, array_from, data_of, shared_validity
from remuda.execution.evaluate.numbers import (
    DECIMAL_LIMIT,
    INT64_MAX,
    INT64_MIN,
    Exact,
    Value,
    bounds,
    compute,
    decimal_array,
    exact_of,
    invalid_mask,
    is_wide,
    numeric_overflow,
    rescale,
    shrink,
    wide_decimal,
)


def scale_of(type_: SqlType) -> int:
    return type_.scale or 0 if type_.kind is Kind.DECIMAL else 0


def at_scale(value: Value, type_: SqlType, scale: int) -> Exact:
    """The unscaled values of an integer or decimal ``value`` at ``scale``."""
    return rescale(exact_of(value), scale - scale_of(type_), invalid_mask(value))


def add_subtract(
    function: str, left: Value, right: Value, types: tuple[SqlType, SqlType], result: SqlType
) -> pa.Array:
    scale = scale_of(result)
    invalid = invalid_mask(left, right)
    data = compute(
        function, at_scale(left, types[0], scale), at_scale(right, types[1], scale), invalid
    )
    return decimal_array(_as_array(data), result, left, right, invalid=invalid)


def multiply(
    left: Value, right: Value, types: tuple[SqlType, SqlType], result: SqlType
) -> pa.Array:
    invalid = invalid_mask(left, right)
    data = compute("*", exact_of(left), exact_of(right), invalid)
    surplus = scale_of(types[0]) + scale_of(types[1]) - scale_of(result)
    data = rescale(data, -surplus, invalid)
    return decimal_array(_as_array(data), result, left, right, invalid=invalid)


def without_zeros(divisor: Exact, invalid: np.ndarray | None) -> Exact:
    """``divisor`` with 1 below NULLs. Raises DivisionByZero for a zero that counts."""
    if isinstance(divisor, int):
        if divisor == 0 and (invalid is None or not invalid.all()):
            raise DivisionByZero("division by zero")
        return divisor or 1
    zero = divisor == 0
    if zero.any():
        if invalid is None or (zero & ~invalid).any():
            raise DivisionByZero("division by zero")
        return np.where(zero, 1, divisor)
    return divisor


def modulo(left: Value, right: Value, types: tuple[SqlType, SqlType], result: SqlType) -> pa.Array:
    """The remainder with the sign of the dividend."""
    scale = max(scale_of(types[0]), scale_of(types[1]))
    invalid = invalid_mask(left, right)
    dividend = at_scale(left, types[0], scale)
    divisor = without_zeros(at_scale(right, types[1], scale), invalid)
    if _needs_objects(dividend) or _needs_objects(divisor):
        dividend, divisor = _exact_objects(dividend), _exact_objects(divisor)
    rest: Any = abs(dividend)
    rest = rest % abs(divisor)
    signed = np.where(dividend < 0, -rest, rest)
    data = rescale(shrink(signed), scale_of(result) - scale, invalid)
    return decimal_array(_as_array(data), result, left, right, invalid=invalid)


def _needs_objects(data: Exact) -> bool:
    """Whether magnitudes do not fit into 64 bits: that of the lowest 64-bit integer does not."""
    return is_wide(data) or bounds(data)[0] <= INT64_MIN or bounds(data)[1] > INT64_MAX


def _exact_objects(data: Exact) -> Exact:
    return data.astype(object) if isinstance(data, np.ndarray) else data


def _as_array(data: Exact) -> Data:
    assert isinstance(data, np.ndarray)
    return data


def to_precision(data: Exact, type_: SqlType, invalid: np.ndarray | None) -> Exact:
    """``data`` when every value that counts has at most ``type_.precision`` digits."""
    limit = min(10 ** (type_.precision or 38), DECIMAL_LIMIT)
    low, high = bounds(data)
    if low > -limit and high < limit:
        return data
    if invalid is not None and isinstance(data, np.ndarray):
        data = np.where(invalid, 0, data)
        low, high = bounds(data)
        if low > -limit and high < limit:
            return data
    digits = (type_.precision or 38) - (type_.scale or 0)
    raise numeric_overflow(
        f"A field with precision {type_.precision}, scale {type_.scale} must round to an absolute "
        f"value less than 10^{digits}."
    )


def canonical(array: pa.Array, type_: SqlType) -> pa.Array:
    """``array`` in its engine type: a long decimal carried as int64 becomes decimal128(p, s)."""
    if type_.kind is not Kind.DECIMAL or type_.is_short_decimal:
        return array
    wanted = pa.decimal128(type_.precision or 38, type_.scale or 0)
    if array.type == wanted:
        return array
    if array.type == pa.int64():
        array = wide_decimal(data_of(array), type_.scale or 0, shared_validity(array))
    return array if array.type == wanted else array.view(wanted)


def compact(array: pa.Array) -> pa.Array:
    """A decimal128 column as int64 unscaled when all values fit; other columns unchanged."""
    if not pa.types.is_decimal(array.type):
        return array
    data = exact_of(array)
    if isinstance(data, np.ndarray) and data.dtype != object:
        return array_from(data, pa.int64(), shared_validity(array))
    return array
