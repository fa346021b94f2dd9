"""The columns of a set of files and their types, found out before any task starts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from remuda.datatypes.arrow import describe, from_arrow_type, to_engine
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import VARCHAR, Kind, SqlType
from remuda.errors import InputError, RemudaError, TypeMismatch, UndefinedColumn, UndefinedType
from remuda.spark.loading.read_files import TextFormat
from remuda.spark.loading.splits import Format, compression_of, file_format, first_line
from remuda.spark.transfer.fit import SourceColumn

SAMPLE_SIZE: Final = 4 * 1024 * 1024
"""Bytes of a text file from which its types are guessed."""


@dataclass(frozen=True, slots=True)
class Source:
    """``columns`` are those to load, in order; ``arrow`` has their types for typed formats."""

    columns: tuple[SourceColumn, ...]
    arrow: Mapping[str, pa.DataType]
    text: TextFormat

    def accepts(self, found: SourceColumn, expected: Column) -> bool:
        """Whether values may fit: text always, typed columns when Arrow can convert at all."""
        arrow = self.arrow.get(found.name)
        if arrow is None:
            return True
        try:
            to_engine(pa.array([], type=arrow), expected.type)
        except TypeMismatch:
            return False
        return True


def inspect(
    files: Sequence[str],
    format_: Format | None,
    text: TextFormat,
    *,
    wanted: Sequence[str] = (),
    types: Mapping[str, SqlType] | None = None,
) -> Source:
    """Look at the first file for types and at all for their columns.

    ``wanted`` names the columns to load (all by default); ``types`` overrules what was found.
    Raises ``InputError`` for files that cannot be read or that do not go together.
    """
    types = types or {}
    first = files[0]
    kind = format_ or file_format(first)
    try:
        schema = _schema(first, kind, text)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, RemudaError):
            raise
        raise InputError(f"{first} cannot be read as {kind}: {first_line(error)}") from error
    for other in files[1:]:
        _same_columns(first, schema.names, other, format_ or file_format(other), text)
    for name in (*wanted, *types):
        if name not in schema.names:
            raise UndefinedColumn(
                f"{first} has no column {name}", detail=f"it has {', '.join(schema.names)}"
            )
    names = list(wanted) or schema.names
    columns = tuple(_column(name, schema.field(name).type, types.get(name)) for name in names)
    typed = kind in ("parquet", "arrow")
    arrow = {name: schema.field(name).type for name in names} if typed else {}
    if kind == "csv":
        text = TextFormat(tuple(schema.names), text.header, text.delimiter, text.nulls)
    return Source(columns, arrow, text)


def _column(name: str, arrow: pa.DataType, given: SqlType | None) -> SourceColumn:
    if given is not None:
        return SourceColumn(name, given, describe(arrow))
    try:
        found = from_arrow_type(arrow)
    except UndefinedType:
        return SourceColumn(name, None, str(arrow))
    if found.kind is Kind.NULL:
        # No value seen: text holds whatever comes later.
        found = VARCHAR
    return SourceColumn(name, found, describe(arrow))


def _schema(path: str, kind: Format, text: TextFormat) -> pa.Schema:
    if kind == "parquet":
        return pq.read_schema(path)
    if kind == "arrow":
        return _arrow_schema(path)
    if kind == "csv":
        return _csv_schema(path, text)
    return _json_schema(path)


def _arrow_schema(path: str) -> pa.Schema:
    with pa.memory_map(path) as mapped:
        try:
            return pa.ipc.open_file(mapped).schema
        except pa.ArrowInvalid:
            mapped.seek(0)
            return pa.ipc.open_stream(mapped).schema


def _csv_schema(path: str, text: TextFormat) -> pa.Schema:
    names = _csv_names(path, text)
    sample = _sample(path)
    table = pa_csv.read_csv(
        io.BytesIO(sample),
        read_options=pa_csv.ReadOptions(
            use_threads=False, column_names=names, skip_rows=1 if text.header else 0
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=text.delimiter,
            newlines_in_values=True,
            invalid_row_handler=lambda _: "skip",
        ),
        convert_options=pa_csv.ConvertOptions(
            null_values=list(text.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table.schema


def _csv_names(path: str, text: TextFormat) -> list[str]:
    first = _sample(path).split(b"\n", 1)[0].decode("utf-8-sig").rstrip("\r")
    if not first:
        raise InputError(f"{path} is empty")
    names = next(csv.reader([first], delimiter=text.delimiter))
    if text.header:
        return names
    if not text.names:
        return [f"column{index + 1}" for index in range(len(names))]
    if len(names) != len(text.names):
        raise InputError(f"{path} has {len(names)} columns, {len(text.names)} are named")
    return list(text.names)


def _json_schema(path: str) -> pa.Schema:
    sample = _sample(path)
    if sample.lstrip()[:1] == b"[":
        records = json.loads(_whole(path))
    else:
        try:
            return pa_json.read_json(io.BytesIO(sample)).schema
        except pa.ArrowInvalid:
            # One bad line spoils it for Arrow; such lines are rejected later, one by one.
            records = _good_records(sample)
    if not records:
        raise InputError(f"{path} holds no JSON object")
    return pa.Table.from_pylist(_regular(records)).schema


def _good_records(sample: bytes) -> list[object]:
    records = []
    for line in sample.splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return [record for record in records if isinstance(record, dict)]


def _regular(records: Sequence[object]) -> list[dict[str, object]]:
    """Values of a field that are not of the kind that most have become NULL, so that Arrow can
    name one type; the rows they come from are judged when they are read."""
    rows = [record for record in records if isinstance(record, dict)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    majority: dict[str, type] = {}
    for name in names:
        kinds = [_kind(row[name]) for row in rows if row.get(name) is not None]
        if kinds:
            majority[name] = max(set(kinds), key=kinds.count)
    return [
        {
            name: row.get(name) if _kind(row.get(name)) is majority.get(name) else None
            for name in names
        }
        for row in rows
    ]


def _kind(value: object) -> type:
    return float if type(value) is int else type(value)


def _sample(path: str) -> bytes:
    """The first bytes of a text file, up to the end of a line."""
    compression = compression_of(path)
    with pa.input_stream(path, compression=compression) as stream:
        data: bytes = stream.read(SAMPLE_SIZE)
    if len(data) < SAMPLE_SIZE:
        return data
    return data[: data.rfind(b"\n") + 1] or data


def _whole(path: str) -> bytes:
    with pa.input_stream(path, compression=compression_of(path)) as stream:
        data: bytes = stream.read()
    return data


def _same_columns(
    first: str, names: Sequence[str], other: str, kind: Format, text: TextFormat
) -> None:
    try:
        if kind == "csv":
            if text.header and (found := _csv_names(other, text)) != list(names):
                raise InputError(
                    f"the columns of {other} are not those of {first}",
                    detail=f"{', '.join(found)} instead of {', '.join(names)}",
                )
            return
        if kind == "json":
            return
        schema = pq.read_schema(other) if kind == "parquet" else _arrow_schema(other)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{other} cannot be read as {kind}: {first_line(error)}") from error
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise InputError(f"{other} has no column {missing[0]}, which {first} has")
