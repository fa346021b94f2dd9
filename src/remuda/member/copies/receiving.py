"""Copies that arrive on this member: rows of partitions that it is to keep, and, for a member that
has joined, the replicated maps."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import RemudaError, StorageFull, TransientError, ViewChanged
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.job_rows import JobRows
from remuda.member.membership.former_copies import FormerCopies
from remuda.member.state.log import fields
from remuda.member.transactions.transactions import Transactions
from remuda.rpc import arrow_stream
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.maps import transfer
from remuda.storage.maps.copy_comparison import Inventory
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, Arrival, Versions

log = logging.getLogger(__name__)

READY_KEY = "replicated maps"
RETRY_PAUSE = 0.2
PULL_TIMEOUT = 600.0
STALLED = 30.0
"""Seconds without a row after which a replicated map is asked for again."""
TOGETHER_ROWS = 16 * 1024
"""Of a former copy: small chunks are taken together."""


@dataclass
class Incoming:
    """A transfer to this member: ``partitions`` of all maps, or (None) one replicated map."""

    sender: int
    partitions: frozenset[int] | None
    former: tuple[int, ...] = ()
    """Those of which a former copy is here, in order."""
    from_donor: bool = False
    """The sender is in no view."""
    closed: bool = False
    """A view concerns copies of it: no more rows are taken."""
    frames: int = 0
    """COPY_ROWS and COPY_COMPARE that have come."""

    def chosen(self, view: View) -> bool:
        """Whether the view still waits for these copies of the sender."""
        away = view.unreachable
        return all(p in away and away[p].donor == self.sender for p in self.partitions or ())

    def close(self) -> None:
        self.closed = True

    def frame_came(self) -> None:
        self.frames += 1


class Receiving(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        transactions: Transactions,
        offload: Offload,
        job_rows: JobRows,
    ) -> None:
        self.former = FormerCopies(core)
        """The partitions in the member's folder."""
        self._job_rows = job_rows
        job_rows.await_copies(self._partitions)
        self._core = core
        self._peers = peers
        self._transactions = transactions
        self._offload = offload
        self._incoming: dict[str, Incoming] = {}

    def routes(self) -> Routes:
        return Routes(
            control={
                RpcType.COPY_BEGIN: self.on_begin,
                RpcType.COPY_ROWS: self.on_rows,
                RpcType.COPY_COMPARE: self.on_compare,
            }
        )

    # --- partitions ---------------------------------------------------------------------------

    def _partitions(self) -> frozenset[int]:
        """Those of which copies arrive."""
        return frozenset().union(*(each.partitions or () for each in self._incoming.values()))

    def on_begin(self, request: Request) -> None:
        message = control_pb2.CopyBegin.FromString(request.pbody)
        core = self._core
        core.observe_member(message.context)
        sender, partitions = message.context.sender, frozenset(message.partitions)
        for partition in partitions:
            row = core.view.replicas[partition]
            if core.number in row or not row or row[0] != sender:
                raise ViewChanged(f"partition {partition} is not to be copied to {core.number}")
        stale = partitions
        if partitions:
            self._require_room(message.bytes)
        for name, other in list(self._incoming.items()):
            if not other.partitions:
                continue
            if partitions:  # a member makes one move at a time
                over = other.sender == sender or not partitions.isdisjoint(other.partitions)
            else:  # withdrawn; it may be told late, when the next one has begun
                over = name == message.transfer
            if over:
                del self._incoming[name]
                stale |= other.partitions
        for store in core.backup_stores.values():
            store.discard_partitions(stale)
        self._job_rows.discard(stale)
        core.wal.partitions_taken(stale)
        self._transactions.let_go(stale)
        former = tuple(self.former.partitions(core.view, partitions))
        if partitions:
            self._incoming[message.transfer] = Incoming(sender, partitions, former)
        answer = control_pb2.CopyBegun(context=core.context(), kept=former)
        core.wal.after(lambda: request.reply(RpcType.COPY_BEGIN, answer))

    def _require_room(self, size: int) -> None:
        """Former copies are given up for it. Raises StorageFull."""
        room = self._core.room
        try:
            room.require_copy(size)
        except StorageFull:
            if not self.former:
                raise
            self.former.drop()
            room.measure()
            room.require_copy(size)

    def begin_from_donor(self, donor: int, transfer: str, partitions: frozenset[int]) -> None:
        """A donor's copies come under this name; rows that are here of these partitions are
        void."""
        for name, other in list(self._incoming.items()):
            if other.partitions and (other.sender == donor or other.partitions & partitions):
                del self._incoming[name]
        for store in self._core.backup_stores.values():
            store.discard_partitions(partitions)
        self._core.wal.partitions_taken(partitions)
        self._transactions.let_go(partitions)
        self._incoming[transfer] = Incoming(donor, partitions, from_donor=True)

    def coming(self, transfer: str) -> frozenset[int]:
        """The partitions that come under this name."""
        incoming = self._incoming.get(transfer)
        if incoming is None or incoming.closed:
            return frozenset()
        return incoming.partitions or frozenset()

    def on_rows(self, request: Request) -> None:
        message = control_pb2.CopyRows.FromString(request.pbody)
        incoming = self._incoming.get(message.transfer)
        if incoming is not None and incoming.from_donor:
            # It is in no view. One that concerns these copies closes the transfer; others, such as
            # those of moves, would make a donor begin again and again.
            self._core.observe(message.context)
        else:
            self._core.observe_member(message.context)
        self._core.serve(request, self._take(request, message))

    async def _take(self, request: Request, message: control_pb2.CopyRows) -> None:
        store, incoming = self._target(message)
        schema = store.schema
        if not request.dbody:
            store.raise_floor(message.floor)
        versions = [
            transfer.from_wire(batch, schema)
            for batch in (arrow_stream.decode(request.dbody) if request.dbody else ())
        ]
        for each in versions:
            self._core.room.admit_copy(schema, each.batch)
            arrived = await self._offload.result(partial(_arranged, store, each, message.low))
            if self._target(message) != (store, incoming) or store.schema is not schema:
                raise TransientError(f"transfer {message.transfer} was overtaken")
            fresh, ended = arrived
            store.raise_floor(message.floor)
            if ended is not None:
                store.end_versions(ended, message.low)
            if fresh is not None:
                store.install(fresh)
            wal, replicated = self._core.wal, incoming.partitions is None
            if wal.active:
                rows = each.on_wire()
                wal.rows_copied(schema, rows, message.low, message.floor, replicated=replicated)
        self._core.wal.after(lambda: request.reply(RpcType.ACK, common_pb2.Ack(ok=True)))

    def on_compare(self, request: Request) -> None:
        message = control_pb2.CopyCompare.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._core.serve(request, self._compare(request, message))

    async def _compare(self, request: Request, message: control_pb2.CopyCompare) -> None:
        store, incoming = self._target(message)
        former, name = self.former, message.transfer
        answer = control_pb2.CopyCompared()
        if message.take:
            await self._take_former(message, store, incoming)
        elif message.buckets:
            comparison = former.comparison(name, message.map_id)
            answer = await self._offload.result(partial(comparison.answer, message))
        else:
            partitions = incoming.former or tuple(range(PARTITIONS))
            extraction = former.extraction(store.schema, partitions)
            if extraction is not None:
                work = partial(Inventory, extraction, partitions)
                comparison = former.compare(name, message.map_id, await self._offload.result(work))
                answer = await self._offload.result(partial(comparison.answer, message))
        self._core.wal.after(lambda: request.reply(RpcType.COPY_COMPARE, answer))

    async def _take_former(
        self, message: control_pb2.CopyCompare, store: MapStore, incoming: Incoming
    ) -> None:
        """The right part of the former copy becomes rows of the transfer."""
        core, schema, partitions = self._core, store.schema, incoming.partitions
        comparison = self.former.comparison(message.transfer, message.map_id)
        good = transfer.joined(comparison.good(), TOGETHER_ROWS)
        while (each := await self._offload.result(lambda: next(good, None))) is not None:
            core.room.admit_copy(schema, each.batch)
            arrived = await self._offload.result(partial(store.arrival, [each]))
            if self._target(message) != (store, incoming) or store.schema is not schema:
                raise TransientError(f"transfer {message.transfer} was overtaken")
            if incoming.partitions != partitions:
                raise TransientError(f"transfer {message.transfer} has lost partitions")
            store.install(arrived)
            if core.wal.active:
                core.wal.rows_copied(
                    schema, each.on_wire(), ALWAYS, message.floor, replicated=partitions is None
                )
        store.raise_floor(message.floor)
        self.former.end(message.transfer, message.map_id)

    def _target(
        self, message: control_pb2.CopyRows | control_pb2.CopyCompare
    ) -> tuple[MapStore, Incoming]:
        """Raises TransientError, SchemaChanged."""
        incoming = self._incoming.get(message.transfer)
        if incoming is None or incoming.closed:
            raise TransientError(f"transfer {message.transfer} is not known any more")
        incoming.frame_came()
        store = self._core.store(message.map_id, message.schema_version)
        if incoming.partitions is None:
            return store, incoming
        return self._core.backup_store(message.map_id), incoming

    def on_view(self, before: View, view: View) -> None:
        """Copies that the view names are complete; those that nobody will complete are
        discarded."""
        me = self._core.number
        self.former.on_view(view, me)
        for name, incoming in list(self._incoming.items()):
            if incoming.partitions is None:
                continue
            if incoming.from_donor and not incoming.chosen(view):
                incoming.close()
            left = frozenset(p for p in incoming.partitions if me not in view.replicas[p])
            dead = frozenset(p for p in left if view.replicas[p] != before.replicas[p])
            incoming.partitions = left - dead
            self._job_rows.discard(dead)
            for store in self._core.backup_stores.values():
                if dead:
                    store.discard_partitions(dead)
            if not incoming.partitions:
                del self._incoming[name]

    # --- replicated maps ----------------------------------------------------------------------

    def start(self) -> None:
        """A member that has joined a cluster has no rows yet."""
        core = self._core
        if core.view.number > 1 and len(core.view.members) > 1 and not core.recovered:
            core.readiness.hold(READY_KEY, "it has not got the replicated maps yet")
            core.spawn(self._fetch_all(), "copy of replicated maps")

    async def _fetch_all(self) -> None:
        """Nothing is prepared here before the end: this member is not ready."""
        core = self._core
        done: set[int] = set()
        while True:
            left = [
                schema
                for schema in core.catalog.maps
                if schema.replicated and schema.map_id not in done
            ]
            if not left:
                break
            for schema in left:
                try:
                    await self._fetch(schema)
                    done.add(schema.map_id)
                except RemudaError as error:
                    log.info("copy goes on", extra=fields(map=schema.name, cause=error.message))
                    await asyncio.sleep(RETRY_PAUSE)
                except Exception:  # a bug: without an end of this the member would never serve
                    log.exception("copy goes on", extra=fields(map=schema.name))
                    await asyncio.sleep(RETRY_PAUSE)
        core.wal.replicated_whole()
        core.readiness.release(READY_KEY)

    async def _fetch(self, schema: MapSchema) -> None:
        core = self._core
        sources = [number for number in core.live_members() if number != core.number]
        if core.catalog.find_id(schema.map_id) is None or len(core.view.members) == 1:
            return  # dropped, or there is nobody any more who has it
        if not sources:
            raise TransientError("no other member can be reached")
        store = core.store(schema.map_id, 0)
        store.discard_partitions(transfer.EVERY_PARTITION)
        core.wal.replicated_taken(schema.map_id)
        name = f"{core.number}-{core.world.chance.bits(96):024x}"
        incoming = self._incoming[name] = Incoming(sources[0], None)
        message = control_pb2.CopyBegin(
            context=core.context(),
            transfer=name,
            map_id=schema.map_id,
            kept=self.former.replicated(schema.map_id),
        )
        try:
            await self._pulled(incoming, message)
            self.former.fetched(schema.map_id)
        finally:
            del self._incoming[name]

    async def _pulled(self, incoming: Incoming, message: control_pb2.CopyBegin) -> None:
        """The whole map has come. The request and its answer may be lost: a sender from which
        nothing comes for a while has forgotten it, or never knew. Raises TransientError."""
        source = incoming.sender
        request = self._peers.request(
            source, RpcType.COPY_REPLICATED, message, timeout=PULL_TIMEOUT
        )
        asked = asyncio.ensure_future(request)
        try:
            while True:
                before = incoming.frames
                if (await asyncio.wait({asked}, timeout=STALLED))[0]:
                    await asked
                    return
                if incoming.frames == before:
                    raise TransientError(
                        f"member {source} has sent nothing of a replicated map for {STALLED:.0f} s"
                    )
        finally:
            asked.cancel()

    def gauges(self) -> dict[str, int]:
        return {"copies_incoming": len(self._incoming)}


def _arranged(
    store: MapStore, versions: Versions, low: int
) -> tuple[Arrival | None, Arrival | None]:
    fresh, ended = transfer.split(versions, low)
    return (
        None if fresh is None else store.arrival([fresh]),
        None if ended is None else store.arrival([ended]),
    )
