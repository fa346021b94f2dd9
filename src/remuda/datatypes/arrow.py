"""SQL types as Arrow types: the engine's own form, and the external form of clients, Spark and
files.

The two forms differ in few places: inside the engine a DECIMAL of up to 18 digits is an int64
holding the unscaled value, outside it is decimal128(p, s); UUID, JSON and INTERVAL are plain binary
and text inside, Arrow's own types for them outside (``datatypes.arrow_forms``). Arrays are lists
and rows are structs in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes import arrow_forms, sql
from remuda.datatypes.buffers import validity_of, values_of
from remuda.datatypes.enums import check_labels
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.time_digits import fit_array
from remuda.errors import (
    DataError,
    InvalidDatetime,
    NumericOverflow,
    StringTooLong,
    TypeMismatch,
    UndefinedType,
)

__all__ = [
    "describe",
    "engine_schema",
    "engine_type",
    "external_schema",
    "external_type",
    "from_arrow_type",
    "to_engine",
    "to_external",
    "validity_of",
    "values_of",
]

_PLAIN: Final = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.CHAR: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.ENUM: pa.string(),
    Kind.BYTEA: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.INTERVAL: pa.month_day_nano_interval(),
    Kind.UUID: pa.uuid(),
    Kind.JSON: pa.json_(),
}
_STORED: Final = {
    Kind.INTERVAL: pa.binary(),
    Kind.UUID: pa.binary(),
    Kind.JSON: pa.string(),
}
_IN_ENGINE: Final = _PLAIN | _STORED
"""Of all kinds but those whose types depend on more: DECIMAL, ARRAY, ROW."""


def engine_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that carries ``sql_type`` inside the engine."""
    simple = _IN_ENGINE.get(sql_type.kind)
    if simple is not None:
        return simple
    if sql_type.is_nested:
        return _nested_type(sql_type, engine_type)
    return pa.int64() if sql_type.is_short_decimal else external_type(sql_type)


def external_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that carries ``sql_type`` outside: clients, Spark, files."""
    simple = _PLAIN.get(sql_type.kind)
    if simple is not None:
        return simple
    if sql_type.is_nested:
        return _nested_type(sql_type, external_type)
    return pa.decimal128(sql_type.precision, sql_type.scale)


def _nested_type(sql_type: SqlType, form: Callable[[SqlType], pa.DataType]) -> pa.DataType:
    if sql_type.element is not None:
        return pa.list_(form(sql_type.element))
    return pa.struct([pa.field(name, form(t)) for name, t in sql_type.fields])


def engine_schema(schema: MapSchema) -> pa.Schema:
    return pa.schema(
        [pa.field(c.name, engine_type(c.type), nullable=c.nullable) for c in schema.columns]
    )


def external_schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema(
        [pa.field(c.name, external_type(c.type), nullable=c.nullable) for c in columns]
    )


# --- Arrow type -> SQL type -------------------------------------------------------------------

_SIMPLE_TYPES: Final[dict[pa.DataType, SqlType]] = {
    pa.null(): sql.NULL,
    pa.bool_(): sql.BOOLEAN,
    pa.int8(): sql.TINYINT,
    pa.int16(): sql.SMALLINT,
    pa.int32(): sql.INTEGER,
    pa.int64(): sql.BIGINT,
    pa.uint8(): sql.SMALLINT,
    pa.uint16(): sql.INTEGER,
    pa.uint32(): sql.BIGINT,
    pa.uint64(): sql.decimal(20, 0),
    pa.float16(): sql.REAL,
    pa.float32(): sql.REAL,
    pa.float64(): sql.DOUBLE,
    pa.string(): sql.VARCHAR,
    pa.large_string(): sql.VARCHAR,
    pa.string_view(): sql.VARCHAR,
    pa.binary(): sql.BYTEA,
    pa.large_binary(): sql.BYTEA,
    pa.binary_view(): sql.BYTEA,
    pa.date32(): sql.DATE,
    pa.date64(): sql.DATE,
    pa.month_day_nano_interval(): sql.INTERVAL,
    pa.uuid(): sql.UUID,
    pa.json_(): sql.JSON,
}


def from_arrow_type(arrow_type: pa.DataType) -> SqlType:
    """The SQL type for an external Arrow type; raises ``UndefinedType`` for unknown ones, structs,
    maps and lists of lists.
    """
    simple = _SIMPLE_TYPES.get(arrow_type)
    if simple is not None:
        return simple
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return from_arrow_type(arrow_type.value_type)
    if pa.types.is_decimal(arrow_type):
        return _from_decimal_type(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return sql.TIMESTAMP if arrow_type.tz is None else sql.TIMESTAMPTZ
    if pa.types.is_time(arrow_type):
        return sql.TIME
    if pa.types.is_fixed_size_binary(arrow_type):
        return sql.BYTEA
    if pa.types.is_duration(arrow_type):
        return sql.INTERVAL
    if is_list(arrow_type) and not is_list(arrow_type.value_type):
        return sql.array(from_arrow_type(arrow_type.value_type))
    if isinstance(arrow_type, pa.BaseExtensionType):
        return from_arrow_type(arrow_type.storage_type)
    raise UndefinedType(f"the Arrow type {arrow_type} has no SQL type")


def is_list(arrow_type: pa.DataType) -> bool:
    """Any of Arrow's forms of lists."""
    return bool(
        pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
        or pa.types.is_list_view(arrow_type)
        or pa.types.is_large_list_view(arrow_type)
    )


