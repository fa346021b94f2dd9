"""One member: listeners, parts, and how they are wired together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import UUID

from google.protobuf.message import Message

from remuda.cluster.membership import Reached
from remuda.config import MemberConfig, check_exposure
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import MemberGivenUp, MemberUnavailable, RemudaError, SessionTerminated
from remuda.execution.pool import Pool
from remuda.member.base.core import Call, Core
from remuda.member.base.forwarding import Forwarding
from remuda.member.base.logins import known_users
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.base.routes import PRIMARY_CALLS, MemberRoutes, UserRoutes
from remuda.member.changes.change_retention import ChangeRetention
from remuda.member.changes.subscriptions import Subscriptions
from remuda.member.commits.commits import Commits
from remuda.member.commits.job_rows import JobRows
from remuda.member.commits.jobs import Jobs
from remuda.member.commits.writes import on_stage_rows
from remuda.member.copies.copies import Copies
from remuda.member.copies.donations import Donations
from remuda.member.copies.donor import Donor
from remuda.member.copies.giving import Giving
from remuda.member.copies.receiving import Receiving
from remuda.member.drill.metadata import DrillMetadata
from remuda.member.drill.plans import DrillPlans
from remuda.member.drill.run_queries import RunQueries
from remuda.member.drill.server import on_server_meta, server_infos
from remuda.member.leaving import Leaving
from remuda.member.maps.changes import MapChanges
from remuda.member.maps.eviction import MapEviction
from remuda.member.maps.expiry import MapExpiry
from remuda.member.maps.maps import Maps
from remuda.member.maps.read_leases import ReadLeases
from remuda.member.maps.short_reads import ShortReads
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.lost_partitions import LostPartitions
from remuda.member.membership.membership import Membership
from remuda.member.membership.recovery import Recovery
from remuda.member.monitoring.wing import Metrics
from remuda.member.open_work import OpenWork
from remuda.member.postgres.wing import PostgresWing
from remuda.member.queries.queries import Queries
from remuda.member.security.defences import defences
from remuda.member.sessions.service import TransactionService
from remuda.member.snapshots.snapshots import Snapshots, witness_of
from remuda.member.state.log import fields
from remuda.member.statements.catalog_requests import CatalogRequests
from remuda.member.statements.index_service import IndexService
from remuda.member.statements.plans import Plans
from remuda.member.statements.preparing import Preparing
from remuda.member.statements.statements import Statements
from remuda.member.statements.statistics_service import ClusterStatistics
from remuda.member.system.activity_report import ActivityReport
from remuda.member.system.profile_service import ProfileService
from remuda.member.system.query_relations import QueryRelations
from remuda.member.system.system_relations import SystemRelations
from remuda.member.system.system_state import SystemState
from remuda.member.transactions.transactions import Transactions
from remuda.member.upkeep import Upkeep
from remuda.rpc import codec, server
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import control_pb2, data_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.messages.user_pb2 import RpcType as UserType
from remuda.rpc.transport import Channel
from remuda.world import World

log = logging.getLogger(__name__)


class Member:
    """``await start()``, then it serves until ``await stop()``."""

    def __init__(self, config: MemberConfig, world: World) -> None:
        self.core = Core(config, world, str(UUID(int=world.chance.bits(128), version=4)))
        self._offload = Offload(world.workers)
        self._planner = Offload(world.workers, "planner")
        self._password_checks = Offload(world.workers, "passwords")
        self.metrics = Metrics(self.core)
        self.peers = Peers(self.core)
        self.postgres = PostgresWing(self.core, self.peers)
        self.membership = Membership(self.core, self.peers)
        self.catalog = CatalogService(self.core, self.peers)
        self.transactions = Transactions(self.core, self.peers)
        self.commits = Commits(self.core, self.peers, self._offload)
        here = self.commits.participants
        here.small_writes, here.undecided = self.transactions.settled, self.transactions.undecided
        self.transactions.on_tick.append(self.commits.in_doubt.note)
        self.copies = Copies(self.core, here, self._offload)
        self.job_rows = JobRows(self.core, self.peers, here)
        rows, moved_by = self.job_rows, (self.transactions, self.membership, self._offload)
        self.receiving = Receiving(self.core, self.peers, self.transactions, self._offload, rows)
        self.giving = Giving(self.core, self.peers, here, *moved_by, rows)
        self.forwarding = Forwarding(self.core, self.peers)
        self.maps = Maps(self.core, self.peers, self.commits, self.forwarding, self.transactions)
        self.changes = MapChanges(self.core, self.peers, self.commits, self.forwarding, self.maps)
        self.expiry = MapExpiry(self.core, self.peers, self.commits, self.maps, self.changes)
        self.eviction = MapEviction(self.core, self.transactions, self.maps.writes.small)
        self.lost = LostPartitions(self.core, self.membership, self.transactions)
        self.jobs = Jobs(self.core, self.peers, self.commits, self.forwarding, rows)
        kept = (self.transactions, self.commits.in_doubt, self.catalog)
        self.donations = Donations(self.core, self.membership, self.receiving, *kept)
        self.donor = Donor(self.core, *kept)
        self.read_leases = ReadLeases(self.core)
        self.statistics = ClusterStatistics(self.core, self.peers, self._planner)
        self.subscriptions = Subscriptions(self.core, self._offload)
        self._retention = ChangeRetention(self.core)
        self.indexes = IndexService(self.core, self.peers, self.catalog)
        self.membership.forming.catalog_state = self.catalog.state
        self.membership.forming.catalog_received = self.catalog.install
        self.membership.on_catalog = self.catalog.catch_up
        self.recovery: Recovery | None = None
        if config.data_dir:
            ends, witness = self.transactions.shell.ends, partial(witness_of, config, world)
            former = self.receiving.former
            self.recovery = Recovery(self.core, former, self._end_with, ends, witness)
            self.membership.forming.recovery = self.recovery
        self.queries: Queries
        self.statements: Statements
        self.open: TransactionService
        """Transactions of clients that are not committed yet."""
        self.system: SystemState
        self._user_routes = UserRoutes(self.core)
        self.forwarding.handle = self._user_routes.again
        self._member_routes = MemberRoutes()
        self._servers: dict[ChannelKind, server.Server] = {}
        self._pool: Pool | None = None
        self._keeping_up: asyncio.Task[None] | None = None
        self._evicting: asyncio.Task[None] | None = None
        self._end: asyncio.Task[None] | None = None
        self.on_given_up: list[Callable[[str], None]] = []
        """Called with the reason when this member stops because others count it as lost."""
        self.peers.on_given_up.append(self._given_up)

    @property
    def info(self) -> MemberInfo:
        return self.core.info

    # --- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, find the others, serve. Raises RemudaErrors; ``stop`` cleans up afterwards."""
        await self._listen()
        self._route_membership()
        if self.recovery is not None:
            await self.recovery.open()
        await self.membership.form()
        self.copies.begin()
        self.transactions.start()
        later = asyncio.get_running_loop().call_soon
        self._pool = Pool(self.core.config.workers, self.core.world.workers, later=later)
        hop = Hop(asyncio.get_running_loop())
        self._offload.start(hop)
        self._planner.start(hop)
        self.queries = Queries(self.core, self.peers, hop, self._pool)
        plans = Plans(self.core, self.statistics, self._planner)
        self._preparing = Preparing(self.core, plans)
        self._drill_plans = DrillPlans(self.core, plans)
        self.open = TransactionService(
            self.core,
            self.peers,
            membership=self.membership,
            maps=self.maps,
            changes=self.changes,
            committing=self.transactions,
        )
        self.statements = Statements(
            self.core,
            self.peers,
            hop,
            membership=self.membership,
            queries=self.queries,
            commits=self.commits,
            catalog=self.catalog,
            plans=plans,
            reads=ShortReads(self.core, self.peers, self.maps, self.transactions),
            maps=self.maps,
            indexes=self.indexes,
            transactions=self.open.sessions,
            keys=self.open.keys,
            leave=self.core.departure.drain,
        )
        self.statements.accept_lost = self.lost.accept
        self.run_queries = RunQueries(self.core, self.statements, plans, self.queries)
        self.transactions.guarding = self.statements.uniques
        self.system = SystemState(
            self.core,
            self.peers,
            self.queries,
            gauges=self.gauges,
            clients=self.statements.clients,
            queued=self.statements.gate.waits,
            transactions=lambda: self.open.sessions,
            copies_refused=lambda: self.giving.refused,
            internal_errors=lambda: self.statements.history.internal_errors,
        )
        self.profiles = ProfileService(
            self.core, self.peers, self.system, self.statements.history, self.statements.running
        )
        self.system.subscriptions = self.subscriptions.describe
        lag = self.maps.writes.small.backup_lag
        self.metrics.serve(self.gauges, self.subscriptions.describe, lag)
        SystemRelations(
            self.core,
            self.system,
            statistics=self.statistics,
            indexes=self.indexes,
            supplies=self.statements.supplies,
            queries=QueryRelations(self.core, self.system, self.profiles),
            activity=self._activity_report(),
        )
        self.snapshots = Snapshots(
            self.core, self.peers, self.membership, self.commits, self.catalog, self.system
        )
        self.snapshots.start(self.statements, self.open.pins)
        served = (self.statements, self.queries, self.jobs, self.transactions, self.commits)
        work = OpenWork(self.open.sessions, *served)
        reached = (self.core, self.membership, work, self._servers)
        self._leaving = Leaving(*reached, self.postgres)
        for channel in self._servers[ChannelKind.USER].channels:
            self.run_queries.connected(channel)
        self.postgres.serve(self.statements, self.queries, plans)
        self._route()
        self._listen_to_each_other()
        self.open.pins.others.append(self.read_leases.oldest_read)
        self.open.pins.others.append(self.statements.spark.services.oldest_read)
        self.open.pins.start()
        self._keep_up()
        self._evicting = self.core.spawn(self.eviction.run(), "eviction")
        log.info("serving", extra=fields(**self.addresses()))

    def _activity_report(self) -> ActivityReport:
        statements, parts = self.statements, (self.transactions, self.maps, self.commits)
        self.activity = ActivityReport(self.core, self.peers, self.system, statements, *parts)
        return self.activity

    def _keep_up(self) -> None:
        """From now on, for what is stored."""
        self.receiving.begin()
        self.giving.begin()
        reads = self.statements.oldest_read, self.queries.oldest_read, self.open.pins.oldest_read
        self.upkeep = Upkeep(
            self.core,
            self._offload,
            self._retention,
            oldest_reads=(*reads, self.transactions.oldest),
            expire_jobs=self.jobs.expire,
        )
        self._keeping_up = self.core.spawn(self.upkeep.run(), "upkeep")

    async def _listen(self) -> None:
        config, network = self.core.config, self.core.world.network
        protection = self.core.defences = defences(config, self.core.world)
        users, verifier = known_users(self.core, self._password_checks)
        tls = protection.listening.get(ChannelKind.USER)
        await self.metrics.start(tls, verifier)
        await self.postgres.listen(tls, users, verifier)
        greeted = {
            ChannelKind.USER: self._user_connected,
            ChannelKind.DATA: self._data_connected,
        }
        for kind, port, answer, handler in (
            (ChannelKind.USER, config.user_port, self._greet_user, self._user_routes.handle),
            (
                ChannelKind.CONTROL,
                config.control_port,
                self._greet_control,
                self._member_routes.handle_control,
            ),
            (ChannelKind.DATA, config.data_port, self._greet_data, self._member_routes.handle_data),
        ):
            if kind is ChannelKind.CONTROL and config.control_fd >= 0:
                sock = network.adopt(config.control_fd)
                check_exposure(replace(config, host=sock.getsockname()[0]))
            else:
                sock = network.listen(config.host, port)
            connected = greeted.get(kind)
            self._servers[kind] = await server.listen(
                sock,
                kind,
                answer,
                handler,
                connected,
                tls=protection.listening.get(kind),
                guard=protection.guard(kind, verifier),
            )
        self.core.info = replace(
            self.core.info,
            user_port=self._servers[ChannelKind.USER].address[1],
            control_port=self._servers[ChannelKind.CONTROL].address[1],
            data_port=self._servers[ChannelKind.DATA].address[1],
        )

    def addresses(self) -> dict[str, str]:
        """Of its channels and of its pages for operators, as HOST:PORT; of what is served."""
        places = self._servers.items()
        found = {kind.value: f"{each.address[0]}:{each.address[1]}" for kind, each in places}
        more = {"metrics": self.metrics.address, "postgres": self.postgres.address}
        return found | {name: address for name, address in more.items() if address}

    async def leave(self) -> None:
        """Leave the cluster in order (``cluster.leaving``); ``stop`` comes after it."""
        if self._end is None and self.core.serving and hasattr(self, "_leaving"):
            await self._leaving.leave()

    async def stop(self, reason: str = "it was stopped") -> None:
        """End every query and connection, and free everything, whether others want copies of this
        member or not."""
        self.donor.end()
        if self._end is None:
            self._end = asyncio.get_running_loop().create_task(self._stop(reason))
        await self._end

    def _given_up(self, error: MemberGivenUp) -> None:
        """The others go on without this member, for good: whatever it answered might be wrong."""
        if self.membership.leaving:
            self.membership.has_left()
        elif self._end is None:
            log.error("the others have given this member up", extra=fields(cause=error.message))
            self._end_with(error.message, donor=True)

    async def ended(self) -> None:
        """Return when a member that was given up has ended, after it was a donor perhaps."""
        if self._end is not None:
            await self._end

    def _end_with(self, reason: str, *, donor: bool = False) -> None:
        """It must not answer anybody any more."""
        if self._end is None:
            self._end = asyncio.get_running_loop().create_task(self._stop(reason, donor=donor))
            for listener in self.on_given_up:
                listener(reason)

    async def _stop(self, reason: str, *, donor: bool = False) -> None:
        core = self.core
        log.info("stopping", extra=fields(reason=reason))
        error = MemberUnavailable(f"member {core.number} is stopping: {reason}")
        if hasattr(self, "statements"):
            self.queries.close(error)
            self.statements.gate.close(error)
            self.statements.spark.services.close()
        core.stopping = True
        core.readiness.close(error)
        self.membership.close()
        self.transactions.close()
        if hasattr(self, "open"):
            self.open.close()
        self.commits.close()
        self.jobs.close()
        for task in (self._keeping_up, self._evicting):
            if task is not None:
                task.cancel()
        self.peers.close()
        self.postgres.close(SessionTerminated(f"terminating connection: {error.message}"))
        servers = dict(self._servers)
        if donor and hasattr(self, "queries"):
            # Users and load balancers that ask a donor are told what it is.
            for channel in list(servers.pop(ChannelKind.USER).channels):
                channel.close(error)
            self.donor.begin(reason)
        for listening in servers.values():
            await listening.close(error)
        await core.cancel_tasks()
        if self.donor.refusal is not None:
            await self.donor.run()
            await self._servers[ChannelKind.USER].close(error)
        self.metrics.close()
        if self.recovery is not None:
            await self.recovery.close()
        if hasattr(self, "snapshots"):
            self.snapshots.close()
        for offload in (self._offload, self._planner, self._password_checks):
            offload.close()
        if self._pool is not None:
            self._pool.close()
        core.audit.close()

    # --- greetings ----------------------------------------------------------------------------

    def _greet_user(self, _hello: Message) -> Message:
        self.core.departure.require_here()
        if self.donor.refusal is not None:
            raise self.donor.refusal
        return user_pb2.BitToUserHandshake(
            server_infos=server_infos(),
            supported_methods=self._user_routes.supported,
            arrow_results=True,
            member=self.core.number,
        )

    def _greet_control(self, hello: Message) -> Message:
        assert isinstance(hello, control_pb2.ControlHandshake)
        sender = codec.decode_member(hello.member)
        self.core.check_identity(sender, hello.context.view)
        if sender.number in self.core.lost:  # it lives, though its port may have been closed
            self.membership.step(Reached(sender.number))
        return control_pb2.ControlHandshake(
            member=codec.encode_member(self.core.info), context=self.core.context()
        )

    def _greet_data(self, hello: Message) -> Message:
        assert isinstance(hello, data_pb2.BitClientHandshake)
        self.core.observe_peer(hello.context)
        return data_pb2.BitServerHandshake()

    def _user_connected(self, channel: Channel) -> None:
        if hasattr(self, "statements"):
            self.run_queries.connected(channel)

    def _data_connected(self, channel: Channel) -> None:
        hello = channel.handshake
        assert isinstance(hello, data_pb2.BitClientHandshake)
        number = hello.context.sender

        def broken(error: RemudaError) -> None:
            if hasattr(self, "queries") and not self.core.stopping:
                self.queries.connection_broken(number, ChannelKind.DATA, error)

        channel.on_closed.append(broken)

    # --- wiring -------------------------------------------------------------------------------

    def _route_membership(self) -> None:
        self._member_routes.control |= {
            ControlType.JOIN: self.membership.joining.on_join,
            ControlType.MEET: self.membership.joining.on_meet,
            ControlType.VIEW_INSTALL: self.membership.joining.on_view_install,
            ControlType.RECOVER: self.membership.forming.on_recover,
            ControlType.HEARTBEAT: self.membership.on_heartbeat,
            ControlType.HEARTBEAT_ANSWER: self.membership.on_heartbeat_answer,
            ControlType.AGREE: self.membership.on_agree,
            ControlType.WISH: self.membership.on_wish,
            ControlType.CLOCK: self.membership.on_clock,
            ControlType.CATALOG_CHANGE: self.catalog.on_change,
            ControlType.CATALOG_INSTALL: self.catalog.on_install,
        }

    def _route(self) -> None:
        core, commits, queries = self.core, self.commits, self.queries
        self._member_routes.control |= {
            ControlType.QUERY_START: queries.on_start,
            ControlType.QUERY_CANCEL: queries.on_cancel,
            ControlType.QUERY_CHECK: queries.on_check,
            ControlType.QUERY_CHECK_RESPONSE: queries.on_check_response,
            ControlType.FRAGMENT_DONE: queries.on_fragment_done,
            **self.statements.reads.routes(),
            **self.indexes.routes,
            ControlType.MAP_STATISTICS: self.statistics.on_request,
            ControlType.SYSTEM_STATE: self.system.on_request,
            **self.profiles.routes(),
            ControlType.COMMIT_PREPARE: commits.on_prepare,
            ControlType.COMMIT_KEEP: commits.on_keep,
            ControlType.COPY_BEGIN: self.receiving.on_begin,
            ControlType.COPY_ROWS: self.receiving.on_rows,
            ControlType.COPY_COMPARE: self.receiving.on_compare,
            ControlType.COPY_REPLICATED: self.giving.on_replicated,
            ControlType.DONATE: self.donations.on_ask,
            ControlType.DONATE_COPIES: self.donations.on_copies,
            ControlType.DONATE_JOB: self.donations.on_job,
            ControlType.COMMIT_FINISH: commits.on_finish,
            ControlType.COMMIT_TURN: commits.on_turn,
            ControlType.COMMIT_TURN_END: commits.on_turn_end,
            ControlType.COMMIT_STATUS: commits.on_status,
            ControlType.JOB_TOUCH: self.jobs.on_touch,
            ControlType.STAGE_ROWS: partial(on_stage_rows, core, commits, self.job_rows.on_rows),
            ControlType.MOVES_PAUSE: self.job_rows.pauses.on_pause,
            ControlType.TRANSACTION_PIN: self.open.pins.on_pin,
            ControlType.PARTS: self.transactions.shell.on_messages,
            **self.transactions.locks.routes(),
            **self.snapshots.routes(),
            **self.activity.routes(),
            **self.postgres.routes(),
            **self.statements.by_key.routes(),
            ControlType.FORWARD: self._user_routes.on_forward,
        }
        self._member_routes.data |= {
            data_pb2.RpcType.REQ_RECORD_BATCH: queries.on_batch,
            data_pb2.RpcType.DATA_ACK_WITH_CREDIT: queries.on_flow_control,
        }
        self._user_routes.requests |= {
            UserType.RUN_QUERY: self.run_queries.on_run_query,
            **self.open.requests(),
            **self.subscriptions.routes(),
            **self.statements.spark.services.routes(),
        }
        self._user_routes.calls |= {
            UserType.CANCEL_QUERY: self.statements.on_cancel,
            UserType.CREATE_PREPARED_STATEMENT: lambda call: core.serve(
                call, self._preparing.on_prepare(call)
            ),
            UserType.RESUME_PAUSED_QUERY: self.statements.on_resume,
            UserType.GET_QUERY_PLAN_FRAGMENTS: lambda call: core.serve(
                call, self._drill_plans.on_fragments(call)
            ),
            UserType.GET_SERVER_META: on_server_meta,
            **DrillMetadata(core).routes(),
            **CatalogRequests(core, self.catalog, self.statistics).routes(),
            UserType.MAP_GET: self.maps.on_get,
            UserType.MAP_PUT: self.maps.on_put,
            UserType.MAP_REMOVE: self.maps.on_remove,
            UserType.MAP_SIZE: self.maps.on_size,
            UserType.MAP_PUT_BATCH: self.maps.on_put_batch,
            **self.changes.routes(),
            **self.expiry.routes(),
            **self.jobs.routes(),
            **self.read_leases.routes(),
            UserType.MEMBER_STATE: self._on_member_state,
        }
        self._user_routes.primary = PRIMARY_CALLS
        self._user_routes.complete = self._member_routes.complete = True

    def _listen_to_each_other(self) -> None:
        self.membership.on_view.append(self._view_changed)
        self.membership.on_heard.append(lambda _: self.queries.view_installed())
        self.membership.on_lost.append(self._member_lost)
        self.membership.on_view[:0] = [self.transactions.on_view, self._copies_changed]
        self.membership.on_view.insert(0, self.lost.on_view)
        self.membership.on_memory.append(self.statements.gate.reported)
        self.peers.on_broken.append(self.queries.connection_broken)
        self.commits.on_resolved += [self.queries.resolved, self.transactions.map_resolved]
        self.transactions.on_lower.extend([self.queries.readers, self.commits.readers])
        self.catalog.on_dropped += [
            self.queries.map_dropped,
            self.commits.map_dropped,
            self.jobs.map_dropped,
            self._retention.dropped,
            self.maps.forget,
            self.statistics.forget,
        ]
        self.catalog.on_dropped += [self.core.constraints.forget, self.transactions.map_changed]
        altered = self.maps.forget, self.statistics.forget, self.transactions.map_changed
        self.catalog.on_altered += altered
        self.subscriptions.listen(self.copies, self.catalog, self.membership)
        for number, cause in list(self.core.lost.items()):
            self._member_lost(number, cause)

    def _member_lost(self, number: int, cause: str) -> None:
        """It is suspected, or was dropped: nothing waits for it any more."""
        error = MemberUnavailable(f"member {number} is lost: {cause}", member=str(number))
        self.queries.member_lost(number, error)
        self.statements.gate.member_lost(number)
        self.commits.turns.member_lost(number)

    def _copies_changed(self, before: View, view: View) -> None:
        self.copies.on_view(before, view)
        self.receiving.on_view(before, view)
        self.giving.on_view(view)
        self.job_rows.on_view(view)
        self.eviction.on_view(before, view)
        self.donations.on_view(view)

    def _view_changed(self, before: View, view: View) -> None:
        self.commits.participants.awaiting(view.awaited)
        for number in sorted(before.by_number.keys() - view.by_number.keys()):
            self.commits.member_lost(number, self.core.lost[number])
        self.commits.view_installed(view)
        self.queries.view_installed()

    # --- state ---------------------------------------------------------------------------------

    def gauges(self) -> dict[str, int]:
        """What this member holds right now; all zero (but channels and clients) when it is idle."""
        return {
            "queries": self.queries.count,
            "fragments": self.queries.fragments,
            "jobs": self.jobs.count,
            "read_leases": self.read_leases.count,
            "channels": self.peers.open_channels,
            "tasks": self.core.tasks,
            "memory_held": self.core.memory.total,
            "spilled": self.core.spilled.bytes,
            **self.statements.gauges(),
            **self.commits.gauges(),
            **self.transactions.gauges(),
            **self.copies.gauges(),
            **self.receiving.gauges(),
            **self.giving.gauges(),
            **self.open.gauges(),
            **self.subscriptions.gauges(),
            **self.core.wal.gauges(),
        }

    def _on_member_state(self, call: Call) -> None:
        state = user_pb2.MemberState(member=self.core.number, context=self.core.context())
        for name, value in sorted(self.gauges().items()):
            state.gauges.add(name=name, value=value)
        call.reply(UserType.MEMBER_STATE, state)
