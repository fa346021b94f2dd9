"""Rows of clients' jobs on their way to every copy, wherever that is by then (design rule 22).

A client sends rows to the members that were the primaries when its job began. The member that gets
a request numbers it: a *frame*. It sends the rows on to the primaries of now; each primary sends
what it gets to its backups, and to whoever is being given a copy, and stages it itself at last. All
of that may be done again: each copy takes each partition of a frame once (``StagedFrames``). When a
view changes who has what, staged rows follow it in one step, without being copied; a member that
has no copy yet gets them beforehand, as part of the move (``send_all``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.conformance import of_keys
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import JobAborted, RemudaError, SchemaChanged, ViewChanged
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.move_pauses import MovePauses
from remuda.member.commits.participants import CommitParticipants
from remuda.member.commits.staged_rows import PAUSE, VIEW_TIME, on_stage_rows
from remuda.member.state.routing import Router
from remuda.rpc import arrow_stream
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging.frames import FramePart, Place, StagedFrames
from remuda.storage.staging.pieces import among, bits, present
from remuda.storage.staging.removals import Removals
from remuda.storage.staging.staging import Staging

WRITER_SHIFT = 64
SEND_TIMEOUT = 60.0
REST = 0.25
"""Seconds of rest for each second of sending what a move brings along."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of one task that one request brought to member ``writer``."""

    job: str
    task: str
    writer: int
    sequence: int
    removal: bool

    @property
    def place(self) -> Place:
        return self.task, (self.writer << WRITER_SHIFT) + self.sequence, self.removal


@dataclass(frozen=True, slots=True)
class _Places:
    """The partitions of each member in a view (bits)."""

    view: View
    mine: int
    backups: dict[int, int]

    @classmethod
    def of(cls, view: View, me: int) -> _Places:
        backups = {number: bits(view.backed_up_by(number)) for number in view.by_number}
        return cls(view, bits(view.partitions_of(me)), backups)


