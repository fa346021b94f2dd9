"""Rows of maps as Parquet that Spark and DuckDB read as they are.

A folder per map, files below it. UUID, JSON and INTERVAL are text (no other reader has all three),
everything else is Parquet's own type: TIMESTAMP without and TIMESTAMPTZ with a zone, in
microseconds, DECIMAL with its precision and scale. Whether a column may be NULL is kept; map, key,
snapshot and cut are in the file's metadata (``remuda.*``).
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from remuda.datatypes.arrow import external_type, to_external
from remuda.datatypes.buffers import list_over, validity_of
from remuda.datatypes.schema import ROW_ID, MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.intervals import interval_text, unpack
from remuda.datatypes.uuids import uuid_texts

COMPRESSION: Final = "zstd"
_AS_TEXT: Final = (Kind.UUID, Kind.JSON, Kind.INTERVAL, Kind.NULL)
_HIDDEN: Final = ("_", ".")
"""Readers skip files and folders that begin so."""


def parquet_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that Parquet's is made of."""
    if sql_type.kind in _AS_TEXT:
        return pa.string()
    if sql_type.element is not None:
        return pa.list_(pa.field("element", parquet_type(sql_type.element)))
    if sql_type.fields:
        return pa.struct([pa.field(name, parquet_type(t)) for name, t in sql_type.fields])
    return external_type(sql_type)


def parquet_schema(schema: MapSchema, origin: Mapping[str, str] | None = None) -> pa.Schema:
    """``origin``: entries of the metadata besides map and key. Only columns that users
    see: a map without a key of its own has none here."""
    columns = schema.shown
    fields = [pa.field(c.name, parquet_type(c.type), nullable=c.nullable) for c in columns]
    key = "" if schema.has_row_ids else ",".join(schema.key)
    facts = {"map": schema.name, "key": key} | dict(origin or {})
    return pa.schema(fields, metadata={f"remuda.{name}": text for name, text in facts.items()})


def parquet_batch(batch: pa.RecordBatch, schema: MapSchema, target: pa.Schema) -> pa.RecordBatch:
    """Rows in the engine's form as ``target``, which is the map's ``parquet_schema``."""
    arrays = [
        parquet_array(array, column.type)
        for array, column in zip(batch.columns, schema.columns, strict=True)
        if column.name != ROW_ID
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def parquet_array(array: pa.Array, sql_type: SqlType) -> pa.Array:
    """One column."""
    target = parquet_type(sql_type)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if sql_type.element is not None:
        return list_over(array, parquet_array(array.values, sql_type.element), target)
    if sql_type.fields:
        children = [
            parquet_array(array.field(place), t) for place, (_, t) in enumerate(sql_type.fields)
        ]
        return pa.Array.from_buffers(target, len(array), [validity_of(array)], children=children)
    match sql_type.kind:
        case Kind.UUID:
            return uuid_texts(array)
        case Kind.INTERVAL:
            texts = [None if v is None else interval_text(*unpack(v)) for v in array.to_pylist()]
            return pa.array(texts, pa.string())
        case Kind.JSON:
            return array
        case _:
            return to_external(array, sql_type)


def encoded(table: pa.Table) -> bytes:
    """A whole file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=COMPRESSION)
    return sink.getvalue()


def folder_of(name: str) -> str:
    """Where the files of a map lie: its name, with what has a meaning in paths as %XX."""
    made = quote(name, safe=" ")
    return f"%{ord(made[0]):02X}{made[1:]}" if made.startswith(_HIDDEN) else made
