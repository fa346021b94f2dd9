"""Atomic writes of one statement or request: staged on the owners, committed at one timestamp."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.conformance import of_keys
from remuda.datatypes.gathering import Gathering
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import NOBODY, View
from remuda.errors import MemberUnavailable, ViewChanged
from remuda.limits import BACKUPS_MAX
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.commits import Commits, Work
from remuda.member.commits.participants import CommitParticipants
from remuda.member.state.routing import Router, Share
from remuda.rpc import arrow_stream
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging.row_ends import with_ends, without_ends

TASK = "0:0"
VIEW_TIME = 5.0
"""Seconds after which two members should be in the same view."""
PAUSE = 0.02
ORIGIN_SHIFT = 64
ATTEMPTS = 8
SEARCHED_MAX = 512
"""A transaction looks for the values of unique indexes of each of so many rows; more are written in
bulk."""
PAGE_ROWS = 4096
PAGE_BYTES = 1 << 20
"""A page of this size is worth its round trips."""

Written = TypeVar("Written")


class Aside(Protocol):
    async def __call__(self, work: Callable[[], Written]) -> Written:
        """What ``work`` gives or raises, off the loop."""


async def _at_once(work: Callable[[], Written]) -> Written:
    return work()


async def through_views(write: Callable[[int], Awaitable[Written]]) -> Written:
    """``write(attempt)`` stages rows and commits them; again when partitions have moved meanwhile,
    after which nothing of it is left. Raises ViewChanged after ``ATTEMPTS``."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return await write(attempt)
        except ViewChanged:
            await asyncio.sleep(PAUSE * (attempt + 1))
    return await write(ATTEMPTS - 1)


async def gathered(
    pages: AsyncGenerator[pa.RecordBatch], rows_enough: int = PAGE_ROWS, enough: int = PAGE_BYTES
) -> AsyncGenerator[pa.RecordBatch]:
    """The same rows, with small pages put together: staging a page takes a round trip to the owners
    and another one to their backups, however few rows it has. ``enough`` are bytes."""
    gathering = Gathering(rows_enough, enough)
    async with contextlib.aclosing(pages):
        async for page in pages:
            found = gathering.add(page)
            if found is not None:
                yield found
    rest = gathering.rest()
    if rest is not None:
        yield rest


