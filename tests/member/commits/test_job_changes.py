"""Jobs that insert only, delete by key, and do both: across tasks, attempts and copies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from remuda.client.asynchronous.client import Client
from remuda.client.asynchronous.connect import connect
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import JobAborted, NotNullViolation, TypeMismatch, UniqueViolation
from remuda.storage.staging import precomputed as ahead

InCluster = Callable[..., None]
CREATE = "CREATE TABLE m (id BIGINT PRIMARY KEY, v INTEGER NOT NULL)"


@pytest.fixture(autouse=True, params=[ahead.HEAVY_ROWS, 1], ids=["on the loop", "off the loop"])
def heavy_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large jobs are put in order off the loop; here all are, or none."""
    monkeypatch.setattr(ahead, "HEAVY_ROWS", request.param)


def rows(schema: MapSchema, keys: Sequence[int], value: int) -> pa.RecordBatch:
    arrow = engine_schema(schema)
    columns = [
        pa.array(list(keys), arrow.field(0).type),
        pa.array([value] * len(keys), arrow.field(1).type),
    ]
    return pa.record_batch(columns, schema=arrow)


def keys(schema: MapSchema, values: Sequence[int | None]) -> pa.RecordBatch:
    field = engine_schema(schema).field(0)
    return pa.record_batch([pa.array(list(values), field.type)], schema=pa.schema([field]))


_numbers = itertools.count()


async def task(
    job: Any, *, stored: Sequence[int] = (), removed: Sequence[int] = (), value: int = 1
) -> Any:
    """One attempt that writes and removes, and ends."""
    async with job.writer(f"{next(_numbers)}:0") as writer:
        if stored:
            await writer.write(rows(job.schema, stored, value))
        if removed:
            await writer.remove(keys(job.schema, removed))
        return await writer.finish()


async def held(client: Client) -> list[tuple[int, int]]:
    cursor = await client.sql("SELECT id, v FROM m ORDER BY id")
    return [tuple(row) for row in await cursor.fetchall()]


async def opened(cluster: Any, create: str = CREATE, stored: int = 100) -> Client:
    client = await connect(f"127.0.0.1:{cluster.member(1).core.info.user_port}")
    await client.sql(create)
    if stored:
        job = await client.begin_job("m")
        await job.commit([await task(job, stored=range(stored), value=0)])
    return client


def test_inserts_meet_no_key(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        async with await opened(cluster) as client:
            job = await client.begin_job("m", insert_only=True)
            tasks = [
                await task(job, stored=range(100, 150)),
                await task(job, stored=range(99, 100)),
            ]
            with pytest.raises(UniqueViolation, match="m_pkey") as caught:
                await job.commit(tasks)
            assert "(id)=(99)" in (caught.value.detail or "")
            assert len(await held(client)) == 100
            job = await client.begin_job("m", insert_only=True)
            assert await job.commit([await task(job, stored=range(100, 150))]) == 50
            assert len(await held(client)) == 150
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.parametrize("replicated", [False, True])
def test_deletes_and_changes(in_cluster: InCluster, replicated: bool) -> None:
    create = CREATE + (" WITH (replicated = true)" if replicated else "")

    async def scenario(cluster: Any) -> None:
        async with await opened(cluster, create) as client:
            job = await client.begin_job("m")
            assert await job.commit([await task(job, removed=[*range(50), 5000])]) == 51
            assert [key for key, _ in await held(client)] == list(range(50, 100))
            job = await client.begin_job("m")
            tasks = [
                await task(job, stored=range(60, 70), removed=range(70, 80), value=7),
                await task(job, stored=range(200, 205), removed=[50], value=8),
            ]
            await task(job, stored=[1000], removed=[99])  # an attempt that the commit does not name
            assert await job.commit(tasks) == 26
            expected = {key: 0 for key in range(51, 100) if not 60 <= key < 80}
            expected |= dict.fromkeys(range(60, 70), 7) | dict.fromkeys(range(200, 205), 8)
            assert dict(await held(client)) == expected
            assert await client.map("m").size() == len(expected)
        await cluster.idle()

    in_cluster(scenario)


def test_a_key_may_be_changed_once(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        async with await opened(cluster) as client:
            for stored, removed, what in (
                ((3,), (3,), "deletes a row of map m and writes it"),
                ((), (4,), "to be deleted from map m have the same key"),
            ):
                job = await client.begin_job("m")
                tasks = [
                    await task(job, stored=stored, removed=[*removed, 10]),
                    await task(job, removed=[11] if stored else list(removed)),
                ]
                with pytest.raises(UniqueViolation, match=what) as caught:
                    await job.commit(tasks)
                assert f"id = {removed[0]}" in (caught.value.detail or "")
            assert len(await held(client)) == 100
        await cluster.idle()

    in_cluster(scenario)


def test_keys_that_are_none(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        async with await opened(cluster, stored=0) as client:
            job = await client.begin_job("m")
            async with job.writer("0:0") as writer:
                with pytest.raises(NotNullViolation, match='"id"'):
                    await writer.remove(keys(job.schema, [1, None]))
                with pytest.raises(TypeMismatch, match="not those of the map"):
                    await writer.remove(rows(job.schema, [1], 1))
            await job.abort()
            with pytest.raises(JobAborted):
                await job.commit([])
        await cluster.idle()

    in_cluster(scenario)


def test_deletes_reach_backups(in_cluster: InCluster) -> None:

    async def scenario(cluster: Any) -> None:
        async with await opened(cluster) as client:
            job = await client.begin_job("m")
            await job.commit([await task(job, stored=range(100, 110), removed=range(50))])
            before = await held(client)
            stores = [
                each
                for number in (1, 2, 3)
                for each in cluster.member(number).core.backup_stores.values()
            ]
            at = (await client.cluster_info()).clock
            assert sum(store.size(at) for store in stores) == len(before)
        await cluster.idle()

    in_cluster(scenario, backups=1)
