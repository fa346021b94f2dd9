"""Statements of portals that need no task: reads by key and by secondary index, changes by key, and
queries that read no map."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from remuda.errors import RemudaError
from remuda.member.base.core import Core, bug
from remuda.member.maps.point_reads import PointRows, Row
from remuda.member.postgres.portal_answers import Measured, PortalAnswer
from remuda.member.postgres.portals import ResultRun, tells
from remuda.member.postgres.preparing import Bound
from remuda.member.queries.cursors import Wire
from remuda.member.sessions.statement import Client, Statement
from remuda.member.statements.plans import Plans
from remuda.member.statements.statements import Statements
from remuda.postgres.effects import Portal
from remuda.postgres.rows import RowForm
from remuda.rpc.client_channel import ClientChannel
from remuda.session.client_session import ClientSession
from remuda.session.planning import PlannedChange, PlannedInsert, PlannedQuery
from remuda.session.shape import ResultShape


class PortalSession(Protocol):
    """The session of the portals."""

    def run_generally(self, portal: Portal, limit: int) -> None: ...

    def result_of(self, portal: Portal, limit: int, measured: Measured) -> ResultRun: ...

    def statement_of(self, bound: Bound, wire: Callable[[ResultShape], Wire]) -> Statement: ...

    def completed(self, portal: Portal, tag: str, rows: int, data: bytes) -> None: ...

    def filled(self, portal: Portal, data: bytes) -> None: ...

    def failed(self, error: RemudaError) -> None: ...


class ShortWays:
    """Of one session."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        statements: Statements,
        plans: Plans,
        outlet: ClientChannel,
        client: Client,
        session: PortalSession,
    ) -> None:
        self._core = core
        self._statements = statements
        self._plans = plans
        self._outlet = outlet
        self._client = client
        self._session = session
        self._plain: ClientSession | None = None
        """A session that was found to concern no statement."""

    def run(self, portal: Portal, bound: Bound, limit: int) -> bool:
        """Run a statement whose plan is cached; False: none of the short ways is for it."""
        if not self.alone:
            return False
        session = self._client.session
        text, user = bound.planning.text, self._outlet.user
        found = self._plans.known(text, bound.by.types, session.meaning, user)
        if isinstance(found, PlannedQuery):
            source, fits = found, not found.locking
        elif isinstance(found, PlannedInsert | PlannedChange):
            source, fits = found.source, found.keyed is not None
        else:
            return False
        if not fits or source.parameter_types != bound.types:
            return False
        if not tells(portal.prepared.fields, found.form.columns):
            return False  # the general way says so
        if isinstance(found, PlannedQuery) and found.constant is None:
            return self._read(portal, bound, limit, found)
        return self._answer(portal, bound, limit, found)

    @property
    def alone(self) -> bool:
        """Whether nothing of the session concerns its statements."""
        client, core = self._client, self._core
        if client.transaction or core.departure.refusing or not core.serving:
            return False
        if client.inbox.listening:  # told of notifications before each ReadyForQuery
            return False
        session = client.session
        if session is not self._plain:
            if session.engine != "grid" or session.drill or session.pauses:
                return False
            self._plain = session
        return True

    # --- reads --------------------------------------------------------------------------------

    def _read(self, portal: Portal, bound: Bound, limit: int, found: PlannedQuery) -> bool:
        """False: it is no such read, or it may find more entries than ``limit``."""
        text = bound.planning.text
        read = found.point or found.indexed
        if read is None:
            return False
        point = found.point
        if point is None and (limit or self._client.session.rows_max):
            return False
        if point is not None and limit and (point.by_array or len(point.keys) > limit):
            return False
        rows = PointRows(self._core, found, read, bound.values)
        answered = False
        measured = self._core.measures.postgres.begin(text)

        def answer(entries: list[Row] | RemudaError) -> None:
            nonlocal answered
            answered = True
            measured(entries if isinstance(entries, RemudaError) else None)
            if not self._outlet.closed:
                self._answer_entries(portal, rows, entries, limit)

        def general() -> None:
            if not self._outlet.closed:
                self._session.run_generally(portal, limit)

        statements, user = self._statements, self._outlet.user
        try:
            if point is not None:
                return statements.read_point(found, bound.values, answer, text=text, user=user)
            return statements.read_by_index(
                found, bound.values, answer, general, text=text, user=user
            )
        except RemudaError as error:
            if not answered:
                measured(error)
                self._session.failed(error)
            return True

    def _answer_entries(
        self, portal: Portal, rows: PointRows, entries: list[Row] | RemudaError, limit: int
    ) -> None:
        session = self._session
        try:
            if isinstance(entries, RemudaError):
                raise entries
            row = RowForm(rows.query.shape.types, portal.formats, self._client.session.zone).row
            found = [row(values) for values in rows.output(entries)]
        except RemudaError as error:
            session.failed(error)
        except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
            session.failed(bug(error, "a read by key"))
        else:
            data = b"".join(found)
            if limit and len(found) == limit:
                session.filled(portal, data)
            else:
                session.completed(portal, "SELECT", len(found), data)

    # --- changes, and queries that read no map ------------------------------------------------

    def _answer(
        self,
        portal: Portal,
        bound: Bound,
        limit: int,
        found: PlannedQuery | PlannedInsert | PlannedChange,
    ) -> bool:
        session = self._session
        if limit or self._client.session.rows_max:
            return False
        measured = self._core.measures.postgres.begin(bound.planning.text)

        def general() -> ResultRun:
            return session.result_of(portal, limit, measured)

        def done(tag: str, rows: int, data: bytes) -> None:
            self._later(lambda: session.completed(portal, tag, rows, data))

        def refused(error: RemudaError) -> None:
            self._later(lambda: session.failed(error))

        zone, short = self._client.session.zone, self._statements.short
        answer = PortalAnswer(portal.formats, zone, measured, general, done, refused)
        statement = session.statement_of(bound, answer.wire)
        if isinstance(found, PlannedQuery):
            return short.select(statement, found, bound.values, answer)
        return short.change(statement, found, bound.values, answer)

    @staticmethod
    def _later(what: Callable[[], None]) -> None:
        """In the next step of the loop: a statement is over a little after its result is."""
        asyncio.get_running_loop().call_soon(what)
