"""Clusters of real members that keep logs, in the event loop of the test. Their disk is copied at
any moment, as the end of all processes would leave it, and members start again on the copy."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from tests.member.conftest import FAST, TestClient, TestCluster

from remuda.config import MemberConfig
from remuda.errors import TransientError, ViewChanged
from remuda.member.member import Member
from remuda.rpc.connection import ChannelKind
from remuda.world import World, system_world

_FOUND = importlib.util.spec_from_file_location(
    "sim_disk", Path(__file__).parents[1] / "storage" / "sim_disk.py"
)
assert _FOUND is not None
assert _FOUND.loader is not None
sim_disk = importlib.util.module_from_spec(_FOUND)
sys.modules["sim_disk"] = sim_disk
_FOUND.loader.exec_module(sim_disk)


Scenario: TypeAlias = Callable[[TestClient, TestCluster], Awaitable[None]]


def run(place: Path, scenario: Scenario, members: int = 2, **settings: Any) -> None:
    """Members that keep their logs below ``place``, and snapshots in its folder ``store``; the
    client of the scenario is that of the last one. Afterwards nothing may be left."""
    folders = [place / f"member{number}" for number in range(members)]
    settings = {"snapshot_store": str(place / "store"), "log_sync": "os", **settings}

    async def main() -> None:
        async with logged_cluster(folders, **settings) as cluster:
            await scenario(await cluster.client(members), cluster)
            await cluster.idle()

    asyncio.run(main())


@asynccontextmanager
async def logged_cluster(
    folders: Sequence[Path], world: World | None = None, late: Sequence[Path] = (), **settings: Any
) -> AsyncIterator[TestCluster]:
    """Members have the numbers of their folders: members that found a cluster are numbered by
    their user ports. ``late`` folders join when all others serve."""
    world = world or system_world()
    ports = dict(zip(folders, ascending_ports(len(folders)), strict=True))

    def config(folder: Path, join: str = "") -> MemberConfig:
        made = {**FAST, "cluster_size": len(folders), "data_dir": str(folder), "join": join}
        made["user_port"] = ports.get(folder, 0)
        return MemberConfig(**{**made, **settings})

    first = Member(config(folders[0]), world)
    members = [first]
    starts = [asyncio.ensure_future(first.start())]
    try:
        while ChannelKind.DATA not in first._servers and not starts[0].done():
            await asyncio.sleep(0.001)
        if starts[0].done():
            starts[0].result()
        seed = first.addresses()["control"]
        members += [Member(config(folder, seed), world) for folder in folders[1:]]
        starts += [asyncio.ensure_future(member.start()) for member in members[1:]]
        await asyncio.gather(*starts)
        for folder in late:
            members.append(Member(config(folder, seed), world))
            await members[-1].start()
        cluster = TestCluster(members)
        yield cluster
        for client in cluster.clients:
            client.channel.close()
    finally:
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)
        for member in reversed(members):
            await member.stop()


_PORTS = itertools.cycle(range(12_000, 30_000))
"""Below the ports that systems give to connections, which could take one before its member does."""
deque(itertools.islice(_PORTS, os.getpid() * 499 % 18_000), maxlen=0)  # others run tests as well


def ascending_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    return sorted(next(port for port in _PORTS if _is_free(port)) for _ in range(count))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def memory_disk() -> Any:
    """A disk in memory, on which a sync takes no time."""
    return sim_disk.SimulatedDisk()


def picture(disk: Any) -> Any:
    """What is on the disk right now, as the end of all processes would leave it."""
    while True:
        try:
            copied = deepcopy(disk)
        except RuntimeError:  # a thread has just made a file
            continue
        copied.locked.clear()
        return copied


def on_disk(disk: Any) -> World:
    return replace(system_world(), disk=disk)


@asynccontextmanager
async def late_member(
    cluster: TestCluster, folder: Path, world: World, **settings: Any
) -> AsyncIterator[Member]:
    """A member more, at a cluster that runs. Raises what its start does."""
    seed = cluster.members[0].addresses()["control"]
    made = {**FAST, "data_dir": str(folder), "join": seed, "join_timeout": 5.0}
    member = Member(MemberConfig(**{**made, **settings}), world)
    try:
        await member.start()
        yield member
    finally:
        await member.stop()


async def asked(client: Any, text: str) -> Any:
    """The rows, also while views change."""
    while True:
        try:
            return await client.sql(text)
        except (TransientError, ViewChanged):
            await asyncio.sleep(0.01)
