"""Which part of a member serves which message."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from remuda.errors import MemberGivenUp, MemberNotReady, NotSupported, RemudaError, TakenOver
from remuda.member.base.core import Call, Core, bug
from remuda.member.base.forwarding import ForwardedCall
from remuda.member.base.request_traces import traced
from remuda.member.base.wing import CallHandler, RequestHandler
from remuda.member.state.log import fields
from remuda.rpc.messages import control_pb2, data_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType as UserType
from remuda.rpc.request import OnAnswer
from remuda.rpc.transport import Request

log = logging.getLogger(__name__)

PRIMARY_CALLS = frozenset(
    {
        UserType.MAP_GET,
        UserType.MAP_PUT,
        UserType.MAP_REMOVE,
        UserType.MAP_SIZE,
        UserType.MAP_PUT_BATCH,
        UserType.JOB_BEGIN,
        UserType.JOB_WRITE,
        UserType.JOB_COMMIT,
        UserType.MAP_COMPUTE,
        UserType.MAP_GET_VERSIONED,
        UserType.MAP_CHECKED_WRITE,
        UserType.MAP_TTL,
        UserType.MAP_SET_TTL,
    }
)
"""Requests that read or write what a member may be the primary of."""

KEYED_CALLS = frozenset({UserType.MAP_GET, UserType.MAP_PUT, UserType.MAP_REMOVE})
"""Those of them whose handlers raise TakenOver for the keys that must wait: others go on while this
member takes partitions over."""


def guarded(request: Request, serve: Callable[[Request], None]) -> None:
    """Call a synchronous handler; an error that it raises becomes the typed failure."""
    try:
        serve(request)
    except RemudaError as error:
        refuse(request, error)
    except Exception as error:  # noqa: BLE001 (the boundary: a bug must not end the connection)
        request.fail(bug(error, f"request {request.rpc_type}"))


def refuse(request: Request, error: RemudaError) -> None:
    """Answer with the error; one of a message that expects no answer goes into the log."""
    if request.one_way:
        log.warning(
            "message refused",
            extra=fields(
                type=request.rpc_type,
                peer=request.channel.peer,
                error=error.message,
                kind=type(error).__name__,
            ),
        )
        if isinstance(error, MemberGivenUp):
            request.channel.close()  # it asks why, and learns
    request.fail(error)


class UserRoutes:
    """The user channel, and user requests that other members forward."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._access = core.access
        self.calls: dict[int, CallHandler] = {}
        """Requests that any member may forward to another."""
        self.requests: dict[int, RequestHandler] = {}
        """Requests that need the client's own connection."""
        self.primary: frozenset[int] = frozenset()
        """Those of ``calls`` that read or write what this member may be the primary of: they wait
        until it may serve."""
        self.complete = False
        """Whether requests are served; a member that joins is in the view a moment earlier."""
        self._readiness = core.readiness
        self._departure = core.departure
        self._operations = core.measures.operations
        self._clock = self._operations.clock
        self._audit = core.audit
        self._traces = core.traces

    def open(
        self,
        requests: Mapping[int, RequestHandler],
        calls: Mapping[int, CallHandler],
        primary: frozenset[int],
    ) -> None:
        """From now on the member serves clients."""
        self.requests |= requests
        self.calls |= calls
        self.primary = primary
        self.complete = True

    @property
    def supported(self) -> list[int]:
        return sorted([*self.calls, *self.requests])

    def handle(self, request: Request) -> None:
        if request.coordination_id != 0:
            timer = self._operations[request.rpc_type]
            answered: OnAnswer = partial(timer.ended, self._clock())
            if self._audit.active:
                answered = self._audit.request(request, answered)
            if self._traces is not None:
                answered = traced(self._traces, self._core.number, request, answered)
            request.when_answered(answered)
        self._handle(request)

    def _handle(self, request: Request) -> None:
        kind = request.rpc_type
        handler = self.calls.get(kind) or self.requests.get(kind)
        core = self._core  # ``serving`` written out, as ``guarded`` below: the hot path
        if handler is None or self._departure.closed or core.stopping or not core.view.number:
            guarded(request, self._serve)
            return
        if kind in self.primary and not self._readiness.ready and self._waits(kind):
            self._core.serve(request, self._when_ready(request, self._handle))
            return
        try:
            if self._access.active:
                self._access.check_call(request)
            handler(request)
        except TakenOver:
            self._core.serve(request, self._when_ready(request, self._handle))
        except RemudaError as error:
            request.fail(error)
        except Exception as error:  # noqa: BLE001 (the boundary: see ``guarded``)
            request.fail(bug(error, f"request {request.rpc_type}"))

    def _waits(self, rpc_type: int) -> bool:
        """Whether requests of this kind for what this member is the primary of wait right now."""
        if self._readiness.ready:
            return False
        return rpc_type not in KEYED_CALLS or not self._readiness.partly

    def _serve(self, request: Request) -> None:
        self._departure.require_here()
        if request.rpc_type in self.calls:
            self._core.require_serving()
        by_request = self.requests.get(request.rpc_type)
        if by_request is None:
            raise _unknown("user", user_pb2.RpcType, request.rpc_type, self.complete)
        self._access.check_call(request)
        by_request(request)

    def again(self, call: Call) -> None:
        """Serve a call once more whose user was checked before: perhaps in another view, of which
        this member is not ready to serve what it has been given."""
        if call.rpc_type in self.primary and self._waits(call.rpc_type):
            self._core.serve(call, self._again_when_ready(call))
            return
        try:
            self.calls[call.rpc_type](call)
        except TakenOver:
            self._core.serve(call, self._again_when_ready(call))

    async def _again_when_ready(self, call: Call) -> None:
        await self._readiness.wait()
        self.calls[call.rpc_type](call)

    async def _when_ready(self, request: Request, handle: RequestHandler) -> None:
        await self._readiness.wait()
        handle(request)

    def on_forward(self, request: Request) -> None:
        message = control_pb2.Forward.FromString(request.pbody)
        self._core.observe_member(message.context)
        if message.rpc_type in self.primary and self._waits(message.rpc_type):
            self._core.serve(request, self._when_ready(request, self.on_forward))
            return
        handler = self.calls.get(message.rpc_type)
        if handler is None:
            if not self.complete:
                raise _unknown("user", user_pb2.RpcType, message.rpc_type, self.complete)
            raise NotSupported(
                f"request {message.rpc_type} cannot be forwarded",
                hint="Send it to the member that is to answer it.",
            )
        call = ForwardedCall(request, message, self._core)
        if self._access.active:
            self._access.check_call(call)
        try:
            handler(call)
        except TakenOver:
            self._core.serve(request, self._when_ready(request, self.on_forward))


