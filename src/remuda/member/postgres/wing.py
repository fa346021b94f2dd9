"""The port for PostgreSQL's clients: it listens, knows who may log in, and knows all sessions."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

from remuda.errors import (
    AuthenticationFailed,
    LimitExceeded,
    MemberNotReady,
    RemudaError,
)
from remuda.limits import AUTHENTICATION_PENALTY, STRANGERS_MAX
from remuda.member.base.core import Core
from remuda.member.base.passwords import FAILURES_MAX
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.postgres.backend import Backend, Services
from remuda.member.postgres.connection import SCRATCH_SIZE, PostgresConnection
from remuda.member.postgres.endings import leaving
from remuda.member.postgres.preparing import Preparing
from remuda.member.queries.queries import Queries
from remuda.member.security.users_file import UsersFile
from remuda.member.state.clients import member_of
from remuda.member.state.log import fields
from remuda.member.statements.control import PATIENCE
from remuda.member.statements.plans import Plans
from remuda.member.statements.statements import Statements
from remuda.postgres.login import Known, Startup
from remuda.postgres.scram import NONCE_SIZE, nobody
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.sasl import Credentials
from remuda.rpc.strangers import Verifier
from remuda.rpc.tls_transport import TlsLayer
from remuda.rpc.transport import Request

log = logging.getLogger(__name__)

SECRET_BITS: Final = 32
RESTED: Final = 1.0
"""Seconds without a message after which a leaving member closes a session."""


class PostgresWing(Wing):
    """``listen`` takes the port; from ``start`` on clients are let in. Until then, and while the
    member leaves the cluster, they are told to come again (57P03)."""

    def __init__(
        self, core: Core, peers: Peers, statements: Statements, queries: Queries, plans: Plans
    ) -> None:
        self._core = core
        self._peers = peers
        self._server: asyncio.Server | None = None
        self._context: ssl.SSLContext | None = None
        self._users: UsersFile | None = None
        self._verifier: Verifier | None = None
        self._services = Services(core, statements, queries, plans, Preparing(core, plans))
        self._started = False
        self._strangers: dict[PostgresConnection, None] = {}
        self._sessions: dict[PostgresConnection, None] = {}
        self._resting: dict[PostgresConnection, float] = {}
        """While the member leaves: since when nothing was received."""
        self._failures: Counter[str] = Counter()
        self._nobody_key = core.world.chance.bits(256).to_bytes(32)
        self.scratch = bytearray(SCRATCH_SIZE)

    # --- life ---------------------------------------------------------------------------------

    async def listen(
        self, context: ssl.SSLContext | None, users: UsersFile | None, verifier: Verifier | None
    ) -> None:
        """As the settings say: nobody without TLS if there is a ``context``, nobody without a
        password if there are ``users``. Raises ConnectionRefused for a port that is taken."""
        config = self._core.config
        if config.postgres_port < 0:
            return
        self._context, self._users, self._verifier = context, users, verifier
        sock = self._core.world.network.listen(config.host, config.postgres_port)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, sock=sock)

    def routes(self) -> Routes:
        return Routes(control={RpcType.CANCEL_BACKEND: self._on_cancel})

    def start(self) -> None:
        self._started = True

    @property
    def address(self) -> str:
        """HOST:PORT while it listens; "" otherwise."""
        if self._server is None or not self._server.sockets:
            return ""
        name = self._server.sockets[0].getsockname()
        return f"{name[0]}:{name[1]}"

    def disconnect(self, error: RemudaError) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
        for connection in [*self._strangers, *self._sessions]:
            connection.close(error)

    def __len__(self) -> int:
        """The open sessions."""
        return len(self._sessions)

    @property
    def strangers(self) -> int:
        """Connections that have not logged in."""
        return len(self._strangers)

    @property
    def connections(self) -> list[PostgresConnection]:
        """Those that have logged in, the oldest first."""
        return list(self._sessions)

    @property
    def backends(self) -> list[Backend]:
        """Their sessions."""
        return [c.backend for c in self._sessions if c.backend is not None]

    @property
    def wrong_passwords(self) -> int:
        """Failed logins whose penalty is not over."""
        return self._failures.total()

    def close_idle(self, busy: Collection[ClientChannel]) -> None:
        """While the member leaves: clients on whose connections nothing is open go elsewhere.

        A pool may have checked a connection a moment ago, and be about to use it. So a session that
        was just used is left alone until it has rested, or its client checks it again (then
        ``Backend`` ends it), or nothing begins here any more.
        """
        now = self._core.world.clock.monotonic()
        at_once = self._core.departure.refusing
        for connection in list(self._sessions):
            backend = connection.backend
            if backend is None or not backend.idle or connection in busy:
                self._resting.pop(connection, None)
                continue
            if connection.used or connection not in self._resting:
                connection.rest()
                self._resting[connection] = now
            if at_once or now - self._resting[connection] >= RESTED:
                connection.close(leaving(self._core.number, backend.lost))

    # --- connections --------------------------------------------------------------------------

    def _accept(self) -> PostgresConnection:
        if len(self._strangers) >= STRANGERS_MAX:
            oldest = next(iter(self._strangers))
            oldest.close(LimitExceeded(f"{STRANGERS_MAX} others wait to be let in"))
        connection = PostgresConnection(self)
        self._strangers[connection] = None
        return connection

    def gone(self, connection: PostgresConnection) -> None:
        self._strangers.pop(connection, None)
        if connection in self._sessions:
            del self._sessions[connection]
            self._core.measures.postgres.closed()
        self._resting.pop(connection, None)

    @property
    def tls(self) -> bool:
        return self._context is not None

    def layer(self, connection: PostgresConnection) -> TlsLayer:
        assert self._context is not None
        return TlsLayer(connection, self._context, connection.peer)

    # --- logins -------------------------------------------------------------------------------

    def identify(self, user: str, host: str) -> Known | None:
        """None: this cluster has no users. Raises AuthenticationFailed."""
        file = self._users
        if file is None:
            return None
        if self._failures[host] >= FAILURES_MAX:
            raise AuthenticationFailed(f"too many wrong passwords from {host}; try again later")
        file.look()
        found = file.users.find(user)
        keys = nobody(user, self._nobody_key) if found is None else found.password
        nonce = self._core.world.chance.bits(8 * NONCE_SIZE).to_bytes(NONCE_SIZE)
        return Known(keys, nonce, self._clear)

    @property
    def _clear(self) -> bool:
        """Whether passwords come as they are: the verifier checks, counts and audits them."""
        return self._core.config.postgres_authentication == "password"

    def verify(
        self, credentials: Credentials, host: str, told: Callable[[str | RemudaError], None]
    ) -> None:
        assert self._verifier is not None
        self._verifier(credentials, host, told)

    def failed_login(self, user: str, host: str, error: RemudaError) -> None:
        """A wrong password. Further ones of this address are refused while too many are held
        back."""
        log.warning("wrong password", extra=fields(user=user, peer=host))
        self._core.audit.login(user, host, error)
        self._failures[host] += 1
        asyncio.get_running_loop().call_later(AUTHENTICATION_PENALTY, self._forgive, host)

    def _forgive(self, host: str) -> None:
        self._failures[host] -= 1
        if self._failures[host] <= 0:
            del self._failures[host]

    def open(self, connection: PostgresConnection, startup: Startup, user: str) -> Backend:
        """Let a client in. Raises MemberNotReady, and the InputErrors of its settings."""
        core, services = self._core, self._services
        if core.departure.dismissing:  # 57P03 has libpq try the next host
            raise MemberNotReady(
                "the database system is shutting down",
                detail=f"member {core.number} is leaving the cluster",
                hint="Connect to another member.",
            )
        if not self._started:
            raise MemberNotReady("the database system is starting up")
        core.require_serving()
        if user:
            core.access.user(user)
            if not self._clear:
                core.audit.login(user, connection.host, None)
        client = services.statements.connected(connection, kept=True)
        secret = core.world.chance.bits(SECRET_BITS)
        try:
            backend = Backend(services, connection, startup, client, secret)
        except RemudaError:
            services.statements.clients.remove(connection)
            connection.on_closed.clear()
            raise
        self._strangers.pop(connection, None)
        self._sessions[connection] = None
        core.measures.postgres.opened()
        return backend

    # --- work of others -----------------------------------------------------------------------

    def cancel(self, pid: int, secret: int) -> None:
        """A CancelRequest, which may come to any member: the pid names that of the session. One
        that fits no session is not answered either."""
        member = member_of(pid)
        if member == self._core.number:
            self._cancel_here(pid, secret)
        elif member in self._core.view.by_number:
            self._core.spawn(self._forward_cancel(member, pid, secret), "forwarding a cancel")

    async def _forward_cancel(self, member: int, pid: int, secret: int) -> None:
        context = self._core.context()
        message = control_pb2.CancelBackend(context=context, pid=pid, secret=secret)
        await self._peers.request(member, RpcType.CANCEL_BACKEND, message, (), PATIENCE)

    def _on_cancel(self, request: Request) -> None:
        message = control_pb2.CancelBackend.FromString(request.pbody)
        self._core.observe_peer(message.context)
        self._cancel_here(message.pid, message.secret)
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    def _cancel_here(self, pid: int, secret: int) -> None:
        for connection in self._sessions:
            backend = connection.backend
            if backend is not None and backend.client.pid == pid and backend.secret == secret:
                backend.cancel()
                return
