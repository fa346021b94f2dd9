"""The product's own asyncio client as a process of the simulation: its clock and chance come from
the run. (``sim_client`` speaks the channel by hand, and is ruder.)"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

from sim_cluster import Simulation
from sim_loop import Node

import remuda.aio
from remuda.client.core import core
from remuda.client.network import backoff, contact, deadline, known_members


@contextmanager
def users_of(sim: Simulation) -> Iterator[None]:
    """Clients that are made inside live in the run's time."""
    clock = SimpleNamespace(monotonic=lambda: sim.loop.now)
    chance = Random(f"{sim.seed}/users")
    with ExitStack() as patches:
        for module in (contact, core, deadline, known_members):
            patches.enter_context(mock.patch.object(module, "time", clock))
        patches.enter_context(mock.patch.object(backoff, "_CHANCE", chance))
        yield


async def connected(sim: Simulation, name: str) -> Any:
    """A client process that knows the addresses of all members."""
    node = Node(name)
    addresses = [
        f"{member.info.host}:{member.info.user_port}" for _, member in sorted(sim.members.items())
    ]

    async def connect() -> Any:
        return await remuda.aio.connect(addresses, connect_timeout=2.0, request_timeout=20.0)

    client = await asyncio.shield(node.context.run(sim.loop.create_task, connect()))
    client.node = node
    return client


def running(sim: Simulation, client: Any, work: Any) -> asyncio.Task[Any]:
    """``work`` as a task of the client's process."""
    return client.node.context.run(sim.loop.create_task, work)
