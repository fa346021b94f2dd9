"""Clients of the cluster, one for each user of the gateway."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from remuda.aio import Client
from remuda.client.blocking.tool_access import refuse_transactions

USERS_MAX: Final = 100
"""Clients kept; the one that was used longest ago goes first."""
TRUSTED_SECONDS: Final = 60.0
"""After this time the members are asked about a password again: it may have been changed."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Passed on to the members, which know whether they are right. Empty: none were given."""

    user: str = ""
    password: str = ""

    @property
    def key(self) -> str:
        text = f"{len(self.user)}:{self.user}{self.password}".encode()
        return hashlib.sha256(text).hexdigest()


NOBODY: Final = Credentials()


@dataclass(slots=True)
class _Kept:
    client: Client
    since: float
    """When its password was right, on the loop's clock."""
    users: int = 0
    dropped: bool = False


class Grids:
    """``connect(credentials)`` makes a client (a coroutine), ``settings`` are the statements with
    which its session begins: settings travel with each of its statements."""

    def __init__(self, connect: Callable[[Credentials], Any], settings: Sequence[str]) -> None:
        self._connect = connect
        self._settings = settings
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._making: dict[str, asyncio.Task[_Kept]] = {}

    @asynccontextmanager
    async def client(self, credentials: Credentials) -> AsyncIterator[Client]:
        """Raises AuthenticationFailed, MemberUnavailable."""
        kept = await self._of(credentials)
        while kept.dropped:
            kept = await self._of(credentials)
        kept.users += 1
        try:
            yield kept.client
        finally:
            kept.users -= 1
            if kept.dropped and not kept.users:
                await kept.client.close()

    async def _of(self, credentials: Credentials) -> _Kept:
        """Requests of one user wait for one connection, and nobody waits for another user's."""
        key = credentials.key
        kept = self._kept.get(key)
        if kept is not None and _now() - kept.since > TRUSTED_SECONDS:
            await self._drop(key)
            kept = self._kept.get(key)  # another request may have made one meanwhile
        if kept is None:
            making = self._making.get(key)
            if making is None:
                making = asyncio.create_task(self._keep(key, credentials))
                making.add_done_callback(lambda task: task.cancelled() or task.exception())
                self._making[key] = making
            return await asyncio.shield(making)
        self._kept.move_to_end(key)
        return kept

    async def _keep(self, key: str, credentials: Credentials) -> _Kept:
        try:
            kept = self._kept[key] = _Kept(await self._made(credentials), _now())
        finally:
            del self._making[key]
        if len(self._kept) > USERS_MAX:
            await self._drop(next(iter(self._kept)))
        return kept

    async def _made(self, credentials: Credentials) -> Client:
        client: Client = await self._connect(credentials)
        refuse_transactions(client)  # a request of HTTP is no session
        try:
            for setting in self._settings:
                await (await client.sql(setting)).close()
        except BaseException:
            await client.close()
            raise
        return client

    async def forget(self, credentials: Credentials) -> None:
        """The user's next request gets a new client, with a session as it should be."""
        if credentials.key in self._kept:
            await self._drop(credentials.key)

    async def _drop(self, key: str) -> None:
        kept = self._kept.pop(key)
        kept.dropped = True
        if not kept.users:
            await kept.client.close()

    async def close(self) -> None:
        for making in list(self._making.values()):
            making.cancel()
        for key in list(self._kept):
            kept = self._kept.pop(key)
            await kept.client.close()


def _now() -> float:
    return asyncio.get_running_loop().time()
