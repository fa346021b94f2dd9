"""Transactions on a member: commits of write sets with what they were read from (design rules 17
and 18), for whoever keeps the state of a user's transaction, and for small writes of maps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.view import View
from remuda.errors import (
    JobAborted,
    MemberSuspected,
    NotServed,
    OutcomeUnknown,
    QueryTimeout,
    RemudaError,
    SerializationFailure,
)
from remuda.limits import PARTITIONS
from remuda.member.base.core import SUSPICION_PATIENCE, SUSPICION_PAUSE, Core, nothing_done
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import Key, PartWork, ReadSet, Scan, Write, WriteSet
from remuda.member.state.view_layout import Receivers
from remuda.member.transactions.catalog_part import Decision, Notes
from remuda.member.transactions.key_locks import KeyLocks
from remuda.member.transactions.pending import PendingParts, held_by
from remuda.member.transactions.shell import TransactionShell
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.storage.maps.map_store import MapStore
from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.parts import Address

SORTED_PER_STEP = 5_000
"""Rows of a large commit that are put to their partitions in one step of the loop."""
GRACE = 5.0
"""After its timeout a commit waits so long to hear that it was rolled back."""
BLIND_ATTEMPTS = 50
BLIND_PAUSE = 0.002
BLIND_PAUSE_MAX = 0.1


class Guarding(Protocol):
    """``member.statements.checks``."""

    async def guarded(
        self, writes: WriteSet, reads: ReadSet | None, catalog: Catalog | None
    ) -> tuple[WriteSet, ReadSet | None]:
        """The writes and reads to commit instead, so that unique indexes stay unique and each row
        that a row names is there. ``catalog``: with the definitions of the transaction, if there
        are some. Raises UniqueViolation, ForeignKeyViolation and the errors of a commit."""


class Transactions(Wing):
    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._shell = TransactionShell(core, peers)
        self.locks = KeyLocks(core, peers, self)
        """Of transactions that lock keys before they write them."""
        self._shell.validation.heed(self.locks)
        self._shell.on_tick.append(self.locks.on_tick)
        self._shell.watch(lambda: self.locks.asking)
        self._shell.on_tick.append(self._note_doubts)
        self._shell.admission.ask_for_doubts(self._doubt)
        self._busy = (
            self._shell.pending.parts,
            *self._shell.admission.closing,
            self.locks.table.held,
        )
        """A collection that is not empty makes single writes wait."""
        self._routers: dict[int, Router] = {}
        self._guarding: Guarding | None = None
        """None: this member is starting."""
        self.backed = False
        """Whether some partition of this member has a synchronous backup."""

    # --- wiring -------------------------------------------------------------------------------

    def routes(self) -> Routes:
        return Routes(control={RpcType.PARTS: self._shell.on_messages, **self.locks.routes()})

    def guard_by(self, guarding: Guarding) -> None:
        """``guarding`` keeps unique indexes unique, and parents of rows there."""
        self._guarding = guarding

    def decide_by(self, notes: Notes) -> None:
        """``notes`` are those of the catalog, which decides transactions with definitions."""
        self._shell.catalog_part.keep_in(notes)

    def leads(self, transaction: tx.TransactionId) -> bool:
        """Whether a transaction of this member has not ended everywhere."""
        return self._shell.leads(transaction)

    def start(self) -> None:
        """The first view is installed."""
        self._shell.start()
        self.copies_changed()

    def close(self) -> None:
        self._shell.close()

    def on_view(self, before: View, after: View) -> None:
        me = self._core.number
        gone = {p for p in before.partitions_of(me) if after.owners[p] != me}
        if gone:
            given_away = self._core.given_away
            given_away.note(after.number, self.pending.lowest_in(gone))
            given_away.keep_maps(self._core.stores)
            for partition, write in self.pending.undecided_in(gone):
                given_away.note_key(write.map_id, partition, write.key)
        self._shell.on_view(before, after)
        self.locks.on_view()
        self.copies_changed()

    def _note_doubts(self, _now: float) -> None:
        """Readers who wait for something in doubt ask again, and hear that."""
        pending, lowest = self._shell.pending, dict[int, int]()
        if self._core.view.unreachable:
            for address, part in pending.parts.items():
                if self._shell.parts.away(address):
                    for map_id in part.map_ids:
                        lowest[map_id] = min(part.timestamp, lowest.get(map_id, part.timestamp))
        fresh = self._core.doubts.note("transactions", lowest)
        for map_id in fresh:
            pending.tell_readers(map_id)
        if fresh:
            pending.wake_all()
            self._shell.admission.check()

    def _doubt(self, address: Address, work: PartWork) -> RemudaError | None:
        """Why a part cannot be prepared soon: a bulk write of its maps, or a transaction that holds
        one of its keys, is in doubt; or one that may have written what it has read."""
        if not self._core.view.unreachable:
            return None
        shell = self._shell
        try:
            behind_others = shell.validation.must_wait(address, work)
            for map_id in work.map_ids:
                store = self._core.stores.get(map_id)
                if behind_others or (store is not None and store.job_pending):
                    self._core.require_decidable(map_id)
            for map_id, key in held_by(work):
                self.require_decidable(self.schema(map_id), [key])
        except RemudaError as error:
            return error
        return None

    def map_resolved(self, _map_id: int) -> None:
        """A bulk write of the map was decided here."""
        self._shell.admission.check()

    def map_changed(self, map_id: int) -> None:
        """It was altered or dropped."""
        self._routers.pop(map_id, None)

    @property
    def on_lower(self) -> list[tuple[Collection[object], Callable[[int], None]]]:
        """While somebody is in the collection, called with a map id when readers of the map who
        wait may go on."""
        return self._shell.pending.on_lower

    @property
    def on_tick(self) -> list[Callable[[float], None]]:
        """Called several times a second with the monotonic clock."""
        return self._shell.on_tick

    @property
    def pending(self) -> PendingParts:
        return self._shell.pending

    @property
    def shell(self) -> TransactionShell:
        return self._shell

    # --- copies -------------------------------------------------------------------------------

    def receive_with(self, receivers: Receivers) -> None:
        """``receivers(partition)``: members that are being given a copy of a partition of this
        member and must get every write of it from now on. ``copies_changed`` tells of changes."""
        self._shell.receive_with(receivers)
        self.copies_changed()

    def copies_changed(self) -> None:
        """The receivers of a partition have changed."""
        layout = self._shell.layout
        layout.receivers_changed()
        mine = self._core.view.partitions_of(self._core.number)
        self.backed = any(layout.backups(partition) for partition in mine)

    def let_go(self, partitions: Collection[int]) -> None:
        """New copies of these partitions are about to come to this member, which has none now."""
        self._shell.let_go(partitions)

    async def hold(self, partitions: Iterable[int]) -> None:
        """Nothing new is prepared in these partitions from now on; returns when nothing is pending
        there. ``release`` must follow, even when this call is cancelled."""
        await self._shell.admission.hold(partitions)

    def release(self, partitions: Iterable[int]) -> None:
        self._shell.admission.release(partitions)

    async def settled(self, map_id: int) -> None:
        """Return when no small write or transaction that concerns the map is pending here. New ones
        wait meanwhile; the caller prepares what it waited for in the same step of the loop."""
        await self._shell.admission.settled(map_id)

    def undecided(self, map_id: int) -> bool:
        """Whether a small write or transaction that reads or writes the map is prepared here and
        not decided."""
        return self._shell.undecided(map_id)

    def direct(self, store: MapStore) -> bool:
        """Whether a single write of the map may go straight to its store: there is no backup to
        tell, and nobody to wait for."""
        if self.backed or self._core.wal.active or store.pending_at_or_below(FOREVER - 1):
            return False
        return not any(self._busy)

    def awaited_key(self, map_id: int, keys: Iterable[Key], at: int) -> Key | None:
        """One of the keys whose value at ``at`` depends on a write that is not decided yet."""
        return self._shell.pending.awaited_key(map_id, keys, at)

    def require_decidable(self, schema: MapSchema, keys: Iterable[Key]) -> None:
        """Before a request waits for keys. Raises PartitionsUnreachable for one that is held by a
        transaction with a part in an unreachable partition: the wait may be long."""
        if not self._core.view.unreachable:
            return
        for key in keys:
            for address in self._shell.pending.holders((schema.map_id, key)):
                if away := self._shell.parts.away(address):
                    raise self._core.in_doubt(schema.name, away)

    def oldest(self) -> int:
        """Nothing may still commit below it."""
        return self._shell.pending.oldest

    # --- commit -------------------------------------------------------------------------------

    async def commit(
        self,
        writes: WriteSet,
        reads: ReadSet | None,
        timeout: float | None = None,
        owner: tx.TransactionId | None = None,
        decision: Decision | None = None,
    ) -> int:
        """Commit atomically; the commit timestamp (without writes: the snapshot, as a reader of one
        timestamp is serializable by itself).

        With ``reads``, nothing that was read may have changed since its snapshot, nor the written
        keys; with None the writes are made over anything, and wait for others in their way. The
        locks of ``owner`` (``locks``) do not stand in the way, and stay until they are released.
        With ``decision`` it is the catalog that commits, when all else is prepared.
        Raises SerializationFailure (what was changed), UniqueViolation, SnapshotTooOld,
        SchemaChanged, MemberUnavailable, QueryTimeout (it was rolled back), OutcomeUnknown.
        """
        if not writes and decision is None:
            return reads.snapshot if reads is not None else self._core.timestamp()
        deadline = None
        if timeout is not None:
            deadline = self._core.world.clock.monotonic() + timeout
        pause = BLIND_PAUSE
        for attempt in range(BLIND_ATTEMPTS):
            try:
                return await self._commit(
                    *await self._guarded(writes, reads, decision),
                    deadline=deadline,
                    owner=owner,
                    decision=decision,
                )
            except SerializationFailure:
                if reads is not None or attempt == BLIND_ATTEMPTS - 1:
                    raise
                if decision is not None and decision.refused:
                    raise
            await asyncio.sleep(pause * (0.5 + self._core.world.chance.fraction()))
            pause = min(2 * pause, BLIND_PAUSE_MAX)
        raise AssertionError("the last attempt raises")

    async def _guarded(
        self, writes: WriteSet, reads: ReadSet | None, decision: Decision | None
    ) -> tuple[WriteSet, ReadSet | None]:
        """See ``Guarding``."""
        known, catalog = None, None if decision is None else decision.catalog
        for write in writes:
            if write.map_id != known:
                known = write.map_id
                own = None if catalog is None else catalog.find_id(known)
                if self.schema(known).concerns_others or (own and own.concerns_others):
                    break
        else:
            return writes, reads
        if self._guarding is None:
            raise NotServed(f"member {self._core.number} is starting")
        return await self._guarding.guarded(writes, reads, catalog)

    async def _commit(
        self,
        writes: WriteSet,
        reads: ReadSet | None,
        *,
        deadline: float | None,
        owner: tx.TransactionId | None,
        decision: Decision | None,
    ) -> int:
        work = await self._reachable_parts(writes, reads, owner, deadline)
        left = None
        if deadline is not None:
            left = deadline - self._core.world.clock.monotonic()
            if left <= 0:  # whoever waits for it may have gone: nothing is begun any more
                raise _too_late()
        done: asyncio.Future[tx.Report] = asyncio.get_running_loop().create_future()
        near = self._shell.begin(work, partial(_settle, done), one_phase=True, decision=decision)
        # The commit goes on to its end, whoever waits for it.
        if left is None:
            await done
        elif not await _done_within(done, left):
            await self._give_up(near, done)
        return self._end_of(near, done)

    async def _reachable_parts(
        self,
        writes: WriteSet,
        reads: ReadSet | None,
        owner: tx.TransactionId | None,
        deadline: float | None,
    ) -> dict[int, PartWork]:
        """The parts, when all their primaries are heard: one that is not is waited for, until a
        view has given its partitions to others. Raises what ``_require_primaries`` does."""
        now = self._core.world.clock.monotonic
        patience = now() + SUSPICION_PATIENCE
        until = patience if deadline is None else min(patience, deadline)
        while True:
            view = None
            while view is not self._core.view:  # REPLICATED maps are written where the members are
                view = self._core.view
                work = await self._parts_of(writes, reads, owner)
            try:
                with nothing_done:
                    self._require_primaries(work)
            except MemberSuspected:
                if now() >= until:
                    raise
                await asyncio.sleep(SUSPICION_PAUSE)
            else:
                return work

    async def _give_up(self, near: Near, done: asyncio.Future[tx.Report]) -> None:
        """The time is over: roll back if that is still possible, and wait a while to be sure."""
        self._shell.roll_back(near, _too_late())
        await _done_within(done, GRACE)

    def _end_of(self, near: Near, done: asyncio.Future[tx.Report]) -> int:
        if not done.done():
            if near.commit_timestamp:  # decided; only some members have not said that they know
                return near.commit_timestamp
            raise OutcomeUnknown(
                f"it is not known whether transaction {near.transaction} was committed",
                detail="a member that takes part in it does not answer",
                hint="Read what it has written before you run it again.",
            )
        report = done.result()
        if report.state is tx.State.COMMITTED:
            self._core.clock.observe(report.timestamp)
            return report.timestamp
        if report.state is tx.State.UNKNOWN:
            raise OutcomeUnknown(
                f"it is not known whether transaction {near.transaction} was committed",
                detail=report.cause.message if report.cause is not None else "",
                hint="Ask another member.",
            )
        raise report.cause or JobAborted("the transaction was rolled back")

    def _require_primaries(self, work: dict[int, PartWork]) -> None:
        """Before anything is done. Raises PartitionsLost, MemberUnavailable, DiskFull, and
        NotServed when this member is not in the cluster any more."""
        if not self._shell.layout.alive(self._core.number):
            raise NotServed(
                "the cluster goes on without this member", member=str(self._core.number)
            )
        for partition in work:
            owner = self._shell.layout.primary(partition)
            if owner is None:
                raise self._core.partitions_absent()
            self._core.require_reached(owner)
        wal = self._core.wal
        if wal.active and any(part.writes for part in work.values()):
            wal.require_room()

    # --- parts --------------------------------------------------------------------------------

    async def _parts_of(
        self, writes: WriteSet, reads: ReadSet | None, owner: tx.TransactionId | None
    ) -> dict[int, PartWork]:
        written: dict[int, list[Write]] = {}
        router = None
        for count, write in enumerate(writes, start=1):
            if router is None or write.map_id != router.schema.map_id:
                router = self.router(write.map_id)
                plain = not router.schema.replicated and not router.schema.options.ttl
            if plain:
                written.setdefault(router.key_partition(write.key), []).append(write)
            else:
                lasting = write.lasting(router.schema)
                for partition in self._written_in(router, write.key):
                    written.setdefault(partition, []).append(lasting)
            if count % SORTED_PER_STEP == 0:
                await asyncio.sleep(0)
                router = None  # the map may have been altered
        keys: dict[int, list[tuple[int, Key]]] = {}
        scans: dict[int, list[Scan]] = {}
        if reads is not None:
            for map_id, found in reads.keys.items():
                router = self.router(map_id)
                here = PARTITIONS + self._core.number if router.schema.replicated else None
                for key in found:
                    partition = router.key_partition(key) if here is None else here
                    keys.setdefault(partition, []).append((map_id, key))
            for scan in reads.scans:
                for partition in self._scanned(scan):
                    scans.setdefault(partition, []).append(scan)
        snapshot = 0 if reads is None else reads.snapshot
        since = {} if reads is None else reads.since
        works: dict[int, PartWork] = {}
        for partition in sorted({*written, *keys, *scans}):
            read = keys.get(partition, ())
            if read and snapshot and partition in written:
                read = unwritten(read, written[partition], since, snapshot)
            times = tuple([since.get(held, snapshot) for held in read]) if since else ()
            scanned = tuple(scans.get(partition, ()))
            writing = tuple(written.get(partition, ()))
            parts = (snapshot, writing, tuple(read), scanned, owner, times)
            works[partition] = tx.made(PartWork, parts)
        return works

    def schema(self, map_id: int) -> MapSchema:
        """Raises SchemaChanged."""
        return self._core.store(map_id, 0).schema

    def router(self, map_id: int) -> Router:
        """Raises SchemaChanged."""
        schema = self._core.store(map_id, 0).schema
        router = self._routers.get(map_id)
        if router is None or router.schema is not schema:
            router = self._routers[map_id] = Router(schema)
        return router

    def _written_in(self, router: Router, key: Key) -> tuple[int, ...]:
        """Where a key is written; a REPLICATED map is written on all members."""
        if not router.schema.replicated:
            return (router.key_partition(key),)
        return tuple(PARTITIONS + number for number in self._core.view.by_number)

    def _scanned(self, scan: Scan) -> Iterable[int]:
        if self.schema(scan.map_id).replicated:
            return (PARTITIONS + self._core.number,)
        return range(PARTITIONS) if scan.partitions is None else scan.partitions

    def gauges(self) -> dict[str, int]:
        return {**self._shell.gauges(), "key_locks": len(self.locks)}


def _too_late() -> QueryTimeout:
    return QueryTimeout(
        "the transaction was rolled back: its commit did not end within its timeout",
        hint="Run it again, with a longer timeout if the cluster is busy.",
    )


def unwritten(
    reads: Sequence[tuple[int, Key]],
    writes: Sequence[Write],
    since: Mapping[tuple[int, Key], int],
    snapshot: int,
) -> list[tuple[int, Key]]:
    """The reads that a part names: a write of a key that was read at the snapshot, or later, is
    checked more strictly than the read, and holds the key against more."""
    written = {(write.map_id, write.key) for write in writes}
    return [held for held in reads if held not in written or since.get(held, snapshot) < snapshot]


async def _done_within(done: asyncio.Future[tx.Report], seconds: float) -> bool:
    """Whether it is, as soon as it is or the time is over; ``asyncio.wait`` takes four times the
    steps."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def wake(_done: object = None) -> None:
        if not over.done():
            over.set_result(None)

    done.add_done_callback(wake)
    timer = loop.call_later(seconds, wake)
    try:
        await over
    finally:
        timer.cancel()
        done.remove_done_callback(wake)
    return done.done()


def _settle(done: asyncio.Future[tx.Report], report: tx.Report) -> None:
    if not done.done():
        done.set_result(report)
