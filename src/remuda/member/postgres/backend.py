"""One session of a PostgreSQL client: performs the effects of its session machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    DuplicateCursor,
    DuplicateStatement,
    QueryCanceled,
    RemudaError,
    SessionTerminated,
)
from remuda.limits import PAGE_ROWS
from remuda.member.base.core import Core
from remuda.member.postgres.copies import SessionCopies
from remuda.member.postgres.declared_cursors import DeclaredCursors, fetching
from remuda.member.postgres.endings import leaving
from remuda.member.postgres.portal_answers import Measured
from remuda.member.postgres.portal_cursors import PortalCursors, RunningPortal
from remuda.member.postgres.portals import ResultRun, fields_of
from remuda.member.postgres.preparing import MANY_VALUES, Bound, Preparing, knowing
from remuda.member.postgres.scripts import is_check, names_prepared, script
from remuda.member.postgres.short_ways import ShortWays
from remuda.member.postgres.told_notifications import ToldNotifications
from remuda.member.postgres.told_settings import ToldSettings
from remuda.member.postgres.turns import Turns
from remuda.member.queries.copy_port import CopyInput
from remuda.member.queries.cursors import Acknowledged, End, Wire
from remuda.member.queries.queries import Queries
from remuda.member.sessions.statement import Client, PlanTypes, Progress, Statement
from remuda.member.statements.plans import Plans
from remuda.member.statements.statements import Statements
from remuda.postgres import effects as fx
from remuda.postgres import session as ps
from remuda.postgres.copy_messages import CopyEnd, CopyRows
from remuda.postgres.login import Startup
from remuda.postgres.messages import (
    AUTHENTICATION_OK,
    Bind,
    backend_key,
    parameter_status,
    ready_for_query,
)
from remuda.postgres.prepared import Prepared, Turn
from remuda.postgres.reader import Reader
from remuda.postgres.reports import notice_message
from remuda.rpc.client_channel import ClientChannel
from remuda.session.client_session import ClientSession
from remuda.session.settings import SETTINGS, checked, setting_of
from remuda.session.shape import ResultShape
from remuda.sql.scope.notices import Notice
from remuda.transaction.states import State

_NOTHING: Final = ResultShape(())


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a member that sessions use."""

    core: Core
    statements: Statements
    queries: Queries
    plans: Plans
    preparing: Preparing


class Outlet(ClientChannel, Protocol):
    """The connection, as its session sees it."""

    def write(self, data: bytes | memoryview) -> None: ...
    def speaks(self, encoding: str) -> None: ...

    def when_taken(self, acknowledged: Acknowledged) -> None:
        """Acknowledge a page when the client has taken enough of what was written."""

    def advance(self) -> None:
        """Take further messages."""

    def end(self, error: RemudaError | None) -> None:
        """Send all that was written, and close the connection."""

    def close(self, error: RemudaError | None = None) -> None:
        """Tell the client why, and close."""