def _from_decimal_type(arrow_type: pa.DataType) -> SqlType:
    precision, scale = arrow_type.precision, arrow_type.scale
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > sql.DECIMAL_PRECISION_MAX:
        if scale > sql.DECIMAL_PRECISION_MAX:
            raise UndefinedType(f"the Arrow type {arrow_type} has no SQL type")
        precision = sql.DECIMAL_PRECISION_MAX
    return sql.decimal(precision, scale)


# --- engine -> external -----------------------------------------------------------------------


def to_external(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """An engine-form array in the external form; zero-copy except for short decimals, UUID and
    INTERVAL. Raises IntervalOverflow for what does not fit Arrow's nanoseconds."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if sql_type.kind in _STORED or sql_type.is_nested:
        return arrow_forms.to_external(array, sql_type, external_type(sql_type), to_external)
    if not sql_type.is_short_decimal or pa.types.is_decimal(array.type):
        return array
    values = values_of(array, "<i8")
    words = np.empty((len(array), 2), dtype="<i8")
    words[:, 0] = values
    np.right_shift(values, 63, out=words[:, 1])
    return _from_words(words, external_type(sql_type), array)


def _from_words(data: npt.NDArray[Any], arrow_type: pa.DataType, like: pa.Array) -> pa.Array:
    """An array of ``arrow_type`` over ``data`` with the NULLs of ``like``."""
    buffers = [validity_of(like), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow_type, len(like), buffers)


# --- anything -> engine -----------------------------------------------------------------------


def to_engine(array: pa.Array | pa.ChunkedArray, sql_type: SqlType) -> pa.Array:
    """``array``, in any fitting Arrow type, in the engine form of ``sql_type``.

    Integers count as values, also for DECIMAL. Times are rounded to the digits of a second that
    ``sql_type`` keeps.

    Raises ``TypeMismatch`` when the type does not fit, ``NumericOverflow``, ``StringTooLong``,
    ``InvalidDatetime`` or ``DataError`` when a value does not.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = _decoded(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), engine_type(sql_type))
    convert = _CONVERTERS.get(sql_type.kind)
    if convert is None:
        raise _mismatch(array.type, sql_type)
    return fit_array(convert(array, sql_type), sql_type)


