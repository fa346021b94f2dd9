"""Rows of snapshots: read from objects, cut into pieces, and written as objects.

An entry that ends by itself keeps the moment at which it does. So one that is over by now is not
restored, whatever moment the others are restored as of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.hashes.keyhash import hash_arrays, partitions_of
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import EXPIRY_MARK, FOREVER, LOGICAL_BITS
from remuda.errors import DataCorrupted
from remuda.limits import MIB
from remuda.rpc.messages import control_pb2
from remuda.storage.chunks.chunk import CHUNK_ROWS_MAX
from remuda.storage.format.manifest import DataObject
from remuda.storage.format.rows_object import OWN_COLUMNS, decode_rows, with_times
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.maps.transfer import Extraction
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import fetch
from remuda.storage.snapshot.writing import put_rows

STAGED_ROWS = CHUNK_ROWS_MAX
STAGED_SIZE = 16 * MIB
"""Rows, and bytes of them, that go to their owners at a time: a chunk of the cut is a chunk
again, and rows for another member fit into a frame."""

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RestoredRows:
    """``ends``: when each row ends by itself; None: all live on."""

    batch: pa.RecordBatch
    ends: Times | None = None

    @property
    def rows(self) -> int:
        count: int = self.batch.num_rows
        return count

    @property
    def passing(self) -> int:
        """Rows that will end by themselves."""
        return 0 if self.ends is None else int((self.ends != FOREVER).sum())

    def after(self, now: int) -> RestoredRows:
        """Without the rows that are over."""
        if self.ends is None or bool((there := self.ends > now).all()):
            return self
        return RestoredRows(self.batch.filter(pa.array(there)), self.ends[there])

    def slices(self) -> Iterator[RestoredRows]:
        width = self.batch.nbytes // max(self.rows, 1) + 1
        rows = max(1, min(STAGED_ROWS, STAGED_SIZE // width))
        if self.rows <= rows:
            yield self
            return
        for start in range(0, self.rows, rows):
            ends = None if self.ends is None else self.ends[start : start + rows]
            yield RestoredRows(self.batch.slice(start, rows), ends)


def own_ends(begins: Times, ends: Times, ttl: int) -> Times:
    """When rows that existed at a moment end by themselves. A row that was ended after that
    moment would have lived as the map says, ``ttl`` microseconds (0: for ever): whether it had a
    time of its own is not known any more."""
    written = (ends & EXPIRY_MARK) != EXPIRY_MARK
    if not written.any():
        return ends
    return np.where(written, _expiries(begins, ttl), ends)


def _expiries(begins: Times, ttl: int) -> Times:
    """``datatypes.timestamp.expiry`` of many."""
    if not ttl:
        return np.full(len(begins), FOREVER, dtype=np.int64)
    return (begins | EXPIRY_MARK) + (ttl << LOGICAL_BITS)


def restored_rows(batch: pa.RecordBatch, ends: Times) -> RestoredRows:
    return RestoredRows(batch, None if bool((ends == FOREVER).all()) else ends)


def object_of(message: control_pb2.SnapshotRead) -> DataObject:
    stored = message.object
    return DataObject(stored.key, stored.sha256, stored.size, stored.rows, 0, 0, ())


def read_rows(
    store: ObjectStore, key: ObjectKey | None, wanted: DataObject, schema: MapSchema
) -> list[RestoredRows]:
    """The rows of an object as the map ``schema`` has them, in the pieces in which they were
    written: nothing is copied. Raises DataCorrupted unless it is the object of the manifest,
    UndefinedObject. Any thread."""
    table = decode_rows(fetch(store, wanted, key))
    if table.num_rows != wanted.rows:
        raise DataCorrupted(
            f"object {wanted.key} has {table.num_rows} rows; the manifest says {wanted.rows}"
        )
    columns, own = engine_schema(schema), len(OWN_COLUMNS)
    types, names = table.schema.types[own:], table.schema.names[own:]
    if types != columns.types or names != columns.names:
        raise DataCorrupted(
            f'object {wanted.key} has other columns than map "{schema.name}"',
            detail=f"{names}; the catalog of the snapshot has {columns.names}",
        )
    return [
        restored_rows(
            pa.RecordBatch.from_arrays(batch.columns[own:], schema=columns),
            batch.column(own - 1).to_numpy(),
        )
        for batch in table.to_batches()
    ]


def write_rows(
    store: ObjectStore,
    key: ObjectKey | None,
    message: control_pb2.SnapshotWrite,
    extraction: Extraction,
) -> DataObject | None:
    """Put the rows that exist at ``message.at``; None when there are none. Any thread."""
    schema, at = extraction.schema, message.at
    batches: list[pa.RecordBatch] = []
    for versions in extraction.versions():
        there = versions.ends > at
        batch, begins = versions.batch, versions.begins
        ends = own_ends(begins, versions.ends, schema.options.ttl)
        if not there.all():
            if not there.any():
                continue
            batch, begins, ends = batch.filter(pa.array(there)), begins[there], ends[there]
        assert int(begins.max()) <= at
        batches.append(with_times(batch, _partitions(schema, batch), begins, ends))
    if not batches:
        return None
    return put_rows(
        store,
        message.snapshot,
        message.cut,
        map_id=message.map_id,
        schema_version=message.schema_version,
        group=message.group,
        partitions=message.partitions,
        batches=batches,
        schema=batches[0].schema,
        key=key,
    )


def _partitions(schema: MapSchema, batch: pa.RecordBatch) -> npt.NDArray[np.uint16]:
    """The partition of each row."""
    places = schema.partition_positions
    arrays = [batch.column(place) for place in places]
    return partitions_of(hash_arrays(arrays, [schema.columns[place].type for place in places]))
