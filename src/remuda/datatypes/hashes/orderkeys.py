"""Order keys: byte strings that compare as values do, for types that are not compared as stored.

Two values are equal if and only if their keys are, and the smaller value has the smaller key (byte
by byte, a prefix first). Comparisons, joins, groups, sorting, exchange and extremes of INTERVAL,
JSON, enums, ARRAY and ROW all rest on this.

- INTERVAL: its length in days of 24 hours, months of 30 days.
- ARRAY: element by element, NULL after all values; then the shorter one is smaller.
- ROW: field by field, NULL after all values.
- An enum: the place of the label among the labels of its type.
- JSON: as PostgreSQL's JSONB: an empty array, null, strings, numbers, booleans, arrays, objects;
  arrays and objects by their number of members first.

Inside a key, parts of any length are ended by two zero bytes, and a zero byte in them is followed
by 0xFF.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import validity_of, values_of
from remuda.datatypes.jsons import ordered_keys, parse_json
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.intervals import DAYS_PER_MONTH, MICROS_PER_DAY
from remuda.datatypes.values import PhysicalValue, array_to_values

_SIGN: Final = np.uint64(1 << 63)
_PRESENT, _MISSING = b"\x01", b"\x02"
_END: Final = b"\x00\x00"
_word = struct.Struct(">Q")
_place = struct.Struct(">I")
_UNKNOWN_LABEL: Final = b"\xff\xff\xff\xff"
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("micros", "<i8")])
_DTYPES: Final = {
    Kind.TINYINT: "<i1",
    Kind.SMALLINT: "<i2",
    Kind.INTEGER: "<i4",
    Kind.BIGINT: "<i8",
    Kind.DECIMAL: "<i8",
    Kind.REAL: "<f4",
    Kind.DOUBLE: "<f8",
    Kind.DATE: "<i4",
    Kind.TIME: "<i8",
    Kind.TIMESTAMP: "<i8",
    Kind.TIMESTAMPTZ: "<i8",
}

Bytes = npt.NDArray[np.uint8]


def order_keys(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """The keys of an engine-form array as a binary array; NULLs stay NULL."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.binary())
    if sql_type.kind is Kind.INTERVAL:
        return _fixed(_interval_matrix(array), array)
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        matrix = _matrix(array.values, sql_type.element)
        if matrix is not None:
            return _array_keys(array, matrix)
    key = value_key(sql_type)
    if sql_type.kind in (Kind.JSON, Kind.ENUM):  # values are dear to read, or come again and again
        unique = array.dictionary_encode()
        return pa.array(map(key, unique.dictionary.to_pylist()), pa.binary()).take(unique.indices)
    values = array_to_values(array, sql_type)
    return pa.array([None if v is None else key(v) for v in values], pa.binary())


def interval_parts(
    array: pa.Array,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Months, days and microseconds of an engine-form array; zeros where it is NULL."""
    records = _records(array)
    return (
        records["months"].astype(np.int64),
        records["days"].astype(np.int64),
        records["micros"].astype(np.int64),
    )


def _records(array: pa.Array) -> npt.NDArray[Any]:
    rows = len(array)
    if pa.types.is_null(array.type) or rows == 0:
        return np.zeros(rows, _INTERVAL)
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, rows + 1, 4 * array.offset)
    if array.null_count == 0 or offsets[-1] - offsets[0] == 16 * rows:
        return np.frombuffer(data, _INTERVAL, rows, int(offsets[0]))
    records = np.zeros(rows, _INTERVAL)
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    known = np.flatnonzero(valid)
    if len(known):
        whole = np.frombuffer(data, np.uint8)
        taken = whole[offsets[:-1][known][:, None] + np.arange(16)]
        records[known] = np.ascontiguousarray(taken).view(_INTERVAL)[:, 0]
    return records


# --- keys of one width, as a matrix with a row of bytes per value ----------------------------


def _interval_matrix(array: pa.Array) -> Bytes:
    months, days, micros = interval_parts(array)
    more, rest = np.divmod(micros, MICROS_PER_DAY)
    return np.hstack([_big_endian(months * DAYS_PER_MONTH + days + more), _big_endian(rest)])


def _big_endian(data: npt.NDArray[Any]) -> Bytes:
    words = data.astype(np.int64).view(np.uint64) ^ _SIGN
    return words.astype(">u8").view(np.uint8).reshape(-1, 8)


def float_order(data: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Integers in the order of floats: NaN above infinity, -0.0 equal to 0.0."""
    data = data.astype(np.float64) + 0.0
    data = np.where(np.isnan(data), np.nan, data)
    bits = data.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _matrix(array: pa.Array, sql_type: SqlType) -> Bytes | None:
    """None for types whose keys have no fixed width."""
    if sql_type.kind is Kind.INTERVAL:
        return _interval_matrix(array)
    if sql_type.kind is Kind.BOOLEAN:
        flags = array.fill_null(False) if array.null_count else array
        return _big_endian(flags.to_numpy(zero_copy_only=False))
    dtype = _DTYPES.get(sql_type.kind)
    if dtype is None or (sql_type.kind is Kind.DECIMAL and not sql_type.is_short_decimal):
        return None
    data = values_of(array, dtype)
    return _big_endian(float_order(data) if sql_type.is_float else data)


def _fixed(matrix: Bytes, like: pa.Array) -> pa.Array:
    rows, width = matrix.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    buffers = [validity_of(like), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(matrix))]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _array_keys(array: pa.Array, matrix: Bytes) -> pa.Array:
    """Every element is a mark and its bytes; a shorter array is a prefix and so comes first."""
    elements = array.values
    marks = np.full((len(elements), 1), 1, np.uint8)
    if elements.null_count:
        missing = pc.is_null(elements).to_numpy(zero_copy_only=False)
        marks[missing] = 2
        matrix = np.where(missing[:, None], np.uint8(0), matrix)
    data = np.ascontiguousarray(np.hstack([marks, matrix]))
    width = data.shape[1]
    offsets = np.asarray(array.offsets).astype(np.int64) * width
    buffers = [validity_of(array), pa.py_buffer(offsets), pa.py_buffer(data)]
    wide = pa.Array.from_buffers(pa.large_binary(), len(array), buffers)
    return wide.cast(pa.binary())


