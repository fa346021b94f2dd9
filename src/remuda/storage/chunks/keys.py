"""The key of a map's rows: taking it out of rows and columns, hashing it, comparing it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import null_in
from remuda.datatypes.hashes.keyhash import (
    hash_arrays,
    hasher,
    is_injective,
    partition_of,
    partitions_of,
)
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, from_physical
from remuda.datatypes.violations import null_value
from remuda.errors import TypeMismatch
from remuda.storage.chunks.chunk import Chunk, Flags, Offsets, Row
from remuda.storage.chunks.readers import reader

Hashes: TypeAlias = npt.NDArray[np.uint64]
Key: TypeAlias = tuple[PhysicalValue, ...]

_NAN: Final = math.nan


class KeyRule:
    """How the keys of one schema are taken, hashed, compared and shown.

    Rows and batches given to it are of that schema; chunks may be of any other one of the map.
    """

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema
        self._arrow_schema = engine_schema(schema)
        self.positions = schema.key_positions
        self._types = [schema.columns[position].type for position in self.positions]
        self._partition_positions = schema.partition_positions
        self._partition_types = [schema.columns[p].type for p in self._partition_positions]
        self.exact: Final = is_injective(self._types)
        """Equal hashes mean equal keys: there is nothing to compare."""
        self.hash: Final[Callable[[Key], int]] = hasher(self._types)
        self._hash_partition = hasher(self._partition_types)
        self._same_hash = self._partition_positions == self.positions
        self._has_floats = any(sql_type.is_float for sql_type in self._types)
        self._required = [
            index
            for index, column in enumerate(schema.columns)
            if not column.nullable or index in self.positions
        ]

    # --- one row ---

    def of(self, row: Row) -> Key:
        """The key of a row; raises ``NotNullViolation``."""
        if len(self.positions) == 1:
            value = row[self.positions[0]]
            if value is not None:
                return (value,)
        key = tuple([row[position] for position in self.positions])
        if None in key:
            position = self.positions[key.index(None)]
            raise null_value(self.schema, self.schema.columns[position], row)
        return key

    def partition(self, row: Row, key_hash: int) -> int:
        if self._same_hash:
            return partition_of(key_hash)
        return partition_of(self._hash_partition([row[p] for p in self._partition_positions]))

    def holds(self, chunk: Chunk, offset: int, key: Key) -> bool:
        """Whether a stored row has this key (needed where ``exact`` is False)."""
        stored = chunk.values_at(offset, chunk.schema.key_positions)
        return stored == key or (self._has_floats and _without_nan(stored) == _without_nan(key))

    def show(self, key: Key) -> str:
        """The key for a message: ``name = value, ...``."""
        return ", ".join(
            f"{name} = {from_physical(value, sql_type)!r}"
            for name, value, sql_type in zip(self.schema.key, key, self._types, strict=True)
        )

    # --- many rows ---

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise unless a batch has the engine schema of the map and no NULL where none may be."""
        if (
            batch.schema.types != self._arrow_schema.types
            or batch.schema.names != self._arrow_schema.names
        ):
            raise TypeMismatch(
                f"rows for map {self.schema.name} do not have its columns",
                detail=f"expected {_listed(self._arrow_schema)}; found {_listed(batch.schema)}",
            )
        for position in self._required:
            if batch.column(position).null_count:
                raise null_in(self.schema, self.schema.columns[position], batch)

    def columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(position) for position in self.positions]

    def hashes(self, batch: pa.RecordBatch) -> Hashes:
        return hash_arrays(self.columns(batch), self._types)

    def hashes_of(self, columns: Sequence[pa.Array]) -> Hashes:
        """Of keys whose columns are given."""
        return hash_arrays(columns, self._types)

    def partitions(self, batch: pa.RecordBatch, hashes: Hashes) -> npt.NDArray[np.uint16]:
        if self._same_hash:
            return partitions_of(hashes)
        columns = [batch.column(position) for position in self._partition_positions]
        return partitions_of(hash_arrays(columns, self._partition_types))

    def keys_of(self, columns: Sequence[pa.Array], rows: Sequence[int]) -> list[Key]:
        """The keys of some rows of key columns."""
        readers = [
            reader(column, sql_type) for column, sql_type in zip(columns, self._types, strict=True)
        ]
        keys = [tuple([read(row) for read in readers]) for row in rows]
        return [_without_nan(key) for key in keys] if self._has_floats else keys

    def equal(
        self, chunk: Chunk, offsets: Offsets, columns: Sequence[pa.Array], rows: Offsets
    ) -> Flags:
        """Whether stored rows have the keys of rows of the key columns, pair by pair."""
        stored = chunk.columns(chunk.length)
        result = np.ones(len(rows), dtype=np.bool_)
        for position, column in zip(chunk.schema.key_positions, columns, strict=True):
            mine = stored.column(position).take(pa.array(offsets))
            same = pc.equal(mine, column.take(pa.array(rows)))
            if pa.types.is_floating(mine.type):
                other = column.take(pa.array(rows))
                same = pc.or_(same, pc.and_(pc.is_nan(mine), pc.is_nan(other)))
            result &= same.to_numpy(zero_copy_only=False)
        return result

    def repeats(
        self, columns: Sequence[pa.Array], hashes: Hashes, order: Offsets
    ) -> Iterator[tuple[int, Key]]:
        """Rows whose key occurs again in a later row, with the key.

        ``order`` sorts the rows by hash; ``hashes`` are the sorted hashes.
        """
        same = np.flatnonzero(hashes[1:] == hashes[:-1])
        if not len(same):
            return
        involved = np.unique(np.concatenate([same, same + 1]))
        rows = np.sort(order[involved]).tolist()
        last: dict[Key, int] = {}
        for row, key in zip(rows, self.keys_of(columns, rows), strict=True):
            if key in last:
                yield last[key], key
            last[key] = row


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _without_nan(key: Key) -> Key:
    """NaN becomes one object, which tuples find equal to itself."""
    return tuple([_NAN if value != value else value for value in key])  # noqa: PLR0124