class MemberRoutes:
    """The control and data channels."""

    def __init__(self) -> None:
        self.control: dict[int, RequestHandler] = {}
        self.data: dict[int, RequestHandler] = {}
        self.complete = False

    def listen(self, control: Mapping[int, RequestHandler]) -> None:
        """From now on the member hears others that form a cluster."""
        self.control |= control

    def open(
        self, control: Mapping[int, RequestHandler], data: Mapping[int, RequestHandler]
    ) -> None:
        """From now on the member serves other members."""
        self.control |= control
        self.data |= data
        self.complete = True

    def handle_control(self, request: Request) -> None:
        try:  # ``guarded`` written out: the way of every write to its backup
            self.control.get(request.rpc_type, self._no_control)(request)
        except RemudaError as error:
            refuse(request, error)
        except Exception as error:  # noqa: BLE001 (the boundary: see ``guarded``)
            request.fail(bug(error, f"request {request.rpc_type}"))

    def handle_data(self, request: Request) -> None:
        guarded(request, self.data.get(request.rpc_type, self._no_data))

    def _no_control(self, request: Request) -> None:
        raise _unknown("control", control_pb2.RpcType, request.rpc_type, self.complete)

    def _no_data(self, request: Request) -> None:
        raise _unknown("data", data_pb2.RpcType, request.rpc_type, self.complete)


def _unknown(channel: str, types: object, rpc_type: int, complete: bool) -> RemudaError:
    if not complete:
        return MemberNotReady("this member is starting")
    try:
        name = types.Name(rpc_type)  # type: ignore[attr-defined]
    except ValueError:
        return NotSupported(
            f"there is no request {rpc_type} on the {channel} channel",
            hint="Update members and clients to one release.",
        )
    return NotSupported(
        f"this member does not serve {name} ({rpc_type}) yet",
        hint="Update all members to one release.",
    )
