"""Restoring a cut that is an increment: the base's rows of one log's partitions, and what the log
says behind them, become rows of maps.

A log's partitions are those that its member was the primary of in the cut's view. Whoever replays a
log makes a store of them for each map, as a member does that starts again, and writes what is there
in the end to the owners of the new maps.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import DataCorrupted, RemudaError
from remuda.limits import PARTITIONS
from remuda.member.commits import Commits
from remuda.member.core import Core
from remuda.member.peers import Peers
from remuda.member.snapshot_catalog import read_catalog
from remuda.member.snapshot_rows import REQUEST_TIMEOUT
from remuda.member.snapshot_storage import SnapshotStorage
from remuda.member.wal_replay import Restored, commit_job, commit_part
from remuda.member.writes import StagedWrite, through_views
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.format import records as log
from remuda.storage.format.manifest import DataObject, MemberLog
from remuda.storage.format.rows_object import OWN_COLUMNS, decode_rows, partitions_and_times
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.log.replay import JobCommit, PartCommit
from remuda.storage.map_store import MapStore
from remuda.storage.snapshot.chain import Target, load
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import RestorePlan, fetch
from remuda.storage.transfer import Versions

Batches = list[pa.RecordBatch]


class SnapshotReplays:
    def __init__(
        self, core: Core, peers: Peers, commits: Commits, storage: SnapshotStorage
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._storage = storage

    async def replay(self, member: int, message: control_pb2.SnapshotReplay) -> int:
        """Have ``member`` replay a log; the rows that it has written."""
        if member == self._core.number:
            return (await self._replay(message)).rows
        reply = await self._peers.request(
            member, RpcType.SNAPSHOT_REPLAY, message, timeout=REQUEST_TIMEOUT
        )
        answer = control_pb2.SnapshotWritten.FromString(reply.pbody)
        self._core.observe(answer.context)
        return answer.rows

    def on_replay(self, request: Request) -> None:
        message = control_pb2.SnapshotReplay.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._core.serve(request, self._answer(request, message))

    async def _answer(self, request: Request, message: control_pb2.SnapshotReplay) -> None:
        request.reply(RpcType.SNAPSHOT_REPLAY, await self._replay(message))

    async def _replay(self, message: control_pb2.SnapshotReplay) -> control_pb2.SnapshotWritten:
        core = self._core
        found = await self._storage.work(lambda store, key: replayed(store, key, message))
        rows = 0
        for each in message.maps:
            schema = core.store(each.map_id, each.schema_version).schema
            rows += await self._write(schema, found.get(each.old_id, []))
        return control_pb2.SnapshotWritten(context=core.context(), rows=rows)

    async def _write(self, schema: MapSchema, batches: Batches) -> int:
        if not batches:
            return 0

        async def write(_attempt: int) -> int:
            staged = StagedWrite(self._core, self._peers, self._commits, schema)
            try:
                for batch in batches:
                    await staged.add(batch)
                await staged.commit()
            except RemudaError:
                staged.abort()
                raise
            return sum(batch.num_rows for batch in batches)

        return await through_views(write)


def replayed(
    store: ObjectStore, key: ObjectKey | None, message: control_pb2.SnapshotReplay
) -> Mapping[int, Batches]:
    """The rows of the wanted maps in one log's partitions, as they were at the moment. Raises
    DataCorrupted, InputError. Any thread."""
    known = load(store, message.snapshot)
    target = Target(message.cut, message.moment)
    path = RestorePlan(target, tuple(known.path(message.cut, message.moment)))
    member_log = path.cut.log_of(message.log_identity)
    if member_log is None:
        raise DataCorrupted(f"cut {message.cut} has no log {message.log_identity}")
    made = _begun(path, member_log, [each.old_id for each in message.maps])
    partitions = frozenset(place for place in member_log.partitions if place < PARTITIONS)
    for each in path.base.data:
        if each.map_id in made.stores:
            _take_base(made.stores[each.map_id], fetch(store, each, key), each, partitions)
    for step in path.steps(store, member_log, key):
        match step:
            case PartCommit(part=part, timestamp=timestamp, changes=changes):
                wanted = tuple(change for change in changes if change.map_id in made.stores)
                commit_part(made, log.Committed(part, timestamp, step.partitions, wanted))
            case JobCommit() as job:
                _take_job(made, job)
            case _:
                pass  # the catalog is that of the cut; partitions have not moved since the base
    return {map_id: _rows(each, message.moment, partitions) for map_id, each in made.stores.items()}


def _begun(path: RestorePlan, member_log: MemberLog, maps: list[int]) -> Restored:
    """Empty stores of the wanted maps. One log has the replicated ones for all."""
    made = Restored(catalog=read_catalog(path.cut.catalog))
    made.packings.learn(made.catalog.maps)
    whole = any(place >= PARTITIONS for place in member_log.partitions)
    for schema in made.catalog.maps:
        if schema.map_id in maps and (whole or not schema.replicated):
            made.stores[schema.map_id] = MapStore(schema)
    return made


def _take_base(
    store: MapStore, data: bytes, wanted: DataObject, partitions: frozenset[int]
) -> None:
    schema = store.schema
    if not schema.replicated and not partitions & set(wanted.partitions):
        return
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
    schema = store.schema
    cursor = store.scan(
        moment, range(len(schema.columns)), None if schema.replicated else partitions
    )
    found: Batches = []
    while (batch := cursor.next()) is not None:
        found.append(pa.RecordBatch.from_arrays(list(batch.columns), schema=engine_schema(schema)))
    return found
