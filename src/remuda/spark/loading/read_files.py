"""Read one split with Arrow, inside a task: rows in engine form, and records that do not fit.

The quick way reads typed columns and assumes that all is well. Only when Arrow finds a value that
it cannot convert (it does not say which) is the piece read again as text and sifted.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from remuda.datatypes.arrow import external_type, to_engine
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.values import PhysicalValue, to_physical, values_to_array
from remuda.errors import DataError
from remuda.spark.loading.splits import Split, compression_of, first_line
from remuda.spark.transfer.rows import Convert, Sifted, sift, text_to_engine

BATCH_ROWS: Final = 256 * 1024
JSON_BLOCK_SIZE: Final = 4 * 1024 * 1024
CSV_BLOCK_SIZE: Final = 4 * 1024 * 1024
_QUOTED_IN_JSON: Final = (Kind.DATE, Kind.TIME, Kind.BYTEA, Kind.UUID, Kind.INTERVAL)
_TEXT_FIRST: Final = (Kind.BYTEA, Kind.UUID, Kind.INTERVAL, Kind.JSON, Kind.ARRAY)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How CSV is written. ``names`` are the file's columns, in order; empty for other formats."""

    names: tuple[str, ...] = ()
    header: bool = True
    delimiter: str = ","
    nulls: tuple[str, ...] = ("",)


@dataclass(slots=True)
class Rejected:
    """One record that was not loaded. ``row`` counts from 0 in the split, or in the file when the
    split knows where it begins."""

    row: int
    reason: str
    record: Any


@dataclass(slots=True)
class Piece:
    batch: pa.RecordBatch
    rejected: list[Rejected] = field(default_factory=list)


def read_split(split: Split, schema: MapSchema, text: TextFormat) -> Iterator[Piece]:
    """The rows of one split, piece by piece. ``schema``'s columns are found by name."""
    if split.format == "parquet":
        yield from _columnar(_parquet_batches(split, schema), schema, split.first_row or 0)
    elif split.format == "arrow":
        yield from _columnar(_arrow_batches(split), schema, 0)
    elif split.format == "csv":
        yield from _csv(split, schema, text)
    else:
        yield from _json(split, schema)


# --- Parquet and Arrow --------------------------------------------------------------------------


