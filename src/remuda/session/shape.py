"""The form of a result: computed once per plan, used for every page."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from remuda.datatypes.arrow import external_schema, external_type, to_engine, to_external
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.rpc import codec

END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The end marker of an Arrow IPC stream."""

_FORMATS: Final = {
    Kind.TINYINT: "<b",
    Kind.SMALLINT: "<h",
    Kind.INTEGER: "<i",
    Kind.BIGINT: "<q",
    Kind.REAL: "<f",
    Kind.DOUBLE: "<d",
    Kind.DATE: "<i",
    Kind.TIME: "<q",
    Kind.TIMESTAMP: "<q",
    Kind.TIMESTAMPTZ: "<q",
}

Cell = Callable[[Any], pa.Array]


class ResultShape:
    """``columns`` of a result, with what pages of them need on the wire. ``binary``: clients that
    do not say otherwise get the values in binary form."""

    def __init__(self, columns: Sequence[Column], *, binary: bool = False) -> None:
        self.columns = tuple(columns)
        self.binary = binary
        self.schema = external_schema(columns)
        self.types = [column.type for column in columns]
        self.messages = [codec.encode_column(column) for column in columns]
        self._head = memoryview(self.schema.serialize())
        self._cells = [_cell(sql_type) for sql_type in self.types]

    def external(self, arrays: Sequence[pa.Array]) -> pa.RecordBatch:
        """Columns in engine form -> rows in external form."""
        converted = [to_external(a, t) for a, t in zip(arrays, self.types, strict=True)]
        return pa.RecordBatch.from_arrays(converted, schema=self.schema)

    def engine(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Rows in external form -> columns in engine form."""
        pairs = zip(batch.columns, self.types, strict=True)
        return [to_engine(array, sql_type) for array, sql_type in pairs]

    def rows(self, rows: Sequence[Sequence[PhysicalValue]]) -> pa.RecordBatch:
        """Rows of physical values -> rows in external form."""
        if len(rows) == 1:
            arrays = [cell(value) for cell, value in zip(self._cells, rows[0], strict=True)]
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        values = zip(*rows, strict=True) if rows else [()] * len(self.types)
        return self.external(
            [values_to_array(list(v), t) for v, t in zip(values, self.types, strict=True)]
        )

    def stream(self, batch: pa.RecordBatch) -> list[memoryview | bytes]:
        """An Arrow IPC stream of one batch, in pieces."""
        return [self._head, memoryview(batch.serialize()), END_OF_STREAM]


def _cell(sql_type: SqlType) -> Cell:
    """One value as an external array of length 1: the general way costs several times as much, and
    this is what a read by key consists of."""
    arrow = external_type(sql_type)
    build, wrap = pa.Array.from_buffers, pa.py_buffer

    def general(value: PhysicalValue) -> pa.Array:
        return to_external(values_to_array([value], sql_type), sql_type)

    def text(value: Any) -> pa.Array:
        if value is None:
            return general(value)
        data = value.encode() if isinstance(value, str) else value
        return build(arrow, 1, [None, wrap(struct.pack("<ii", 0, len(data))), wrap(data)])

    def short_decimal(value: Any) -> pa.Array:
        if value is None:
            return general(value)
        return build(arrow, 1, [None, wrap(value.to_bytes(16, "little", signed=True))])

    if sql_type.is_text or sql_type.kind in (Kind.BYTEA, Kind.JSON):
        return text
    if sql_type.kind is Kind.DECIMAL:
        return short_decimal
    layout = _FORMATS.get(sql_type.kind)
    if layout is None:
        return general
    pack = struct.Struct(layout).pack

    def fixed(value: Any) -> pa.Array:
        return general(value) if value is None else build(arrow, 1, [None, wrap(pack(value))])

    return fixed
