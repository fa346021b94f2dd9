"""Entries that end by themselves, on real members with backups whose calendar the test moves."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from calendars import Calendar, check_copies, client_of
from logged import logged_cluster, memory_disk, on_disk, picture
from tests.member.conftest import TestCluster
from tests.member.copies.test_backups import QUICK, join, placed, until

from remuda import col
from remuda.errors import (
    InputError,
    InvalidDefinition,
    NotSupported,
    SerializationFailure,
    UniqueViolation,
)


def test_entries_end_on_all_paths_and_all_copies_agree(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT) WITH (ttl = '10 s')")
            found = client.map("t")
            await found.put(1, {"v": 1})
            await found.put(2, {"v": 2}, ttl=0)
            await found.put(3, {"v": 3}, ttl="1 min")
            await found.put_if_absent(4, {"v": 4}, ttl=timedelta(seconds=20))
            await found.put_all({k: {"v": k} for k in range(10, 20)})
            await found.put_all({k: {"v": k} for k in range(20, 400)}, ttl=30)
            await found.put_all(pa.table({"k": [900, 901], "v": [9, 9]}), ttl=30)
            await client.sql("INSERT INTO t SELECT i, i FROM generate_series(1000, 1999) AS g(i)")
            async with client.transaction() as tx:
                await tx.map("t").put(5, {"v": 5})
                with pytest.raises(NotSupported):
                    await tx.map("t").put(6, {"v": 6}, ttl=5)
            total = 5 + 10 + 380 + 2 + 1000
            await cluster.settled()
            assert await found.size() == total == check_copies(cluster, "t")
            assert await found.ttl(2) == math.inf
            assert await found.ttl(7777) is None
            assert 9 < await found.ttl(5) <= 10
            assert 55 < await found.ttl(3) <= 60
            await found.create_index("v")
            calendar.advance(11)
            left = 3 + 380 + 2
            assert await found.get(1) is None
            assert not await found.contains(1500)
            assert await found.size() == left
            assert len([key async for key in found.keys(where=col("v") >= 0)]) == left
            assert await (await client.sql("SELECT count(*) FROM t WHERE v = 1500")).fetchall() == [
                (0,)
            ]
            await client.sql("INSERT INTO t VALUES (1500, 1)")
            with pytest.raises(UniqueViolation):
                await client.sql("INSERT INTO t VALUES (1500, 1)")
            assert await found.put_if_absent(1, {"v": 7})
            await found.set_ttl(3, 0)
            assert not await found.set_ttl(1600, 5)
            with pytest.raises(InputError, match="set_ttl needs a time"):
                await found.set_ttl(3, None)
            # An update lets the row live anew; a removal ends it at once.
            await client.sql("UPDATE t SET v = 50 WHERE k = 20")
            await found.delete(21)
            calendar.advance(9)
            assert await found.get(20) is not None
            assert await found.get(4) is None
            calendar.advance(60)
            assert sorted([key async for key in found]) == [2, 3]
            await cluster.settled()
            check_copies(cluster, "t")
            with pytest.raises(InvalidDefinition):
                await found.put(1, {"v": 1}, ttl="soon")

    in_cluster(scenario, backups=1)


@pytest.mark.parametrize("change", ["loss", "leave", "join"])
def test_rows_end_wherever_their_partitions_go(in_cluster: Any, change: str) -> None:
    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)")
            found = client.map("t")
            await found.put_all({k: {"v": k} for k in range(300)}, ttl=1000)
            await found.put_all({k: {"v": k} for k in range(300, 600)})
        if change == "join":
            calendar.take(await join(cluster))
        elif change == "leave":
            await cluster.member(3).leave()
        if change != "join":
            await cluster.member(3).stop()
        await until(lambda: placed(cluster))
        async with client_of(cluster) as client:
            found = client.map("t")
            assert await found.size() == 600
            await cluster.settled()
            assert check_copies(cluster, "t") == 600
            assert 0 < await found.ttl(5) <= 1000
            calendar.advance(1001)
            assert await found.size() == 300
            assert await found.get(5) is None
            assert await (await client.sql("SELECT min(k) FROM t")).fetchall() == [(300,)]

    in_cluster(scenario, **QUICK)


def test_a_transaction_that_has_read_what_has_ended_is_refused(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        async with client_of(cluster) as client:
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)")
            found = client.map("t")
            await found.put(1, {"v": 1}, ttl=50)
            await found.put(2, {"v": 1}, ttl=500)
            for text in ("SELECT v FROM t WHERE k = 1", "SELECT count(*) FROM t WHERE v = 1"):
                await found.put(1, {"v": 1}, ttl=50)
                async with client.transaction() as tx:
                    await (await tx.sql(text)).fetchall()
                    await tx.map("t").put(9, {"v": 9})
                    calendar.advance(10)
                with pytest.raises(SerializationFailure):
                    async with client.transaction() as tx:
                        await (await tx.sql(text)).fetchall()
                        assert await tx.map("t").get(1) is not None
                        await tx.map("t").put(9, {"v": 10})
                        calendar.advance(51)
                        # It goes on seeing its snapshot.
                        assert await tx.map("t").get(1) is not None
            async with client.transaction() as tx:
                assert await tx.map("t").get(1) is None
                await tx.map("t").put(9, {"v": 10})

    in_cluster(scenario, backups=1)


@pytest.mark.parametrize("backups", [0, 1])
def test_lifetimes_come_back_from_the_log(backups: int) -> None:
    """A single entry's and a job's, with the ends that they had, also where all processes were
    lost at once."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a"), Path("/b")]
        async with (
            logged_cluster(folders, on_disk(disk), backups=backups) as cluster,
            client_of(cluster) as client,
        ):
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT) WITH (ttl = '100 s')")
            found = client.map("t")
            await client.sql("INSERT INTO t SELECT i, i FROM generate_series(1000, 1099) AS g(i)")
            await found.put_all({k: {"v": k} for k in range(100)}, ttl=1000)
            await found.put(500, {"v": 1})
            await found.put(501, {"v": 1}, ttl=0)
            killed = picture(disk)
        for after in (disk, killed):
            async with (
                logged_cluster(folders, on_disk(after), backups=backups) as cluster,
                client_of(cluster) as client,
            ):
                found, calendar = client.map("t"), Calendar(cluster)
                assert await found.size() == 202
                assert 0 < await found.ttl(500) <= 100
                assert 0 < await found.ttl(1050) <= 100
                calendar.advance(101)
                assert await found.size() == 101
                calendar.advance(1000)
                assert [k async for k in found] == [501]

    asyncio.run(scenario())
