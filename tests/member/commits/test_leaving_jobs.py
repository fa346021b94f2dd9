"""Bulk writes go on when members leave: each row is there once, and no task or job fails."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest

import remuda.aio
from remuda.client.operations import job_frames
from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import JobAborted

ROWS = 300


@pytest.fixture(autouse=True)
def small_frames(monkeypatch):
    """Rows are under way all the time."""
    monkeypatch.setattr(job_frames, "FRAME_SIZE", 500)


@asynccontextmanager
async def connected(cluster, *numbers):
    addresses = [cluster.member(n).info for n in numbers or (1, 2, 3)]
    places = [(info.host, info.user_port) for info in addresses]
    async with remuda.aio.connect(places) as client:
        yield client


def batch(first, count=ROWS):
    return pa.record_batch(
        {"id": pa.array(range(first, first + count), pa.int64()), "v": [f"v{first}"] * count}
    )


async def created(client, replicated=False):
    columns = (Column("id", sql.BIGINT, False), Column("v", sql.VARCHAR))
    await client.create_map(MapSchema("t", columns, ("id",), ("id",), replicated=replicated))


async def begun(client):
    """A job of member 1, which stays."""
    return await client.begin_job("t", job_id=f"1-{secrets.token_hex(12)}")


async def rows_of(client):
    found = await (await client.sql("SELECT count(*), count(DISTINCT id) FROM t")).fetchall()
    return tuple(found[0])


def write_all(target, task, *batches):
    with target.writer(task) as writer:
        for rows in batches:
            writer.write(rows)
        return writer.finish()


@pytest.mark.parametrize("replicated", [False, True])
def test_a_job_goes_on_when_members_leave(in_cluster, replicated):
    """In the middle of tasks of both faces, and between tasks, which begin with the old view."""

    async def scenario(cluster):
        async with connected(cluster) as client:
            await created(client, replicated=replicated)
            job = await begun(client)
            ended = await job.write([batch(0)], "0:0")
            open_task, other = job.writer("1:0"), job.target.writer("2:0")
            await open_task.write(batch(1000))
            await asyncio.to_thread(other.write, batch(2000))
            await cluster.member(3).leave()
            await open_task.write(batch(3000))
            await asyncio.to_thread(other.write, batch(4000))
            await cluster.member(2).leave()
            tasks = [
                ended,
                await open_task.finish(),
                await asyncio.to_thread(other.finish),
                await asyncio.to_thread(write_all, job.target, "3:0", batch(5000)),
                await job.write([batch(6000)], "4:0"),
            ]
            assert await rows_of(client) == (0, 0)
            assert await job.commit(tasks) == 7 * ROWS
            assert await rows_of(client) == (7 * ROWS, 7 * ROWS)

    in_cluster(scenario)


def test_keys_to_be_removed_go_to_others_as_well(in_cluster):
    async def scenario(cluster):
        async with connected(cluster) as client:
            await client.map("t").put_all(pa.Table.from_batches([batch(0)]), key="id")
            job = await begun(client)
            async with job.writer("0:0") as writer:
                await writer.remove(batch(0, 100).select(["id"]))
                await cluster.member(2).leave()
                await writer.remove(batch(100, 100).select(["id"]))
                await job.commit([await writer.finish()])
            assert await rows_of(client) == (100, 100)

    in_cluster(scenario)


@pytest.mark.parametrize("thread", [False, True], ids=["asyncio", "blocking"])
def test_frames_that_a_leaving_member_refuses_are_taken_by_others(in_cluster, thread):
    """It is in the view yet, and has partitions of rows that are under way."""

    async def scenario(cluster):
        async with connected(cluster) as client:
            await created(client)
            job = await begun(client)
            writer = job.target.writer("0:0") if thread else job.writer("0:0")

            async def call(function, *args):
                return await (asyncio.to_thread(function, *args) if thread else function(*args))

            await call(writer.write, batch(0))
            cluster.member(2).core.departure.close()
            await call(writer.write, batch(1000))
            await call(writer.write, batch(2000))
            assert await job.commit([await call(writer.finish)]) == 3 * ROWS
            assert await rows_of(client) == (3 * ROWS, 3 * ROWS)

    in_cluster(scenario)


def test_put_all_while_members_leave(in_cluster):
    """Nothing of it fails, and nothing is written twice, over either face."""

    async def scenario(cluster):
        left = asyncio.Event()

        async def write(client, numbers):
            while not left.is_set() or numbers[-1] < numbers[0] + 2:
                number = numbers[-1]
                table = pa.Table.from_batches([batch(number * ROWS)])
                assert await client.map("t").put_all(table, key="id") == ROWS
                numbers.append(number + 1)

        async with connected(cluster) as one, connected(cluster) as two:
            await created(one)
            first, second = [0], [1000]
            writing = asyncio.gather(write(one, first), write(two, second))
            await cluster.member(3).leave()
            await cluster.member(2).leave()
            left.set()
            await writing
            count = (len(first) + len(second) - 2) * ROWS
            assert await rows_of(one) == (count, count)

    in_cluster(scenario)


def test_a_task_that_is_tried_again_after_a_loss_reaches_those_that_live(in_cluster):
    """As Spark does it: under another name, with the view of when the job began."""

    async def scenario(cluster):
        async with connected(cluster) as client:
            await created(client)
            job = await begun(client)
            ended = await job.write([batch(0)], "0:0")
            broken = job.target.writer("1:0")
            await asyncio.to_thread(broken.write, batch(1000))
            await cluster.member(3).stop()
            broken.close()
            again = await asyncio.to_thread(write_all, job.target, "1:1", batch(1000))
            assert await job.commit([ended, again]) == 2 * ROWS
            assert await rows_of(client) == (2 * ROWS, 2 * ROWS)

    in_cluster(scenario, backups=1)


def test_without_its_coordinator_a_task_ends_at_once(in_cluster):
    async def scenario(cluster):
        async with connected(cluster, 1, 2) as client:
            await created(client)
            job = await client.begin_job("t", job_id=f"3-{secrets.token_hex(12)}")
            await cluster.member(3).stop()
            while 3 in cluster.member(1).core.view.by_number:
                await asyncio.sleep(0.01)
            with pytest.raises(JobAborted):
                await asyncio.to_thread(write_all, job.target, "0:0", batch(0))

    in_cluster(scenario, backups=1)


def test_a_replicated_map_gets_no_job_that_a_new_member_lacks(in_cluster):
    """Who has joined since its rows were written has none of them."""

    async def scenario(cluster):
        async with connected(cluster) as client:
            await created(client, replicated=True)
            job = await begun(client)
            task = await job.write([batch(0)], "0:0")
            part = type(task)(task.task, tuple(n for n in task.members if n != 2), task.rows)
            with pytest.raises(JobAborted, match="member 2"):
                await job.commit([part])
            assert await rows_of(client) == (0, 0)

    in_cluster(scenario)
