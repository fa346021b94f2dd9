"""Which work of a member's clients a request ends. Pure: ``step(work, request) -> effects``.

The member to which the client of a statement or a transaction is connected decides alone, by what
runs at the moment when the request arrives. So a request that is repeated or late finds its work
ended and ends nothing else: ids of statements and transactions are never given again, and the
number of a connection only after 65,534 others (``Pids``).

A statement or a transaction whose commit has begun is not ended: its outcome is then for the commit
to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from remuda.errors import (
    QueryCanceled,
    RemudaError,
    SessionTerminated,
    UndefinedObject,
    WrongState,
)
from remuda.query.ids import QueryId
from remuda.transaction.states import State

COMMITTING: Final = (State.PREPARING, State.COMMITTING)


@dataclass(frozen=True, slots=True)
class RunningStatement:
    """``committing``: its own commit has begun, or that of its transaction, in ``state``."""

    query: QueryId
    user: str
    committing: bool = False
    state: State | None = None

    @property
    def commits(self) -> bool:
        return self.committing or self.state in COMMITTING


@dataclass(frozen=True, slots=True)
class RunningTransaction:
    name: str
    user: str
    state: State
    statements: tuple[QueryId, ...] = ()

    @property
    def commits(self) -> bool:
        return self.state in COMMITTING


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """With the statements that it runs and the transactions that its connection holds."""

    pid: int
    user: str
    statements: tuple[RunningStatement, ...] = ()
    transactions: tuple[RunningTransaction, ...] = ()


class Work(Protocol):
    """The work of this member's clients. None: there is none of this name."""

    @property
    def member(self) -> int: ...

    def statement(self, query: QueryId) -> RunningStatement | None: ...

    def transaction(self, name: str) -> RunningTransaction | None: ...

    def client(self, pid: int) -> ConnectedClient | None: ...

    def ended(self, name: QueryId | str) -> str:
        """How a statement or a transaction ended of which this member still knows; empty: it knows
        of none."""


@dataclass(frozen=True, slots=True)
class EndStatement:
    """``user`` wants it, in each of these requests."""

    query: QueryId
    user: str


@dataclass(frozen=True, slots=True)
class EndTransaction:
    name: str
    user: str


@dataclass(frozen=True, slots=True)
class EndStatementsOfClient:
    pid: int
    user: str


@dataclass(frozen=True, slots=True)
class EndClient:
    """Its connection, too."""

    pid: int
    user: str


Request: TypeAlias = EndStatement | EndTransaction | EndStatementsOfClient | EndClient


@dataclass(frozen=True, slots=True)
class RequireOwner:
    """Perform the effects that follow only if the user of the request may end work of ``owner``."""

    owner: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The request fails with ``error``; nothing is ended."""

    error: RemudaError


@dataclass(frozen=True, slots=True)
class Cancel:
    """The statement ends with ``error``."""

    query: QueryId
    error: RemudaError


@dataclass(frozen=True, slots=True)
class RollBack:
    """The transaction ends, and the work that waits in it; its client's next request gets
    ``error``."""

    name: str
    error: RemudaError


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection, when its statements have told the client how they ended."""

    pid: int
    error: RemudaError


Effect: TypeAlias = RequireOwner | Refuse | Cancel | RollBack | Close


def step(work: Work, request: Request) -> list[Effect]:
    """The effects, in order; none where no client has the number that the request names."""
    match request:
        case EndStatement():
            return _statement(work, request)
        case EndTransaction():
            return _transaction(work, request)
        case EndStatementsOfClient() | EndClient():
            return _client(work, request)


def _statement(work: Work, request: EndStatement) -> list[Effect]:
    found = work.statement(request.query)
    if found is None:
        return [Refuse(_unknown("statement", request.query, work))]
    if found.commits:
        return [RequireOwner(found.user), Refuse(_committing("statement", str(found.query)))]
    error = QueryCanceled(f"the statement was cancelled by {_by(request.user)}")
    return [RequireOwner(found.user), Cancel(found.query, error)]


def _transaction(work: Work, request: EndTransaction) -> list[Effect]:
    found = work.transaction(request.name)
    if found is None:
        return [Refuse(_unknown("transaction", request.name, work))]
    if found.commits:
        return [RequireOwner(found.user), Refuse(_committing("transaction", found.name))]
    by = _by(request.user)
    error = QueryCanceled(f"transaction {found.name} was rolled back: it was cancelled by {by}")
    return [RequireOwner(found.user), *_rolled_back(found, error)]


def _rolled_back(transaction: RunningTransaction, error: RemudaError) -> list[Effect]:
    ends: list[Effect] = [Cancel(query, error) for query in transaction.statements]
    return [RollBack(transaction.name, error), *ends]


def _client(work: Work, request: EndStatementsOfClient | EndClient) -> list[Effect]:
    """Transactions that are suspended outlive their connections, so they stay."""
    found = work.client(request.pid)
    if found is None:
        return []
    by = _by(request.user)
    whole = isinstance(request, EndClient)
    error: RemudaError = (
        SessionTerminated(f"the connection was terminated by {by}")
        if whole
        else QueryCanceled(f"the statement was cancelled by {by}")
    )
    effects: list[Effect] = [RequireOwner(found.user)]
    effects += [Cancel(each.query, error) for each in found.statements if not each.commits]
    if whole:
        for each in found.transactions:
            if not each.commits and each.state is not State.SUSPENDED:
                effects += _rolled_back(each, error)
        effects.append(Close(found.pid, error))
    return effects


def _unknown(kind: str, name: QueryId | str, work: Work) -> UndefinedObject:
    if how := work.ended(name):
        return UndefinedObject(f"{kind} {name} has ended already", detail=f"state: {how}")
    return not_there(kind, str(name), work.member)


def not_there(kind: str, name: str, member: int) -> UndefinedObject:
    """The error for a statement or a transaction that does not run on the member."""
    return UndefinedObject(
        f"{kind} {name} does not run on member {member}",
        hint=f"{shown_by(kind)} shows what runs. It may have ended some time ago.",
    )


def shown_by(kind: str) -> str:
    """The relation that shows the statements or transactions that run."""
    return "sys.transactions" if kind == "transaction" else "sys.queries"


def _committing(kind: str, name: str) -> WrongState:
    return WrongState(
        f"{kind} {name} is being committed and cannot be cancelled",
        hint="It ends by itself. If it takes long, sys.locks shows what it waits for.",
    )


def _by(user: str) -> str:
    return f"user {user}" if user else "an operator"
