"""User requests that do not come straight from a client: forwarded ones, and the member's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from google.protobuf.message import Message

from remuda.errors import RemudaError
from remuda.member.core import Call, Core
from remuda.member.peers import Peers
from remuda.rpc.connection import Reply
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Buffers, Request


class ForwardedCall:
    """A user request that another member passed on; the answer goes back the same way."""

    def __init__(self, request: Request, message: control_pb2.Forward, core: Core) -> None:
        self.rpc_type: int = message.rpc_type
        self.pbody: bytes = message.body
        self.dbody = request.dbody
        self._request = request
        self._core = core

    def reply(self, rpc_type: int, body: Message, dbody: Buffers = ()) -> None:
        answer = control_pb2.Forward(
            context=self._core.context(), rpc_type=rpc_type, body=body.SerializeToString()
        )
        self._request.reply(ControlType.FORWARD, answer, dbody)

    def fail(self, error: RemudaError) -> None:
        self._request.fail(error)


_ANSWERS: dict[int, type[Message]] = {
    RpcType.MAP_GET: user_pb2.RowsResponse,
    RpcType.MAP_PUT: user_pb2.RowsResponse,
    RpcType.MAP_REMOVE: user_pb2.RowsResponse,
    RpcType.MAP_SIZE: user_pb2.Count,
    RpcType.MAP_PUT_BATCH: user_pb2.Count,
    RpcType.JOB_COMMIT: user_pb2.Count,
    RpcType.JOB_ABORT: common_pb2.Ack,
}


class Forwarding:
    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers

    def pass_on(self, call: Call, member: int) -> None:
        """Have ``member`` answer ``call``."""
        message = control_pb2.Forward(
            context=self._core.context(), rpc_type=call.rpc_type, body=call.pbody
        )

        def answered(reply: Reply | RemudaError) -> None:
            if isinstance(reply, RemudaError):
                call.fail(reply)
                return
            answer = control_pb2.Forward.FromString(reply.pbody)
            self._core.clock.observe(answer.context.clock)
            body = _ANSWERS[call.rpc_type].FromString(answer.body)
            call.reply(answer.rpc_type, body, [reply.dbody] if len(reply.dbody) else ())

        body = [call.dbody] if len(call.dbody) else ()
        self._peers.request_nowait(member, ControlType.FORWARD, message, body, answered)

    def ask_nowait(
        self,
        member: int,
        rpc_type: int,
        body: Message,
        on_answer: Callable[[bytes | RemudaError], None],
    ) -> None:
        """``ask`` with a callback: the answer's body, or the error."""
        message = control_pb2.Forward(
            context=self._core.context(), rpc_type=rpc_type, body=body.SerializeToString()
        )

        def answered(reply: Reply | RemudaError) -> None:
            if isinstance(reply, RemudaError):
                on_answer(reply)
                return
            answer = control_pb2.Forward.FromString(reply.pbody)
            self._core.clock.observe(answer.context.clock)
            on_answer(answer.body)

        self._peers.request_nowait(member, ControlType.FORWARD, message, (), answered)

    async def ask(
        self, member: int, rpc_type: int, body: Message, dbody: Buffers = (), timeout: float = 30.0
    ) -> bytes:
        """Send a user request of this member's own making to ``member``; the answer's body."""
        message = control_pb2.Forward(
            context=self._core.context(), rpc_type=rpc_type, body=body.SerializeToString()
        )
        reply = await self._peers.request(member, ControlType.FORWARD, message, dbody, timeout)
        answer = control_pb2.Forward.FromString(reply.pbody)
        self._core.clock.observe(answer.context.clock)
        return answer.body


class LocalCall:
    """A user request that the member makes to itself; ``await call.answer`` gives the body."""

    def __init__(self, rpc_type: int, pbody: bytes) -> None:
        self.rpc_type = rpc_type
        self.pbody = pbody
        self.dbody = b""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def reply(self, rpc_type: int, body: Message, dbody: Buffers = ()) -> None:  # noqa: ARG002
        if not self.answer.done():
            self.answer.set_result(body.SerializeToString())

    def fail(self, error: RemudaError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
