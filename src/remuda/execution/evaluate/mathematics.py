"""abs, rounding, sign, and the functions of analysis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind
from remuda.errors import DivisionByZero, InvalidArgument, InvalidLogarithmArgument
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.arithmetic import check_float, check_underflow
from remuda.execution.evaluate.decimals import to_precision
from remuda.execution.evaluate.exact_analysis import exact_analysis
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import (
    Exact,
    Value,
    compute,
    decimal_array,
    divide_rounded,
    exact_of,
    integer_array,
    invalid_mask,
    rescale,
    validity,
)
from remuda.plan.expression import Call


def _magnitude(call: Call) -> Kernel:
    arrow = engine_type(call.type)

    def kernel(values: list[Value], _: int) -> pa.Array:
        if call.type.is_float:
            return array_from(np.abs(data_of(values[0])), arrow, validity(values[0]))
        data = exact_of(values[0])
        assert isinstance(data, np.ndarray)
        if data.dtype != object and len(data) and data.min() == -(2**63):
            negative = compute("-", 0, data, invalid_mask(values[0]))
            data = np.where(data < 0, negative, data)
        else:
            data = np.abs(data)
        if call.type.kind is Kind.DECIMAL:
            return decimal_array(data, call.type, values[0])
        return integer_array(data, call.type, arrow, values[0])

    return kernel


def _sign(call: Call) -> Kernel:
    def kernel(values: list[Value], _: int) -> pa.Array:
        if call.type.kind is Kind.DECIMAL:
            data = exact_of(values[0])
            assert isinstance(data, np.ndarray)
            whole = (data > 0).astype(np.int64) - (data < 0).astype(np.int64)
            return decimal_array(whole * 10 ** (call.type.scale or 0), call.type, values[0])
        floats = data_of(values[0])
        # 0 for NaN, as in PostgreSQL
        signs = (floats > 0).astype(np.float64) - (floats < 0).astype(np.float64)
        return array_from(signs, pa.float64(), validity(values[0]))

    return kernel


def _rounding(call: Call) -> Kernel:
    """ceil, floor, round, trunc; the last two with an optional number of digits."""
    if call.type.kind is Kind.DECIMAL:
        return _decimal_rounding(call)
    function = call.function

    def kernel(values: list[Value], rows: int) -> pa.Array:
        data = data_of(column(values[0], rows))
        if len(values) == 1:
            result = _FLOAT_ROUNDING[function](data)
        else:
            digits = np.clip(exact_of(values[1]), -_DIGITS_MAX, _DIGITS_MAX)
            power = np.power(10.0, np.minimum(np.abs(digits), _POWER_MAX))
            negative = np.asarray(digits) < 0
            with np.errstate(all="ignore"):
                scaled = np.where(negative, data / power, data * power)
                turned = _FLOAT_ROUNDING[function](scaled)
                result = np.where(negative, turned * power, turned / power)
            result = np.where(np.isfinite(result), result, data)
            # No finite number has so many digits in front of its point.
            result = np.where((digits < -_POWER_MAX) & np.isfinite(data), 0.0, result)
        return array_from(result, pa.float64(), validity(*values))

    return kernel


_POWER_MAX: Final = 308
"""The largest power of ten that is a finite number."""
_DIGITS_MAX: Final = 1_000

_FLOAT_ROUNDING: dict[str, Callable[[Any], Any]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.rint,
    "trunc": np.trunc,
}


def _decimal_rounding(call: Call) -> Kernel:
    scale = call.arguments[0].type.scale or 0
    result_scale = call.type.scale or 0

    def kernel(values: list[Value], rows: int) -> pa.Array:
        invalid = invalid_mask(*values)
        data = exact_of(column(values[0], rows))
        assert isinstance(data, np.ndarray)
        if len(values) == 1:
            data = _at_digits(call.function, data, scale, 0, result_scale)
        else:
            digits = exact_of(values[1])
            if isinstance(digits, np.ndarray) and len(digits):
                parts = data.astype(object)
                for wanted in np.unique(digits):
                    rows_of = digits == wanted
                    parts[rows_of] = _at_digits(
                        call.function, data[rows_of], scale, int(wanted), result_scale
                    )
                data = parts
            else:
                wanted = int(digits) if isinstance(digits, int) else 0
                data = _at_digits(call.function, data, scale, wanted, result_scale)
        checked = to_precision(data, call.type, invalid)
        assert isinstance(checked, np.ndarray)
        return decimal_array(checked, call.type, *values, invalid=invalid)

    return kernel


def _at_digits(function: str, data: Data, scale: int, digits: int, result_scale: int) -> Data:
    """``data`` of ``scale`` rounded to ``digits`` after the point, given at ``result_scale``."""
    drop = scale - max(digits, -40)
    if drop > 0:
        result = _dropped(function, data, 10**drop)
        result = rescale(result, result_scale - (scale - drop), None)
    else:
        result = rescale(data, result_scale - scale, None)
    assert isinstance(result, np.ndarray)
    return result


def _dropped(function: str, data: Data, power: int) -> Exact:
    if power > 10**18:
        data = data.astype(object)
    if function == "round":
        return divide_rounded(data, power)
    quotient: Data = data // power
    if function == "floor":
        return quotient
    inexact = (quotient * power != data).astype(np.int64)
    if function != "ceil":
        inexact = inexact * (data < 0)
    rounded: Data = np.add(quotient, inexact)
    return rounded


def _analysis(call: Call) -> Kernel:
    if call.type.kind is Kind.DECIMAL:
        return exact_analysis(call)
    apply = _ANALYSIS[call.function]

    def kernel(values: list[Value], rows: int) -> pa.Array:
        data = [data_of(column(value, rows)).astype(np.float64) for value in values]
        invalid = invalid_mask(*values)
        if invalid is not None:
            data = [np.where(invalid, 2.0, part) for part in data]  # no function fails there
        with np.errstate(all="ignore"):
            result = apply(*data)
        check_float(result, invalid, *data)
        if call.function in ("exp", "power"):
            finite = np.logical_and.reduce([np.isfinite(part) for part in data])
            check_underflow(result, invalid, finite & ((data[0] != 0) | (call.function == "exp")))
        return array_from(result, pa.float64(), validity(*values))

    return kernel


def _square_root(data: Data) -> Data:
    if (data < 0).any():
        raise InvalidArgument("cannot take square root of a negative number")
    return np.sqrt(data)


def _logarithm(apply: Callable[[Data], Data]) -> Callable[[Data], Data]:
    def logarithm(data: Data) -> Data:
        if (data == 0).any():
            raise InvalidLogarithmArgument("cannot take logarithm of zero")
        if (data < 0).any():
            raise InvalidLogarithmArgument("cannot take logarithm of a negative number")
        return apply(data)

    return logarithm


def _power(base: Data, exponent: Data) -> Data:
    if ((base == 0) & (exponent < 0)).any():
        raise InvalidArgument("zero raised to a negative power is undefined")
    if ((base < 0) & np.isfinite(exponent) & (exponent != np.floor(exponent))).any():
        raise InvalidArgument(
            "a negative number raised to a non-integer power yields a complex result"
        )
    return np.power(base, exponent)


def _log(base: Data, number: Data) -> Data:
    """ln(number) / ln(base), corrected where the result is a whole number."""
    for part in (base, number):
        _logarithm(np.log)(part)
    divisor = np.log(base)
    if (divisor == 0).any():
        raise DivisionByZero("division by zero")
    result = np.log(number) / divisor
    near = np.rint(result)
    whole = (np.abs(result - near) < 1e-9) & (np.power(base, near) == number)
    return np.where(whole, near, result)


_ANALYSIS: dict[str, Callable[..., Data]] = {
    "sqrt": _square_root,
    "exp": np.exp,
    "ln": _logarithm(np.log),
    "log10": _logarithm(np.log10),
    "power": _power,
    "log": _log,
    "cbrt": np.cbrt,
}

MATHEMATICS: dict[str, Callable[[Call], Kernel]] = {
    "pi": lambda _: lambda _values, rows: pa.repeat(pa.scalar(np.pi), rows),
    "abs": _magnitude,
    "sign": _sign,
    "ceil": _rounding,
    "floor": _rounding,
    "round": _rounding,
    "trunc": _rounding,
    **dict.fromkeys(_ANALYSIS, _analysis),
}
