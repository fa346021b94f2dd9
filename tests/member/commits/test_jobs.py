"""Staged jobs: all rows together or none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    JobAborted,
    MemberUnavailable,
    NotNullViolation,
    OutcomeUnknown,
    TypeMismatch,
    UniqueViolation,
)
from remuda.member.state.routing import Router
from remuda.rpc import codec
from remuda.rpc.arrow_stream import encode
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.storage.staging import precomputed as ahead

InCluster = Callable[..., None]
CREATE = "CREATE TABLE m (id INTEGER PRIMARY KEY, v BIGINT NOT NULL)"


@pytest.fixture(autouse=True, params=[ahead.HEAVY_ROWS, 1], ids=["on the loop", "off the loop"])
def heavy_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large jobs are put in order off the loop; here all are, or none."""
    monkeypatch.setattr(ahead, "HEAVY_ROWS", request.param)


def batch_of(schema: MapSchema, keys: Sequence[int], value: int | None) -> pa.RecordBatch:
    arrow = engine_schema(schema)
    columns = [
        pa.array(list(keys), arrow.field(0).type),
        pa.array([value] * len(keys), arrow.field(1).type),
    ]
    return pa.record_batch(columns, schema=arrow)


class Writer:
    """One task attempt: writes to every owner through its own client."""

    def __init__(self, cluster: Any, job: str, schema: MapSchema, task: str) -> None:
        self.cluster, self.job, self.schema, self.task = cluster, job, schema, task
        self.rows: dict[int, int] = {}
        self.sequences: dict[int, int] = {}

    async def write(self, keys: Sequence[int], value: int | None = 1, repeat: int = 1) -> None:
        view = self.cluster.member(1).core.view
        batch = batch_of(self.schema, keys, value)
        members = [member.number for member in view.members]
        for share in Router(self.schema).shares(batch, view, members)[0]:
            number, part = share.member, share.batch.slice(0, share.primaries)
            if not part.num_rows:
                continue
            client = await self.cluster.client(number)
            sequence = self.sequences.get(number, 0)
            self.sequences[number] = sequence + 1
            message = user_pb2.JobWrite(job=self.job, task=self.task, sequence=sequence)
            for _ in range(repeat):
                body = [encode(part.schema, [part])]
                await client.ask(RpcType.JOB_WRITE, message, user_pb2.Count, body)
            self.rows[number] = self.rows.get(number, 0) + part.num_rows

    async def end(self) -> user_pb2.JobTask:
        for number, rows in self.rows.items():
            client = await self.cluster.client(number)
            message = user_pb2.JobTaskEnd(job=self.job, task=self.task, rows=rows)
            await client.ask(RpcType.JOB_TASK_END, message, user_pb2.Count)
        return user_pb2.JobTask(task=self.task, members=list(self.rows))


async def begun(client: Any, overwrite: bool = False) -> tuple[str, MapSchema]:
    message = user_pb2.JobBegin(map="m", overwrite=overwrite, label="test")
    handle = await client.ask(RpcType.JOB_BEGIN, message, user_pb2.JobHandle)
    return handle.job, codec.decode_schema(handle.schema)


async def commit(client: Any, job: str, tasks: Sequence[user_pb2.JobTask]) -> int:
    message = user_pb2.JobCommit(job=job, tasks=tasks)
    answer = await client.ask(RpcType.JOB_COMMIT, message, user_pb2.Count)
    count: int = answer.count
    return count


