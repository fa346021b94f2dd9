"""The work of the members right now, asked from each of them when somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from remuda.member.base.call import Call
from remuda.member.base.core import Core
from remuda.member.base.peers import REQUEST_TIMEOUT, Peers
from remuda.member.base.round import PATIENCE, Gathered, in_one_round
from remuda.member.base.wing import Routes, Wing
from remuda.member.queries.fragment_reports import encode_operator
from remuda.member.queries.queries import Queries
from remuda.member.sessions.client_table import ClientTable
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.statement import Statement
from remuda.member.state.log import levels
from remuda.query.ids import QueryId
from remuda.query.wire import encode_query_id
from remuda.rpc.messages import control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.messages.user_pb2 import RpcType as UserType
from remuda.rpc.transport import Request
from remuda.storage.maps.expiring_rows import expirations
from remuda.storage.maps.map_store import MapStore

TEXT_SHOWN = 10_000
"""Characters of a statement's text that travel."""


def fill_counters(part: control_pb2.MapPart, store: MapStore, at: int) -> None:
    counters = store.counters
    part.gets, part.misses = counters.gets, counters.misses
    part.puts, part.removes = counters.puts, counters.removes
    part.evictions, part.idle = counters.evictions, counters.idle
    part.expirations = expirations(store, at)
    part.last_access, part.last_update = counters.last_access, counters.last_update
    part.rows_read, part.rows_written = counters.rows_read, store.changes


