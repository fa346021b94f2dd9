"""Casts and functions of moments by the clocks of the session's zone, their first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind, SqlType, has_moments
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.texts.valuetext import text_of
from remuda.datatypes.times.calendar import Moment, moment_text
from remuda.datatypes.times.session_zones import session_zone
from remuda.datatypes.times.zone_columns import offsets
from remuda.datatypes.times.zones import Zone
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.casts import Conversion, conversion, nested_conversion
from remuda.execution.evaluate.datetime_format import to_char
from remuda.execution.evaluate.datetime_parse import parsed_micros
from remuda.execution.evaluate.datetimes import checked_micros, physical_rows
from remuda.execution.evaluate.decimals import compact
from remuda.execution.evaluate.intervals import parts_of
from remuda.execution.evaluate.json_values import iso_text
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value, invalid_mask, validity
from remuda.execution.evaluate.points import DAY, moved
from remuda.execution.evaluate.temporal import TIME_UNITS, truncated
from remuda.plan.expression import Call, Literal

_MOMENTS: Final = pa.timestamp("us", "UTC")
_CLOCKS: Final = pa.timestamp("us")
_HOUR: Final = 3600


def _zone(call: Call) -> Zone:
    found = session_zone(_text(call, 0))
    assert found is not None
    return found


def _text(call: Call, place: int) -> str:
    """An argument that the session writes."""
    given = call.arguments[place]
    assert isinstance(given, Literal)
    return str(given.value)


# --- moments and clocks ------------------------------------------------------------------------


def to_clock(zone: Zone, data: Data) -> Data:
    """The times that the clocks of ``zone`` show at these moments."""
    local: Data = data + offsets(zone, data, to_utc=False)
    return local


def to_moment(zone: Zone, data: Data) -> Data:
    """The moments at which the clocks of ``zone`` show these times."""
    utc: Data = data - offsets(zone, data, to_utc=True)
    return utc


def _known(array: pa.Array) -> Data:
    """The numbers of the array, 0 under a NULL."""
    invalid = invalid_mask(array)
    data = data_of(array)
    return data if invalid is None else np.where(invalid, 0, data)


# --- CAST --------------------------------------------------------------------------------------


def _cast(call: Call) -> Kernel:
    convert = _conversion(_zone(call), call.arguments[1].type, call.type)
    return lambda values, rows: convert(column(values[1], rows))


def _conversion(zone: Zone, source: SqlType, target: SqlType) -> Conversion:
    own = zone.converts(source, target)
    if not own and has_moments(source) == has_moments(target):
        return conversion(source, target)
    if target == VARCHAR:
        return _to_text(source, text_of(source, zone))
    if source.is_text:
        return lambda array: _parsed(array, target, zone)
    if source.is_nested:
        return nested_conversion(source, target, lambda *pair: _conversion(zone, *pair))
    if source.kind is Kind.TIMESTAMPTZ:
        further = conversion(TIMESTAMP, target)
        return lambda array: further(
            array_from(to_clock(zone, _known(array)), _CLOCKS, validity(array))
        )
    first = conversion(source, TIMESTAMP)

    def from_clock(array: pa.Array) -> pa.Array:
        clock = first(array)
        return array_from(to_moment(zone, _known(clock)), _MOMENTS, validity(clock))

    return from_clock


def _to_text(source: SqlType, write: Callable[[Any], str]) -> Conversion:
    def convert(array: pa.Array) -> pa.Array:
        values = array_to_values(array, source)
        return pa.array([None if v is None else write(v) for v in values], pa.string())

    return convert


def _parsed(array: pa.Array, target: SqlType, zone: Zone) -> pa.Array:
    unique = array.dictionary_encode()
    texts = unique.dictionary.to_pylist()
    parsed = values_to_array([parse_text(text, target, zone) for text in texts], target)
    return compact(parsed.take(unique.indices))


def _iso(call: Call) -> Kernel:
    """Moments become text as JSON has them, wherever they are in the value."""
    zone, source = _zone(call), call.arguments[1].type
    write = _to_text(TIMESTAMPTZ, lambda value: iso_text(moment_text(value, zone)))

    def of(have: SqlType, want: SqlType) -> Conversion:
        if have.kind is Kind.TIMESTAMPTZ:
            return write
        return nested_conversion(have, want, of) if has_moments(have) else conversion(have, want)

    convert = of(source, call.type)
    return lambda values, rows: convert(column(values[1], rows))


# --- functions ---------------------------------------------------------------------------------


def _move(call: Call) -> Kernel:
    """Months and days by the clocks of the zone, the time of the interval in its full length."""
    zone = _zone(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        moments = column(values[1], rows)
        months, days, micros = parts_of(values[2])
        by_clock = np.broadcast_to((months != 0) | (days != 0), len(moments))
        clock = array_from(to_clock(zone, _known(moments)), _CLOCKS, validity(moments))
        shifted = moved(clock, TIMESTAMP, TIMESTAMP, (months, days, 0), (values[2],))
        start = np.where(by_clock, to_moment(zone, _known(shifted)), _known(moments))
        found = array_from(start, _MOMENTS, validity(shifted))
        return moved(found, TIMESTAMPTZ, TIMESTAMPTZ, (0, 0, micros), (values[2],))

    return kernel


def move(moment: int, months: int, days: int, micros: int, zone: Zone) -> int:
    """One moment and an interval. Raises DatetimeOverflow."""
    if months or days:
        clock = pa.array([moment + zone.at_utc(moment)], _CLOCKS)
        shifted = int(data_of(moved(clock, TIMESTAMP, TIMESTAMP, (months, days, 0), ()))[0])
        moment = shifted - zone.at_local(shifted)
    return checked_micros(moment + micros)


def _trunc(call: Call) -> Kernel:
    zone, field = _zone(call), _text(call, 2).lower()

    def kernel(values: list[Value], rows: int) -> pa.Array:
        moments = column(values[1], rows)
        data = _known(moments)
        clock = to_clock(zone, data)
        days, micros = truncated(field, *np.divmod(clock, DAY))
        cut = days * DAY + micros
        # Hours and less stay in the hour that comes twice in which they are.
        found = data - (clock - cut) if field in TIME_UNITS else to_moment(zone, cut)
        return array_from(found, _MOMENTS, validity(moments))

    return kernel


def _offset(call: Call) -> Kernel:
    zone, field = _zone(call), _text(call, 2)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        moments = column(values[1], rows)
        seconds = offsets(zone, _known(moments), to_utc=False) // 1_000_000
        if field != "timezone":
            size = np.abs(seconds)
            size = size // _HOUR if field == "timezone_hour" else size % _HOUR // 60
            seconds = np.sign(seconds) * size
        return array_from(seconds, engine_type(call.type), validity(moments))

    return kernel


def _to_char(call: Call) -> Kernel:
    zone = _zone(call)

    def text(_: str, micros: int, template: str) -> str:
        offset = zone.at_utc(micros)
        clock = Moment.of_micros(micros + offset, zoned=True)
        return to_char(clock, template, offset // 1_000_000, zone.called(micros))

    return physical_rows(text)(call)


def _to_timestamp(call: Call) -> Kernel:
    zone = _zone(call)
    return physical_rows(
        lambda _, text, template: checked_micros(parsed_micros(text, template, zone))
    )(call)


SESSION_ZONE_FUNCTIONS: Final[dict[str, Callable[[Call], Kernel]]] = {
    "cast_in_zone": _cast,
    "iso_in_zone": _iso,
    "move_in_zone": _move,
    "trunc_in_zone": _trunc,
    "zone_offset": _offset,
    "to_char_in_zone": _to_char,
    "to_timestamp_in_zone": _to_timestamp,
}
