"""The pages of the metrics server: /health, /ready and /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from remuda.catalog.users import ALL, Role
from remuda.errors import InsufficientPrivilege, RemudaError
from remuda.member.base.core import Core
from remuda.member.metrics.families import CONTENT_TYPE, Family, exposition
from remuda.member.monitoring.http_requests import Asked, Page, text
from remuda.member.monitoring.sources import ready
from remuda.rpc.sasl import Credentials
from remuda.rpc.strangers import Verifier

_CHALLENGE: Final = (("WWW-Authenticate", 'Basic realm="remuda", charset="UTF-8"'),)


class Pages:
    """``families`` gives what /metrics shows; ``verifier`` knows the users, None: there are none.

    /health and /ready need no login, because load balancers have none, and say one word. The names
    of maps stand in /metrics, so users need a role on all maps to see it.
    """

    def __init__(
        self, core: Core, families: Callable[[], Iterable[Family]], verifier: Verifier | None
    ) -> None:
        self._core = core
        self._families = families
        self._verifier = verifier

    async def serve(self, asked: Asked, host: str) -> Page:
        """The page that the peer at ``host`` gets."""
        match asked.path:
            case "/health":
                return text(200, "ok")
            case "/ready":
                return self._ready()
            case "/metrics":
                refusal = await self._refusal(asked, host)
                return refusal or Page(200, exposition(self._families()), CONTENT_TYPE)
            case "/":
                return text(200, "pages: /metrics /health /ready")
        return text(404, "no such page; there are /metrics, /health and /ready")

    def _ready(self) -> Page:
        core = self._core
        if ready(core):
            return text(200, "ready")
        if core.departure.donating:
            return text(503, "donor")
        if core.stopping or core.departure.dismissing:
            return text(503, "leaving")
        return text(503, "starting" if not core.view.number else "waiting")

    async def _refusal(self, asked: Asked, host: str) -> Page | None:
        if self._verifier is None:
            return None
        if asked.credentials is None:
            return text(401, "give a user and a password (HTTP Basic)", _CHALLENGE)
        told: asyncio.Future[str | RemudaError] = asyncio.get_running_loop().create_future()

        def tell(outcome: str | RemudaError) -> None:
            if not told.done():
                told.set_result(outcome)

        self._verifier(Credentials(*asked.credentials), host, tell)
        outcome = await told
        if isinstance(outcome, RemudaError):
            return text(401, outcome.message, _CHALLENGE)
        try:
            self._core.access.require(outcome, Role.READ, ALL)
        except InsufficientPrivilege as error:
            return text(403, error.message)
        return None
