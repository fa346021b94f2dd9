"""The work of members for a snapshot that another one (or this one) makes or restores: rows of
their partitions at one timestamp become an object, rows of an object go into a map.

Both are asked for object by object, again and again until there is an answer, and a member keeps no
more than its last answers: when the coordinator is lost, nothing is left but an object that no
manifest names.
"""

from __future__ import annotations

from functools import partial

from remuda.errors import (
    DuplicateObject,
    SnapshotTooOld,
    TransientError,
    ViewChanged,
)
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.commits import Commits
from remuda.member.snapshots.repeated_requests import RepeatedRequests
from remuda.member.snapshots.restored import write_restored
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.snapshot.rows import object_of, read_rows, write_rows
from remuda.storage.maps.transfer import ALWAYS

REQUEST_TIMEOUT = 300.0
"""Seconds for one object: it may wait for prepared writes, and for a slow store."""


class SnapshotRows:
    def __init__(
        self, core: Core, peers: Peers, commits: Commits, storage: SnapshotStorage
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._storage = storage
        self._repeated = RepeatedRequests(core)

    # --- for whoever coordinates --------------------------------------------------------------

    async def write(
        self, member: int, message: control_pb2.SnapshotWrite
    ) -> control_pb2.SnapshotWritten:
        """Have ``member`` make an object."""
        if member == self._core.number:
            return await self._write(message)
        reply = await self._peers.request(
            member, RpcType.SNAPSHOT_WRITE, message, timeout=REQUEST_TIMEOUT, repeated=True
        )
        return self._answer(reply.pbody)

    async def read(
        self, member: int, message: control_pb2.SnapshotRead
    ) -> control_pb2.SnapshotWritten:
        """Have ``member`` read an object into a map."""
        if member == self._core.number:
            return await self._read(message)
        reply = await self._peers.request(
            member, RpcType.SNAPSHOT_READ, message, timeout=REQUEST_TIMEOUT, repeated=True
        )
        return self._answer(reply.pbody)

    def _answer(self, pbody: bytes) -> control_pb2.SnapshotWritten:
        answer = control_pb2.SnapshotWritten.FromString(pbody)
        self._core.observe(answer.context)
        return answer

    # --- requests of others -------------------------------------------------------------------

    def on_write(self, request: Request) -> None:
        message = control_pb2.SnapshotWrite.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._repeated.serve(request, partial(self._write, message))

    def on_read(self, request: Request) -> None:
        message = control_pb2.SnapshotRead.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._repeated.serve(request, partial(self._read, message))

    # --- rows into an object ------------------------------------------------------------------

    async def _write(self, message: control_pb2.SnapshotWrite) -> control_pb2.SnapshotWritten:
        """As a scan at ``at`` reads (design rules 14 to 16): by the primary, when the clock is past
        it and nothing that was prepared at or below it is undecided."""
        core, view, at = self._core, self._core.view.number, message.at
        core.observe_clock(at)
        await core.until_ready()
        await self._commits.settled(message.map_id, at)
        core.require_lease()
        self._require_view(view)
        store = core.store(message.map_id, message.schema_version)
        if at < store.floor:
            raise SnapshotTooOld(
                f'versions of map "{store.schema.name}" that the snapshot needs were collected',
                hint="Try again; if it happens again, the members are short of memory or of time.",
            )
        extraction = store.extraction(frozenset(message.partitions), ALWAYS, at)
        extraction.later_ends = True
        try:
            put = await self._storage.work(
                lambda store, key: write_rows(store, key, message, extraction)
            )
        except DuplicateObject as error:  # of an attempt that was given up: the next one has others
            raise TransientError(error.message, detail=error.detail) from error
        core.require_lease()
        self._require_view(view)
        answer = control_pb2.SnapshotWritten(context=core.context())
        if put is not None:
            answer.key, answer.sha256, answer.size, answer.rows = (
                put.key,
                put.sha256,
                put.size,
                put.rows,
            )
        return answer

    def _require_view(self, number: int) -> None:
        if self._core.view.number != number:
            raise ViewChanged("partitions were moved while their rows were written to a snapshot")

    # --- rows out of an object ----------------------------------------------------------------

    async def _read(self, message: control_pb2.SnapshotRead) -> control_pb2.SnapshotWritten:
        """Rows that are there already are replaced by themselves: an object may be read twice."""
        core, wanted = self._core, object_of(message)
        schema = core.store(message.map_id, message.schema_version).schema
        found = await self._storage.work(lambda store, key: read_rows(store, key, wanted, schema))
        aside = self._storage.aside
        await write_restored(core, self._peers, self._commits, schema, found, aside=aside)
        return control_pb2.SnapshotWritten(
            context=core.context(),
            key=wanted.key,
            rows=wanted.rows,
            passing=sum(each.passing for each in found),
        )
