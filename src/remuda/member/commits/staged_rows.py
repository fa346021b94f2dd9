"""Rows of a write on their way to the copies of their partitions, and their arrival there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from remuda.datatypes.conformance import of_keys
from remuda.datatypes.schema import MapSchema
from remuda.errors import MemberUnavailable, RemudaError, ViewChanged
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.participants import Answered, CommitParticipants
from remuda.member.state.routing import Share
from remuda.rpc import arrow_stream, codec
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging.row_ends import without_ends

TASK = "0:0"
VIEW_TIME = 5.0
"""Seconds after which two members should be in the same view."""
PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class RowsOfMember:
    """Rows of a job for one member, to be staged there. Removals: of which only the keys count."""

    job: str
    schema: MapSchema
    share: Share
    sequence: int = 0
    removal: bool = False

    def message(self, core: Core) -> control_pb2.StageRows:
        return control_pb2.StageRows(
            context=core.context(),
            job=self.job,
            task=TASK,
            map_id=self.schema.map_id,
            schema_version=self.schema.version,
            sequence=self.sequence,
            removal=self.removal,
            primaries=self.share.primaries,
        )

    def encoded(self) -> memoryview:
        batch = self.share.batch
        if self.removal:
            batch = batch.select(list(self.schema.key_positions))
        return arrow_stream.encode(batch.schema, [batch])


async def stage_there(
    core: Core, peers: Peers, member: int, message: control_pb2.StageRows, body: memoryview
) -> None:
    """Stage rows on another member, also while a view comes. Raises what it refuses them with;
    nothing is written yet, whatever it raises."""
    deadline = core.world.clock.monotonic() + VIEW_TIME
    while True:
        core.require_reached(member)
        try:
            await peers.request(member, RpcType.STAGE_ROWS, message, [body])
        except MemberUnavailable:
            core.require_reached(member)  # it may just have been lost
            raise
        except ViewChanged:
            if core.world.clock.monotonic() > deadline:
                raise
            await asyncio.sleep(PAUSE)
            message.context.CopyFrom(core.context())
        else:
            return


def on_stage_rows(
    core: Core,
    commits: CommitParticipants,
    of_jobs: Callable[[Request, control_pb2.StageRows], None],
    request: Request,
) -> None:
    """A member's side of ``StagedWrite``; rows of clients' jobs are for ``of_jobs``."""
    message = control_pb2.StageRows.FromString(request.pbody)
    if message.HasField("writer"):
        of_jobs(request, message)
        return
    core.observe_member(message.context)

    def stage() -> None:
        core.wal.require_room()
        (batch,) = arrow_stream.decode(request.dbody)
        schema = core.store(message.map_id, message.schema_version).schema
        if message.removal:
            batch = of_keys(batch.columns, schema)
        else:
            core.constraints.check(without_ends(batch, len(schema.columns)), schema)
        stage_here(core, commits, message, batch, stream=pa.py_buffer(request.dbody))

    if message.HasField("prepare"):
        vote = partial(request.reply, RpcType.COMMIT_PREPARE)
        stage_and_prepare(core, commits, message.prepare, stage, vote)
        return
    stage()
    core.wal.after(lambda: request.reply(RpcType.ACK, common_pb2.Ack(ok=True)))


def stage_and_prepare(
    core: Core,
    commits: CommitParticipants,
    asked: control_pb2.CommitPrepare,
    stage: Callable[[], None],
    reply: Answered,
) -> None:
    """Call ``stage`` for the rows that come with the question whether their job can commit here,
    and vote. Rows that cannot be staged refuse the commit. If the question was heard before, its
    rows are here already."""
    if not commits.asked(asked.job):
        try:
            stage()
        except RemudaError as error:
            refusal = codec.encode_error(error)
            reply(control_pb2.CommitPrepared(context=core.context(), refusal=refusal))
            return
    commits.prepare_here(asked, reply)


def stage_here(
    core: Core,
    commits: CommitParticipants,
    message: control_pb2.StageRows,
    batch: pa.RecordBatch,
    stream: pa.Buffer | None = None,
) -> None:
    """Keep the first rows as their primary, and the others as a backup. ``stream``: all of them as
    they came. Raises SchemaChanged, JobAborted, DiskFull and StorageFull."""
    primary = core.store(message.map_id, message.schema_version)
    schema, count = primary.schema, message.primaries
    commits.staging(message.job, schema)
    for backup, rows in ((False, batch.slice(0, count)), (True, batch.slice(count))):
        if not rows.num_rows:
            continue
        whole = rows.num_rows == batch.num_rows
        _keep(
            core,
            core.backup_store(message.map_id) if backup else primary,
            message,
            batch if whole else rows,
            backup=backup,
            stream=stream if whole else None,
        )


def _keep(
    core: Core,
    store: MapStore,
    message: control_pb2.StageRows,
    rows: pa.RecordBatch,
    *,
    backup: bool,
    stream: pa.Buffer | None,
) -> None:
    schema, job, task = store.schema, message.job, message.task
    core.room.admit_rows(schema, rows, primary=not backup, removal=message.removal)
    if message.removal:
        if store.stage_removals(job, task, message.sequence, rows):
            core.wal.staged_keys(job, task, schema, rows, backup=backup)
    elif store.stage(job, task, message.sequence, rows):
        core.wal.staged(job, task, schema, rows, backup=backup, stream=stream)
