"""extract, date_trunc and intervals, on NumPy's calendar (proleptic Gregorian, as PostgreSQL's)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import INTERVAL, Kind
from remuda.errors import InputError, NotSupported
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.decimals import to_precision
from remuda.execution.evaluate.intervals import interval_field, truncated_interval
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import (
    Value,
    decimal_array,
    exact_of,
    integer_array,
    invalid_mask,
    rescale,
    validity,
)
from remuda.execution.evaluate.points import DAY, moved, point_parts
from remuda.plan.expression import Call, Literal
from remuda.plan.functions.datetime_fields import ZONE_FIELDS

_YEAR_SPANS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
TIME_UNITS = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "milliseconds": 1_000,
    "microseconds": 1,
}
_FRACTIONS = {"second": 6, "milliseconds": 3, "epoch": 6, "julian": 10}
_JULIAN_EPOCH = 2_440_588
"""The Julian day of 1970-01-01."""


def _field(call: Call) -> str:
    field = call.arguments[0]
    if not isinstance(field, Literal):
        raise NotSupported(
            f"the field of {call.function} must be a constant",
            hint="Write the field as a text, such as 'month', or choose by CASE.",
        )
    return str(field.value).lower()


def _column_data(value: Value) -> Data:
    return data_of(value if isinstance(value, pa.Array) else pa.repeat(value, 1))


def extract(call: Call) -> Kernel:
    field = _field(call)
    source = call.arguments[1].type
    arrow = engine_type(call.type)

    def kernel(values: list[Value], _: int) -> pa.Array:
        value = values[1]
        scale = _FRACTIONS.get(field, 0)
        if source == INTERVAL:
            data, scale = interval_field(field, value)
        else:
            days, micros = point_parts(_column_data(value), source)
            data = days * 0 if field in ZONE_FIELDS else _extracted(field, days, micros)
        if call.type.kind is Kind.DECIMAL:
            invalid = invalid_mask(value)
            scaled = rescale(data, (call.type.scale or 0) - scale, invalid)
            scaled = to_precision(scaled, call.type, invalid)
            assert isinstance(scaled, np.ndarray)
            return decimal_array(scaled, call.type, value, invalid=invalid)
        if call.type.is_float:
            return array_from(data / 10.0**scale, arrow, validity(value))
        whole = data // 10**scale if scale else data
        return integer_array(whole, call.type, arrow, value)

    return lambda values, rows: kernel([values[0], _as_column(values[1], rows)], rows)


def _as_column(value: Value, rows: int) -> pa.Array:
    return value if isinstance(value, pa.Array) else pa.repeat(value, rows)


def _extracted(field: str, days: Data, micros: Data) -> Data:
    """The field as int64; ``second`` and ``epoch`` in microseconds, ``milliseconds`` times 1000."""
    match field:
        case "hour":
            return micros // TIME_UNITS["hour"]
        case "minute":
            return micros // TIME_UNITS["minute"] % 60
        case "second" | "milliseconds" | "microseconds":
            return micros % TIME_UNITS["minute"]
        case "epoch" | "julian":
            return days * DAY + micros if field == "epoch" else _julian(days, micros)
        case "dow":
            return (days + 4) % 7
        case "isodow":
            return (days + 3) % 7 + 1
        case "week" | "isoyear":
            return _iso_week(field, days)
    dates = days.astype("M8[D]")
    years = dates.astype("M8[Y]")
    if field == "doy":
        return days - years.astype("M8[D]").astype(np.int64) + 1
    if field == "day":
        return days - dates.astype("M8[M]").astype("M8[D]").astype(np.int64) + 1
    if field in ("month", "quarter"):
        months = dates.astype("M8[M]").astype(np.int64) % 12
        return months + 1 if field == "month" else months // 3 + 1
    year = years.astype(np.int64) + 1970
    if field == "year":
        return np.where(year <= 0, year - 1, year)  # there is no year 0
    if field in _YEAR_SPANS:
        return _year_span(field, year)
    raise InputError(f'unit "{field}" not recognized')


def _julian(days: Data, micros: Data) -> Data:
    """The Julian day, with ten digits of a day behind the point."""
    found: Data = (days + _JULIAN_EPOCH) * 10**10 + (micros * 100 + 432) // 864
    return found


def _year_span(field: str, year: Data) -> Data:
    if field == "decade":
        return year // 10
    span = _YEAR_SPANS[field]
    return np.where(year > 0, (year + span - 1) // span, -((span - year) // span))


def _iso_week(field: str, days: Data) -> Data:
    """The week belongs to the year of its Thursday."""
    thursday = days - (days + 3) % 7 + 3
    years = thursday.astype("M8[D]").astype("M8[Y]")
    if field == "isoyear":
        iso_year: Data = years.astype(np.int64) + 1970
        return np.where(iso_year <= 0, iso_year - 1, iso_year)  # there is no year 0
    week: Data = (thursday - years.astype("M8[D]").astype(np.int64)) // 7 + 1
    return week


def date_trunc(call: Call) -> Kernel:
    field = _field(call)
    source = call.arguments[1].type
    arrow = engine_type(call.type)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        value = _as_column(values[1], rows)
        if source == INTERVAL:
            return truncated_interval(field, value)
        days, micros = point_parts(data_of(value), source)
        days, micros = truncated(field, days, micros)
        data = days if call.type.kind is Kind.DATE else days * DAY + micros
        return array_from(data, arrow, validity(value))

    return kernel


def truncated(field: str, days: Data, micros: Data) -> tuple[Data, Data]:
    if field in TIME_UNITS:
        return days, micros - micros % TIME_UNITS[field]
    midnight = np.zeros(len(micros), np.int64)
    if field == "day":
        return days, midnight
    if field == "week":
        return days - (days + 3) % 7, midnight
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    if field == "month":
        first = months
    elif field == "quarter":
        first = months - months % 3
    elif field in _YEAR_SPANS:
        year = months // 12 + 1970
        span = _YEAR_SPANS[field]
        start = 0 if field in ("year", "decade") else 1  # centuries begin with year 1
        first = ((year - start) // span * span + start - 1970) * 12
    else:
        raise InputError(f'unit "{field}" not recognized')
    return first.astype("M8[M]").astype("M8[D]").astype(np.int64), midnight


def add_interval(call: Call) -> Kernel:
    source = call.arguments[0].type

    def kernel(values: list[Value], _: int) -> pa.Array:
        months, days, micros = (exact_of(part) for part in values[1:])
        return moved(values[0], source, call.type, (months, days, micros), tuple(values[1:]))

    return kernel
