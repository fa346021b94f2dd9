"""Recursive CTEs while they run: bounds, cancel, timeout, and one timestamp for all rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from remuda.errors import LimitExceeded, OutOfMemory, QueryCanceled, QueryTimeout
from remuda.member.statements import recursion

InCluster = Callable[..., None]
ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
WIDE = "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t) SELECT max(s) FROM t"


@pytest.mark.parametrize("members", [1, 3])
def test_a_cancel_ends_it_between_two_rounds(in_cluster: InCluster, members: int) -> None:
    async def scenario(cluster) -> None:
        client = await cluster.client()
        result = await client.start(ENDLESS)
        while not cluster.member(1).statements.gauges()["reads"]:
            await asyncio.sleep(0)
        await client.cancel(result)
        await result.done.wait()
        assert isinstance(result.error, QueryCanceled)
        assert await client.sql("SELECT 1") == [(1,)]
        await cluster.idle()

    in_cluster(scenario, members)


def test_the_timeout_counts_all_rounds_together(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await cluster.client()
        result = await client.run(ENDLESS, timeout=0.2)
        assert isinstance(result.error, QueryTimeout)
        assert result.error.message == "the query did not end within 0.2 s"
        await cluster.idle()

    in_cluster(scenario)


def test_rounds_and_memory_are_bounded(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster) -> None:
        client = await cluster.client()
        result = await client.run(WIDE)
        assert isinstance(result.error, OutOfMemory)
        monkeypatch.setattr(recursion, "ITERATIONS_MAX", 50)
        result = await client.run(ENDLESS)
        assert isinstance(result.error, LimitExceeded)
        assert 'recursive query "t" did not end within 50 iterations' in result.error.message
        await cluster.idle()

    in_cluster(scenario, statement_memory=16 * 1024 * 1024)


def test_a_client_that_goes_ends_it(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await cluster.client()
        await client.start(ENDLESS)
        client.channel.close()
        await cluster.idle()

    in_cluster(scenario)


def test_all_rounds_read_one_timestamp(in_cluster: InCluster) -> None:
    """While every row is moved from one mark to the next, each walk sees rows of one mark only."""

    async def scenario(cluster) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE steps (a BIGINT PRIMARY KEY, b BIGINT, mark BIGINT)")
        rows = ", ".join(f"({a}, {a + 1}, 0)" for a in range(20))
        await client.sql(f"INSERT INTO steps VALUES {rows}")
        walking = True

        async def write() -> None:
            writer = await cluster.client(2)
            while walking:
                await writer.sql("UPDATE steps SET mark = mark + 1")

        writing = asyncio.ensure_future(write())
        for _ in range(10):
            [row] = await client.sql(
                "WITH RECURSIVE w(b, mark) AS (SELECT b, mark FROM steps WHERE a = 0 UNION ALL "
                "SELECT s.b, s.mark FROM w JOIN steps s ON s.a = w.b) "
                "SELECT count(*), min(mark), max(mark) FROM w"
            )
            assert row[0] == 20
            assert row[1] == row[2]
        walking = False
        await writing
        await cluster.idle()

    in_cluster(scenario)
