"""Arithmetic and functions of INTERVAL on NumPy columns of months, days and microseconds.

A value of a whole column is three int64 arrays; constants are arrays of one row, which NumPy
spreads. The rules are PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.datatypes.hashes.orderkeys import interval_parts
from remuda.datatypes.sql import DATE, INTERVAL, TIME, SqlType
from remuda.datatypes.times import intervals
from remuda.datatypes.times.intervals import DAYS_PER_MONTH, MICROS_PER_DAY
from remuda.errors import (
    DivisionByZero,
    InputError,
    IntervalOverflow,
    InvalidDatetime,
    NotSupported,
)
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import Value, invalid_mask, validity
from remuda.execution.evaluate.points import moved, point_parts
from remuda.plan.expression import Call

Parts: TypeAlias = tuple[Data, Data, Data]

_RECORD = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])
_INT32 = 2**31


def parts_of(value: Value) -> Parts:
    """Months, days, microseconds; zeros under a NULL."""
    return interval_parts(value if isinstance(value, pa.Array) else pa.repeat(value, 1))


def interval_array(parts: Parts, *sources: Value) -> pa.Array:
    """Intervals with the NULLs of ``sources``; raises IntervalOverflow."""
    months, days, micros = np.broadcast_arrays(*parts)
    rows = len(months)
    invalid = invalid_mask(*sources)
    bad = (months < -_INT32) | (months >= _INT32) | (days < -_INT32) | (days >= _INT32)
    if invalid is not None:
        bad &= ~invalid
    if np.any(bad):
        raise IntervalOverflow("interval out of range")
    records = np.empty(rows, _RECORD)
    records["months"], records["days"], records["micros"] = months, days, micros
    offsets = np.arange(0, 16 * (rows + 1), 16, dtype=np.int32)
    buffers = [validity(*sources), pa.py_buffer(offsets), pa.py_buffer(records)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def is_interval_arithmetic(call: Call) -> bool:
    types = [argument.type for argument in call.arguments]
    return call.type == INTERVAL or INTERVAL in types or {DATE, TIME} == set(types)


def interval_arithmetic(call: Call) -> Kernel:
    """``+ - * / neg`` where an interval goes in or comes out."""
    types = [argument.type for argument in call.arguments]
    if call.function == "neg":
        return lambda values, _: interval_array(_negated(parts_of(values[0])), values[0])
    left, right = types
    match call.function, left == INTERVAL, right == INTERVAL:
        case "+" | "-", True, True:
            return _combine(call.function)
        case (("+" | "-"), False, False):
            return _days_and_time(left) if call.function == "+" else _between(left)
        case "+", True, False:
            return _move(right, call.type, 0, 1, 1)
        case (("+" | "-"), False, True):
            return _move(left, call.type, 1, 0, 1 if call.function == "+" else -1)
        case "*", _, _:
            return _scale(0 if left == INTERVAL else 1)
        case _:
            return _divide


def _negated(parts: Parts) -> Parts:
    months, days, micros = parts
    if np.any(micros == -(2**63)):
        raise IntervalOverflow("interval out of range")
    return -months, -days, -micros


def _summed(left: Data, right: Data) -> Data:
    total: Data = left + right
    if np.any((left ^ total) & (right ^ total) < 0):
        raise IntervalOverflow("interval out of range")
    return total


def _combine(function: str) -> Kernel:
    def kernel(values: list[Value], _: int) -> pa.Array:
        left, right = parts_of(values[0]), parts_of(values[1])
        if function == "-":
            right = _negated(right)
        months, days = left[0] + right[0], left[1] + right[1]
        return interval_array((months, days, _summed(left[2], right[2])), *values)

    return kernel


def _move(source: SqlType, result: SqlType, interval: int, point: int, sign: int) -> Kernel:
    """A date, time or timestamp and an interval, at these places of the arguments."""

    def kernel(values: list[Value], _: int) -> pa.Array:
        parts = parts_of(values[interval])
        if sign < 0:
            parts = _negated(parts)
        return moved(values[point], source, result, parts, (values[interval],))

    return kernel


def _scale(place: int) -> Kernel:
    """Multiplication by a DOUBLE; the interval is argument ``place``."""

    def kernel(values: list[Value], _: int) -> pa.Array:
        factor = _numbers(values[1 - place])
        with np.errstate(all="ignore"):
            parts = [part * factor for part in parts_of(values[place])]
        return _rescaled(parts, values)

    return kernel


def _divide(values: list[Value], _: int) -> pa.Array:
    divisor = _numbers(values[1])
    invalid = invalid_mask(*values)
    zero = divisor == 0
    if zero.any() and (invalid is None or np.any(zero & ~invalid)):
        raise DivisionByZero("division by zero")
    with np.errstate(all="ignore"):
        parts = [part / divisor for part in parts_of(values[0])]
    return _rescaled(parts, values)


def _numbers(value: Value) -> Data:
    return data_of(value) if isinstance(value, pa.Array) else np.array([value.as_py()], np.float64)


def _rescaled(parts: list[Data], values: list[Value]) -> pa.Array:
    """PostgreSQL's ``interval_mul``: fractions of months become days, fractions of days time."""
    months, days, micros = np.broadcast_arrays(*parts)
    invalid = invalid_mask(*values)
    if invalid is not None:
        months, days, micros = (np.where(invalid, 0.0, part) for part in (months, days, micros))
    finite = np.isfinite(months) & np.isfinite(days) & np.isfinite(micros)
    small = (np.abs(months) < _INT32) & (np.abs(days) < _INT32)
    if not (finite & small).all():
        raise IntervalOverflow("interval out of range")
    whole_months, whole_days = np.trunc(months), np.trunc(days)
    more_days = _to_micros((months - whole_months) * DAYS_PER_MONTH)
    seconds = (days - whole_days + more_days - np.trunc(more_days)) * 86_400
    seconds = _to_micros(seconds)
    carried = np.trunc(seconds / 86_400)
    seconds = seconds - carried * 86_400
    whole_days = whole_days + carried + np.trunc(more_days)
    total = np.rint(micros + seconds * 1e6)
    if not (np.abs(total) < 2.0**63).all():
        raise IntervalOverflow("interval out of range")
    found = (whole_months.astype(np.int64), whole_days.astype(np.int64), total.astype(np.int64))
    return interval_array(found, *values)


