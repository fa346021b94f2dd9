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


@pytest.mark.parametrize("options", ["", "REPLICATED", "WITH (max_idle = '1 hour')"])
def test_get_all_of_many_finds_what_get_finds(in_cluster: Any, options: str) -> None:
    async def scenario(cluster: TestCluster) -> None:
        address = cluster.member(2).addresses()["user"]
        async with remuda.aio.connect(address) as client:
            await client.sql(f"CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, s TEXT) {options}")
            table = client.map("t")
            await table.put_all({key: {"v": key, "s": f"s{key}"} for key in range(0, 300, 2)})
            for key in range(0, 40, 4):
                await table.put(key, {"v": -key, "s": None})
            for key in range(0, 40, 6):
                await table.remove(key)
            await client.sql("ALTER TABLE t ADD COLUMN w BIGINT DEFAULT 5")
            await table.put(6, {"v": 6, "s": "new", "w": 7})
            wanted = [*range(-20, 320), 6, 6]
            single = {key: await table.get(key) for key in wanted}
            expected = {key: value for key, value in single.items() if value is not None}
            assert len(expected) > 100
            assert await table.get_all(wanted) == expected
            assert list(await table.get_all(wanted)) == list(expected)
            async with client.transaction() as transaction:
                inside = transaction.map("t")
                assert await inside.get_all(wanted) == expected
                await inside.put(1, {"v": 1, "s": "own", "w": 1})
                assert (await inside.get_all(wanted)).keys() == {1, *expected}
            assert await table.get_all(range(1000, 1100)) == {}

    in_cluster(scenario)


def test_get_all_of_many_waits_for_a_write_that_is_not_decided(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        address = cluster.member(1).addresses()["user"]
        async with remuda.aio.connect(address) as client:
            items = client.map("items", Item)
            await items.put_all({key: Item(0) for key in range(200)})
            for v in range(1, 12):
                write = asyncio.ensure_future(items.put_all({key: Item(v) for key in range(200)}))
                found = [await items.get_all(range(200)) for _ in range(3)]
                await write
                found.append(await items.get_all(range(200)))
                seen = [item.v for each in found for item in each.values()]
                assert len(seen) == 800
                assert set(seen) <= {v - 1, v}
                assert set(seen[-200:]) == {v}

    in_cluster(scenario)