# --- keys of single values -------------------------------------------------------------------


def value_key(sql_type: SqlType) -> Callable[[Any], bytes]:
    """The function from a physical value (not NULL) to its key; for every type."""
    kind = sql_type.kind
    if sql_type.is_text:
        return str.encode
    if kind in (Kind.BYTEA, Kind.UUID):
        return bytes
    if kind is Kind.JSON:
        return json_key
    if kind is Kind.ENUM:
        return _label_key(sql_type)
    if kind is Kind.INTERVAL:
        return _interval_key
    if kind is Kind.ARRAY:
        assert sql_type.element is not None
        return _array_key(sql_type.element)
    if kind is Kind.ROW:
        parts = [delimited_key(t) for _, t in sql_type.fields]
        return lambda value: b"".join(p(v) for p, v in zip(parts, value, strict=True))
    if sql_type.is_float:
        return lambda value: _word.pack((int(float_order(np.array([value]))[0])) + (1 << 63))
    if kind is Kind.DECIMAL and not sql_type.is_short_decimal:
        return lambda value: (value + (1 << 135)).to_bytes(17, "big")
    return lambda value: _word.pack(int(value) + (1 << 63))


def delimited_key(sql_type: SqlType) -> Callable[[PhysicalValue], bytes]:
    """The key of a part: a mark, then the value's key, so that it ends where the next begins."""
    key = value_key(sql_type)
    variable = sql_type.is_text or sql_type.is_nested or sql_type.kind in (Kind.BYTEA, Kind.JSON)

    def encode(value: PhysicalValue) -> bytes:
        if value is None:
            return _MISSING
        raw = key(value)
        return _PRESENT + (_ended(raw) if variable else raw)

    return encode


def _array_key(element: SqlType) -> Callable[[Any], bytes]:
    part = delimited_key(element)
    matrix_width = 0 if element.kind not in _DTYPES and element.kind is not Kind.BOOLEAN else 8
    if element.kind is Kind.INTERVAL:
        matrix_width = 16
    if element.kind is Kind.DECIMAL and not element.is_short_decimal:
        matrix_width = 0
    missing = _MISSING + bytes(matrix_width)
    return lambda value: b"".join(missing if v is None else part(v) for v in value)


def _ended(raw: bytes) -> bytes:
    return raw.replace(b"\x00", b"\x00\xff") + _END


def _interval_key(value: bytes) -> bytes:
    months, days, micros = struct.unpack("<iiq", value)
    more, rest = divmod(micros, MICROS_PER_DAY)
    return _word.pack(months * DAYS_PER_MONTH + days + more + (1 << 63)) + _word.pack(
        rest + (1 << 63)
    )


def _label_key(sql_type: SqlType) -> Callable[[str], bytes]:
    """A label that the type had not yet when the statement was planned comes after all others."""
    assert sql_type.enum is not None
    keys = {label: _place.pack(place) for place, label in enumerate(sql_type.enum.labels)}
    return lambda label: keys.get(label) or _UNKNOWN_LABEL + label.encode()


# --- JSON ------------------------------------------------------------------------------------


def json_key(text: str) -> bytes:
    """The key of a JSON value given as its text."""
    value = parse_json(text)
    if isinstance(value, list) and not value:
        return b"\x00"  # PostgreSQL: an empty array is less than anything, at the top only
    parts: list[bytes] = []
    _write_json(value, parts)
    return b"".join(parts)


def _write_json(value: Any, parts: list[bytes]) -> None:
    if value is None:
        parts.append(b"\x01")
    elif isinstance(value, str):
        parts += (b"\x02", _ended(value.encode()))
    elif isinstance(value, bool):
        parts.append(b"\x04\x01" if value else b"\x04\x00")
    elif isinstance(value, list):
        parts += (b"\x05", struct.pack(">I", len(value)))
        for item in value:
            _write_json(item, parts)
    elif isinstance(value, dict):
        parts += (b"\x06", struct.pack(">I", len(value)))
        for key in ordered_keys(value):
            parts += (b"\x02", _ended(key.encode()))
            _write_json(value[key], parts)
    else:
        parts += (b"\x03", number_key(Decimal(value)))


def number_key(number: Decimal) -> bytes:
    """Any finite decimal: sign, exponent, digits; 1.0 and 1 have one key."""
    sign, digits, _ = number.as_tuple()
    if not number:
        return b"\x02"
    text = bytes(digits).lstrip(b"\x00").rstrip(b"\x00")
    body = struct.pack(">I", number.adjusted() + (1 << 31)) + bytes(d + 1 for d in text) + b"\x00"
    return b"\x01" + bytes(255 - b for b in body) if sign else b"\x03" + body