class StagedWrite:
    """Rows gathered by this member. ``add`` any number of times, then ``commit`` or ``abort``.
    ``aside`` is where rows are cut into shares and encoded, if not on the loop."""

    def __init__(
        self,
        core: Core,
        peers: Peers,
        commits: Commits,
        schema: MapSchema,
        aside: Aside | None = None,
    ) -> None:
        self._aside = aside or _at_once
        self._core = core
        self._peers = peers
        self._commits = commits
        self._schema = schema
        self._router = Router(schema)
        self._sequences: dict[int, int] = {}
        self._primaries: set[int] = set()
        self._partitions: set[int] = set()
        self._wrote = False
        """Rows, not only removals, were staged."""
        self.job = commits.new_job()
        if schema.replicated:
            core.require_all_reached()

    @property
    def schema(self) -> MapSchema:
        return self._schema

    @property
    def empty(self) -> bool:
        """Whether nothing was staged: there is nothing to commit then."""
        return not self._primaries and not (self._schema.replicated and self._sequences)

    async def add(self, batch: pa.RecordBatch, ends: npt.NDArray[np.int64] | None = None) -> None:
        """Stage the rows (engine form) on their owners; ``ends``: when each ends by itself. Raises
        the errors of ``Constraints.check``."""
        core = self._core
        batch = core.constraints.with_row_ids(batch, self._schema, core.number)
        core.constraints.check(batch, self._schema)
        if not batch.num_rows:
            return
        self._wrote = True
        await self._stage_all(with_ends(batch, ends), removal=False)

    async def remove(self, keys: Sequence[pa.Array]) -> None:
        """Stage the removal of the rows with these keys (key columns in engine form)."""
        batch = of_keys(keys, self._schema)
        if not batch.num_rows:
            return
        await self._stage_all(batch, removal=True)

    async def _stage_all(self, batch: pa.RecordBatch, *, removal: bool) -> None:
        """On every copy: the primaries' first, which may refuse the rows."""
        core = self._core
        core.wal.require_room()
        view, members = core.view, core.live_members()
        shares, partitions = await self._aside(lambda: self._router.shares(batch, view, members))
        if core.view.absent:
            for partition in partitions:
                core.require_alive(core.view.owners[partition])
        self._partitions |= partitions
        self._primaries.update(share.member for share in shares if not share.backup)
        for backup in (False, True):
            await self._stage_each([s for s in shares if s.backup == backup], removal=removal)

    async def _stage_each(self, shares: Sequence[Share], *, removal: bool) -> None:
        """All at a time; returns when each has answered, so that none arrives after an abort."""
        if len(shares) == 1:
            await self._stage(shares[0], removal=removal)
            return
        staged = [self._stage(share, removal=removal) for share in shares]
        for outcome in await asyncio.gather(*staged, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _stage(self, share: Share, *, removal: bool) -> None:
        schema, member, batch = self._schema, share.member, share.batch
        sequence = self._sequences.get(member, 0)
        self._sequences[member] = sequence + 1
        if member == self._core.number:
            self._commits.staging(self.job, schema)
            store = store_of(self._core, schema.map_id, schema.version, backup=share.backup)
            self._core.room.admit_rows(schema, batch, primary=not share.backup, removal=removal)
            stage = store.stage_removals if removal else store.stage
            stage(self.job, TASK, sequence, batch)
            note = self._core.wal.staged_keys if removal else self._core.wal.staged
            note(self.job, TASK, schema, batch, backup=share.backup)
            return
        message = control_pb2.StageRows(
            context=self._core.context(),
            job=self.job,
            task=TASK,
            map_id=schema.map_id,
            schema_version=schema.version,
            sequence=sequence,
            removal=removal,
            backup=share.backup,
            origin=origin(self._core.number, share),
        )
        if removal:
            batch = batch.select(list(schema.key_positions))
        body = await self._aside(lambda: arrow_stream.encode(batch.schema, [batch]))
        await stage_there(self._core, self._peers, member, message, body)

    async def commit(
        self,
        *,
        insert_only: bool = False,
        removed_keys: tuple[tuple[PhysicalValue, ...], ...] = (),
        in_turn: bool = False,
        unchanged_since: int | None = None,
        ttl: int | None = None,
    ) -> int:
        """The number of entries written, and of ``removed_keys`` removed. Raises UniqueViolation
        and the errors of ``Commits.commit``."""
        core, schema = self._core, self._schema
        unique = self._wrote and bool(schema.uniques)
        participants = core.live_members() if schema.replicated else tuple(sorted(self._primaries))
        if not participants:
            return 0
        if unique and not schema.replicated:
            core.require_all_reached()
            participants = owners(core.view)
        work = Work(
            job=self.job,
            schema=schema,
            tasks=(TASK,),
            insert_only=insert_only,
            removed_keys=removed_keys,
            unchanged_since=unchanged_since,
            ttl=ttl,
            unique=unique,
        )
        commit = self._commits.commit_in_turn if in_turn else self._commits.commit
        rows = await commit(work, participants, None if unique else self._partitions)
        return rows // len(participants) if schema.replicated else rows

    def abort(self) -> None:
        self._commits.drop(self.job, tuple(self._sequences))


def owners(view: View) -> tuple[int, ...]:
    """The members that are the primary of a partition."""
    return tuple(sorted(set(view.owners) - {NOBODY}))


def origin(sender: int, share: Share) -> int:
    """Whose numbers the batches of a backup have."""
    return sender * (BACKUPS_MAX + 1) + share.level if share.backup else 0


def store_of(core: Core, map_id: int, version: int, *, backup: bool) -> MapStore:
    """Where rows of a job are staged. Raises SchemaChanged."""
    store = core.store(map_id, version)
    return core.backup_store(map_id) if backup else store


async def stage_there(
    core: Core, peers: Peers, member: int, message: control_pb2.StageRows, body: pa.Buffer
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
    """The owner's side of ``StagedWrite.add``; rows of clients' jobs are for ``of_jobs``."""
    message = control_pb2.StageRows.FromString(request.pbody)
    if message.HasField("writer"):
        of_jobs(request, message)
        return
    core.observe_member(message.context)
    core.wal.require_room()
    store = store_of(core, message.map_id, message.schema_version, backup=message.backup)
    commits.staging(message.job, store.schema)
    sequence = message.sequence + (message.origin << ORIGIN_SHIFT)
    batches = arrow_stream.decode(request.dbody)
    stream = pa.py_buffer(request.dbody) if len(batches) == 1 else None
    for batch in batches:
        core.room.admit_rows(
            store.schema, batch, primary=not message.backup, removal=message.removal
        )
        if message.removal:
            keys = of_keys(batch.columns, store.schema)
            if store.stage_removals(message.job, message.task, sequence, keys):
                core.wal.staged_keys(
                    message.job, message.task, store.schema, keys, backup=message.backup
                )
        else:
            core.constraints.check(without_ends(batch, len(store.schema.columns)), store.schema)
            if store.stage(message.job, message.task, sequence, batch):
                core.wal.staged(
                    message.job,
                    message.task,
                    store.schema,
                    batch,
                    backup=message.backup,
                    stream=stream,
                )
    core.wal.after(lambda: request.reply(RpcType.ACK, common_pb2.Ack(ok=True)))
