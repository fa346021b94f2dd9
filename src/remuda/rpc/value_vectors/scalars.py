"""Vectors of scalar values. Arrays come in the external Arrow form (``datatypes.arrow``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.buffers import values_of
from remuda.datatypes.sql import Kind, SqlType
from remuda.rpc.messages.vectors_pb2 import REQUIRED, NamePart, SerializedField
from remuda.rpc.value_vectors.decimals import shortest_bytes
from remuda.rpc.value_vectors.intervals import interval_values
from remuda.rpc.value_vectors.vector import Vector, as_bytes, leaf, major_type, offsets

DAY_MILLIS: Final = 24 * 60 * 60 * 1000
MICROS_PER_MILLI: Final = 1000
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_WIDTH: Final = 36
_UUID_DIGITS: Final = np.array([i for i in range(_UUID_WIDTH) if i not in (8, 13, 18, 23)])

Values: TypeAlias = npt.NDArray[Any]
Bytes: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""n + 1 offsets from 0, and the bytes that they cut."""

_PLAIN: Final = {
    Kind.TINYINT: "<i1",
    Kind.SMALLINT: "<i2",
    Kind.INTEGER: "<i4",
    Kind.BIGINT: "<i8",
    Kind.REAL: "<f4",
    Kind.DOUBLE: "<f8",
}


def required(name: str, sql_type: SqlType, array: pa.Array) -> Vector:
    """The values alone; where ``array`` is NULL, anything of the right size."""
    major = major_type(sql_type, REQUIRED)
    cut = _VARYING.get(sql_type.kind)
    if cut is None:
        return leaf(name, major, len(array), _fixed(sql_type, array))
    if not len(array):
        return Vector(_described(name, sql_type, 0, offsets(np.zeros(1, "<u4")), 0))
    ends, data = cut(array)
    index = offsets(ends)
    described = _described(name, sql_type, len(array), index, data.nbytes)
    return Vector(described, [*index.buffers, as_bytes(data)])


def _described(
    name: str, sql_type: SqlType, values: int, index: Vector, size: int
) -> SerializedField:
    return SerializedField(
        major_type=major_type(sql_type, REQUIRED),
        name_part=NamePart(name=name),
        child=[index.description],
        value_count=values,
        var_byte_length=size,
        buffer_length=index.description.buffer_length + size,
    )


# --- of a fixed width -------------------------------------------------------------------------


def _fixed(sql_type: SqlType, array: pa.Array) -> Values:
    plain = _PLAIN.get(sql_type.kind)
    if plain is not None:
        return _known(values_of(array, plain), array)
    return _FIXED[sql_type.kind](array)


def _known(values: Values, array: pa.Array) -> Values:
    """``values``, 0 where ``array`` is NULL: the bytes below NULLs stay private."""
    if not array.null_count:
        return values
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return np.where(valid, values, values.dtype.type(0))


def _packed_bits(array: pa.Array) -> Values:
    flags = array.fill_null(False).to_numpy(zero_copy_only=False)
    return np.packbits(flags, bitorder="little")


def _date(array: pa.Array) -> Values:
    return _known(values_of(array, "<i4").astype("<i8") * DAY_MILLIS, array)


def _time(array: pa.Array) -> Values:
    """Microseconds to milliseconds, rounded down: Drill's times are no finer."""
    return _known(values_of(array, "<i8") // MICROS_PER_MILLI, array).astype("<i4")


def _timestamp(array: pa.Array) -> Values:
    return _known(values_of(array, "<i8") // MICROS_PER_MILLI, array)


_FIXED: Final[dict[Kind, Callable[[pa.Array], Values]]] = {
    Kind.BOOLEAN: _packed_bits,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamp,
    Kind.INTERVAL: interval_values,
}

# --- of varying width -------------------------------------------------------------------------


def _text(array: pa.Array) -> Bytes:
    """Arrow's layout is Drill's, but a slice must be cut out and begin at 0."""
    _, index, data = array.buffers()
    ends = np.frombuffer(index, "<i4", count=array.offset + len(array) + 1)[array.offset :]
    first, last = int(ends[0]), int(ends[-1])
    if data is None:
        return ends - first, np.zeros(0, np.uint8)
    return ends - first, np.frombuffer(data, np.uint8)[first:last]


def _stored_text(array: pa.Array) -> Bytes:
    return _text(array.storage)


def _nothing(array: pa.Array) -> Bytes:
    return np.zeros(len(array) + 1, "<u4"), np.zeros(0, np.uint8)


def _uuid(array: pa.Array) -> Bytes:
    """The usual text: hexadecimal digits in five groups."""
    stored = array.storage
    count = len(stored)
    buffer = stored.buffers()[1]
    raw = np.frombuffer(buffer, np.uint8)[stored.offset * 16 : (stored.offset + count) * 16]
    digits = np.empty((count, 32), np.uint8)
    digits[:, 0::2] = _HEX[raw.reshape(count, 16) >> 4]
    digits[:, 1::2] = _HEX[raw.reshape(count, 16) & 15]
    text = np.full((count, _UUID_WIDTH), ord("-"), np.uint8)
    text[:, _UUID_DIGITS] = digits
    return np.arange(count + 1) * _UUID_WIDTH, text.reshape(-1)


_VARYING: Final[dict[Kind, Callable[[pa.Array], Bytes]]] = {
    Kind.NULL: _nothing,
    Kind.CHAR: _text,
    Kind.VARCHAR: _text,
    Kind.ENUM: _text,
    Kind.BYTEA: _text,
    Kind.JSON: _stored_text,
    Kind.UUID: _uuid,
    Kind.DECIMAL: shortest_bytes,
}
