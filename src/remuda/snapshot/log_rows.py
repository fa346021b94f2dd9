"""Rows as the log has them: packed single rows, and Arrow streams of many.

A key is packed as its key columns are typed, a row as all columns of its version of the schema. The
versions come with the catalog, which is in the log as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import DataCorrupted, ProtocolError
from remuda.limits import LOG_RECORD_SIZE_MAX
from remuda.rpc import arrow_stream
from remuda.rpc.packing import RowPacker, packer
from remuda.storage.format.records import Change
from remuda.transaction.writes import Row, Write

RECORD_SIZE = LOG_RECORD_SIZE_MAX // 4
"""Of batches of rows, about: a record that is too large is refused."""
BOUNDS = b"remuda.bounds"
_ttl = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class Packing:
    """Of one version of the schema of a map."""

    schema: MapSchema
    keys: RowPacker
    rows: RowPacker


def packing_of(schema: MapSchema) -> Packing:
    types = {column.name: column.type for column in schema.columns}
    return Packing(
        schema,
        packer(tuple([types[name] for name in schema.key])),
        packer(tuple([column.type for column in schema.columns])),
    )


class Packings:
    """Of all versions that are known, by map id and version."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Packing] = {}

    def learn(self, schemas: Sequence[MapSchema]) -> None:
        for schema in schemas:
            place = schema.map_id, schema.version
            if place not in self._known:
                self._known[place] = packing_of(schema)

    def of(self, map_id: int, version: int) -> Packing | None:
        return self._known.get((map_id, version))

    def change(self, write: Write) -> Change | None:
        """None for a map that is not known: it was dropped."""
        packing = self._known.get((write.map_id, write.schema_version))
        if packing is None:
            return None
        row = None if write.row is None else _pack_row(packing.rows, write.row, write.ttl)
        return Change(write.map_id, write.schema_version, packing.keys.pack(write.key), row)

    def write(self, change: Change) -> tuple[MapSchema, Write] | None:
        """The opposite, and the schema of the row. Raises DataCorrupted."""
        packing = self._known.get((change.map_id, change.schema_version))
        if packing is None:
            return None
        try:
            key, row, ttl = packing.keys.unpack(change.key), None, None
            if change.row is not None:
                row, ttl = _unpack_row(packing.rows, change.row)
            write = Write(change.map_id, change.schema_version, key, row, ttl)
            return packing.schema, write
        except ProtocolError as problem:
            raise DataCorrupted(f"a change in the log cannot be read: {problem.message}") from None


def _pack_row(rows: RowPacker, row: Row, ttl: int | None) -> bytes:
    """A byte, 1 for one that does not last: then how long it does, in microseconds."""
    packed = rows.pack(row)
    return b"\x01" + _ttl.pack(ttl) + packed if ttl else b"\x00" + packed


def _unpack_row(rows: RowPacker, data: bytes) -> tuple[Row, int | None]:
    if data[:1] == b"\x00":
        return rows.unpack(data[1:]), None
    if data[:1] != b"\x01" or len(data) < 1 + _ttl.size:
        raise ProtocolError("a row of the log begins with neither 0 nor 1")
    return rows.unpack(data[1 + _ttl.size :]), int(_ttl.unpack_from(data, 1)[0])


def encode_batch(batch: pa.RecordBatch, bounds: tuple[int, int] | None = None) -> pa.Buffer:
    """``bounds``: low and floor of versions of rows, see ``storage.maps.transfer``."""
    schema = batch.schema.remove_metadata()
    if bounds is not None:
        schema = schema.with_metadata({BOUNDS: " ".join(map(str, bounds)).encode()})
    return arrow_stream.encode_buffer(schema, [batch.replace_schema_metadata(schema.metadata)])


def decode_batches(data: bytes) -> tuple[list[pa.RecordBatch], tuple[int, int]]:
    """The batches, and their bounds. Raises DataCorrupted."""
    try:
        batches = arrow_stream.decode(data)
        metadata = batches[0].schema.metadata if batches else None
        low, floor = map(int, (metadata or {}).get(BOUNDS, b"0 0").split())
    except (ProtocolError, ValueError) as problem:
        raise DataCorrupted(f"rows in the log cannot be read: {problem}") from problem
    return [batch.replace_schema_metadata(None) for batch in batches], (low, floor)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices that fit into a record. A single row always does: it came in a frame."""
    rows, size = batch.num_rows, max(batch.nbytes, 1)
    if size <= RECORD_SIZE or rows <= 1:
        yield batch
        return
    half = rows // 2
    yield from pieces(batch.slice(0, half))
    yield from pieces(batch.slice(half))


def key_columns(batch: pa.RecordBatch, schema: MapSchema) -> pa.RecordBatch:
    wanted = engine_schema(schema)
    positions = list(schema.key_positions)
    return pa.RecordBatch.from_arrays(
        [batch.column(position) for position in positions],
        schema=pa.schema([wanted.field(position) for position in positions]),
    )
