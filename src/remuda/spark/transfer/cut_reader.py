"""Reading a map as a cut of a snapshot has it: from the objects of the store, without a cluster.

Tasks read what a restore would: the objects of a base, one by one, or, of an increment, the log of
each member behind the base's rows of its partitions. Every machine of Spark must reach the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from remuda.datatypes.arrow import external_schema, to_external
from remuda.datatypes.schema import MapSchema
from remuda.errors import InputError, UndefinedMap
from remuda.rpc.messages import control_pb2
from remuda.snapshot.catalog import read_catalog
from remuda.snapshot.replay import replayed
from remuda.snapshot.rows import read_rows
from remuda.snapshot.store import open_store, read_key
from remuda.spark.transfer.arrow_rows import arrow_schema, check_wanted, exact
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.types import chosen_schema
from remuda.storage.format.manifest import DataObject
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.snapshot.chain import load
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import RestorePlan, plan
from remuda.world import system_world

_MANIFEST: Final = ".manifest"


@dataclass(frozen=True)
class ObjectSlice(InputPartition):
    """Rows of a base."""

    object: DataObject


@dataclass(frozen=True)
class LogSlice(InputPartition):
    """The partitions of one member, as its log leaves them."""

    message: bytes
    """A ``SnapshotReplay``."""


def open_snapshots(options: Options) -> tuple[ObjectStore, ObjectKey | None]:
    """Raises InputError without a store, ResourceError for one that cannot be opened."""
    if not options.store:
        raise InputError(
            "a cut is read from the store of its snapshot, and none is named",
            hint='Set option "store", or REMUDA_SNAPSHOT_STORE: a folder or a URL.',
        )
    world = system_world()
    key = read_key(options.key_file, world) if options.key_file else None
    return open_store(options.store, world), key


def find_cut(store: ObjectStore, options: Options) -> RestorePlan:
    """How to get at the cut that is meant. Raises UndefinedObject, InputError."""
    name = options.snapshot
    if name is None:
        found = sorted({key.partition("/")[0] for key in store.keys("") if _MANIFEST in key})
        if len(found) != 1:
            raise InputError(
                'option "snapshot" must say which snapshot has the cut',
                detail=f"the store has {', '.join(found) or 'none'}",
            )
        name = found[0]
    return plan(load(store, name), version=options.cut)


def map_of(path: RestorePlan, name: str) -> MapSchema:
    """The map as it was at the cut. Raises UndefinedMap, DataCorrupted."""
    maps = read_catalog(path.cut.catalog).shown.maps
    for schema in maps:
        if schema.name == name:
            return schema
    raise UndefinedMap(
        f'cut {path.cut.version} of snapshot {path.cut.name} has no map "{name}"',
        detail=f"it has {', '.join(sorted(schema.name for schema in maps)) or 'none'}",
    )


class CutReader(DataSourceReader):
    """Travels pickled; opens the store anew in each process."""

    def __init__(self, options: Options, wanted: StructType, schema: MapSchema, cut: int) -> None:
        check_wanted(wanted, schema)
        self.options = options
        self.wanted = wanted
        self.schema = schema
        self.cut = cut

    @classmethod
    def open(cls, options: Options, wanted: StructType | None = None) -> CutReader:
        """``wanted``: the columns, by default all that the options leave."""
        assert options.map is not None
        store, _ = open_snapshots(options)
        path = find_cut(store, options)
        schema = map_of(path, options.map)
        if wanted is None:
            wanted = chosen_schema(f"map {schema.name}", schema.columns, options.columns)
        return cls(options, wanted, schema, path.cut.version)

    def partitions(self) -> Sequence[InputPartition]:
        store, _ = open_snapshots(self.options)
        path = plan(load(store, self._snapshot(store)), version=self.cut)
        if len(path.path) == 1:
            return [
                ObjectSlice(each) for each in path.base.data if each.map_id == self.schema.map_id
            ]
        found: list[InputPartition] = []
        for log in path.cut.logs:
            message = control_pb2.SnapshotReplay(
                snapshot=path.cut.name,
                cut=path.cut.version,
                moment=path.target.moment,
                log_identity=log.identity,
            )
            message.maps.add(old_id=self.schema.map_id)
            found.append(LogSlice(message.SerializeToString()))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, ObjectSlice | LogSlice):
            return  # Spark's own, where there is nothing to read
        store, key = open_snapshots(self.options)
        target = arrow_schema(self.wanted)
        for batch in self._rows(partition, store, key):
            yield exact(self._external(batch), target)

    def _rows(
        self, partition: ObjectSlice | LogSlice, store: ObjectStore, key: ObjectKey | None
    ) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, ObjectSlice):
            found = read_rows(store, key, partition.object, self.schema)
        else:
            message = control_pb2.SnapshotReplay.FromString(partition.message)
            found = replayed(store, key, message).get(self.schema.map_id, [])
        for rows in found:
            yield rows.batch

    def _external(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            to_external(array, column.type)
            for array, column in zip(batch.columns, self.schema.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=external_schema(self.schema.columns))

    def _snapshot(self, store: ObjectStore) -> str:
        return self.options.snapshot or find_cut(store, self.options).cut.name
