"""Requests to join whose bytes and fields were changed, against running clusters.

Afterwards the cluster writes, a real process joins, views have named nobody else, and no request
has cost more than a few connections. ``python tests/simulation/test_joining.py SEED`` runs one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Simulation, Violation, pbody, simulation
from sim_loop import Node
from sim_losses import Kinds, Loss
from sim_losses_of_storms import reset
from sim_network import LOST, Fate, Sent

import remuda.member.membership.forming as forming_module
from remuda.datatypes.view import MemberInfo
from remuda.errors import ConnectionBroken, RemudaError
from remuda.member.membership.meeting import MEETING_TIMEOUT, MEETINGS_MAX, Meetings
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Channel, connect

SEEDS = int(os.environ.get("REMUDA_JOIN_FUZZ_SEEDS", "6"))
SOAK_SEEDS = int(os.environ.get("REMUDA_FUZZ_SOAK_SEEDS", "2000"))
FRAMES = 120
VIEW = "VIEW_INSTALL"
HOSTS = ("127.0.0.1", "", "nowhere.invalid", "x" * 300, "..", "a\0b", "::1", "0.0.0.0")


@dataclass
class Strangers:
    """Processes that are no members, and what they have heard of real requests to join."""

    sim: Simulation
    seed: int
    requests: list[bytes] = field(default_factory=list)
    views: list[Any] = field(default_factory=list)
    dials: int = 0

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed}/joins")
        self.sim.network.watchers.append(self._hear)

    def _hear(self, sent: Sent) -> None:
        if sent.name == "JOIN" and control_pb2.Join.FromString(pbody(sent)).member.uuid:
            self.requests.append(pbody(sent))

    def watch(self) -> None:
        """Views and connections from now on."""
        for member in self.sim.members.values():
            member.core.listeners.view.add(lambda _, view: self.views.append(view))
        network, connect = self.sim.network, self.sim.network.connect

        async def counted(*arguments: Any) -> Any:
            self.dials += 1
            return await connect(*arguments)

        network.connect = counted  # type: ignore[method-assign]

    # ---- what is sent ----

    def changed(self) -> bytes:
        chance = self.random
        body = bytearray(chance.choice(self.requests))
        if chance.random() < 0.4:
            for _ in range(chance.randint(1, 4)):
                body[chance.randrange(len(body))] = chance.randrange(256)
            if chance.random() < 0.2:
                del body[chance.randrange(len(body)) :]
            return bytes(body)
        message = control_pb2.Join.FromString(bytes(body))
        for _ in range(chance.randint(1, 3)):
            self._change(message)
        return message.SerializeToString()

    def _change(self, message: control_pb2.Join) -> None:
        chance, member = self.random, message.member
        infos = [each.info for each in self.sim.members.values()]
        match chance.randrange(9):
            case 0 | 1:
                member.uuid = f"phantom-{chance.random()}"
            case 2:
                member.uuid = chance.choice(infos).uuid
            case 3:
                member.host = chance.choice(HOSTS)
            case 4:
                member.control_port = chance.choice([*(i.control_port for i in infos), 1, 65535])
            case 5:
                member.number = chance.choice([0, 1, 2, 3, 4, 99, -1])
            case 6:
                member.user_port, member.data_port = chance.randrange(65536), 7
            case 7:
                member.labels.add(name="zone", value="nowhere")
            case 8:
                message.log.member = chance.randint(1, 4)
                message.logs = chance.random() < 0.5
                message.cluster = chance.choice([message.cluster, "another"])

    # ---- sending ----

    async def connected(self, number: int) -> Channel:
        """With one member, from a process of its own."""
        info = self.sim.members[number].info
        hello = control_pb2.ControlHandshake(member=common_pb2.Member(uuid="s", host="nowhere"))
        opening = connect(info.host, info.control_port, ChannelKind.CONTROL, hello)
        return await Node("stranger").context.run(self.sim.loop.create_task, opening)

    async def ask(self, channel: Channel, body: bytes) -> str:
        """What the member says to a request; empty: it is not refused."""
        try:
            await channel.request(RpcType.JOIN, body, timeout=20.0)
        except ConnectionBroken:
            raise
        except RemudaError as error:
            return error.message
        return ""

    async def storm(self) -> int:
        """How many were sent."""
        channels = [await self.connected(number) for number in self.sim.members]
        asked = []
        for _ in range(FRAMES):
            channel = self.random.choice(channels)
            asked.append(self.sim.loop.create_task(self.ask(channel, self.changed())))
            if self.random.random() < 0.2:
                await asyncio.sleep(self.random.uniform(0, 0.5))
        await asyncio.gather(*asked)
        for channel in channels:
            channel.close()
        return len(asked)


async def goes_on(sim: Simulation) -> None:
    """The cluster writes, and a real process joins."""
    client = await sim.client(2)
    await client.run("UPDATE t SET v = v + 1")
    await sim.join(through=3)
    await client.run("UPDATE t SET v = v + 1")
    assert await client.run("SELECT sum(v) FROM t") == [(6,)]


def fuzz(seed: int) -> None:
    with simulation(seed, 3) as sim:
        strangers = Strangers(sim, seed)
        sim.form()

        async def play() -> None:
            client = await sim.client(1)
            await client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
            await client.run("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
            strangers.watch()
            sent = await strangers.storm()
            assert not strangers.views
            assert strangers.dials <= sent + 10, f"{strangers.dials} connections"
            await goes_on(sim)

        sim.complete(play())
        real = {member.core.uuid for member in sim.members.values()}
        assert {member.uuid for view in strangers.views for member in view.members} == real
        sim.settle(30.0)
        sim.verdict()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_changed_requests_to_join(seed: int) -> None:
    fuzz(seed)


def test_requests_that_are_believed_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def met(self: Meetings, info: MemberInfo, **_: object) -> None:
        return None

    monkeypatch.setattr(Meetings, "meet", met)
    with pytest.raises(AssertionError):
        fuzz(0)


def founded_without(kind: str, number: int, loss: Loss) -> float:
    """A cluster of three is founded, and one frame of ``kind`` is lost: its connection lives, or
    breaks with it; how many seconds that takes."""
    with simulation(1) as sim:
        seen, kinds = [0], Kinds()

        def rule(sent: Sent) -> Fate | None:
            if kind not in kinds.of(sent):
                return None
            seen[0] += 1
            if seen[0] != number:
                return None
            if loss is Loss.BREAK:
                sim.loop.call_soon(reset, sim.network, sent)
            return LOST

        sim.network.rules.append(rule)
        began = sim.loop.now
        sim.form()
        took = sim.loop.now - began
        sim.settle()
        sim.verdict()
    assert seen[0] >= number
    return took


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("kind", [VIEW, f"{VIEW}, answer"])
def test_a_cluster_is_founded_although_its_first_view_is_lost(
    kind: str, number: int, loss: Loss
) -> None:
    assert founded_without(kind, number, loss) < 5.0


def test_a_first_view_that_is_sent_once_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The founding would wait for a request that was lost, and fail with a connection."""
    with monkeypatch.context() as patch:
        patch.setattr(forming_module, "VIEW_AGAIN", 1000.0)
        with pytest.raises(Violation, match="was not complete within"):
            founded_without(VIEW, 1, Loss.DROP)
    monkeypatch.setattr(forming_module, "may_be_heard_later", lambda _error: False)
    with pytest.raises(Violation, match="was closed"):
        founded_without(VIEW, 1, Loss.BREAK)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_changed_requests_to_join() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        fuzz(seed)


