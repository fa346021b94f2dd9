"""Does a row, or a batch of rows, fit a schema? Checked once more where rows are stored."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.coercion import integer_range
from remuda.datatypes.enums import check_labels, label_of
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.time_digits import fit_array, fit_of
from remuda.datatypes.values import PhysicalValue, arrays_to_rows
from remuda.datatypes.violations import null_value
from remuda.errors import (
    DataError,
    NotNullViolation,
    NumericOverflow,
    ObjectMismatch,
    RowTooLarge,
    StringTooLong,
    TypeMismatch,
)
from remuda.limits import ROW_SIZE_MAX

_INT64 = (-(2**63), 2**63 - 1)
_INT32 = (-(2**31), 2**31 - 1)
_MICROS_PER_DAY = 86_400_000_000
_BYTES_PER_CHARACTER = 4
"""At most, in UTF-8."""
_single = struct.Struct("<f")

Check = Callable[[PhysicalValue], bool]


def _bounds(sql_type: SqlType) -> tuple[int, int] | None:
    """Least and greatest physical value of types that are integers in the engine."""
    match sql_type.kind:
        case Kind.TINYINT | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return integer_range(sql_type.kind)
        case Kind.DECIMAL:
            limit = 10 ** (sql_type.precision or 0) - 1
            return -limit, limit
        case Kind.DATE:
            return _INT32
        case Kind.TIME:
            return 0, _MICROS_PER_DAY - 1
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _INT64
        case _:
            return None


def _wanted(sql_type: SqlType) -> type:
    match sql_type.kind:
        case Kind.BOOLEAN:
            return bool
        case Kind.REAL | Kind.DOUBLE:
            return float
        case Kind.CHAR | Kind.VARCHAR | Kind.JSON | Kind.ENUM:
            return str
        case Kind.BYTEA | Kind.UUID | Kind.INTERVAL:
            return bytes
        case Kind.ARRAY | Kind.ROW:
            return tuple
        case _:
            return int


class RowCheck:
    """The checks of one schema, prepared for many rows of physical values."""

    def __init__(self, schema: MapSchema) -> None:
        self._schema = schema
        self._width = len(schema.columns)
        self._checks = [
            (_wanted(c.type), _bounds(c.type), c.type.length, c.nullable) for c in schema.columns
        ]
        self._reals = [
            position
            for position, column in enumerate(schema.columns)
            if column.type.kind is Kind.REAL
        ]
        self._others = [
            (position, column.type)
            for position, column in enumerate(schema.columns)
            if column.type.kind in (Kind.UUID, Kind.INTERVAL) or column.type.is_nested
        ]
        self._enums = [
            (position, column.type)
            for position, column in enumerate(schema.columns)
            if column.type.kind is Kind.ENUM
        ]
        self._fits = [
            (position, fit)
            for position, column in enumerate(schema.columns)
            if (fit := fit_of(column.type)) is not None
        ]
        self._narrow = bool(self._reals or self._enums or self._fits)
        """Whether there is a type that has fewer values than its Python type."""
        self._key_types = [self._checks[position][0] for position in schema.key_positions]

    def key(self, values: Sequence[PhysicalValue]) -> None:
        """Raises ObjectMismatch for a key of other columns or types."""
        schema = self._schema
        if len(values) != len(self._key_types):
            raise ObjectMismatch(
                f'map "{schema.name}": a key has {len(self._key_types)} columns '
                f"({', '.join(schema.key)}), not {len(values)}"
            )
        for value, wanted, name in zip(values, self._key_types, schema.key, strict=True):
            if type(value) is not wanted or not _conforms(value, schema.column(name).type):
                raise self._mismatch(schema.column(name), value)

    def row(self, values: Sequence[PhysicalValue]) -> None:
        """Raises ObjectMismatch, NotNullViolation, NumericOverflow, StringTooLong, InvalidText,
        RowTooLarge."""
        if len(values) != self._width:
            raise ObjectMismatch(
                f'map "{self._schema.name}": a row has {self._width} columns, not {len(values)}'
            )
        size = 0
        for position, (wanted, bounds, length, nullable) in enumerate(self._checks):
            value = values[position]
            if value is None:
                if not nullable:
                    raise null_value(self._schema, self._schema.columns[position], values)
                continue
            if type(value) is not wanted:
                raise self._mismatch(self._schema.columns[position], value)
            if bounds is not None:
                assert isinstance(value, int)
                if not bounds[0] <= value <= bounds[1]:
                    raise overflow(self._schema, self._schema.columns[position])
            elif wanted is str or wanted is bytes:
                assert isinstance(value, str | bytes)
                size += len(value)
                if length is not None and len(value) > length:
                    raise too_long(self._schema, self._schema.columns[position])
        if self._narrow:
            self._in_type(values)
        for position, sql_type in self._others:
            value = values[position]
            if value is not None and not _conforms(value, sql_type):
                raise self._mismatch(self._schema.columns[position], value)
            size += _nested_size(value) if isinstance(value, tuple) else 0
        if size * _BYTES_PER_CHARACTER > ROW_SIZE_MAX and _text_size(values) > ROW_SIZE_MAX:
            raise too_large(self._schema)

    def _in_type(self, values: Sequence[PhysicalValue]) -> None:
        """The columns whose types have fewer values than their Python types. Raises what ``row``
        does."""
        for position in self._reals:
            self._real(position, values[position])
        for position, sql_type in self._enums:
            label = values[position]
            if label is not None:
                label_of(str(label), sql_type)
        for position, fit in self._fits:
            value = values[position]
            if value is not None and fit(value) != value:
                raise too_fine(self._schema, self._schema.columns[position])

    def _real(self, position: int, value: PhysicalValue) -> None:
        """A REAL travels as 8 bytes; a value that does not fit into 4 would be another one
        later."""
        if not isinstance(value, float) or value != value:  # noqa: PLR0124 (NaN)
            return
        try:
            fits = _single.unpack(_single.pack(value))[0] == value
        except OverflowError:
            fits = False
        if not fits:
            raise overflow(self._schema, self._schema.columns[position])

    def _mismatch(self, column: Column, value: PhysicalValue) -> ObjectMismatch:
        return ObjectMismatch(
            f'map "{self._schema.name}", column "{column.name}": expected {column.type}, '
            f"found {type(value).__name__}"
        )


def _conforms(value: PhysicalValue, sql_type: SqlType) -> bool:
    """Whether a value (not NULL) is one of this type, with all of its parts."""
    if type(value) is not _wanted(sql_type):
        return False
    if isinstance(value, tuple):
        if sql_type.element is not None:
            element = sql_type.element
            return all(item is None or _conforms(item, element) for item in value)
        pairs = zip(value, sql_type.fields, strict=False)
        return len(value) == len(sql_type.fields) and all(
            item is None or _conforms(item, t) for item, (_, t) in pairs
        )
    if isinstance(value, bytes):
        return sql_type.kind is Kind.BYTEA or len(value) == 16
    bounds = _bounds(sql_type)
    if bounds is not None:
        return isinstance(value, int) and bounds[0] <= value <= bounds[1]
    if sql_type.enum is not None:
        return value in sql_type.enum.labels
    if sql_type.length is not None:
        return isinstance(value, str) and len(value) <= sql_type.length
    return True


def check_batch(batch: pa.RecordBatch, schema: MapSchema) -> None:
    """The same for a batch in engine form. Raises TypeMismatch for other columns as well."""
    wanted = engine_schema(schema)
    if batch.schema.names != wanted.names or batch.schema.types != wanted.types:
        raise TypeMismatch(
            f'map "{schema.name}": the columns of the batch are not those of the map',
            detail=f"expected {_spelled(wanted)}; found {_spelled(batch.schema)}",
        )
    for column, array in zip(schema.columns, batch.columns, strict=True):
        if not column.nullable and array.null_count:
            raise null_in(schema, column, batch)
        if column.type.kind in (Kind.UUID, Kind.INTERVAL):
            _check_width(schema, column, array)
        if column.type.kind in {Kind.DECIMAL, Kind.TIME} and column.type.precision != 38:
            _check_range(schema, column, array)
        if column.type.enum is not None:
            check_labels(array, column.type)
        if column.type.element is not None and column.type.element.enum is not None:
            check_labels(array.values, column.type.element)
        if column.type.length is not None:
            longest = pc.max(pc.utf8_length(array)).as_py()
            if longest is not None and longest > column.type.length:
                raise too_long(schema, column)
        if column.type.is_restricted and not fit_array(array, column.type).equals(array):
            raise too_fine(schema, column)
    check_row_sizes(schema, batch)


def _check_width(schema: MapSchema, column: Column, array: pa.Array) -> None:
    """UUIDs and intervals have 16 bytes each."""
    if pc.all(pc.equal(pc.binary_length(array), 16), min_count=0).as_py() is False:
        raise TypeMismatch(
            f'map "{schema.name}": a value of column "{column.name}" is no {column.type}'
        )


def of_keys(keys: Sequence[pa.Array], schema: MapSchema) -> pa.RecordBatch:
    """Rows of which only the key columns are known (in key column order, engine form); all other
    columns are NULL, also where the schema allows none. Raises TypeMismatch."""
    arrow = engine_schema(schema)
    by_position = dict(zip(schema.key_positions, keys, strict=True))
    rows = len(keys[0])
    columns = [
        by_position.get(position, pa.nulls(rows, column.type))
        for position, column in enumerate(arrow)
    ]
    if any(a.type != f.type for a, f in zip(columns, arrow, strict=True)):
        raise TypeMismatch(f'map "{schema.name}": the keys are not those of the map')
    return pa.RecordBatch.from_arrays(columns, schema=arrow)


def check_row_sizes(schema: MapSchema, batch: pa.RecordBatch) -> None:
    """Raises RowTooLarge."""
    if batch.nbytes <= ROW_SIZE_MAX:
        return
    sizes = np.zeros(batch.num_rows, np.int64)
    for column, array in zip(schema.columns, batch.columns, strict=True):
        if column.type.holds_text or column.type.holds_bytes:
            sizes += pc.fill_null(pc.binary_length(array), 0).to_numpy()
        elif column.type.is_nested and len(array):
            sizes += _list_sizes(array)
    if sizes.max(initial=0) > ROW_SIZE_MAX:
        raise too_large(schema)


def _list_sizes(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """About how many bytes each list takes: its share of the bytes of all."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    total = max(1, int(lengths.sum()))
    if pa.types.is_string(array.type.value_type) or pa.types.is_binary(array.type.value_type):
        bytes_ = pc.fill_null(pc.binary_length(array.values), 0).to_numpy().astype(np.int64)
        running = np.concatenate([[0], np.cumsum(bytes_)])
        offsets = array.offsets.to_numpy()
        sizes: np.ndarray[Any, np.dtype[np.int64]] = running[offsets[1:]] - running[offsets[:-1]]
    else:
        sizes = lengths * (array.values.nbytes // total + 1)
    return sizes


def check_row_size(schema: MapSchema, row: Sequence[PhysicalValue]) -> None:
    """The same for one row."""
    size = sum(len(value) for value in row if isinstance(value, str | bytes))
    size += sum(_nested_size(value) for value in row if isinstance(value, tuple))
    if size * _BYTES_PER_CHARACTER > ROW_SIZE_MAX and _text_size(row) > ROW_SIZE_MAX:
        raise too_large(schema)


def _text_size(values: Sequence[PhysicalValue]) -> int:
    """Bytes of all texts and binaries of a row."""
    return sum(
        len(value.encode()) if isinstance(value, str) else len(value)
        for value in values
        if isinstance(value, str | bytes)
    ) + sum(_nested_size(value) for value in values if isinstance(value, tuple))


def _nested_size(value: tuple[PhysicalValue, ...]) -> int:
    return 8 * len(value) + _text_size(value)


def _check_range(schema: MapSchema, column: Column, array: pa.Array) -> None:
    bounds = _bounds(column.type)
    if bounds is None or not pa.types.is_int64(array.type):
        return
    extremes = pc.min_max(array)
    least, greatest = extremes["min"].as_py(), extremes["max"].as_py()
    if least is not None and (least < bounds[0] or greatest > bounds[1]):
        raise overflow(schema, column)


def _spelled(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def null_in(schema: MapSchema, column: Column, batch: pa.RecordBatch) -> NotNullViolation:
    """For the first row of ``batch`` (of ``schema``, in engine form) that has NULL there."""
    nulls = batch.column(schema.position[column.name]).is_null()
    row = batch.slice(pc.index(nulls, True).as_py(), 1)
    types = [each.type for each in schema.columns]
    return null_value(schema, column, next(iter(arrays_to_rows(row.columns, types))))


def overflow(schema: MapSchema, column: Column) -> NumericOverflow:
    return NumericOverflow(
        f'map "{schema.name}": a value of column "{column.name}" is out of range for {column.type}'
    )


def too_large(schema: MapSchema) -> RowTooLarge:
    return RowTooLarge(f'map "{schema.name}": a row has more than {ROW_SIZE_MAX} bytes')


def too_long(schema: MapSchema, column: Column) -> StringTooLong:
    return StringTooLong(
        f'map "{schema.name}": a value of column "{column.name}" is too long for {column.type}'
    )


def too_fine(schema: MapSchema, column: Column) -> DataError:
    """Values are rounded where they enter the grid, before keys are hashed."""
    return DataError(
        f'map "{schema.name}": a value of column "{column.name}" has more digits or fields than '
        f"{column.type} keeps"
    )
