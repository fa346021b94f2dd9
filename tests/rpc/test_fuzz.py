"""Bytes that no honest peer sends, on all three servers of real members (simulated sockets).

Whatever comes: no exception that nobody expected (members log those as errors), no connection that
stays when its client has gone, no buffer beyond a frame, and the next client is served.
"""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "simulation"))
from sim_client import Client
from sim_cluster import Simulation, simulation
from sim_loop import Node
from sim_network import Transport

from remuda.limits import FRAME_SIZE_MAX
from remuda.rpc.frame import (
    RECEIVE_BUFFER_SIZE,
    REQUEST,
    Frame,
    FrameReader,
    encode,
    varint,
)
from remuda.rpc.messages import control_pb2

SEEDS = int(os.environ.get("REMUDA_FUZZ_SEEDS", "12"))
SOAK_SEEDS = int(os.environ.get("REMUDA_FUZZ_SOAK_SEEDS", "2000"))
CHANNELS = ("user", "control", "data")
ATTACKS = 40
PROMISED = (
    "Commits._commit",
    " jobs",
    " staging",
    " prepared",
    " turns",
    " settling",
    "cancel messages",
)
"""What a member is given that asks for it, until it is lost: strangers here claim to be one."""
TRUSTED = {control_pb2.VIEW_INSTALL, control_pb2.CATALOG_INSTALL, control_pb2.CATALOG_VOTE}
"""What brings the whole cluster a new state: a member that says so is believed."""


class Stranger(asyncio.BufferedProtocol):
    """A peer that writes what it likes."""

    def __init__(self) -> None:
        self.room = bytearray(65536)
        self.heard = 0
        self.answers = bytearray()
        self.lost = False
        self.transport: Any = None
        self.closed = False

    def connection_made(self, transport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.room)

    def buffer_updated(self, count: int) -> None:
        self.heard += count
        self.answers += self.room[:count]

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error) -> None:
        self.lost = self.closed = True


def frames_of(data: bytes) -> list[Frame]:
    reader = FrameReader()
    found = []
    view = memoryview(data)
    while view:
        room = reader.room
        count = min(len(room), len(view))
        room[:count] = view[:count]
        found += reader.received(count)
        view = view[count:]
    assert reader.error is None
    return found


