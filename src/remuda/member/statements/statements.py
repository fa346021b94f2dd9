"""RUN_QUERY, CANCEL_QUERY, RESUME_PAUSED_QUERY: statements of clients, start to end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from remuda.datatypes.schema import ViewDefinition
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    ConnectionBroken,
    RemudaError,
    TransientError,
)
from remuda.member.advisory.locks import AdvisoryService
from remuda.member.base.core import Core, bug
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits import Commits
from remuda.member.maps.keyed_writes import KeyedWrites
from remuda.member.maps.maps import Maps
from remuda.member.maps.point_reads import Row, Written
from remuda.member.maps.short_reads import ShortReads
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.notifications.service import Notifications
from remuda.member.queries.cursors import Cursor, Results
from remuda.member.queries.queries import Queries
from remuda.member.sequences.calls import SequenceCalls
from remuda.member.sequences.drawing import Drawing
from remuda.member.sequences.states import Sequences
from remuda.member.sessions.advisory_calls import AdvisoryCalls
from remuda.member.sessions.client_table import ClientTable
from remuda.member.sessions.cursor_statements import CursorStatements, QueriesOfCursors
from remuda.member.sessions.few_rows import FewRows
from remuda.member.sessions.keys import KeyReader
from remuda.member.sessions.notification_statements import NotificationStatements
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.replanning import pause_before_next, told
from remuda.member.sessions.session import TransactionSessions
from remuda.member.sessions.statement import Client, Statement
from remuda.member.sessions.statements import TransactionStatements
from remuda.member.statements.changes import Changed
from remuda.member.statements.checks.altered_tables import AlteredTables
from remuda.member.statements.checks.checks import Checks
from remuda.member.statements.control import Control
from remuda.member.statements.copying import Copying
from remuda.member.statements.definitions import DEFINITIONS, Definitions
from remuda.member.statements.implicit_transactions import ImplicitTransactions
from remuda.member.statements.index_service import IndexService
from remuda.member.statements.initiated_queries import INTERNAL_PAGE_ROWS, Runs
from remuda.member.statements.item_effects import acted
from remuda.member.statements.plans import Plans
from remuda.member.statements.query_history import QueryHistory
from remuda.member.statements.session_statements import Sessions, shown_settings
from remuda.member.statements.short_statements import ShortStatements
from remuda.member.statements.spark.statements import SparkStatements, above
from remuda.member.statements.transaction_changes import TransactionChanges
from remuda.member.statements.write_statements import KeyedStatements, WriteStatements, changed_by
from remuda.query.ids import QueryId
from remuda.rpc.client_channel import ClientChannel
from remuda.session.answers import Answer, shown
from remuda.session.client_session import NO_SESSION, ClientSession
from remuda.session.planning import (
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
)
from remuda.session.shape import ResultShape
from remuda.sql.parsing.cluster import TAG as CLUSTER_TAG
from remuda.sql.scope.statements import (
    CancelStatement,
    ClusterStatement,
    CopyStatement,
    InsertStatement,
    LockStatement,
    PrivilegeStatement,
    SessionStatement,
    ShowKind,
    ShowStatement,
    SnapshotStatement,
    TruncateStatement,
)
from remuda.sql.trees.cluster import AcceptLossTree
from remuda.sql.trees.cursors import CloseTree, FetchTree
from remuda.sql.trees.session import (
    ExecuteTree,
    ListenTree,
    NotifyTree,
    SessionTree,
    SetTree,
    ShowSettingTree,
    UnlistenTree,
)
from remuda.sql.trees.snapshot import tag_of
from remuda.sql.trees.transaction import TransactionTree

NOTHING = ResultShape(())

Answering: TypeAlias = Callable[[Statement, Any], Awaitable[Answer]]


class Statements(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        hop: Hop,
        *,
        membership: Membership,
        queries: Queries,
        commits: Commits,
        catalog: CatalogService,
        plans: Plans,
        reads: ShortReads,
        maps: Maps,
        indexes: IndexService,
        transactions: TransactionSessions,
        keys: KeyReader,
        advisory: AdvisoryService,
        notifications: Notifications,
        accept_lost: Callable[[], Awaitable[int]],
        reading: Offload,
    ) -> None:
        """``accept_lost``: see ``LostPartitions.accept``; ``reading`` reads the rows of COPY."""
        self._core = core
        wish_version = membership.wish_version
        self.control = self._control = Control(core, peers, self, transactions, wish_version)
        self._hop = hop
        self._queries = queries
        self._catalog = catalog
        self.reads = reads
        self.by_key = KeyedWrites(core, peers, maps)
        self.sequences = Sequences(core, peers, maps)
        core.listeners.dropped.add(self.sequences.forget)
        self._indexes = indexes
        self._plans = plans
        self.clients = self._clients = ClientTable(core)
        self.running = self.clients.running
        self._runs = Runs(core, hop, membership, queries, SequenceCalls(core, self.sequences))
        self.supplies = self._runs.supplies
        self.gate = self._runs.gate
        self.history = QueryHistory(core)
        core.listeners.late_report.add(self.history.reported)
        core.listeners.query_ended.add(self.gate.ended)
        self.checks = Checks(core, membership, catalog, keys, plans, self._runs, queries)
        few = self._few = FewRows(core, keys, reads.by_index)
        own = TransactionChanges(core, transactions, keys, self.checks, few)
        alone = ImplicitTransactions(core, queries, transactions)
        drawing = Drawing(core, self.sequences)
        keyed = KeyedStatements(core, self.by_key, drawing)
        self.short = ShortStatements(core, self, keyed, self.history)
        self._writes = WriteStatements(core, peers, commits, queries, self._runs, own, alone, keyed)
        self._copying = Copying(plans, self._runs, queries, self._writes, reading)
        self.spark = SparkStatements(core, hop, plans, self._runs)
        self._accept_lost = accept_lost
        self._answered_above: dict[type, Answering] = {}
        of_cursors = QueriesOfCursors(queries, hop, self._runs.start, self._runs.active)
        known = self._clients.get
        self.cursors = CursorStatements(core, of_cursors, known)
        self._advisory = AdvisoryCalls(advisory, known, transactions)
        notify = self._notifications = NotificationStatements(notifications, known)
        discards = self.cursors.discard, self._advisory.discard, notify.discard
        self._sessions = Sessions(core, plans, discards, own.defer)
        altered = AlteredTables(core, self.checks.stored, transactions.definitions).rewrite
        self._transactions = TransactionStatements(core, transactions, self.cursors, known, altered)
        transactions.on_timeout.append(self.cancel)
        transactions.definitions.on_committed.append(indexes.complete)
        self._definitions = Definitions(
            core, queries, catalog=catalog,
            plans=plans, runs=self._runs, indexes=indexes, sequences=self.sequences,
            insert=self._writes.insert,
            change=self._writes.change, temporary=self._writes.temporary,
            in_transactions=transactions.definitions, truncate=self._writes.truncate,
            rewrite=altered,
        )  # fmt: skip

    def routes(self) -> Routes:
        return Routes(
            control={
                **self.reads.routes(),
                **self.by_key.routes(),
                **self.sequences.routes(),
            },
            user=self.spark.services.routes(),
        )

    def answer_by(self, kind: type, answer: Answering) -> None:
        """Statements of this ``kind`` are answered by a higher wing, from their trees."""
        self._answered_above[kind] = answer

    def stop(self, error: RemudaError) -> None:
        self.gate.close(error)
        self.spark.services.close()

    # --- clients ------------------------------------------------------------------------------

    def connected(
        self,
        channel: ClientChannel,
        *,
        stock: bool = False,
        kept: bool = False,
        session: ClientSession = NO_SESSION,
    ) -> Client:
        """``session``: the first one of a client that does not send its session along."""
        client = self._clients.add(channel, stock=stock, kept=kept, session=session)
        channel.on_closed.append(lambda error: self._disconnected(channel, error))
        return client

    def _disconnected(self, channel: ClientChannel, cause: RemudaError) -> None:
        client = self._clients.remove(channel)
        error = ConnectionBroken(f"the client is gone: {cause.message}")
        self._transactions.disconnected(channel, error)
        for query, statement in list(client.statements.items()):
            statement.error = error
            self._queries.fail(statement.attempt or query, error)
        for cursor in list(client.cursors.values()):
            cursor.drop()
        client.held.close_all()
        self._advisory.disconnected(client)
        self._notifications.disconnected(client)

    def cancel(self, query: QueryId, error: RemudaError) -> None:
        """End a statement, if it runs."""
        found = self._clients.find(query)
        if found is not None:
            self._cancel(*found, error)

    def _cancel(self, client: Client, statement: Statement, error: RemudaError) -> None:
        statement.error = error
        self._transactions.interrupt(statement, error)
        self._queries.fail(statement.attempt or statement.query, error)
        cursor = client.cursors.get(statement.query)
        if cursor is not None:
            cursor.ended(error)

    def interrupt(self, client: Client, error: RemudaError) -> None:
        """End what a client has running, but for what is being committed."""
        for statement in list(client.statements.values()):
            if not statement.commits_now:
                self.cancel(statement.query, error)

    # --- start to end -------------------------------------------------------------------------

    def accept(self, statement: Statement) -> None:
        """From now on its client has it running."""
        if not self._clients.begun(statement):
            statement.error = ConnectionBroken("the client is gone")
        elif statement.transaction is not None:
            self._transactions.accepted(statement)

    def transaction(
        self, name: str, channel: ClientChannel, user: str
    ) -> tuple[OpenTransaction | None, RemudaError | None]:
        """The open transaction of this name, or why there is none."""
        return self._transactions.find(name, channel, user)

    def read_point(
        self,
        found: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        answer: Callable[[list[Row] | RemudaError], None],
        *,
        text: str,
        user: str,
        traceparent: str = "",
        written: Written | None = None,
    ) -> bool:
        """``PointReads.run``, for who has the role. Raises InsufficientPrivilege as well."""
        if (core := self._core).access.active:
            core.access.check(user, found)
        if core.traces is not None:
            answer = core.traces.read(text, traceparent, core.number, answer)
        return self.reads.by_key.run(found, values, answer, text=text, user=user, written=written)

    def read_by_index(
        self,
        found: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        answer: Callable[[list[Row] | RemudaError], None],
        general: Callable[[], None],
        *,
        text: str,
        user: str,
        traceparent: str = "",
    ) -> bool:
        """``IndexReads.run``, for who has the role. Raises InsufficientPrivilege as well."""
        core = self._core
        if core.access.active:
            core.access.check(user, found)
        if core.traces is not None:
            answer = core.traces.read(text, traceparent, core.number, answer)
        return self.reads.by_index.run(found, values, answer, general, text=text, user=user)

    async def run(self, statement: Statement, *, local: bool = False) -> None:
        """A statement that meets a map that was altered, or another view, is planned again, and so
        is a write that loses a member: it has changed nothing and told the client nothing. When the
        member stops it, nobody is told, and its memory is freed."""
        clock = self._core.world.clock
        with statement.freed_when_stopped():
            try:
                await statement.pause("before_plan")
                while True:
                    began = clock.monotonic()
                    found, values = await self._plans.to_run(statement, local=local)
                    statement.progress.planning += clock.monotonic() - began
                    try:
                        await self._dispatch(statement, found, values)
                    except TransientError as error:
                        pause = pause_before_next(statement, error, clock.monotonic())
                        if pause is None:
                            raise
                        await asyncio.sleep(pause)
                    else:
                        return
            except RemudaError as error:
                self.failed(statement, error)
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                self.failed(statement, bug(error, f"statement {statement.text[:200]!r}"))

    def _fresh(self, statement: Statement) -> Statement:
        """What runs the queries of a statement: a query id serves once."""
        if not statement.progress.tries:
            return statement
        again = replace(statement, query=self._queries.new_id())
        statement.attempt = again.query
        return again

    def failed(self, statement: Statement, error: RemudaError) -> None:
        self._results(statement).finish(error)
        self.closed(statement)

    def closed(self, statement: Statement) -> None:
        statement.close()
        if statement.transaction is not None:
            self._transactions.closed(statement)
        self._clients.ended(statement)

    def keeps_numbers(self, statement: Statement) -> bool:
        """See ``short_statements.General``."""
        return self._clients.keep_here(statement, statement.with_numbers())

    def _results(self, statement: Statement, shape: ResultShape = NOTHING) -> Results:
        wire = statement.wire(shape)
        results = Results(wire, statement.row_limit, partial(told, statement))
        watched = self.history.watch(statement)

        def finished(error: RemudaError | None, rows: int, size: int) -> None:
            watched(error, rows, size)
            self._transactions.finished(statement, error)
            client = self._clients.get(statement.channel)
            status = self._transactions.status(statement)
            if client is not None and status is not None:
                client.transaction = status.transaction

        results.on_finish = finished
        results.transaction = lambda: self._transactions.status(statement)
        results.session = lambda: self._clients.keep(statement, statement.with_numbers())
        return results

    # --- running ------------------------------------------------------------------------------

    async def _dispatch(
        self, statement: Statement, found: Planned, values: tuple[PhysicalValue, ...]
    ) -> None:
        if statement.error is not None:
            raise statement.error
        self._core.access.check(statement.user, found, statement.session.definitions)
        await self._transactions.enter(statement, found)
        statement.runs(found)
        match found:
            case PlannedQuery():
                await self._select(statement, found, values)
            case PlannedInsert():
                rows = await self._writes.insert(self._fresh(statement), found, values)
                self._done(statement, "INSERT", rows)
            case PlannedChange():
                await self._change(statement, found, values)
            case TruncateStatement():
                await self._definitions.truncate(found, statement)
                self._done(statement, "TRUNCATE TABLE", 0)
            case PlannedExplain():
                lines = await self.spark.explained(statement, found, values)
                answer = await self._writes.explain(statement, found, values)
                answer = above(lines, answer, as_json=found.options.json)
                self._answered(statement, answer, "EXPLAIN")
            case CopyStatement(source=InsertStatement()):
                self._done(statement, "COPY", await self._copying.incoming(statement, found))
            case CopyStatement():
                await self._dispatch(*await self._copying.outgoing(statement, found), ())
            case found if isinstance(found, DEFINITIONS):
                tag, rows = await self._definitions.run(found, self._fresh(statement))
                self._done(statement, tag, rows)
            case ShowStatement(kind=ShowKind.INDEXES, relation=relation):
                assert not isinstance(relation, ViewDefinition)
                seen = self._core.access.catalog(statement.user, statement.session.definitions)
                self._answered(statement, await self._indexes.shown(relation, seen), "SHOW")
            case ShowStatement():
                seen = self._core.access.catalog(statement.user, statement.session.definitions)
                self._answered(statement, shown(found, seen), "SHOW")
            case _:
                await self._dispatch_session(statement, found)

    async def _dispatch_session(self, statement: Statement, found: Planned) -> None:
        match found:
            case SessionStatement(ShowSettingTree() as tree):
                self._answered(statement, shown_settings(statement, tree), "SHOW")
            case SessionStatement(ExecuteTree() as tree):
                await self._dispatch(*await self._sessions.prepared(statement, tree))
            case SessionStatement(tree) if isinstance(tree, TransactionTree):
                ended = await self._transactions.control(statement, tree)
                self._session_changed(statement, ended.session, ended.tag)
            case SessionStatement(FetchTree() as tree):
                await self.cursors.fetch(statement, tree, self._results)
                self.closed(statement)
            case SessionStatement(CloseTree() as tree):
                self._done(statement, self.cursors.close(statement, tree), 0)
            case SessionStatement(ListenTree() | NotifyTree() | UnlistenTree() as tree):
                self._done(statement, await self._notifications.run(statement, tree), 0)
            case SessionStatement(tree):
                await self._change_session(statement, tree)
            case LockStatement():
                self._done(statement, await self._advisory.lock_tables(statement, found), 0)
            case ClusterStatement(AcceptLossTree()):
                self._done(statement, CLUSTER_TAG, await self._accept_lost())
            case PrivilegeStatement():
                self._done(statement, self._core.access.compare(statement.user, found), 0)
            case ClusterStatement(tree) | CancelStatement(tree):
                self._done(statement, await self._control.run(statement, tree), 0)
            case SnapshotStatement(tree):
                answer = await self._answered_above[SnapshotStatement](statement, tree)
                self._answered(statement, answer, tag_of(tree))

    async def _change_session(self, statement: Statement, tree: SessionTree) -> None:
        tree = self._core.access.as_login(statement.user, tree)
        if isinstance(tree, SetTree) and self._transactions.set(statement, tree):
            self._session_changed(statement, None, tree.tag)
            return
        outside = replace(statement, session=statement.sent)
        session, tag = await self._sessions.changed(outside, tree)
        self._session_changed(statement, session, tag)

    def _session_changed(
        self, statement: Statement, session: ClientSession | None, tag: str
    ) -> None:
        self._results(statement).finish(tag=tag, session=self._clients.keep(statement, session))
        self.closed(statement)

    def _done(self, statement: Statement, tag: str, affected_rows: int) -> None:
        self._results(statement).finish(tag=tag, affected_rows=affected_rows)
        self.closed(statement)

    def _answered(self, statement: Statement, answer: Answer, tag: str) -> None:
        results = self._results(statement, ResultShape(answer[0]))
        results.external_page(answer[1], lambda _: None)
        results.finish(tag=tag)
        self.closed(statement)

    async def _select(
        self, statement: Statement, query: PlannedQuery, values: tuple[PhysicalValue, ...]
    ) -> None:
        """Start the query; from here on the cursor drives it."""
        if query.effects:
            await self._act(statement, query, values)
            return
        if query.declares is not None:
            await self.cursors.declare(statement, query, values)
            self._done(statement, "DECLARE CURSOR", 0)
            return
        await statement.pause("before_start")
        chosen = await self.spark.chosen(statement, query, values)
        if chosen is not None and chosen.asked is not None:
            client = self._clients.get(statement.channel)
            results = self._results(statement, query.shape)
            there = await self.spark.start(statement, query, chosen.asked, client)
            self.spark.begin(there, results, lambda: self._cursor_finished(statement, there.query))
            return
        statement.progress.only_reads = True
        if self._few.takes(statement, query):
            found = await self._few.columns(statement, query, values)
            if found is not None:
                self._paged(statement, query.shape, [found])
                return
        run = self._fresh(statement)
        start = await self._runs.start(run, query, values, statement.page_rows)
        client = self._clients.get(statement.channel)
        if statement.error is not None or client is None:
            raise statement.error or ConnectionBroken("the client is gone")
        sink = start.sink
        assert sink is not None
        results = self._results(statement, query.shape)
        cursor = Cursor(
            results,
            statement.channel,
            sink,
            started=lambda: self._queries.all_started(run.query),
            on_finished=lambda: self._cursor_finished(statement, run.query),
            on_broken=lambda error: self._queries.fail(run.query, error),
            again=lambda error: self._run_again(statement, run.query, error),
        )
        sink.tell(lambda: self._hop(cursor.pump))
        client.cursors[statement.query] = cursor
        if statement.pauses_at("before_first_page"):
            cursor.held = True
            pause = statement.pause("before_first_page")
            self._core.spawn(cursor.go_on_after(pause), "test pause")
        self._runs.active[run.query] = start.read_timestamp
        self._queries.begin(run.query, start, cursor.ended, cursor.pump)

    def _cursor_finished(self, statement: Statement, run: QueryId) -> None:
        self._runs.active.pop(run, None)
        self.closed(statement)

    def _run_again(self, statement: Statement, run: QueryId, error: RemudaError) -> bool:
        """``again``, of a query that met the error before it gave a row."""
        found = self.again(statement, error)
        if found:
            self._runs.active.pop(run, None)
        return found

    def again(self, statement: Statement, error: RemudaError) -> bool:
        """A statement met a map that was altered or dropped, or another view, on some member, and
        has neither changed nor told anything: it is planned anew. False: it fails."""
        pause = pause_before_next(statement, error, self._core.world.clock.monotonic())
        if pause is None:
            return False
        self._core.spawn(self._after_pause(statement, pause), "statement")
        return True

    async def _after_pause(self, statement: Statement, pause: float) -> None:
        with statement.freed_when_stopped():
            await asyncio.sleep(pause)
        await self.run(statement, local=statement.local or statement.partitions is not None)

    # --- queries of the member's own ----------------------------------------------------------

    async def _change(
        self, statement: Statement, found: PlannedChange, values: tuple[PhysicalValue, ...]
    ) -> None:
        self._answer_change(
            statement, found, await self._writes.change(self._fresh(statement), found, values)
        )

    def changed(
        self, statement: Statement, found: PlannedInsert | PlannedChange, row: Row | None
    ) -> None:
        """The owner of a key has carried out a statement, with the answer ``row``."""
        if isinstance(found, PlannedInsert):
            self._done(statement, "INSERT", int(row is not None))
        else:
            self._answer_change(statement, found, changed_by(found, row))

    def _answer_change(self, statement: Statement, found: PlannedChange, changed: Changed) -> None:
        tag = found.verb if found.answer is None else "SELECT"
        self._paged(statement, found.shape, changed.returned, tag=tag, affected_rows=changed.rows)

    def _paged(self, statement: Statement, shape: ResultShape, pages: Any, **end: Any) -> None:
        results = self._results(statement, shape)
        results.pages(pages, statement.page_rows)
        results.finish(**end)
        self.closed(statement)

    async def _act(
        self, statement: Statement, found: PlannedQuery, values: tuple[PhysicalValue, ...]
    ) -> None:
        """A query with items that act, which they do when all of its rows are there."""
        run = self._fresh(statement)
        start = await self._runs.start(run, found, values, INTERNAL_PAGE_ROWS)
        read = self._runs.pages(run, start, [])
        shape, rows = await self._control.signalled(statement, found, read)
        await self._advisory.acted(statement, found, rows)
        await self._notifications.acted(statement, found, rows)
        shape, session = await acted(statement, found, shape, rows, self._transactions.set)
        statement.check()  # it may have been among those that it has ended
        self._paged(statement, shape, rows, session=self._clients.keep(statement, session))

    # --- state --------------------------------------------------------------------------------

    def oldest_read(self) -> int | None:
        """The lowest timestamp that a query of this member reads at."""
        reading = [*self._runs.active.values(), *self._writes.reading.values()]
        few = self.reads.by_index.oldest_read()
        return min(reading if few is None else (few, *reading), default=None)

    def gauges(self) -> dict[str, int]:
        return {
            **self._clients.gauges(),
            "reads": len(self._runs.active),
            "queued": self._runs.gate.waiting,
            "on_spark": self.spark.services.count,
            "cached_plans": len(self._plans),
        }
