"""The rooms of one member, from the lowest floor to the highest, made in one phase.

After it every room exists. None of them listens, runs a task or knows the member's number:
``Member.start`` begins that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from uuid import UUID

from remuda.catalog.notification_queue import QUEUE
from remuda.config import MemberConfig
from remuda.execution.pool import Pool
from remuda.member.advisory.locks import AdvisoryService
from remuda.member.base.core import Core
from remuda.member.base.forwarding import Forwarding
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.base.routes import MemberRoutes, UserRoutes
from remuda.member.base.wing import Wing
from remuda.member.changes.change_retention import ChangeRetention
from remuda.member.changes.subscriptions import Subscriptions
from remuda.member.commits.commits import Commits
from remuda.member.commits.job_rows import JobRows
from remuda.member.commits.jobs import Jobs
from remuda.member.copies.copies import Copies
from remuda.member.copies.donations import Donations
from remuda.member.copies.donor import Donor
from remuda.member.copies.giving import Giving
from remuda.member.copies.receiving import Receiving
from remuda.member.drill.metadata import DrillMetadata
from remuda.member.drill.plans import DrillPlans
from remuda.member.drill.run_queries import RunQueries
from remuda.member.drill.statement_requests import StatementRequests
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
from remuda.member.notifications.service import Notifications
from remuda.member.postgres.wing import PostgresWing
from remuda.member.queries.queries import Queries
from remuda.member.sessions.service import TransactionService
from remuda.member.snapshots.snapshots import Snapshots, witness_of
from remuda.member.snapshots.tasks import SnapshotTasks
from remuda.member.statements.catalog_requests import CatalogRequests
from remuda.member.statements.index_service import IndexService
from remuda.member.statements.plans import Plans
from remuda.member.statements.preparing import Preparing
from remuda.member.statements.statements import Statements
from remuda.member.statements.statistics_service import ClusterStatistics
from remuda.member.system.activity_report import ActivityReport
from remuda.member.system.advisory_rows import AdvisoryRows
from remuda.member.system.profile_service import ProfileService
from remuda.member.system.query_relations import QueryRelations
from remuda.member.system.system_relations import SystemRelations
from remuda.member.system.system_state import SystemState
from remuda.member.transactions.transactions import Transactions
from remuda.world import World


class Rooms:
    """Made inside a running event loop, which is the member's."""

    def __init__(self, config: MemberConfig, world: World, end: Callable[[str], None]) -> None:
        """``end`` is told why the member must end, when its disk fails."""
        self.core = Core(config, world, str(UUID(int=world.chance.bits(128), version=4)))
        self.hop = Hop(asyncio.get_running_loop())
        later = asyncio.get_running_loop().call_soon
        self.pool = Pool(config.workers, world.workers, later=later)
        self.offload = Offload(world.workers)
        self.planner = Offload(world.workers, "planner")
        self.reading = Offload(world.workers, "reading")
        self.password_checks = Offload(world.workers, "passwords")
        self.peers = Peers(self.core)
        self._member_routes = MemberRoutes()
        self._user_routes = UserRoutes(self.core)
        self.forwarding = Forwarding(self.core, self.peers, self._user_routes.again)
        self._make_storage(end)
        self._make_services()
        self._make_statements()
        self._make_system()
        self._hear()
        self.wings: tuple[Wing, ...] = self._in_order()

    # --- transactions, copies, membership ------------------------------------------------------

    def _make_storage(self, end: Callable[[str], None]) -> None:
        core, peers, offload = self.core, self.peers, self.offload
        self.transactions = Transactions(core, peers)
        self.commits = Commits(
            core,
            peers,
            offload,
            small_writes=self.transactions.settled,
            undecided=self.transactions.undecided,
        )
        self.transactions.on_tick.append(self.commits.in_doubt.note)
        here = self.commits.participants
        self.copies = Copies(core, here, offload)
        self.job_rows = JobRows(core, peers, here)
        self.receiving = Receiving(core, peers, self.transactions, offload, self.job_rows)
        self.catalog = CatalogService(core, peers)
        self.transactions.decide_by(self.catalog)
        self.recovery: Recovery | None = None
        if core.config.data_dir:
            witness = partial(witness_of, core.config, core.world)
            former, ends = self.receiving.former, self.transactions.shell.ends
            self.recovery = Recovery(core, former, end, ends, witness)
        self.membership = Membership(core, peers, self.catalog, self.recovery)
        moved_by = self.transactions, self.membership, offload
        self.giving = Giving(core, peers, here, *moved_by, self.job_rows)
        kept = self.transactions, self.commits.in_doubt, self.catalog
        self.donations = Donations(core, self.membership, self.receiving, *kept)
        self.donor = Donor(core, *kept)
        self.lost = LostPartitions(core, self.membership, self.transactions)

    # --- maps, jobs, change streams -------------------------------------------------------------

    def _make_services(self) -> None:
        core, peers, commits = self.core, self.peers, self.commits
        self.maps = Maps(core, peers, commits, self.forwarding, self.transactions)
        self.changes = MapChanges(core, peers, commits, self.forwarding, self.maps)
        self.expiry = MapExpiry(core, peers, commits, self.maps, self.changes)
        self.eviction = MapEviction(core, self.transactions, self.maps.writes.small)
        self.jobs = Jobs(core, peers, commits, self.forwarding, self.job_rows)
        self.read_leases = ReadLeases(core)
        self.subscriptions = Subscriptions(core, self.offload)
        self.retention = ChangeRetention(core)
        self.open = TransactionService(
            core,
            peers,
            membership=self.membership,
            maps=self.maps,
            changes=self.changes,
            committing=self.transactions,
            catalog=self.catalog,
        )
        """Transactions of clients that are not committed yet."""
        self.advisory = AdvisoryService(core, peers)
        create = partial(self.catalog.create, QUEUE, if_not_exists=True)
        self.notifications = Notifications(
            core, peers, self.transactions, self.subscriptions.logs, create
        )

    # --- queries and statements -----------------------------------------------------------------

    def _make_statements(self) -> None:
        core, peers = self.core, self.peers
        self.queries = Queries(core, peers, self.hop, self.pool)
        self.statistics = ClusterStatistics(core, peers, self.planner)
        self.indexes = IndexService(core, peers, self.catalog)
        self.plans = Plans(core, self.statistics, self.planner)
        self.preparing = Preparing(core, self.plans)
        self.drill_metadata = DrillMetadata(core)
        self.drill_plans = DrillPlans(core, self.plans)
        self.statements = Statements(
            core,
            peers,
            self.hop,
            membership=self.membership,
            queries=self.queries,
            commits=self.commits,
            catalog=self.catalog,
            plans=self.plans,
            reads=ShortReads(core, peers, self.maps, self.transactions),
            maps=self.maps,
            indexes=self.indexes,
            transactions=self.open.sessions,
            keys=self.open.keys,
            advisory=self.advisory,
            notifications=self.notifications,
            accept_lost=self.lost.accept,
            reading=self.reading,
        )
        self.transactions.guard_by(self.statements.checks)
        find_parents = self.statements.checks.foreign_keys.require_parents
        self.commits.checks.find_parents_by(find_parents)
        self.statement_requests = StatementRequests(core, self.statements)
        self.catalog_requests = CatalogRequests(core, self.catalog, self.statistics)
        self.postgres = PostgresWing(core, peers, self.statements, self.queries, self.plans)
        self.run_queries = RunQueries(core, self.statements, self.plans, self.queries)

    # --- the state of the member, and snapshots -------------------------------------------------

    def _make_system(self) -> None:
        core, peers, statements = self.core, self.peers, self.statements
        tasks = SnapshotTasks(core.world.clock.wall_micros)
        self.system = SystemState(
            core,
            peers,
            self.queries,
            gauges=self.gauges,
            clients=statements.clients,
            queued=statements.gate.waits,
            transactions=lambda: self.open.sessions,
            copies_refused=lambda: self.giving.refused,
            internal_errors=lambda: statements.history.internal_errors,
            subscriptions=self.subscriptions.describe,
            snapshots=tasks.described,
            spark=statements.spark.services.described,
            membership=self.membership.history.events,
        )
        self.profiles = ProfileService(
            core, peers, self.system, statements.history, statements.running
        )
        parts = self.transactions, self.maps, self.commits
        self.activity = ActivityReport(core, peers, self.system, statements, *parts)
        SystemRelations(
            core,
            self.system,
            silence=self.membership.silence,
            statistics=self.statistics,
            indexes=self.indexes,
            statements=statements,
            queries=QueryRelations(core, self.system, self.profiles),
            activity=self.activity,
            advisory=AdvisoryRows(core, peers, self.advisory),
        )
        self.snapshots = Snapshots(
            core,
            peers,
            self.membership,
            self.commits,
            self.catalog,
            self.system,
            tasks,
            statements,
            self.indexes,
        )
        lag = self.maps.writes.small.backup_lag
        self.metrics = Metrics(core, self.gauges, self.subscriptions.describe, lag)

    # --- news -------------------------------------------------------------------------------------

    def _hear(self) -> None:
        """In this order the wings hear of the same news, once they have started."""
        news, commits, queries = self.core.listeners, self.commits, self.queries
        news.view.add_later(
            self.lost.on_view,
            self.transactions.on_view,
            self.copies.on_view,
            self.receiving.on_view,
            self.giving.on_view,
            self.job_rows.on_view,
            self.eviction.on_view,
            self.donations.on_view,
            commits.on_view,
            lambda *_: queries.members_changed(),
            self.subscriptions.on_view,
            self.notifications.on_view,
        )
        news.heard.add_later(lambda _: queries.members_changed())
        news.lost.add_later(
            queries.member_lost,
            self.statements.gate.member_lost,
            lambda number, _: commits.turns.member_lost(number),
        )
        news.memory.add_later(self.statements.gate.reported)
        news.broken.add_later(queries.connection_broken)
        news.resolved.add_later(queries.resolved, self.transactions.map_resolved)
        news.dropped.add_later(
            queries.map_dropped,
            commits.map_dropped,
            self.jobs.map_dropped,
            self.retention.dropped,
            self.maps.forget,
            self.statistics.forget,
            self.core.constraints.forget,
            self.transactions.map_changed,
            self.subscriptions.on_dropped,
        )
        news.altered.add_later(
            self.maps.forget,
            self.statistics.forget,
            self.transactions.map_changed,
            self.subscriptions.wake,
        )
        self.transactions.on_lower.extend([queries.readers, commits.readers])
        self.open.pins.keep_for(
            self.read_leases.oldest_read,
            self.statements.spark.services.oldest_read,
            self.snapshots.tasks.oldest_read,
        )

    # --- one face ---------------------------------------------------------------------------------

    def _in_order(self) -> tuple[Wing, ...]:
        """From the lowest floor to the highest: the order in which they start, stop and close."""
        return (
            self.transactions,
            self.commits,
            self.job_rows,
            self.jobs,
            self.queries,
            self.metrics,
            self.catalog,
            self.membership,
            self.maps,
            self.changes,
            self.expiry,
            self.eviction,
            self.read_leases,
            self.advisory,
            self.notifications,
            self.copies,
            self.receiving,
            self.giving,
            self.donations,
            self.open,
            self.subscriptions,
            self.indexes,
            self.statistics,
            self.preparing,
            self.catalog_requests,
            self.statements,
            self.system,
            self.profiles,
            self.activity,
            self.drill_metadata,
            self.drill_plans,
            self.statement_requests,
            self.run_queries,
            self.postgres,
            self.snapshots,
        )

    def gauges(self) -> dict[str, int]:
        """Counts of the things that this member holds now; all are zero (but channels and clients)
        when it is idle."""
        return {
            "channels": self.peers.open_channels,
            "tasks": self.core.tasks,
            "memory_held": self.core.memory.total,
            "spilled": self.core.spilled.bytes,
            **self.core.wal.gauges(),
            **{name: value for wing in self.wings for name, value in wing.gauges().items()},
        }
