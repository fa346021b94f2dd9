"""The asyncio client against real members in the same loop: nothing of it may be left on them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest

import remuda.aio
from remuda.errors import QueryTimeout, UniqueViolation


@asynccontextmanager
async def connected(cluster, **options):
    addresses = [(member.info.host, member.info.user_port) for member in cluster.members]
    async with remuda.aio.connect(addresses, **options) as client:
        yield client


CROSS = "SELECT count(*) FROM t a, t b, t c, t d WHERE a.id < b.id AND b.id < c.id AND c.id < d.id"


async def table(client, rows=3000):
    await client.map("t").put_all(
        pa.table({"id": range(rows), "v": [f"v{i}" for i in range(rows)]}), key="id"
    )


def test_cancelled_tasks_free_everything(in_cluster):
    async def scenario(cluster):
        async with connected(cluster, max_connections=1) as client:
            await table(client, rows=600)
            running = [asyncio.ensure_future(client.sql(CROSS)) for _ in range(5)]
            cursors = [await client.sql("SELECT a.v FROM t a, t b") for _ in range(5)]
            reading = [asyncio.ensure_future(cursor.fetchall()) for cursor in cursors]
            await asyncio.sleep(0)
            for task in (*running, *reading):
                task.cancel()
            found = await asyncio.gather(*running, *reading, return_exceptions=True)
            assert all(isinstance(item, asyncio.CancelledError) for item in found)
            assert await (await client.sql("SELECT count(*) FROM t")).scalar() == 600
            await cluster.idle()
            ports = client._core.members.ports
            while any(line.load for port in ports for line in port._lines):
                await asyncio.sleep(0.005)  # the ends of the statements are on their way
            assert [len(port._lines) for port in ports] == [1, 1, 1]

    in_cluster(scenario)


def test_statements_side_by_side_on_one_connection(in_cluster):
    async def scenario(cluster):
        async with connected(cluster, max_connections=1) as client:
            await table(client)
            key = await client.prepare("SELECT v FROM t WHERE id = ?")

            async def one(number):
                if number % 3 == 0:
                    return await (await key(number)).scalar()
                if number % 3 == 1:
                    return (await client.map("t").get(number)).v
                cursor = await client.sql("SELECT v FROM t WHERE id <= ? ORDER BY id DESC", number)
                return (await cursor.fetchall())[0].v

            found = await asyncio.gather(*(one(number) for number in range(300)))
            assert found == [f"v{number}" for number in range(300)]
            await cluster.idle()

    in_cluster(scenario)


def test_a_client_that_goes_away_leaves_nothing(in_cluster):
    async def scenario(cluster):
        async with connected(cluster) as client:
            await table(client)
            waiting = asyncio.ensure_future(client.sql(CROSS))
            cursor = await client.sql("SELECT a.v FROM t a, t b")
            await cursor.fetchmany(10)
        found = await asyncio.gather(waiting, return_exceptions=True)
        assert "client is closed" in str(found[0])
        with pytest.raises(remuda.RemudaError):
            await cursor.fetchall()
        await cluster.idle()

    in_cluster(scenario)


def test_writes_jobs_and_timeouts(in_cluster):
    async def scenario(cluster):
        async with connected(cluster) as client:
            await table(client)
            with pytest.raises(QueryTimeout):
                await client.sql(CROSS, timeout=0.05)
            with pytest.raises(UniqueViolation):
                await client.map("t").put_all(pa.table({"id": [9000, 9000], "v": ["a", "b"]}))
            await client.sql("CREATE TABLE u (id BIGINT PRIMARY KEY, v VARCHAR)")
            rows = ((number, f"v{number}") for number in range(12_000))
            assert await client.execute_many("INSERT INTO u VALUES (?, ?)", rows) == 12_000
            async with await client.begin_job("u") as job:
                batch = pa.record_batch({"id": [-1, -2], "v": ["x", None]})
                task = await job.write([batch])
                assert await job.commit([task]) == 2
            assert await client.map("u").size() == 12_002
            assert sorted([key async for key in client.map("u").keys(remuda.col("id") < 1)]) == [
                -2, -1, 0,
            ]  # fmt: skip
            await client.sql("SET statement_timeout = '7s'")
            assert await (await client.sql("SHOW statement_timeout")).scalar() == "7s"
            await cluster.idle()

    in_cluster(scenario)
