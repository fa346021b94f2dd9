"""Values: Python objects as users see them, and the engine's physical form."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes import jsons, sql
from remuda.datatypes.arrow import engine_type, values_of
from remuda.datatypes.coercion import common_type
from remuda.datatypes.enums import label_of
from remuda.datatypes.numeric import shown_scale
from remuda.datatypes.sql import Kind, PhysicalValue, SqlType
from remuda.datatypes.times.intervals import Interval, pack, unpack
from remuda.datatypes.times.time_digits import fit_of
from remuda.errors import (
    DataError,
    InvalidDatetime,
    InvalidText,
    NumericOverflow,
    ObjectMismatch,
    StringTooLong,
    UndefinedType,
)

__all__ = ["PhysicalValue"]  # of remuda.datatypes.sql

_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (TIMESTAMP has no zone)
_EPOCH_UTC: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_MICROS_PER_DAY: Final = 86_400_000_000
_REAL_MAX: Final = 3.4028235677973366e38
"""From here on a double rounds to infinity as a 32-bit float: (2 - 2**-24) * 2**127."""

_INTEGER_BITS: Final = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}


# --- Python -> physical -----------------------------------------------------------------------


def to_physical(value: object, sql_type: SqlType) -> PhysicalValue:
    """The physical form of a user's object, with the digits of a second that ``sql_type`` keeps;
    raises a ``DataError`` that names the reason."""
    if value is None:
        return None
    convert = _TO_PHYSICAL.get(sql_type.kind)
    if convert is None:
        raise _unfit(value, sql_type)
    if isinstance(value, np.generic):
        value = value.item()
    found = convert(value, sql_type)
    if sql_type.fraction is None and not sql_type.span:
        return found
    fit = fit_of(sql_type)
    return found if fit is None else fit(found)


def _unfit(value: object, sql_type: SqlType) -> ObjectMismatch:
    return ObjectMismatch(f"expected {sql_type}, found {type_name(value)}")


def type_name(value: object) -> str:
    """The SQL type of an object, or the name of its class where it has none."""
    try:
        return str(infer_type(value))
    except UndefinedType:
        return type(value).__name__


def require_unicode(text: str, what: str = "text") -> None:
    """Raises InvalidText for text that UTF-8 cannot carry: Python makes lone surrogates of bytes
    that it cannot decode in arguments, file names and standard input."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise InvalidText(
            f"{what} is not valid Unicode: a lone surrogate at index {problem.start}"
        ) from problem


def _boolean(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, bool):
        return value
    raise _unfit(value, sql_type)


def _integer(value: object, sql_type: SqlType) -> PhysicalValue:
    if type(value) is not int:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise _unfit(value, sql_type)
        whole = int(value) if not isinstance(value, Decimal) or value.is_finite() else None
        if whole is None or whole != value:
            raise DataError(f"{value} is not a whole number and does not fit {sql_type}")
        value = whole
    limit = 1 << (_INTEGER_BITS[sql_type.kind] - 1)
    if -limit <= value < limit:
        return value
    raise NumericOverflow(f"{value} is out of range for {sql_type}")


def _float(value: object, sql_type: SqlType) -> PhysicalValue:
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise _unfit(value, sql_type)
        try:
            value = float(value)
        except OverflowError as problem:
            raise NumericOverflow(f"an integer is out of range for {sql_type}") from problem
    if sql_type.kind is Kind.REAL and math.isfinite(value):
        if abs(value) >= _REAL_MAX:
            raise NumericOverflow(f"{value} is out of range for {sql_type}")
        return float(np.float32(value))
    return value


def _decimal(value: object, sql_type: SqlType) -> PhysicalValue:
    scale, precision = sql_type.scale or 0, sql_type.precision or 0
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _unfit(value, sql_type)
    unscaled = value * 10**scale if isinstance(value, int) else _unscaled(value, scale, sql_type)
    if abs(unscaled) >= 10**precision:
        raise NumericOverflow(f"{value} is out of range for {sql_type}")
    return unscaled


def _unscaled(value: Decimal, scale: int, sql_type: SqlType) -> int:
    """``value * 10**scale`` exactly, without any decimal context."""
    if not value.is_finite():
        raise DataError(f"{value} does not fit {sql_type}")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent > 1000:
        raise NumericOverflow(f"{value} is out of range for {sql_type}")
    magnitude = int("".join(map(str, digits)))
    shift = exponent + scale
    if shift >= 0:
        magnitude *= int(10**shift)
    else:
        magnitude, rest = divmod(magnitude, int(10**-shift))
        if rest:
            raise DataError(
                f"{value} has more than {scale} decimal places and does not fit {sql_type}"
            )
    return -magnitude if sign else magnitude


