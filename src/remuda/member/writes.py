"""Atomic writes of one statement or request: staged on the owners, committed at one timestamp."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from remuda.datatypes.conformance import of_keys
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
        """Stage the rows (engine form) on their owners. Raises what ``Constraints.check`` finds."""
        core = self._core
        batch = core.constraints.with_row_ids(batch, self._schema, core.number)
        core.constraints.check(batch, self._schema)
        if not batch.num_rows:
            return
        parts = self._router.split(batch, self._core.view, self._core.live_members())
        for member, part in parts.items():
            await self._stage(member, part, removal=False)

    async def remove(self, keys: Sequence[pa.Array]) -> None:
        """Stage the removal of the rows with these keys (key columns in engine form)."""
        batch = of_keys(keys, self._schema)
        if not batch.num_rows:
            return
        parts = self._router.split(batch, self._core.view, self._core.live_members())
        for member, part in parts.items():
            await self._stage(member, part, removal=True)

    async def _stage(self, member: int, batch: pa.RecordBatch, *, removal: bool) -> None:
        schema = self._schema
        sequence = self._sequences.get(member, 0)
        self._sequences[member] = sequence + 1
        if member == self._core.number:
            self._commits.staging(self.job, schema)
            store = self._core.store(schema.map_id, schema.version)
            stage = store.stage_removals if removal else store.stage
            stage(self.job, TASK, sequence, batch)
            return
        message = control_pb2.StageRows(
            context=self._core.context(),
            job=self.job,
            task=TASK,
            map_id=schema.map_id,
            schema_version=schema.version,
            sequence=sequence,
            removal=removal,
        )
        if removal:
            batch = batch.select(list(schema.key_positions))
        body = arrow_stream.encode(batch.schema, [batch])
        await self._peers.request(member, RpcType.STAGE_ROWS, message, [body])

    async def commit(
        self,
        *,
        insert_only: bool = False,
        removed_keys: tuple[tuple[PhysicalValue, ...], ...] = (),
        in_turn: bool = False,
        unchanged_since: int | None = None,
    ) -> int:
        """The number of entries written, and of ``removed_keys`` removed."""
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
            unchanged_since=unchanged_since,
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
        if message.removal:
            keys = of_keys(batch.columns, store.schema)
            store.stage_removals(message.job, message.task, message.sequence, keys)
        else:
            core.constraints.check(batch, store.schema)
            store.stage(message.job, message.task, message.sequence, batch)
    request.reply(RpcType.ACK, common_pb2.Ack(ok=True))
