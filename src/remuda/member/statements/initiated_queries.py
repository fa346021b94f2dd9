"""Queries that this member initiates for statements: where and when they run, and their pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    MemberNotReady,
    MemberUnavailable,
    QueryCanceled,
    QueryTimeout,
    RemudaError,
)
from remuda.execution.context import FragmentProfile, SuppliedRows
from remuda.execution.evaluate.lookup_keys import lookup_keys
from remuda.execution.parallel import instance_counts
from remuda.execution.root_sink import RootSink
from remuda.execution.rounds import Rounds
from remuda.member.base.core import Core
from remuda.member.base.loop_handoff import Hop
from remuda.member.membership.membership import Membership
from remuda.member.queries.fragments import statement_account
from remuda.member.queries.own_partitions import own_partitions
from remuda.member.queries.queries import Queries
from remuda.member.queries.query_start import Placed, QueryStart, place, place_here
from remuda.member.queries.query_state import Initiated
from remuda.member.sequences.calls import SequenceCalls
from remuda.member.sessions.statement import Statement
from remuda.member.sessions.supplied_relations import Supplies
from remuda.member.state.routing import Router
from remuda.member.statements.admission import AdmissionGate
from remuda.member.statements.recursion import Evaluation, Tables
from remuda.plan.physical import (
    Fragment,
    KeyLookup,
    PhysicalPlan,
    Pruning,
    TableScan,
)
from remuda.plan.sequence_calls import SequenceCall
from remuda.planner.fragments import PRUNED_KEYS_MAX
from remuda.query.ids import QueryId
from remuda.session.parameters import clock_values
from remuda.session.planning import PlannedQuery, PlannedSupply

INTERNAL_PAGE_ROWS = 64 * 1024
LEASE_ATTEMPTS = 5
"""So often a lease may lapse while the clocks of others are asked for."""


class Runs:
    """``supplies`` are the relations that are no maps; their owners register them there."""

    def __init__(
        self,
        core: Core,
        hop: Hop,
        membership: Membership,
        queries: Queries,
        sequences: SequenceCalls,
    ) -> None:
        self._core = core
        self._sequences = sequences
        self._hop = hop
        self._membership = membership
        self._queries = queries
        self.gate = AdmissionGate(core)
        self.supplies = Supplies()
        self.active: dict[QueryId, int] = {}
        """Read timestamps in use: versions at or above the lowest must be kept."""

    # --- where and when -----------------------------------------------------------------------

    async def start(
        self,
        statement: Statement,
        query: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        page_rows: int,
        tables: Tables | None = None,
    ) -> QueryStart:
        """Choose where and at which timestamp the query runs (design rule 15), and make the
        relations that it reads besides maps; ``tables`` are those that are there already."""
        core = self._core
        if query.plan.dependencies:
            await core.until_ready()
        start = self._placed(statement, query, values, page_rows)
        others = {member for member in start.participants if member != core.number}
        if not statement.local and any(map(_reads_maps, query.supplied)):
            core.require_all_reached()
            others.update(member for member in core.live_members() if member != core.number)
        for member in others:
            core.require_reached(member)
        await self.gate.pass_(statement, query.plan, (core.number, *sorted(others)))
        start = replace(start, timeout=self.gate.left(statement))
        if query.plan.dependencies:
            await core.until_ready()  # that may have taken long
        try:
            at = await self._read_timestamp(statement, tuple(sorted(others)), query)
        except MemberUnavailable:
            for member in others:
                core.require_reached(member)  # one may just have been lost
            raise
        statement.check()  # cancelled, or the client went, while others were asked
        start = _in_transaction(statement, replace(start, read_timestamp=at), core)
        if not query.supplied:
            return start
        return await self._supplied(statement, query, values, start, dict(tables or {}))

    async def timestamp(self, statement: Statement, query: PlannedQuery) -> int:
        """A timestamp at which the whole grid may be read, wherever its rows are."""
        core = self._core
        await core.until_ready()
        if core.view.absent:
            raise core.partitions_absent()
        others = tuple(member for member in core.live_members() if member != core.number)
        return await self._read_timestamp(statement, others, query)

    async def _read_timestamp(
        self, statement: Statement, others: tuple[int, ...], query: PlannedQuery
    ) -> int:
        """T. Where maps are read, the lease counts in the step in which T is chosen: when it has
        lapsed while others were asked, it is waited for, and they are asked again. Raises NoLease,
        and the refusals of the others."""
        core = self._core
        for _ in range(LEASE_ATTEMPTS):
            at = statement.read_timestamp
            if at is not None:
                core.observe_read(at)
            else:
                if others and not statement.session.causal:
                    await self._membership.clocks(others)
                at = core.timestamp()
            if not query.plan.dependencies or core.readiness.leased:
                return at
            await core.until_ready()
        core.require_lease()
        raise MemberNotReady(
            f"member {core.number} had no lease when its queries were to begin",
            member=str(core.number),
        )

    async def admit(
        self, statement: Statement, query: PlannedQuery, values: tuple[PhysicalValue, ...]
    ) -> None:
        """Wait for memory before the statement takes anything that others wait for."""
        members = self._placed(statement, query, values, INTERNAL_PAGE_ROWS).participants
        await self.gate.pass_(statement, query.plan, tuple(sorted({*members, self._core.number})))

    def _placed(
        self,
        statement: Statement,
        query: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        page_rows: int,
    ) -> QueryStart:
        parameters = values + clock_values(
            query.clock_parameters, statement.moment, statement.session
        )
        placed = self._place(statement, query, parameters)
        return QueryStart(
            plan=query.plan,
            parameters=parameters,
            read_timestamp=0,
            sites=placed.sites,
            partitions=placed.partitions,
            instances=self._instances(query.plan),
            timeout=statement.timeout,
            sink=RootSink(page_rows),
            encoded=query.encoded,
            view=self._core.view.number,
            runs=statement.progress.runs,
        )

    def _place(
        self, statement: Statement, query: PlannedQuery, parameters: tuple[PhysicalValue, ...]
    ) -> Placed:
        core = self._core
        if statement.partitions is not None:
            own_partitions(core, sorted(statement.partitions))  # another view may have come
        if statement.local or statement.partitions is not None:
            return place_here(query.plan, core.number, statement.partitions)

        def route(fragment: Fragment, pruning: Pruning) -> frozenset[int] | None:
            router = Router(self._pruned_map(fragment))
            found: set[int] = set()
            for number, key in enumerate(lookup_keys(pruning.keys, parameters)):
                if number >= PRUNED_KEYS_MAX:
                    return None
                found.add(router.partition(key))
            return frozenset(found)

        placed = place(query.plan, core.view, core.number, route)
        if placed.whole and core.view.absent:
            raise core.partitions_absent()
        return placed

    def _instances(self, plan: PhysicalPlan) -> dict[int, int]:
        """How many instances of each fragment its members run: as many as this one would."""
        core = self._core
        return instance_counts(
            plan,
            core.stored_rows,
            workers=core.config.workers,
            members=len(core.view.members),
            rows_each=core.config.parallel_rows,
            by_partition=core.config.parallel_scans == "partitions",
        )

    def _pruned_map(self, fragment: Fragment) -> MapSchema:
        """The partitioned map that a pruned fragment reads."""
        for node in fragment.nodes:
            if isinstance(node, TableScan | KeyLookup):
                schema = self._core.store(node.map_id, node.schema_version).schema
                if not schema.replicated:
                    return schema
        raise AssertionError("a pruned fragment reads a partitioned map")

    # --- relations made for one statement -----------------------------------------------------

    async def _supplied(
        self,
        statement: Statement,
        query: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        start: QueryStart,
        tables: Tables,
    ) -> QueryStart:
        """``start`` with the rows of the relations that ``query`` reads, all at its timestamp;
        ``tables`` has some of them."""
        began = self._core.world.clock.monotonic()
        fixed = replace(statement, read_timestamp=start.read_timestamp)

        def left() -> float | None:
            """The rest of the statement's time."""
            if start.timeout is None:
                return None
            rest = start.timeout - (self._core.world.clock.monotonic() - began)
            if rest <= 0:
                raise QueryTimeout(f"the query did not end within {statement.timeout:g} s")
            return rest

        async def run(
            inner: PlannedQuery, tables: Tables, rounds: Rounds | None
        ) -> AsyncGenerator[pa.RecordBatch]:
            part = replace(fixed, query=self._queries.new_id(), timeout=left())
            part.attempt = part.query
            begun = self._placed(part, inner, values, INTERNAL_PAGE_ROWS)
            for member in begun.participants:
                self._core.require_alive(member)
            begun = replace(
                begun, read_timestamp=start.read_timestamp, supplied=tables, rounds=rounds
            )
            begun = _in_transaction(part, begun, self._core)
            try:
                async for page in self.pages(part, begun, []):
                    yield page
            except QueryTimeout:
                left()
                raise

        async def known(relation: str) -> SuppliedRows:
            return await self.supplies.rows(relation, fixed)

        async def numbered(calls: tuple[SequenceCall, ...], page: pa.RecordBatch) -> pa.RecordBatch:
            return await self._sequences.made(statement, calls, page)

        memory = statement_account(self._core)
        evaluation = Evaluation(run, known, numbered, statement.check, memory)
        statement.progress.on_closed.append(evaluation.close)
        self.active[statement.query] = start.read_timestamp
        try:
            await evaluation.fill(query.supplied, tables)
            statement.attempt = statement.query
            statement.check()
            return replace(start, supplied=tables, timeout=left())
        finally:
            self.active.pop(statement.query, None)

    # --- pages --------------------------------------------------------------------------------

    async def pages(
        self, statement: Statement, start: QueryStart, profiles: list[FragmentProfile]
    ) -> AsyncGenerator[pa.RecordBatch]:
        """Run a query and hand its pages out here. Closing the iterator early cancels the query."""
        news = asyncio.Event()
        ends: list[RemudaError | None] = []

        def ended(error: RemudaError | None) -> None:
            ends.append(error)
            news.set()

        sink = start.sink
        assert sink is not None
        sink.tell(lambda: self._hop(news.set))
        self.active[statement.query] = start.read_timestamp
        initiated: Initiated = self._queries.begin(statement.query, start, ended)
        try:
            while True:
                news.clear()
                while (page := sink.take()) is not None:
                    yield page
                if ends and (ends[0] is not None or sink.exhausted):
                    break
                await news.wait()
            if ends[0] is not None:
                raise ends[0]
            profiles += initiated.profiles
        finally:
            self.active.pop(statement.query, None)
            sink.clear()
            if not ends:
                self._queries.fail(statement.query, QueryCanceled("its result is not wanted"))


def _in_transaction(statement: Statement, start: QueryStart, core: Core) -> QueryStart:
    """With what the transaction of the statement has written; it notes what the query reads."""
    transaction = statement.transaction
    if transaction is None:
        return start
    transaction.note_query(start, locking=statement.locking)
    maps = [dependency.map_id for dependency in start.plan.dependencies]
    return replace(start, overlay=transaction.overlay(maps, core))


def _reads_maps(supply: PlannedSupply) -> bool:
    """Whether the relation is made by queries that read maps."""
    return supply.recursion is not None and any(
        query.plan.dependencies or any(map(_reads_maps, query.supplied))
        for query in supply.recursion.queries
    )
