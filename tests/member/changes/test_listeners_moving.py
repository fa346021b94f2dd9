"""Listeners while members are lost, come and go: every change once, whoever has the partition."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.member.conftest import FAST, TestCluster

import remuda.aio
from remuda.config import MemberConfig
from remuda.errors import OutcomeUnknown, TransientError
from remuda.member.member import Member
from remuda.world import system_world

QUICK = {"backups": 1, "lease": 0.5}
KEYS = 20


async def join(cluster: TestCluster) -> Member:
    first = next(member for member in cluster.members if not member.core.stopping)
    seed = first.addresses()["control"]
    member = Member(MemberConfig(join=seed, **{**FAST, **QUICK}), system_world())
    cluster.members.append(member)
    await member.start()
    return member


class Writing:
    """Writers who count up in every entry, for as long as something goes on."""

    def __init__(self, client: remuda.aio.Client) -> None:
        self.numbers = client.map("numbers")
        self.client = client
        self.done = False
        self.acknowledged: set[tuple[int, int]] = set()

    async def write(self, keys: range) -> None:
        number = 0
        while not self.done:
            number += 1
            for key in keys:
                try:
                    if number % 5 == 0:
                        await self.client.sql(
                            "UPDATE numbers SET this = ? WHERE __key = ?", number, key
                        )
                    else:
                        await self.numbers.put(key, number)
                except (TransientError, OutcomeUnknown):
                    continue
                self.acknowledged.add((key, number))
            await asyncio.sleep(0)


async def going_on(work: list[asyncio.Future[Any]]) -> None:
    """Wait a moment. Raises the error that has ended some of the work."""
    done, _ = await asyncio.wait(work, timeout=0.01, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


Change = Callable[[TestCluster], Awaitable[None]]


async def lose(cluster: TestCluster) -> None:
    await cluster.member(2).stop("a test")


async def leave(cluster: TestCluster) -> None:
    await cluster.member(3).leave()
    await cluster.member(3).stop()


async def come(cluster: TestCluster) -> None:
    member = await join(cluster)
    while not member.core.view.partitions_of(member.core.number):
        await asyncio.sleep(0.01)


async def come_and_lose(cluster: TestCluster) -> None:
    """Partitions that come back to where they were."""
    await come(cluster)
    await asyncio.sleep(0.2)
    await cluster.members[-1].stop("a test")


@pytest.mark.parametrize("change", [lose, leave, come_and_lose])
def test_every_change_once(in_cluster: Any, change: Change) -> None:
    async def scenario(cluster: TestCluster) -> None:
        addresses = [(m.info.host, m.info.user_port) for m in cluster.members]
        async with remuda.aio.connect(addresses) as client, remuda.aio.connect(addresses) as other:
            await client.map("numbers").put(0, 0)
            listener = await client.map("numbers").listen()
            heard: list[Any] = []

            async def hear() -> None:
                while True:
                    heard.extend(await listener.take(1000))

            hearing = asyncio.ensure_future(hear())
            writing = Writing(other)
            writers = [
                asyncio.ensure_future(writing.write(range(first, KEYS, 4))) for first in range(4)
            ]
            await asyncio.sleep(0.1)
            await change(cluster)
            work = [hearing, *writers]
            view = max(m.core.view.number for m in cluster.members if not m.core.stopping)
            before = len(writing.acknowledged)
            while len(writing.acknowledged) < before + 2 * KEYS:
                await going_on(work)
            writing.done = True
            await asyncio.gather(*writers)
            final = {key: value async for key, value in client.map("numbers").entries()}
            end = (await client.cluster_info()).clock
            while listener.position < end:
                await going_on([hearing])
            await asyncio.sleep(0)
            hearing.cancel()
            await listener.stop()
            assert view >= 1
            assert "gap" not in {event.kind for event in heard}
            told = [(event.key, event.value) for event in heard]
            assert writing.acknowledged <= set(told)
            last = {0: 0}
            for event in heard:  # each event goes on from the one before: none lost, none twice
                assert event.old_value == last.get(event.key), event
                last[event.key] = event.value
            assert last == final

    in_cluster(scenario, members=3, **QUICK)