class SystemState(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        queries: Queries,
        *,
        gauges: Callable[[], Mapping[str, int]],
        clients: ClientTable,
        queued: Callable[[QueryId], bool],
        transactions: Callable[[], Iterable[OpenTransaction]],
        copies_refused: Callable[[], str],
        internal_errors: Callable[[], int],
        subscriptions: Callable[[], Iterable[control_pb2.Subscription]],
        snapshots: Callable[[], Iterable[control_pb2.SnapshotTask]],
        spark: Callable[[], Iterable[control_pb2.SparkService]],
        membership: Callable[[], Iterable[control_pb2.MembershipEvent]],
    ) -> None:
        """``clients`` has the statements that run here; ``queued`` tells which of them wait for
        memory; ``copies_refused`` why another member did not take a copy that it is to have;
        ``internal_errors`` how many statements have ended with one; ``subscriptions`` the clients
        that read changes of maps here; ``snapshots`` the statements about snapshots that run
        here; ``spark`` the services that ask for work here; ``membership`` what this member has
        seen of the others."""
        self._spark = spark
        self._membership = membership
        self._copies_refused = copies_refused
        self._queued = queued
        self._internal_errors = internal_errors
        self._transactions = transactions
        self._core = core
        self._peers = peers
        self._queries = queries
        self._gauges = gauges
        self._clients = clients
        self._snapshots = snapshots
        self._subscriptions = subscriptions

    def routes(self) -> Routes:
        return Routes(
            control={RpcType.SYSTEM_STATE: self.on_request},
            calls={UserType.MEMBER_STATE: self._on_member_state},
        )

    def _on_member_state(self, call: Call) -> None:
        core = self._core
        state = user_pb2.MemberState(member=core.number, context=core.context())
        for name, value in sorted(self._gauges().items()):
            state.gauges.add(name=name, value=value)
        call.reply(UserType.MEMBER_STATE, state)

    async def all(self) -> dict[int, control_pb2.SystemState]:
        """The state of each live member. Raises MemberUnavailable."""
        return (await self._asked(REQUEST_TIMEOUT)).whole()

    async def answered(
        self, timeout: float = PATIENCE, *, membership: bool = False
    ) -> Gathered[control_pb2.SystemState]:
        """The states of the members that answer within ``timeout`` seconds: for people who look at
        a cluster because something is wrong with it. ``membership``: with its events."""
        return await self._asked(timeout, membership)

    async def _asked(
        self, timeout: float, membership: bool = False
    ) -> Gathered[control_pb2.SystemState]:
        message = control_pb2.SystemStateRequest(context=self._core.context())
        if membership:
            message.membership = True
        found = await in_one_round(
            self._core,
            self._peers,
            RpcType.SYSTEM_STATE,
            message,
            control_pb2.SystemState.FromString,
            timeout,
        )
        return found.with_own(self._core.number, self.here(membership))

    def on_request(self, request: Request) -> None:
        message = control_pb2.SystemStateRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        request.reply(RpcType.SYSTEM_STATE, self.here(message.membership))

    def _rows(self, store: MapStore) -> int:
        return store.size(self._core.timestamp()) if store.expiring else store.rows

    def here(self, membership: bool = False) -> control_pb2.SystemState:
        core = self._core
        state = control_pb2.SystemState(
            context=core.context(), catalog_version=core.catalog.version
        )
        for name, value in sorted(self._gauges().items()):
            state.gauges.add(name=name, value=value)
        core.room.look()
        for name, value in core.room.gauges().items():
            state.gauges.add(name=name, value=value)
        state.gauges.add(name="memory_limit", value=core.memory.limit or 0)
        state.gauges.add(name="memory_peak", value=core.memory.peak)
        state.gauges.add(name="internal_errors", value=self._internal_errors())
        if refused := self._copies_refused():
            state.copies_refused = refused
        for map_id, store in core.stores.items():
            part = state.maps.add(map_id=map_id, rows=self._rows(store), bytes=store.bytes)
            fill_counters(part, store, core.clock.last)
            limit = core.room.map_limit(map_id)
            if limit is not None:
                part.bytes_limit = limit
            backup = core.backup_stores.get(map_id)
            if backup is not None:
                part.backup_rows, part.backup_bytes = self._rows(backup), backup.bytes
        for name, level in levels():
            state.log_levels.add(part=name, level=level)
        state.transactions.extend(self.open_transactions())
        state.snapshots.extend(self._snapshots())
        state.subscriptions.extend(self._subscriptions())
        state.spark_services.extend(self._spark())
        left = core.readiness.lease_until - core.world.clock.monotonic()
        if left < float("inf"):
            state.lease = max(0.0, left)
        if membership:
            state.membership.extend(self._membership())
        running = self._queries.running()
        state.statements.extend(self.running_statements())
        for query, instances in running:
            for instance in instances:
                fragment = state.fragments.add(
                    query_id=encode_query_id(query),
                    fragment=instance.fragment,
                    state=instance.state,
                    seconds=instance.seconds,
                    memory=instance.memory,
                    instance=instance.instance,
                )
                fragment.operators.extend(map(encode_operator, instance.operators()))
        return state

    def running_statements(self) -> Iterator[control_pb2.RunningStatement]:
        """Those of the clients of this member."""
        now = self._core.world.clock.monotonic()
        for statement, rows, size in self._clients.running():
            transaction = statement.transaction
            yield control_pb2.RunningStatement(
                query_id=encode_query_id(statement.query),
                serving=encode_query_id(statement.attempt or statement.query),
                text=statement.text[:TEXT_SHOWN],
                state=self.state_of(statement),
                planning=statement.progress.planning,
                queued=statement.progress.queued,
                waited=statement.progress.waited_until(now),
                started=statement.started,
                user=statement.user,
                rows=rows,
                bytes=size,
                pid=statement.session.pid,
                transaction="" if transaction is None else transaction.name,
                job=statement.progress.job,
            )

    def open_transactions(self) -> Iterator[control_pb2.OpenTransaction]:
        """Those of the clients of this member."""
        offset = self._core.wall_offset()
        for transaction in self._transactions():
            message = control_pb2.OpenTransaction()
            transaction.describe(message)
            message.pid = self._clients.pid_of(transaction.channel)
            message.used = round((transaction.last_used + offset) * 1e6)
            message.busy = bool(transaction.running) or transaction.turn.locked()
            yield message

    def state_of(self, statement: Statement) -> str:
        """``queued`` (for memory), ``waiting`` (for a lock or a turn), ``running``, ``on spark``,
        or ``preparing``: no query of it has begun yet.
        A recursive one begins many, one after the other, and runs between them as well."""
        if self._queued(statement.query):
            return "queued"
        if statement.progress.waits_since is not None:
            return "waiting"
        if statement.progress.on_spark:
            return "on spark"
        return "running" if statement.progress.runs else "preparing"
