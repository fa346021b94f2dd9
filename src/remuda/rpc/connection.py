"""One connection as a pure state machine, for either side of any channel.

It knows the handshake, coordination ids and pending requests, PING and PONG, timeouts and typed
refusals; it knows no socket and no clock. A shell (``transport`` on asyncio, ``blocking`` on a
plain socket) tells it what arrived and when, and performs the effects that it returns::

    Write(data)             put these buffers on the wire, in order
    Deliver(frame)          a REQUEST of the peer for the owner
    Resolve(id, token, outcome) a pending request is answered, failed, or lost with the connection
    Opened(handshake)       the handshake is through
    Close(error, linger)    close; ``linger``: let the peer read what was written first
    Verify(credentials)     check user and password, and tell ``verified`` what came of it
    Delay(seconds, error)   call ``refused`` with the error after this time

Coordination ids count from 1 per connection and sender, and are used again; 0 marks a one-way
REQUEST. Heartbeats as
in Drill: the connecting side sends PING after half the timeout without a byte and closes when the
other half passes in silence too; the accepting side closes after the whole timeout.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, TypeAlias, TypeVar

from google.protobuf.message import Message

from remuda.errors import (
    AuthenticationFailed,
    ConnectionBroken,
    ConnectionRefused,
    FrameTooLarge,
    InternalError,
    LimitExceeded,
    NobodyListens,
    ProtocolError,
    RemudaError,
    from_report,
)
from remuda.limits import AUTHENTICATION_PENALTY, HANDSHAKE_TIMEOUT
from remuda.rpc.authentication import Asking, Showing, failed, showing
from remuda.rpc.codec import decode_error, encode_error
from remuda.rpc.frame import (
    PING,
    PONG,
    REQUEST,
    RESPONSE,
    RESPONSE_FAILURE,
    Buffer,
    Frame,
    encode_head,
)
from remuda.rpc.handshake import (
    HANDSHAKE_TYPE,
    PROTOCOLS,
    Answer,
    ChannelKind,
    complete_hello,
    guarded_welcome,
    heartbeat_timeout,
    mechanisms,
    parse,
    read_hello,
    read_welcome,
    refusal,
    welcome,
)
from remuda.rpc.messages import user_pb2
from remuda.rpc.sasl import (
    MESSAGE_TYPES,
    Challenge,
    ClientExchange,
    Credentials,
    ServerExchange,
    Shown,
    hello_credentials,
)

__all__ = ["Answer", "ChannelKind", "Connection", "Reply"]

ONE_WAY = 0
_SHORT_IDENTIFIER_MAX = 2**14 - 1
"""Identifiers start again here, so that they keep to two bytes on the wire ..."""
_IDENTIFIER_MAX = 2**21 - 1
"""... unless very many are in use."""
_PENDING_MAX = 2**20
_PING_FRAME = encode_head(PING, 0, 0, b"\x08\x01")
_PONG_FRAME = encode_head(PONG, 0, 0, b"\x08\x01")

K = TypeVar("K")


Reply: TypeAlias = Frame
"""The answer to a request: the frame in which it came."""


@dataclass(slots=True)
class Write:
    data: Sequence[Buffer]


@dataclass(slots=True)
class Deliver:
    frame: Frame


@dataclass(slots=True)
class Resolve(Generic[K]):
    identifier: int
    token: K
    outcome: Reply | RemudaError


@dataclass(slots=True)
class Opened:
    """``user``: the user that the other side has proved to be; "" where nobody asked."""

    handshake: Message
    user: str = ""


@dataclass(slots=True)
class Close:
    error: RemudaError
    linger: bool = False


@dataclass(slots=True)
class Verify:
    credentials: Credentials


@dataclass(slots=True)
class Delay:
    seconds: float
    error: RemudaError


Effects: TypeAlias = "list[Write | Deliver | Resolve[K] | Opened | Close | Verify | Delay]"


class State(Enum):
    HANDSHAKE = auto()
    AUTHENTICATION = auto()
    OPEN = auto()
    CLOSED = auto()


class Connection(Generic[K]):
    """``K`` is whatever the shell gives ``request`` to find the asker again."""

    def __init__(
        self,
        kind: ChannelKind,
        peer: str,
        now: float,
        *,
        hello: Message | None = None,
        answer: Answer | None = None,
        silence: float | None = None,
        guard: ServerExchange | None = None,
        login: ClientExchange | None = None,
    ) -> None:
        """The connecting side gives its ``hello``, the accepting side ``answer``. ``silence``:
        seconds that the connecting side bears it, unless those of the channel's protocol.

        With a ``guard`` the other side must show itself after the handshake; ``login`` is how this
        side does where it is asked to. Before that, members get no ``answer``."""
        assert (hello is None) != (answer is None)
        self.protocol = PROTOCOLS[kind]
        self.peer = peer
        self.state = State.HANDSHAKE
        self.error: RemudaError | None = None
        """Why it is closed."""
        self.handshake: Message | None = None
        self.pending: dict[int, K] = {}
        self._answer = answer
        self._hello = None if hello is None else complete_hello(self.protocol, hello)
        self._guard, self._login = guard, login
        self._asking: Asking | None = None
        self._showing: Showing | None = None
        self._checking = False
        """A message of the client waits for a check of credentials, or its refusal."""
        self._asked_by = 0
        """The coordination id of that message; it may be 0."""
        self._welcome: Message | None = None
        """The message that opens the channel once the other side has shown itself."""
        self._abandoned: set[int] = set()
        self._next_identifier = 1
        self.last_heard = now
        """When bytes arrived last, whatever they were, or somebody began to listen."""
        self._opened_at = now
        self._pinged_at = now
        self._timeout: float | None = None
        self._silence = self.protocol.heartbeat_timeout if silence is None else silence

    # ---- what the shell asks ----

    def start(self) -> list[Write]:
        """The connecting side speaks first."""
        if self._hello is None:
            return []
        identifier = self._identifier()
        pbody = self._hello.SerializeToString()
        return [Write((encode_head(REQUEST, identifier, HANDSHAKE_TYPE, pbody),))]

    def request(self, rpc_type: int, pbody: bytes, dbody_size: int, token: K) -> tuple[int, bytes]:
        """The coordination id and the head of a new request; the caller writes the dbody behind it.

        Raises the reason when the connection is not open, and FrameTooLarge.
        """
        if self.state is not State.OPEN:
            self.require_open()
        identifier = self._next_identifier
        if self.pending or self._abandoned or identifier >= _SHORT_IDENTIFIER_MAX:
            identifier = self._identifier()
        else:  # the usual case: one request after the other
            self._next_identifier = identifier + 1
        head = encode_head(REQUEST, identifier, rpc_type, pbody, dbody_size)
        self.pending[identifier] = token
        return identifier, head

    def abandon(self, identifier: int) -> None:
        """Nobody waits for this answer any more; it is dropped when it comes."""
        if identifier in self.pending:
            del self.pending[identifier]
            self._abandoned.add(identifier)

    @staticmethod
    def response(identifier: int, rpc_type: int, pbody: bytes, dbody_size: int) -> bytes:
        return encode_head(RESPONSE, identifier, rpc_type, pbody, dbody_size)

    @staticmethod
    def failure(identifier: int, error: RemudaError) -> bytes:
        return encode_head(RESPONSE_FAILURE, identifier, 0, encode_error(error).SerializeToString())

    def require_open(self) -> None:
        if self.state is not State.OPEN:
            if self.error is not None:
                raise from_report(self.error.to_report())
            raise ConnectionBroken(f"{self.peer}: the handshake is not through")

    def _identifier(self) -> int:
        identifier = self._next_identifier
        used = len(self.pending) + len(self._abandoned)
        if used >= _PENDING_MAX:
            raise LimitExceeded(f"{self.peer} owes {used} answers")
        highest = _SHORT_IDENTIFIER_MAX if used * 2 < _SHORT_IDENTIFIER_MAX else _IDENTIFIER_MAX
        while identifier in self.pending or identifier in self._abandoned:
            identifier = 1 if identifier >= highest else identifier + 1
        self._next_identifier = 1 if identifier >= highest else identifier + 1
        return identifier

    # ---- what happens ----

    def receive(self, frame: Frame) -> Effects[K]:
        """One frame of the peer. ``last_heard`` is set separately, once per read."""
        mode = frame.mode
        if self.state is State.OPEN:
            if mode == REQUEST:
                return [Deliver(frame)]
            if mode in (RESPONSE, RESPONSE_FAILURE):
                return self._resolve(frame)
        if self.state is State.CLOSED or mode == PONG:
            return []
        if mode == PING:
            return [Write((_PONG_FRAME,))]
        if self.state is State.AUTHENTICATION:
            return self._show(frame) if self._answer is None else self._ask(frame)
        return self._shake_hands(frame)

    def _resolve(self, frame: Frame) -> Effects[K]:
        identifier = frame.coordination_id
        if identifier not in self.pending:
            if identifier in self._abandoned:
                self._abandoned.remove(identifier)
                return []
            return self._broken(
                ProtocolError(f"{self.peer} answered request {identifier}, which was never asked")
            )
        token = self.pending.pop(identifier)
        if frame.mode == RESPONSE:
            return [Resolve(identifier, token, frame)]
        return [Resolve(identifier, token, self._failure_of(frame))]

    def _failure_of(self, frame: Frame) -> RemudaError:
        try:
            message = parse(user_pb2.PBError, frame.pbody)
        except ProtocolError as error:
            return error
        assert isinstance(message, user_pb2.PBError)
        return decode_error(message)

    def _shake_hands(self, frame: Frame) -> Effects[K]:
        expected = RESPONSE if self._answer is None else REQUEST
        if frame.rpc_type != HANDSHAKE_TYPE or frame.mode != expected:
            if self._answer is None and frame.mode == RESPONSE_FAILURE:
                return self._broken(self._failure_of(frame))
            return self._broken(
                ProtocolError(f"{self.peer} sent {frame!r} instead of its handshake")
            )
        if self._answer is None:
            try:
                self._welcome = read_welcome(self.protocol, frame.pbody)
                wanted = mechanisms(self._welcome)
                self._showing = showing(self._login, wanted, self.peer)
            except RemudaError as error:
                return self._broken(error)
            if self._showing is None:
                return self._open(self._welcome, self._silence)
            self.state = State.AUTHENTICATION
            return [Write((self._sasl(REQUEST, self._identifier(), self._showing.start()),))]
        return self._accept(frame, self._answer)

    def _accept(self, frame: Frame, answer: Answer) -> Effects[K]:
        try:
            hello = read_hello(self.protocol, frame.pbody)
            if self._guard is not None:
                return self._guarded(frame, hello, answer, self._guard)
            message = welcome(self.protocol, hello, answer)
        except RemudaError as error:
            return self._refuse_hands(frame.coordination_id, error)
        self._hello = hello
        return [Write((self._hands(frame.coordination_id, message),)), *self._let_in("")]

    @staticmethod
    def _hands(identifier: int, message: Message) -> bytes:
        return encode_head(RESPONSE, identifier, HANDSHAKE_TYPE, message.SerializeToString())

    def _refuse_hands(self, identifier: int, error: RemudaError) -> Effects[K]:
        no = self._hands(identifier, refusal(self.protocol, error))
        return [Write((no,)), *self._broken(error, linger=True)]

    def _let_in(self, user: str) -> Effects[K]:
        assert self._hello is not None
        return self._open(self._hello, heartbeat_timeout(self.protocol, self._hello), user)

    def _open(self, handshake: Message, timeout: float | None, user: str = "") -> Effects[K]:
        self.handshake = handshake
        self._timeout = timeout
        self.state = State.OPEN
        return [Opened(handshake, user)]

    # ---- who is there ----

    def _sasl(self, mode: int, identifier: int, message: user_pb2.SaslMessage) -> bytes:
        rpc_type = MESSAGE_TYPES[self.protocol.kind]
        return encode_head(mode, identifier, rpc_type, message.SerializeToString())

    def _show(self, frame: Frame) -> Effects[K]:
        """The connecting side: an answer of the server."""
        assert self._showing is not None
        assert self._welcome is not None
        try:
            if frame.mode == RESPONSE_FAILURE:
                raise self._failure_of(frame)
            if frame.mode != RESPONSE or frame.rpc_type != MESSAGE_TYPES[self.protocol.kind]:
                raise ProtocolError(f"{self.peer} sent {frame!r} during the authentication")
            message = self._showing.receive(frame.pbody)
        except RemudaError as error:
            return self._broken(error)
        if message is None:
            return self._open(self._welcome, self._silence)
        return [Write((self._sasl(REQUEST, self._identifier(), message),))]

    def _guarded(
        self, frame: Frame, hello: Message, answer: Answer, guard: ServerExchange
    ) -> Effects[K]:
        """The accepting side: hands are shaken, but the channel is not open yet. Raises the
        refusal."""
        message = self.protocol.welcome()
        if isinstance(hello, user_pb2.UserToBitHandshake):
            message = welcome(self.protocol, hello, answer)
            if not hello.sasl_support:
                credentials = hello_credentials(hello)
                if credentials is None:
                    raise AuthenticationFailed(
                        "this cluster asks for user and password",
                        hint="Connect with user and password.",
                    )
                self._hello, self._welcome = hello, message
                self._checking, self._asked_by = True, frame.coordination_id
                self.state = State.AUTHENTICATION
                return [Verify(credentials)]
        self._hello, self._asking = hello, Asking(guard)
        self.state = State.AUTHENTICATION
        asks = guarded_welcome(self.protocol, message, guard.mechanism)
        return [Write((self._hands(frame.coordination_id, asks),))]

    def _ask(self, frame: Frame) -> Effects[K]:
        """The accepting side: a step of the client."""
        identifier = frame.coordination_id
        sasl = frame.mode == REQUEST and frame.rpc_type == MESSAGE_TYPES[self.protocol.kind]
        if self._asking is None or self._checking or not sasl:
            error = AuthenticationFailed(
                f"{self.peer} sent {frame!r} before it has shown who it is",
                hint="Finish the authentication first.",
            )
            return [Write((self.failure(identifier, error),)), *self._broken(error, linger=True)]
        self._checking, self._asked_by = True, identifier
        try:
            step = self._asking.receive(frame.pbody)
        except RemudaError as error:
            return self.verified(error)
        if isinstance(step, Credentials):
            return [Verify(step)]
        if isinstance(step, Shown):
            return self._shown(step)
        assert isinstance(step, Challenge)
        self._checking = False
        message = user_pb2.SaslMessage(status=user_pb2.SASL_IN_PROGRESS, data=step.data)
        return [Write((self._sasl(RESPONSE, identifier, message),))]

    def _shown(self, shown: Shown) -> Effects[K]:
        assert self._answer is not None
        assert self._hello is not None
        if self._asking is None:
            assert self._welcome is not None
            head = self._hands(self._asked_by, self._welcome)
            return [Write((head,)), *self._let_in(shown.user)]
        if not isinstance(self._hello, user_pb2.UserToBitHandshake):
            try:
                self._answer(self._hello)
            except RemudaError as error:
                return self.refused(error)
        message = user_pb2.SaslMessage(status=user_pb2.SASL_SUCCESS, data=shown.data)
        head = self._sasl(RESPONSE, self._asked_by, message)
        return [Write((head,)), *self._let_in(shown.user)]

    def verified(self, outcome: str | RemudaError) -> Effects[K]:
        """The credentials of a ``Verify`` are those of this user, or why they are not."""
        if self.state is not State.AUTHENTICATION:
            return []
        if isinstance(outcome, AuthenticationFailed):
            return [Delay(AUTHENTICATION_PENALTY, outcome)]
        if isinstance(outcome, RemudaError):
            return self.refused(outcome)
        return self._shown(Shown(outcome))

    def refused(self, error: RemudaError) -> Effects[K]:
        """Tell the client that it is not let in."""
        if self.state is not State.AUTHENTICATION:
            return []
        if self._asking is None:
            return self._refuse_hands(self._asked_by, error)
        head = self._sasl(RESPONSE, self._asked_by, failed(error))
        return [Write((head,)), *self._broken(error, linger=True)]

    # ---- ends ----

    def malformed(self, error: ProtocolError, request: int | None) -> Effects[K]:
        """The reader gave up on the bytes. ``request``: the id of a request that was too large."""
        if self.state is State.CLOSED:
            return []
        closing = self._broken(error, linger=True)
        if isinstance(error, FrameTooLarge) and request:
            return [Write((self.failure(request, error),)), *closing]
        return closing

    def tick(self, now: float) -> Effects[K]:
        """Time has passed; see ``deadline``."""
        if self.state is State.CLOSED or now < (self.deadline() or now + 1):
            return []
        if self.state is not State.OPEN:
            text = f"{self.peer} did not shake hands within {HANDSHAKE_TIMEOUT:g} s"
            if self._answer is None:
                return self._broken(
                    ConnectionRefused(text, hint="Does a Remuda member listen on this port?")
                )
            return self._broken(ProtocolError(text))
        if self._answer is None and self._pinged_at <= self.last_heard:
            self._pinged_at = now
            return [Write((_PING_FRAME,))]
        return self._broken(ConnectionBroken(f"{self.peer} was silent for {self._timeout:g} s"))

    def deadline(self) -> float | None:
        """When ``tick`` has something to do next, or None."""
        if self.state in (State.HANDSHAKE, State.AUTHENTICATION):
            return self._opened_at + HANDSHAKE_TIMEOUT
        if self._timeout is None or self.state is State.CLOSED:
            return None
        half = self._answer is None and self._pinged_at <= self.last_heard
        return self.last_heard + (self._timeout / 2 if half else self._timeout)

    def lost(self, error: RemudaError) -> list[Resolve[K]]:
        """The connection is gone: every pending request ends with the reason."""
        if self.state is State.CLOSED:
            return []
        self.state = State.CLOSED
        self.error = error
        pending = list(self.pending.items())
        self.pending.clear()
        self._abandoned.clear()
        # One exception object each: raising an object again and again grows its traceback.
        return [Resolve(key, token, from_report(error.to_report())) for key, token in pending]

    def _broken(self, error: RemudaError, linger: bool = False) -> Effects[K]:
        return [*self.lost(error), Close(error, linger)]


def unexpected(error: Exception) -> InternalError:
    """The error that the peer gets when a handler raises another one than a RemudaError."""
    return InternalError(
        f"{type(error).__name__}: {error}",
        hint="This is a bug in Remuda; the member's log has more.",
    )


def _port_closed(cause: OSError) -> bool:
    """Whether each address of a host has refused the connection. Of several addresses an event loop
    tells the errors as one text."""
    told = str(cause).count("[Errno ")
    closed = told > 0 and str(cause).count(f"[Errno {errno.ECONNREFUSED}]") == told
    return isinstance(cause, ConnectionRefusedError) or closed


def refused(host: str, port: int, cause: OSError | ValueError) -> ConnectionRefused:
    """The error of a caller when nobody can be reached at an address. A ValueError (a
    UnicodeError of IDNA among them) says that ``host`` cannot be the name of a host."""
    if not isinstance(cause, OSError):
        return ConnectionRefused(f"{host!r} is no name of a host: {cause}")
    kind = NobodyListens if _port_closed(cause) else ConnectionRefused
    return kind(
        f"cannot connect to {host}:{port}: {cause.strerror or cause}",
        hint="Check that the member is running and that host and port are right.",
    )
