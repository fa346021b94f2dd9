"""Connections on a plain blocking socket, for the sync client: no event loop, no thread.

The socket stays in blocking mode and bounds its waits with SO_RCVTIMEO and SO_SNDTIMEO: Python's
own socket timeouts would poll before every call, which costs a system call per direction.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from google.protobuf.message import Message

from remuda import rpc
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    QueryTimeout,
    RemudaError,
)
from remuda.limits import CLIENT_SILENCE_MAX, CONNECT_TIMEOUT
from remuda.rpc import tcp
from remuda.rpc.connection import (
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
)
from remuda.rpc.frame import RESPONSE, Buffer, Frame, FrameReader
from remuda.rpc.handshake import ACK_TYPE
from remuda.rpc.messages import user_pb2
from remuda.rpc.request import Body, Incoming, said_goodbye, serialized
from remuda.rpc.sasl import ClientExchange

if TYPE_CHECKING:
    from remuda.rpc import TlsSocket
    from remuda.rpc.tls import ClientTls

GOODBYE = user_pb2.GOODBYE
_ACK = b"\x08\x01"  # Ack{ok = true}
_now = time.monotonic
SEND_TIMEOUT = 60.0
_EARLY = 0.1
_EXACT = 0.95
"""A bound of the system that is so near to what is wanted stays: setting it costs a call."""
_GATHER_MAX = 512
"""Buffers per sendmsg; systems allow 1024."""


class BlockingChannel:
    """One connection; one thread at a time.

    ``peer`` is "host:port", ``handshake`` the server's welcome. Any ConnectionBroken closes it.
    Raises ConnectionRefused (naming host:port and what to do), TlsFailed, or the server's typed
    refusal.
    """

    def __init__(
        self,
        host: str,
        port: int,
        hello: Message,
        kind: ChannelKind = ChannelKind.USER,
        *,
        timeout: float = CONNECT_TIMEOUT,
        silence: float = CLIENT_SILENCE_MAX,
        tls: ClientTls | None = None,
        login: ClientExchange | None = None,
    ) -> None:
        self.peer = f"{host}:{port}"
        self.closed = False
        self._reader = FrameReader()
        self._arrived: deque[Incoming] = deque()
        self._owed = b""  # acknowledgements on their way out
        self._awaited = 0  # the request that ``request`` waits for
        self._answer: Reply | RemudaError | None = None
        self._receive_timeout = 0.0  # seconds; what SO_RCVTIMEO is set to, 0 = not set
        self._send_timeout = SEND_TIMEOUT  # the same of SO_SNDTIMEO
        self._patience = silence / 2
        self._on_silence: Callable[[], None] | None = None
        deadline = _now() + timeout
        self._socket: socket.socket | TlsSocket = _open(host, port, timeout)
        if tls is not None:
            self._socket = rpc.TlsSocket(
                self._socket, tls, host, self.peer, timeout=timeout, deadline=deadline
            )
        if isinstance(hello, user_pb2.UserToBitHandshake):
            # Nobody sends heartbeats while the caller is elsewhere: the server must not expect any.
            hello = _without_heartbeats(hello)
        self._connection: Connection[None] = Connection(
            kind, self.peer, _now(), hello=hello, silence=silence, login=login
        )
        self._shake_hands(timeout, deadline)

    def _shake_hands(self, timeout: float, deadline: float) -> None:
        for effect in self._connection.start():
            self._transmit(effect.data[0], effect.data[1:])
        while self._connection.state is not State.OPEN:
            if not self._read(deadline):
                error = ConnectionRefused(
                    f"{self.peer} did not shake hands within {timeout:g} s",
                    hint="Does a Remuda member listen on this port?",
                )
                self._break(error)
                raise error

    def watch(self, patience: float, on_silence: Callable[[], None]) -> None:
        """Have ``on_silence`` called whenever nothing has come for ``patience`` seconds of a
        wait."""
        self._patience = min(self._patience, patience)
        self._on_silence = on_silence

    @property
    def heard(self) -> float:
        """When the other side was last heard, or a wait for it began: monotonic seconds."""
        return self._connection.last_heard

    def ended(self) -> bool:
        """Whether the other side has closed an idle connection, as far as is known here."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    @property
    def handshake(self) -> Message:
        message = self._connection.handshake
        assert message is not None
        return message

    def __repr__(self) -> str:
        return f"<blocking channel to {self.peer}{', closed' if self.closed else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- for the owner ----

    def request(
        self,
        rpc_type: int,
        body: Body,
        dbody: Sequence[Buffer] = (),
        *,
        timeout: float | None = None,
    ) -> Reply:
        """Send and wait for the answer; other messages that arrive meanwhile wait for ``receive``.

        Raises the server's typed error, QueryTimeout after ``timeout`` seconds, ConnectionBroken.
        """
        ends = None if timeout is None else _now() + timeout
        identifier = self.send_request(rpc_type, body, dbody, ends=ends)
        self._awaited = identifier
        try:
            deadline = self._listen(timeout) if ends is None else self._listen_until(ends)
            while self._answer is None:
                if not self._read_until(deadline, lambda: self._answer is not None):
                    raise QueryTimeout(f"{self.peer} did not answer within {timeout:g} s")
            answer = self._answer
        except BaseException:
            self._connection.abandon(identifier)
            raise
        finally:
            self._awaited = 0
            self._answer = None
        if isinstance(answer, RemudaError):
            raise answer
        return answer

    def send_request(
        self,
        rpc_type: int,
        body: Body,
        dbody: Sequence[Buffer] = (),
        *,
        ends: float | None = None,
    ) -> int:
        """Send without waiting; ``receive`` gives the answer under the returned number.

        ``ends``: monotonic seconds until which the other side must have taken it. Raises
        QueryTimeout, ConnectionBroken; both know that the request was not carried out, since no
        whole frame of it has left.
        """
        size = sum(map(len, dbody)) if dbody else 0
        identifier, head = self._connection.request(rpc_type, serialized(body), size, None)
        try:
            self._transmit(head, dbody, ends)
        except (ConnectionBroken, QueryTimeout) as error:
            raise error.knowing(may_have_run=False) from error.__cause__
        return identifier

    def receive(self, timeout: float | None = None) -> Incoming:
        """The next message in the order of arrival. Raises QueryTimeout, ConnectionBroken.

        Messages that came before the connection broke are given out first.
        """
        arrived = self._arrived
        if arrived:
            return arrived.popleft()
        self._connection.require_open()
        deadline = self._listen(timeout)
        while not arrived:
            if not self._read_until(deadline, lambda: bool(arrived)):
                raise QueryTimeout(f"{self.peer} sent nothing for {timeout:g} s")
        return arrived.popleft()

    def acknowledge(self, incoming: Incoming) -> None:
        """Answer a request of the server with ACK: the server's back pressure.

        The answer leaves with the next frame, before the next wait, or by ``flush``: several pages
        that arrived together cost one system call. Nothing is owed to a server that has ended the
        connection: what came before counts, and the end of a write that was carried out must not
        be taken for a request that nobody has served.
        """
        if incoming.coordination_id != 0 and not self.closed:
            self._owed += self._connection.response(incoming.coordination_id, ACK_TYPE, _ACK, 0)

    def flush(self) -> None:
        """Send the acknowledgements that are still here."""
        if self._owed and not self.closed:
            owed, self._owed = self._owed, b""
            self._transmit(owed, ())

    def abandon(self, identifier: int) -> None:
        """Drop the answer to a ``send_request`` when it comes."""
        self._connection.abandon(identifier)

    def close(self, reason: str = "closed here") -> None:
        if not self.closed:
            self._break(ConnectionBroken(f"the connection to {self.peer} was {reason}"))

    def interrupt(self) -> None:
        """From another thread: the thread that waits here meets the end of the connection."""
        with contextlib.suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)

    # ---- the socket ----

    def _listen(self, timeout: float | None) -> float | None:
        """The deadline of a wait that begins now: silence counts only while somebody listens."""
        now = _now()
        self._connection.last_heard = now
        return None if timeout is None else now + timeout

    def _listen_until(self, deadline: float) -> float:
        self._connection.last_heard = _now()
        return deadline

    def _read_until(self, deadline: float | None, came: Callable[[], bool]) -> bool:
        """``_read``, whose errors count unless what is waited for came together with the end of the
        connection, as an answer and a goodbye may."""
        try:
            return self._read(deadline)
        except RemudaError:
            if not came():
                raise
            return True

    def _read(self, deadline: float | None) -> bool:
        """Receive once, or do what is due after a silence; False when ``deadline`` has passed."""
        if self._owed:
            self.flush()
        bound = self._patience
        if deadline is not None:
            bound = min(bound, deadline - _now())
            if bound <= 0:
                return False
        if not bound / 2 <= self._receive_timeout <= bound:  # waking up early does no harm
            bound = max(bound, 0.001)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(bound))
            self._receive_timeout = bound
        try:
            count = self._socket.recv_into(self._reader.room)
        except BlockingIOError:  # SO_RCVTIMEO
            for effect in self._connection.tick(_now()):
                self._perform(effect)
            if self._on_silence is not None:
                self._on_silence()
            return True
        except OSError as cause:
            raise self._break(self._broken(cause.strerror or str(cause))) from None
        except RemudaError as error:  # of TLS
            raise self._break(error) from None
        if count == 0:
            raise self._break(self._broken("by the other side"))
        self._take(count)
        return True

    def _take(self, count: int) -> None:
        reader, connection = self._reader, self._connection
        single = reader.single(count)
        frames = reader.received(count) if single is None else (single,)
        connection.last_heard = _now()
        for frame in frames:
            if frame.mode == RESPONSE and frame.coordination_id == self._awaited:  # the usual case
                del connection.pending[self._awaited]
                self._awaited = 0
                self._answer = frame
                continue
            for effect in connection.receive(frame):
                self._perform(effect)
        if reader.error is not None:
            for effect in connection.malformed(reader.error, None):
                self._perform(effect)

    def _perform(
        self, effect: Write | Deliver | Resolve[None] | Opened | Close | Verify | Delay
    ) -> None:
        if isinstance(effect, Resolve):
            outcome, identifier = effect.outcome, effect.identifier
            if identifier == self._awaited:
                self._answer = outcome
            elif isinstance(outcome, Frame):
                self._arrived.append(
                    Incoming(True, identifier, outcome.rpc_type, outcome.pbody, outcome.dbody)
                )
            else:
                self._arrived.append(Incoming(True, identifier, 0, b"", b"", outcome))
        elif isinstance(effect, Deliver):
            frame = effect.frame
            if frame.rpc_type == GOODBYE and frame.coordination_id == 0:
                raise self._break(said_goodbye(self.peer))
            self._arrived.append(
                Incoming(False, frame.coordination_id, frame.rpc_type, frame.pbody, frame.dbody)
            )
        elif isinstance(effect, Write):
            self._transmit(effect.data[0], effect.data[1:])
        elif isinstance(effect, Close):
            raise self._break(effect.error)

    def _transmit(self, head: Buffer, dbody: Sequence[Buffer], ends: float | None = None) -> None:
        """Write a whole frame; an interrupted one breaks the connection, and so does one that the
        other side has not taken at ``ends``."""
        if self._owed:
            owed, self._owed = self._owed, b""
            head = b"".join((owed, head))
        started = False
        try:
            self._bound_sending(ends)
            if not dbody:
                pending = [head]
                sent = self._socket.send(head)
                if sent == len(head):
                    return
                started = True
            else:
                pending, sent = [head, *dbody], 0
            self._transmit_rest(pending, sent, ends)
        except (BlockingIOError, TimeoutError):  # SO_SNDTIMEO
            if ends is not None and ends - _now() <= _EARLY:
                self._break(self._broken("the other side took nothing for too long"))
                raise QueryTimeout(f"{self.peer} did not take the request in time") from None
            why = f"the other side took nothing for {SEND_TIMEOUT:g} s"
            raise self._break(self._broken(why)) from None
        except OSError as cause:
            self._hear_goodbye()
            raise self._break(self._broken(cause.strerror or str(cause))) from None
        except RemudaError as error:  # of TLS
            raise self._break(error) from None
        except BaseException:
            if started or dbody:
                self._break(self._broken("interrupted while sending"))
            raise

    def _bound_sending(self, ends: float | None) -> None:
        """Have the system end a send that the other side does not take. Raises TimeoutError when
        there is no time left."""
        bound = SEND_TIMEOUT if ends is None else min(SEND_TIMEOUT, ends - _now())
        if bound <= 0:
            raise TimeoutError
        if not bound * _EXACT <= self._send_timeout <= bound + _EARLY:
            bound = max(bound, 0.001)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(bound))
            self._send_timeout = bound

    def _hear_goodbye(self) -> None:
        """Nothing can be sent any more: raises NotServed if the other side has said goodbye before
        that, so it has served nothing of what could not be sent."""
        if not isinstance(self._socket, socket.socket):
            return
        with contextlib.suppress(OSError):  # nothing more has come
            while count := self._socket.recv_into(self._reader.room, 0, socket.MSG_DONTWAIT):
                self._take(count)

    def _transmit_rest(self, pending: list[Buffer], sent: int, ends: float | None) -> None:
        views = deque(memoryview(part).cast("B") for part in pending if len(part))
        while True:
            while views and sent >= len(views[0]):
                sent -= len(views.popleft())
            if not views:
                return
            views[0] = views[0][sent:]
            self._bound_sending(ends)
            sent = self._socket.sendmsg([views[i] for i in range(min(len(views), _GATHER_MAX))])

    def _broken(self, why: str) -> ConnectionBroken:
        return ConnectionBroken(f"the connection to {self.peer} was closed: {why}")

    def _break(self, error: RemudaError) -> RemudaError:
        self._connection.lost(error)
        if not self.closed:
            self.closed = True
            self._socket.close()
        return error


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("ll", whole, int((seconds - whole) * 1_000_000))


def _open(host: str, port: int, timeout: float) -> socket.socket:
    try:
        sock = _connected(host, port, _now() + timeout)
    except TimeoutError:
        raise ConnectionRefused(f"{host}:{port} did not answer within {timeout:g} s") from None
    except (OSError, ValueError) as cause:
        raise refused(host, port, cause) from None
    sock.settimeout(None)
    tcp.prepare(sock)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(SEND_TIMEOUT))
    return sock


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """To the first address of ``host`` that answers. All of them share the time: the standard
    library's ``create_connection`` would give each of them all of it."""
    problem: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(max(0.001, deadline - _now()))
            sock.connect(address)
        except OSError as cause:
            sock.close()
            problem = cause if problem is None else problem
        else:
            return sock
    raise problem if problem is not None else OSError("the host has no address")


def _without_heartbeats(hello: user_pb2.UserToBitHandshake) -> user_pb2.UserToBitHandshake:
    message = user_pb2.UserToBitHandshake()
    message.CopyFrom(hello)
    message.support_timeout = False
    return message
