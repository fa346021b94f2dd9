"""Sessions of the console: a cookie for the browser, a token for requests that change something.

The gateway knows no passwords: it passes them on to the members. A session lives in the memory of
the gateway, until the logout, eight idle hours, or the end of the gateway.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from remuda.gateway.failures import Refused
from remuda.gateway.grids import NOBODY, Credentials

COOKIE: Final = "REMUDA_CONSOLE"
TOKEN_HEADER: Final = "X-Remuda-Token"  # noqa: S105  (the name of a header)
SESSIONS_MAX: Final = 1000
IDLE_MAX: Final = 8 * 3600.0
"""Seconds."""
STREAMS_MAX: Final = 12
"""Open event streams of one session: one for each tab of its browser."""
_TOKEN_BYTES: Final = 32


@dataclass(eq=False, slots=True)
class Session:
    """``token`` is known to the page and to no other one: requests that change something carry it.
    ``streams`` are its open event streams."""

    name: str
    token: str
    credentials: Credentials
    used: float
    streams: set[asyncio.Task[Any]] = field(default_factory=set)

    def close(self) -> None:
        for stream in self.streams:
            stream.cancel()


class Sessions:
    """``now`` gives seconds."""

    def __init__(self, now: Callable[[], float], *, https: bool) -> None:
        self._now = now
        self._https = https
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        """The one that was used last is the last."""

    def begin(self, credentials: Credentials = NOBODY) -> Session:
        name, token = (secrets.token_urlsafe(_TOKEN_BYTES) for _ in range(2))
        session = self._sessions[name] = Session(name, token, credentials, self._now())
        while len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)[1].close()
        return session

    def find(self, request: web.Request) -> Session | None:
        name = request.cookies.get(COOKIE, "")
        session = self._sessions.get(name)
        if session is None:
            return None
        if self._now() - session.used > IDLE_MAX and not session.streams:
            self.end(session)
            return None
        session.used = self._now()
        self._sessions.move_to_end(name)
        return session

    def of(self, request: web.Request) -> Session:
        """Raises Refused when there is none."""
        session = self.find(request)
        if session is None:
            raise Refused(401, "the session has ended: load the page again")
        return session

    def of_change(self, request: web.Request) -> Session:
        """Of a request that may change something. Raises Refused without the token of the page."""
        session = self.of(request)
        given = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(given.encode(), session.token.encode()):
            raise Refused(403, f"the request lacks the token of its page ({TOKEN_HEADER})")
        return session

    def end(self, session: Session) -> None:
        with suppress(KeyError):
            del self._sessions[session.name]
        session.close()

    def close(self) -> None:
        for session in list(self._sessions.values()):
            self.end(session)

    def give(self, response: web.StreamResponse, session: Session) -> None:
        response.set_cookie(
            COOKIE, session.name, httponly=True, secure=self._https, samesite="Strict", path="/"
        )
