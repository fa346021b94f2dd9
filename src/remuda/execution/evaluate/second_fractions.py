"""Digits of seconds and fields of intervals, as a CAST or a column of such a type keeps them."""

from __future__ import annotations

import pyarrow as pa

from remuda.datatypes.sql import INTERVAL_FIELDS, SqlType, array, restricted
from remuda.datatypes.times.time_digits import fit_array
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value
from remuda.plan.expression import Call, Literal


def round_fraction(call: Call) -> Kernel:
    """(time or array of times, digits)"""
    return _fitted(_restricted(call.type, _constant(call), ()))


def interval_fields(call: Call) -> Kernel:
    """(interval or array of intervals, place of its last field)"""
    return _fitted(_restricted(call.type, None, (INTERVAL_FIELDS[_constant(call)],)))


def _constant(call: Call) -> int:
    """The second argument, which the binder writes."""
    given = call.arguments[1]
    assert isinstance(given, Literal)
    assert isinstance(given.value, int)
    return given.value


def _restricted(t: SqlType, fraction: int | None, span: tuple[str, ...]) -> SqlType:
    if t.element is not None:
        return array(restricted(t.element, fraction, span))
    return restricted(t, fraction, span)


def _fitted(wanted: SqlType) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        return fit_array(column(values[0], rows), wanted)

    return kernel