class Backend:
    def __init__(
        self, services: Services, outlet: Outlet, startup: Startup, client: Client, secret: int
    ) -> None:
        """Raises what is wrong with the settings of the startup packet."""
        self._services = services
        self._core = services.core
        self._outlet = outlet
        self._client = client
        self._machine = ps.Session()
        self._told = ToldSettings(outlet.speaks)
        self._declared = DeclaredCursors(services.statements, client, outlet)
        parts = services.core, services.statements, services.plans
        self._turns = Turns(*parts, self._machine, outlet)
        self.secret = secret
        self.input: CopyInput | None = None  # of the COPY FROM that runs
        self._named: ClientSession | None = None
        """The session of a statement that knew the prepared statements of messages."""
        client.goes_on_with(self._started_with(startup))
        client.portals.serve(PortalCursors(self._machine, self._pulled, self._close_portals))
        self._notified = ToldNotifications(client.inbox, outlet, lambda: self.idle)
        self._short_ways = ShortWays(
            services.core, services.statements, services.plans, outlet, client, self
        )

    @property
    def application(self) -> str:
        return self._client.session.values.get("application_name", "")

    @property
    def client(self) -> Client:
        return self._client

    @property
    def idle(self) -> bool:
        """Whether nothing runs, no transaction is open, and no answer is owed."""
        return not self._machine.busy and (not self._client.transaction or self.lost is not None)

    @property
    def lost(self) -> RemudaError | None:
        """Why the transaction that the client has open is not there any more."""
        _, lost = self._services.statements.transaction(
            self._client.transaction, self._outlet, self._outlet.user
        )
        return lost

    # --- the beginning ------------------------------------------------------------------------

    def _started_with(self, startup: Startup) -> ClientSession:
        """Settings of the startup packet come before those of the user's entry."""
        defaults = dict(self._core.access.settings(self._outlet.user))
        for name, value in startup.settings:
            setting = setting_of(name)
            defaults[setting.name.lower()] = checked(setting, value)
        session = replace(self._client.session, database=startup.database)
        return session.with_defaults(defaults)

    @property
    def _settings(self) -> ClientSession:
        """The session, with SET LOCAL of the transaction that is open."""
        client = self._client
        if not client.transaction:
            return client.session
        transaction, _ = self._services.statements.transaction(
            client.transaction, self._outlet, self._outlet.user
        )
        return client.session if transaction is None else transaction.session(client.session)

    @property
    def _zone(self) -> str:
        return self._settings.zone

    def greet(self) -> None:
        """Tell the client that it may begin."""
        parts = [AUTHENTICATION_OK, *self._changed_settings()]
        user = self._outlet.user or self._client.session.user
        for name, value in (
            ("is_superuser", "on" if self._core.access.is_admin(self._outlet.user) else "off"),
            ("session_authorization", user),
            ("in_hot_standby", "off"),
        ):
            parts.append(parameter_status(name, value))
        parts.append(backend_key(self._client.pid, self.secret))
        parts.append(ready_for_query(ps.IDLE))
        self._outlet.write(b"".join(parts))

    def _changed_settings(self) -> list[bytes]:
        return self._told.changes(self._settings)

    # --- messages -----------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._machine.busy

    def step(self, reader: Reader) -> bool:
        """Take one message; False: none can be taken now."""
        if self.input is not None and self.input.full:
            return False
        turn = self._machine.turn(reader)
        if turn is not None:
            if self._read_in_turn(turn):
                return True
            self._machine.declined(reader)
        effects = self._machine.step(reader)
        if effects is None:
            return False
        self._perform(effects)
        return True

    def _perform(self, effects: fx.Effects) -> None:
        for effect in effects:
            match effect:
                case fx.Write(data):
                    self._outlet.write(data)
                case fx.RunPortal(portal, limit):
                    self._run_portal(portal, limit)
                case fx.BindValues(prepared, message):
                    self._bind(prepared, message)
                case fx.Ready(status):
                    self._ready(status)
                case _:
                    self._perform_other(effect)

    def _perform_other(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Prepare() as wanted:
                self._work(self._prepare(wanted), "preparing a statement")
            case fx.Split(text):
                self._split(text)
            case fx.Look(text):
                self._work(self._look(text), "planning a statement")
            case fx.RunText(text):
                self._run_text(text)
            case fx.Control(what):
                measured = self._core.measures.postgres.begin(what)
                self._run(what, run=self._new_run(measured, silent=True))
            case CopyRows(data):
                if self.input is not None:
                    self.input.put(data)
            case CopyEnd(error):
                if self.input is not None:
                    self.input.end(error)
            case fx.DropPortal(portal):
                self._drop(portal)
            case fx.UseCursor() | fx.CloseCursor():
                self._use_cursor(effect)
            case fx.FailTransaction(error):
                self._fail_transaction(error)
            case fx.End(error):
                self._outlet.end(error)

    def _ready(self, status: bytes) -> None:
        told = self._notified.before_ready(status), *self._changed_settings()
        self._outlet.write(b"".join([*told, ready_for_query(status)]))

    def _work(self, work: Coroutine[Any, Any, None], what: str) -> None:
        self._core.spawn(work, what, self.failed)

    def failed(self, error: RemudaError) -> None:
        """The effect that was asked for last has failed."""
        if isinstance(error, SessionTerminated):  # nothing comes behind it
            self._outlet.close(error)
            return
        self._perform(self._machine.failed(error, self._status()))
        self._outlet.advance()

    # --- statements ---------------------------------------------------------------------------

    def _dismissed(self, text: str) -> bool:
        """Whether the session is over, because the member leaves and ``text`` only asks whether
        this connection may be used. A pool that hears no connects to another member."""
        if not self._core.departure.dismissing or self._client.transaction:
            return False
        if not is_check(text):
            return False
        self._outlet.close(leaving(self._core.number))
        return True

    async def _prepare(self, wanted: fx.Prepare) -> None:
        text, session = wanted.text, self._settings
        if self._dismissed(text):
            return
        self._core.require_serving()
        if wanted.name and wanted.name in session.prepared:  # by PREPARE
            raise DuplicateStatement(f'prepared statement "{wanted.name}" already exists')
        if names_prepared(text):
            session = knowing(session, self._machine.statements)
        services, user = self._services, self._outlet.user
        prepared = await services.preparing.prepare(
            text, wanted.types, session, user, self._declared.columns
        )
        self._perform(self._machine.prepared(prepared))
        self._outlet.advance()

    async def _look(self, text: str) -> None:
        manner = await self._services.preparing.manner(text, self._outlet.user, self._settings)
        self._perform(self._machine.looked(manner))
        self._outlet.advance()

    def _split(self, text: str) -> None:
        """A syntax error in one statement keeps all of them from running."""
        if self._dismissed(text):
            return
        try:
            statements = script(text)
        except RemudaError as error:
            self._perform(self._machine.failed(error, self._status()))
            return
        self._perform(self._machine.split(statements))

    def _bind(self, prepared: Prepared, message: Bind) -> None:
        if self._core.departure.dismissing and self._dismissed(prepared.text):
            return
        created = 0
        try:
            if message.portal:
                created = self._core.world.clock.wall_micros()
                if self._declared.columns(message.portal) is not None:
                    raise DuplicateCursor(f'cursor "{message.portal}" already exists')
            if len(message.values) >= MANY_VALUES:
                self._work(self._bind_aside(prepared, message, created), "reading parameters")
                return
            bound = self._services.preparing.bind(prepared, message, self._zone)
        except RemudaError as error:
            self._perform(self._machine.failed(error, self._status()))
            return
        self._perform(self._machine.bound(RunningPortal(bound, created)))

    async def _bind_aside(self, prepared: Prepared, message: Bind, created: int) -> None:
        bound = await self._services.preparing.bind_aside(prepared, message, self._zone)
        self._perform(self._machine.bound(RunningPortal(bound, created)))
        self._outlet.advance()

    # --- cursors ------------------------------------------------------------------------------

    def _use_cursor(self, effect: fx.UseCursor | fx.CloseCursor) -> None:
        try:
            if isinstance(effect, fx.CloseCursor):
                self._declared.close(effect.name)
                self._perform(self._machine.closed())
                return
            fields = fields_of(self._declared.known(effect.name))
        except RemudaError as error:
            self._perform(self._machine.failed(error, self._status()))
            return
        if effect.limit is None:
            self._perform(self._machine.described(fields, False))
            return
        text = fetching(effect.name, effect.limit)
        measured = self._core.measures.postgres.begin(text)
        texts, limit = (0,) * len(fields), effect.limit
        run = self._new_run(measured, fields=fields, formats=texts, described=True, of_cursor=limit)
        self._run(text, run=run)

    def _pulled(self, portal: fx.Portal) -> ResultRun:
        """The rest of a portal, for a statement. It begins now, if it has not."""
        running: RunningPortal = portal.token
        if running.run is None:
            self.run_generally(portal, 0, waiting=True)
        assert running.run is not None
        return running.run

    def _close_portals(self, names: Sequence[str]) -> None:
        self._perform(self._machine.dropped(names))

    # --- running ------------------------------------------------------------------------------

    def _run_portal(self, portal: fx.Portal, limit: int) -> None:
        running: RunningPortal = portal.token
        if running.run is not None:
            self._resume(running.run, limit)
            return
        if not self._short_ways.run(portal, running.bound, limit):
            self.run_generally(portal, limit)

    def run_generally(self, portal: fx.Portal, limit: int, *, waiting: bool = False) -> None:
        """In a task of its own. ``waiting``: no Execute has asked for rows."""
        running: RunningPortal = portal.token
        bound = running.bound
        measured = self._core.measures.postgres.begin(bound.planning.text)
        run = self.result_of(portal, limit, measured, waiting=waiting)
        running.statement = self._run(
            bound.planning.text, bound.values, bound.types, bound.by, run=run
        )

    def result_of(
        self, portal: fx.Portal, limit: int, measured: Measured, *, waiting: bool = False
    ) -> ResultRun:
        """The rows of a portal from now on."""
        run = portal.token.run = self._new_run(
            measured,
            formats=portal.formats,
            fields=portal.prepared.fields,
            described=True,
            waiting=waiting,
            limit=limit,
        )
        return run

    def statement_of(self, bound: Bound, wire: Callable[[ResultShape], Wire]) -> Statement:
        return self._made(bound.planning.text, bound.values, bound.types, bound.by, wire)

    def completed(self, portal: fx.Portal, tag: str, rows: int, data: bytes) -> None:
        """A portal has sent all of its rows with ``data``, and its statement is over."""
        if data:
            self._outlet.write(data)
        portal.token.run = _OVER
        self._perform(self._machine.completed(tag, rows, ps.IDLE))
        self._outlet.advance()

    def filled(self, portal: fx.Portal, data: bytes) -> None:
        """A portal has sent all of its rows with ``data``, as many as were asked for: its client
        asks once more, and hears of the end."""
        self._outlet.write(data)
        portal.token.run = _OVER
        self._perform(self._machine.suspended())
        self._outlet.advance()

    def _resume(self, run: ResultRun, limit: int) -> None:
        if run.over:
            self._perform(self._machine.completed("SELECT", 0, self._status()))
        else:
            run.go_on(limit)

    def _run_text(self, text: str) -> None:
        measured = self._core.measures.postgres.begin(text)
        self._run(text, run=self._new_run(measured))

    def _new_run(self, measured: Measured, **options: Any) -> ResultRun:
        def ended(end: End) -> None:
            measured(end.error)
            self._later(lambda: self._statement_ended(run, end))

        run = ResultRun(
            write=self._outlet.write,
            when_taken=self._outlet.when_taken,
            suspended=self._suspended,
            ended=ended,
            zone=self._zone,
            **options,
        )
        return run

    def _later(self, what: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(what)  # a statement ends a little after its result

    def _suspended(self) -> None:
        self._perform(self._machine.suspended())
        self._later(self._outlet.advance)

    def _read_in_turn(self, turn: Turn) -> bool:
        """``Turns.read``, if nothing of the session and of the member is against it."""
        if self._core.departure.dismissing or not self._short_ways.alone:
            return False
        return self._turns.read(turn, self._client.session.meaning)

    # --- running ------------------------------------------------------------------------------

    def _run(
        self,
        text: str,
        values: tuple[PhysicalValue, ...] = (),
        types: tuple[SqlType, ...] = (),
        by: PlanTypes | None = None,
        *,
        run: ResultRun,
    ) -> Statement | None:
        """Start a statement; ``run`` hears of its end."""
        try:
            self._core.require_serving()
            if not self._client.transaction:
                self._core.departure.require_staying()
            statement = self._made(text, values, types, by, run.wire)
            statement.copies = SessionCopies(run, self._ask_for_rows, self._outlet.advance)
        except RemudaError as error:
            run.wire(_NOTHING).finish(_end_with(error))
            return None
        self._services.statements.accept(statement)
        self._core.spawn(self._services.statements.run(statement), "statement")
        return statement

    def _ask_for_rows(self, response: bytes, given: CopyInput) -> None:
        """For a COPY FROM that runs."""
        self.input = given
        self._perform(self._machine.copying(response))
        self._later(self._outlet.advance)

    def _made(
        self,
        text: str,
        values: tuple[PhysicalValue, ...],
        types: tuple[SqlType, ...],
        by: PlanTypes | None,
        wire: Callable[[ResultShape], Wire],
    ) -> Statement:
        core, client, outlet = self._core, self._client, self._outlet
        services, user = self._services, outlet.user
        transaction, lost = services.statements.transaction(client.transaction, outlet, user)
        sent, session = client.settled(self._with_prepared(text, client.session), transaction)
        return Statement(
            channel=outlet,
            user=user,
            wire=wire,
            query=services.queries.new_id(),
            text=text,
            values=values,
            types=types,
            started=core.world.clock.wall_micros(),
            timeout=session.timeout or core.config.query_timeout or None,
            read_timestamp=None,
            partitions=None,
            local=False,
            page_rows=PAGE_ROWS,
            session=replace(session, user=user or session.user, pid=client.pid),
            transaction=transaction,
            lost=lost,
            takes_transactions=True,
            sent=sent,
            room=client.room,
            planned_by=by,
            unaided=True,
            progress=Progress(on_notice=self._notice),
        )

    def _notice(self, notice: Notice) -> None:
        least = self._settings.value(SETTINGS["client_min_messages"])
        told = notice_message(notice.severity, notice.sqlstate, notice.message, least)
        self._outlet.write(told)

    def _with_prepared(self, text: str, session: ClientSession) -> ClientSession:
        """EXECUTE, PREPARE and DEALLOCATE know what was prepared by a message, too."""
        if not names_prepared(text):
            return session
        found = knowing(session, self._machine.statements)
        self._named = None if found is session else found
        return found

    def _forget_prepared(self, before: ClientSession) -> None:
        """A DEALLOCATE has removed some of the prepared statements of messages."""
        session = self._client.session
        names = self._machine.statements.keys() & before.prepared.keys()
        self._machine.deallocated([name for name in names if name not in session.prepared])
        for name in names & session.prepared.keys():
            session = session.with_prepared(name, None)
        self._client.goes_on_with(session)

    def _statement_ended(self, run: ResultRun, end: End) -> None:
        named, self._named = self._named, None
        self.input = None
        if named is not None and end.session is not None:
            self._forget_prepared(named)
        if end.error is not None:
            self.failed(end.error)
            return
        rows = run.rows if end.affected_rows is None else end.affected_rows
        if run.of_cursor and rows == run.of_cursor:
            self._perform(self._machine.suspended())
        else:
            tag = end.tag if run.of_cursor is None else "SELECT"
            self._perform(self._machine.completed(tag, rows, self._status()))
        self._outlet.advance()

    # --- transactions -------------------------------------------------------------------------

    def _status(self) -> bytes:
        name = self._client.transaction
        if not name:
            return ps.IDLE
        transaction, _ = self._services.statements.transaction(
            name, self._outlet, self._outlet.user
        )
        active = transaction is not None and transaction.state is State.ACTIVE
        return ps.IN_TRANSACTION if active else ps.FAILED

    def _fail_transaction(self, error: RemudaError) -> None:
        transaction, _ = self._services.statements.transaction(
            self._client.transaction, self._outlet, self._outlet.user
        )
        if transaction is not None:
            transaction.failed(error)

    # --- ends ---------------------------------------------------------------------------------

    def _drop(self, portal: fx.Portal) -> None:
        """Its query ends; the client has heard of it all that it wanted."""
        running: RunningPortal = portal.token
        if running.statement is not None and running.run is not None and not running.run.over:
            running.run.over = True
            error = QueryCanceled("the portal was closed")
            self._services.statements.cancel(running.statement.query, error)

    def cancel(self) -> None:
        """End what runs, for a CancelRequest."""
        self._services.statements.interrupt(
            self._client, QueryCanceled("canceling statement due to user request")
        )


class _Over:
    over = True


_OVER: Final[Any] = _Over()


def _end_with(error: RemudaError) -> End:
    return End(error, "", 0, None, None, None)
