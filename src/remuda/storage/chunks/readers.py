"""Reading single values out of Arrow arrays without Arrow scalars (native values, a tenth of the
cost).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa

from remuda.datatypes.arrow import validity_of
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue, array_to_values

Reader: TypeAlias = Callable[[int], PhysicalValue]

_FORMATS: Final = {
    Kind.TINYINT: ("b", 1),
    Kind.SMALLINT: ("h", 2),
    Kind.INTEGER: ("i", 4),
    Kind.BIGINT: ("q", 8),
    Kind.REAL: ("f", 4),
    Kind.DOUBLE: ("d", 8),
    Kind.DATE: ("i", 4),
    Kind.TIME: ("q", 8),
    Kind.TIMESTAMP: ("q", 8),
    Kind.TIMESTAMPTZ: ("q", 8),
}


def reader(array: pa.Array, sql_type: SqlType) -> Reader:
    """A function from row number to physical value of an engine-form array."""
    values = _values(array, sql_type)
    validity = validity_of(array)
    if validity is None:
        return values
    bits = memoryview(validity).cast("B")

    def read(row: int) -> PhysicalValue:
        return values(row) if bits[row >> 3] >> (row & 7) & 1 else None

    return read


def _values(array: pa.Array, sql_type: SqlType) -> Reader:
    if sql_type.holds_text or sql_type.holds_bytes:
        return _variable_width(array, is_text=sql_type.holds_text)
    if sql_type.is_nested:
        return lambda row: array_to_values(array.slice(row, 1), sql_type)[0]
    if sql_type.kind is Kind.BOOLEAN:
        return _booleans(array)
    if sql_type.kind is Kind.DECIMAL and not sql_type.is_short_decimal:
        return _long_decimals(array)
    if sql_type.kind is Kind.NULL:
        return lambda _: None
    code, size = ("q", 8) if sql_type.kind is Kind.DECIMAL else _FORMATS[sql_type.kind]
    view: memoryview[Any] = _bytes(array, size).cast(code)  # type: ignore[call-overload]
    return view.__getitem__


def _bytes(array: pa.Array, size: int) -> memoryview:
    """The value buffer of a fixed-width array from its first row on."""
    buffer = array.buffers()[1]
    if buffer is None:
        return memoryview(bytes(size * len(array)))
    start = array.offset * size
    return memoryview(buffer).cast("B")[start : start + len(array) * size]


def _booleans(array: pa.Array) -> Reader:
    buffer = array.buffers()[1]
    bits = memoryview(buffer).cast("B") if buffer is not None else memoryview(b"")
    first = array.offset

    def read(row: int) -> PhysicalValue:
        row += first
        return bool(bits[row >> 3] >> (row & 7) & 1)

    return read


def _long_decimals(array: pa.Array) -> Reader:
    data = _bytes(array, 16)

    def read(row: int) -> PhysicalValue:
        return int.from_bytes(data[row * 16 : row * 16 + 16], "little", signed=True)

    return read


def _variable_width(array: pa.Array, *, is_text: bool) -> Reader:
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or len(array) == 0:
        return lambda _: "" if is_text else b""
    first, count = array.offset, len(array)
    offsets = memoryview(offset_buffer).cast("B")[first * 4 : (first + count + 1) * 4].cast("i")
    data = memoryview(data_buffer).cast("B") if data_buffer is not None else memoryview(b"")

    def read_text(row: int) -> PhysicalValue:
        return data[offsets[row] : offsets[row + 1]].tobytes().decode()

    def read_bytes(row: int) -> PhysicalValue:
        return data[offsets[row] : offsets[row + 1]].tobytes()

    return read_text if is_text else read_bytes
