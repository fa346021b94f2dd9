"""Ending the work of clients, on this member and, through it, on others: statements, transactions,
connections; and asking a member to leave.

A member decides alone about the work of its own clients, and the id says which member that is: so
one request is enough, and a member that does not answer is an error for whoever asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from remuda.catalog.users import ALL, Role
from remuda.datatypes.sql import BOOLEAN
from remuda.errors import (
    InvalidText,
    ProtocolError,
    QueryCanceled,
    RemudaError,
    SessionTerminated,
    UndefinedObject,
    WrongState,
)
from remuda.member.activity.clients import member_of
from remuda.member.core import Core
from remuda.member.peers import Peers
from remuda.query.ids import QueryId, parse_query_id
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Channel, Request
from remuda.session.planning import PlannedQuery
from remuda.session.shape import ResultShape
from remuda.sql.cluster_statements import TAG
from remuda.sql.cluster_trees import CancelTree, DrainTree
from remuda.transaction.states import State, parse_transaction_id

if TYPE_CHECKING:
    from remuda.member.statement import Statement
    from remuda.member.statements import Statements
    from remuda.member.transaction_session import OpenTransaction, TransactionSessions

EndWork = control_pb2.EndWork
PATIENCE: Final = 5.0
"""Seconds for the answer of another member: it only has to mark what is to end."""
CLOSING: Final = 1.0
"""Seconds in which ended statements tell their client so, before its connection is closed."""
_LOOK_EVERY: Final = 0.01
_COMMITTING: Final = (State.PREPARING, State.COMMITTING)


class Control:
    def __init__(
        self,
        core: Core,
        peers: Peers,
        statements: Statements,
        sessions: TransactionSessions,
        leave: Callable[[], None],
    ) -> None:
        """``leave`` has this member leave the cluster in order."""
        self._core = core
        self._peers = peers
        self._statements = statements
        self._sessions = sessions
        self._leave = leave

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Handlers of the control channel."""
        return {RpcType.END_WORK: self._on_end_work, RpcType.DRAIN: self._on_drain}

    # --- statements of SQL --------------------------------------------------------------------

    async def run(self, statement: Statement, tree: CancelTree | DrainTree) -> str:
        """Carry the statement out; its tag."""
        if isinstance(tree, DrainTree):
            await self.drain(statement, tree)
            return TAG
        await self.cancel(statement, tree)
        return tree.tag

    async def cancel(self, statement: Statement, tree: CancelTree) -> None:
        """CANCEL QUERY, CANCEL TRANSACTION. Raises InvalidText for what is no id, UndefinedObject,
        WrongState for what is being committed, InsufficientPrivilege, MemberUnavailable."""
        try:
            if tree.transaction:
                member, kind = parse_transaction_id(tree.name).near, EndWork.TRANSACTION
            else:
                member, kind = parse_query_id(tree.name).member, EndWork.STATEMENT
        except ValueError:
            what, shown = _words(transaction=tree.transaction)
            raise InvalidText(
                f'"{tree.name}" is not the id of a {what}',
                position=tree.position,
                statement=statement.text,
                hint=f"{shown} shows the ids.",
            ) from None
        if member not in self._core.view.by_number:
            raise self._unknown(tree.name, member, transaction=tree.transaction)
        await self._end(member, EndWork(kind=kind, id=tree.name, user=statement.user))

    async def signalled(
        self, statement: Statement, found: PlannedQuery, pages: AsyncGenerator[pa.RecordBatch]
    ) -> tuple[ResultShape, list[list[pa.Array]]]:
        """Signal the clients whose pids a query gives: the shape of its result, and its columns,
        with whether each client was there. Raises InsufficientPrivilege."""
        columns = list(found.columns)
        for signal in found.signals:
            columns[signal.column] = replace(columns[signal.column], type=BOOLEAN, nullable=True)
        kept = [page.columns async for page in pages]
        statement.check()
        for batch in kept:
            for signal in found.signals:
                pids = batch[signal.column].to_pylist()
                kind = EndWork.CLIENT if signal.terminate else EndWork.STATEMENTS_OF_CLIENT
                known = await self._signal(pids, kind, statement.user)
                batch[signal.column] = pa.array([known.get(pid) for pid in pids], pa.bool_())
        return ResultShape(tuple(columns)), kept

    async def _signal(
        self, pids: Sequence[int | None], kind: EndWork.Kind, user: str
    ) -> dict[int | None, bool]:
        """Each once, all at a time."""
        wanted = list(dict.fromkeys(pid for pid in pids if pid is not None))
        there = self._core.view.by_number
        asked = [pid for pid in wanted if pid > 0 and member_of(pid) in there]
        found = await asyncio.gather(
            *(self._end(member_of(p), EndWork(kind=kind, pid=p, user=user)) for p in asked)
        )
        return {**dict.fromkeys(wanted, False), **dict(zip(asked, found, strict=True))}

    async def drain(self, statement: Statement, tree: DrainTree) -> None:
        """Have a member leave in order; returns when it has begun to. Raises UndefinedObject,
        WrongState for the last member that stays, MemberUnavailable."""
        core = self._core
        if tree.member not in core.view.by_number:
            members = ", ".join(map(str, sorted(core.view.by_number)))
            raise UndefinedObject(
                f"there is no member {tree.member}",
                position=tree.position,
                statement=statement.text,
                hint=f"The members are {members}.",
            )
        if tree.member in core.leaving:
            return
        if not set(core.live_members()) - core.leaving - {tree.member}:
            raise WrongState(
                f"member {tree.member} is the last one that stays: nobody could take what it keeps",
                position=tree.position,
                statement=statement.text,
                hint="To shut the cluster down, stop its processes.",
            )
        if tree.member == core.number:
            self._leave()
            return
        message = control_pb2.DrainRequest(context=core.context(), user=statement.user)
        await self._peers.request(tree.member, RpcType.DRAIN, message, (), PATIENCE)

    # --- other members ------------------------------------------------------------------------

    async def _end(self, member: int, message: EndWork) -> bool:
        """Whether there was anything with this pid; True for an id."""
        if member == self._core.number:
            return self._end_here(message)
        message.context.CopyFrom(self._core.context())
        reply = await self._peers.request(member, RpcType.END_WORK, message, (), PATIENCE)
        ended = control_pb2.WorkEnded.FromString(reply.pbody)
        self._core.observe(ended.context)
        return ended.found

    def _on_end_work(self, request: Request) -> None:
        message = EndWork.FromString(request.pbody)
        self._core.observe_peer(message.context)
        found = self._end_here(message)
        answer = control_pb2.WorkEnded(context=self._core.context(), found=found)
        request.reply(RpcType.END_WORK, answer)

    def _on_drain(self, request: Request) -> None:
        message = control_pb2.DrainRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        self._core.access.require(message.user, Role.ADMIN, ALL)
        self._leave()
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    # --- this member --------------------------------------------------------------------------

    def _end_here(self, message: EndWork) -> bool:
        match message.kind:
            case EndWork.STATEMENT:
                self._cancel_statement(_query_of(message), message.user)
                return True
            case EndWork.TRANSACTION:
                self._cancel_transaction(message.id, message.user)
                return True
            case _:
                whole = message.kind == EndWork.CLIENT
                return self._end_client(message.pid, message.user, whole=whole)

    def _cancel_statement(self, query: QueryId, user: str) -> None:
        running = self._statements.clients.find(query)
        if running is None:
            state = self._statements.history.state(query)
            raise self._unknown(str(query), self._core.number, transaction=False, state=state)
        statement = running[1]
        self._core.access.require_owner(user, statement.user)
        if _commits(statement):
            raise WrongState(
                f"statement {query} is being committed and cannot be cancelled",
                hint="It ends by itself. If it takes long, sys.locks shows what it waits for.",
            )
        self._statements.cancel(query, QueryCanceled(f"the statement was cancelled by {_by(user)}"))

    def _cancel_transaction(self, name: str, user: str) -> None:
        found = next((each for each in self._sessions if each.name == name), None)
        if found is None:
            state = "ended" if self._sessions.has_ended(name) else ""
            raise self._unknown(name, self._core.number, transaction=True, state=state)
        self._core.access.require_owner(user, found.user)
        by = _by(user)
        error = QueryCanceled(f"transaction {name} was rolled back: it was cancelled by {by}")
        if found.state in _COMMITTING:
            raise WrongState(
                f"transaction {name} is being committed and cannot be cancelled",
                hint="It ends by itself. If it takes long, sys.locks shows what it waits for.",
            )
        self._roll_back(found, error)

    def _roll_back(self, transaction: OpenTransaction, error: RemudaError) -> None:
        """Its statements end with ``error``, and so does the next request of its client."""
        self._sessions.interrupt(transaction, error)
        running = list(transaction.running)
        self._sessions.roll_back(transaction, error)
        for query in running:
            self._statements.cancel(query, error)

    def _end_client(self, pid: int, user: str, *, whole: bool) -> bool:
        for channel, client in self._statements.clients.all():
            if client.pid == pid:
                self._core.access.require_owner(user, channel.user)
                error = (
                    SessionTerminated(f"the connection was terminated by {_by(user)}")
                    if whole
                    else QueryCanceled(f"the statement was cancelled by {_by(user)}")
                )
                for statement in list(client.statements.values()):
                    if not _commits(statement):
                        self._statements.cancel(statement.query, error)
                if whole:
                    self._end_transactions(channel, error)
                    self._core.spawn(self._close(channel, error), "closing a connection")
                return True
        return False

    def _end_transactions(self, channel: Channel, error: RemudaError) -> None:
        """Those that outlive their connections, since they are suspended, stay."""
        for transaction in self._sessions:
            stays = transaction.state in (State.SUSPENDED, *_COMMITTING)
            if transaction.channel is channel and not stays:
                self._roll_back(transaction, error)

    async def _close(self, channel: Channel, error: RemudaError) -> None:
        """When its statements have told their client how they ended, or after a moment: it may not
        listen any more."""
        clock = self._core.world.clock
        until = clock.monotonic() + CLOSING
        while clock.monotonic() < until and any(
            client.statements for each, client in self._statements.clients.all() if each is channel
        ):
            await asyncio.sleep(_LOOK_EVERY)
        channel.close(error)

    @staticmethod
    def _unknown(name: str, member: int, *, transaction: bool, state: str = "") -> UndefinedObject:
        what, shown = _words(transaction=transaction)
        if state:
            return UndefinedObject(f"{what} {name} has ended already", detail=f"state: {state}")
        return UndefinedObject(
            f"{what} {name} does not run on member {member}",
            hint=f"{shown} shows what runs. It may have ended some time ago.",
        )


def _commits(statement: Statement) -> bool:
    """Whether nothing stops it any more."""
    transaction = statement.transaction
    return statement.progress.committing or (
        transaction is not None and transaction.state in _COMMITTING
    )


def _query_of(message: EndWork) -> QueryId:
    """Raises ProtocolError for what is none: the member that asks has looked at it."""
    try:
        return parse_query_id(str(message.id))
    except ValueError:
        raise ProtocolError("END_WORK names no query id") from None


def _words(*, transaction: bool) -> tuple[str, str]:
    return ("transaction", "sys.transactions") if transaction else ("statement", "sys.queries")


def _by(user: str) -> str:
    return f"user {user}" if user else "an operator"
