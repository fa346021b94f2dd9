"""One statement of a client, and the content of its messages."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.catalog.temporary import TemporaryTable, TemporaryTables, bytes_of
from remuda.datatypes.schema import PG_TEMP
from remuda.datatypes.sql import SqlType
from remuda.datatypes.timestamp import EXPIRY_MARK, from_micros
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    NotSupported,
    QueryTimeout,
    RemudaError,
    UndefinedMap,
    UndefinedStatement,
    UntranslatableCharacter,
)
from remuda.execution.memory import Reservation
from remuda.member.cursors.open_cursors import OpenCursors
from remuda.member.cursors.portals import ClientPortals
from remuda.member.notifications.inbox import Inbox
from remuda.member.queries.copy_port import CopyPort
from remuda.member.queries.cursors import Cursor, Wire
from remuda.member.queries.pauses import Pauses
from remuda.member.queries.query_state import Initiated
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.temporary.definitions import is_own
from remuda.member.sessions.temporary.rows import state_row
from remuda.query.ids import QueryId
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.messages import user_pb2
from remuda.session.client_session import NO_SESSION, ClientSession
from remuda.session.parameters import Moment
from remuda.session.planning import (
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
)
from remuda.session.shape import ResultShape
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.statements import (
    CatalogStatement,
    ClusterStatement,
    CopyStatement,
    CreateAsStatement,
    CreateIndexStatement,
    CreateMapStatement,
    DropIndexStatement,
    SnapshotStatement,
    TruncateStatement,
)
from remuda.transaction.number_blocks import StatementNumbers
from remuda.transaction.states import COMMITTING
from remuda.world import Clock

_COMMITTING_LATER = (PlannedQuery, PlannedInsert, PlannedChange, PlannedExplain, CopyStatement)
"""Statements that say themselves when they commit; others may take effect from the start on."""
_WRITING = (PlannedInsert, PlannedChange, PlannedExplain, CreateAsStatement, TruncateStatement)

# Read once: an enumeration's attribute is a slow lookup.
PREPARED, SQL = user_pb2.PREPARED_STATEMENT_TYPE, user_pb2.SQL


RUNS_KEPT = 20
T = TypeVar("T")

DEFINING: Final = (
    CatalogStatement, ClusterStatement, CreateAsStatement, CreateIndexStatement,
    CreateMapStatement, DropIndexStatement, SnapshotStatement, TruncateStatement,
)  # fmt: skip
"""Statements that an audit notes: they change definitions, or all rows at once."""


@dataclass
class Progress:
    error: RemudaError | None = None
    attempt: QueryId | None = None
    tries: int = 0
    """How often it was planned again."""
    again_until: float = 0.0
    """Monotonic seconds, once it was: as long it may be."""
    suspicion_until: float = 0.0
    """The same, for a member that is not heard."""
    pauses: Pauses | None = None
    admitted: bool = False
    planning: float = 0.0
    only_reads: bool = False
    """It is a SELECT, and its query has begun."""
    defines: bool = False
    """It changes definitions, or the cluster itself."""
    told: bool = False
    """Its client has been asked for rows: it cannot run again."""
    undone: bool = True
    """Nothing that it does has taken effect, or may: no commit of it has begun."""
    alone: bool = False
    """It writes rows, in a commit of its own."""
    committing: bool = False
    """The commit of what it writes has begun: nothing stops it any more."""
    set_sequence: bool = False
    """It has set a sequence, or may have: it must not run again."""
    taken: StatementNumbers | None = None
    """All numbers of sequences that it has taken. None: it has taken none."""
    numbers: dict[int, int] = field(default_factory=dict)
    """The last number that it has taken of each sequence, the latest one last."""
    job: str = ""
    """Of its write that waits for the turn of a map, or has it."""
    spares_transaction: bool = False
    """Its failure does not fail its transaction."""
    runs: deque[Initiated] = field(default_factory=partial(deque, maxlen=RUNS_KEPT))
    """The queries that it has run, the last ones."""
    on_spark: bool = False
    """A service of Spark has it, or will have it."""
    queued: float = 0.0
    """Seconds that it has waited for memory."""
    waited: float = 0.0
    """Seconds of its ended waits for locks and turns."""
    waits_since: float | None = None
    """Monotonic seconds: when its present wait for a lock or a turn began."""
    temporary: TemporaryTables | None = None
    """The temporary tables of its session, once it has changed them."""
    on_closed: list[Callable[[], None]] = field(default_factory=list)
    """Called when it is over; they free the things that are kept for its queries."""
    on_error: Callable[[RemudaError], None] | None = None
    """Told when it is cancelled while it waits."""
    on_notice: Callable[[Notice], None] | None = None
    """Told of what the client should know although the statement succeeds; None: its channel has no
    message for that."""

    def failed(self, error: RemudaError | None) -> None:
        """Others end it with ``error``."""
        self.error = error
        if error is not None:
            if self.on_error is not None:
                self.on_error(error)
            if self.pauses is not None:
                self.pauses.release()

    @contextlib.contextmanager
    def telling(self, on_error: Callable[[RemudaError], None]) -> Iterator[None]:
        """``on_error`` is told when others end it meanwhile."""
        self.on_error = on_error
        try:
            yield
        finally:
            self.on_error = None

    def served_by(self, query: QueryId | None) -> None:
        """A further query serves it."""
        self.attempt = query

    def runs_as(self, found: Planned, *, in_transaction: bool) -> None:
        """It is about to run."""
        self.defines = isinstance(found, DEFINING)
        self.alone = not in_transaction and isinstance(found, _WRITING)
        if self.taken is not None:
            self.attempts()
        self.committing = False
        self.undone = isinstance(found, _COMMITTING_LATER)

    def begins(self) -> None:
        """It has changed nothing yet: an earlier attempt, if there was one, was undone."""
        self.undone = True
        self.committing = False

    def commits(self) -> None:
        """From now on it may take effect, whatever error it ends with."""
        self.undone = False

    def commits_rows(self) -> None:
        """``commits``, by a commit that begins at once and is not given up."""
        self.undone = False
        self.committing = True

    def goes_to_spark(self) -> None:
        self.on_spark = True

    def change_temporary(self, tables: TemporaryTables | None) -> None:
        """The statement has made this of the temporary tables of its session (None: nothing)."""
        self.temporary = tables

    def notice(self, *notices: Notice) -> None:
        if self.on_notice is not None:
            for each in notices:
                self.on_notice(each)

    @contextlib.contextmanager
    def waiting(self, clock: Clock) -> Iterator[None]:
        """Counts the time inside as a wait for a lock or a turn."""
        self.wait_began(clock.monotonic())
        try:
            yield
        finally:
            self.wait_ended(clock.monotonic())

    def sets_sequence(self) -> None:
        """It cannot be undone, and means something else a second time."""
        self.undone = False
        self.set_sequence = True

    def attempts(self) -> None:
        """It is about to read, again if an attempt before was undone."""
        if self.taken is not None:
            self.taken.again()
            self.numbers.clear()

    def numbers_taken(self) -> StatementNumbers:
        """To which it adds those that it takes now."""
        self.taken = self.taken or StatementNumbers()
        return self.taken

    def took(self, map_id: int, number: int) -> None:
        """The last number of a sequence that it has taken."""
        self.numbers.pop(map_id, None)
        self.numbers[map_id] = number

    def wait_began(self, now: float) -> None:
        self.waits_since = now

    def wait_ended(self, now: float) -> None:
        if self.waits_since is not None:
            self.waited += max(0.0, now - self.waits_since)
            self.waits_since = None

    def waited_until(self, now: float) -> float:
        """Seconds of all waits for locks and turns, with the present one."""
        since = self.waits_since
        return self.waited if since is None else self.waited + max(0.0, now - since)


@dataclass(frozen=True, slots=True)
class PlanTypes:
    """The parameter types by which a plan was made; None: those that the binder infers."""

    types: tuple[SqlType, ...] | None


@dataclass
class Statement:
    """One statement of a client. ``user`` is who sent it, "" where members know no users; ``wire``
    makes what takes its result to the client."""

    channel: ClientChannel
    user: str
    wire: Callable[[ResultShape], Wire]
    query: QueryId
    text: str
    values: tuple[PhysicalValue, ...]
    types: tuple[SqlType, ...]
    started: int
    timeout: float | None
    read_timestamp: int | None
    partitions: frozenset[int] | None
    local: bool
    page_rows: int
    row_limit: int | None = None
    session: ClientSession = NO_SESSION
    transaction: OpenTransaction | None = None
    """That it belongs to; ``session`` is then as the transaction sees it."""
    lost: RemudaError | None = None
    """Why the transaction that the client believes to have does not exist."""
    given_up: bool = False
    """The client is told that it has no transaction any more."""
    takes_transactions: bool = False
    """Whether the client sends the transaction along that it is told."""
    sent: ClientSession = NO_SESSION
    """The session as the client has sent it."""
    planned_by: PlanTypes | None = None
    """Set where the client was told of the result of a plan: it is that plan which runs."""
    traceparent: str = ""
    """The client's span, as W3C Trace Context has it."""
    unaided: bool = False
    """Its client sends nothing again by itself, and knows no other member."""
    copies: CopyPort | None = None
    """Carries the data of COPY; None: its client has no way for that."""
    locking: bool = False
    """SELECT ... FOR UPDATE, FOR SHARE: the rows that it reads must be the same at the commit."""
    room: Reservation | None = None
    """The memory of temporary tables of its session; None: its client cannot have any."""
    progress: Progress = field(default_factory=Progress)
    """Shared by the copies that stand for its parts and its further attempts."""

    @property
    def error(self) -> RemudaError | None:
        """Set when it is cancelled, before its query has begun or later."""
        return self.progress.error

    @error.setter
    def error(self, error: RemudaError | None) -> None:
        self.progress.failed(error)

    @property
    def attempt(self) -> QueryId | None:
        """The query that serves it now, when it is not the first one."""
        return self.progress.attempt

    @attempt.setter
    def attempt(self, query: QueryId | None) -> None:
        self.progress.served_by(query)

    @property
    def moment(self) -> Moment:
        """When it runs. The clock of a transaction stands still, as in PostgreSQL."""
        transaction = self.transaction
        if transaction is not None:
            return Moment(transaction.started, self.started, transaction.id.began)
        low = self.query.part2 & EXPIRY_MARK
        return Moment(self.started, self.started, from_micros(self.started) | low)

    def pauses_at(self, place: str) -> bool:
        return self.progress.pauses is not None and self.progress.pauses.holds(place)

    async def pause(self, place: str) -> None:
        """Stop here if the client's setting ``test_pauses`` says so. Raises as ``check``, and
        QueryTimeout."""
        if self.progress.pauses is not None:
            await self.progress.pauses.at(place, self.timeout)
            self.check()

    def runs(self, found: Planned) -> None:
        """It is about to run. A statement that changes maps by a query says itself when it
        commits."""
        self.progress.runs_as(found, in_transaction=self.transaction is not None)

    @property
    def commits_now(self) -> bool:
        """Whether nothing stops it any more."""
        transaction = self.transaction
        return self.progress.committing or (
            transaction is not None and transaction.state in COMMITTING
        )

    def commits_rows(self) -> None:
        """A commit begins at once and is not given up. Raises as ``check``."""
        self.check()
        self.progress.commits_rows()

    async def interruptible(self, wait: Coroutine[Any, Any, T]) -> T:
        """Gives what ``wait`` gives. It is cancelled when the statement is not wanted any more.
        Raises as ``check``."""
        task = asyncio.ensure_future(wait)
        with self.progress.telling(lambda _: _cancel(task)):
            try:
                if self.error is not None:
                    task.cancel()
                return await task
            except asyncio.CancelledError:
                if self.error is None:
                    raise
                raise self.error from None

    async def in_time(self, wait: Coroutine[Any, Any, T]) -> T:
        """The same, and it ends with the timeout of the statement. Raises QueryTimeout as well."""
        if self.timeout is None:
            return await self.interruptible(wait)
        timer = asyncio.get_running_loop().call_later(self.timeout, too_late, self)
        try:
            return await self.interruptible(wait)
        finally:
            timer.cancel()

    def with_numbers(self) -> ClientSession | None:
        """The session with the numbers of sequences that it has taken, and with what it has made of
        temporary tables; None: the session is as it was."""
        numbers, tables = self.progress.numbers, self.progress.temporary
        session = self.sent.with_numbers(numbers) if numbers else None
        if tables is None:
            return session
        if self.transaction is None:
            tables = tables.committed()
        return (session or self.sent).with_temporary(tables)

    def temporary_tables(self) -> TemporaryTables:
        """The value that it begins to change. Raises NotSupported."""
        if self.room is None:
            raise NotSupported(
                "temporary tables need a session that stays on one member",
                hint="Connect to the port for PostgreSQL's clients, or use an ordinary table.",
            )
        tables = self.progress.temporary or self.session.temporary or TemporaryTables()
        return tables.within("" if self.transaction is None else self.transaction.name)

    def keep_temporary(self, tables: TemporaryTables) -> None:
        """Make this the value of the session once the statement has succeeded. Raises
        OutOfMemory."""
        assert self.room is not None, "temporary_tables has looked"
        kept = () if self.transaction is None else self.transaction.kept
        self.room.resize(bytes_of([tables, self.session.temporary, *(each for _, each in kept)]))
        self.progress.change_temporary(tables)

    def with_temporary_names(self, catalog: Catalog) -> Catalog:
        """``catalog`` as PostgreSQL's catalog lists it to the session, its temporary tables
        included."""
        tables = self.progress.temporary or self.session.temporary
        if tables is None or tables.names is None:
            return catalog
        return tables.names.listed_over(catalog)

    def temporary_schema(self) -> str:
        """The name under which the session finds its temporary relations in the catalog."""
        tables = self.progress.temporary or self.session.temporary
        return PG_TEMP if tables is None else f"{PG_TEMP}_{tables.session}"

    def temporary_rows(self, relation: str) -> Sequence[pa.RecordBatch]:
        """The rows of a temporary table. Raises UndefinedMap."""
        tables = self.progress.temporary or self.session.temporary
        found = None if tables is None else tables.find(relation)
        if found is None:
            raise UndefinedMap(f'relation "{relation}" does not exist on this member')
        if found.numbers is not None:
            return [state_row(found.schema, found.numbers.state)]
        return found.batches

    def own_sequence(self, map_id: int) -> TemporaryTable | None:
        """A temporary sequence."""
        tables = self.progress.temporary or self.session.temporary
        found = None if tables is None else tables.find_id(map_id)
        return None if found is None or found.numbers is None else found

    def defines_temporary(self, found: CatalogStatement) -> bool:
        """Whether a definition concerns temporary tables, sequences and views alone."""
        tables = self.session.temporary
        return all(is_own(edit, tables) for edit in found.edits)

    def close(self) -> None:
        """It is over: free what is kept for it."""
        if self.progress.pauses is not None:
            self.progress.pauses.release()
        while self.progress.on_closed:
            self.progress.on_closed.pop()()

    @contextlib.contextmanager
    def freed_when_stopped(self) -> Iterator[None]:
        """Frees its memory when its task is cancelled: its member stops, and tells nobody."""
        try:
            yield
        except asyncio.CancelledError:
            self.close()
            raise

    def check(self) -> None:
        """Raises when it is not wanted any more."""
        error = self.progress.error
        if error is not None:
            raise error


