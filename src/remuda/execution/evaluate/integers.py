"""Bits, divisors, factorials, buckets, and the digits of decimals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind
from remuda.errors import (
    DivisionByZero,
    InvalidBucketArgument,
    InvalidOffset,
    InvalidRowCount,
    NumericOverflow,
)
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.decimals import scale_of
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import (
    Value,
    decimal_array,
    exact_of,
    integer_array,
    invalid_mask,
    numeric_overflow,
    shrink,
    validity,
)
from remuda.plan.expression import Call

_DIGITS: Final = 10**38
_BITS: Final = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_OPERATIONS: Final[dict[str, Callable[..., Data]]] = {
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "#": np.bitwise_xor,
    "bit_not": np.invert,
}


def _bitwise(call: Call) -> Kernel:
    apply, arrow = _OPERATIONS[call.function], engine_type(call.type)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        data = apply(*(data_of(column(value, rows)) for value in values))
        return array_from(data, arrow, validity(*values))

    return kernel


def _shifted(call: Call) -> Kernel:
    """As processors do, and so PostgreSQL: the distance counts modulo the number of bits, of
    SMALLINT modulo 32."""
    bits = _BITS[call.type.kind]
    arrow = engine_type(call.type)
    left = call.function == "<<"

    def kernel(values: list[Value], rows: int) -> pa.Array:
        data = data_of(column(values[0], rows)).astype(np.int64)
        distance = data_of(column(values[1], rows)).astype(np.int64) & (max(bits, 32) - 1)
        moved = np.left_shift(data, distance) if left else np.right_shift(data, distance)
        return array_from(moved.astype(f"i{bits // 8}"), arrow, validity(*values))

    return kernel


def _exact_rows(function: Callable[..., int]) -> Callable[[Call], Kernel]:
    """Row by row over exact numbers of one scale."""

    def make(call: Call) -> Kernel:
        def kernel(values: list[Value], rows: int) -> pa.Array:
            invalid = invalid_mask(*values)
            columns = [_objects(value, rows) for value in values]
            skip = np.zeros(rows, np.bool_) if invalid is None else invalid
            found = [
                0 if missing else function(*row)
                for missing, *row in zip(skip.tolist(), *columns, strict=True)
            ]
            return _exact_array(call, found, values)

        return kernel

    return make


def _objects(value: Value, rows: int) -> list[int]:
    data = exact_of(column(value, rows))
    assert isinstance(data, np.ndarray)
    integers: list[int] = data.tolist()
    return integers


def _exact_array(call: Call, found: list[int], values: list[Value]) -> pa.Array:
    data: Any = shrink(np.array(found, object))
    if call.type.kind is Kind.DECIMAL:
        if len(data) and max(abs(int(data.min())), abs(int(data.max()))) >= _DIGITS:
            raise numeric_overflow()
        return decimal_array(data, call.type, *values)
    return integer_array(data, call.type, engine_type(call.type), *values)


def _whole_quotient(call: Call) -> Kernel:
    left, right = (scale_of(argument.type) for argument in call.arguments)

    def quotient(dividend: int, divisor: int) -> int:
        if divisor == 0:
            raise DivisionByZero("division by zero")
        dividend, divisor = dividend * 10**right, divisor * 10**left
        whole = abs(dividend) // abs(divisor)
        return whole if (dividend < 0) == (divisor < 0) else -whole

    return _exact_rows(quotient)(call)


def _factorial(number: int) -> int:
    if number < 0:
        raise NumericOverflow("factorial of a negative number is undefined")
    if number > 33:
        raise numeric_overflow()
    return math.factorial(number)


def _needed_scale(call: Call) -> Kernel:
    scale = scale_of(call.arguments[0].type)

    def needed(unscaled: int) -> int:
        digits = scale
        while digits and unscaled % 10 == 0:
            unscaled, digits = unscaled // 10, digits - 1
        return digits

    return _exact_rows(needed)(call)


def _scale(call: Call) -> Kernel:
    scale = scale_of(call.arguments[0].type)
    return _exact_rows(lambda _: scale)(call)


def _bucket(call: Call) -> Kernel:
    floating = call.arguments[0].type.is_float

    def kernel(values: list[Value], rows: int) -> pa.Array:
        invalid = invalid_mask(*values)
        skip = [False] * rows if invalid is None else invalid.tolist()
        if floating:
            columns = [data_of(column(value, rows)).tolist() for value in values]
        else:
            columns = [_objects(value, rows) for value in values]
        found = [
            0 if missing else _bucket_of(*row) for missing, *row in zip(skip, *columns, strict=True)
        ]
        return _exact_array(call, found, values)

    return kernel


def _bucket_of(value: Any, low: Any, high: Any, count: int) -> int:
    if count <= 0:
        raise InvalidBucketArgument("count must be greater than zero")
    if any(math.isnan(part) for part in (value, low, high)):
        raise InvalidBucketArgument("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise InvalidBucketArgument("lower and upper bounds must be finite")
    if low == high:
        raise InvalidBucketArgument("lower bound cannot equal upper bound")
    if low > high:
        value, low, high = -value, -low, -high
    if value < low:
        return 0
    if value >= high:
        return count + 1
    share = (value - low) * count
    width = high - low
    if isinstance(share, float) and not (math.isfinite(share) and math.isfinite(width)):
        # Doubles near the end of their range: exactly, for neither product nor width is one.
        share = (Fraction(value) - Fraction(low)) * count
        width = Fraction(high) - Fraction(low)
    whole = int(share / width) if isinstance(share, float) else share // width
    return min(whole, count - 1) + 1


def _row_count(_call: Call) -> Kernel:
    """``(count, 'LIMIT')``: the count, unless it is negative."""

    def kernel(values: list[Value], rows: int) -> pa.Array:
        counts = column(values[0], rows)
        invalid = invalid_mask(counts)
        negative = data_of(counts) < 0
        if (negative if invalid is None else negative & ~invalid).any():
            clause = str(values[1].as_py() if isinstance(values[1], pa.Scalar) else values[1][0])
            kind = InvalidOffset if clause == "OFFSET" else InvalidRowCount
            raise kind(f"{clause} must not be negative")
        return counts

    return kernel


INTEGER_FUNCTIONS: Final[dict[str, Callable[[Call], Kernel]]] = {
    **dict.fromkeys(_OPERATIONS, _bitwise),
    **dict.fromkeys(("<<", ">>"), _shifted),
    "gcd": _exact_rows(math.gcd),
    "lcm": _exact_rows(math.lcm),
    "div": _whole_quotient,
    "factorial": _exact_rows(_factorial),
    "row_count": _row_count,
    "scale": _scale,
    "min_scale": _needed_scale,
    "trim_scale": lambda _: lambda values, _rows: values[0],
    "width_bucket": _bucket,
}
