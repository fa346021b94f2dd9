"""DECLARE, FETCH, MOVE and CLOSE, and the end of cursors with their transaction.

A cursor belongs to its transaction; one that is declared WITH HOLD belongs to the session from the
commit on. The member keeps sessions of clients that send none along (``Client.kept``), so only
these can hold cursors. A portal of PostgreSQL's protocol that has a name is a cursor, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from remuda.catalog.pg_types import type_oid
from remuda.datatypes.schema import Column
from remuda.datatypes.timestamp import moment
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    ConnectionBroken,
    DuplicateCursor,
    NoActiveTransaction,
    NotSupported,
    QueryTimeout,
    RemudaError,
    UndefinedCursor,
)
from remuda.execution.memory import Reservation
from remuda.execution.stored_rows import StoredRows
from remuda.limits import PAGES_IN_FLIGHT
from remuda.member.base.core import Core
from remuda.member.base.loop_handoff import Hop
from remuda.member.cursors.named_cursor import About, NamedCursor
from remuda.member.cursors.open_cursors import OpenCursors
from remuda.member.cursors.portals import Fetched
from remuda.member.cursors.pulled_query import PulledQuery
from remuda.member.queries.cursors import Results
from remuda.member.queries.fragments import statement_account
from remuda.member.queries.queries import Queries
from remuda.member.queries.query_start import QueryStart
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.statement import Client, Statement
from remuda.query.ids import QueryId
from remuda.rpc.client_channel import ClientChannel
from remuda.session.planning import PlannedQuery
from remuda.session.shape import ResultShape
from remuda.sql.trees.cursors import CloseTree, Declaration, FetchTree

T = TypeVar("T")

Start: TypeAlias = Callable[
    [Statement, PlannedQuery, tuple[PhysicalValue, ...], int], Awaitable[QueryStart]
]
"""Settles where and at which timestamp a query runs."""


@dataclass(frozen=True)
class QueriesOfCursors:
    """The parts of a member that run them. ``active``: see ``PulledQuery``."""

    queries: Queries
    hop: Hop
    start: Start
    active: MutableMapping[QueryId, int]


_NOTHING: Final = ResultShape(())


class CursorStatements:
    def __init__(
        self,
        core: Core,
        run: QueriesOfCursors,
        client_of: Callable[[ClientChannel], Client | None],
    ) -> None:
        self._core = core
        self._run = run
        self._client_of = client_of

    # --- DECLARE ------------------------------------------------------------------------------

    async def declare(
        self, statement: Statement, found: PlannedQuery, values: tuple[PhysicalValue, ...]
    ) -> None:
        """Begin the query of a cursor. Raises NoActiveTransaction, DuplicateCursor, NotSupported,
        LimitExceeded, and the errors of a query that cannot start."""
        declared = found.declares
        assert declared is not None
        try:
            opened = self._place(statement, declared)
        except RemudaError as error:
            raise error.at(declared.position, statement.text) from None
        transaction = statement.transaction
        cursor = await self._begun(statement, found, declared, values)
        try:
            if transaction is None:
                await self._timed(statement, cursor.keep_all())
            statement.check()
            savepoints = 0 if transaction is None else len(transaction.writes.savepoints)
            opened.add(cursor, savepoints)
        except BaseException:
            cursor.close()
            raise

    def _place(self, statement: Statement, declared: Declaration) -> OpenCursors:
        """Where the cursor will be kept."""
        client = self._client_of(statement.channel)
        if client is None:
            raise ConnectionBroken("the client is gone")
        if declared.hold and not client.kept:
            raise NotSupported(
                "this client does not keep cursors beyond a transaction",
                hint="Declare the cursor WITHOUT HOLD, or connect to the members' port for "
                "PostgreSQL's clients.",
            )
        transaction = statement.transaction
        if transaction is None and not declared.hold:
            raise NoActiveTransaction("DECLARE CURSOR can only be used in transaction blocks")
        if statement.session.drill:
            raise NotSupported(
                "cursors are not part of Drill's dialect",
                hint="SET sql_dialect = 'postgres', or read the whole result.",
            )
        held = client.held
        if held.get(declared.name) or client.portals.columns(declared.name) is not None:
            raise DuplicateCursor(f'cursor "{declared.name}" already exists')
        if transaction is None:
            held.check(declared.name)
            return held
        transaction.cursors.check(declared.name, len(held))
        return transaction.cursors

    async def _begun(
        self,
        statement: Statement,
        found: PlannedQuery,
        declared: Declaration,
        values: tuple[PhysicalValue, ...],
    ) -> NamedCursor:
        run = self._run
        of_query = replace(statement, query=run.queries.new_id())
        statement.attempt = of_query.query
        start = await run.start(of_query, found, values, statement.page_rows)
        statement.attempt = None
        closers = [*statement.progress.on_closed]
        statement.progress.on_closed.clear()
        # The time of a statement does not count for the cursor, which its client may leave alone.
        start = replace(start, timeout=None, runs=None)
        query = PulledQuery(
            run.queries, run.hop, of_query.query, start, active=run.active, closers=closers
        )
        shape = ResultShape(found.columns, binary=declared.binary)
        # A client that says nothing is spared the rows that it has passed, unless they are kept
        # anyway.
        scroll = declared.hold and not found.locking if declared.scroll is None else declared.scroll
        about = About(
            declared.name,
            statement.text,
            self._core.world.clock.wall_micros(),
            declared.hold,
            declared.binary,
            scroll,
        )
        types = [column.type for column in found.columns]

        def stored() -> StoredRows:
            what = f'cursor "{declared.name}"'
            return StoredRows(types, Reservation(statement_account(self._core), what))

        return NamedCursor(about, shape, query, stored)

    # --- FETCH, MOVE, CLOSE -------------------------------------------------------------------

    def find(self, statement: Statement, tree: FetchTree) -> Fetched:
        """Raises UndefinedCursor."""
        client = self._client_of(statement.channel)
        for opened in _opened(client, statement.transaction):
            found: Fetched | None = opened.get(tree.name)
            if found is not None:
                return found
        if client is not None:
            found = client.portals.get(tree.name)
            if found is not None:
                return found
        raise _unknown(tree.name).at(tree.position, statement.text)

    async def fetch(
        self,
        statement: Statement,
        tree: FetchTree,
        results: Callable[[Statement, ResultShape], Results],
    ) -> None:
        """Give the rows of FETCH to the ``results`` of the statement, as fast as the client takes
        them, or the number of rows that MOVE has passed. Raises UndefinedCursor, ConnectionBroken,
        and as ``NamedCursor.fetch``."""
        cursor = self.find(statement, tree)
        if tree.moves:
            work = cursor.fetch(tree.direction, tree.count, None)
            passed = await self._timed(statement, work)
            results(statement, _NOTHING).finish(tag="MOVE", affected_rows=passed)
            return
        given = results(statement, cursor.shape)
        flow = _Flow(given, statement.page_rows)
        await self._timed(statement, cursor.fetch(tree.direction, tree.count, flow.take))
        given.finish(tag="FETCH")

    @staticmethod
    async def _timed(statement: Statement, work: Coroutine[Any, Any, T]) -> T:
        """``work``, which ends with the statement at the latest. Raises QueryTimeout. An error
        ends the statement: a cursor that has failed cannot be fetched from once more."""
        try:
            async with asyncio.timeout(statement.timeout):
                return await statement.interruptible(work)
        except TimeoutError:
            error: RemudaError = QueryTimeout(
                f"the statement did not end within {statement.timeout:g} s"
            )
            statement.error = error
            raise error from None
        except RemudaError as error:
            statement.error = statement.error or error
            raise

    def close(self, statement: Statement, tree: CloseTree) -> str:
        """The tag of CLOSE. Raises UndefinedCursor."""
        client = self._client_of(statement.channel)
        places = [*_opened(client, statement.transaction)]
        if tree.name is None:
            for opened in places:
                opened.close_all()
            if client is not None:
                client.portals.close_all()
            return "CLOSE CURSOR ALL"
        name = tree.name
        if any(opened.close(name) for opened in places):
            return "CLOSE CURSOR"
        if client is not None and client.portals.close(name):
            return "CLOSE CURSOR"
        raise _unknown(name).at(tree.position, statement.text)

    def discard(self, channel: ClientChannel) -> None:
        """DISCARD ALL, which runs outside of transactions."""
        client = self._client_of(channel)
        if client is not None:
            client.held.close_all()

    # --- what others ask ----------------------------------------------------------------------

    def columns(
        self, client: Client, transaction: OpenTransaction | None, name: str
    ) -> Sequence[Column] | None:
        """The columns of an open cursor; None: there is none of this name."""
        for opened in _opened(client, transaction):
            found = opened.get(name)
            if found is not None:
                return found.shape.columns
        return client.portals.columns(name)

    @staticmethod
    def forget(client: Client, transaction: OpenTransaction | None, name: str) -> None:
        """Close a cursor that a message names; nothing, if there is none of this name."""
        for opened in _opened(client, transaction):
            opened.close(name)

    def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Those of pg_cursors."""
        client = self._client_of(statement.channel)
        known = [c.about for o in _opened(client, statement.transaction) for c in o]
        if client is not None:
            known += client.portals.about()
        return [
            (a.name, a.text, a.hold, a.binary, a.scroll, moment(a.created))
            for a in sorted(known, key=lambda a: a.name)
        ]

    def prepared_rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Those of pg_prepared_statements: by PREPARE, which travel with the session and keep no
        time, and by messages."""
        found: list[tuple[Any, ...]] = []
        for name, known in statement.session.prepared.items():
            types = [type_oid(each) for each in known.types or ()]
            found.append((name, known.text, None, types, True, 0, 0))
        client = self._client_of(statement.channel)
        for each in () if client is None else client.portals.prepared():
            types = list(each.types)
            found.append((each.name, each.text, moment(each.created), types, False, 0, 0))
        return sorted(found, key=lambda row: str(row[0]))

    # --- the end of a transaction -------------------------------------------------------------

    async def before_commit(self, statement: Statement) -> list[NamedCursor]:
        """The cursors of the transaction that outlive it, which need it no more. Raises what their
        queries raise: then nothing is committed."""
        transaction = statement.transaction
        assert transaction is not None
        for cursor in transaction.cursors:
            if cursor.about.hold:
                await self._timed(statement, cursor.keep_all())
        return transaction.cursors.take_held()

    def committed(self, statement: Statement, held: Sequence[NamedCursor]) -> None:
        """The session has them from now on."""
        client = self._client_of(statement.channel)
        for cursor in held:
            if client is None:
                cursor.close()
            else:
                client.held.add(cursor)


def _opened(client: Client | None, transaction: OpenTransaction | None) -> Iterator[OpenCursors]:
    if transaction is not None:
        yield transaction.cursors
    if client is not None:
        yield client.held


def _unknown(name: str) -> UndefinedCursor:
    return UndefinedCursor(f'cursor "{name}" does not exist')


class _Flow:
    """Pages to a client, no more than it may have."""

    def __init__(self, results: Results, page_rows: int) -> None:
        self._results = results
        self._page_rows = page_rows
        self._news = asyncio.Event()
        self._error: RemudaError | None = None

    async def take(self, rows: pa.RecordBatch) -> None:
        for first in range(0, rows.num_rows, self._page_rows):
            while self._results.in_flight >= PAGES_IN_FLIGHT and self._error is None:
                self._news.clear()
                await self._news.wait()
            if self._error is not None:
                raise self._error
            self._results.page(rows.slice(first, self._page_rows), self._acknowledged)

    def _acknowledged(self, error: RemudaError | None) -> None:
        self._error = self._error or error
        self._news.set()
