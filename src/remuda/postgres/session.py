"""Queries, prepared statements and portals of one open session: a pure state machine.

``step`` takes one message from the reader and says what to do. Work that takes time (planning,
running) is an effect that the shell answers by a call of the method that the effect names; until
then ``step`` gives None, so messages of a pipeline wait where they are.

**Implicit transactions.** Statements that one Query message holds, and statements between two Sync
messages, take effect together or not at all. A single statement needs no transaction of its own:
whether one is alone is seen from the message behind it. Statements that cannot run in a
transaction (definitions, for example) end the implicit one, and take effect at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from remuda.errors import (
    DuplicateCursor,
    DuplicateStatement,
    InvalidByteSequence,
    LimitExceeded,
    NotSupported,
    ProtocolError,
    RemudaError,
    UndefinedCursor,
    UndefinedStatement,
)
from remuda.postgres import messages as m
from remuda.postgres.copy_messages import CopyRows, copied
from remuda.postgres.effects import (
    BindValues,
    CloseCursor,
    Control,
    DropPortal,
    Effects,
    End,
    FailTransaction,
    Look,
    Portal,
    Prepare,
    Ready,
    RunPortal,
    RunText,
    Split,
    UseCursor,
    Write,
)
from remuda.postgres.prepared import Manner, Prepared, Turn, result_formats, whole_turn
from remuda.postgres.reader import Reader
from remuda.postgres.reports import command_tag, error_message

IDLE, IN_TRANSACTION, FAILED = m.IDLE, b"T", b"E"
STATEMENTS_MAX: Final = 10_000
STATEMENTS_SIZE_MAX: Final = 64 * 1024 * 1024
"""Characters of all prepared statements of a session."""
PORTALS_MAX: Final = 1_000
BEGIN: Final = "BEGIN"
COMMIT: Final = "COMMIT"
ROLLBACK: Final = "ROLLBACK"


# --- what is awaited from the shell -------------------------------------------------------------


@dataclass(slots=True)
class _Simple:
    """A Query message. ``left``: its statements that have not run, with their places."""

    left: deque[tuple[int, str]] = field(default_factory=deque)
    several: bool = False
    offset: int = 0
    """Of the statement that runs."""


@dataclass(frozen=True, slots=True)
class _Preparing:
    name: str


@dataclass(frozen=True, slots=True)
class _Binding:
    message: m.Bind
    prepared: Prepared


@dataclass(frozen=True, slots=True)
class _Executing:
    portal: Portal


@dataclass(frozen=True, slots=True)
class _Controlling:
    """BEGIN or COMMIT before ``then``; COMMIT or ROLLBACK before the session is ready, if None."""

    what: str
    then: RunPortal | RunText | None


_Awaited: TypeAlias = _Preparing | _Binding | _Executing | _Controlling | None

_QUERIES: Final = frozenset(b"PBDECHQ")


class Session:
    def __init__(self) -> None:
        self.status = IDLE
        """Of the client's transaction, as the shell has told it last."""
        self.statements: dict[str, Prepared] = {}
        self._size = 0
        self._portals: dict[str, Portal] = {}
        self._implicit = False
        self._skipping = False
        self._simple: _Simple | None = None
        self._awaited: _Awaited = None
        self.busy = False
        """An effect has not been answered yet."""
        self._copying = False
        """The statement that runs reads what the client sends."""
        self._ended = False

    # --- messages -----------------------------------------------------------------------------

    def step(self, reader: Reader) -> Effects | None:
        """None: no message is whole, or the shell owes an answer."""
        if self._ended or (self.busy and not self._copying):
            return None
        try:
            found = reader.take()
        except ProtocolError as error:
            return self._end(error)
        if found is None:
            return None
        kind, body = found
        if self._copying:
            return self._copied(kind, body, reader)
        if self._skipping and kind not in (m.SYNC_TYPE, ord("X")):
            return []
        try:
            message = m.read_message(kind, body)
        except (ProtocolError, InvalidByteSequence) as error:
            return self._malformed(kind, error)
        try:
            return self._take(message, reader)
        except RemudaError as error:
            return self.failed(error, self.status)

    def _malformed(self, kind: int, error: RemudaError) -> Effects:
        if kind == ord("Q"):
            self._simple = _Simple()
        return self.failed(error, self.status) if kind in _QUERIES else self._end(error)

    def _take(self, message: m.Message, reader: Reader) -> Effects:
        match message:
            case m.Bind():
                return self._bind(message)
            case m.Execute():
                return self._execute(message, reader)
            case m.Sync():
                return self._sync()
            case m.Describe():
                return self._describe(message)
            case m.Parse():
                return self._parse(message)
            case m.Query(text):
                self._forget_statement("")
                self._simple = _Simple()
                self.busy = True
                return [*self._drop([""]), Split(text)]
            case m.Close(portal=True, name=name):
                return self._close(name)
            case m.Close(name=name):
                self._forget_statement(name)
                return [Write(m.CLOSE_COMPLETE)]
            case m.Terminate():
                return self._end(None)
            case m.FunctionCall():
                self._simple = _Simple()  # answered by ReadyForQuery, as a query is
                hint = "Use SELECT function(...)."
                raise NotSupported("function calls by oid are not supported", hint=hint)
            case m.Flush() | m.CopyMessage():
                return []

    def _end(self, error: RemudaError | None) -> Effects:
        self._ended = True
        told: Effects = [] if error is None else [Write(error_message(error, fatal=True))]
        return [*told, End(error)]

    def copying(self, response: bytes) -> Effects:
        """The statement that runs asks for rows: from now on the client's messages are
        ``CopyRows`` and, at last, ``CopyEnd``."""
        self._copying = True
        return [Write(response)]

    def _copied(self, kind: int, body: bytes, reader: Reader) -> Effects:
        found = copied(kind, body, reader)
        self._copying = isinstance(found, CopyRows | None)
        leaves = kind == m.TERMINATE_TYPE
        return self._end(None) if leaves else [] if found is None else [found]

    # --- turns --------------------------------------------------------------------------------

    def turn(self, reader: Reader) -> Turn | None:
        """The short way of messages that need no portal: taken in one piece, and answered in one by
        ``turned`` or ``turn_failed``, or put back by ``declined``, after which ``step`` takes the
        same messages one by one. None: ``step`` takes the messages that are here, and those that
        are not in order."""
        if self.busy or self._ended or self.status != IDLE or self._skipping:
            return None
        if self._implicit or self._portals:
            return None
        found = reader.take_turn()
        turn = None if found is None else whole_turn(self.statements, *found)
        if turn is not None:
            self.busy = True
        elif found is not None:
            reader.put_back()
        return turn

    def declined(self, reader: Reader) -> None:
        """The shell has done nothing about the last ``turn``."""
        self.busy = False
        reader.put_back()

    def turned(self, turn: Turn, description: bytes, rows: Sequence[bytes]) -> bytes:
        """The whole answer of a turn. ``description`` is the RowDescription of its columns."""
        self.busy = False
        return turn.answered(description, rows)

    def turn_failed(self, turn: Turn, description: bytes, error: RemudaError) -> bytes:
        """The whole answer of a turn whose execution has failed."""
        self.busy = False
        return turn.failed(description, error_message(error))

    # --- statements and portals ---------------------------------------------------------------

    def _parse(self, message: m.Parse) -> Effects:
        if message.name and message.name in self.statements:
            raise DuplicateStatement(f'prepared statement "{message.name}" already exists')
        if not message.name:
            self._forget_statement("")
        if len(self.statements) >= STATEMENTS_MAX or self._size > STATEMENTS_SIZE_MAX:
            raise LimitExceeded(
                f"this session has {len(self.statements)} prepared statements",
                hint="Close some, or DEALLOCATE ALL.",
            )
        self.busy, self._awaited = True, _Preparing(message.name)
        return [Prepare(message.text, message.types, message.name)]

    def prepared(self, prepared: Prepared) -> Effects:
        awaited = self._answered()
        assert isinstance(awaited, _Preparing)
        self.statements[awaited.name] = prepared
        self._size += len(prepared.text)
        return [Write(m.PARSE_COMPLETE)]

    def _statement(self, name: str) -> Prepared:
        found = self.statements.get(name)
        if found is None:
            raise UndefinedStatement(
                f'prepared statement "{name}" does not exist'
                if name
                else "unnamed prepared statement does not exist"
            )
        return found

    def _forget_statement(self, name: str) -> None:
        found = self.statements.pop(name, None)
        if found is not None:
            self._size -= len(found.text)

    def deallocated(self, names: Sequence[str]) -> None:
        """DEALLOCATE or DISCARD has removed these prepared statements."""
        for name in names:
            self._forget_statement(name)

    def _bind(self, message: m.Bind) -> Effects:
        prepared = self._statement(message.statement)
        wanted, given = len(prepared.types), len(message.values)
        if wanted != given:
            raise ProtocolError(
                f"bind message supplies {given} parameters, but prepared statement "
                f'"{message.statement}" requires {wanted}'
            )
        if len(message.formats) not in (0, 1, given):
            raise ProtocolError(
                f"bind message has {len(message.formats)} parameter formats but {given} parameters"
            )
        if message.portal and message.portal in self._portals:
            raise DuplicateCursor(f'cursor "{message.portal}" already exists')
        if len(self._portals) >= PORTALS_MAX:
            raise LimitExceeded(f"this session has {PORTALS_MAX} portals", hint="Close some.")
        self.busy, self._awaited = True, _Binding(message, prepared)
        return [*self._drop([message.portal]), BindValues(prepared, message)]

    def bound(self, token: Any) -> Effects:
        awaited = self._answered()
        assert isinstance(awaited, _Binding)
        name, prepared = awaited.message.portal, awaited.prepared
        try:
            formats = result_formats(awaited.message.result_formats, prepared.fields)
        except ProtocolError as error:
            return self.failed(error, self.status)
        self._portals[name] = Portal(name, prepared, formats, token)
        return [Write(m.BIND_COMPLETE)]

    def _portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise UndefinedCursor(f'portal "{name}" does not exist')
        return found

    def _describe(self, message: m.Describe) -> Effects:
        if message.portal and message.name and message.name not in self._portals:
            self.busy = True
            return [UseCursor(message.name)]
        if message.portal:
            portal = self._portal(message.name)
            return [Write(portal.prepared.described(portal.formats))]
        prepared = self._statement(message.name)
        formats = (0,) * len(prepared.fields or ())
        types = m.parameter_description(prepared.types)
        return [Write(types + prepared.described(formats))]

    def described(self, fields: Sequence[m.Field], binary: bool) -> Effects:
        """The columns of a cursor."""
        self._answered()
        return [Write(m.row_description(fields, (int(binary),) * len(fields)))]

    def _close(self, name: str) -> Effects:
        if name and name not in self._portals:
            self.busy = True
            return [CloseCursor(name)]
        return [*self._drop([name]), Write(m.CLOSE_COMPLETE)]

    def closed(self) -> Effects:
        """There is no such cursor any more."""
        self._answered()
        return [Write(m.CLOSE_COMPLETE)]

    def named(self) -> Sequence[Portal]:
        """The portals that have a name."""
        return [portal for name, portal in self._portals.items() if name]

    def named_statements(self) -> Sequence[tuple[str, Prepared]]:
        return [(name, found) for name, found in self.statements.items() if name]

    def begun(self, name: str) -> Portal:
        """A portal of which another statement takes rows, from now on."""
        portal = self._portal(name)
        portal.begun = True
        return portal

    def dropped(self, names: Sequence[str]) -> Effects:
        """A statement has closed these portals."""
        return self._drop(names)

    def _drop(self, names: Sequence[str]) -> Effects:
        if not self._portals:
            return []
        found = [self._portals.pop(name) for name in names if name in self._portals]
        return [DropPortal(portal) for portal in found if portal.begun]

    def _execute(self, message: m.Execute, reader: Reader) -> Effects:
        if message.portal and message.portal not in self._portals:
            self.busy = True
            return [UseCursor(message.portal, message.limit)]
        portal = self._portal(message.portal)
        if not portal.prepared.text:
            return [Write(m.EMPTY_QUERY)]
        alone = reader.peek() == m.SYNC_TYPE
        return self._run(RunPortal(portal, message.limit), portal.prepared.manner, alone)

    # --- running ------------------------------------------------------------------------------

    def _run(self, effect: RunPortal | RunText, manner: Manner, alone: bool) -> Effects:
        """Run a statement, in an implicit transaction unless it is alone."""
        if manner is Manner.ROWS and self.status == IDLE and not alone:
            return self._control(BEGIN, effect)
        if self._implicit:
            if manner is Manner.OUTSIDE:
                return self._control(COMMIT, effect)
            if manner is Manner.BEGIN:  # what has run in front of it belongs to its transaction
                self._implicit = False
                self._expect(effect)
                return self.completed("BEGIN", 0, self.status)
            if manner is Manner.BLOCK:  # it fails then, as it does alone
                return self._control(ROLLBACK, effect)
            if manner is Manner.CONTROL:
                self._implicit = False
        self._expect(effect)
        return [effect]

    def _expect(self, effect: RunPortal | RunText) -> None:
        self.busy = True
        self._awaited = None
        if isinstance(effect, RunPortal):
            effect.portal.begun = True
            self._awaited = _Executing(effect.portal)

    def _control(self, what: str, then: RunPortal | RunText | None) -> Effects:
        self.busy, self._awaited = True, _Controlling(what, then)
        return [Control(what)]

    def _answered(self) -> _Awaited:
        awaited, self._awaited = self._awaited, None
        self.busy = self._copying = False
        return awaited

    def completed(self, tag: str, rows: int, status: bytes) -> Effects:
        """A statement has ended well. ``status`` is that of the transaction from now on."""
        awaited = self._answered()
        self.status = status
        if isinstance(awaited, _Controlling):
            return self._controlled(awaited)
        if isinstance(awaited, _Executing):
            awaited.portal.begun = False
        return [Write(m.command_complete(command_tag(tag, rows))), *self._next()]

    def suspended(self) -> Effects:
        """The portal has sent as many rows as were asked for, and may have more."""
        self._answered()
        return [Write(m.PORTAL_SUSPENDED)]

    def _controlled(self, done: _Controlling) -> Effects:
        self._implicit = done.what == BEGIN
        if done.then is None:
            return self._ready()
        self._expect(done.then)
        return [done.then]

    def failed(self, error: RemudaError, status: bytes) -> Effects:
        """The last effect has failed: of a query the rest is given up, in the extended protocol
        everything before the next Sync."""
        awaited = self._answered()
        self.status = status
        simple = self._simple
        offset = 0 if simple is None else simple.offset
        told: Effects = [Write(error_message(error, offset=offset))]
        if isinstance(awaited, _Controlling):
            if awaited.what != BEGIN:
                self._implicit = False
            if awaited.then is None:
                return [*told, *self._ready()]
        if status == IN_TRANSACTION:
            told.append(FailTransaction(error))
            self.status = FAILED
        if simple is None:
            self._skipping = True
            return told
        simple.left.clear()
        return [*told, *self._settle(failed=True)]

    # --- the simple protocol ------------------------------------------------------------------

    def split(self, statements: Sequence[tuple[int, str]]) -> Effects:
        """The statements of a Query message, with their places in it."""
        self._answered()
        assert self._simple is not None
        if not statements:
            return [Write(m.EMPTY_QUERY), *self._settle(failed=False)]
        self._simple.left.extend(statements)
        self._simple.several = len(statements) > 1
        return self._next()

    def _next(self) -> Effects:
        simple = self._simple
        if simple is None:
            return []
        if not simple.left:
            return self._settle(failed=False)
        simple.offset, text = simple.left.popleft()
        self.busy = True
        if simple.several:
            simple.left.appendleft((simple.offset, text))
            return [Look(text)]
        self._expect(RunText(text))
        return [RunText(text)]

    def looked(self, manner: Manner) -> Effects:
        self._answered()
        assert self._simple is not None
        _, text = self._simple.left.popleft()
        return self._run(RunText(text), manner, alone=False)

    # --- the end of a query -------------------------------------------------------------------

    def _sync(self) -> Effects:
        failed, self._skipping = self._skipping, False
        return self._settle(failed=failed)

    def _settle(self, *, failed: bool) -> Effects:
        """Before the session is ready: end the implicit transaction."""
        if not self._implicit:
            return self._ready()
        dropped = self._drop(list(self._portals))
        failed = failed or self.status == FAILED
        return [*dropped, *self._control(ROLLBACK if failed else COMMIT, None)]

    def _ready(self) -> Effects:
        self._simple = None
        dropped = self._drop(list(self._portals)) if self.status == IDLE else []
        return [*dropped, Ready(self.status)]
