"""Restoring a cut that is an increment: a member replays a log (``snapshot.replay``) and writes the
rows to the owners of the new maps."""

from __future__ import annotations

from functools import partial

from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.commits import Commits
from remuda.member.snapshots.repeated_requests import RepeatedRequests
from remuda.member.snapshots.restored import write_restored
from remuda.member.snapshots.rows import REQUEST_TIMEOUT
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.snapshot.replay import replayed


class SnapshotReplays:
    def __init__(
        self, core: Core, peers: Peers, commits: Commits, storage: SnapshotStorage
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._storage = storage
        self._repeated = RepeatedRequests(core)

    async def replay(
        self, member: int, message: control_pb2.SnapshotReplay
    ) -> control_pb2.SnapshotWritten:
        """Have ``member`` replay a log; how many rows it has written."""
        if member == self._core.number:
            return await self._replay(message)
        reply = await self._peers.request(
            member, RpcType.SNAPSHOT_REPLAY, message, timeout=REQUEST_TIMEOUT, repeated=True
        )
        answer = control_pb2.SnapshotWritten.FromString(reply.pbody)
        self._core.observe(answer.context)
        return answer

    def on_replay(self, request: Request) -> None:
        message = control_pb2.SnapshotReplay.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._repeated.serve(request, partial(self._replay, message))

    async def _replay(self, message: control_pb2.SnapshotReplay) -> control_pb2.SnapshotWritten:
        core = self._core
        found = await self._storage.work(lambda store, key: replayed(store, key, message))
        rows = passing = 0
        for each in message.maps:
            schema = core.store(each.map_id, each.schema_version).schema
            batches = found.get(each.old_id, [])
            aside = self._storage.aside
            await write_restored(core, self._peers, self._commits, schema, batches, aside=aside)
            rows += sum(batch.rows for batch in batches)
            passing += sum(batch.passing for batch in batches)
        return control_pb2.SnapshotWritten(context=core.context(), rows=rows, passing=passing)
