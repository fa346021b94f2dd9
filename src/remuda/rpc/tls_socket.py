"""TLS over a blocking socket. The timeouts of the socket itself hold: ``recv_into`` and ``send``
raise BlockingIOError when they pass, which the standard library's own TLS sockets would not tell.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence

from remuda.errors import ConnectionBroken, ConnectionRefused, RemudaError
from remuda.rpc.frame import Buffer
from remuda.rpc.tls import ClientTls, TlsSession

_RECEIVE_SIZE = 64 * 1024


class TlsSocket:
    """The part of a socket that a blocking channel uses, encrypted. Raises OSErrors as a socket
    does, and TlsFailed."""

    def __init__(
        self,
        raw: socket.socket,
        tls: ClientTls,
        host: str,
        peer: str,
        *,
        timeout: float,
        deadline: float,
    ) -> None:
        """Shakes hands before ``deadline``, in monotonic seconds: ``timeout`` after the attempt to
        connect began. The socket is closed when that fails. TlsFailed, ConnectionRefused."""
        self._raw = raw
        self._process = os.getpid()
        self._buffer = memoryview(bytearray(_RECEIVE_SIZE))
        self._session = TlsSession(tls.context, peer, server_name=tls.server_name or host)
        try:
            self._shake(peer, deadline, timeout)
        except BaseException:
            raw.close()
            raise

    def _shake(self, peer: str, deadline: float, timeout: float) -> None:
        session, raw = self._session, self._raw
        try:
            while not session.shake():
                self._flush()
                raw.settimeout(max(0.001, deadline - time.monotonic()))
                count = raw.recv_into(self._buffer)
                if count == 0:
                    raise session.ended()
                session.feed(self._buffer[:count])
            self._flush()
        except TimeoutError:
            raise ConnectionRefused(
                f"{peer} did not finish the TLS handshake within {timeout:g} s",
                hint="Does it speak TLS on this port?",
            ) from None
        except OSError as cause:
            raise ConnectionBroken(
                f"the connection to {peer} broke during the TLS handshake: "
                f"{cause.strerror or cause}"
            ) from None
        except RemudaError:
            with contextlib.suppress(OSError):  # the other side may be gone: it was told
                self._flush()
            raise
        raw.settimeout(None)

    def recv_into(self, buffer: memoryview) -> int:
        """0 at the end of the connection."""
        session = self._session
        while True:
            count = session.read_into(buffer)
            if count:
                return count
            self._flush()  # answers of TLS itself
            received = self._raw.recv_into(self._buffer)
            if received == 0:
                return 0
            session.feed(self._buffer[:received])

    def send(self, data: Buffer) -> int:
        """All of it."""
        self._session.write(memoryview(data))
        self._flush()
        return len(memoryview(data).cast("B"))

    def sendmsg(self, parts: Sequence[Buffer]) -> int:
        return sum([self.send(part) for part in parts])

    def setsockopt(self, level: int, name: int, value: int | bytes) -> None:
        self._raw.setsockopt(level, name, value)

    def recv(self, size: int, flags: int) -> bytes:
        """Encrypted bytes: good for a look whether there are any."""
        return self._raw.recv(size, flags)

    def shutdown(self, how: int) -> None:
        self._raw.shutdown(how)

    def close(self) -> None:
        """Says goodbye, but not from a forked process: the connection is its parent's."""
        if self._session.established and os.getpid() == self._process:
            self._session.finish()
            with contextlib.suppress(OSError):  # a courtesy: the connection ends anyway
                self._raw.setblocking(False)
                self._raw.send(self._session.outgoing())
        self._raw.close()

    def _flush(self) -> None:
        data = self._session.outgoing()
        if data:
            self._raw.sendall(data)
