"""Angles: radians by NumPy; degrees exact where PostgreSQL is, at multiples of 30 and 45."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.errors import NumericOverflow
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.arithmetic import check_float
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value, invalid_mask, validity
from remuda.plan.expression import Call

_HALF: Final = np.sqrt(0.75)
_SINES: Final = np.array([0.0, 0.5, _HALF, 1.0, _HALF, 0.5, 0.0, -0.5, -_HALF, -1.0, -_HALF, -0.5])
"""At 0, 30, 60 ... 330 degrees."""
_TANGENTS: Final = np.array([0.0, 1.0, np.inf, -1.0])
"""At 0, 45, 90 and 135 degrees."""


def _finite(data: Data) -> Data:
    if np.isinf(data).any():
        raise NumericOverflow("input is out of range")
    return data


def _sine(data: Data) -> Data:
    reduced = np.fmod(_finite(data), 360.0)
    reduced = np.where(reduced < 0, reduced + 360.0, reduced)
    steps = np.nan_to_num(reduced / 30.0)
    exact = steps == np.floor(steps)
    place = np.where(exact, steps, 0).astype(np.int64) % 12
    return np.where(exact & ~np.isnan(data), _SINES[place], np.sin(np.radians(reduced)))


def _cosine(data: Data) -> Data:
    return _sine(np.fmod(_finite(data), 360.0) + 90.0)


def _tangent(data: Data) -> Data:
    reduced = np.fmod(_finite(data), 180.0)
    reduced = np.where(reduced < 0, reduced + 180.0, reduced)
    steps = np.nan_to_num(reduced / 45.0)
    exact = steps == np.floor(steps)
    place = np.where(exact, steps, 0).astype(np.int64) % 4
    result = np.where(exact & ~np.isnan(data), _TANGENTS[place], np.tan(np.radians(reduced)))
    # 270 degrees is the other side of the pole
    return np.where(
        np.isinf(result) & (np.fmod(np.abs(data), 360.0) == 270.0), -result, result
    ) * np.where(np.isinf(result) & (data < 0), -1.0, 1.0)


def _cotangent(data: Data) -> Data:
    return 1.0 / _tangent(data)


def _within_one(apply: Callable[[Data], Data]) -> Callable[[Data], Data]:
    def checked(data: Data) -> Data:
        if (np.abs(data) > 1).any():
            raise NumericOverflow("input is out of range")
        return apply(data)

    return checked


def _degrees_of(apply: Callable[..., Data]) -> Callable[..., Data]:
    """In degrees; results next to a multiple of 15 are that multiple."""

    def degrees(*data: Data) -> Data:
        result = np.degrees(apply(*data))
        near = np.rint(result / 15.0) * 15.0
        return np.where(np.abs(result - near) < 1e-13 * np.maximum(np.abs(near), 1.0), near, result)

    return degrees


def _acosh(data: Data) -> Data:
    if (data < 1).any():
        raise NumericOverflow("input is out of range")
    return np.arccosh(data)


_FUNCTIONS: Final[dict[str, Callable[..., Data]]] = {
    "sin": lambda data: np.sin(_finite(data)),
    "cos": lambda data: np.cos(_finite(data)),
    "tan": lambda data: np.tan(_finite(data)),
    "cot": lambda data: 1.0 / np.tan(_finite(data)),
    "asin": _within_one(np.arcsin),
    "acos": _within_one(np.arccos),
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": _acosh,
    "atanh": _within_one(np.arctanh),
    "sind": _sine,
    "cosd": _cosine,
    "tand": _tangent,
    "cotd": _cotangent,
    "asind": _degrees_of(_within_one(np.arcsin)),
    "acosd": _degrees_of(_within_one(np.arccos)),
    "atand": _degrees_of(np.arctan),
    "atan2d": _degrees_of(np.arctan2),
    "degrees": np.degrees,
    "radians": np.radians,
}
_INFINITE: Final = frozenset({"cot", "atanh", "tand", "cotd", "sinh", "cosh"})
"""Whose result may be infinite for finite arguments."""


def _angle(call: Call) -> Kernel:
    apply = _FUNCTIONS[call.function]

    def kernel(values: list[Value], rows: int) -> pa.Array:
        data = [data_of(column(value, rows)).astype(np.float64) for value in values]
        invalid = invalid_mask(*values)
        if invalid is not None:
            data = [np.where(invalid, 1.0, part) for part in data]
        with np.errstate(all="ignore"):
            result = apply(*data)
        if call.function not in _INFINITE:
            check_float(result, invalid, *data)
        return array_from(result, pa.float64(), validity(*values))

    return kernel


TRIGONOMETRY: Final[dict[str, Callable[[Call], Kernel]]] = dict.fromkeys(_FUNCTIONS, _angle)
