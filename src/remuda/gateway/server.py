"""The HTTP server: routes, what is refused before anything is read, errors as JSON."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from remuda.aio import Client, connect
from remuda.errors import (
    AuthenticationFailed,
    ConnectionRefused,
    InputError,
    InternalError,
    RemudaError,
)
from remuda.gateway.console.console import Console
from remuda.gateway.console.topics import APPLICATION
from remuda.gateway.failures import Refused, failure_text, refusal_text, status_of
from remuda.gateway.grids import NOBODY, Credentials, Grids
from remuda.gateway.login import Logins
from remuda.gateway.pages import Pages
from remuda.gateway.queries import Queries
from remuda.limits import HTTP_PORT, MIB, STATEMENT_LENGTH_MAX
from remuda.rpc.tls import TlsFiles, server_context

log = logging.getLogger(__name__)
http_log = logging.getLogger(f"{__name__}.http")
http_log.setLevel(logging.CRITICAL)  # what clients send wrong is answered; bugs are in ``log``

BODY_SIZE_MAX: Final = 2 * STATEMENT_LENGTH_MAX + MIB
"""A statement of the largest length in JSON, where characters may take more room."""
SHUTDOWN_TIMEOUT: Final = 2.0
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """``connect`` names members; ``options`` go to ``remuda.aio.connect`` with them. ``remote``: it
    may listen where other machines reach it; InputError otherwise. ``https``: certificate and key
    that it shows; None: it speaks HTTP. ``console``: it has a page for browsers."""

    connect: str
    host: str = "127.0.0.1"
    port: int = HTTP_PORT
    remote: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    https: TlsFiles | None = None
    console: bool = True

    def __post_init__(self) -> None:
        if self.remote or is_loopback(self.host):
            return
        if self.https is None:
            raise InputError(
                f"{self.host} can be reached from other machines, and HTTP is not encrypted",
                hint="Listen on 127.0.0.1, or give it a certificate (--https-certificate) and "
                "say --allow-remote.",
            )
        raise InputError(
            f"{self.host} can be reached from other machines",
            hint="Say --allow-remote; whoever reaches it may ask what the grid lets its users ask.",
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Gateway:
    """``await start()``, then it serves until ``await stop()``."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._grids = Grids(self._client, ("SET sql_dialect = 'drill'",))
        logins = Logins(self._grids, https=settings.https is not None)
        self.queries = Queries(self._grids, logins)
        self.console = self._console() if settings.console else None
        pages = Pages(self._grids, logins)
        own = pages.index_routes() if self.console is None else self.console.routes()
        guards = [self._errors, self._guard]
        app = web.Application(client_max_size=BODY_SIZE_MAX, middlewares=guards)
        app.add_routes(
            [
                *own,
                *pages.routes(),
                web.post("/query.json", self.queries.on_query),
                web.get("/profiles/cancel/{query}", self.queries.on_cancel),
                web.post("/j_security_check", logins.on_login),
                web.post("/logout", logins.on_logout),
            ]
        )
        if self.console is not None:
            app.on_shutdown.append(self.console.shutdown)
        # A request whose client has gone is cancelled, and with it its statement.
        self._runner = web.AppRunner(
            app,
            handler_cancellation=True,
            access_log=None,
            logger=http_log,
            shutdown_timeout=SHUTDOWN_TIMEOUT,
        )
        self.address = ""
        self.url = ""

    async def start(self) -> None:
        """Raises ConnectionRefused when it cannot listen, InputError for certificates that do not
        serve."""
        settings = self._settings
        https = settings.https
        tls = None if https is None else server_context(https, client_certificates=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, settings.host, settings.port, ssl_context=tls)
        try:
            await site.start()
        except OSError as problem:
            await self.stop()
            raise ConnectionRefused(
                f"cannot listen on {settings.host}:{settings.port}: {problem.strerror or problem}"
            ) from problem
        host, port = self._runner.addresses[0][:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.url = f"{'http' if tls is None else 'https'}://{self.address}"

    async def stop(self) -> None:
        await self._runner.cleanup()
        await self._grids.close()
        if self.console is not None:
            await self.console.close()

    async def _client(
        self, credentials: Credentials, application: str = "remuda gateway"
    ) -> Client:
        options = dict(self._settings.options)
        if credentials.user or credentials.password:
            options |= {"user": credentials.user, "password": credentials.password}
        return await connect(self._settings.connect, application=application, **options)

    def _console(self) -> Console:
        """Nobody is at the console as the user whom the gateway itself was told."""

        async def client(credentials: Credentials) -> Client:
            if credentials == NOBODY and self._settings.options.get("user"):
                raise AuthenticationFailed("the console needs a user", hint="Log in.")
            return await self._client(credentials, APPLICATION)

        now = asyncio.get_running_loop().time
        return Console(client, now, https=self._settings.https is not None)

    # --- in front of every handler ------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Other web pages, open in the same browser, must not reach the grid through it."""
        if request.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site"):
            raise Refused(403, "requests of other web pages are refused")
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            raise Refused(403, f"requests of pages from {origin} are refused")
        if not self._settings.remote and not self._is_own_name(request.host):
            raise Refused(403, f"{request.host!r} is not a name of this machine's loopback")
        return await handler(request)

    def _is_own_name(self, host: str) -> bool:
        """Against names of others that were made to point here (DNS rebinding)."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        name = name.removeprefix("[").removesuffix("]").lower()
        return name in _LOCAL_NAMES or name == self._settings.host.lower()

    @web.middleware
    async def _errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        status, text, headers = 500, "", {}
        try:
            return await handler(request)
        except Refused as error:
            status, text = error.status, refusal_text(error.message)
        except web.RequestPayloadError:
            status, text = 400, refusal_text("the body of the request cannot be read")
        except web.HTTPException as error:
            status, text = error.status, refusal_text(_explained(error, request))
        except RemudaError as error:
            status, text = status_of(error), failure_text(error, "")
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("request %s %s failed", request.method, request.path)
            bug = InternalError(f"{type(error).__name__}: {error}")
            text = failure_text(bug, "")
        if status == web.HTTPUnauthorized.status_code:
            headers["WWW-Authenticate"] = 'Basic realm="Remuda", charset="UTF-8"'
        return web.Response(
            status=status, text=text, content_type="application/json", headers=headers
        )


def _explained(error: web.HTTPException, request: web.Request) -> str:
    match error.status:
        case web.HTTPNotFound.status_code:
            return f"there is no {request.path} here; statements go to POST /query.json"
        case web.HTTPMethodNotAllowed.status_code:
            return f"{request.path} cannot be asked by {request.method}"
        case web.HTTPRequestEntityTooLarge.status_code:
            return f"a request has at most {BODY_SIZE_MAX} bytes"
        case _:
            return error.reason
