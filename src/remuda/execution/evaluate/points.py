"""Dates, times and timestamps as days and microseconds, and their sum with an interval.

On NumPy's calendar (proleptic Gregorian, as PostgreSQL's)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.calendar import FIRST_TIMESTAMP
from remuda.errors import DatetimeOverflow
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.kernel import column
from remuda.execution.evaluate.numbers import Value, compute, invalid_mask, validity

DAY = 86_400_000_000


def point_parts(data: Data, type_: SqlType) -> tuple[Data, Data]:
    """(days since 1970, microseconds of the day)."""
    if type_.kind is Kind.DATE:
        return data.astype(np.int64), np.zeros(len(data), np.int64)
    if type_.kind is Kind.TIME:
        return np.zeros(len(data), np.int64), data
    days, micros = np.divmod(data, DAY)
    return days, micros


def add_months(days: Data, months: Any) -> Data:
    """Same day of another month, clipped to its last day."""
    dates = days.astype("M8[D]")
    month = dates.astype("M8[M]")
    day = days - month.astype("M8[D]").astype(np.int64)
    target = month.astype(np.int64) + months
    first = target.astype("M8[M]").astype("M8[D]").astype(np.int64)
    length = (target + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - first
    moved_days: Data = first + np.minimum(day, length - 1)
    return moved_days


def moved(
    point: Value,
    source: SqlType,
    result: SqlType,
    interval: tuple[Any, Any, Any],
    sources: tuple[Value, ...],
) -> pa.Array:
    """``point`` plus months, days and microseconds, NULL where it or one of ``sources`` is (a
    constant ``point`` is spread to their rows).

    Months first (the day is clipped to the month's last), then days, then microseconds; TIME wraps
    at 24 hours. Raises DatetimeOverflow.
    """
    value = column(point, max((len(s) for s in sources if isinstance(s, pa.Array)), default=1))
    months, more_days, more_micros = interval
    arrow = engine_type(result)
    days, micros = point_parts(data_of(value), source)
    known = validity(value, *sources)
    if source.kind is Kind.TIME:
        data: Any = (micros + more_micros) % DAY
        return array_from(data, arrow, known)
    if np.any(np.abs(months) > 12 * 300_000) or np.any(np.abs(more_days) > 10**8):
        raise DatetimeOverflow("timestamp out of range")
    if np.any(months):
        days = add_months(days, months)
    days = days + more_days
    if result.kind is Kind.DATE:
        data = days + (micros + more_micros) // DAY
        if len(data) and (data.min() < -(2**31) or data.max() >= 2**31):
            raise DatetimeOverflow("date out of range")
    else:
        invalid = invalid_mask(value, *sources)
        data = compute("+", compute("*", days, DAY, invalid), micros, invalid)
        data = compute("+", data, more_micros, invalid)
        early = data < FIRST_TIMESTAMP if invalid is None else (data < FIRST_TIMESTAMP) & ~invalid
        if data.dtype == object or np.any(early):
            raise DatetimeOverflow("timestamp out of range")
    return array_from(data, arrow, known)
