"""The sockets of the metrics server: plain HTTP, or HTTPS where the member has a certificate."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Final, cast

from remuda.errors import RemudaError
from remuda.member.base.core import Core, bug
from remuda.member.monitoring.http_requests import Asked, HttpConnection, Page, text

log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 64
"""Beyond, the oldest one goes: a scraper and a load balancer need one each."""
IDLE_TIMEOUT: Final = 75.0
"""Seconds without a complete request after which a connection is closed. Scrapers that come every
minute keep theirs."""

Serve = Callable[[Asked, str], Coroutine[None, None, Page]]
"""Answers a request of the peer at an address."""


class _Http(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._connection = HttpConnection()
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._host = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._host = (transport.get_extra_info("peername") or ("?",))[0]
        self._server.opened(self)
        self._wind()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._timer is not None:
            self._timer.cancel()
        self._server.ended(self)

    def data_received(self, data: bytes) -> None:
        self._look(data)

    def close(self) -> None:
        self._transport.close()

    def _wind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, self._transport.abort)

    def _look(self, data: bytes) -> None:
        asked = self._connection.receive(data, self._transport.write)
        if asked is not None:
            self._wind()
            self._server.serve(asked, self._host, self._answer)
        elif self._connection.closed:
            self._transport.close()

    def _answer(self, page: Page) -> None:
        if self._transport.is_closing():
            return
        self._connection.answer(page, self._transport.write)
        if self._connection.closed:
            self._transport.close()
        else:
            self._look(b"")  # a request may have come meanwhile


class MetricsServer:
    """Listens; each request is served by ``serve`` as a task of the member."""

    def __init__(self, core: Core, serve: Serve) -> None:
        self._core = core
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._connections: dict[_Http, None] = {}

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port, while it listens."""
        if self._server is None or not self._server.sockets:
            return None
        name = self._server.sockets[0].getsockname()
        return name[0], name[1]

    async def start(self, sock: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Serve on a bound socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Http(self), sock=sock, ssl=tls)

    def close(self) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()

    def opened(self, connection: _Http) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            next(iter(self._connections)).close()
        self._connections[connection] = None

    def ended(self, connection: _Http) -> None:
        self._connections.pop(connection, None)

    def serve(self, asked: Asked, host: str, answer: Callable[[Page], None]) -> None:
        async def run() -> None:
            try:
                page = await self._serve(asked, host)
            except RemudaError as error:
                page = text(500, error.message)
            except Exception as error:  # noqa: BLE001 (the boundary: see core.bug)
                page = text(500, bug(error, f"page {asked.path}").message)
            answer(page)

        self._core.spawn(run(), "page of the metrics server")