def _decoded(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return array


def _mismatch(found: pa.DataType, expected: SqlType) -> TypeMismatch:
    return TypeMismatch(f"expected {expected}, found {describe(found)}")


def describe(arrow_type: pa.DataType) -> str:
    """The SQL name of an Arrow type, or its own name where it has none."""
    try:
        return str(from_arrow_type(arrow_type))
    except UndefinedType:
        return str(arrow_type)


def _cast(array: pa.Array, sql_type: SqlType, error: type[DataError]) -> pa.Array:
    target = engine_type(sql_type)
    if array.type == target:
        return array
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise error(f"a value does not fit {sql_type}: {problem}") from problem


def _to_boolean(array: pa.Array, sql_type: SqlType) -> pa.Array:
    if not pa.types.is_boolean(array.type):
        raise _mismatch(array.type, sql_type)
    return array


def _to_integer(array: pa.Array, sql_type: SqlType) -> pa.Array:
    found = array.type
    if not (
        pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
    ):
        raise _mismatch(found, sql_type)
    return _cast(array, sql_type, NumericOverflow)


def _to_float(array: pa.Array, sql_type: SqlType) -> pa.Array:
    found = array.type
    if pa.types.is_integer(found):
        return _cast(array, sql_type, NumericOverflow)
    if not (pa.types.is_floating(found) or pa.types.is_decimal(found)):
        raise _mismatch(found, sql_type)
    result = _cast(array, sql_type, NumericOverflow)
    if sql_type.kind is Kind.REAL and pa.types.is_float64(found):
        grown = pc.and_(pc.is_inf(result), pc.invert(pc.is_inf(array)))
        if pc.any(grown).as_py():
            raise NumericOverflow(f"a value does not fit {sql_type}: it is out of range")
    return result


def _to_decimal(array: pa.Array, sql_type: SqlType) -> pa.Array:
    found = array.type
    precision, scale = sql_type.precision, sql_type.scale
    assert precision is not None
    assert scale is not None
    if pa.types.is_integer(found):
        array = _integers_as_decimal(array, sql_type)
    elif not pa.types.is_decimal(found):
        raise _mismatch(found, sql_type)
    target = external_type(sql_type)
    if array.type != target and not (
        pa.types.is_decimal128(array.type)
        and array.type.scale == scale
        and sql_type.is_short_decimal
    ):
        try:
            array = array.cast(target)
        except pa.ArrowInvalid as problem:
            raise NumericOverflow(f"a value does not fit {sql_type}: {problem}") from problem
    return _narrowed(array, sql_type) if sql_type.is_short_decimal else array


def _integers_as_decimal(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """Integers as decimal128(38, 0); uint64 included."""
    try:
        return array.cast(pa.decimal128(38, 0))
    except pa.ArrowInvalid as problem:
        raise NumericOverflow(f"a value does not fit {sql_type}: {problem}") from problem


def _narrowed(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """decimal128 of the right scale as checked int64."""
    words = values_of(array, "<V16").view("<i8").reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    limit = 10 ** (sql_type.precision or 0)
    bad = (high != (low >> 63)) | (low >= limit) | (low <= -limit)
    if bad.any():
        if array.null_count:
            bad &= pc.is_valid(array).to_numpy(zero_copy_only=False)
        if bad.any():
            value = array[int(np.argmax(bad))].as_py()
            raise NumericOverflow(f"a value does not fit {sql_type}: {value}")
    return _from_words(np.ascontiguousarray(low), pa.int64(), array)


def _to_text(array: pa.Array, sql_type: SqlType) -> pa.Array:
    found = array.type
    if not (
        pa.types.is_string(found)
        or pa.types.is_large_string(found)
        or pa.types.is_string_view(found)
    ):
        raise _mismatch(found, sql_type)
    result = _cast(array, sql_type, DataError)
    if sql_type.enum is not None:
        check_labels(result, sql_type)
    if sql_type.kind is Kind.CHAR:
        result = pc.utf8_rtrim(result, characters=" ")
    if sql_type.length is not None and len(result):
        longest = pc.max(pc.utf8_length(result)).as_py()
        if longest is not None and longest > sql_type.length:
            raise StringTooLong(f"a value of {longest} characters does not fit {sql_type}")
    return result


def _to_binary(array: pa.Array, sql_type: SqlType) -> pa.Array:
    found = array.type
    if not (
        pa.types.is_binary(found)
        or pa.types.is_large_binary(found)
        or pa.types.is_binary_view(found)
        or pa.types.is_fixed_size_binary(found)
    ):
        raise _mismatch(found, sql_type)
    return _cast(array, sql_type, DataError)


def _to_date(array: pa.Array, sql_type: SqlType) -> pa.Array:
    found = array.type
    if pa.types.is_date(found):
        return _cast(array, sql_type, InvalidDatetime)
    if not (pa.types.is_timestamp(found) and found.tz is None):
        raise _mismatch(found, sql_type)
    result = array.cast(pa.date32(), safe=False)
    if not pc.all(pc.equal(result.cast(found), array), min_count=0).as_py():
        raise InvalidDatetime("a timestamp with a time of day does not fit DATE")
    return result


def _to_time(array: pa.Array, sql_type: SqlType) -> pa.Array:
    if not pa.types.is_time(array.type):
        raise _mismatch(array.type, sql_type)
    return _cast(array, sql_type, InvalidDatetime)


def _to_timestamp(array: pa.Array, sql_type: SqlType) -> pa.Array:
    found = array.type
    fits = pa.types.is_timestamp(found) and (
        (found.tz is None) == (sql_type.kind is Kind.TIMESTAMP)
    )
    if not fits and not (pa.types.is_date(found) and sql_type.kind is Kind.TIMESTAMP):
        raise _mismatch(found, sql_type)
    return _cast(array, sql_type, InvalidDatetime)


def _to_other(array: pa.Array, sql_type: SqlType) -> pa.Array:
    converted = arrow_forms.to_engine(array, sql_type, engine_type(sql_type), to_engine)
    if converted is None:
        raise _mismatch(array.type, sql_type)
    return converted


def _to_null(array: pa.Array, sql_type: SqlType) -> pa.Array:
    if array.null_count != len(array):
        raise _mismatch(array.type, sql_type)
    return pa.nulls(len(array))


_CONVERTERS: Final[dict[Kind, Callable[[pa.Array, SqlType], pa.Array]]] = {
    Kind.NULL: _to_null,
    Kind.BOOLEAN: _to_boolean,
    Kind.TINYINT: _to_integer,
    Kind.SMALLINT: _to_integer,
    Kind.INTEGER: _to_integer,
    Kind.BIGINT: _to_integer,
    Kind.REAL: _to_float,
    Kind.DOUBLE: _to_float,
    Kind.DECIMAL: _to_decimal,
    Kind.CHAR: _to_text,
    Kind.VARCHAR: _to_text,
    Kind.ENUM: _to_text,
    Kind.BYTEA: _to_binary,
    Kind.DATE: _to_date,
    Kind.TIME: _to_time,
    Kind.TIMESTAMP: _to_timestamp,
    Kind.TIMESTAMPTZ: _to_timestamp,
    Kind.INTERVAL: _to_other,
    Kind.UUID: _to_other,
    Kind.JSON: _to_other,
    Kind.ARRAY: _to_other,
    Kind.ROW: _to_other,
}