def too_late(statement: Statement) -> None:
    """Its timeout is over: have it end."""
    statement.error = QueryTimeout(f"the query did not end within {statement.timeout:g} s")


def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()


@dataclass
class Client:
    """The work of one connection."""

    room: Reservation | None = None
    """The memory of its temporary tables."""
    stock: bool = False
    """Drill's own client."""
    kept: bool = False
    """The client does not send its session and its transaction along: they are kept here."""
    session: ClientSession = NO_SESSION
    statements: dict[QueryId, Statement] = field(default_factory=dict)
    cursors: dict[QueryId, Cursor] = field(default_factory=dict)
    pid: int = 0
    since: int = 0
    """When it connected, in microseconds since 1970."""
    changed: int = 0
    """When a statement of it began or ended last; 0: it had none."""
    transaction: str = ""
    """The name of the open one, of a client that does not send it along."""
    held: OpenCursors = field(default_factory=OpenCursors)
    """Cursors that have outlived their transactions."""
    portals: ClientPortals = field(default_factory=ClientPortals)
    """Of a client of PostgreSQL."""
    inbox: Inbox = field(default_factory=Inbox)
    """Of the channels that it listens to."""

    def goes_on_with(self, session: ClientSession) -> None:
        self.session = session

    def settled(
        self, sent: ClientSession, transaction: OpenTransaction | None
    ) -> tuple[ClientSession, ClientSession]:
        """``sent``, the session of its next statement, without changes to temporary tables by a
        transaction that was rolled back; and the same as the transaction sees it."""
        tables = sent.temporary
        if tables is not None and tables.transaction:
            sent = sent.with_temporary(
                tables.settled("" if transaction is None else transaction.name)
            )
            self.session = self.session.with_temporary(sent.temporary)
        return sent, sent if transaction is None else transaction.session(sent)


def readable(text: str) -> str:
    """``text``, a statement out of a message. Raises UntranslatableCharacter: protobuf gives bytes
    for what is no UTF-8."""
    if not isinstance(text, str):
        raise UntranslatableCharacter("the statement is not valid UTF-8")
    return text


def text_of(message: user_pb2.RunQuery) -> str:
    if message.type == PREPARED:
        try:
            return message.prepared_statement_handle.server_info.decode()
        except UnicodeDecodeError as problem:
            raise UndefinedStatement("the handle is none of a prepared statement") from problem
    if message.type == SQL:
        return readable(message.plan)
    raise NotSupported(
        f"queries of type {user_pb2.QueryType.Name(message.type)} are not supported",
        hint="Send SQL or a prepared statement.",
    )


def parameter_types(found: Planned) -> tuple[SqlType, ...]:
    match found:
        case PlannedQuery(parameter_types=types):
            return types
        case PlannedInsert(source=source) | PlannedChange(source=source):
            return source.parameter_types
        case PlannedExplain(statement=statement):
            return parameter_types(statement)
        case _:
            return ()
