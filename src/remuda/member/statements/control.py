"""Ending the work of clients, on this member and, through it, on others: statements, transactions,
connections; and asking a member to leave.

A member decides alone about the work of its own clients, and the id says which member that is: so
one request is enough, and a member that does not answer is an error for whoever asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from remuda.catalog.users import ALL, Role
from remuda.cluster.draining import Drain, decided
from remuda.cluster.versions import to_follow
from remuda.errors import (
    InvalidText,
    MemberUnavailable,
    Position,
    ProtocolError,
    RemudaError,
    UndefinedObject,
    WrongState,
)
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.sessions.client_table import ClientTable
from remuda.member.state.clients import member_of
from remuda.member.statements.query_history import QueryHistory
from remuda.member.statements.tuning import Tuning
from remuda.query import ending
from remuda.query.ids import QueryId, parse_query_id
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.session.planning import PlannedQuery
from remuda.session.shape import ResultShape
from remuda.sql.parsing.cluster import TAG
from remuda.sql.scope.statements import BackendSignal, SignalKind
from remuda.sql.trees.cluster import (
    AcceptLossTree,
    CancelTree,
    ClusterTree,
    DrainTree,
    FinishUpgradeTree,
    LogLevelTree,
    ResetStatementsTree,
)
from remuda.transaction.states import parse_transaction_id

if TYPE_CHECKING:
    from remuda.member.sessions.open_transaction import OpenTransaction
    from remuda.member.sessions.session import TransactionSessions
    from remuda.member.sessions.statement import Statement

EndWork = control_pb2.EndWork
PATIENCE: Final = 5.0
"""Seconds for the answer of another member: it only has to mark what is to end."""
CLOSING: Final = 1.0
"""Seconds in which ended statements tell their client so, before its connection is closed."""
_LOOK_EVERY: Final = 0.01


class Running(Protocol):
    """The statements that this member runs, and those that it has run."""

    clients: ClientTable
    history: QueryHistory

    def cancel(self, query: QueryId, error: RemudaError) -> None: ...


class Control:
    def __init__(
        self,
        core: Core,
        peers: Peers,
        statements: Running,
        sessions: TransactionSessions,
        wish_version: Callable[[int], None],
    ) -> None:
        """``wish_version`` wishes for a view with a version of the cluster."""
        self._core = core
        self._peers = peers
        self._statements = statements
        self._sessions = sessions
        self._leave = core.departure.drain
        self._wish_version = wish_version
        self._tuning = Tuning(core, peers)
        self._orders = 0
        """How many members this one has ordered to leave that have not begun to."""

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Handlers of the control channel."""
        return {
            RpcType.END_WORK: self._on_end_work,
            RpcType.DRAIN: self._on_drain,
            **self._tuning.routes(),
        }

    # --- statements of SQL --------------------------------------------------------------------

    async def run(self, statement: Statement, tree: ClusterTree | CancelTree) -> str:
        """Carry the statement out; its tag."""
        match tree:
            case DrainTree():
                await self.drain(statement, tree)
            case FinishUpgradeTree():
                await self._finish_upgrade(statement)
            case ResetStatementsTree():
                await self._tuning.reset_statements(statement.user)
            case LogLevelTree():
                await self._tuning.set_log_level(statement, tree)
            case CancelTree():
                await self.cancel(statement, tree)
                return tree.tag
            case AcceptLossTree():
                raise AssertionError("it is carried out where views are made")
        return TAG

    async def cancel(self, statement: Statement, tree: CancelTree) -> None:
        """CANCEL QUERY, CANCEL TRANSACTION. Raises InvalidText for what is no id, UndefinedObject,
        WrongState for what is being committed, InsufficientPrivilege, MemberUnavailable."""
        what = "transaction" if tree.transaction else "statement"
        try:
            if tree.transaction:
                member, kind = parse_transaction_id(tree.name).near, EndWork.TRANSACTION
            else:
                member, kind = parse_query_id(tree.name).member, EndWork.STATEMENT
        except ValueError:
            raise InvalidText(
                f'"{tree.name}" is not the id of a {what}',
                position=tree.position,
                statement=statement.text,
                hint=f"{ending.shown_by(what)} shows the ids.",
            ) from None
        if member not in self._core.view.by_number:
            raise ending.not_there(what, tree.name, member)
        await self._end(member, EndWork(kind=kind, id=tree.name, user=statement.user))

    async def signalled(
        self, statement: Statement, found: PlannedQuery, pages: AsyncGenerator[pa.RecordBatch]
    ) -> tuple[ResultShape, list[list[pa.Array]]]:
        """Signal the clients whose pids a query gives: the shape of its result, and its columns,
        with whether each client was there. Raises InsufficientPrivilege."""
        signals = [effect for effect in found.effects if isinstance(effect, BackendSignal)]
        kept = [page.columns async for page in pages]
        statement.check()
        resets = any(signal.kind is SignalKind.RESET_STATEMENTS for signal in signals)
        if resets and any(len(batch[0]) for batch in kept):
            await self._tuning.reset_statements(statement.user)
        for batch in kept:
            for signal in signals:
                pids = batch[signal.column].to_pylist()
                if signal.kind is SignalKind.RESET_STATEMENTS:
                    batch[signal.column] = pa.array([True] * len(pids), pa.bool_())
                    continue
                terminate = signal.kind is SignalKind.TERMINATE
                kind = EndWork.CLIENT if terminate else EndWork.STATEMENTS_OF_CLIENT
                known = await self._signal(pids, kind, statement.user)
                batch[signal.column] = pa.array([known.get(pid) for pid in pids], pa.bool_())
        return ResultShape(found.shown), kept

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
        if not self._may_drain(tree.member, tree.position, statement.text):
            return
        self._orders += 1
        try:
            if tree.member == core.number:
                self._leave()
            else:
                message = control_pb2.DrainRequest(context=core.context(), user=statement.user)
                await self._peers.request(tree.member, RpcType.DRAIN, message, (), PATIENCE)
            await self._heard_leaving(tree.member)
        finally:
            self._orders -= 1

    def _may_drain(
        self, member: int, position: Position | None = None, text: str | None = None
    ) -> bool:
        """False: it leaves already. Raises WrongState."""
        core = self._core
        ordering = self._orders > 0 and member == core.number
        match decided(member, core.live_members(), core.leaving, ordering=ordering):
            case Drain.ORDER:
                return True
            case Drain.LEAVES:
                return False
            case Drain.ORDERS:
                raise WrongState(
                    f"member {member} is having another member drained at this moment",
                    position=position,
                    statement=text,
                    hint="Try again in a moment.",
                )
            case Drain.LAST:
                raise WrongState(
                    f"member {member} is the last one that stays: nobody could take what it keeps",
                    position=position,
                    statement=text,
                    hint="To shut the cluster down, stop its processes.",
                )

    async def _heard_leaving(self, member: int) -> None:
        """Wait for the heartbeat in which the member says that it leaves. Until then this member
        would take it for one that stays, and could drain the last one that does."""
        core = self._core
        until = core.world.clock.monotonic() + PATIENCE
        while member in core.view.by_number and member not in core.leaving:
            if core.world.clock.monotonic() >= until:
                raise MemberUnavailable(
                    f"member {member} has begun to leave and is not heard any more",
                    hint="sys.members shows when it has left.",
                )
            await asyncio.sleep(_LOOK_EVERY)

    async def _finish_upgrade(self, statement: Statement) -> None:
        """Have the cluster work in the version of its members; returns when it does here. Raises
        WrongState while a member does not have it, MemberUnavailable."""
        core = self._core
        until = core.world.clock.monotonic() + PATIENCE
        while (version := to_follow(core.view)) > core.view.version:
            statement.check()
            if core.world.clock.monotonic() >= until:
                raise MemberUnavailable(
                    f"the members have not agreed on version {version} within {PATIENCE:g} s",
                    hint="Finish the upgrade again. sys.members shows members that are not"
                    " reached.",
                )
            self._wish_version(version)
            await asyncio.sleep(_LOOK_EVERY)

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
        if self._may_drain(self._core.number):
            self._leave()
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    # --- this member --------------------------------------------------------------------------

    def _end_here(self, message: EndWork) -> bool:
        effects = ending.step(self, _request_of(message))
        for effect in effects:
            self._perform(effect, message.user)
        return bool(effects)

    def _perform(self, effect: ending.Effect, user: str) -> None:
        match effect:
            case ending.RequireOwner():
                self._core.access.require_owner(user, effect.owner)
            case ending.Refuse():
                raise effect.error
            case ending.Cancel():
                self._statements.cancel(effect.query, effect.error)
            case ending.RollBack():
                for each in self._sessions:
                    if each.name == effect.name:
                        self._sessions.interrupt(each, effect.error)
                        self._sessions.roll_back(each, effect.error)
            case ending.Close():
                for channel, client in self._statements.clients.all():
                    if client.pid == effect.pid:
                        closing = self._close(channel, effect.error)
                        self._core.spawn(closing, "closing a connection")

    # What runs here, for ``ending.step``.

    @property
    def member(self) -> int:
        return self._core.number

    def statement(self, query: QueryId) -> ending.RunningStatement | None:
        found = self._statements.clients.find(query)
        return None if found is None else _running(found[1])

    def transaction(self, name: str) -> ending.RunningTransaction | None:
        return next((_open(each) for each in self._sessions if each.name == name), None)

    def client(self, pid: int) -> ending.ConnectedClient | None:
        for channel, client in self._statements.clients.all():
            if client.pid == pid:
                statements = tuple(map(_running, client.statements.values()))
                own = tuple(_open(each) for each in self._sessions if each.channel is channel)
                return ending.ConnectedClient(pid, channel.user, statements, own)
        return None

    def ended(self, name: QueryId | str) -> str:
        if isinstance(name, QueryId):
            return self._statements.history.state(name)
        return "ended" if self._sessions.has_ended(name) else ""

    async def _close(self, channel: ClientChannel, error: RemudaError) -> None:
        """When its statements have told their client how they ended, or after a moment: it may not
        listen any more."""
        clock = self._core.world.clock
        until = clock.monotonic() + CLOSING
        while clock.monotonic() < until and any(
            client.statements for each, client in self._statements.clients.all() if each is channel
        ):
            await asyncio.sleep(_LOOK_EVERY)
        channel.close(error)


def _running(statement: Statement) -> ending.RunningStatement:
    transaction = statement.transaction
    state = None if transaction is None else transaction.state
    committing = statement.progress.committing
    return ending.RunningStatement(statement.query, statement.user, committing, state)


def _open(transaction: OpenTransaction) -> ending.RunningTransaction:
    running = tuple(transaction.running)
    return ending.RunningTransaction(transaction.name, transaction.user, transaction.state, running)


def _request_of(message: EndWork) -> ending.Request:
    """Raises ProtocolError for a name that is no query id: the member that asks has looked at
    it."""
    match message.kind:
        case EndWork.TRANSACTION:
            return ending.EndTransaction(message.id, message.user)
        case EndWork.CLIENT:
            return ending.EndClient(message.pid, message.user)
        case EndWork.STATEMENTS_OF_CLIENT:
            return ending.EndStatementsOfClient(message.pid, message.user)
        case _:
            try:
                return ending.EndStatement(parse_query_id(str(message.id)), message.user)
            except ValueError:
                raise ProtocolError("END_WORK names no query id") from None
