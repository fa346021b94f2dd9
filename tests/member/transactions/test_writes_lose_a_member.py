"""Writes that lose a member before their commit is decided: nothing of them took effect, so they
run again, silently, and take effect once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest

import remuda.aio
from remuda.errors import JobInterrupted
from remuda.member.base.core import Core

KEYS = 40
TABLE = pa.table({"id": range(100, 100 + KEYS), "v": [1] * KEYS})


async def update(client):
    assert (await client.sql("UPDATE t SET v = v + 1")).rowcount == KEYS


async def delete(client):
    assert (await client.sql("DELETE FROM t WHERE v = 0")).rowcount == KEYS


async def insert(client):
    await client.sql("INSERT INTO t SELECT id + 100, 1 FROM t")


async def merge(client):
    await client.sql("MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 7")


async def create_as(client):
    await client.sql("CREATE TABLE copied AS SELECT id, v FROM t")


async def truncate(client):
    await client.sql("TRUNCATE TABLE t")


async def put_table(client):
    assert await client.map("t").put_all(TABLE) == KEYS


AFTER = {
    update: (KEYS, KEYS),
    delete: (0, None),
    insert: (2 * KEYS, KEYS),
    merge: (KEYS, 7 * KEYS),
    create_as: (KEYS, 0),
    truncate: (0, None),
    put_table: (2 * KEYS, KEYS),
}


@asynccontextmanager
async def connected(cluster, *numbers):
    places = [cluster.member(n).info for n in numbers or (1, 2)]
    async with remuda.aio.connect([(p.host, p.user_port) for p in places]) as client:
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)")
        await client.map("t").put_all({key: {"v": 0} for key in range(KEYS)})
        yield client


def silent(member, step: str) -> asyncio.Event:
    """The member takes this step of a commit, and says nothing. Set when it is asked."""
    asked = asyncio.Event()
    setattr(member.commits.participants, step, lambda *_: asked.set())
    return asked


BOTH = [
    pytest.param(write, step, marks=() if write in {update, put_table} else pytest.mark.soak)
    for write in AFTER
    for step in ("prepare_here", "keep_here")
]


@pytest.mark.parametrize(("write", "step"), BOTH)
def test_a_write_whose_participant_is_lost_runs_again(
    in_cluster, write: Callable[..., Awaitable[None]], step: str
) -> None:
    async def scenario(cluster):
        async with connected(cluster) as client:
            asked = silent(cluster.member(3), step)
            running = asyncio.ensure_future(write(client))
            await asked.wait()
            await cluster.member(3).stop()
            await running
            name = "copied" if write is create_as else "t"
            found = await (await client.sql(f"SELECT count(*), sum(v) FROM {name}")).fetchall()
            assert tuple(found[0]) == AFTER[write]

    in_cluster(scenario, backups=1)


def test_a_statement_planned_for_a_member_that_has_left_is_planned_again(in_cluster) -> None:
    """Between the choice of the members and the commit another view comes."""

    async def scenario(cluster):
        async with connected(cluster) as client:
            for member in cluster.members[:2]:
                commit, left = member.commits.commit_in_turn, cluster.member(3)

                async def late(*given, commit=commit, member=member, left=left):
                    if 3 in member.core.view.by_number:
                        await left.leave()
                    return await commit(*given)

                member.commits.commit_in_turn = late
            await update(client)
            assert (await client.map("t").get(5)).v == 1

    in_cluster(scenario, backups=1)


def test_a_job_ends_when_its_coordinator_leaves_for_longer_than_it_waits(in_cluster) -> None:
    """It was rolled back, says so, and may be written again; a writer hears the same."""

    async def scenario(cluster):
        async with connected(cluster) as client:
            job = await client.begin_job("t", job_id=f"3-{'a' * 24}")
            task = await job.write([TABLE.to_batches()[0]])
            leaving = asyncio.ensure_future(cluster.member(3).leave())
            late = asyncio.ensure_future(late_commit(cluster.member(1).core, job, task))
            await leaving
            with pytest.raises(JobInterrupted, match=f"job 3-{'a' * 24}") as error:
                await late
            assert error.value.retryable
            assert cluster.member(3).jobs.count == 0
            with pytest.raises(JobInterrupted):
                await job.write([TABLE.to_batches()[0]], "1:0")
            assert await client.map("t").size() == KEYS

    in_cluster(scenario, backups=1, leave_timeout=0.3)


async def late_commit(core: Core, job, task):
    """When the view has no coordinator any more."""
    while 3 in core.view.by_number:
        await asyncio.sleep(0.01)
    return await job.commit([task])


def test_a_commit_that_a_lost_coordinator_had_decided_is_known(in_cluster) -> None:
    """The members that took part say so; no row is written twice."""

    async def scenario(cluster):
        async with connected(cluster) as client:
            job = await client.begin_job("t", job_id=f"3-{'b' * 24}")
            task = await job.write([TABLE.to_batches()[0]])
            coordinator = cluster.member(3)
            committed = asyncio.Event()

            async def no_answer(_call, commit):
                await commit
                committed.set()

            coordinator.jobs._await_commit = no_answer
            late = asyncio.ensure_future(job.commit([task]))
            await committed.wait()
            await coordinator.stop()
            assert await late == KEYS
            assert await client.map("t").size() == 2 * KEYS

    in_cluster(scenario, backups=1)