def test_commit_shows_the_named_attempts_and_is_idempotent(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await client.run(CREATE)
        job, schema = await begun(client)
        assert job.startswith("2-")
        good = Writer(cluster, job, schema, "0:1")
        failed = Writer(cluster, job, schema, "0:0")
        other = Writer(cluster, job, schema, "1:0")
        await failed.write(range(50), 7)
        await good.write(range(100), repeat=2)
        await other.write(range(100, 130))
        await other.write(range(130, 150))
        assert await client.sql("SELECT count(*) FROM m") == [(0,)]
        tasks = [await good.end(), await other.end()]
        third = await cluster.client(3)
        assert await commit(third, job, tasks) == 150
        assert await commit(client, job, tasks) == 150
        assert await client.sql("SELECT count(*), sum(v) FROM m") == [(150, 150)]
        abort = user_pb2.JobAbort(job=job)
        await third.ask(RpcType.JOB_ABORT, abort, common_pb2.Ack)
        assert await client.sql("SELECT count(*) FROM m") == [(150,)]
        with pytest.raises(JobAborted):
            await good.write([1000])
        await cluster.idle()

    in_cluster(scenario)


def test_overwrite_replaces_everything_at_once(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.run(CREATE)
        await client.run("INSERT INTO m VALUES " + ", ".join(f"({i}, 0)" for i in range(60)))
        job, schema = await begun(client, overwrite=True)
        writer = Writer(cluster, job, schema, "0:0")
        await writer.write([1, 2, 3], 5)
        seen: set[Any] = set()
        stop = asyncio.Event()

        async def read() -> None:
            reader = await cluster.client(3)
            while not stop.is_set():
                seen.add((await reader.sql("SELECT count(*), sum(v) FROM m"))[0])

        reading = asyncio.ensure_future(read())
        assert await commit(client, job, [await writer.end()]) == 3
        assert await client.sql("SELECT count(*), sum(v) FROM m") == [(3, 15)]
        stop.set()
        await reading
        assert seen <= {(60, 0), (3, 15)}
        empty, _ = await begun(client, overwrite=True)
        assert await commit(client, empty, []) == 0
        assert await client.sql("SELECT count(*) FROM m") == [(0,)]
        await cluster.idle()

    in_cluster(scenario)


def test_abort_and_refusals_leave_nothing(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.run(CREATE)
        job, schema = await begun(client)
        writer = Writer(cluster, job, schema, "0:0")
        await writer.write(range(30))
        with pytest.raises(NotNullViolation):
            await writer.write([99], None)
        wrong = pa.record_batch([pa.array(["x"])], names=["id"])
        message = user_pb2.JobWrite(job=job, task="0:0", sequence=9)
        with pytest.raises(TypeMismatch):
            body = [encode(wrong.schema, [wrong])]
            await client.ask(RpcType.JOB_WRITE, message, user_pb2.Count, body)
        with pytest.raises(JobAborted):
            end = user_pb2.JobTaskEnd(job=job, task="0:0", rows=1_000_000)
            await client.ask(RpcType.JOB_TASK_END, end, user_pb2.Count)
        await client.ask(RpcType.JOB_ABORT, user_pb2.JobAbort(job=job), common_pb2.Ack)
        with pytest.raises(JobAborted):
            await commit(client, job, [])
        twice, _ = await begun(client)
        one, two = Writer(cluster, twice, schema, "0:0"), Writer(cluster, twice, schema, "1:0")
        await one.write([1, 2])
        await two.write([2, 3])
        with pytest.raises(UniqueViolation):
            await commit(client, twice, [await one.end(), await two.end()])
        assert await client.sql("SELECT count(*) FROM m") == [(0,)]
        await cluster.idle()
        assert all(s._staging.jobs == {} for m in cluster.members for s in m.core.stores.values())

    in_cluster(scenario)


def test_concurrent_writes_of_one_map_take_turns(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(1 + number % 3) for number in range(6)]
        await clients[0].run(CREATE)

        async def insert(index: int) -> int:
            client = clients[index]
            for step in range(5):
                keys = [index * 100 + step * 10 + k for k in range(6)]
                values = ", ".join(f"({key}, 1)" for key in keys)
                done = await client.run(f"INSERT INTO m VALUES {values}")
                assert done.error is None, done.error
            return 30

        inserting = asyncio.gather(*(insert(index) for index in range(6)))
        reader = await cluster.client(2)
        while not inserting.done():
            count = (await reader.sql("SELECT count(*) FROM m"))[0][0]
            assert count % 6 == 0, "a statement's rows appear together"
        assert sum(await inserting) == 180
        assert await reader.sql("SELECT count(*) FROM m") == [(180,)]
        await cluster.idle()

    in_cluster(scenario)


def test_a_job_ends_when_its_coordinator_is_lost(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.run(CREATE)
        far = await cluster.client(3)
        job, schema = await begun(far)
        writer = Writer(cluster, job, schema, "0:0")
        await writer.write(range(30))
        assert cluster.held()
        await cluster.member(3).stop("killed by the test")
        await cluster.idle()
        with pytest.raises(MemberUnavailable):
            await commit(client, job, [])

    in_cluster(scenario)


def test_a_task_that_is_named_twice_counts_once(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.run(CREATE)
        job, schema = await begun(client)
        writer = Writer(cluster, job, schema, "0:0")
        await writer.write(range(60))
        task = await writer.end()
        task.rows = 60
        assert await commit(client, job, [task, task]) == 60

    in_cluster(scenario)


def test_a_commit_of_which_nobody_knows_yet_is_not_rolled_back_by_half(
    in_cluster: InCluster,
) -> None:
    """Some members may have committed when the user is told that nobody knows."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.run(CREATE)
        job, schema = await begun(client)
        writer = Writer(cluster, job, schema, "0:0")
        await writer.write(range(30))
        leader = cluster.member(1).commits
        commit_to_its_end, ask_finish = leader.commit, leader._ask_finish
        decided: list[tuple[Any, ...]] = []
        running: list[asyncio.Future[int]] = []

        async def commit_unknown(*asked: Any, **options: Any) -> int:
            running.append(asyncio.ensure_future(commit_to_its_end(*asked, **options)))
            while not decided:
                await asyncio.sleep(0.001)
            raise OutcomeUnknown("nobody knows")

        leader.commit, leader._ask_finish = commit_unknown, lambda *asked: decided.append(asked)
        with pytest.raises(OutcomeUnknown):
            await commit(client, job, [await writer.end()])
        for number in (2, 3):
            await cluster.member(number).jobs._check(job)
        leader._ask_finish = ask_finish
        for asked in decided:
            ask_finish(*asked)
        assert await running[0] == 30
        assert await client.sql("SELECT count(*) FROM m") == [(30,)]
        await cluster.idle()

    in_cluster(scenario)


def test_replicated_maps(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(number) for number in (1, 2, 3)]
        schema = MapSchema(
            name="m",
            columns=(await _columns(clients[0])),
            key=("id",),
            partition_by=("id",),
            replicated=True,
        )
        message = user_pb2.CreateMap(schema=codec.encode_schema(schema))
        made = await clients[0].ask(RpcType.CREATE_MAP, message, user_pb2.MapDescription)
        schema = codec.decode_schema(made.schema)
        assert await clients[1].put(schema, (1, 10), (2, 20)) == [None, None]
        assert await clients[2].put(schema, (1, 11)) == [(1, 10)]
        done = await clients[0].run("INSERT INTO m VALUES (3, 30), (4, 40)")
        assert (done.error, done.affected) == (None, 2)
        for client in clients:
            assert await client.get(schema, 1, 2, 3, 9) == [(1, 11), (2, 20), (3, 30), None]
            assert await client.sql("SELECT count(*), sum(v) FROM m") == [(4, 101)]
            size = await client.ask(RpcType.MAP_SIZE, user_pb2.MapName(name="m"), user_pb2.Count)
            assert size.count == 4
        absent = user_pb2.PutRequest.IF_ABSENT
        assert await clients[1].put(schema, (1, 99), (5, 50), condition=absent) == [(1, 11), None]
        assert await clients[2].remove(schema, 2, 8) == [(2, 20), None]
        await same_key_twice(clients[1], schema)
        for client in clients:
            rows = await client.sql("SELECT id, v FROM m ORDER BY id")
            assert rows == [(1, 11), (3, 30), (4, 40), (5, 50)]
        batch = batch_of(schema, range(100, 150), 1)
        request = user_pb2.PutBatchRequest(
            map="m", map_id=schema.map_id, schema_version=schema.version
        )
        body = [encode(batch.schema, [batch])]
        count = await clients[0].ask(RpcType.MAP_PUT_BATCH, request, user_pb2.Count, body)
        assert count.count == 50
        for client in clients:
            assert await client.sql("SELECT count(*) FROM m") == [(54,)]
        await cluster.idle()

    in_cluster(scenario)


async def same_key_twice(client: Any, schema: MapSchema) -> None:
    """Rows of one request count one after the other; the map has no key above 600 afterwards."""
    absent, present = user_pb2.PutRequest.IF_ABSENT, user_pb2.PutRequest.IF_PRESENT
    assert await client.put(schema, (601, 1), (601, 2), condition=absent) == [None, (601, 1)]
    assert await client.get(schema, 601) == [(601, 1)]
    put = await client.put(schema, (601, 3), (602, 4), (601, 5), condition=present)
    assert put == [(601, 1), None, (601, 3)]
    assert await client.get(schema, 601, 602) == [(601, 5), None]
    assert await client.put(schema, (602, 6), (602, 7)) == [None, (602, 6)]
    assert await client.remove(schema, 601, 602) == [(601, 5), (602, 7)]


async def _columns(client: Any) -> Any:
    await client.run(CREATE.replace("TABLE m", "TABLE shape"))
    return (await client.schema("shape")).columns