class Attack:
    """One cluster of two members, and the conversations that were heard on its channels."""

    def __init__(self, sim: Simulation, seed: int) -> None:
        self.sim = sim
        self.random = Random(f"{seed}/fuzz")
        self.talks: dict[str, list[bytes]] = {channel: [] for channel in CHANNELS}
        self.written: dict[Transport, bytearray] = {}
        sim.network.taps.append(self._tap)
        sim.form()
        sim.complete(self._converse())
        for end, data in self.written.items():
            if end.outgoing and end.channel in CHANNELS:
                self.talks[end.channel].append(bytes(data))
        sim.network.taps.clear()
        self.count = 0

    def _tap(self, end: Transport, data: bytes) -> None:
        self.written.setdefault(end, bytearray()).extend(data)

    async def _converse(self) -> None:
        client = await self.sim.client(1)
        await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT)")
        await client.run("INSERT INTO t VALUES (1, 1), (2, 2), (3, 1), (4, 9)")
        await client.run("SELECT a.id, b.id FROM t a JOIN t b ON a.g = b.g", page_rows=1)
        await client.put(await client.schema("t"), 5, 6)
        second = await self.sim.client(2)
        await second.run("SELECT g, count(*) FROM t GROUP BY g")

    # ---- what is sent ----

    def bytes_for(self, channel: str) -> bytes:
        chance = self.random
        kind = chance.choice(("random", "truncated", "length", "mutated", "mutated", "spliced",
                              "bodies", "bodies"))  # fmt: skip
        talk = chance.choice(self.talks[channel])
        frames = [frame for frame in frames_of(talk) if self._harmless(channel, frame)]
        hello = encode(frames[0])
        if kind == "random":
            head = hello if chance.random() < 0.5 else b""
            return head + chance.randbytes(chance.randint(1, 3000))
        if kind == "truncated":
            return talk[: chance.randint(1, min(len(talk), 4000))]
        if kind == "length":
            size = chance.choice((0, 2**31, 2**35 - 1, FRAME_SIZE_MAX + 1, FRAME_SIZE_MAX - 1))
            return (hello if chance.random() < 0.7 else b"") + varint(size) + chance.randbytes(200)
        if kind == "spliced":
            chosen = [hello, *(encode(chance.choice(frames)) for _ in range(8))]
            return b"".join(chosen)
        if kind == "mutated":
            raw = bytearray(b"".join(encode(frame) for frame in frames[:20]))
            for _ in range(chance.randint(1, 6)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
            return bytes(raw)
        return hello + b"".join(self._body(chance.choice(frames)) for _ in range(6))

    def _harmless(self, channel: str, frame: Frame) -> bool:
        return channel != "control" or frame.rpc_type not in TRUSTED

    def _body(self, frame: Frame) -> bytes:
        """A whole frame whose content is not what it should be."""
        chance = self.random
        pbody, dbody = bytearray(frame.pbody), bytearray(frame.dbody)
        for body in (pbody, dbody):
            for _ in range(chance.randint(0, 4)):
                if body:
                    body[chance.randrange(len(body))] = chance.randrange(256)
            if body and chance.random() < 0.2:
                del body[chance.randrange(len(body)) :]
        rpc_type = frame.rpc_type if chance.random() < 0.9 else chance.randrange(160)
        if rpc_type in TRUSTED:
            rpc_type = 0
        self.count += 1
        return encode(Frame(REQUEST, self.count, rpc_type, bytes(pbody), bytes(dbody)))

    # ---- sending ----

    async def attack(self, channel: str, data: bytes, pieces: int) -> None:
        sim, chance = self.sim, self.random
        number = chance.choice(sorted(sim.members))
        stranger = await connected(sim, number, channel)
        for piece in cut(data, pieces, chance):
            if stranger.lost:
                break
            stranger.transport.write(piece)
            if pieces > 1:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        self.check_buffers()
        if chance.random() < 0.5:
            stranger.transport.close()
        else:
            stranger.transport.abort()
        await asyncio.sleep(0.05)

    def check_buffers(self) -> None:
        for end in self.sim.network.transports:
            reader = getattr(end.protocol, "_reader", None)
            if reader is not None:
                held = len(reader._buffer) + len(reader._body)
                assert held <= FRAME_SIZE_MAX + RECEIVE_BUFFER_SIZE

    async def storm(self) -> None:
        for _ in range(ATTACKS):
            channel = self.random.choice(CHANNELS)
            await self.attack(channel, self.bytes_for(channel), self.random.choice((1, 1, 5)))

    async def served(self) -> None:
        for number in self.sim.live():
            client: Client = await self.sim.client(number)
            assert await client.run("SELECT 1 + 1") == [(2,)]


async def connected(sim: Simulation, number: int, channel: str) -> Stranger:
    """A process of its own, connected to a member's port for a channel."""
    info = sim.members[number].info
    ports = {"user": info.user_port, "control": info.control_port, "data": info.data_port}

    async def connect() -> Stranger:
        return (await sim.loop.create_connection(Stranger, info.host, ports[channel]))[1]

    return await Node("stranger").context.run(sim.loop.create_task, connect())


def cut(data: bytes, pieces: int, chance: Random) -> list[bytes]:
    places = sorted({0, len(data), *(chance.randint(0, len(data)) for _ in range(pieces - 1))})
    return [data[a:b] for a, b in pairwise(places)]


def fuzz(seed: int) -> None:
    with simulation(seed, 2) as sim:
        attack = Attack(sim, seed)
        sim.complete(attack.storm())
        assert sim.live(), f"seed {seed}: members stopped\n{sim.useful_log()}"
        sim.complete(attack.served())
        sim.settle(30.0)
        sim.violations = [
            line for line in sim.violations if not any(what in line for what in PROMISED)
        ]
        sim.verdict()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_strange_bytes(seed: int) -> None:
    fuzz(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_strange_bytes() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        fuzz(seed)


@pytest.mark.parametrize(
    "body", [b"\x0a\xff", b"\x0a\x02\xff\xfe", b"\x12\x02\xff\xfe\x1a\x01\xff"]
)
@pytest.mark.parametrize("channel", CHANNELS)
def test_every_operation_bears_a_body_that_cannot_be_read(channel: str, body: bytes) -> None:
    """No protobuf message, and messages with texts that are no UTF-8: no bug is logged."""
    with simulation(1, 2) as sim:
        attack = Attack(sim, 1)
        hello = encode(frames_of(attack.talks[channel][0])[0])
        routes = sim.members[1]._member_routes
        served = {
            "user": sim.members[1]._user_routes.supported,
            "control": sorted(routes.control),
            "data": sorted(routes.data),
        }[channel]

        async def ask() -> list[Frame]:
            stranger = await connected(sim, 1, channel)
            stranger.transport.write(hello)
            for number in served:
                stranger.transport.write(encode(Frame(REQUEST, number, number, body)))
            await asyncio.sleep(40.0)
            assert not stranger.lost
            stranger.transport.close()
            return frames_of(bytes(stranger.answers))

        answers = sim.complete(ask())
        answered = {frame.coordination_id for frame in answers if frame.mode in (1, 2)}
        if body == b"\x0a\xff":
            assert set(served) - {number for number in served if number == 11} <= answered
        sim.settle(30.0)
        sim.violations = [v for v in sim.violations if not any(what in v for what in PROMISED)]
        sim.verdict()


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_valid_conversation_split_at_every_byte(channel: str) -> None:
    """The same answers come, wherever the bytes are cut."""
    with simulation(1, 2) as sim:
        attack = Attack(sim, 1)
        talk = min((t for t in attack.talks[channel] if len(frames_of(t)) > 1), key=len)
        frames = [frame for frame in frames_of(talk) if frame.mode == REQUEST][:3]
        data = b"".join(encode(frame) for frame in frames)[:700]
        heard = set()

        async def split(place: int) -> None:
            stranger = await connected(sim, 1, channel)
            stranger.transport.write(data[:place])
            await asyncio.sleep(0.01)
            stranger.transport.write(data[place:])
            await asyncio.sleep(0.05)
            if channel != "user":  # the clocks in answers of the user channel differ in length
                heard.add((stranger.heard > 0, stranger.lost))
            else:
                assert stranger.heard > 0
                assert not stranger.lost, f"{place}: {frames}\n{sim.useful_log()}"
            stranger.transport.close()

        for place in range(1, len(data)):
            sim.complete(split(place))
        assert len(heard) <= 1, heard
        sim.settle()
        sim.verdict()