def test_few_processes_are_looked_for_at_a_time() -> None:
    """Nobody answers at the address that many requests name, and nobody refuses: further ones are
    refused at once, and a real process joins as soon as a few are given up."""
    with simulation(1, 3) as sim:
        strangers = Strangers(sim, 1)
        sim.form()

        async def play() -> None:
            client = await sim.client(1)
            await client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
            await client.run("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
            silent = Node("without power")
            listening = sim.network.bind("127.0.0.1", 0)
            silent.context.run(sim.network.serve, listening, asyncio.Protocol)
            sim.network.kill(silent, silently=True)
            message = control_pb2.Join.FromString(strangers.requests[0])
            message.member.control_port = listening.address[1]
            strangers.watch()
            channel = await strangers.connected(1)
            began, asked = sim.loop.now, []
            for number in range(3 * MEETINGS_MAX):
                message.member.uuid = f"phantom-{number}"
                body = message.SerializeToString()
                asked.append(sim.loop.create_task(strangers.ask(channel, body)))
            answers = await asyncio.gather(*asked)
            assert sim.loop.now - began < MEETING_TIMEOUT + 0.5
            busy = [text for text in answers if f"looks for {MEETINGS_MAX} other" in text]
            silences = [text for text in answers if "did not answer within 3 s" in text]
            assert (len(busy), len(silences)) == (2 * MEETINGS_MAX, MEETINGS_MAX)
            channel.close()
            await goes_on(sim)

        sim.complete(play())
        named = {member.uuid for view in strangers.views for member in view.members}
        assert not any(uuid.startswith("phantom") for uuid in named)
        sim.settle(30.0)
        sim.verdict()


if __name__ == "__main__":
    fuzz(int(sys.argv[1]))
