"""Atomic writes of one statement or request: staged on the owners, committed at one timestamp."""

from __future__ import annotations

import pyarrow as pa

from remuda.datatypes.conformance import check_batch
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.member import arrow_stream
from remuda.member.commits import Commits, Work
from remuda.member.core import Core
from remuda.member.peers import Peers
from remuda.member.routing import Router
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

TASK = "0:0"


class StagedWrite:
    """Rows gathered by this member. ``add`` any number of times, then ``commit`` or ``abort``."""

    def __init__(self, core: Core, peers: Peers, commits: Commits, schema: MapSchema) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._schema = schema
        self._router = Router(schema)
        self._sequences: dict[int, int] = {}
        self.job = commits.new_job()
        if schema.replicated:
            core.require_all_alive()

    async def add(self, batch: pa.RecordBatch) -> None:
        """Stage the rows (engine form) on their owners. Raises what ``check_batch`` finds."""
        check_batch(batch, self._schema)
        if not batch.num_rows:
            return
        parts = self._router.split(batch, self._core.view, self._core.live_members())
        for member, part in parts.items():
            sequence = self._sequences.get(member, 0)
            self._sequences[member] = sequence + 1
            await self._stage(member, sequence, part)

    async def _stage(self, member: int, sequence: int, batch: pa.RecordBatch) -> None:
        schema = self._schema
        if member == self._core.number:
            self._commits.staging(self.job, schema)
            store = self._core.store(schema.map_id, schema.version)
            store.stage(self.job, TASK, sequence, batch)
            return
        message = control_pb2.StageRows(
            context=self._core.context(),
            job=self.job,
            task=TASK,
            map_id=schema.map_id,
            schema_version=schema.version,
            sequence=sequence,
        )
        body = arrow_stream.encode(batch.schema, [batch])
        await self._peers.request(member, RpcType.STAGE_ROWS, message, [body])

    async def commit(
        self,
        *,
        insert_only: bool = False,
        removed_keys: tuple[tuple[PhysicalValue, ...], ...] = (),
        in_turn: bool = False,
    ) -> int:
        """The number of entries written or removed."""
        schema = self._schema
        participants = (
            self._core.live_members() if schema.replicated else tuple(sorted(self._sequences))
        )
        if not participants:
            return 0
        work = Work(
            job=self.job,
            schema=schema,
            tasks=(TASK,),
            insert_only=insert_only,
            removed_keys=removed_keys,
        )
        commit = self._commits.commit_in_turn if in_turn else self._commits.commit
        rows = await commit(work, participants)
        return rows // len(participants) if schema.replicated else rows

    def abort(self) -> None:
        self._commits.drop(self.job, tuple(self._sequences))


def on_stage_rows(core: Core, commits: Commits, request: Request) -> None:
    """The owner's side of ``StagedWrite.add``."""
    message = control_pb2.StageRows.FromString(request.pbody)
    core.observe_member(message.context)
    store = core.store(message.map_id, message.schema_version)
    commits.staging(message.job, store.schema)
    for batch in arrow_stream.decode(request.dbody):
        check_batch(batch, store.schema)
        store.stage(message.job, message.task, message.sequence, batch)
    request.reply(RpcType.ACK, common_pb2.Ack(ok=True))
