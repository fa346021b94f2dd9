"""The rows of a cut that is an increment: the base's rows of one log's partitions, and the records
of the log behind them.

A log's partitions are those that its member was the primary of in the cut's view. A replay makes a
store of them for each map, as a member does that starts again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.errors import DataCorrupted
from remuda.limits import PARTITIONS
from remuda.rpc.messages import control_pb2
from remuda.snapshot.catalog import read_catalog, read_versions
from remuda.snapshot.log_replay import Restored, commit_job, commit_part, take_catalog
from remuda.snapshot.rows import RestoredRows, restored_rows
from remuda.storage.format import records as log
from remuda.storage.format.manifest import DataObject, MemberLog, SegmentObject
from remuda.storage.format.rows_object import OWN_COLUMNS, decode_rows, partitions_and_times
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.log.replay import JobCommit, PartCommit
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, EVERY_PARTITION, Versions
from remuda.storage.snapshot.archive import LogPiece
from remuda.storage.snapshot.chain import Target, load
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import Archived, RestorePlan, fetch

Batches = list[RestoredRows]


def replayed(
    store: ObjectStore, key: ObjectKey | None, message: control_pb2.SnapshotReplay
) -> Mapping[int, Batches]:
    """The rows of the wanted maps in one log's partitions, as they were at the moment. Raises
    DataCorrupted, InputError. Any thread."""
    path = path_of(store, message)
    member_log = path.cut.log_of(message.log_identity)
    if member_log is None:
        raise DataCorrupted(f"cut {message.cut} has no log {message.log_identity}")
    stores = stores_of(store, key, path, member_log, [each.old_id for each in message.maps])
    partitions = partitions_of(member_log)
    return {map_id: _rows(each, message.moment, partitions) for map_id, each in stores.items()}


def path_of(store: ObjectStore, message: control_pb2.SnapshotReplay) -> RestorePlan:
    """Raises InputError, UndefinedObject."""
    known = load(store, message.snapshot)
    target = Target(message.cut, message.moment)
    if not message.finish:
        return RestorePlan(target, tuple(known.path(message.cut, message.moment)))
    segments = tuple(
        SegmentObject(s.key, s.sha256, s.size, s.number, s.first, s.last) for s in message.archived
    )
    archived = Archived({message.log_identity: LogPiece(segments, message.finish)})
    return RestorePlan(target, tuple(known.path(message.cut)), archived)


def partitions_of(member_log: MemberLog) -> frozenset[int]:
    """Without the mark of the log that has the replicated maps."""
    return frozenset(place for place in member_log.partitions if place < PARTITIONS)


def stores_of(
    store: ObjectStore,
    key: ObjectKey | None,
    path: RestorePlan,
    member_log: MemberLog,
    maps: Collection[int],
) -> Mapping[int, MapStore]:
    """Stores of the wanted maps with what ``path`` leads to in the partitions of ``member_log``,
    which may be some of those of the log only. Raises DataCorrupted."""
    made = _begun(path, member_log, maps)
    partitions = partitions_of(member_log)
    for each in path.base.data:
        if each.map_id in made.stores:
            held = made.stores[each.map_id]
            if held.schema.replicated or partitions & set(each.partitions):
                _take_base(held, fetch(store, each, key), each)
    for step in path.steps(store, member_log, key):
        match step:
            case PartCommit(part=part, timestamp=timestamp, changes=changes):
                wanted = tuple(change for change in changes if change.map_id in made.stores)
                commit_part(made, log.Committed(part, timestamp, step.partitions, wanted))
            case JobCommit() as job:
                _take_job(made, job)
            case log.CatalogChanged(edits=state) if path.archived is not None:
                take_catalog(made, state)
                _keep(made, member_log, maps)
            case _:
                pass  # the catalog is that of the cut; partitions have not moved since the base
    return made.stores


def _begun(path: RestorePlan, member_log: MemberLog, maps: Collection[int]) -> Restored:
    """Empty stores of the wanted maps. One log has the replicated ones for all."""
    made = Restored(catalog=read_catalog(path.cut.catalog))
    for text in {path.base.catalog, path.cut.catalog}:
        made.packings.learn(read_versions(text))
    made.stores.update({schema.map_id: MapStore(schema) for schema in made.catalog.maps})
    _keep(made, member_log, maps)
    return made


def _keep(made: Restored, member_log: MemberLog, maps: Collection[int]) -> None:
    """The stores of the wanted maps, as far as this log speaks for them."""
    whole = any(place >= PARTITIONS for place in member_log.partitions)
    for map_id, store in list(made.stores.items()):
        if map_id not in maps or (store.schema.replicated and not whole):
            del made.stores[map_id]


def _take_base(store: MapStore, data: bytes, wanted: DataObject) -> None:
    schema = store.schema
    if wanted.schema_version != schema.version:
        raise DataCorrupted(
            f'map "{schema.name}" was altered between the base and the cut',
            hint="Restore the base, or a cut before the map was altered.",
        )
    table = decode_rows(data)
    _, begins, ends = partitions_and_times(table)
    columns = engine_schema(schema)
    rows = table.select(table.column_names[len(OWN_COLUMNS) :]).combine_chunks()
    if rows.schema.types != columns.types or rows.schema.names != columns.names:
        raise DataCorrupted(f'object {wanted.key} has other columns than map "{schema.name}"')
    arrays = [
        column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for column in rows.columns
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=columns)
    if batch.num_rows:
        store.install(store.arrival([Versions(schema, batch, begins, ends)]))


def _take_job(made: Restored, job: JobCommit) -> None:
    if job.map_id not in made.stores:
        return
    tasks = tuple(dict.fromkeys(rows.task for rows in job.rows))
    made.jobs[job.job] = log.JobPrepared(
        job.job,
        job.timestamp,
        job.map_id,
        tasks,
        job.overwrite,
        job.participants,
        job.ttl,
    )
    made.staged[job.job] = list(job.rows)
    commit_job(made, job.job, job.timestamp)


def _rows(store: MapStore, moment: int, partitions: frozenset[int]) -> Batches:
    if store.schema.replicated:
        partitions = EVERY_PARTITION
    found: Batches = []
    for versions in store.extraction(partitions, ALWAYS, moment).versions():
        there = versions.ends > moment
        if there.any():
            batch = versions.batch.filter(pa.array(there))
            found.append(restored_rows(batch, versions.ends[there]))
    return found
