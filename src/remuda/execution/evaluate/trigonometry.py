"""Angles: radians by NumPy; degrees by PostgreSQL's formulas, exact at multiples of 30 and 45."""

from __future__ import annotations

import math
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

_RADIANS: Final = math.pi / 180


def _finite(data: Data) -> Data:
    if np.isinf(data).any():
        raise NumericOverflow("input is out of range")
    return data


def _of_each(function: Callable[[float], float]) -> Callable[[Data], Data]:
    """The C library's function, to the last digit: NumPy's own differ in it."""
    each = np.vectorize(function, otypes=[np.float64])
    return lambda data: each(data) if len(data) else data


_sin, _cos = _of_each(math.sin), _of_each(math.cos)
_asin, _acos, _atan = _of_each(math.asin), _of_each(math.acos), _of_each(math.atan)


def _sine_to_30(data: Data) -> Data:
    return (_sin(data * _RADIANS) / math.sin(30 * _RADIANS)) / 2.0


def _cosine_to_60(data: Data) -> Data:
    return 1.0 - ((1.0 - _cos(data * _RADIANS)) / (1.0 - math.cos(60 * _RADIANS))) / 2.0


def _sine_to_90(data: Data) -> Data:
    """PostgreSQL's, which is exact at multiples of 30 degrees."""
    return np.where(data <= 30, _sine_to_30(data), _cosine_to_60(90.0 - data))


def _cosine_to_90(data: Data) -> Data:
    return np.where(data <= 60, _cosine_to_60(data), _sine_to_30(90.0 - data))


def _folded(data: Data) -> tuple[Data, Data, Data, Data]:
    """An angle of 0 to 90 degrees, and by which signs: of those below 0, beyond 180 and beyond
    90 degrees."""
    reduced = np.fmod(_finite(data), 360.0)
    below = np.where(reduced < 0, -1.0, 1.0)
    reduced = np.abs(reduced)
    far = np.where(reduced > 180, -1.0, 1.0)
    reduced = np.where(reduced > 180, 360.0 - reduced, reduced)
    beyond = np.where(reduced > 90, -1.0, 1.0)
    return np.where(reduced > 90, 180.0 - reduced, reduced), below, far, beyond


def _sine(data: Data) -> Data:
    angle, below, far, _ = _folded(data)
    return below * far * _sine_to_90(angle)


def _cosine(data: Data) -> Data:
    angle, _, _, beyond = _folded(data)
    return beyond * _cosine_to_90(angle)


def _tangent(data: Data) -> Data:
    angle, below, far, beyond = _folded(data)
    result = below * far * beyond * (_sine_to_90(angle) / _cosine_to_90(angle) / _AT_45)
    return result + 0.0  # no minus zero


def _cotangent(data: Data) -> Data:
    angle, below, far, beyond = _folded(data)
    result = below * far * beyond * (_cosine_to_90(angle) / _sine_to_90(angle) * _AT_45)
    return result + 0.0


_AT_45: Final = float((_sine_to_90(np.array([45.0])) / _cosine_to_90(np.array([45.0])))[0])


def _arc_sine(data: Data) -> Data:
    size = np.abs(data)
    small = _asin(np.minimum(size, 0.5)) / math.asin(0.5) * 30.0
    large = 90.0 - _acos(np.maximum(size, 0.5)) / math.acos(0.5) * 60.0
    return np.copysign(np.where(size <= 0.5, small, large), data)


def _arc_cosine(data: Data) -> Data:
    size = np.abs(data)
    small = 90.0 - _asin(np.minimum(size, 0.5)) / math.asin(0.5) * 30.0
    large = _acos(np.maximum(size, 0.5)) / math.acos(0.5) * 60.0
    return np.where(data >= 0, np.where(size <= 0.5, small, large), 90.0 + _arc_sine(size))


def _arc_tangent(data: Data) -> Data:
    return _atan(data) / math.atan(1.0) * 45.0


def _within_one(apply: Callable[[Data], Data]) -> Callable[[Data], Data]:
    def checked(data: Data) -> Data:
        if (np.abs(data) > 1).any():
            raise NumericOverflow("input is out of range")
        return apply(data)

    return checked


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
    "asind": _within_one(_arc_sine),
    "acosd": _within_one(_arc_cosine),
    "atand": _arc_tangent,
    "atan2d": lambda y, x: np.arctan2(y, x) / math.atan(1.0) * 45.0,
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
