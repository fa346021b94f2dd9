"""Dates and times made, formatted, read and compared; templates are in their own modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind
from remuda.datatypes.texts.text import decimal_to_unscaled
from remuda.datatypes.times.calendar import (
    END_OF_TIMESTAMPS,
    FIRST_DAY,
    FIRST_TIMESTAMP,
    Moment,
    days_from_civil,
    days_in_month,
)
from remuda.datatypes.times.intervals import unpack
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import DatetimeOverflow, NotSupported
from remuda.execution.arrays import boolean_array, shared_validity
from remuda.execution.evaluate.datetime_format import to_char
from remuda.execution.evaluate.datetime_parse import parsed_days, parsed_micros
from remuda.execution.evaluate.decimals import compact
from remuda.execution.evaluate.interval_format import interval_to_char
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.number_format import number_to_char, to_number
from remuda.execution.evaluate.numbers import Value
from remuda.plan.expression import Call

_DAY: Final = 86_400_000_000
_YEAR_2000: Final = 946_684_800
"""Seconds since 1970: PostgreSQL counts from there, which decides how doubles are rounded."""


def physical_rows(function: Callable[..., Any]) -> Callable[[Call], Kernel]:
    """Calls ``function`` with the physical values of each row without NULLs: days, microseconds,
    unscaled decimals."""

    def make(call: Call) -> Kernel:
        types = [argument.type for argument in call.arguments]

        def kernel(values: list[Value], rows: int) -> pa.Array:
            columns = [
                array_to_values(column(value, rows), type_)
                for value, type_ in zip(values, types, strict=True)
            ]
            found = [None if None in row else function(*row) for row in zip(*columns, strict=True)]
            return compact(values_to_array(found, call.type))

        return kernel

    return make


def _to_char(call: Call) -> Kernel:
    source = call.arguments[0].type
    if source.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        zoned = source.kind is Kind.TIMESTAMPTZ
        return physical_rows(
            lambda micros, template: to_char(Moment.of_micros(micros, zoned=zoned), template)
        )(call)
    if source.kind is Kind.INTERVAL:
        return physical_rows(interval_to_char)(call)
    if source.is_float:
        return physical_rows(lambda value, template: number_to_char(float(value), template))(call)
    scale = source.scale or 0 if source.kind is Kind.DECIMAL else 0
    return physical_rows(
        lambda value, template: number_to_char(Decimal(value).scaleb(-scale), template)
    )(call)


def _to_number(call: Call) -> Kernel:
    return physical_rows(
        lambda text, template: decimal_to_unscaled(to_number(text, template), call.type)
    )(call)


def _make_date(year: int, month: int, day: int) -> int:
    actual = year + 1 if year < 0 else year
    if year == 0 or not 1 <= month <= 12 or not 1 <= day <= days_in_month(actual, month):
        raise DatetimeOverflow(f"date field value out of range: {year}-{month:02d}-{day:02d}")
    return _checked_days(days_from_civil(actual, month, day))


def _checked_days(days: int) -> int:
    if not FIRST_DAY <= days < 2**31 - 1:
        raise DatetimeOverflow("date out of range")
    return days


def _make_time(hour: int, minute: int, second: float) -> int:
    # Not of NaN, nor of what times a million is infinite.
    micros = round(second * 1_000_000) if abs(second) <= _DAY else -1
    total = (hour * 60 + minute) * 60_000_000 + micros
    if not (0 <= hour <= 24 and 0 <= minute < 60 and 0 <= micros <= 60_000_000 and total <= _DAY):
        raise DatetimeOverflow(f"time field value out of range: {hour}:{minute:02d}:{second:02g}")
    return total % _DAY if total == _DAY else total


def _make_timestamp(*parts: Any) -> int:
    year, month, day, hour, minute, second = parts
    micros = _make_date(year, month, day) * _DAY + _make_time(hour, minute, second)
    if hour == 24:
        micros += _DAY
    return checked_micros(micros)


def checked_micros(micros: int) -> int:
    if not FIRST_TIMESTAMP <= micros < END_OF_TIMESTAMPS:
        raise DatetimeOverflow("timestamp out of range")
    return micros


def _date_bin(stride: bytes, source: int, origin: int) -> int:
    months, days, micros = unpack(stride)
    if months:
        raise NotSupported(
            "timestamps cannot be binned into intervals containing months or years",
            hint="Use date_trunc('month', ...) or date_trunc('year', ...).",
        )
    width = days * _DAY + micros
    if width <= 0:
        raise DatetimeOverflow("stride must be greater than zero")
    return checked_micros(origin + (source - origin) // width * width)


def _from_epoch(seconds: float) -> int:
    if not math.isfinite(seconds):
        raise DatetimeOverflow("timestamp cannot be NaN or infinite")
    if abs(seconds) > 1e13:
        raise DatetimeOverflow(f'timestamp out of range: "{seconds:g}"')
    since = round((seconds - _YEAR_2000) * 1_000_000)
    return checked_micros(since + _YEAR_2000 * 1_000_000)


def _to_timestamp(call: Call) -> Kernel:
    if len(call.arguments) == 1:
        return physical_rows(_from_epoch)(call)
    return physical_rows(lambda text, form: checked_micros(parsed_micros(text, form)))(call)


def _always_true(_: Call) -> Kernel:
    """isfinite: there is no infinite date here."""
    return lambda values, rows: boolean_array(
        np.ones(rows, np.bool_), shared_validity(column(values[0], rows))
    )


def _overlaps(call: Call) -> Kernel:
    """Four points: two periods (start, end), ends may be exchanged; SQL:2016 8.14."""
    types = [argument.type for argument in call.arguments]

    def kernel(values: list[Value], rows: int) -> pa.Array:
        columns = [
            array_to_values(column(value, rows), type_)
            for value, type_ in zip(values, types, strict=True)
        ]
        found = [overlap(*row) for row in zip(*columns, strict=True)]
        return pa.array(found, engine_type(call.type))

    return kernel


def overlap(start: Any, end: Any, other_start: Any, other_end: Any) -> bool | None:
    """NULL unless the known points decide it, as PostgreSQL does."""
    first = _period(start, end)
    second = _period(other_start, other_end)
    if first is None or second is None:
        return None
    (start, end), (other_start, other_end) = first, second
    if start == other_start:
        return None if end is None or other_end is None else True
    if start < other_start:
        start, end, other_start, other_end = other_start, other_end, start, end
    # now the first period begins later
    if other_end is None:
        return None
    if start < other_end:
        return True
    return None if end is None else False


def _period(start: Any, end: Any) -> tuple[Any, Any] | None:
    """(earlier point, later point); a missing one is the later."""
    if start is None:
        return None if end is None else (end, None)
    if end is not None and end < start:
        return end, start
    return start, end


DATETIME_FUNCTIONS: Final[dict[str, Callable[[Call], Kernel]]] = {
    "to_char": _to_char,
    "to_number": _to_number,
    "to_date": physical_rows(lambda text, form: _checked_days(parsed_days(text, form))),
    "to_timestamp": _to_timestamp,
    "date_bin": physical_rows(_date_bin),
    "make_date": physical_rows(_make_date),
    "make_time": physical_rows(_make_time),
    "make_timestamp": physical_rows(_make_timestamp),
    "make_timestamptz": physical_rows(_make_timestamp),
    "isfinite": _always_true,
}
OVERLAPS: Final = {"overlaps": _overlaps}
"""Looks at NULLs itself."""
