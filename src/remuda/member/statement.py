"""One statement of a client, and what its messages say."""

from __future__ import annotations

from dataclasses import dataclass, field

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import NotSupported, RemudaError, UndefinedStatement
from remuda.member.cursors import Cursor
from remuda.query.ids import QueryId
from remuda.rpc.messages import user_pb2
from remuda.rpc.transport import Channel, Request
from remuda.session.client_session import NO_SESSION, ClientSession
from remuda.session.planning import (
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
)

# Read once: an enumeration's attribute is a slow lookup.
PREPARED, SQL = user_pb2.PREPARED_STATEMENT_TYPE, user_pb2.SQL


@dataclass
class Progress:
    error: RemudaError | None = None
    attempt: QueryId | None = None
    tries: int = 0
    """How often it was planned again."""


@dataclass
class Statement:
    """One RUN_QUERY."""

    request: Request
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
    session: ClientSession = NO_SESSION
    progress: Progress = field(default_factory=Progress)
    """Shared by the copies that stand for its parts and its further attempts."""

    @property
    def channel(self) -> Channel:
        return self.request.channel

    @property
    def error(self) -> RemudaError | None:
        """Set when it is cancelled, before its query has begun or later."""
        return self.progress.error

    @error.setter
    def error(self, error: RemudaError | None) -> None:
        self.progress.error = error

    @property
    def attempt(self) -> QueryId | None:
        """The query that serves it now, when it is not the first one."""
        return self.progress.attempt

    @attempt.setter
    def attempt(self, query: QueryId | None) -> None:
        self.progress.attempt = query

    def check(self) -> None:
        """Raises when it is not wanted any more."""
        if self.error is not None:
            raise self.error


@dataclass
class Client:
    """What a connection has running here."""

    statements: dict[QueryId, Statement] = field(default_factory=dict)
    cursors: dict[QueryId, Cursor] = field(default_factory=dict)


def text_of(message: user_pb2.RunQuery) -> str:
    if message.type == PREPARED:
        try:
            return message.prepared_statement_handle.server_info.decode()
        except UnicodeDecodeError as problem:
            raise UndefinedStatement("the handle is none of a prepared statement") from problem
    if message.type == SQL:
        return message.plan
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
