"""Members in the event loop of the test, and clients as Drill's own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from stock_client import StockClient

from remuda.config import MemberConfig
from remuda.member.member import Member
from remuda.world import system_world

FAST = {"heartbeat_interval": 0.05, "heartbeat_timeout": 5.0, "join_timeout": 20.0}


@asynccontextmanager
async def grid(size: int = 1) -> AsyncIterator[list[Member]]:
    first = Member(MemberConfig(cluster_size=size, **FAST), system_world())
    members = [first]
    try:
        tasks = [asyncio.create_task(first.start())]
        while size > 1 and not first.info.control_port:
            await asyncio.sleep(0.001)
        join = f"127.0.0.1:{first.info.control_port}"
        for _ in range(size - 1):
            member = Member(MemberConfig(cluster_size=size, join=join, **FAST), system_world())
            members.append(member)
            tasks.append(asyncio.create_task(member.start()))
        await asyncio.gather(*tasks)
        members.sort(key=lambda member: member.info.number)
        yield members
    finally:
        for member in members:
            await member.stop()


@asynccontextmanager
async def stock(member: Member, **hello: Any) -> AsyncIterator[StockClient]:
    client = await StockClient.open(member.info.host, member.info.user_port, **hello)
    try:
        yield client
    finally:
        await client.close()
        assert client.broken == []


@pytest.fixture
def run_drill() -> Callable[..., None]:
    """Run ``test(client, members)`` against a cluster of ``size`` members."""

    def run(test: Callable[..., Awaitable[None]], size: int = 1, **hello: Any) -> None:
        async def main() -> None:
            async with grid(size) as members, stock(members[0], **hello) as client:
                async with asyncio.timeout(60):
                    await test(client, members)

        asyncio.run(main())

    return run