def _parquet_batches(split: Split, schema: MapSchema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(split.path, memory_map=True) as file:
        yield from file.iter_batches(
            batch_size=BATCH_ROWS,
            row_groups=list(range(split.start, split.stop or 0)),
            columns=[column.name for column in schema.columns],
            use_threads=False,
        )


def _arrow_batches(split: Split) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(split.path) as mapped:
        if split.stop is None:
            with pa.ipc.open_stream(mapped) as stream:
                yield from stream
        else:
            with pa.ipc.open_file(mapped) as file:
                for index in range(split.start, split.stop):
                    yield file.get_batch(index)


def _columnar(
    batches: Iterator[pa.RecordBatch], schema: MapSchema, first_row: int
) -> Iterator[Piece]:
    for batch in batches:
        arrays = [batch.column(column.name) for column in schema.columns]
        yield _piece(sift(schema, arrays), arrays, schema, first_row)
        first_row += batch.num_rows


def _piece(sifted: Sifted, arrays: Sequence[pa.Array], schema: MapSchema, first_row: int) -> Piece:
    rejected = [
        Rejected(
            first_row + row,
            reason,
            {c.name: _shown(a[row]) for c, a in zip(schema.columns, arrays, strict=True)},
        )
        for row, reason in sorted(sifted.rejected.items())
    ]
    return Piece(sifted.batch, rejected)


def _shown(scalar: pa.Scalar) -> Any:
    """A value as JSON can hold it."""
    if isinstance(scalar, pa.TimestampScalar):
        # Python's datetime has no nanoseconds.
        return None if not scalar.is_valid else str(pa.array([scalar]).cast(pa.string())[0])
    value = scalar.as_py()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


# --- CSV ------------------------------------------------------------------------------------------


def split_bytes(split: Split) -> pa.Buffer:
    """The bytes of a text split, decompressed."""
    if split.stop is None:
        with pa.input_stream(split.path, compression=compression_of(split.path)) as stream:
            return stream.read_buffer()
    with pa.OSFile(split.path) as file:
        file.seek(split.start)
        return file.read_buffer(split.stop - split.start)


def _csv(split: Split, schema: MapSchema, text: TextFormat) -> Iterator[Piece]:
    data = split_bytes(split)
    skip = 1 if text.header and split.start == 0 else 0
    try:
        table, bad = _csv_table(data, schema, text, skip, typed=True)
        if not bad:
            yield from _csv_pieces(table, schema, [], to_engine)
            return
    except pa.ArrowInvalid:
        # Some value is not of its column's type. Arrow does not say which row: sift them.
        table, bad = _csv_table(data, schema, text, skip, typed=False)
    yield from _csv_pieces(table, schema, bad, text_to_engine)


def _csv_table(
    data: pa.Buffer, schema: MapSchema, text: TextFormat, skip: int, *, typed: bool
) -> tuple[pa.Table, list[Rejected]]:
    bad: list[Rejected] = []

    def refuse(row: pa_csv.InvalidRow) -> str:
        reason = f"expected {row.expected_columns} columns, found {row.actual_columns}"
        number = (row.number or 1) - 1 - skip
        bad.append(Rejected(number, reason, row.text))
        return "skip"

    types = {c.name: _csv_type(c.type) if typed else pa.string() for c in schema.columns}
    table = pa_csv.read_csv(
        pa.BufferReader(data),
        read_options=pa_csv.ReadOptions(
            use_threads=False,
            block_size=max(CSV_BLOCK_SIZE, 1),
            skip_rows=skip,
            column_names=list(text.names),
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=text.delimiter, newlines_in_values=True, invalid_row_handler=refuse
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=list(text.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table, bad


def _csv_type(sql_type: SqlType) -> pa.DataType:
    return pa.string() if sql_type.kind in _TEXT_FIRST else external_type(sql_type)


def _csv_pieces(
    table: pa.Table, schema: MapSchema, bad: list[Rejected], convert: Convert
) -> Iterator[Piece]:
    if convert is to_engine and any(c.type.kind in _TEXT_FIRST for c in schema.columns):
        convert = text_to_engine
    # Rows of the wrong length are not in the table; the others keep their order.
    first_row = 0
    left = bad
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        arrays = [batch.column(column.name) for column in schema.columns]
        piece = _piece(sift(schema, arrays, convert), arrays, schema, first_row)
        piece.rejected += left
        left = []
        first_row += batch.num_rows
        yield piece
    if left:
        yield Piece(_no_rows(schema), left)


def _no_rows(schema: MapSchema) -> pa.RecordBatch:
    return sift(schema, [pa.nulls(0, external_type(c.type)) for c in schema.columns]).batch


# --- JSON -----------------------------------------------------------------------------------------


def _json(split: Split, schema: MapSchema) -> Iterator[Piece]:
    data = split_bytes(split)
    if split.stop is not None or not _array_text(data):
        if any(c.type.kind is Kind.JSON or c.type.is_nested for c in schema.columns):
            # Arrow's reader takes documents apart, and knows no UUIDs inside lists.
            yield from _json_lines(data, schema)
            return
        try:
            table = _json_table(data, schema)
        except pa.ArrowInvalid:
            # Some line is not JSON, or some value not of its column's type: line by line then.
            yield from _json_lines(data, schema)
            return
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            arrays = [batch.column(column.name) for column in schema.columns]
            yield _piece(sift(schema, arrays, text_to_engine), arrays, schema, 0)
        return
    yield from _json_array(data, schema)


def _array_text(data: pa.Buffer) -> bool:
    return bytes(data.slice(0, min(4096, data.size)).to_pybytes()).lstrip()[:1] == b"["


def _json_table(data: pa.Buffer, schema: MapSchema) -> pa.Table:
    wanted = pa.schema(
        [
            (c.name, pa.string() if c.type.kind in _QUOTED_IN_JSON else external_type(c.type))
            for c in schema.columns
        ]
    )
    table = pa_json.read_json(
        pa.BufferReader(data),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=JSON_BLOCK_SIZE),
        parse_options=pa_json.ParseOptions(
            explicit_schema=wanted, newlines_in_values=False, unexpected_field_behavior="ignore"
        ),
    )
    # A field that no line of this split has is missing in what Arrow returns.
    return table.select([c.name for c in schema.columns]) if table.num_columns else table


def _json_lines(data: pa.Buffer, schema: MapSchema) -> Iterator[Piece]:
    lines = io.BytesIO(data.to_pybytes())
    rows: list[tuple[int, Any]] = []
    bad: list[Rejected] = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            rows.append((number, json.loads(line, parse_float=Decimal)))
        except ValueError as error:
            shown = line.decode("utf-8", "replace").rstrip("\r\n")
            bad.append(Rejected(number, f"not JSON: {first_line(error)}", shown))
    yield from _json_records(rows, schema, bad)


def _json_array(data: pa.Buffer, schema: MapSchema) -> Iterator[Piece]:
    try:
        records = json.loads(data.to_pybytes(), parse_float=Decimal)
    except ValueError as error:
        yield Piece(_no_rows(schema), [Rejected(0, f"not JSON: {first_line(error)}", None)])
        return
    yield from _json_records(list(enumerate(records)), schema, [])


def _json_records(
    rows: Sequence[tuple[int, Any]], schema: MapSchema, bad: list[Rejected]
) -> Iterator[Piece]:
    kept: list[list[PhysicalValue]] = []
    for number, record in rows:
        try:
            kept.append(_json_row(record, schema))
        except DataError as error:
            bad.append(Rejected(number, error.message, _plain(record)))
    for start in range(0, len(kept), BATCH_ROWS):
        part = kept[start : start + BATCH_ROWS]
        arrays = [
            values_to_array([row[i] for row in part], c.type) for i, c in enumerate(schema.columns)
        ]
        piece = _piece(sift(schema, arrays, _as_is), arrays, schema, start)
        piece.rejected += bad
        bad = []
        yield piece
    if bad:
        yield Piece(_no_rows(schema), bad)


def _as_is(array: pa.Array, _: SqlType) -> pa.Array:
    return array


def _json_row(record: Any, schema: MapSchema) -> list[PhysicalValue]:
    if not isinstance(record, Mapping):
        raise DataError("not an object")
    row = []
    for column in schema.columns:
        value = record.get(column.name)
        try:
            row.append(_physical(value, column.type))
        except DataError as error:
            raise DataError(f"column {column.name}: {error.message}") from error
        if value is None and not column.nullable:
            what = "key column" if column.name in schema.key else "column"
            raise DataError(f"{what} {column.name} is NULL")
    return row


def _physical(value: Any, sql_type: SqlType) -> PhysicalValue:
    """Values that are text in JSON because JSON has no such values are read as SQL reads text."""
    if isinstance(value, str) and not sql_type.holds_text:
        return parse_text(value, sql_type)
    if isinstance(value, list) and sql_type.element is not None:
        element = sql_type.element
        return tuple([_physical(item, element) for item in value])
    return to_physical(value, sql_type)


def _plain(value: Any) -> Any:
    """A parsed record as JSON again: exact numbers became Decimal."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
