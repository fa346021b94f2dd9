"""One connection of a PostgreSQL client on asyncio, from its first byte to its end."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

from remuda.copying.encodings import known_encoding
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    InternalError,
    ProtocolError,
    RemudaError,
)
from remuda.limits import HANDSHAKE_TIMEOUT, KIB, MIB
from remuda.member.base.core import bug
from remuda.member.postgres.backend import Backend
from remuda.member.queries.cursors import Acknowledged
from remuda.member.state.log import fields
from remuda.postgres import login as pl
from remuda.postgres.login import Login, Startup
from remuda.postgres.reader import Reader
from remuda.postgres.reports import error_message
from remuda.postgres.transcoding import Transcoder
from remuda.rpc import tcp
from remuda.rpc.sasl import Credentials
from remuda.rpc.tls_transport import TlsLayer

log = logging.getLogger(__name__)

WRITE_BUFFER_HIGH: Final = 4 * MIB
WRITE_BUFFER_LOW: Final = MIB
READ_AHEAD_MAX: Final = MIB
"""Bytes of further messages that may wait while a statement runs; beyond, nothing is read."""
SCRATCH_SIZE: Final = 256 * KIB
CLOSE_TIMEOUT: Final = 5.0
"""Seconds that a closing connection has to send what was written."""


class House(Protocol):
    """The wing, as a connection sees it."""

    @property
    def scratch(self) -> bytearray:
        """Where all connections receive: each read is looked at before the next one begins."""

    @property
    def tls(self) -> bool: ...

    def layer(self, connection: PostgresConnection) -> TlsLayer: ...
    def identify(self, user: str, host: str) -> pl.Known | None: ...
    def verify(
        self, credentials: Credentials, host: str, told: Callable[[str | RemudaError], None]
    ) -> None: ...
    def failed_login(self, user: str, host: str, error: RemudaError) -> None: ...
    def open(self, connection: PostgresConnection, startup: Startup, user: str) -> Backend: ...
    def cancel(self, pid: int, secret: int) -> None: ...
    def gone(self, connection: PostgresConnection) -> None: ...


class PostgresConnection(asyncio.BufferedProtocol):
    """A ``ClientChannel``. ``backend`` is there once the session is open."""

    protocol = "postgres"

    def __init__(self, house: House) -> None:
        self._house = house
        self._loop = asyncio.get_running_loop()
        self._reader = Reader()
        self._login = Login(tls=house.tls)
        self.backend: Backend | None = None
        self.peer = ""
        self.user = ""
        self.closed = False
        self.writable = True
        self.on_writable: list[Callable[[], None]] = []
        self.on_closed: list[Callable[[RemudaError], None]] = []
        self._raw: asyncio.Transport | None = None
        self._transport: asyncio.Transport
        self._timer = self._loop.call_later(HANDSHAKE_TIMEOUT, self._too_late)
        self._untaken: deque[Acknowledged] = deque()
        self._written: list[bytes | memoryview] = []
        self._transcoder: Transcoder | None = None
        self._advancing = False
        self._reading = True
        self.used = False
        """Whether anything was received since ``rest``."""

    @property
    def application(self) -> str:
        return "" if self.backend is None else self.backend.application

    @property
    def unanswered(self) -> int:
        return int(self.backend is not None and self.backend.busy)

    @property
    def unsent(self) -> int:
        """Bytes that were written and have not left."""
        return self._transport.get_write_buffer_size()

    @property
    def pages_held(self) -> int:
        """Pages of results that are not asked for before the client has read more."""
        return len(self._untaken)

    @property
    def host(self) -> str:
        return self.peer.rpartition(":")[0]

    # --- asyncio's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The first time by TCP; once more by TLS, when that is on."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        if self._raw is not None:
            self._login.encrypted()
            return
        self._raw = self._transport
        tcp.prepare(transport.get_extra_info("socket"))
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH, low=WRITE_BUFFER_LOW)
        address = transport.get_extra_info("peername")
        self.peer = f"{address[0]}:{address[1]}" if address else "?"

    def get_buffer(self, sizehint: int) -> bytearray:
        del sizehint
        return self._house.scratch

    def buffer_updated(self, count: int) -> None:
        if self.closed:
            return
        self.used = True
        try:
            self._reader.feed(memoryview(self._house.scratch)[:count])
        except ProtocolError as error:
            self._refuse(error)
            return
        self.advance()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        why = f": {exc}" if exc else " by the client"
        self.failed(ConnectionBroken(f"the connection to {self.peer} was closed{why}"))

    def failed(self, error: RemudaError) -> None:
        """There is no connection any more; TLS below may not have come to be."""
        self._timer.cancel()
        if self.closed:
            return
        self.closed = True
        self._house.gone(self)
        self._untaken.clear()
        callbacks, self.on_closed = self.on_closed, []
        for callback in callbacks:
            callback(error)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        while self._untaken and self.writable:
            self._untaken.popleft()(None)
        for callback in list(self.on_writable):
            callback()
        self.advance()

    # --- for the session ----------------------------------------------------------------------

    def write(self, data: bytes | memoryview) -> None:
        """Writes that happen while messages are taken leave in one piece."""
        if self.closed or not data:
            return
        if self._transcoder is not None:
            data = self._transcoder.written(data)
        if self._advancing:
            self._written.append(data)
        else:
            self._transport.write(data)

    def speaks(self, encoding: str) -> None:
        """The client reads and writes texts in this encoding from now on."""
        codec = known_encoding(encoding)
        self._transcoder = Transcoder(encoding, codec) if codec else None
        self._reader.reads(self._transcoder)

    def _flush(self) -> None:
        written = self._written
        if not written:
            return
        self._written = []
        if not self._transport.is_closing():
            self._transport.write(written[0] if len(written) == 1 else b"".join(written))

    def when_taken(self, acknowledged: Acknowledged) -> None:
        """In the next step of the loop, or when the client has read enough: others are served
        meanwhile."""
        if self.closed:
            return
        if self.writable:
            self._loop.call_soon(acknowledged, None)
        else:
            self._untaken.append(acknowledged)

    def advance(self) -> None:
        """Take the messages that are here, while the client takes the answers."""
        if self._advancing or self.closed:
            return
        if self._reading and self.backend is not None and self._reader.empty:
            return
        self._advancing = True
        try:
            while self.writable and not self.closed and self._step():
                if self._reader.empty and self.backend is not None:
                    break
                if len(self._written) > 1 and sum(map(len, self._written)) > WRITE_BUFFER_LOW:
                    self._flush()
        except Exception as error:  # noqa: BLE001 (the boundary: a bug ends this connection alone)
            self._refuse(bug(error, f"a message of {self.peer}"))
        finally:
            self._advancing = False
            self._flush()
        if not self._reading or len(self._reader) > READ_AHEAD_MAX:
            self._watch_backlog()

    def _step(self) -> bool:
        if self.backend is not None:
            return self.backend.step(self._reader)
        try:
            effects = self._login.step(self._reader)
        except ProtocolError as error:
            effects = self._login.refused(error)
        if effects is None:
            return False
        self._perform(effects)
        return True

    def _watch_backlog(self) -> None:
        """While the client sends more than is served, nothing is read."""
        raw = self._raw
        if raw is None or raw.is_closing() or self.backend is None:
            return
        rows = self.backend.input  # a message of a COPY FROM may be longer: it takes all of it
        waits = self.backend.busy and (rows is None or rows.full)
        stalled = (waits or not self.writable) and len(self._reader) > READ_AHEAD_MAX
        if stalled and self._reading:
            self._reading = False
            raw.pause_reading()
        elif not stalled and not self._reading:
            self._reading = True
            raw.resume_reading()

    # --- the login ----------------------------------------------------------------------------

    def _perform(self, effects: list[pl.Effect]) -> None:
        for effect in effects:
            match effect:
                case pl.Write(data):
                    self.write(data)
                case pl.Encrypt():
                    self._encrypt()
                case pl.Identify(user):
                    self._identify(user)
                case pl.Verify(credentials):
                    self._house.verify(credentials, self.host, self._checked)
                case pl.Open(startup, user):
                    self._open(startup, user)
                case pl.CancelWork(pid, secret):
                    self._house.cancel(pid, secret)
                case pl.Delay(seconds, error, counted):
                    self._delay(seconds, error, counted=counted)
                case pl.Hang(error):
                    self.end(error)

    def _encrypt(self) -> None:
        """TLS takes the socket's bytes from here on, and gives the clear ones to this."""
        self._flush()
        assert self._raw is not None
        layer = self._house.layer(self)
        self._raw.set_protocol(layer)
        layer.connection_made(self._raw)

    def _identify(self, user: str) -> None:
        try:
            known = self._house.identify(user, self.host)
        except RemudaError as error:
            self._perform(self._login.refused(error))
            return
        self._perform(self._login.identified(known))

    def _checked(self, outcome: str | RemudaError) -> None:
        if self.closed:  # no session may begin that nothing would end
            return
        self._perform(self._login.checked(outcome))
        self.advance()

    def _delay(self, seconds: float, error: RemudaError, *, counted: bool) -> None:
        if not counted:
            self._house.failed_login(self._login.user, self.host, error)
        self._loop.call_later(seconds, lambda: self._perform(self._login.refused(error)))

    def _open(self, startup: Startup, user: str) -> None:
        self.user = user
        try:
            self.backend = self._house.open(self, startup, user)
        except RemudaError as error:
            self._perform(self._login.refused(error))
            return
        self._timer.cancel()
        self._reader.authenticated()
        self.backend.greet()

    def _too_late(self) -> None:
        self._refuse(
            ConnectionRefused(f"{self.peer} did not log in within {HANDSHAKE_TIMEOUT:g} s")
        )

    # --- ends ---------------------------------------------------------------------------------

    def rest(self) -> None:
        """Take note of the next bytes."""
        self.used = False

    def _refuse(self, error: RemudaError) -> None:
        if not isinstance(error, InternalError):
            log.warning("closing a connection", extra=fields(peer=self.peer, error=error.message))
        self.close(error)

    def close(self, error: RemudaError | None = None) -> None:
        """Tell the client why, and close."""
        if error is not None and not self.closed and self._raw is not None:
            self._written.append(error_message(error, fatal=True))
        self.end(error)

    def end(self, error: RemudaError | None) -> None:
        """Send all that was written, and close."""
        if self.closed:
            return
        if self._raw is None:
            self.failed(error or ConnectionBroken("it was closed before it was open"))
            return
        self._flush()
        self._transport.close()
        self.failed(error or ConnectionBroken(f"the connection to {self.peer} was closed here"))
        self._loop.call_later(CLOSE_TIMEOUT, self._raw.abort)
