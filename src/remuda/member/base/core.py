"""What every part of a member shares: identity, clock, view, catalog, and the maps' stores."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from remuda.catalog.catalog import Catalog
from remuda.catalog.own.definitions import is_made
from remuda.config import MemberConfig, read_labels
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER, LOGICAL_BITS, HybridClock
from remuda.datatypes.view import NOBODY, MemberInfo, View
from remuda.errors import (
    InputError,
    MemberGivenUp,
    MemberNotReady,
    MemberSuspected,
    MemberUnavailable,
    PartitionsLost,
    PartitionsUnreachable,
    ProtocolError,
    RemudaError,
    SchemaChanged,
    UndefinedMap,
    ViewChanged,
)
from remuda.execution.spill import DiskUse
from remuda.limits import CLIENT_CLOCK_AHEAD_MAX, CLOCK_SKEW_MAX, PARTITIONS
from remuda.member.base.access import Access
from remuda.member.base.call import Call
from remuda.member.base.failures import attempt, bug, nothing_done
from remuda.member.base.listeners import Listeners
from remuda.member.base.pulse import Pulse
from remuda.member.metrics.measures import Measures
from remuda.member.metrics.traces import traces_to
from remuda.member.security.audit import Audit
from remuda.member.security.defences import Defences, no_defences
from remuda.member.state.catalog_news import CatalogNews
from remuda.member.state.constraints import Constraints
from remuda.member.state.departure import Departure
from remuda.member.state.former_schemas import FormerSchemas
from remuda.member.state.log import fields
from remuda.member.state.maps_in_doubt import Doubts
from remuda.member.state.readiness import READY_TIMEOUT, Readiness
from remuda.member.state.retained_partitions import GivenAway
from remuda.member.state.wal import NoWal
from remuda.member.state.write_room import WriteRoom
from remuda.rpc.messages import common_pb2
from remuda.rpc.point_encoding import context_rest, encode_clock
from remuda.storage.maps.expiring_rows import estimated_rows
from remuda.storage.maps.map_store import MapStore
from remuda.world import World

__all__ = ["Call", "Core", "attempt", "bug", "nothing_done", "to_its_end"]
log = logging.getLogger(__name__)
T = TypeVar("T")

DROPPED_NAMES_KEPT = 1000
CANCEL_AGAIN = 0.1  # seconds
SUSPICION_PATIENCE = 15.0
"""Seconds that a request waits for a member that is not heard, unless it has less time: with the
defaults, more than it takes until the member is heard again or a view has dropped it."""
SUSPICION_PAUSE = 0.05
"""Seconds after which it looks again."""


class Core:
    """The shared state of one member; everything on the loop's thread."""

    def __init__(self, config: MemberConfig, world: World, uuid: str) -> None:
        self.config = config
        self.world = world
        self.uuid = uuid
        self.number = 0
        self.info = MemberInfo(0, uuid, config.host, 0, 0, 0, read_labels(config.labels))
        self.view = View(0, (), ())
        self.lost: dict[int, str] = {}
        """Members that have gone, with the cause: those that views have dropped, for good, and
        those of the view that are suspected (they may be heard again)."""
        self.readiness = Readiness(world.clock.monotonic, lambda: self.number)
        self.listeners = Listeners()
        """Of the news that wings have for each other."""
        self.catalog = Catalog()
        self.catalog_news = CatalogNews(self.readiness, lambda: self.number)
        self.stores: dict[int, MapStore] = {}
        """The rows that this member serves, by map id: those of the partitions that it is the
        primary of, and whole replicated maps."""
        self.backup_stores: dict[int, MapStore] = {}
        """The rows of the partitions that it backs up or is receiving; nobody reads them. Made by
        ``backup_store`` when first needed; replicated maps have none."""
        self.primary_here: frozenset[int] | None = None
        """The partitions whose rows lie in ``stores``; None: as the view says. It changes after
        the view does, in the step that says what moves (``member.copies.copies``)."""
        self.unmoved: dict[int, frozenset[int]] = {}
        """By map id: partitions of ``primary_here`` whose rows still lie in ``backup_stores``."""
        self.leaving: frozenset[int] = frozenset()
        """Members that want to leave, and are to keep nothing."""
        self.given_away = GivenAway()
        self.doubts = Doubts()
        self.former_schemas = FormerSchemas()
        self.dropped: dict[int, str] = {}
        """The names of maps that were dropped, the last ones."""
        self.clock = HybridClock()
        self.measures = Measures(world.clock)
        """What its parts count and time."""
        self.traces = traces_to(config.trace_endpoint, uuid, world.clock)  # None: nothing is
        self.audit = Audit(config.audit_file, lambda: self.number)
        self.room = WriteRoom(
            config,
            world.clock,
            world.memory.total(),
            stores=self.stores,
            backups=self.backup_stores,
        )
        """Room for writes, asked before each of them begins."""
        self.memory = self.room.statements
        self.spilled = DiskUse()
        self._wall_micros = world.clock.wall_micros
        self.constraints = Constraints(self._wall_micros)
        self.pulse = Pulse()
        self._tasks: dict[asyncio.Task[None], Coroutine[Any, Any, None]] = {}
        """With what each runs; in order: a simulation replays."""
        self.departure = Departure(lambda: self.number)
        """How far it is on its way out of the cluster."""
        self.stopping = False
        self.wal = NoWal()  # what is noted for a restart
        self.recovered = False
        """It has started from its log, with whole copies of the replicated maps."""
        self.defences = no_defences()
        """How its channels are protected; known from when it listens."""
        self.access = Access(lambda: self.catalog)

    def require_disk(self) -> None:
        """Of the log that there is by then. Raises DiskFull."""
        if self.wal.active:
            self.wal.require_room()

    # --- this member --------------------------------------------------------------------------

    def listens(self, *, user_port: int, control_port: int, data_port: int) -> None:
        """Its channels have these ports."""
        self.info = replace(
            self.info, user_port=user_port, control_port=control_port, data_port=data_port
        )

    def comes_back(self, former: int) -> None:
        """Its folder says that it had the number ``former``."""
        self.info = replace(self.info, former=former)

    def protect(self, defences: Defences) -> Defences:
        """From now on its channels are protected so."""
        self.defences = defences
        return defences

    def note_in(self, wal: NoWal) -> None:
        """From now on ``wal`` keeps a note of all that has to outlive the process."""
        self.wal = wal
        self.room.watch_disk(self.require_disk)

    def members_leave(self, members: frozenset[int]) -> None:
        """These want to leave, and are to keep nothing."""
        self.leaving = members

    # --- time ---------------------------------------------------------------------------------

    def timestamp(self) -> int:
        """A new timestamp above everything this member has given out or heard of."""
        return self.clock.next(self._wall_micros())

    def wall_offset(self) -> float:
        """Seconds since 1970 when the monotonic clock shows 0."""
        clock = self.world.clock
        return clock.wall_micros() / 1e6 - clock.monotonic()

    def context(self) -> common_pb2.Context:
        """What every message to another member (and every answer to a client) carries."""
        return common_pb2.Context(
            clock=self.clock.last, view=self.view.number, cut_version=0, sender=self.number
        )

    def encoded_context(self) -> bytes:
        """``context()``, serialized."""
        return encode_clock(self.clock.last) + context_rest(self.view.number, self.number)

    def observe(self, context: common_pb2.Context) -> None:
        """Advance the clock past that of another member. Raises as ``observe_clock``."""
        self.observe_clock(context.clock)

    def observe_clock(self, clock: int) -> None:
        """Advance the clock past a timestamp that another member gave out. Raises ProtocolError
        for one far ahead, because others would refuse this member's clock from then on."""
        if clock > self.clock.last:
            self._observe(clock, CLOCK_SKEW_MAX)

    def observe_client(self, context: common_pb2.Context) -> None:
        """Advance the clock past what a client has seen. Raises ProtocolError if it is ahead."""
        if context.clock > self.clock.last:
            self._observe(context.clock, CLIENT_CLOCK_AHEAD_MAX)

    def observe_read(self, at: int) -> None:
        """Advance the clock past the timestamp that a client wants to read at. Raises InputError
        if that is none, or lies ahead."""
        try:
            if at < 0:
                raise InputError(f"read timestamp {at} is negative")
            if at > self.clock.last:
                self._observe(at, CLIENT_CLOCK_AHEAD_MAX)
        except ProtocolError as error:
            raise InputError(
                f"read timestamp {at} lies ahead of the clock of member {self.number}",
                detail=error.message,
                hint="Read at a timestamp that a member of this cluster has given out.",
            ) from error

    def _observe(self, clock: int, ahead_max: float) -> None:
        if clock >> LOGICAL_BITS > self._wall_micros() + ahead_max * 1_000_000:
            raise ProtocolError(
                f"clock of the sender is more than {ahead_max:.0f} s ahead of member {self.number}",
                hint="Synchronize the clocks of the machines.",
            )
        self.clock.observe(clock)

    def observe_member(self, context: common_pb2.Context) -> None:
        """Check a message from another member that relies on who keeps which partition: it must
        come from the same view (design rule 14). Raises ViewChanged, MemberGivenUp,
        ProtocolError."""
        if self.departure.gone:
            self.departure.require_view()
        if context.view != self.view.number:
            self._in_other_view(context)
            raise ViewChanged(
                f"member {self.number} is in view {self.view.number}, "
                f"the message comes from view {context.view}",
                hint="Send it again: a view changes within a moment.",
            )
        if context.clock > self.clock.last:
            self._observe(context.clock, CLOCK_SKEW_MAX)

    def observe_peer(self, context: common_pb2.Context) -> None:
        """Check a message from another member that is right in any view, such as one of a query
        that goes on. Raises MemberGivenUp, ProtocolError."""
        if context.view != self.view.number:
            self._in_other_view(context)
        self.observe(context)

    def _in_other_view(self, context: common_pb2.Context) -> None:
        """Raises MemberGivenUp for a sender that a view has dropped and that does not know it."""
        sender = context.sender
        if context.view < self.view.number and sender and sender not in self.view.by_number:
            cause = self.cause_of_loss(sender) or f"view {self.view.number} does not have it"
            raise MemberGivenUp(
                f"member {sender} was given up by member {self.number}: {cause}",
                member=str(sender),
            )
        self.listeners.other_view.tell(sender, context.view)

    def check_identity(self, member: MemberInfo, view: int) -> None:
        """Raises MemberGivenUp for a process of this view or an earlier one that this view does not
        have, or whose number another process has; ViewChanged for one that may be of a later view.
        ``member.number`` 0: it is no member, or not yet."""
        known = self.view.by_number.get(member.number)
        if not self.view.number or not member.number:
            return
        if known is not None and known.uuid == member.uuid:
            return
        if view and view <= self.view.number:
            cause = f"view {self.view.number} does not have it"
            if known is not None:
                cause = f"in view {self.view.number} another process is member {member.number}"
            cause = self.cause_of_loss(member.number) or cause
            raise MemberGivenUp(
                f"member {member.number} was given up by member {self.number}: {cause}",
                member=str(member.number),
            )
        if known is not None:
            raise ViewChanged(f"member {member.number} ({member.uuid}) is not in this view")

    # --- members ------------------------------------------------------------------------------

    @property
    def serving(self) -> bool:
        return self.view.number > 0 and not self.stopping

    def require_serving(self) -> None:
        """Before a request is served at all. Raises MemberNotReady: clients ask another member."""
        if self.stopping or self.view.number == 0:
            raise MemberNotReady(
                f"member {self.number or self.uuid} is "
                + ("stopping" if self.stopping else "waiting until its cluster is complete"),
                member=str(self.number or ""),
            )

    @property
    def ready(self) -> bool:
        """Whether this member may serve what it is the primary of, right now."""
        return self.readiness.ready

    def require_lease(self) -> None:
        """Where a primary serves. Raises NoLease, MemberNotReady."""
        self.readiness.require()

    async def until_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Wait until this member may serve. Raises NoLease, MemberNotReady."""
        if not self.readiness.ready:
            await self.readiness.wait(timeout)

    def cause_of_loss(self, number: int) -> str:
        """Why the member is lost; empty where that is not known."""
        return self.lost.get(number) or self.view.cause_of_departure(number)

    def require_alive(self, number: int) -> None:
        """``number`` is a member, or the owner of a partition. Raises MemberUnavailable if it has
        gone, PartitionsLost or PartitionsUnreachable for NOBODY."""
        if number == NOBODY:
            raise self.partitions_absent()
        cause = self.lost.get(number)
        if cause is not None:
            member = self.view.by_number.get(number, number)
            raise MemberUnavailable(
                f"{member} is lost: {cause}",
                member=str(number),
                hint="Try again in a few seconds, when the others have taken over.",
            )

    def require_reached(self, number: int) -> None:
        """Before anything is done for a request. Raises MemberSuspected for a member of this view
        that is not heard: the request may wait for the next one. ViewChanged for one that the view
        does not have any more: the request was made for an earlier one. For NOBODY as
        ``require_alive``."""
        try:
            self.require_alive(number)
        except MemberUnavailable as lost:
            if number == NOBODY:
                raise
            if number in self.view.by_number:
                raise MemberSuspected(lost.message, hint=lost.hint, member=lost.member) from lost
            raise ViewChanged(
                f"member {number} is not in view {self.view.number}: {self.lost[number]}",
                hint="Try again.",
                member=str(number),
            ) from lost

    def live_members(self) -> tuple[int, ...]:
        return tuple(m.number for m in self.view.members if m.number not in self.lost)

    def require_all_reached(self) -> None:
        """For requests that need every partition, before anything is done for them. Raises
        MemberSuspected, PartitionsLost, PartitionsUnreachable."""
        if self.view.absent:
            raise self.partitions_absent()
        if self.lost:
            for number in self.view.by_number:
                self.require_reached(number)

    def require_all_alive(self) -> None:
        """For requests that need every partition. Raises MemberUnavailable, PartitionsLost,
        PartitionsUnreachable."""
        if self.view.absent:
            raise self.partitions_absent()
        if self.lost:
            for number in self.view.by_number:
                self.require_alive(number)

    def partitions_absent(self) -> PartitionsLost | PartitionsUnreachable:
        """The error of requests that need partitions of which no member has a copy."""
        view = self.view
        if not view.lost and view.unreachable:
            return self._partitions_unreachable()
        gone = [n for n in self.lost if n not in view.by_number]
        causes = "; ".join(f"member {number} is lost: {self.lost[number]}" for number in gone)
        return PartitionsLost(
            f"every copy of {len(view.lost)} of {PARTITIONS} partitions is lost"
            + (f": {causes}" if causes else ""),
            member=str(gone[0]) if gone else "",
            hint="With ALTER CLUSTER ACCEPT LOST PARTITIONS they begin again without entries. With "
            "backups = 1 or more, the loss of a member loses nothing.",
        )

    def _partitions_unreachable(self) -> PartitionsUnreachable:
        view = self.view
        names = ", ".join(
            f"member {member.number} ({member.host}:{member.user_port}):"
            f" {self.lost.get(member.number, 'it was dropped')}"
            for member in view.former
        )
        return PartitionsUnreachable(
            f"{len(view.unreachable)} of {PARTITIONS} partitions cannot be reached: no member has a"
            " copy",
            detail=f"Those that kept them last may live and come back: {names}",
            member=str(view.former[0].number) if view.former else "",
            hint="Try again: a member that was cut off gives back what it has. If its process has"
            " ended, its rows come back when all members are stopped and started with their"
            " data_dir; ALTER CLUSTER ACCEPT LOST PARTITIONS gives them up.",
        )

    def in_doubt(self, name: str, partitions: Collection[int] = ()) -> PartitionsUnreachable:
        """The error of requests that would wait for a write of map ``name`` in doubt: it has a part
        in these unreachable partitions (none: in some)."""
        general = self._partitions_unreachable()
        which = ", ".join(map(str, sorted(partitions)))
        return PartitionsUnreachable(
            f'an entry of map "{name}" is written by a transaction whose end is not known: '
            + (f"it has a part in partition {which}, which" if which else "a part of it")
            + " cannot be reached",
            detail=general.detail,
            member=general.member,
            hint=general.hint,
        )

    def require_decidable(self, map_id: int, at: int = FOREVER) -> None:
        """Before a request waits for all that is undecided of a map at or below ``at``. Raises
        PartitionsUnreachable when some of it is in doubt: the wait may be long."""
        store = self.stores.get(map_id)
        if store is not None and self.doubts.at_or_below(map_id, at):
            raise self.in_doubt(store.schema.name)

    @property
    def coordinator(self) -> int:
        """The lowest live member."""
        return min(self.live_members())

    # --- maps ---------------------------------------------------------------------------------

    def schema(self, name: str, map_id: int = 0, version: int = 0) -> MapSchema:
        """The schema of a map that a client names. ``map_id`` and ``version`` are what the client
        believes (0 = nothing). Raises UndefinedMap, SchemaChanged; NoLease and MemberNotReady if
        another member may know the map."""
        own = self.catalog.find_id(map_id) if map_id else None
        try:  # only its transaction has another name for a map that it has made
            schema = own if own is not None and is_made(own) else self.catalog.get(name)
        except UndefinedMap:
            self.catalog_news.require()
            raise
        if (map_id and map_id != schema.map_id) or (version and version != schema.version):
            raise SchemaChanged(
                f'map "{name}" has changed since the request was made',
                hint="Read its schema again.",
            )
        return schema

    def store(self, map_id: int, version: int) -> MapStore:
        """The store of a planned map. Raises SchemaChanged."""
        store = self.stores.get(map_id)
        if store is None or (version and store.schema.version != version):
            raise self.changed_map(map_id)
        return store

    def readable(self, map_id: int, version: int) -> MapStore:
        """The store of a planned map, for a plan that only reads: its version of the schema may be
        an older one that still reads right. Raises SchemaChanged. Any thread."""
        store = self.stores.get(map_id)
        if store is None or (version and not store.reads(version)):
            raise self.changed_map(map_id)
        return store

    def backup_store(self, map_id: int) -> MapStore:
        """The store of what this member backs up of a map. Raises SchemaChanged."""
        store = self.backup_stores.get(map_id)
        if store is None:
            primary = self.stores.get(map_id)
            if primary is None:
                raise self.changed_map(map_id)
            store = self.backup_stores[map_id] = MapStore(primary.schema)
        return store

    def copies_of(self, map_id: int) -> tuple[MapStore, ...]:
        """All stores of a map on this member."""
        both = self.stores.get(map_id), self.backup_stores.get(map_id)
        return tuple(store for store in both if store is not None)

    def copy_of(self, map_id: int, partition: int) -> MapStore:
        """The store in which the rows of a partition lie right now. Raises SchemaChanged."""
        store = self.stores.get(map_id)
        if store is None:
            raise self.changed_map(map_id)
        if self.primary_here is None:
            here = self.view.owners[partition] == self.number
        else:
            here = partition in self.primary_here and partition not in self.unmoved.get(map_id, ())
        if here or store.schema.replicated:
            return store
        backup = self.backup_stores.get(map_id)
        return self.backup_store(map_id) if backup is None else backup

    def stored_rows(self, map_id: int) -> float:
        """How many rows of a map this member has."""
        store = self.stores.get(map_id)
        return 0.0 if store is None else estimated_rows(store)

    def changed_map(self, map_id: int) -> SchemaChanged:
        """The error of a request that was made for a map as it was before."""
        schema = self.catalog.find_id(map_id)
        store = self.stores.get(map_id)
        name = self.dropped.get(map_id) if store is None else store.schema.name
        what = "dropped" if schema is None else "altered"
        which = f'map "{name}"' if name else f"a map of the request (id {map_id})"
        return SchemaChanged(f"{which} was {what} meanwhile", hint="Run the statement again.")

    def forget_map(self, map_id: int) -> None:
        """The map is dropped; its name is kept for a while, for errors."""
        self.dropped[map_id] = self.stores.pop(map_id).schema.name
        self.backup_stores.pop(map_id, None)
        self.unmoved.pop(map_id, None)
        while len(self.dropped) > DROPPED_NAMES_KEPT:
            del self.dropped[next(iter(self.dropped))]

    # --- work ---------------------------------------------------------------------------------

    def spawn(
        self,
        work: Coroutine[Any, Any, None],
        what: str,
        failed: Callable[[RemudaError], None] | None = None,
    ) -> asyncio.Task[None]:
        """Run ``work`` beside everything else; ``failed`` gets its errors, which are logged
        otherwise."""
        task = asyncio.get_running_loop().create_task(self._guarded(work, what, failed))
        self._tasks[task] = work
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Cancelled before its first step, a task never touches what it was to run: closed here,
        # that lets go of what it holds (and Python does not warn of it).
        self._tasks.pop(task).close()

    async def _guarded(
        self,
        work: Coroutine[Any, Any, None],
        what: str,
        failed: Callable[[RemudaError], None] | None,
    ) -> None:
        try:
            await work
        except RemudaError as error:
            if failed is not None:
                failed(error)
                return
            log.warning(
                "%s failed", what, extra=fields(error=error.message, kind=type(error).__name__)
            )
        except Exception as error:  # the boundary: a bug is logged with its place
            if failed is not None:
                failed(bug(error, what))
                return
            log.exception("%s failed", what)

    def serve(self, request: Call, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``, which answers ``request`` itself unless it raises."""
        self.spawn(work, f"request {request.rpc_type}", request.fail)

    @property
    def tasks(self) -> int:
        return len(self._tasks)

    async def cancel_tasks(self) -> None:
        """Cancel them until they are gone: a wait that ends in the very step in which it is
        cancelled may swallow that (``asyncio.wait_for`` does)."""
        while self._tasks:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.wait(list(self._tasks), timeout=CANCEL_AGAIN)


async def to_its_end(task: asyncio.Future[T], what: str) -> T:
    """The result of ``task``, which goes on when the caller is cancelled; its error is logged then,
    as nobody else hears of it."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(partial(_alone, what))
        raise


def _alone(what: str, task: asyncio.Future[Any]) -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, RemudaError):
        log.info("%s failed after its caller had gone: %s", what, error.message)
    elif isinstance(error, Exception):
        bug(error, what)
