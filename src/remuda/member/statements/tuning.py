"""Changes of operators to members that run: levels of their logs, and sums that begin again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from remuda.catalog.users import ALL, Role
from remuda.errors import UndefinedObject
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.round import in_one_round
from remuda.member.state.log import fields, set_level
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.sql.trees.cluster import LogLevelTree

if TYPE_CHECKING:
    from remuda.member.sessions.statement import Statement

log = logging.getLogger(__name__)
PATIENCE: Final = 5.0
"""Seconds for the answer of another member."""


class Tuning:
    """Every request may be repeated: after an error, the same statement ends what it has begun."""

    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Handlers of the control channel."""
        return {
            RpcType.RESET_STATEMENTS: self._on_reset,
            RpcType.SET_LOG_LEVEL: self._on_log_level,
        }

    async def reset_statements(self, user: str) -> None:
        """Forget what all members know for sys.statement_statistics. Raises InsufficientPrivilege,
        and MemberUnavailable when the others have done so."""
        self._core.access.require(user, Role.ADMIN, ALL)
        self._reset()
        message = control_pb2.ResetStatements(context=self._core.context(), user=user)
        await self._told(RpcType.RESET_STATEMENTS, message)

    async def set_log_level(self, statement: Statement, tree: LogLevelTree) -> None:
        """Raises UndefinedObject for a part or a member that is not there, InsufficientPrivilege,
        and MemberUnavailable when the others have done so."""
        core = self._core
        core.access.require(statement.user, Role.ADMIN, ALL)
        if tree.member is not None and tree.member not in core.view.by_number:
            members = ", ".join(map(str, sorted(core.view.by_number)))
            raise UndefinedObject(
                f"there is no member {tree.member}",
                position=tree.position,
                statement=statement.text,
                hint=f"The members are {members}.",
            )
        level = control_pb2.LogLevel(part=tree.part, level=tree.level)
        message = control_pb2.SetLogLevel(context=core.context(), user=statement.user, level=level)
        if tree.member in (None, core.number):
            try:
                self._set(message)
            except UndefinedObject as error:
                raise UndefinedObject(
                    error.message,
                    position=tree.position,
                    statement=statement.text,
                    hint=error.hint,
                ) from None
        if tree.member is None:
            await self._told(RpcType.SET_LOG_LEVEL, message)
        elif tree.member != core.number:
            await self._peers.request(tree.member, RpcType.SET_LOG_LEVEL, message, (), PATIENCE)

    async def _told(self, rpc_type: int, message: Message) -> None:
        """All other members."""
        decode = control_pb2.Tuned.FromString
        answers = await in_one_round(self._core, self._peers, rpc_type, message, decode, PATIENCE)
        answers.whole()

    # --- this member --------------------------------------------------------------------------

    def _reset(self) -> None:
        self._core.measures.by_fingerprint.reset()

    def _set(self, message: control_pb2.SetLogLevel) -> None:
        part, level = message.level.part, message.level.level
        set_level(part, level, self._core.config.log_level)
        log.warning(
            "log level changed", extra=fields(of=part or "all", to=level, user=message.user)
        )

    def _on_reset(self, request: Request) -> None:
        message = control_pb2.ResetStatements.FromString(request.pbody)
        self._core.observe_peer(message.context)
        self._core.access.require(message.user, Role.ADMIN, ALL)
        self._reset()
        self._done(request)

    def _on_log_level(self, request: Request) -> None:
        message = control_pb2.SetLogLevel.FromString(request.pbody)
        self._core.observe_peer(message.context)
        self._core.access.require(message.user, Role.ADMIN, ALL)
        self._set(message)
        self._done(request)

    def _done(self, request: Request) -> None:
        answer = control_pb2.Tuned(context=self._core.context())
        request.reply(request.rpc_type, answer)
