"""Near caches of clients of a real cluster."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pyarrow as pa
from tests.member.conftest import TestCluster

import remuda
import remuda.aio
from remuda import NearCache, NearCacheStatistics


def addresses(cluster: TestCluster) -> list[tuple[str, int]]:
    return [(m.info.host, m.info.user_port) for m in cluster.members if not m.core.stopping]


async def cached(near: remuda.aio.NearMap, key: Any) -> Any:
    """The value, once it has come from the memory of the client."""
    while True:
        hits = near.near_cache_statistics.hits
        value = await near.get(key)
        if near.near_cache_statistics.hits > hits:
            return value
        await asyncio.sleep(0.001)


def test_changes_of_others_and_own_writes(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        where = addresses(cluster)
        async with remuda.aio.connect(where) as client, remuda.aio.connect(where) as other:
            numbers = other.map("numbers")
            await numbers.put_all({key: f"v{key}" for key in range(20)})
            near = client.map("numbers", near_cache=NearCache(max_entries=100))
            for key in range(20):
                assert await near.get(key) == f"v{key}"
            assert await cached(near, 3) == "v3"
            found = near.near_cache_statistics
            assert (found.entries, found.misses) == (20, found.misses)
            assert await near.get(99, "none") == "none"
            # Others: told within a moment.
            await other.sql("UPDATE numbers SET this = 'changed' WHERE __key IN (1, 2)")
            for key in (1, 2):  # of different members, perhaps, which tell it in their own time
                while await near.get(key) != "changed":
                    await asyncio.sleep(0.001)
            assert await near.get_all([2, 1, 98]) == {2: "changed", 1: "changed"}
            await numbers.remove(5)
            while await near.get(5) is not None:
                await asyncio.sleep(0.001)
            # Its own, in every way: at once.
            table = pa.table({"__key": [3], "this": ["table"]})
            plain = client.map("numbers")
            for number in range(6):
                await near.put(3, f"put {number}")
                assert await near.get(3) == f"put {number}"
                await plain.put(3, f"plain {number}")
                assert await near.get(3) == f"plain {number}"
                await client.sql("UPDATE numbers SET this = ? WHERE __key = 3", f"sql {number}")
                assert await near.get(3) == f"sql {number}"
                async with client.transaction() as transaction:
                    await transaction.map("numbers").put(3, f"tx {number}")
                assert await near.get(3) == f"tx {number}"
                await near.put_all(table)
                assert await near.get(3) == "table"
                if number == 3:
                    await cached(near, 3)
            await client.sql("BEGIN")
            hits = near.near_cache_statistics.hits
            assert await near.get(4) == "v4"
            assert near.near_cache_statistics.hits == hits
            await client.sql("ROLLBACK")
            await near.close()
            assert near.near_cache_statistics.entries == 0
            assert all(m.gauges()["subscriptions"] == 0 for m in cluster.members)
            assert await cached(near, 4) == "v4"
        while any(m.gauges()["subscriptions"] for m in cluster.members):
            await asyncio.sleep(0.01)

    in_cluster(scenario, members=2)


def test_staleness_is_bounded(in_cluster: Any) -> None:
    """Whatever happens to the cluster: no get gives what had been replaced for longer than that."""
    bound = 1.0

    async def scenario(cluster: TestCluster) -> None:
        where = addresses(cluster)
        async with remuda.aio.connect(where) as client, remuda.aio.connect(where) as other:
            numbers = other.map("numbers")
            await numbers.put_all(dict.fromkeys(range(10), 0))
            near = client.map("numbers", near_cache=NearCache(max_staleness=bound))
            written: dict[int, list[tuple[float, int]]] = {key: [(0.0, 0)] for key in range(10)}
            done = False

            async def write() -> None:
                number = 0
                while not done:
                    number += 1
                    for key in range(10):
                        try:
                            await numbers.put(key, number)
                        except remuda.RemudaError:
                            continue
                        written[key].append((time.monotonic(), number))
                    await asyncio.sleep(0.02)

            writer = asyncio.ensure_future(write())

            def found() -> NearCacheStatistics:
                return near.near_cache_statistics

            async def read(seconds: float) -> None:
                """For as long, and until something has come from the cache, however slow it is."""
                until, hits = time.monotonic() + seconds, found().hits
                while time.monotonic() < until or found().hits == hits:
                    for key in range(10):
                        begun = time.monotonic()
                        try:
                            value = await near.get(key)
                        except remuda.RemudaError:
                            continue
                        enough = max(n for at, n in written[key] if at <= begun - bound)
                        assert value >= enough, (key, value, enough)
                    await asyncio.sleep(0)

            await read(0.5)
            await cluster.member(2).stop("a test")
            while not found().resets:
                await read(0.5)
            await read(bound)
            done = True
            await writer

    in_cluster(scenario, members=3, backups=1, lease=0.5)


def test_blocking_near_cache(in_cluster: Any) -> None:
    def program(client: remuda.Client, other: remuda.Client) -> None:
        other.map("numbers").put_all({key: key for key in range(10)})
        near = client.map("numbers", near_cache=NearCache())
        while near.near_cache_statistics.hits < 20:
            assert near.get(1) == 1
        other.map("numbers").put(1, 100)
        while near.get(1) != 100:
            time.sleep(0.001)
        near[1] = 200
        assert near[1] == 200
        near.close()
        assert near.get(1) == 200
        del near

    async def scenario(cluster: TestCluster) -> None:
        where = addresses(cluster)

        def run() -> None:
            with remuda.connect(where) as client, remuda.connect(where) as other:
                program(client, other)

        await asyncio.to_thread(run)

    in_cluster(scenario, members=2)