def _to_micros(data: Data) -> Data:
    rounded: Data = np.rint(data * 1e6) / 1e6
    return rounded


# --- between points in time --------------------------------------------------------------------


def _between(source: SqlType) -> Kernel:
    """``later - earlier``: days and time (of TIME: time alone)."""

    def kernel(values: list[Value], rows: int) -> pa.Array:
        left, right = (_column(value, rows) for value in values)
        if source == TIME:
            gap = data_of(left) - data_of(right)
            nothing = np.zeros(1, np.int64)
            return interval_array((nothing, nothing, gap), left, right)
        gap = _difference(left, right)
        days = np.sign(gap) * (np.abs(gap) // MICROS_PER_DAY)
        return interval_array((np.zeros(1, np.int64), days, gap - days * MICROS_PER_DAY),
                              left, right)  # fmt: skip

    return kernel


def _difference(left: pa.Array, right: pa.Array) -> Data:
    later, earlier = data_of(left), data_of(right)
    invalid = invalid_mask(left, right)
    if invalid is not None:
        later, earlier = np.where(invalid, 0, later), np.where(invalid, 0, earlier)
    gap: Data = later - earlier
    if np.any((later ^ earlier) & (later ^ gap) < 0):
        raise IntervalOverflow("interval out of range")
    return gap


def _column(value: Value, rows: int) -> pa.Array:
    return value if isinstance(value, pa.Array) else pa.repeat(value, rows)


def _days_and_time(left: SqlType) -> Kernel:
    """DATE + TIME: a TIMESTAMP."""
    date, time = (0, 1) if left == DATE else (1, 0)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        columns = [_column(value, rows) for value in values]
        days = data_of(columns[date]).astype(np.int64)
        if np.any(np.abs(days) > 106_751_990):
            raise InvalidDatetime("timestamp out of range")
        micros = days * MICROS_PER_DAY + data_of(columns[time])
        return array_from(micros, pa.timestamp("us"), validity(*columns))

    return kernel


def age(call: Call) -> Kernel:
    """Years, months, days and time between two timestamps, field by field; a borrowed month has the
    days of the earlier timestamp's month."""
    source = call.arguments[0].type

    def kernel(values: list[Value], rows: int) -> pa.Array:
        left, right = (_column(value, rows) for value in values)
        one, other = data_of(left), data_of(right)
        swapped = one < other
        sign = np.where(swapped, -1, 1)
        late = _calendar(np.where(swapped, other, one), source)
        early = _calendar(np.where(swapped, one, other), source)
        months, days, micros = (a - b for a, b in zip(late[:3], early[:3], strict=True))
        borrow = micros < 0
        micros, days = micros + borrow * MICROS_PER_DAY, days - borrow
        for _ in range(2):
            borrow = days < 0
            days, months = days + borrow * early[3], months - borrow
        return interval_array((sign * months, sign * days, sign * micros), left, right)

    return kernel


def _calendar(data: Data, source: SqlType) -> tuple[Data, Data, Data, Data]:
    """Months since 1970, day of the month, time of day, days of that month."""
    days, micros = point_parts(data, source)
    month = days.astype("M8[D]").astype("M8[M]")
    first = month.astype("M8[D]").astype(np.int64)
    length = (month + 1).astype("M8[D]").astype(np.int64) - first
    return month.astype(np.int64), days - first, micros, length


# --- functions ---------------------------------------------------------------------------------


def _each(function: Callable[[int, int, int], tuple[int, int, int]]) -> Kernel:
    """A function of single intervals; computed once for equal ones."""

    def kernel(values: list[Value], _: int) -> pa.Array:
        unique = values[0].dictionary_encode()
        found = [
            None if v is None else intervals.pack(*function(*intervals.unpack(v)))
            for v in unique.dictionary.to_pylist()
        ]
        return pa.array(found, pa.binary()).take(unique.indices)

    return kernel


def _make_interval(values: list[Value], rows: int) -> pa.Array:
    numbers: list[Any] = [_integers(value) for value in values[:6]]
    years, months, weeks, days, hours, minutes = numbers + [np.zeros(1, np.int64)] * (
        6 - len(numbers)
    )
    micros = hours * 3_600_000_000 + minutes * 60_000_000
    if len(values) > 6:
        seconds = _numbers(values[6]) * 1e6
        if not (np.abs(seconds) < 2.0**62).all():
            raise IntervalOverflow("interval out of range")
        micros = micros + np.rint(seconds).astype(np.int64)
    found = (years * 12 + months, weeks * 7 + days, micros)
    return interval_array(_spread(found, rows), *values)


def _spread(parts: Parts, rows: int) -> Parts:
    months, days, micros = (np.broadcast_to(part, (rows,)) for part in parts)
    return months, days, micros


def _integers(value: Value) -> Data:
    if isinstance(value, pa.Array):
        return data_of(value).astype(np.int64)
    return np.array([value.as_py()], np.int64)


INTERVAL_FUNCTIONS: dict[str, Callable[[Call], Kernel]] = {
    "age": age,
    "justify_days": lambda _: _each(intervals.justify_days),
    "justify_hours": lambda _: _each(intervals.justify_hours),
    "justify_interval": lambda _: _each(intervals.justify_interval),
    "make_interval": lambda _: _make_interval,
}


# --- fields ------------------------------------------------------------------------------------


def interval_field(field: str, value: pa.Array) -> tuple[Data, int]:
    """``extract(field from interval)`` as integers, and the number of their decimal places."""
    months, days, micros = interval_parts(value)
    minute = 60_000_000
    years = _quotient(months, 12)
    match field:
        case "hour":
            return _quotient(micros, 60 * minute), 0
        case "minute":
            return np.fmod(_quotient(micros, minute), 60), 0
        case "second":
            return np.fmod(micros, minute), 6
        case "milliseconds":
            return np.fmod(micros, minute), 3
        case "microseconds":
            return np.fmod(micros, minute), 0
        case "day":
            return days, 0
        case "month":
            return np.fmod(months, 12), 0
        case "quarter":
            return _quotient(np.fmod(months, 12), 3) + 1, 0
        case "year":
            return years, 0
        case "epoch":
            # A year counts 365.25 days here, a month 30.
            total = years * 1461 * 6 * 3600 + (np.fmod(months, 12) * 30 + days) * 86_400
            return total * 1_000_000 + micros, 6
    span = {"decade": 10, "century": 100, "millennium": 1000}.get(field)
    if span is None:
        raise InputError(f'unit "{field}" not recognized for type interval')
    return _quotient(years, span), 0


def _quotient(data: Data, divisor: int) -> Data:
    """Rounded towards zero."""
    found: Data = np.sign(data) * (np.abs(data) // divisor)
    return found


def truncated_interval(field: str, value: pa.Array) -> pa.Array:
    """``date_trunc(field, interval)``"""
    months, days, micros = interval_parts(value)
    nothing = np.zeros(1, np.int64)
    units = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000,
             "milliseconds": 1_000, "microseconds": 1}  # fmt: skip
    spans = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200,
             "millennium": 12_000}  # fmt: skip
    if field in units:
        return interval_array((months, days, _quotient(micros, units[field]) * units[field]), value)
    if field == "day":
        return interval_array((months, days, nothing), value)
    if field in spans:
        whole = _quotient(months, spans[field]) * spans[field]
        return interval_array((whole, nothing, nothing), value)
    if field == "week":
        raise NotSupported(
            'unit "week" is not supported for type interval',
            detail="Months usually have fractional weeks.",
            hint="Truncate to days, and divide them by seven.",
        )
    raise InputError(f'unit "{field}" not recognized for type interval')


# --- casts -------------------------------------------------------------------------------------


def interval_to_time(array: pa.Array) -> pa.Array:
    """The time of day: days and months are left out."""
    return array_from(interval_parts(array)[2] % MICROS_PER_DAY, pa.time64("us"), validity(array))


def time_to_interval(array: pa.Array) -> pa.Array:
    nothing = np.zeros(1, np.int64)
    return interval_array((nothing, nothing, data_of(array)), array)
