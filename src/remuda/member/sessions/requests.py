"""The user requests that begin, divide, suspend and end transactions."""

from __future__ import annotations

from remuda.errors import InputError, NoActiveTransaction, SchemaChanged, UndefinedTransaction
from remuda.member.base.core import Core
from remuda.member.sessions.maps import TransactionMaps
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.openings import Openings
from remuda.member.sessions.session import RUN_AGAIN, TransactionSessions
from remuda.member.sessions.statements import status_of
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.states import State

_END = RpcType.TRANSACTION_END


class TransactionRequests:
    def __init__(
        self,
        core: Core,
        sessions: TransactionSessions,
        openings: Openings,
        maps: TransactionMaps,
    ) -> None:
        self._core = core
        self._sessions = sessions
        self._openings = openings
        self._maps = maps

    def on_begin(self, request: Request) -> None:
        message = user_pb2.TransactionBegin.FromString(request.pbody)
        self._core.require_serving()
        self._core.observe_client(message.context)
        made = self._openings.begin(request, message)
        request.reply(RpcType.TRANSACTION_BEGIN, self._openings.status(made))

    def on_end(self, request: Request) -> None:
        message = user_pb2.TransactionEnd.FromString(request.pbody)
        self._core.observe_client(message.context)
        if message.HasField("begin"):
            if message.transaction or not message.commit:
                raise InputError("a transaction that begins with its end has no name, and commits")
            self._end(request, message, self._openings.begin(request, message.begin))
            return
        try:
            sought = self._sessions.find if message.commit else self._sessions.known
            found = sought(message.transaction, request.channel, request.user)
        except UndefinedTransaction:
            if message.commit:
                raise
            self._answer(request, None)  # rolled back already
            return
        if not message.commit:
            self._sessions.roll_back(found)
            self._answer(request, None)
            return
        self._end(request, message, found)

    def _end(
        self, request: Request, message: user_pb2.TransactionEnd, found: OpenTransaction
    ) -> None:
        """Commit: it is over in any case."""
        if message.reads or message.puts:
            try:
                found.check()
                self._maps.take_unsent(request, found, message)
            except BaseException as error:
                self._sessions.roll_back(found)
                if isinstance(error, SchemaChanged):
                    raise error.advising(RUN_AGAIN) from error
                raise
        timeout = message.timeout if message.timeout > 0 else None
        name = found.name if message.HasField("begin") else None
        self._core.serve(request, self._commit(request, found, timeout, name))

    async def _commit(
        self, request: Request, found: OpenTransaction, timeout: float | None, name: str | None
    ) -> None:
        self._answer(request, await self._sessions.commit(found, timeout), name)

    def _answer(self, request: Request, at: int | None, name: str | None = None) -> None:
        """``name``: of a transaction whose client does not know it yet."""
        ended = user_pb2.TransactionEnded(context=self._core.context(), transaction=name)
        if at is not None:
            ended.commit_timestamp = at
        request.reply(_END, ended)

    def on_savepoint(self, request: Request) -> None:
        message = user_pb2.TransactionSavepoint.FromString(request.pbody)
        found = self._sessions.find(message.transaction, request.channel, request.user)
        action = message.action
        if action == user_pb2.TransactionSavepoint.ROLL_BACK:
            found.roll_back_to(message.name)
        else:
            found.check()
            if action == user_pb2.TransactionSavepoint.SET:
                found.savepoint(message.name)
            else:
                found.release(message.name)
        request.reply(RpcType.TRANSACTION_SAVEPOINT, status_of(found))

    def on_suspend(self, request: Request) -> None:
        """Only between ACTIVE and SUSPENDED."""
        message = user_pb2.TransactionSuspend.FromString(request.pbody)
        found = self._known(request, message.transaction)
        wanted, other = State.SUSPENDED, State.ACTIVE
        if message.resume:
            wanted, other = other, wanted
        if found.state is not other or found.turn.locked():
            what = "resumed" if message.resume else "suspended"
            state = "is at work" if found.state is other else f"is {found.state.value}"
            raise NoActiveTransaction(
                f"transaction {found.name} {state} and cannot be {what}",
                hint="suspend() and resume() lead from ACTIVE to SUSPENDED and back.",
            )
        found.state = wanted
        request.reply(RpcType.TRANSACTION_SUSPEND, status_of(found))

    def _known(self, request: Request, name: str) -> OpenTransaction:
        return self._sessions.known(name, request.channel, request.user)
