"""The line between a task that hosts a member and the driver: JSON messages over one connection.

Both sides know a secret that the driver has made for this cluster and that travels with the tasks.
They show it to each other as members do (``rpc.sasl``), the connecting side first; before that,
nothing else is said. A message is its length (4 bytes, big-endian) and its JSON.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import select
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Self

from remuda.client.network.address import format_address
from remuda.errors import AuthenticationFailed, ConnectionBroken, ProtocolError
from remuda.formats import HOSTING_LINE
from remuda.rpc.tls import TlsFiles, client_context, failure, server_context

Message = dict[str, Any]

NONCE_SIZE: Final = 32
STRANGER_MAX: Final = 1024
"""Bytes of a message before the other side has shown that it knows the secret."""
MESSAGE_MAX: Final = 32 * 1024 * 1024
PIECE: Final = 64 * 1024
CONNECT_TIMEOUT: Final = 10.0
STALL_TIMEOUT: Final = 30.0
"""Seconds between two bytes of one message."""
_KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 3), (socket.TCP_KEEPCNT, 3))
"""Seconds and counts after which the kernel gives up a machine that is silent."""
_UNACKNOWLEDGED_MS: Final = 15_000


class Line:
    """One side of a connection on which the secret has been shown. ``send`` may be called from any
    thread, ``receive`` from one. Raises ConnectionBroken."""

    def __init__(self, connection: socket.socket, peer: str) -> None:
        self._connection = connection
        self._connection.settimeout(STALL_TIMEOUT)
        self._using = threading.Lock()
        """A TLS connection must not be read and written at the same time: a thread that waits for
        bytes waits without it."""
        self._arrived = bytearray()
        self._over = False
        self.peer = peer

    def fileno(self) -> int:
        return self._connection.fileno()

    def look(self) -> bool:
        """Take in what is there, without waiting; whether ``receive`` has something to give, or to
        raise. (With TLS, a connection may be readable without a byte for us.)"""
        try:
            self._take_in()
        except OSError as problem:
            raise self._broken(problem) from problem
        return bool(self._arrived) or self._over

    @property
    def local_host(self) -> str:
        """The address of this machine by which the other side is reached."""
        return str(self._connection.getsockname()[0])

    def send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode()
        try:
            with self._using:
                self._connection.sendall(len(data).to_bytes(4, "big") + data)
        except OSError as problem:
            raise self._broken(problem) from problem

    def receive(self, timeout: float | None = None, most: int = MESSAGE_MAX) -> Message:
        """The next message. ``timeout``: seconds until it must have begun; that it does not come
        breaks the line."""
        try:
            size = int.from_bytes(self._exactly(4, timeout), "big")
            if size > most:
                raise ProtocolError(f"{self.peer} announces a message of {size} bytes")
            data = self._exactly(size, STALL_TIMEOUT)
        except (OSError, ValueError) as problem:  # ValueError: another thread has closed it
            raise self._broken(problem) from problem
        try:
            message = json.loads(data)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ProtocolError(f"{self.peer} sent what is no message: {data[:80]!r}")
        return message

    def close(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _exactly(self, size: int, timeout: float | None) -> bytes:
        while len(self._arrived) < size:
            if self._over:
                raise ConnectionBroken(f"{self.peer} has closed the connection")
            before = len(self._arrived)
            self._take_in()
            if len(self._arrived) == before and not self._over:
                if not _readable(self._connection, timeout):
                    raise TimeoutError(f"nothing has come for {timeout} s")
            else:
                timeout = STALL_TIMEOUT
        found = bytes(self._arrived[:size])
        del self._arrived[:size]
        return found

    def _take_in(self) -> None:
        with self._using:
            self._connection.settimeout(0)
            try:
                while not self._over and len(self._arrived) <= MESSAGE_MAX:
                    piece = self._connection.recv(PIECE)
                    self._arrived += piece
                    self._over = not piece
            except (ssl.SSLWantReadError, BlockingIOError):
                return
            finally:
                with suppress(OSError):  # closed meanwhile, by another thread
                    self._connection.settimeout(STALL_TIMEOUT)

    def _broken(self, problem: Exception) -> ConnectionBroken:
        return ConnectionBroken(f"the connection to {self.peer} is broken: {problem}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dial(host: str, port: int, secret: bytes, tls: TlsFiles | None) -> Line:
    """The task's side. Raises ConnectionBroken, AuthenticationFailed, TlsFailed."""
    where = f"the driver at {format_address(host, port)}"

    def encrypted(connection: socket.socket) -> socket.socket:
        if tls is None:
            return connection
        name = tls.server_name or host
        return client_context(tls).wrap_socket(connection, server_hostname=name)

    try:
        connection = socket.create_connection((host, port), timeout=CONNECT_TIMEOUT)
    except OSError as problem:
        raise ConnectionBroken(f"{where} cannot be reached: {problem}") from problem
    return _opened(connection, where, encrypted, lambda line: _show(line, secret), accepting=False)