class JobRows(Wing):
    def __init__(self, core: Core, peers: Peers, commits: CommitParticipants) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self.receivers: dict[int, int] = {}
        """Partition -> who is being given a copy of it and must get all rows. Replaced as a whole.
        """
        self.failed: RemudaError | None = None
        """Why a receiver did not take rows: it cannot get its copy."""
        self.promised = False
        """The receivers may be copies at any time: nothing is acknowledged that they lack."""
        self._incoming: Callable[[], Collection[int]] = tuple
        self.on_arrival: list[Callable[[str], None]] = []
        """Called with each job of which rows come from other members."""
        self._arriving: dict[tuple[int, int], StagedFrames] = {}
        """By map and version of its schema: rows of partitions of which this member has no copy
        yet."""
        core.room.counts(lambda: sum(frames.nbytes for frames in self._arriving.values()))
        self._known = _Places.of(core.view, core.number)
        self.pauses = MovePauses(core, peers, self.writes)
        core.listeners.resolved.add(self._resolved)

    def routes(self) -> Routes:
        stage = partial(on_stage_rows, self._core, self._commits, self.on_rows)
        return Routes(
            control={RpcType.STAGE_ROWS: stage, RpcType.MOVES_PAUSE: self.pauses.on_pause}
        )

    def await_copies(self, partitions: Callable[[], Collection[int]]) -> None:
        """``partitions()`` are being given to this member: it keeps rows of them, too."""
        self._incoming = partitions

    # --- a move of partitions -------------------------------------------------------------------

    def copy_to(self, receivers: dict[int, int]) -> None:
        """From now on rows of these partitions go to their receivers as well."""
        self.receivers = receivers

    def promise(self) -> None:
        """The receivers may be copies from now on."""
        self.promised = True

    def copy_no_more(self) -> None:
        """The move has ended."""
        self.receivers, self.promised, self.failed = {}, False, None

    def _places(self) -> _Places:
        """Of the view of now."""
        if self._known.view is not self._core.view:
            self._known = _Places.of(self._core.view, self._core.number)
        return self._known

    # --- on the member that got the request -----------------------------------------------------

    async def take(self, schema: MapSchema, frame: Frame, batch: pa.RecordBatch) -> None:
        """Stage the rows on every copy. Raises ViewChanged when members do not agree on who has
        them for long, MemberUnavailable, JobAborted."""
        core, router = self._core, Router(schema)
        partitions = router.partitions(batch)

        async def attempt() -> None:
            await core.until_ready()
            owners = np.asarray(core.view.owners, dtype=np.int32)[partitions]
            for owner in np.unique(owners).tolist():
                core.require_alive(owner)
                mask = owners == owner
                part = batch if mask.all() else batch.take(pa.array(np.flatnonzero(mask)))
                if owner == core.number:
                    await self._on_copies(schema, frame, part, partitions[mask])
                else:
                    await self._send(owner, schema, frame, part, spread=True)

        await self._through_views(attempt)

    async def _through_views(self, attempt: Callable[[], Awaitable[None]]) -> None:
        deadline = self._core.world.clock.monotonic() + VIEW_TIME
        while True:
            try:
                await attempt()
            except ViewChanged:
                if self._core.world.clock.monotonic() > deadline:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                return

    # --- on the primary -------------------------------------------------------------------------

    async def _on_copies(
        self,
        schema: MapSchema,
        frame: Frame,
        batch: pa.RecordBatch,
        partitions: npt.NDArray[np.uint16],
    ) -> None:
        """Backups and receivers first; then here, in the step in which nobody else must have them:
        a member that is given the partition from then on finds them here. ``partitions``: of the
        rows. Raises ViewChanged."""
        core, has = self._core, present(partitions)
        size = core.room.require_rows(schema, batch, primary=True, removal=frame.removal)
        with core.room.under_way(size):
            await self._on_others(schema, frame, batch, partitions)
            store = core.store(schema.map_id, schema.version)
            self._stage(store, schema, frame, batch, has, backup=False)
            core.room.admit(size, removal=frame.removal)

    async def _on_others(
        self,
        schema: MapSchema,
        frame: Frame,
        batch: pa.RecordBatch,
        partitions: npt.NDArray[np.uint16],
    ) -> None:
        core, has = self._core, present(partitions)
        while True:
            places, receivers = self._places(), self.receivers
            if has & ~places.mine:
                raise ViewChanged(f"member {core.number} does not own the partitions of all rows")
            for member, wanted in self._others(places, has).items():
                rows = _rows_of(batch, partitions, wanted)
                await self._share(schema, frame, rows, member, wanted)
            if core.view is places.view and self.receivers is receivers:
                return  # otherwise all again: whoever gets a copy anew has dropped what it had

    def _others(self, places: _Places, has: int) -> dict[int, int]:
        """The members besides this one that must have rows of its own partitions, and of which."""
        found = {
            member: wanted for member, kept in places.backups.items() if (wanted := kept & has)
        }
        for partition, receiver in self.receivers.items():
            if has >> partition & 1 and receiver not in places.view.replicas[partition]:
                found[receiver] = found.get(receiver, 0) | 1 << partition
        return found

    async def _share(
        self, schema: MapSchema, frame: Frame, rows: pa.RecordBatch, member: int, wanted: int
    ) -> None:
        """A receiver that fails loses its copy, not the rows."""
        try:
            await self._send(member, schema, frame, rows)
        except RemudaError as error:
            is_copy = wanted & self._places().backups.get(member, 0)
            if is_copy or self.promised or isinstance(error, JobAborted):
                raise
            self.failed = error
            self.receivers = {}

    async def _send(
        self,
        member: int,
        schema: MapSchema,
        frame: Frame,
        rows: pa.RecordBatch,
        *,
        spread: bool = False,
    ) -> None:
        core = self._core
        core.require_alive(member)
        message = control_pb2.StageRows(
            context=core.context(),
            job=frame.job,
            task=frame.task,
            map_id=schema.map_id,
            schema_version=schema.version,
            sequence=frame.sequence,
            removal=frame.removal,
            writer=frame.writer,
            spread=spread,
        )
        if frame.removal:
            rows = rows.select(list(schema.key_positions))
        body = arrow_stream.encode(rows.schema, [rows])
        await self._peers.request(member, RpcType.STAGE_ROWS, message, [body], timeout=SEND_TIMEOUT)

    def _stage(
        self,
        store: MapStore,
        schema: MapSchema,
        frame: Frame,
        batch: pa.RecordBatch,
        has: int,
        *,
        backup: bool,
    ) -> None:
        self._commits.staging(frame.job, schema).lasting = True
        if not store.frames.stage(frame.job, frame.place, batch, has=has):
            return
        note = self._core.wal.staged_keys if frame.removal else self._core.wal.staged
        note(frame.job, frame.task, schema, batch, backup=backup)

    # --- on every copy --------------------------------------------------------------------------

    def on_rows(self, request: Request, message: control_pb2.StageRows) -> None:
        """Rows of a frame from another member."""
        core = self._core
        core.observe_member(message.context)
        core.wal.require_room()
        schema = core.store(message.map_id, message.schema_version).schema
        writer, sequence = message.writer, message.sequence
        frame = Frame(message.job, message.task, writer, sequence, message.removal)
        batches = list(arrow_stream.decode(request.dbody))
        if message.removal:
            batches = [of_keys(batch.columns, schema) for batch in batches]
        for listener in self.on_arrival:
            listener(frame.job)
        if message.spread:
            core.serve(request, self._spread(request, schema, frame, batches))
            return
        for batch in batches:
            self._keep(schema, frame, batch)
        core.wal.after(lambda: request.reply(RpcType.ACK, common_pb2.Ack(ok=True)))

    async def _spread(
        self, request: Request, schema: MapSchema, frame: Frame, batches: list[pa.RecordBatch]
    ) -> None:
        await self._core.until_ready()
        for batch in batches:
            await self._on_copies(schema, frame, batch, Router(schema).partitions(batch))
        self._core.wal.after(lambda: request.reply(RpcType.ACK, common_pb2.Ack(ok=True)))

    def _keep(self, schema: MapSchema, frame: Frame, batch: pa.RecordBatch) -> None:
        """In the backups that this member has, or is being given. Raises ViewChanged."""
        core = self._core
        partitions = Router(schema).partitions(batch)
        has = present(partitions)
        backed_up = has & self._places().backups.get(core.number, 0)
        arriving = has & ~backed_up & bits(self._incoming())
        if has & ~backed_up & ~arriving:
            raise ViewChanged(f"member {core.number} keeps no backup of all rows")
        if backed_up:
            rows = _rows_of(batch, partitions, backed_up)
            store = core.backup_store(schema.map_id)
            core.room.admit_rows(schema, rows, primary=False, removal=frame.removal)
            self._stage(store, schema, frame, rows, backed_up, backup=True)
        if arriving:
            core.room.admit_rows(schema, batch, primary=False, removal=frame.removal)
            self._commits.staging(frame.job, schema).lasting = True
            place = schema.map_id, schema.version
            if place not in self._arriving:
                self._arriving[place] = _frames(schema)
            self._arriving[place].stage(frame.job, frame.place, batch, arriving)

    # --- copies that come and go ----------------------------------------------------------------

    def on_view(self, _before: View, view: View) -> None:
        """The staged rows go where the view says, in one step; nothing is copied."""
        me = self._core.number
        mine, kept = bits(view.partitions_of(me)), bits(view.backed_up_by(me))
        for map_id, store in self._core.stores.items():
            if store.schema.replicated:
                continue
            arriving = [frames for (of, _), frames in self._arriving.items() if of == map_id]
            backup = self._core.backup_stores.get(map_id)
            if backup is None and (store.frames.jobs() or arriving):
                backup = self._core.backup_store(map_id)
            if backup is None:
                continue
            store.frames.give(~mine, (backup.frames, kept))
            backup.frames.give(~kept, (store.frames, mine))
            for frames in arriving:
                frames.give(mine | kept, (store.frames, mine), (backup.frames, kept))

    def discard(self, partitions: Collection[int]) -> None:
        """The rows of them that have arrived will not be completed."""
        for frames in self._arriving.values():
            frames.give(bits(partitions))

    def writes(self, job: str) -> bool:
        """Whether this member is the primary of rows that a job has staged."""
        return any(store.frames.has(job) for store in self._core.stores.values())

    async def send_all(self, receiver: int, partitions: Collection[int]) -> int:
        """The rows of the partitions that this member has staged, to the member that is being given
        them: ``receivers`` names it by now, so it gets all that is staged meanwhile. How many
        rows."""
        wanted, rows = bits(partitions), 0
        for store in list(self._core.stores.values()):
            if store.schema.replicated:
                continue
            for part in store.frames.parts(wanted):
                rows += await self._send_part(receiver, part)
        return rows

    async def _send_part(self, receiver: int, part: FramePart) -> int:
        if not self._commits.is_staging(part.job):
            return 0
        task, number, removal = part.place
        writer, sequence = number >> WRITER_SHIFT, number % (1 << WRITER_SHIFT)
        frame = Frame(part.job, task, writer, sequence, removal)
        began = self._core.world.clock.monotonic()
        rows = part.piece.limited(part.keys).batch
        try:
            await self._send(receiver, part.keys.schema, frame, rows)
        except (JobAborted, SchemaChanged):  # it ends, or cannot be committed any more
            return 0
        seconds = self._core.world.clock.monotonic() - began
        await asyncio.sleep(min(seconds * REST, 1.0))
        count: int = rows.num_rows
        return count

    # --- upkeep ---------------------------------------------------------------------------------

    def _resolved(self, map_id: int) -> None:
        for place, arriving in list(self._arriving.items()):
            if place[0] == map_id:
                for job in arriving.jobs():
                    if not self._commits.is_staging(job):
                        arriving.drop(job)
                if not arriving.jobs():
                    del self._arriving[place]
        for store in self._core.copies_of(map_id):
            store.frames.forget_ended()


def _frames(schema: MapSchema) -> StagedFrames:
    keys = KeyRule(schema)
    return StagedFrames(Staging(schema.name, keys), Removals(keys))


def _rows_of(
    batch: pa.RecordBatch, partitions: npt.NDArray[np.uint16], wanted: int
) -> pa.RecordBatch:
    """The rows of the partitions ``wanted`` (bits); ``partitions`` says of which each row is."""
    rows = among(partitions, wanted)
    return batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
