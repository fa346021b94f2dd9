"""User requests that do not come straight from a client: forwarded ones, and the member's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from remuda.errors import MemberUnavailable, RemudaError, ViewChanged
from remuda.member.base.core import Call, Core, bug, nothing_done
from remuda.member.base.peers import Peers, unanswered
from remuda.rpc.connection import Reply
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.point_encoding import encode_forward
from remuda.rpc.request import serialized
from remuda.rpc.transport import Body, Buffers, Request

FORWARD = ControlType.FORWARD
PATIENCE = 30.0
"""Seconds that a request of this member's own making waits for its answer."""
VIEW_ATTEMPTS = 12
"""So often a call is passed on again because two members are in different views."""
VIEW_PAUSE = 0.005
"""Seconds before the first time, and so much more before each further one."""


class ForwardedCall:
    """A user request that another member passed on; the answer goes back the same way."""

    def __init__(self, request: Request, message: control_pb2.Forward, core: Core) -> None:
        self.rpc_type: int = message.rpc_type
        self.pbody: bytes = message.body
        self.dbody = request.dbody
        self.user: str = message.user
        self._request = request
        self._core = core

    def reply(self, rpc_type: int, body: Body, dbody: Buffers = ()) -> None:
        pbody = body if isinstance(body, bytes) else body.SerializeToString()
        answer = encode_forward(self._core.encoded_context(), rpc_type, pbody)
        self._request.reply(FORWARD, answer, dbody)

    def fail(self, error: RemudaError) -> None:
        self._request.fail(error)


class RepeatedCall:
    """A call that met a member in another view, which refused it before anything was done."""

    def __init__(self, call: Call, tries: int) -> None:
        self.rpc_type = call.rpc_type
        self.pbody = call.pbody
        self.dbody = call.dbody
        self.user = call.user
        self.reply = call.reply
        self.fail = call.fail
        self.tries = tries


class Forwarding:
    def __init__(self, core: Core, peers: Peers, handle: Callable[[Call], None]) -> None:
        """``handle`` serves a call as if it had just come."""
        self._core = core
        self._peers = peers
        self.handle = handle

    def _again(self, call: Call, refusal: ViewChanged) -> None:
        """Serve ``call`` in the view that has come meanwhile, or comes within a moment."""
        tries = call.tries + 1 if isinstance(call, RepeatedCall) else 1
        if tries > VIEW_ATTEMPTS:
            call.fail(refusal)
            return

        async def later() -> None:
            await asyncio.sleep(VIEW_PAUSE * tries)
            self.handle(RepeatedCall(call, tries))

        self._core.serve(call, later())

    def pass_on(self, call: Call, member: int) -> None:
        """Have ``member`` answer ``call``. One that refuses it for its view is asked again, or the
        member that has taken its place; one that is lost is not asked at all."""
        try:
            with nothing_done:
                self._core.require_alive(member)
        except RemudaError as error:
            call.fail(error)
            return
        message = control_pb2.Forward(
            context=self._core.context(), rpc_type=call.rpc_type, body=call.pbody, user=call.user
        )

        def answered(reply: Reply | RemudaError) -> None:
            if isinstance(reply, ViewChanged):
                self._again(call, reply)
                return
            if isinstance(reply, RemudaError):
                call.fail(reply)
                return
            try:
                answer = self._answer(reply)
                call.reply(answer.rpc_type, answer.body, [reply.dbody] if len(reply.dbody) else ())
            except RemudaError as error:
                call.fail(error)
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                call.fail(bug(error, f"the answer of member {member}"))

        body = [call.dbody] if len(call.dbody) else ()
        self._peers.request_nowait(member, ControlType.FORWARD, message, body, answered)

    def ask_nowait(
        self,
        member: int,
        rpc_type: int,
        body: Body,
        on_answer: Callable[[bytes | RemudaError], None],
    ) -> None:
        """``ask`` with a callback, called once: the answer's body, or the error."""
        message = encode_forward(self._core.encoded_context(), rpc_type, serialized(body))

        def late() -> None:
            waiting.clear()
            on_answer(unanswered(member, PATIENCE))

        waiting = [asyncio.get_running_loop().call_later(PATIENCE, late)]

        def answered(reply: Reply | RemudaError) -> None:
            if not waiting:
                return  # it is too late
            waiting.pop().cancel()
            if isinstance(reply, RemudaError):
                on_answer(reply)
                return
            outcome: bytes | RemudaError
            try:
                answer = control_pb2.Forward.FromString(reply.pbody)
                self._core.observe_clock(answer.context.clock)
                outcome = answer.body
            except RemudaError as error:
                outcome = error
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                outcome = bug(error, f"the answer of member {member}")
            on_answer(outcome)

        self._peers.request_nowait(member, FORWARD, message, (), answered)

    async def ask(
        self, member: int, rpc_type: int, body: Body, dbody: Buffers = (), timeout: float = PATIENCE
    ) -> bytes:
        """Send a user request of this member's own making to ``member``; the answer's body."""
        message = control_pb2.Forward(
            context=self._core.context(), rpc_type=rpc_type, body=serialized(body)
        )
        reply = await self._peers.request(member, ControlType.FORWARD, message, dbody, timeout)
        return self._answer(reply).body

    def _answer(self, reply: Reply) -> control_pb2.Forward:
        """Raises ProtocolError when the other member's clock is far ahead."""
        answer = control_pb2.Forward.FromString(reply.pbody)
        self._core.observe(answer.context)
        return answer


class LocalCall:
    """A user request that the member makes to itself; ``await call.answered()`` gives the body."""

    def __init__(self, rpc_type: int, pbody: bytes) -> None:
        self.rpc_type = rpc_type
        self.pbody = pbody
        self.dbody = b""
        self.user = ""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def answered(self) -> bytes:
        """The body. Another member may have the request: raises MemberUnavailable if nothing is
        heard of it for PATIENCE seconds."""
        try:
            return await asyncio.wait_for(self.answer, PATIENCE)
        except TimeoutError as problem:
            raise MemberUnavailable(f"no member answered within {PATIENCE:.0f} s") from problem

    def reply(self, rpc_type: int, body: Body, dbody: Buffers = ()) -> None:  # noqa: ARG002
        if not self.answer.done():
            self.answer.set_result(serialized(body))

    def fail(self, error: RemudaError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