def _text(value: object, sql_type: SqlType) -> PhysicalValue:
    if not isinstance(value, str):
        raise _unfit(value, sql_type)
    if not value.isascii():
        require_unicode(value)
    if sql_type.enum is not None:
        return label_of(value, sql_type)
    if sql_type.kind is Kind.CHAR:
        value = value.rstrip(" ")
    if sql_type.length is not None and len(value) > sql_type.length:
        raise StringTooLong(f"a value of {len(value)} characters does not fit {sql_type}")
    return value


def _binary(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise _unfit(value, sql_type)


def _date(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time():
            raise _unfit(value, sql_type)
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_DAY
    raise _unfit(value, sql_type)


def _time(value: object, sql_type: SqlType) -> PhysicalValue:
    if not isinstance(value, dt.time):
        raise _unfit(value, sql_type)
    if value.tzinfo is not None:
        raise InvalidDatetime(f"a time with a zone does not fit {sql_type}")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _timestamp(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            raise _unfit(value, sql_type)
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH_DAY) * _MICROS_PER_DAY
    raise _unfit(value, sql_type)


def _timestamptz(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return (value - _EPOCH_UTC) // _MICROSECOND
    raise _unfit(value, sql_type)


def _interval(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, dt.timedelta):
        value = Interval.of(value)
    if isinstance(value, Interval):
        return pack(value.months, value.days, value.microseconds)
    if isinstance(value, pa.MonthDayNano):
        months, days, nanos = value
        micros, rest = divmod(nanos, 1000)
        if rest:
            raise InvalidDatetime(f"{value} has nanoseconds and does not fit {sql_type}")
        return pack(months, days, micros)
    raise _unfit(value, sql_type)


def _uuid(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, uuid.UUID):
        return value.bytes
    raise _unfit(value, sql_type)


def _json(value: object, _: SqlType) -> PhysicalValue:
    text = jsons.json_text(jsons.from_python(value))
    if not text.isascii():
        require_unicode(text)
    return text


def _array(value: object, sql_type: SqlType) -> PhysicalValue:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise _unfit(value, sql_type)
    assert sql_type.element is not None
    element = sql_type.element
    return tuple([to_physical(item, element) for item in value])


def _row(value: object, sql_type: SqlType) -> PhysicalValue:
    if not isinstance(value, list | tuple) or len(value) != len(sql_type.fields):
        raise _unfit(value, sql_type)
    pairs = zip(value, sql_type.fields, strict=True)
    return tuple([to_physical(item, t) for item, (_, t) in pairs])


_TO_PHYSICAL: Final[dict[Kind, Callable[[object, SqlType], PhysicalValue]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.TINYINT: _integer,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.REAL: _float,
    Kind.DOUBLE: _float,
    Kind.DECIMAL: _decimal,
    Kind.CHAR: _text,
    Kind.VARCHAR: _text,
    Kind.ENUM: _text,
    Kind.BYTEA: _binary,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamptz,
    Kind.INTERVAL: _interval,
    Kind.UUID: _uuid,
    Kind.JSON: _json,
    Kind.ARRAY: _array,
    Kind.ROW: _row,
}


# --- physical -> Python -----------------------------------------------------------------------


def from_physical(value: PhysicalValue, sql_type: SqlType) -> object:
    """The Python object that a user sees for a physical value.

    INTERVAL gives ``Interval``, JSON ``dict``, ``list`` or a scalar, ARRAY ``list``, ROW ``tuple``.
    Raises ``InvalidDatetime`` for a date or timestamp outside the years 1 to 9999 of Python.
    """
    convert = _FROM_PHYSICAL.get(sql_type.kind)
    if value is None or convert is None:
        return value
    try:
        return convert(value, sql_type)
    except (OverflowError, ValueError) as problem:
        raise InvalidDatetime(f"{value!r} is outside of Python's range for {sql_type}") from problem


def _to_decimal(value: Any, sql_type: SqlType) -> object:
    sign, magnitude = (1, -value) if value < 0 else (0, value)
    scale = sql_type.scale or 0
    if sql_type.digits is not None:
        shown = shown_scale(value, scale, *sql_type.digits)
        magnitude //= 10 ** (scale - shown)
        scale = shown
    return Decimal((sign, tuple(map(int, str(magnitude))), -scale))


def _to_date(value: Any, _: SqlType) -> object:
    return dt.date.fromordinal(value + _EPOCH_DAY)


def _to_time(value: Any, _: SqlType) -> object:
    seconds, micros = divmod(value, 1_000_000)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)


def _to_timestamp(value: Any, _: SqlType) -> object:
    return _EPOCH + dt.timedelta(microseconds=value)


def _to_timestamptz(value: Any, _: SqlType) -> object:
    return _EPOCH_UTC + dt.timedelta(microseconds=value)


def _to_interval(value: Any, _: SqlType) -> object:
    return Interval(*unpack(value))


def _to_uuid(value: Any, _: SqlType) -> object:
    return uuid.UUID(bytes=value)


def _to_json(value: Any, _: SqlType) -> object:
    return jsons.to_python(value)


def _to_list(value: Any, sql_type: SqlType) -> object:
    assert sql_type.element is not None
    element = sql_type.element
    return [from_physical(item, element) for item in value]


def _to_tuple(value: Any, sql_type: SqlType) -> object:
    pairs = zip(value, sql_type.fields, strict=True)
    return tuple([from_physical(item, t) for item, (_, t) in pairs])


_FROM_PHYSICAL: Final[dict[Kind, Callable[[Any, SqlType], object]]] = {
    Kind.INTERVAL: _to_interval,
    Kind.UUID: _to_uuid,
    Kind.JSON: _to_json,
    Kind.ARRAY: _to_list,
    Kind.ROW: _to_tuple,
    Kind.DECIMAL: _to_decimal,
    Kind.DATE: _to_date,
    Kind.TIME: _to_time,
    Kind.TIMESTAMP: _to_timestamp,
    Kind.TIMESTAMPTZ: _to_timestamptz,
}


def infer_type(value: object) -> SqlType:
    """The SQL type of a Python object; raises ``UndefinedType`` when it has none."""
    usual = _USUAL.get(type(value))
    if usual is not None:
        return usual
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        scale = -exponent if isinstance(exponent, int) and exponent < 0 else 0
        return sql.decimal(sql.DECIMAL_PRECISION_MAX, min(scale, sql.DECIMAL_PRECISION_MAX))
    if isinstance(value, dt.datetime):
        return sql.TIMESTAMP if value.tzinfo is None else sql.TIMESTAMPTZ
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple) and not isinstance(value, pa.MonthDayNano):
        return _infer_list(value)
    for python_type, sql_type in _INFERRED:
        if isinstance(value, python_type):
            return sql_type
    raise UndefinedType(f"the Python type {type(value).__name__} has no SQL type")


def _infer_list(items: Sequence[object]) -> SqlType:
    """An array of the type that all elements have in common; JSON for lists of lists or mappings,
    text for an empty one."""
    if any(isinstance(item, list | tuple | Mapping) for item in items):
        return sql.JSON
    common = common_type(infer_type(item) for item in items)
    if common is None:
        raise UndefinedType("the elements of a list have no common SQL type")
    return sql.array(common)


_INFERRED: Final[tuple[tuple[type, SqlType], ...]] = (
    (type(None), sql.NULL),
    (bool, sql.BOOLEAN),  # before int: a bool is an int to Python
    (int, sql.BIGINT),
    (float, sql.DOUBLE),
    (str, sql.VARCHAR),
    (bytes, sql.BYTEA),
    (bytearray, sql.BYTEA),
    (memoryview, sql.BYTEA),
    (dt.date, sql.DATE),
    (dt.time, sql.TIME),
    (dt.timedelta, sql.INTERVAL),
    (Interval, sql.INTERVAL),
    (pa.MonthDayNano, sql.INTERVAL),
    (uuid.UUID, sql.UUID),
    (Mapping, sql.JSON),
)


_USUAL: Final = {bool: sql.BOOLEAN, int: sql.BIGINT, float: sql.DOUBLE, str: sql.VARCHAR}
_USUAL_LISTS: Final = 1024


@lru_cache(maxsize=_USUAL_LISTS)
def usual_types(classes: tuple[type, ...]) -> tuple[SqlType, ...] | None:
    """The SQL types of objects of these classes; NULL for None. None: the class does not tell."""
    found = [sql.NULL if each is type(None) else _USUAL.get(each) for each in classes]
    types = tuple([each for each in found if each is not None])
    return types if len(types) == len(found) else None


# --- many physical values <-> Arrow -----------------------------------------------------------


def values_to_array(values: Sequence[PhysicalValue], sql_type: SqlType) -> pa.Array:
    """Physical values as an engine-form array; raises ``DataError`` for a value that does not
    fit.
    """
    if sql_type.kind is Kind.DECIMAL and not sql_type.is_short_decimal:
        return _long_decimals_to_array(values, sql_type)
    if sql_type.is_nested:
        return _nested_to_array(values, sql_type)
    try:
        return pa.array(values, type=engine_type(sql_type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as problem:
        raise DataError(f"a value does not fit {sql_type}: {problem}") from problem


def _long_decimals_to_array(values: Sequence[Any], sql_type: SqlType) -> pa.Array:
    try:
        data = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in values)
    except OverflowError as problem:
        raise NumericOverflow(f"a value is out of range for {sql_type}") from problem
    validity = None
    if None in values:
        flags = np.fromiter((v is not None for v in values), dtype=bool, count=len(values))
        validity = pa.py_buffer(np.packbits(flags, bitorder="little"))
    return pa.Array.from_buffers(engine_type(sql_type), len(values), [validity, pa.py_buffer(data)])


def _nested_to_array(values: Sequence[Any], sql_type: SqlType) -> pa.Array:
    target = engine_type(sql_type)
    known = np.fromiter((v is not None for v in values), dtype=bool, count=len(values))
    validity = None
    if not known.all():
        validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    if sql_type.element is None:
        children = [
            values_to_array([None if v is None else v[place] for v in values], t)
            for place, (_, t) in enumerate(sql_type.fields)
        ]
        return pa.Array.from_buffers(target, len(values), [validity], children=children)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([0 if v is None else len(v) for v in values], out=offsets[1:])
    flat = values_to_array([item for v in values if v is not None for item in v], sql_type.element)
    buffers = [validity, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(target, len(values), buffers, children=[flat])


_NUMPY: Final = {
    Kind.TINYINT: "<i1",
    Kind.SMALLINT: "<i2",
    Kind.INTEGER: "<i4",
    Kind.BIGINT: "<i8",
    Kind.REAL: "<f4",
    Kind.DOUBLE: "<f8",
    Kind.DATE: "<i4",
    Kind.TIME: "<i8",
    Kind.TIMESTAMP: "<i8",
    Kind.TIMESTAMPTZ: "<i8",
}


def array_to_values(array: pa.Array, sql_type: SqlType) -> list[PhysicalValue]:
    """An engine-form array as physical values."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if sql_type.kind is Kind.DECIMAL:
        if pa.types.is_decimal(array.type):
            return _with_nulls(_long_decimal_values(array), array)
        return _with_nulls(values_of(array, "<i8").tolist(), array)
    dtype = _NUMPY.get(sql_type.kind)
    if dtype is not None and not pa.types.is_null(array.type):
        return _with_nulls(values_of(array, dtype).tolist(), array)
    if sql_type.is_nested and not pa.types.is_null(array.type):
        return _with_nulls(_nested_values(array, sql_type), array)
    result: list[PhysicalValue] = array.to_pylist()
    return result


def arrays_to_rows(
    arrays: Iterable[pa.Array], types: Iterable[SqlType]
) -> list[tuple[PhysicalValue, ...]]:
    """Columns in engine form as rows of physical values."""
    columns = [array_to_values(array, type_) for array, type_ in zip(arrays, types, strict=True)]
    return list(zip(*columns, strict=True))


def _nested_values(array: pa.Array, sql_type: SqlType) -> list[PhysicalValue]:
    if sql_type.element is None:
        columns = [
            array_to_values(array.field(place), t) for place, (_, t) in enumerate(sql_type.fields)
        ]
        return list(zip(*columns, strict=True))
    ends = array.offsets.to_pylist()
    first = ends[0]
    flat = array_to_values(array.values.slice(first, ends[-1] - first), sql_type.element)
    return [tuple(flat[start - first : stop - first]) for start, stop in pairwise(ends)]


def _long_decimal_values(array: pa.Array) -> list[PhysicalValue]:
    words = values_of(array, "<V16").view("<i8")
    low, high = words[0::2].view("<u8").tolist(), words[1::2].tolist()
    return [h << 64 | b for b, h in zip(low, high, strict=True)]


def _with_nulls(values: list[PhysicalValue], array: pa.Array) -> list[PhysicalValue]:
    if array.null_count:
        missing = pc.is_null(array).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(missing).tolist():
            values[row] = None
    return values
