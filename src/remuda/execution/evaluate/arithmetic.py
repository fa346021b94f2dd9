"""``+ - * / % neg`` over integers, floats, decimals and dates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import DOUBLE, Kind, SqlType
from remuda.errors import DivisionByZero, NumericOverflow
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate import decimals
from remuda.execution.evaluate.intervals import interval_arithmetic, is_interval_arithmetic
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import (
    INTEGER_LIMITS,
    OPERATORS,
    Value,
    compute,
    exact_of,
    integer_array,
    invalid_mask,
    validity,
)
from remuda.execution.evaluate.quotients import divide
from remuda.plan.expression import Call

_AT_MOST_32_BITS: Final = frozenset(
    kind for kind, (_, limit) in INTEGER_LIMITS.items() if limit <= 2**31
)
"""Sums, differences and products of two such values fit into 64 bits."""


def arithmetic(call: Call) -> Kernel:
    types = tuple(argument.type for argument in call.arguments)
    if is_interval_arithmetic(call):
        return interval_arithmetic(call)
    if call.function == "neg":
        return _negation(types[0], call.type)
    left, right = types
    if call.type.kind is Kind.DECIMAL:
        return _decimal_kernel(call.function, (left, right), call.type)
    if call.type.is_float:
        return _float_kernel(call.function, (left, right), call.type)
    return _integer_kernel(call.function, types, call.type)


def _negation(operand: SqlType, result: SqlType) -> Kernel:
    arrow = engine_type(result)
    if result.is_float:
        return lambda values, _: array_from(-data_of(values[0]), arrow, validity(values[0]))
    if result.kind is Kind.DECIMAL:
        zero = pa.scalar(0, pa.int64())
        return lambda values, _: decimals.add_subtract(
            "-", zero, values[0], (operand, operand), result
        )

    def negate(values: list[Value], _: int) -> pa.Array:
        data = compute("-", 0, exact_of(values[0]), invalid_mask(values[0]))
        return integer_array(_array(data), result, arrow, values[0])

    return negate


def _decimal_kernel(function: str, types: tuple[SqlType, SqlType], result: SqlType) -> Kernel:
    if function in "+-":
        return lambda v, _: decimals.add_subtract(function, v[0], v[1], types, result)
    if function == "*":
        return lambda v, _: decimals.multiply(v[0], v[1], types, result)
    if function == "/":
        return lambda v, _: divide(v[0], v[1], types, result)
    return lambda v, _: decimals.modulo(v[0], v[1], types, result)


def _integer_kernel(function: str, types: Sequence[SqlType], result: SqlType) -> Kernel:
    """Integers, and dates as days: DATE + INTEGER, DATE - DATE."""
    arrow = engine_type(result)
    narrow = all(type_.kind in _AT_MOST_32_BITS for type_ in types)
    apply = OPERATORS.get(function)
    if function in "+-*":

        def checked(values: list[Value], _: int) -> pa.Array:
            left, right = values
            numbers: tuple[Any, Any] = exact_of(left), exact_of(right)
            if narrow and apply is not None:
                data = _array(apply(*numbers))
            else:
                data = _array(compute(function, *numbers, invalid_mask(left, right)))
            if result.kind not in INTEGER_LIMITS:
                return array_from(data, arrow, validity(left, right))
            return integer_array(data, result, arrow, left, right)

        return checked

    def divide(values: list[Value], _: int) -> pa.Array:
        left, right = values
        invalid = invalid_mask(left, right)
        dividend: Any = exact_of(left)
        divisor: Any = decimals.without_zeros(exact_of(right), invalid)
        overflow = False if narrow else (dividend == -(2**63)) & (divisor == -1)
        if np.any(overflow):
            if function == "%":
                divisor = np.where(overflow, 1, divisor)
            elif invalid is None or (overflow & ~invalid).any():
                raise NumericOverflow(f"{INTEGER_LIMITS[result.kind][0]} out of range")
        if function == "%":
            data = np.fmod(dividend, divisor)
        else:
            data = np.floor_divide(dividend, divisor)
            # floor division rounds down, SQL truncates toward zero
            inexact = (data < 0) & (data * divisor != dividend)
            data = data + inexact
        return integer_array(_array(data), result, arrow, left, right)

    return divide


def _float_kernel(function: str, types: tuple[SqlType, SqlType], result: SqlType) -> Kernel:
    arrow = engine_type(result)
    dtype: type[Any] = np.float64 if result == DOUBLE else np.float32
    operators: dict[str, Any] = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": np.divide,
        "%": np.fmod,
    }
    apply = operators[function]

    def kernel(values: list[Value], _: int) -> pa.Array:
        left, right = (float_of(v, t, dtype) for v, t in zip(values, types, strict=True))
        invalid = invalid_mask(*values)
        if function in "/%":
            zero = (right == 0) & ~np.isnan(left)
            if np.any(zero if invalid is None else zero & ~invalid):
                raise DivisionByZero("division by zero")
        with np.errstate(all="ignore"):
            data = apply(left, right)
        check_float(data, invalid, left, right)
        if function == "*":
            check_underflow(data, invalid, (left != 0) & (right != 0))
        elif function == "/":
            check_underflow(data, invalid, (left != 0) & ~np.isinf(right))
        return array_from(data, arrow, validity(*values))

    return kernel


def check_float(data: Data, invalid: np.ndarray | None, *inputs: Any) -> None:
    """Infinity out of finite numbers is an overflow, as in PostgreSQL."""
    if np.isfinite(data).all():
        return
    bad = np.isinf(data)
    for value in inputs:
        bad &= np.isfinite(value)
    if invalid is not None:
        bad &= ~invalid
    if bad.any():
        raise NumericOverflow("value out of range: overflow")


def check_underflow(data: Data, invalid: np.ndarray | None, exact: Any) -> None:
    """Zero where the ``exact`` result is none is an underflow, as in PostgreSQL."""
    if (data != 0).all():
        return
    bad = (data == 0) & exact
    if invalid is not None:
        bad &= ~invalid
    if np.any(bad):
        raise NumericOverflow("value out of range: underflow")


def float_of(value: Value, type_: SqlType, dtype: type[Any] = np.float64) -> Any:
    """The values as floats: an array, or one number."""
    if type_.kind is Kind.DECIMAL:
        return decimal_to_float(exact_of(value), type_.scale or 0)
    if isinstance(value, pa.Scalar):
        return dtype(value.as_py())
    data = data_of(value)
    return data if data.dtype == dtype else data.astype(dtype)


def decimal_to_float(data: Any, scale: int) -> Any:
    """Correctly rounded as long as the unscaled value has at most 53 bits."""
    if isinstance(data, int):
        return np.float64(data / 10**scale)
    if data.dtype == object:
        power = 10**scale
        return np.array([value / power for value in data], np.float64)
    return data / np.float64(10**scale)


def _array(data: Any) -> Data:
    assert isinstance(data, np.ndarray)
    return data
