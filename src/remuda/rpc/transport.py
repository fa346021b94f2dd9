"""Connections on asyncio: the shell around ``rpc.connection``.

A ``Channel`` is the protocol object of one TCP connection, on either side. Frames are received
into the reader's own buffers (BufferedProtocol), requests are dispatched synchronously from the
read callback, and their replies leave in one piece at its end. Works on any loop;
members run uvloop, which also gathers writes made later in the same turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ParamSpec, TypeAlias, cast

from google.protobuf.message import Message

from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    InternalError,
    LimitExceeded,
    MemberUnavailable,
    NotServed,
    QueryTimeout,
    RemudaError,
    TlsFailed,
)
from remuda.limits import CONNECT_TIMEOUT, FRAME_SIZE_MAX, KIB, MIB
from remuda.rpc import tcp
from remuda.rpc.connection import (
    ONE_WAY,
    Answer,
    ChannelKind,
    Close,
    Connection,
    Delay,
    Deliver,
    Opened,
    Reply,
    Resolve,
    State,
    Verify,
    Write,
    refused,
    unexpected,
)
from remuda.rpc.frame import REQUEST, RESPONSE, Buffer, Frame, FrameReader, encode_head
from remuda.rpc.handshake import application_of
from remuda.rpc.request import Body, Buffers, PeerRequest
from remuda.rpc.sasl import ClientExchange, Credentials
from remuda.rpc.strangers import Guard
from remuda.rpc.tls import HELLO_MARK, NOT_HERE, ClientTls
from remuda.rpc.tls_transport import TlsLayer

__all__ = [
    "Answer", "Body", "Buffers", "Channel", "ChannelKind", "ClientTls", "Guard", "Handler", "Reply",
    "Request", "connect",
]  # fmt: skip

OnReply: TypeAlias = Callable[[Reply | RemudaError], None]
Asker: TypeAlias = "OnReply | asyncio.Future[Reply]"
"""The receiver of the answer to a request: a function, or the future that a task waits for."""
Handler: TypeAlias = Callable[["Request"], None]

WRITE_BUFFER_HIGH = 8 * MIB
WRITE_BUFFER_LOW = 2 * MIB
CLIENT_WRITE_BUFFER_MAX = 4 * FRAME_SIZE_MAX
"""A client that lets so much pile up unread is cut off."""
JOIN_SIZE_MAX = 32 * KIB
"""Smaller pieces are copied together; larger ones are written as they are."""
HANDSHAKE_SIZE_MAX = 16 * KIB
"""Of the first frame of a stranger: more than that is not even received."""
CLOSE_TIMEOUT = 5.0
"""How long a closing connection may take to flush, or to let its peer read a refusal."""

_log = logging.getLogger(__name__)
P = ParamSpec("P")


def _size(dbody: Buffers) -> int:
    return sum(map(len, dbody)) if dbody else 0


class Channel(asyncio.BufferedProtocol):
    """One connection, either side; all methods on the loop's thread.

    ``peer`` is "host:port" of the other end, ``handshake`` its handshake message. ``writable`` is
    False while the write buffer is between its high and low water mark; nothing ever blocks, but a
    polite producer waits for ``on_writable``. ``on_closed`` runs once, with the reason.
    """

    def __init__(
        self,
        kind: ChannelKind,
        peer: str,
        handler: Handler | None,
        on_open: Callable[[Channel], None],
        *,
        hello: Message | None = None,
        answer: Answer | None = None,
        guard: Guard | None = None,
        login: ClientExchange | None = None,
    ) -> None:
        self.kind = kind
        self.peer = peer
        self.user = self.application = ""
        """On the accepting side: the user that the client has shown to be, if it was asked, and
        the name that it gives itself."""
        self.connected = False
        """TCP has connected; the handshake may still be under way."""
        self.closed = False
        self.writable = True
        self.unanswered = 0  # requests of the other side that have no answer yet
        self.on_writable: list[Callable[[], None]] = []
        self.on_closed: list[Callable[[RemudaError], None]] = []
        self.protocol, self._loop = "native", asyncio.get_running_loop()
        self._handler, self._on_open = handler, on_open
        self._hello, self._answer = hello, answer
        self._guard, self._login = guard, login
        self._reader = FrameReader(FRAME_SIZE_MAX if answer is None else HANDSHAKE_SIZE_MAX)
        self._connection: Connection[Asker]
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._corked: list[Buffer] | None = None
        self._put: Callable[[Buffer], object]
        """Writes the head of a frame: to the transport, or to what leaves later in one piece."""
        # Called with a size that it does not want; ``getattr`` takes it as a default.
        self.get_buffer = partial(getattr, self._reader, "room")  # type: ignore[method-assign]

    @property
    def handshake(self) -> Message:
        """The other side's handshake message; there once the channel is open."""
        message = self._connection.handshake
        assert message is not None
        return message

    @property
    def awaits(self) -> bool:
        """Whether a request of this side has no answer yet."""
        return bool(self._connection.pending)

    @property
    def silence(self) -> float:
        """Seconds since the other side was last heard."""
        return self._loop.time() - self._connection.last_heard

    def __repr__(self) -> str:
        return f"<{self.kind.value} channel to {self.peer}{', closed' if self.closed else ''}>"

    # ---- for the owner ----

    async def request(
        self, rpc_type: int, body: Body, dbody: Buffers = (), timeout: float | None = None
    ) -> Reply:
        """Send and wait for the answer.

        Raises the peer's error, ConnectionBroken, or, when ``timeout`` seconds pass, QueryTimeout
        (user channel) or MemberUnavailable (control and data channel).
        """
        future: asyncio.Future[Reply] = self._loop.create_future()
        identifier = self._request(rpc_type, body, dbody, future)
        timer = None
        if timeout is not None:
            timer = self._loop.call_later(timeout, self._overdue, future, identifier, timeout)
        try:
            return await future
        except asyncio.CancelledError:
            self._connection.abandon(identifier)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def request_nowait(self, rpc_type: int, body: Body, dbody: Buffers, on_reply: OnReply) -> None:
        """Send; ``on_reply`` runs with the answer or the error, also when the channel is closed."""
        try:
            self._request(rpc_type, body, dbody, on_reply)
        except RemudaError as error:
            self._loop.call_soon(on_reply, error)

    def send(self, rpc_type: int, body: Body, dbody: Buffers = ()) -> None:
        """One-way. On a closed channel it is dropped: ``on_closed`` has told. FrameTooLarge."""
        if self.closed:
            return
        pbody = body if isinstance(body, bytes) else body.SerializeToString()
        if self._connection.state is not State.OPEN:
            self._connection.require_open()
        head = encode_head(REQUEST, ONE_WAY, rpc_type, pbody, _size(dbody) if dbody else 0)
        if dbody:
            self._write(head, dbody)
        else:
            self._put(head)

    def close(self, error: RemudaError | None = None) -> None:
        """Flush and close; pending requests fail with ``error`` (default ConnectionBroken)."""
        if not self.closed:
            reason = error or ConnectionBroken(f"the connection to {self.peer} was closed here")
            self._shut(reason, linger=False)

    def part(self, rpc_type: int, body: Body) -> None:
        """Send a last message. Later input is read (so no reset overtakes it), and lost."""
        if not self.closed:
            self.send(rpc_type, body)
            self._shut(ConnectionBroken(f"{self.peer} was told goodbye"), linger=True)

    def require_open(self) -> None:
        """Raise the reason when the channel is closed."""
        self._connection.require_open()

    # ---- sending ----

    def _request(self, rpc_type: int, body: Body, dbody: Buffers, asker: Asker) -> int:
        pbody = body if isinstance(body, bytes) else body.SerializeToString()
        size = _size(dbody) if dbody else 0
        identifier, head = self._connection.request(rpc_type, pbody, size, asker)
        if dbody:
            self._write(head, dbody)
        else:
            self._put(head)
        return identifier

    def _overdue(self, future: asyncio.Future[Reply], identifier: int, timeout: float) -> None:
        self._connection.abandon(identifier)
        kind = QueryTimeout if self.kind is ChannelKind.USER else MemberUnavailable
        if not future.done():
            future.set_exception(kind(f"{self.peer} did not answer within {timeout:g} s"))

    def respond(self, identifier: int, rpc_type: int, body: Body, dbody: Buffers) -> None:
        pbody = body if isinstance(body, bytes) else body.SerializeToString()
        head = encode_head(RESPONSE, identifier, rpc_type, pbody, _size(dbody) if dbody else 0)
        self.unanswered -= 1
        if self.closed:
            return
        if dbody:
            self._write(head, dbody)
        else:
            self._put(head)

    def respond_failure(self, identifier: int, error: RemudaError) -> None:
        self.unanswered -= 1
        if not self.closed:
            self._write(self._connection.failure(identifier, error), ())

    def _write(self, head: Buffer, dbody: Iterable[Buffer]) -> None:
        corked = self._corked
        if corked is not None:
            corked.append(head)
            corked.extend(dbody)
            return
        self._flush([head, *dbody])
        if not self.writable:
            self._bound_write_buffer()

    def _uncorked(self) -> Callable[[Buffer], object]:
        return self._transport.write if self.writable else self._put_bounded

    def _put_bounded(self, head: Buffer) -> None:
        self._transport.write(head)
        self._bound_write_buffer()

    def _flush(self, parts: list[Buffer]) -> None:
        """Write the parts in order, small neighbours joined."""
        write = self._transport.write
        if len(parts) == 1:
            write(parts[0])
            return
        small: list[Buffer] = []
        for part in parts:
            if len(part) < JOIN_SIZE_MAX:
                small.append(part)
                continue
            if small:
                write(b"".join(small))
                small = []
            write(part)
        if small:
            write(b"".join(small))

    def _bound_write_buffer(self) -> None:
        size = self._transport.get_write_buffer_size()
        if self.kind is ChannelKind.USER and size > CLIENT_WRITE_BUFFER_MAX and not self.closed:
            reason = f"{self.peer} has left {size} bytes unread"
            self._shut(LimitExceeded(reason), linger=False, abort=True)

    # ---- asyncio's side ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        transport = self._transport
        self._put = self._uncorked()
        self.connected = True
        tcp.prepare(transport.get_extra_info("socket"))
        transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH, low=WRITE_BUFFER_LOW)
        if not self.peer:
            address = transport.get_extra_info("peername")
            self.peer = f"{address[0]}:{address[1]}" if address else "?"
        self._connection = Connection(
            self.kind,
            self.peer,
            self._loop.time(),
            hello=self._hello,
            answer=self._answer,
            guard=None if self._guard is None else self._guard.exchange(),
            login=self._login,
        )
        for effect in self._connection.start():
            self._write(effect.data[0], effect.data[1:])
        self._wind_timer()

    def buffer_updated(self, count: int) -> None:
        reader = self._reader
        frame = reader.single(count)
        self._connection.last_heard = self._loop.time()
        if frame is not None:
            self._take(frame)
            return
        frames = reader.received(count)
        if len(frames) == 1 and reader.error is None:
            self._take(frames[0])
        elif frames or reader.error is not None:
            self._take_all(frames)

    def _take(self, frame: Frame) -> None:
        """``Connection.receive`` and its effect in one, for the two usual cases."""
        connection = self._connection
        if frame.mode == REQUEST:
            if connection.state is State.OPEN:
                self._dispatch(frame)
                return
        elif frame.mode == RESPONSE:
            asker = connection.pending.pop(frame.coordination_id, None)
            if asker is not None:
                if not isinstance(asker, asyncio.Future):
                    self._call(asker, frame)
                elif not asker.done():  # a task that was cancelled abandons it in its next step
                    asker.set_result(frame)
                return
        self._perform(connection.receive(frame))

    def _take_all(self, frames: list[Frame]) -> None:
        """Several frames of one read: replies to them leave in one piece."""
        reader = self._reader
        corked: list[Buffer] = []
        self._corked, self._put = corked, corked.append
        try:
            for frame in frames:
                self._take(frame)
            if reader.error is not None and not self.closed:
                if self._answer is not None and reader.opening() == HELLO_MARK:
                    self._write(NOT_HERE, ())
                self._perform(self._connection.malformed(reader.error, reader.refused_id))
        finally:
            self._corked, self._put = None, self._uncorked()
            if corked and not self._transport.is_closing():
                self._flush(corked)
                if not self.writable:
                    self._bound_write_buffer()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if isinstance(exc, TlsFailed) and not self.closed:
            self._ended(exc)
        if not self.closed:
            why = f": {exc}" if exc else " by the other side"
            self._ended(ConnectionBroken(f"the connection to {self.peer} was closed{why}"))

    def pause_writing(self) -> None:
        self.writable = False
        if self._corked is None:
            self._put = self._uncorked()

    def resume_writing(self) -> None:
        self.writable = True
        if self._corked is None:
            self._put = self._uncorked()
        for callback in list(self.on_writable):
            self._call(callback)

    # ---- effects ----

    def _perform(
        self,
        effects: Sequence[Write | Deliver | Resolve[Asker] | Opened | Close | Verify | Delay],
    ) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is Deliver:
                self._dispatch(effect.frame)  # type: ignore[union-attr]
            elif kind is Resolve:
                self._resolve(effect.token, effect.outcome)  # type: ignore[union-attr]
            elif isinstance(effect, Write):
                self._write(effect.data[0], effect.data[1:])
            elif isinstance(effect, Opened):
                self.user, self.application = effect.user, application_of(effect.handshake)
                self._reader.size_max = FRAME_SIZE_MAX
                self._wind_timer()
                self._call(self._on_open, self)
            elif isinstance(effect, Close):
                self._shut(effect.error, effect.linger)
            elif isinstance(effect, Verify):
                self._verify(effect.credentials)
            elif isinstance(effect, Delay):
                self._refuse_later(effect.seconds, effect.error)

    def _verify(self, credentials: Credentials) -> None:
        def told(outcome: str | RemudaError) -> None:
            self._perform(self._connection.verified(outcome))

        assert self._guard is not None
        assert self._guard.verifier is not None
        host = self.peer.rpartition(":")[0]
        self._call(self._guard.verifier, credentials, host, told)

    def _refuse_later(self, seconds: float, error: RemudaError) -> None:
        def refuse() -> None:
            self._perform(self._connection.refused(error))

        self._loop.call_later(seconds, refuse)

    def _resolve(self, asker: Asker, outcome: Reply | RemudaError) -> None:
        if not isinstance(asker, asyncio.Future):
            self._call(asker, outcome)
        elif asker.done():
            return
        elif isinstance(outcome, RemudaError):
            asker.set_exception(outcome)
        else:
            asker.set_result(outcome)

    def _call(self, callback: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            callback(*args, **kwargs)
        except Exception:  # noqa: BLE001  (a bug in one callback must not end the channel)
            _log.exception("a callback of the %s channel to %s failed", self.kind.value, self.peer)

    def _dispatch(self, frame: Frame) -> None:
        request = Request(self, frame)
        self.unanswered += frame.coordination_id != 0
        try:
            if self._handler is None:
                raise InternalError(f"no requests are expected on this side of {self!r}")
            self._handler(request)
        except RemudaError as error:
            self._handler_failed(request, error)
        except Exception as error:  # noqa: BLE001  (a bug in one handler must not end the channel)
            _log.exception("request of type %d from %s failed", frame.rpc_type, self.peer)
            self._handler_failed(request, unexpected(error))

    def _handler_failed(self, request: Request, error: RemudaError) -> None:
        if request.one_way or request.answered:
            what = f"message of type {request.rpc_type} from {self.peer}"
            _log.warning("%s: %s: %s", what, type(error).__name__, error)
        else:
            request.fail(error)

    def _shut(self, error: RemudaError, linger: bool, abort: bool = False) -> None:
        """Close the connection; a lingering one goes on reading, so that no reset overtakes what
        was just written."""
        if self._corked:
            self._flush(self._corked)
            self._corked.clear()
        if isinstance(error, ConnectionBroken | NotServed):
            _log.debug("%s: %s", self.peer, error.message)
        else:
            text = f"{type(error).__name__}: {error.message}"
            _log.warning("closing the %s channel to %s: %s", self.kind.value, self.peer, text)
        if abort:
            self._transport.abort()
        elif linger and self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()
        self._ended(error)
        self._wind(self._loop.time() + CLOSE_TIMEOUT, self._transport.abort)

    def _ended(self, error: RemudaError) -> None:
        self.closed = True
        self._perform(self._connection.lost(error))
        self.failed(error)

    def failed(self, error: RemudaError) -> None:
        """There is no connection; for TLS below, which may not have come to be."""
        self.closed = True
        callbacks, self.on_closed = self.on_closed, []
        for callback in callbacks:
            self._call(callback, error)

    def _wind_timer(self) -> None:
        deadline = self._connection.deadline()
        if deadline is not None:
            self._wind(deadline, self._tick)
        elif self._timer is not None:
            self._timer.cancel()

    def _wind(self, when: float, callback: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, callback)

    def _tick(self) -> None:
        if self._connection.state is State.CLOSED:
            return
        self._perform(self._connection.tick(self._loop.time()))
        if not self.closed:
            self._wind_timer()


class Request(PeerRequest[Channel]):
    """A REQUEST of the peer; see ``PeerRequest``."""

    __slots__ = ()


async def connect(
    host: str,
    port: int,
    kind: ChannelKind,
    hello: Message,
    handler: Handler | None = None,
    *,
    timeout: float = CONNECT_TIMEOUT,
    tls: ClientTls | None = None,
    login: ClientExchange | None = None,
) -> Channel:
    """Connect and shake hands; ``hello``'s channel and version fields are filled in here. With a
    ``login`` this side shows who it is where it is asked to.

    Raises ConnectionRefused (naming host:port), TlsFailed, or the server's typed refusal
    (VersionMismatch, AuthenticationFailed, whatever its ``answer`` raised).
    """
    loop = asyncio.get_running_loop()
    opened: asyncio.Future[None] = loop.create_future()

    def on_open(_: Channel) -> None:
        if not opened.done():
            opened.set_result(None)

    def on_closed(error: RemudaError) -> None:
        if not opened.done():
            opened.set_exception(error)

    channel = Channel(kind, f"{host}:{port}", handler, on_open, hello=hello, login=login)
    channel.on_closed.append(on_closed)
    shaken = False
    layer = None
    if tls is not None:
        name = tls.server_name or host
        layer = TlsLayer(channel, tls.context, channel.peer, server_name=name)
    try:
        async with asyncio.timeout(timeout):
            await loop.create_connection(lambda: layer or channel, host, port)
            await opened
        channel.require_open()  # it may have been closed since
        shaken = True
    except TimeoutError:
        raise ConnectionRefused(f"{host}:{port} did not answer within {timeout:g} s") from None
    except (OSError, ValueError) as cause:
        raise refused(host, port, cause) from None
    finally:
        if opened.done() and not opened.cancelled():
            opened.exception()  # of a caller that was cancelled: nobody else asks for it
        if not channel.closed:
            channel.on_closed.remove(on_closed)
            if channel.connected and not shaken:  # timed out, or the caller was cancelled
                channel.close()
            elif layer is not None and not shaken:
                layer.abort()
    return channel
