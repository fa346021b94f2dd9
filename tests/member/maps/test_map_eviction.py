"""Idle entries, full maps and what is counted, on real members with backups."""

from __future__ import annotations

from typing import Any

import pytest
from calendars import Calendar, check_copies, client_of
from tests.member.conftest import TestCluster

from remuda.limits import PARTITIONS


async def rounds(cluster: TestCluster) -> None:
    """One look of every member at its maps, now."""
    for member in cluster.members:
        for watched in member.eviction._watched.values():
            watched.sweep_at = 0.0
        await member.eviction.round()


def room(cluster: TestCluster, limit: int) -> int:
    """The most entries that may be left: every member rounds its share up."""
    return sum(
        -(-limit * len(m.core.view.partitions_of(m.core.number)) // PARTITIONS)
        for m in cluster.members
    )


def test_entries_that_nobody_uses_go(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        async with client_of(cluster) as client:
            await client.sql(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, v INT) WITH (max_idle = '100 s')"
            )
            found = client.map("t")
            await found.put_all({k: {"v": k} for k in range(200)})
            await rounds(cluster)
            calendar.advance(60)
            assert await found.get(1) is not None
            assert await found.contains(2)
            await found.put(3, {"v": 33})
            await client.sql("UPDATE t SET v = 44 WHERE k = 4")
            # A query is no use of the entries that it reads.
            await (await client.sql("SELECT sum(v) FROM t WHERE k = 7")).fetchall()
            await rounds(cluster)
            assert await found.size() == 200
            async with client.transaction(concurrency="pessimistic") as tx:
                await tx.map("t").get(5)
                calendar.advance(60)
                await rounds(cluster)
                assert sorted([k async for k in found]) == [1, 2, 3, 4, 5]
            await cluster.settled()
            check_copies(cluster, "t")
            calendar.advance(101)
            await rounds(cluster)
            assert await found.size() == 0
            text = "SELECT idle_removals, evictions, expirations FROM sys.maps WHERE name = 't'"
            assert await (await client.sql(text)).fetchall() == [(200, 0, 0)]
            await found.put(1, {"v": 1})
            await found.set_options(max_idle=None)
            calendar.advance(1000)
            await rounds(cluster)
            assert await found.size() == 1
            assert not any(member.eviction._watched for member in cluster.members)

    in_cluster(scenario, backups=1)


@pytest.mark.parametrize("kind", ["LRU", "LFU"])
def test_a_full_map_lets_go_of_what_is_used_least(in_cluster: Any, kind: str) -> None:
    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        async with client_of(cluster) as client:
            await client.sql(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)"
                f" WITH (eviction = '{kind}', max_entries = 300)"
            )
            found = client.map("t")
            await rounds(cluster)
            await found.put_all({k: {"v": k} for k in range(200)})
            calendar.advance(1)
            for _ in range(3):
                assert len(await found.get_all(range(60))) == 60
            calendar.advance(1)
            if kind == "LFU":  # used once, and later than the others
                assert len(await found.get_all(range(60, 200))) == 140
            await found.put_all({k: {"v": k} for k in range(1000, 1200)})
            await rounds(cluster)
            left = {k async for k in found}
            assert len(left) == room(cluster, 300)
            kept = len(left & set(range(60)))
            assert kept >= 50, f"{kept} of the 60 entries that were used most are left"
            await cluster.settled()
            check_copies(cluster, "t")
            evicted = 400 - len(left)
            text = "SELECT evictions, rows, backup_rows FROM sys.maps WHERE name = 't'"
            assert await (await client.sql(text)).fetchall() == [(evicted, len(left), len(left))]
            await found.set_options(max_entries=90)
            await rounds(cluster)
            assert await found.size() == room(cluster, 90)

    in_cluster(scenario, backups=1)


def test_a_limit_in_bytes_and_rows_that_are_locked(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
            found = client.map("t")
            await found.put_all({k: {"v": "x" * 1000} for k in range(500)})
            async with client.transaction(concurrency="pessimistic") as tx:
                for key in range(10):
                    await tx.map("t").put(key, {"v": "locked"})
                await found.set_options(max_bytes="200 kB")
                for _ in range(3):
                    await rounds(cluster)
                left = {k async for k in found}
                assert set(range(10)) <= left
                assert len(left) < 200
            text = "SELECT sum(evictions) FROM sys.map_parts WHERE name = 't'"
            assert await (await client.sql(text)).fetchall() == [(500 - len(left),)]
            await cluster.settled()
            check_copies(cluster, "t")

    in_cluster(scenario, backups=1)


def test_what_is_counted(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)")
            found = client.map("t")
            before = await found.statistics()
            assert (before.entries, before.gets, before.last_access) == (0, 0, None)
            await found.put_all({k: {"v": k} for k in range(100, 300)})
            await found.put_all({k: {"v": k} for k in range(20)}, ttl=50)
            await found.put(20, {"v": 1})
            for key in range(15, 25):
                await found.get(key)
            await found.delete(20)
            calendar.advance(51)
            after = await found.statistics()
            assert (after.entries, after.backup_entries) == (200, 200)
            assert (after.gets, after.hits, after.misses) == (10, 6, 4)
            assert (after.puts, after.removes, after.expirations) == (221, 1, 20)
            assert after.last_access is not None
            assert after.last_update is not None
            assert after.last_access <= after.last_update
            assert sum(part.gets for part in after.members.values()) == 10
            assert after.members.keys() == {1, 2, 3}

    in_cluster(scenario, backups=1)


def test_rows_of_statements_are_counted(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT, w INT)")

            async def more(text: str) -> tuple[int, int]:
                counts = "SELECT rows_read, rows_written FROM sys.maps WHERE name = 't'"
                ((read, written),) = await (await client.sql(counts)).fetchall()
                await (await client.sql(text)).fetchall()
                ((read_then, written_then),) = await (await client.sql(counts)).fetchall()
                parts = "SELECT sum(rows_read), sum(rows_written) FROM sys.map_parts"
                ((by_member),) = await (await client.sql(parts)).fetchall()
                assert by_member == (read_then, written_then)
                return read_then - read, written_then - written

            filled = "INSERT INTO t SELECT n, n % 10, n FROM generate_series(1, 20000) g(n)"
            assert (await more(filled))[1] == 20_000
            assert await more("SELECT sum(v) FROM t WHERE w > 400") == (20_000, 0)
            assert await more("SELECT count(*) FROM t x JOIN t y ON x.k = y.v") == (40_000, 0)
            assert (await more("INSERT INTO t VALUES (20001, 1, 1)"))[1] == 1
            assert (await more("UPDATE t SET v = 2 WHERE k = 7"))[1] == 1
            assert (await more("DELETE FROM t WHERE k BETWEEN 1 AND 10"))[1] == 10
            await client.sql("CREATE INDEX by_w ON t (w)")
            await cluster.settled()
            assert await more("SELECT v FROM t WHERE w = 100") == (1, 0)
            assert await more("SELECT v FROM t WHERE k IN (20, 30, 40, 30000)") == (3, 0)

    in_cluster(scenario, backups=1)
