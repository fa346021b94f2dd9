"""Requests of clients about statements that run: to cancel one, and to release its pauses."""

from __future__ import annotations

from remuda.errors import QueryCanceled
from remuda.member.base.call import Call
from remuda.member.base.core import Core
from remuda.member.base.wing import Routes, Wing
from remuda.member.statements.statements import Statements
from remuda.query.wire import decode_query_id
from remuda.rpc.messages import common_pb2
from remuda.rpc.messages.user_pb2 import RpcType


class StatementRequests(Wing):
    """Each is acknowledged always: a statement that has ended is left alone."""

    def __init__(self, core: Core, statements: Statements) -> None:
        self._core = core
        self._statements = statements

    def routes(self) -> Routes:
        return Routes(
            calls={
                RpcType.CANCEL_QUERY: self._on_cancel,
                RpcType.RESUME_PAUSED_QUERY: self._on_resume,
            }
        )

    def _on_cancel(self, call: Call) -> None:
        query = decode_query_id(common_pb2.QueryId.FromString(call.pbody))
        found = self._statements.clients.find(query)
        if found is not None:
            self._core.access.require_owner(call.user, found[1].user)
            self._statements.cancel(query, QueryCanceled("the query was cancelled by the user"))
        call.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    def _on_resume(self, call: Call) -> None:
        """Releases the test pauses of a statement."""
        query = decode_query_id(common_pb2.QueryId.FromString(call.pbody))
        found = self._statements.clients.find(query)
        if found is not None and found[1].progress.pauses is not None:
            self._core.access.require_owner(call.user, found[1].user)
            found[1].progress.pauses.release()
        call.reply(RpcType.ACK, common_pb2.Ack(ok=True))
