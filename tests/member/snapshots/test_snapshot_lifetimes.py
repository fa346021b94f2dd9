"""Entries that end by themselves keep their ends through snapshots, increments and restores."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
from calendars import Calendar, check_copies, client_of, versions
from logged import logged_cluster, memory_disk, on_disk, picture
from tests.member.conftest import TestCluster

from remuda.datatypes.timestamp import FOREVER, expiry
from remuda.snapshot.rows import own_ends


def ends(cluster: TestCluster, name: str) -> dict[Any, int]:
    """Key -> where its newest version ends, on the primaries."""
    found: dict[Any, tuple[int, int]] = {}
    for member in cluster.members:
        store = member.core.stores[member.core.catalog.get(name).map_id]
        for row, times in versions(store).items():
            found[row[0]] = max(found.get(row[0], (0, 0)), times)
    return {key: end for key, (_, end) in found.items()}


def existing(cluster: TestCluster, name: str) -> dict[Any, int]:
    now = max(member.core.clock.last for member in cluster.members)
    return {key: end for key, end in ends(cluster, name).items() if end > now}


async def filled(client: Any) -> None:
    await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT) WITH (ttl = '1000 s')")
    await client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY, v INT) REPLICATED")
    entries = client.map("t")
    await entries.put(1, {"v": 1})
    await entries.put(2, {"v": 2}, ttl=0)
    await entries.put(3, {"v": 3}, ttl=30)
    await client.map("r").put(1, {"v": 1}, ttl=50)
    await client.sql("INSERT INTO t SELECT i, i FROM generate_series(100, 199) AS g(i)")


def test_a_base_keeps_the_ends(in_cluster: Any, tmp_path: Path) -> None:
    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        async with client_of(cluster) as client:
            await filled(client)
            before = {name: existing(cluster, name) for name in "tr"}
            assert before["t"][2] == FOREVER
            await client.sql("CREATE SNAPSHOT s")
            calendar.advance(20)
            await client.sql("RESTORE SNAPSHOT s PREFIX 'one_'")
            assert {name: ends(cluster, f"one_{name}") for name in "tr"} == before
            await cluster.settled()
            assert check_copies(cluster, "one_t") == len(before["t"])
            assert await client.map("one_t").size() == 103
            calendar.advance(20)
            restored = await (await client.sql("RESTORE SNAPSHOT s PREFIX 'two_'")).fetchall()
            assert [row[2] for row in restored] == [1, 102]
            assert await client.map("one_t").get(3) is None
            assert await client.map("two_t").get(3) is None
            assert 900 < await client.map("two_t").ttl(1) <= 960
            calendar.advance(2000)
            await client.sql("RESTORE SNAPSHOT s PREFIX 'three_'")
            assert await (await client.sql("SELECT k FROM three_t")).fetchall() == [(2,)]

    in_cluster(scenario, 2, snapshot_store=str(tmp_path))


def test_increments_and_logs_keep_the_ends(tmp_path: Path) -> None:
    disk, folders = memory_disk(), [Path("/a"), Path("/b")]
    settings = {"snapshot_store": str(tmp_path)}

    async def make() -> tuple[dict[Any, int], Any]:
        async with (
            logged_cluster(folders, on_disk(disk), **settings) as cluster,
            client_of(cluster) as client,
        ):
            await filled(client)
            await client.sql("CREATE SNAPSHOT s")
            await client.map("t").put(4, {"v": 4}, ttl=40)
            await client.map("t").put(3, {"v": 5}, ttl=60)
            await client.map("t").remove(2)
            await client.sql("INSERT INTO t SELECT i, i FROM generate_series(200, 299) AS g(i)")
            before = existing(cluster, "t")
            made = await (await client.sql("CREATE SNAPSHOT s INCREMENT")).fetchall()
            assert made[0][2] == "increment"
            await client.sql("RESTORE SNAPSHOT s PREFIX 'old_'")
            assert ends(cluster, "old_t") == before
            assert ends(cluster, "old_r") == existing(cluster, "r")
            return before, picture(disk)

    async def again(before: dict[Any, int], after: Any) -> None:
        async with logged_cluster(folders, on_disk(after), **settings) as cluster:
            assert existing(cluster, "old_t") == before
            async with client_of(cluster) as client:
                await client.sql("RESTORE SNAPSHOT s CUT 1 PREFIX 'first_'")
                found = ends(cluster, "first_t")
                assert (len(found), found[2]) == (103, FOREVER)
                assert found[1] == before[1]
                assert found[3] < before[3]

    asyncio.run(again(*asyncio.run(make())))


def test_what_was_replaced_after_the_moment_lives_as_its_map_says() -> None:
    begins = np.array([5 << 10, 6 << 10, 7 << 10])
    kept = expiry(5 << 10, 3)
    found = [kept, (8 << 10) + 1, FOREVER]
    assert own_ends(begins, np.array(found), 4).tolist() == [kept, expiry(6 << 10, 4), FOREVER]
    assert own_ends(begins, np.array(found), 0).tolist() == [kept, FOREVER, FOREVER]
