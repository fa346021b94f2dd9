"""TLS below a channel, on asyncio: a protocol to the socket, a transport to the channel.

asyncio's own would do but for its failures: it closes without the alert that tells the other side
why, and a failed handshake is told to nobody who could count it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from remuda.errors import ConnectionRefused, RemudaError, TlsFailed
from remuda.limits import HANDSHAKE_TIMEOUT
from remuda.rpc.tls import HELLO_MARK, PIECE, TlsSession

if TYPE_CHECKING:
    from typing_extensions import Buffer

CLOSE_TIMEOUT: Final = 5.0
_log = logging.getLogger(__name__)


class Above(Protocol):
    """The channel, as seen from here."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def get_buffer(self, sizehint: int) -> Buffer: ...
    def buffer_updated(self, count: int) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def failed(self, error: RemudaError) -> None: ...


class TlsLayer(asyncio.Protocol):
    """Between one socket and one channel. The channel hears ``connection_made`` when TLS is
    through, or ``failed`` if that does not come to be."""

    def __init__(
        self,
        above: Above,
        context: ssl.SSLContext,
        peer: str,
        *,
        server_name: str | None = None,
        to_strangers: bytes = b"",
    ) -> None:
        """``to_strangers``: the answer to a client that begins without TLS."""
        self._above = above
        self._context = context
        self._peer = peer
        self._server_name = server_name
        self._to_strangers = to_strangers
        self._loop = asyncio.get_running_loop()
        self._raw: asyncio.Transport | None = None
        self._session: TlsSession
        self._timer: asyncio.TimerHandle | None = None
        self._first = server_name is None
        self._ended = False  # the channel has been told the end; what still comes is not read

    # --- asyncio's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = raw = cast("asyncio.Transport", transport)
        if not self._peer:
            address = raw.get_extra_info("peername")
            self._peer = f"{address[0]}:{address[1]}" if address else "?"
        self._session = TlsSession(self._context, self._peer, server_name=self._server_name)
        self._timer = self._loop.call_later(HANDSHAKE_TIMEOUT, self._too_late)
        if not self._first:
            self._shake()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        if self._first:
            self._first = False
            if not HELLO_MARK.startswith(data[:2]):
                self._fail(TlsFailed(f"{self._peer} does not speak TLS"), self._to_strangers)
                return
        self._session.feed(data)
        if self._session.established or self._shake():
            self._read()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._ended:
            return
        self._ended = True
        if self._session.established:
            self._above.connection_lost(exc)
        else:
            self._above.failed(self._session.ended())

    def pause_writing(self) -> None:
        if self._session.established and not self._ended:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._session.established and not self._ended:
            self._above.resume_writing()

    # --- the handshake ---

    def _shake(self) -> bool:
        try:
            through = self._session.shake()
        except RemudaError as error:
            self._fail(error, self._session.outgoing())
            return False
        self.flush()
        if through:
            self._stop_timer()
            self._above.connection_made(TlsTransport(self))
        return through

    def _too_late(self) -> None:
        text = f"{self._peer} did not finish the TLS handshake within {HANDSHAKE_TIMEOUT:g} s"
        self._fail(ConnectionRefused(text, hint="Does it speak TLS on this port?"), b"")

    def _fail(self, error: RemudaError, last_words: bytes) -> None:
        """No connection comes of it. The other side may read why before it is cut off."""
        if self._server_name is None:
            _log.warning("TLS with %s failed: %s", self._peer, error.message)
        self.end(last_words)
        if self._session.established:
            self._above.connection_lost(error)
        else:
            self._above.failed(error)

    def end(self, last_words: bytes = b"") -> None:
        """Write, and read no more; the connection goes soon."""
        self._ended = True
        self._stop_timer()
        raw = self._raw
        if raw is None or raw.is_closing():
            return
        if last_words:
            raw.write(last_words)
        if self._server_name is not None:
            raw.close()
            return
        if raw.can_write_eof():
            raw.write_eof()  # a close with bytes unread would reset the connection
        self._timer = self._loop.call_later(CLOSE_TIMEOUT, raw.abort)

    def abort(self) -> None:
        """At once, whatever state it is in; the channel is not told."""
        self._ended = True
        self._stop_timer()
        if self._raw is not None:
            self._raw.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- bytes ---

    def _read(self) -> None:
        above, session = self._above, self._session
        try:
            while not self._ended:
                count = session.read_into(memoryview(above.get_buffer(-1)))
                if count == 0:
                    break
                above.buffer_updated(count)
        except RemudaError as error:
            self._fail(error, session.outgoing())
            return
        self.flush()  # answers of TLS itself

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if len(data) <= PIECE:
            self._session.write(data)
            self.flush()
            return
        view = memoryview(data).cast("B")
        for start in range(0, len(view), PIECE):
            self._session.write(view[start : start + PIECE])
            self.flush()

    def flush(self) -> None:
        data = self._session.outgoing()
        if data and self._raw is not None:
            self._raw.write(data)

    def finish(self) -> None:
        self._session.finish()
        self.flush()

    @property
    def raw(self) -> asyncio.Transport:
        assert self._raw is not None
        return self._raw


class TlsTransport(asyncio.Transport):
    """The transport that a channel writes to."""

    def __init__(self, layer: TlsLayer) -> None:
        super().__init__()
        self._layer = layer
        self._raw = layer.raw
        self.is_closing = self._raw.is_closing  # type: ignore[method-assign]
        self.get_write_buffer_size = self._raw.get_write_buffer_size  # type: ignore[method-assign]
        self.set_write_buffer_limits: Callable[..., None] = self._raw.set_write_buffer_limits
        self.can_write_eof = self._raw.can_write_eof  # type: ignore[method-assign]
        self.abort = self._raw.abort  # type: ignore[method-assign]
        self.write = layer.write  # type: ignore[method-assign]

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._raw.get_extra_info(name, default)

    def write_eof(self) -> None:
        self._layer.finish()
        self._raw.write_eof()

    def close(self) -> None:
        if not self._raw.is_closing():
            self._layer.finish()
            self._raw.close()
