"""The digits of seconds that a column TIMESTAMP(3) keeps, and the fields that an INTERVAL YEAR TO
MONTH keeps. Seconds are rounded half away from zero, as PostgreSQL rounds them (zero of a timestamp
is the year 2000). Parts of an interval below its last field are cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.buffers import list_over, validity_of, values_of
from remuda.datatypes.sql import FRACTION_MAX, INTERVAL_FIELDS, Kind, SqlType
from remuda.datatypes.times.intervals import pack, truncated_to, unpack
from remuda.errors import DatetimeOverflow

_DAY: Final = 86_400_000_000
_YEAR_2000: Final = 10_957 * _DAY
"""Microseconds since 1970."""
_INT64_MAX: Final = 2**63 - 1
_SECOND: Final = "second"

Fit: TypeAlias = Callable[[Any], Any]


def fit_of(t: SqlType) -> Fit | None:
    """The function from a physical value of ``t`` (not NULL) to what a column of this type keeps of
    it; None: all of it. The function raises DatetimeOverflow when a value is rounded out of range.
    """
    if t.element is not None:
        inner = fit_of(t.element)
        if inner is None:
            return None
        return lambda items: tuple([None if item is None else inner(item) for item in items])
    unit = _unit(t)
    field = t.span[-1] if t.span else _SECOND
    if unit == 1 and field == _SECOND:
        return None
    if t.kind is Kind.INTERVAL:
        return lambda value: _fit_interval(value, field, unit)
    if t.kind is Kind.TIME:
        return lambda value: _checked_time(_rounded(value, unit, 0))
    return lambda value: _checked(_rounded(value, unit, _YEAR_2000))


def fit_array(array: pa.Array, t: SqlType) -> pa.Array:
    """The same for an array in engine form."""
    fit = fit_of(t)
    if fit is None or not len(array) or array.null_count == len(array):
        return array
    if t.element is not None:
        return list_over(array, fit_array(array.values, t.element), array.type)
    if t.kind is Kind.INTERVAL:
        unique = array.dictionary_encode()
        kept = [None if v is None else fit(v) for v in unique.dictionary.to_pylist()]
        return pa.array(kept, array.type).take(unique.indices)
    found = _rounded_all(values_of(array, "<i8"), array, t)
    buffers = [validity_of(array), pa.py_buffer(np.ascontiguousarray(found))]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def keeps_all(stored: SqlType, wanted: SqlType) -> bool:
    """Whether ``wanted`` keeps every value that a column of ``stored`` can have, as far as digits
    of seconds and fields of intervals go."""
    if stored.element is not None and wanted.element is not None:
        return keeps_all(stored.element, wanted.element)
    if stored.kind is not wanted.kind:
        return not wanted.is_restricted
    if _smallest(stored) > _smallest(wanted):
        return False
    return _unit(stored) % _unit(wanted) == 0 or _smallest(stored) < INTERVAL_FIELDS.index(_SECOND)


def _smallest(t: SqlType) -> int:
    return INTERVAL_FIELDS.index(t.span[-1] if t.span else _SECOND)


def _rounded_all(values: npt.NDArray[np.int64], like: pa.Array, t: SqlType) -> Any:
    unit, zero = _unit(t), 0 if t.kind is Kind.TIME else _YEAR_2000
    rest = values % unit
    found = values - rest + unit * np.where(values >= zero, 2 * rest >= unit, 2 * rest > unit)
    bad = found >= _DAY if t.kind is Kind.TIME else found < values - rest
    if bad.any():
        for value in found[bad & np.asarray(like.is_valid())].tolist():
            (_checked_time if t.kind is Kind.TIME else _wrapped)(value)
    return found


def _unit(t: SqlType) -> int:
    """Microseconds that the last digit counts."""
    return 1 if t.fraction is None else int(10 ** (FRACTION_MAX - t.fraction))


def _rounded(micros: int, unit: int, zero: int) -> int:
    rest = micros % unit
    up = 2 * rest >= unit if micros >= zero else 2 * rest > unit
    return micros - rest + unit * up


def _checked_time(micros: int) -> int:
    if micros >= _DAY:
        raise DatetimeOverflow("24:00:00 is not a time of a day", hint="Keep more digits.")
    return micros


def _checked(micros: int) -> int:
    return micros if micros <= _INT64_MAX else _wrapped(micros)


def _wrapped(_: int) -> int:
    raise DatetimeOverflow("timestamp out of range")


def _fit_interval(value: bytes, field: str, unit: int) -> bytes:
    value = truncated_to(value, field)
    if unit == 1:
        return value
    months, days, micros = unpack(value)
    return pack(months, days, _rounded(micros, unit, 0))
