"""External Arrow batches into rows of a map: whole, or with the rows that do not fit set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.client.operations.bulk import row_ids
from remuda.datatypes.arrow import engine_schema, engine_type, to_engine
from remuda.datatypes.schema import ROW_ID, Column, MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.datatypes.violations import null_value
from remuda.errors import DataError, InputError
from remuda.spark.transfer.fit import COMPUTED, MADE

Convert = Callable[[pa.Array, SqlType], pa.Array]

_READ_BY_SQL: Final = (
    Kind.BYTEA, Kind.BOOLEAN, Kind.DECIMAL, Kind.UUID, Kind.INTERVAL, Kind.JSON, Kind.ARRAY,
)  # fmt: skip
"""Arrow would read the text of these in another way, or not at all."""
ONE_BY_ONE_ROWS: Final = 32
"""Below this, a piece with a bad value is tried value by value instead of being halved again."""


def engine_batch(
    schema: MapSchema, positions: Sequence[int], batch: pa.RecordBatch
) -> pa.RecordBatch:
    """All rows of ``batch`` in the engine's form, with keys made for them where a position is
    ``MADE`` and NULL where one is ``COMPUTED``. Raises for the first column that does not fit."""
    arrow = engine_schema(schema)
    arrays = []
    for column, arrow_field, position in zip(schema.columns, arrow, positions, strict=True):
        if position == MADE:
            arrays.append(row_ids(batch.num_rows))
        elif position == COMPUTED:
            arrays.append(pa.nulls(batch.num_rows, arrow_field.type))
        else:
            arrays.append(_engine_array(schema, column, batch.column(position)))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def of_files(schema: MapSchema) -> MapSchema:
    """The columns that files have for a map: all but a key that is made for their rows, and
    generated columns."""
    if not (schema.has_row_ids or schema.generated):
        return schema
    columns = tuple(column for column in schema.shown if not column.generated)
    if schema.has_row_ids:
        return replace(schema, columns=columns, key=(), partition_by=())
    return replace(schema, columns=columns)


def with_row_ids(schema: MapSchema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of ``of_files(schema)`` with their keys, and NULL in generated columns."""
    if not (schema.has_row_ids or schema.generated):
        return batch
    given, arrow = iter(batch.columns), engine_schema(schema)
    arrays = []
    for column, arrow_field in zip(schema.columns, arrow, strict=True):
        if column.name == ROW_ID:
            arrays.append(row_ids(batch.num_rows))
        elif column.generated:
            arrays.append(pa.nulls(batch.num_rows, arrow_field.type))
        else:
            arrays.append(next(given))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def engine_keys(
    schema: MapSchema, positions: Sequence[int], batch: pa.RecordBatch
) -> pa.RecordBatch:
    """The key columns alone, in the engine's form. Raises as ``engine_batch``."""
    whole = engine_schema(schema)
    columns = [schema.columns[position] for position in schema.key_positions]
    arrays = [
        _engine_array(schema, column, batch.column(position))
        for column, position in zip(columns, positions, strict=True)
    ]
    fields = pa.schema([whole.field(column.name) for column in columns])
    return pa.RecordBatch.from_arrays(arrays, schema=fields)


def _engine_array(schema: MapSchema, column: Column, array: pa.Array) -> pa.Array:
    try:
        # Spark has UUIDs as text only; other types of text are refused as such.
        convert = text_to_engine if column.type.kind is Kind.UUID else to_engine
        made = convert(array, column.type)
    except InputError as error:
        raise type(error)(
            f"column {column.name} of map {schema.name}: {error.message}",
            detail=error.detail,
            hint=error.hint,
        ) from error
    if not column.nullable and made.null_count:
        raise null_value(schema, column)
    return made


@dataclass(slots=True)
class Sifted:
    """``batch``: the rows that fit, in engine form. ``rejected``: row number -> reason."""

    batch: pa.RecordBatch
    rejected: dict[int, str] = field(default_factory=dict)


def sift(
    schema: MapSchema,
    arrays: Sequence[pa.Array],
    convert: Convert = to_engine,
    rejected: Iterable[tuple[int, str]] = (),
) -> Sifted:
    """Convert one array per column of ``schema``; a row with a value that does not fit is left out.

    ``rejected`` are rows already known to be bad; the first reason found for a row is kept.
    """
    bad: dict[int, str] = dict(rejected)
    made = []
    for column, array in zip(schema.columns, arrays, strict=True):
        result = _column(column, array, convert, bad)
        if not column.nullable and result.null_count:
            what = "key column" if column.name in schema.key else "column"
            for row in np.flatnonzero(pc.is_null(result).to_numpy(zero_copy_only=False)).tolist():
                bad.setdefault(row, f"{what} {column.name} is NULL")
        made.append(result)
    batch = pa.RecordBatch.from_arrays(
        made, schema=pa.schema([pa.field(c.name, engine_type(c.type)) for c in schema.columns])
    )
    if bad:
        keep = np.ones(batch.num_rows, dtype=bool)
        keep[list(bad)] = False
        batch = batch.filter(pa.array(keep))
    return Sifted(batch.cast(engine_schema(schema)), bad)


def _column(column: Column, array: pa.Array, convert: Convert, bad: dict[int, str]) -> pa.Array:
    pieces: list[pa.Array] = []
    # A stack instead of recursion: (start, length), first piece on top.
    waiting = [(0, len(array))]
    while waiting:
        start, length = waiting.pop()
        piece = array.slice(start, length)
        try:
            pieces.append(convert(piece, column.type))
        except DataError as error:
            if length == 1:
                bad.setdefault(start, f"column {column.name}: {error.message}")
                pieces.append(pa.nulls(1, engine_type(column.type)))
            elif length <= ONE_BY_ONE_ROWS:
                waiting += [(start + i, 1) for i in reversed(range(length))]
            else:
                half = length // 2
                waiting += [(start + half, length - half), (start, half)]
    if not pieces:
        return pa.nulls(0, engine_type(column.type))
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def text_to_engine(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """Text in SQL's input syntax as engine values; an already typed array is converted as such."""
    if not pa.types.is_string(array.type) or sql_type.is_text:
        return to_engine(array, sql_type)
    if sql_type.kind not in _READ_BY_SQL:
        try:
            return array.cast(engine_type(sql_type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # Arrow knows fewer spellings than SQL, and cannot say which value is wrong.
            return _parsed(array, sql_type)
    return _parsed(array, sql_type)


def _parsed(array: pa.Array, sql_type: SqlType) -> pa.Array:
    values: list[PhysicalValue] = [
        None if text is None else parse_text(text, sql_type) for text in array.to_pylist()
    ]
    return values_to_array(values, sql_type)
