"""CancelRequests of PostgreSQL's clients: they come to any member, and may be lost or late.

A session sleeps while somebody cancels: by its number and its secret, by a wrong secret, or by
those of a session that has ended, whose number another one has. The statement is cancelled if and
only if the request names its session and arrives.
"""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from random import Random

from sim_cluster import Simulation, Violation, simulation
from sim_loop import Node
from sim_network import LOST, Fate, Sent

from remuda.postgres.login import CANCEL_REQUEST

CANCELED = "57014"
SLEEP = 5
LATE = 1.0
SOON = 0.5
"""Seconds within which a statement ends after its cancel."""
KINDS = ("right", "lost", "wrong secret", "ended", "ended meanwhile")


class Connection(asyncio.BufferedProtocol):
    """Takes bytes as the simulated network gives them."""

    def __init__(self) -> None:
        self._room = bytearray(64 * 1024)

    def get_buffer(self, _sizehint):
        return self._room

    def buffer_updated(self, count):
        self.received(bytes(self._room[:count]))

    def received(self, data: bytes) -> None:
        """Nothing is expected."""


class PostgresSession(Connection):
    """One session that speaks the protocol by hand. ``pid`` and ``secret`` name it."""

    def __init__(self) -> None:
        super().__init__()
        self.pid = self.secret = 0
        self._buffer = b""
        self._code = ""
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        given = b"user\0bob\0database\0shop\0\0"
        transport.write(struct.pack("!ii", 8 + len(given), 196608) + given)

    def received(self, data):
        self._buffer += data
        while len(self._buffer) >= 5:
            size = 1 + struct.unpack_from("!i", self._buffer, 1)[0]
            if len(self._buffer) < size:
                return
            message, self._buffer = self._buffer[:size], self._buffer[size:]
            self._take(message[:1], message[5:])

    def _take(self, kind: bytes, body: bytes) -> None:
        if kind == b"K":
            self.pid, self.secret = struct.unpack("!iI", body)
        elif kind == b"E":
            fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
            self._code = fields[b"C"]
        elif kind == b"Z" and not self._ready.done():
            self._ready.set_result(self._code)

    async def ready(self) -> str:
        """The SQLSTATE of an error, or ""."""
        return await self._ready

    async def run(self, text: str) -> str:
        self._code = ""
        self._ready = asyncio.get_running_loop().create_future()
        content = text.encode() + b"\0"
        self.transport.write(b"Q" + struct.pack("!i", 4 + len(content)) + content)
        return await self._ready


class CancelRun:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"{seed}/cancels")
        self.fate = Fate()
        self.ends: Counter[tuple[str, str]] = Counter()

    def run(self) -> CancelRun:
        with simulation(self.seed, 3) as sim:
            self.sim: Simulation = sim
            sim.form()
            sim.network.rules.append(self._rule)
            for number, kind in enumerate(self.random.sample(KINDS, len(KINDS))):
                sim.complete(self.one(kind, Node(f"u{number}")))
            sim.settle(60.0)
            sim.verdict()
        return self

    def _rule(self, sent: Sent) -> Fate | None:
        return self.fate if sent.name == "CANCEL_BACKEND" and sent.mode == 0 else None

    async def one(self, kind: str, node: Node) -> None:
        await asyncio.shield(node.context.run(self.sim.loop.create_task, self._one(kind)))

    async def _one(self, kind: str) -> None:
        here, through = self.random.choice((1, 2, 3)), self.random.choice((1, 2, 3))
        session = await self._open(here)
        named = (session.pid, session.secret ^ (kind == "wrong secret"))
        self.fate = {"lost": LOST, "ended meanwhile": Fate((LATE,))}.get(kind, Fate())
        if kind == "ended":
            session = await self._replaced(session, here)
        elif kind == "ended meanwhile":
            through = here % 3 + 1
            await self._cancel(through, *named)
            session = await self._replaced(session, here)
        running = asyncio.ensure_future(session.run(f"SELECT pg_sleep({SLEEP})"))
        await asyncio.sleep(self.random.uniform(0.05, 0.3))
        began = self.sim.loop.now
        if kind != "ended meanwhile":
            await self._cancel(through, *named)
        code, took = await running, self.sim.loop.now - began
        self.sim.note(f"{kind} through {through} to {here}: {code!r} after {took:.2f} s")
        self.ends[kind, code] += 1
        arrives = kind == "right" or (kind == "lost" and through == here)
        if code != (CANCELED if arrives else "") or (arrives and took > SOON):
            raise Violation(
                f"a cancel ({kind}) through member {through} of a session of member {here}: the"
                f" statement ended by {code!r} after {took:.2f} s"
            )
        if await session.run("SELECT 1"):
            raise Violation(f"the session does not go on after a cancel ({kind})")
        session.transport.close()

    async def _open(self, member: int) -> PostgresSession:
        host, port = self.sim.members[member].postgres.address.split(":")
        _, session = await self.sim.loop.create_connection(PostgresSession, host, int(port))
        assert await session.ready() == ""
        return session

    async def _replaced(self, session: PostgresSession, member: int) -> PostgresSession:
        """Another session under the same number: the numbers have gone round meanwhile."""
        wing = self.sim.members[member].postgres
        session.transport.close()
        while wing.backends:
            await asyncio.sleep(0.01)
        wing._services.statements.clients._pids._last = (session.pid & 0xFFFF) - 1
        other = await self._open(member)
        assert (other.pid, other.secret != session.secret) == (session.pid, True)
        return other

    async def _cancel(self, member: int, pid: int, secret: int) -> None:
        host, port = self.sim.members[member].postgres.address.split(":")
        transport, _ = await self.sim.loop.create_connection(Connection, host, int(port))
        transport.write(struct.pack("!iiiI", 16, CANCEL_REQUEST, pid, secret))
