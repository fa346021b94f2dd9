"""``connect``: from addresses to a client on the running event loop."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Any

from remuda.client.asynchronous.client import Client
from remuda.client.core.core import Core
from remuda.client.network.address import Address, parse_addresses
from remuda.client.network.login import security
from remuda.client.network.loop_connections import AsyncioPorts
from remuda.client.network.ports import REQUEST_TIMEOUT, Settings, checked_settings
from remuda.limits import CONNECT_TIMEOUT


class Connecting:
    """A client that is not connected yet: ``await`` it, or enter it by ``async with``."""

    def __init__(self, addresses: tuple[Address, ...], settings: Settings) -> None:
        self._addresses = addresses
        self._settings = settings
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> Client:
        core = Core(self._addresses, self._settings, AsyncioPorts())
        await core.open()
        return Client(core)


def connect(
    addresses: str | Address | Iterable[str | Address] = "127.0.0.1",
    *,
    retry_reads: int = 0,
    retry_writes: int = 0,
    connect_timeout: float = CONNECT_TIMEOUT,
    request_timeout: float = REQUEST_TIMEOUT,
    max_connections: int | None = None,
    application: str = "python",
    tls: bool | None = None,
    ca: str = "",
    certificate: str = "",
    key: str = "",
    server_name: str = "",
    user: str = "",
    password: str = "",
) -> Connecting:
    """Connect to a cluster through any of its members: ``"host:port"`` or a list of them.

        client = await remuda.aio.connect("127.0.0.1:31010")
        async with remuda.aio.connect("127.0.0.1:31010") as client: ...

    ``retry_reads``: how often a read (``get``, ``size``, SELECT, ...) is repeated after a lost
    connection, ``retry_writes`` the same of a ``put`` or ``put_all``, which may then be carried out
    twice; other writes never are. ``connect_timeout`` and ``request_timeout`` are seconds;
    the latter bounds requests other than statements. ``max_connections`` bounds the connections to
    one member (None: 4; all tasks share them). ``application`` is shown in the members' logs.

    ``tls`` switches encryption on (so does naming a file): ``ca`` is the PEM file of the
    certificates to trust (without it, the system's), ``certificate`` and ``key`` what this client
    shows, ``server_name`` what the members' certificates name if not their hosts. ``user`` and
    ``password`` are for clusters that have users.

    Raises InputError for an address that is none; awaiting raises MemberUnavailable when no member
    answers, TlsFailed, AuthenticationFailed.
    """
    protection = security(
        tls=tls,
        ca=ca,
        certificate=certificate,
        key=key,
        server_name=server_name,
        user=user,
        password=password,
    )
    settings = checked_settings(
        application=application,
        retry_reads=retry_reads,
        retry_writes=retry_writes,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        max_connections=max_connections,
        security=protection,
    )
    return Connecting(parse_addresses(addresses), settings)
