"""Chunks of an older schema, read as rows of another one.

A chunk keeps the columns that it was written with. A reader names the schema that it wants: columns
are found by their ids, those that the chunk does not have hold their ``missing`` value, and a
column whose type was widened is converted as it is read. So ALTER TABLE touches no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.datatypes.widening import Conversion, same, widening

if TYPE_CHECKING:
    from remuda.storage.chunks.chunk import Chunk, Row


class Layout:
    """How rows of one schema are read as rows of another one of the same map."""

    def __init__(self, stored: MapSchema, wanted: MapSchema) -> None:
        by_id = {column.id: index for index, column in enumerate(stored.columns)}
        self._arrow = engine_schema(wanted)
        self._columns = wanted.columns
        self._sources = [by_id.get(column.id) for column in wanted.columns]
        self._stored = [
            None if source is None else stored.columns[source].type for source in self._sources
        ]
        self._conversions = [
            same if have is None else widening(have, column.type) or same
            for have, column in zip(self._stored, wanted.columns, strict=True)
        ]

    def row(self, row: Row) -> Row:
        return tuple(
            [
                column.missing
                if source is None
                else None
                if row[source] is None
                else convert(row[source])
                for source, column, convert in zip(
                    self._sources, self._columns, self._conversions, strict=True
                )
            ]
        )

    def batch(self, batch: pa.RecordBatch, positions: Sequence[int]) -> pa.RecordBatch:
        """The wanted columns at ``positions``."""
        if not positions:
            return batch.select([])
        arrays = [self._array(batch, position) for position in positions]
        fields = [self._arrow.field(position) for position in positions]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _array(self, batch: pa.RecordBatch, position: int) -> pa.Array:
        source, column = self._sources[position], self._columns[position]
        if source is None:
            return _repeated(column, batch.num_rows)
        stored = self._stored[position]
        assert stored is not None
        return _converted(batch.column(source), stored, column.type, self._conversions[position])


def _repeated(column: Column, rows: int) -> pa.Array:
    one = values_to_array([column.missing], column.type)
    return pa.repeat(one[0], rows) if column.missing is not None else pa.nulls(rows, one.type)


def _converted(array: pa.Array, stored: SqlType, wanted: SqlType, convert: Conversion) -> pa.Array:
    target = values_to_array([], wanted).type
    if convert is same and array.type == target:
        return array
    if convert is same or (wanted.is_float and not stored.is_float) or stored.kind is Kind.DATE:
        return pc.cast(array, target)
    values = array_to_values(array, stored)
    return values_to_array([None if v is None else convert(v) for v in values], wanted)


class Layouts:
    """Reads chunks of any schema of a map as rows of ``schema``. Any thread."""

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema
        self._all = tuple(range(len(schema.columns)))
        self._by_version: dict[int, Layout] = {}

    def _of(self, stored: MapSchema) -> Layout:
        found = self._by_version.get(stored.version)
        if found is None:
            found = self._by_version[stored.version] = Layout(stored, self.schema)
        return found

    def _as_stored(self, chunk: Chunk) -> bool:
        return chunk.schema is self.schema or chunk.schema.version == self.schema.version

    def row(self, chunk: Chunk, offset: int) -> Row:
        if chunk.schema is self.schema or self._as_stored(chunk):
            return chunk.row(offset)
        return self._of(chunk.schema).row(chunk.row(offset))

    def values_at(self, chunk: Chunk, offset: int, positions: Sequence[int]) -> Row:
        """Some columns of one row."""
        if self._as_stored(chunk):
            return chunk.values_at(offset, tuple(positions))
        row = self.row(chunk, offset)
        return tuple([row[position] for position in positions])

    def rows(self, chunk: Chunk, rows: Sequence[Row]) -> Sequence[Row]:
        """Rows of a chunk in the schema that is wanted."""
        if self._as_stored(chunk):
            return rows
        convert = self._of(chunk.schema).row
        return [convert(row) for row in rows]

    def columns(
        self, chunk: Chunk, count: int, positions: Sequence[int] | None = None
    ) -> pa.RecordBatch:
        """The first ``count`` rows of a chunk; columns by position in the schema (None: all)."""
        batch = chunk.columns(count)
        if self._as_stored(chunk):
            return batch if positions is None else batch.select(positions)
        return self._of(chunk.schema).batch(batch, self._all if positions is None else positions)

    def bounds(self, chunk: Chunk, position: int) -> tuple[pa.Scalar, pa.Scalar]:
        """Smallest and largest value of a column, hidden rows included."""
        if self._as_stored(chunk):
            return chunk.bounds(position)
        both = pc.min_max(self.columns(chunk, chunk.length, [position]).column(0))
        return both["min"], both["max"]


def reads_as(new: MapSchema, old: MapSchema) -> bool:
    """Whether rows written under ``new`` may be read under ``old``: it has all of its columns."""
    by_id = {column.id: column for column in new.columns}
    return all(
        column.id in by_id and by_id[column.id].type == column.type for column in old.columns
    )
