"""Estimated memory of index entries before they are made: of indexes that are about to be built,
and of rows that are about to be stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.index import IndexDefinition, IndexKind, is_word
from remuda.datatypes.schema import MapSchema
from remuda.storage.chunks.chunk import Chunk
from remuda.storage.chunks.row_sizes import INDEX_ENTRY_SIZE, RowSizes
from remuda.storage.indexes.bitmap import SET_SIZE

WORD_ENTRY: Final = 16
"""Bytes of a key of one word, or of the hash of a key, with its slot."""
STRING_ENTRY: Final = 16
"""Bytes of the offset and the slot of a key of bytes."""
WORD_PART: Final = 9
"""Bytes of a column of one word within a key of bytes."""
TEXT_PART: Final = 3
"""Bytes that a text takes in a key besides its own."""
OFFSET_SIZE: Final = 8
"""Bytes of a row in a set of a bitmap index, at most."""
SAMPLE: Final = 1000
"""Rows that tell how many different values a column of a chunk has."""
TAIL_ENTRY: Final = 100
"""Bytes of an entry of a row that lies in a tail."""


class WriteSizes(RowSizes):
    """Sizes in bytes of single rows together with their entries in all indexes of the map. An entry
    counts with the most that it may take: as one of a tail, and in a bitmap index as a value that
    no other row has."""

    __slots__ = ()

    def __init__(self, schema: MapSchema) -> None:
        super().__init__(schema)
        self.fixed += INDEX_ENTRY_SIZE
        texts = frozenset(self.positions)
        for definition in schema.indexes:
            places = [schema.position[name] for name in definition.names]
            self.fixed += TAIL_ENTRY + WORD_PART * len(places)
            if definition.kind is IndexKind.BITMAP:
                self.fixed += SET_SIZE * len(places)
            self.positions += [place for place in places if place in texts]


def index_size(schema: MapSchema, definition: IndexDefinition, chunks: Iterable[Chunk]) -> int:
    """Bytes of the entries of all rows of these chunks. Event loop only."""
    total = 0
    for chunk in chunks:
        if chunk.tuples is not None:
            total += TAIL_ENTRY * chunk.length
            continue
        batch, stored = chunk.batch, chunk.schema
        assert batch is not None, "a chunk that is no tail has columns"
        if stored.columns == schema.columns:  # not by version: ``schema`` may still be a draft
            places = schema.position
        else:
            by_id = {column.id: place for place, column in enumerate(stored.columns)}
            places = {c.name: by_id[c.id] for c in schema.columns if c.id in by_id}
        names = [name for name in definition.names if name in places]
        columns = {name: batch.column(places[name]) for name in names}
        total += _entries(schema, definition, chunk.length, columns)
    return total


def entries_size(schema: MapSchema, batch: pa.RecordBatch) -> int:
    """Bytes of the entries of these rows in all indexes of the map."""
    total = 0
    for definition in schema.indexes:
        columns = {name: batch.column(schema.position[name]) for name in definition.names}
        total += _entries(schema, definition, batch.num_rows, columns)
    return total


def _entries(
    schema: MapSchema, definition: IndexDefinition, rows: int, columns: dict[str, pa.Array]
) -> int:
    """``columns``: those that are stored."""
    if definition.kind is IndexKind.BITMAP:
        return OFFSET_SIZE * rows + SET_SIZE * sum(map(_different, columns.values()))
    types = [schema.column(name).type for name in definition.names]
    if definition.kind is IndexKind.HASH or (len(types) == 1 and is_word(types[0])):
        return WORD_ENTRY * rows
    size = STRING_ENTRY * rows
    for name, type_ in zip(definition.names, types, strict=True):
        if is_word(type_) or name not in columns:
            size += WORD_PART * rows
        else:
            size += columns[name].nbytes + TEXT_PART * rows
    return size


def _different(column: pa.Array) -> int:
    """How many different values the column has, rather more than fewer."""
    sample = min(SAMPLE, len(column))
    found: int = pc.count_distinct(column.slice(0, sample), mode="all").as_py()
    return found if 2 * found < sample else len(column)