def accept(connection: socket.socket, peer: str, secret: bytes, tls: TlsFiles | None) -> Line:
    """The driver's side. Raises as ``dial``; the connection is closed then."""

    def encrypted(connection: socket.socket) -> socket.socket:
        connection.settimeout(CONNECT_TIMEOUT)
        if tls is None:
            return connection
        context = server_context(tls, client_certificates=bool(tls.ca))
        return context.wrap_socket(connection, server_side=True)

    return _opened(connection, peer, encrypted, lambda line: _check(line, secret), accepting=True)


def _opened(
    connection: socket.socket,
    peer: str,
    encrypted: Callable[[socket.socket], socket.socket],
    prove: Callable[[Line], None],
    *,
    accepting: bool,
) -> Line:
    """A line on which both sides have shown the secret; the connection is closed otherwise."""
    try:
        connection = encrypted(connection)
        line = Line(_watched(connection), peer)
        prove(line)
    except ssl.SSLError as problem:
        connection.close()
        raise failure(problem, peer, accepting=accepting) from problem
    except OSError as problem:
        connection.close()
        what = "has gone" if accepting else "cannot be reached"
        raise ConnectionBroken(f"{peer} {what}: {problem}") from problem
    except BaseException:
        connection.close()
        raise
    return line


def _show(line: Line, secret: bytes) -> None:
    ours = secrets.token_bytes(NONCE_SIZE)
    line.send({"format": HOSTING_LINE.number, "nonce": ours.hex()})
    theirs = _nonce(line)
    line.send({"proof": _proof(secret, b"c", ours, theirs).hex()})
    if not hmac.compare_digest(_bytes(line, "proof"), _proof(secret, b"s", ours, theirs)):
        raise AuthenticationFailed(f"{line.peer} does not know the secret of this cluster")


def _check(line: Line, secret: bytes) -> None:
    theirs = _nonce(line)
    ours = secrets.token_bytes(NONCE_SIZE)
    line.send({"format": HOSTING_LINE.number, "nonce": ours.hex()})
    if not hmac.compare_digest(_bytes(line, "proof"), _proof(secret, b"c", theirs, ours)):
        raise AuthenticationFailed(f"{line.peer} does not know the secret of this cluster")
    line.send({"proof": _proof(secret, b"s", theirs, ours).hex()})


def _proof(secret: bytes, side: bytes, connecting: bytes, accepting: bytes) -> bytes:
    text = b"remuda rendezvous " + side + connecting + accepting
    return hmac.new(secret, text, hashlib.sha256).digest()


def _nonce(line: Line) -> bytes:
    """The first message of the other side, which says its format. Raises VersionMismatch."""
    message = line.receive(CONNECT_TIMEOUT, STRANGER_MAX)
    HOSTING_LINE.check(message.get("format"), line.peer)
    return _taken(line, message, "nonce")


def _bytes(line: Line, name: str) -> bytes:
    return _taken(line, line.receive(CONNECT_TIMEOUT, STRANGER_MAX), name)


def _taken(line: Line, message: Message, name: str) -> bytes:
    value = message.get(name)
    try:
        found = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        found = b""
    if len(found) != NONCE_SIZE:  # a proof has as many bytes
        raise ProtocolError(f"{line.peer} sent no {name}")
    return found


def _readable(connection: socket.socket, timeout: float | None) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))


def _watched(connection: socket.socket) -> socket.socket:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
    for option, value in _KEEPALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection
