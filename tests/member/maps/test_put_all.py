"""Writes of many entries: all or none, whatever member is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from tests.member.conftest import TestCluster

import remuda.aio
from remuda.errors import CheckViolation


@dataclass
class Item:
    v: int


@pytest.mark.parametrize("rows", [10, 200])
def test_readers_see_all_of_it_or_nothing(in_cluster: Any, rows: int) -> None:
    async def scenario(cluster: TestCluster) -> None:
        address = cluster.member(1).addresses()["user"]
        async with remuda.aio.connect(address) as client:
            items = client.map("items", Item)
            await items.put_all({key: Item(0) for key in range(rows)})
            done = False

            async def write() -> None:
                nonlocal done
                for v in range(1, 12):
                    await items.put_all({key: Item(v) for key in range(rows)})
                done = True

            writer = asyncio.ensure_future(write())
            seen = set()
            while not done:
                found = await (await client.sql("SELECT DISTINCT v FROM items")).fetchall()
                assert len(found) == 1
                seen.add(found[0][0])
                if writer.done():
                    break
            await writer
            assert len(seen) > 1

    in_cluster(scenario)


@pytest.mark.parametrize("rows", [10, 200])
def test_one_row_that_is_refused_refuses_all(in_cluster: Any, rows: int) -> None:
    async def scenario(cluster: TestCluster) -> None:
        address = cluster.member(2).addresses()["user"]
        async with remuda.aio.connect(address) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT CHECK (v < 100))")
            with pytest.raises(CheckViolation):
                await client.map("t").put_all({key: {"v": 90 + key} for key in range(rows + 1)})
            assert await client.map("t").size() == 0

    in_cluster(scenario)
