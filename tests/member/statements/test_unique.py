"""UNIQUE: whoever writes, wherever, no two rows have the same values."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from calendars import Calendar
from tests.member.conftest import TestCluster, cluster_of
from transacting import Session, unique_outcome

from remuda.catalog.unique_guards import GUARD_TTL
from remuda.datatypes.arrow import engine_schema
from remuda.errors import (
    RemudaError,
    SerializationFailure,
    UniqueViolation,
)
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

TABLE = "CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE)"


@pytest.mark.parametrize("backups", [0, 1])
def test_of_many_who_write_one_value_at_a_time_one_succeeds(in_cluster: Any, backups: int) -> None:
    async def scenario(cluster: TestCluster) -> None:
        clients = [await cluster.client(number) for number in (1, 2, 3)]
        await clients[0].sql(TABLE)
        schema = await clients[0].schema("t")
        values = range(4)
        insert, update = "INSERT INTO t VALUES (?, ?)", "UPDATE t SET u = ? WHERE k = ?"
        await clients[0].sql("INSERT INTO t SELECT i, 1000 + i FROM generate_series(400, 407) g(i)")
        for value in values:
            writers = [
                lambda v=value: clients[0].sql(insert, 100 + v, v),
                lambda v=value: clients[1].put(schema, (200 + v, v)),
                lambda v=value: clients[2].put(schema, (300 + v, v), (600 + v, 2000 + v)),
                lambda v=value: clients[1].sql(update, v, 400 + v),
                lambda v=value: clients[2].sql(insert + " ON CONFLICT DO NOTHING", 500 + v, v),
            ]
            ends = await asyncio.gather(*(unique_outcome(writer) for writer in writers))
            assert ends[:4].count("written") <= 1
            assert ends[4] == "written"  # or did nothing
        rows = await clients[0].sql(
            "SELECT count(*), count(DISTINCT u), count(*) FILTER (WHERE u < 1000) FROM t"
        )
        assert rows[0][0] == rows[0][1]
        assert rows[0][2] == len(values)
        await cluster.idle()

    in_cluster(scenario, backups=backups)


def test_entries_that_keep_their_values_and_such_that_do_not(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        one, two = await cluster.client(1), await cluster.client(2)
        await one.sql(TABLE)
        schema = await one.schema("t")
        await one.put(schema, (1, 10), (2, 20), (3, None), (4, None))
        await two.put(schema, (1, 10))
        for rows in [(5, 10)], [(1, 20)], [(5, 50), (6, 50)], [(5, 50), (6, 20)]:
            with pytest.raises(UniqueViolation) as refused:
                await two.put(schema, *rows)
            assert "t_u_key" in refused.value.message
        with pytest.raises(UniqueViolation):
            await one.put(schema, (7, 20), condition=user_pb2.PutRequest.IF_ABSENT)
        await one.put(schema, (1, 20), condition=user_pb2.PutRequest.IF_ABSENT)  # is there
        await one.put(schema, (1, 20), (2, 10))  # together
        await one.remove(schema, 1)
        await two.put(schema, (8, 20))
        rows = await one.sql("SELECT * FROM t ORDER BY k")
        assert rows == [(2, 10), (3, None), (4, None), (8, 20)]

    in_cluster(scenario)


def test_what_is_written_in_bulk(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client()
        await client.sql(TABLE)
        schema = await client.schema("t")

        async def put_batch(keys: range, values: range) -> None:
            message = user_pb2.PutBatchRequest(
                map="t", map_id=schema.map_id, schema_version=schema.version
            )
            batch = pa.record_batch([list(keys), list(values)], schema=engine_schema(schema))
            body = arrow_stream.encode(batch.schema, [batch])
            await client.ask(RpcType.MAP_PUT_BATCH, message, user_pb2.Count, [body])

        await put_batch(range(600), range(600))
        await put_batch(range(50), range(50))
        with pytest.raises(UniqueViolation):
            await put_batch(range(2000, 2020), range(599, 619))
        insert = "INSERT INTO t SELECT 5000 + i, {} + i FROM generate_series(1, 60) g(i)"
        with pytest.raises(UniqueViolation):
            await client.sql(insert.format(100))
        await client.sql(insert.format(600))
        with pytest.raises(UniqueViolation):
            await client.sql("UPDATE t SET u = u % 600")
        await client.sql("UPDATE t SET u = u + 1")
        assert await client.sql("SELECT count(*), count(DISTINCT u) FROM t") == [(660, 660)]

        begun = await client.ask(RpcType.JOB_BEGIN, user_pb2.JobBegin(map="t"), user_pb2.JobHandle)
        batch = pa.record_batch([[9000], [1]], schema=engine_schema(schema))
        body = arrow_stream.encode(batch.schema, [batch])
        message = user_pb2.JobWrite(job=begun.job, task="0:0", sequence=0)
        await client.ask(RpcType.JOB_WRITE, message, user_pb2.Count, [body])
        commit = user_pb2.JobCommit(job=begun.job, tasks=[user_pb2.JobTask(task="0:0")])
        with pytest.raises(UniqueViolation, match="t_u_key") as refused:
            await client.ask(RpcType.JOB_COMMIT, commit, user_pb2.Count)
        assert refused.value.detail == "Key (u)=(1) already exists."
        assert (await client.sql("SELECT count(*) FROM t"))[0][0] == 660

    in_cluster(scenario)


def test_transactions_at_the_commit(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        one, two = await cluster.client(1), await cluster.client(2)
        await one.sql(TABLE)
        for begin in (
            "BEGIN",
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            "BEGIN TRANSACTION PESSIMISTIC",
        ):
            await one.sql("TRUNCATE t")
            first, second = Session(one), Session(two)
            await first.sql(begin)
            await second.sql(begin)
            await first.sql("INSERT INTO t VALUES (1, 7)")
            await second.sql("INSERT INTO t VALUES (2, 7)")
            await first.sql("COMMIT")
            with pytest.raises(RemudaError) as refused:
                await second.sql("COMMIT")
            assert refused.value.sqlstate in {"40001", "23505"}
            assert await one.sql("SELECT * FROM t") == [(1, 7)]
        await cluster.idle()

    in_cluster(scenario)


def test_an_index_that_is_made_while_others_write(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        one, two = await cluster.client(1), await cluster.client(2)
        await one.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT)")
        refused = asyncio.Event()

        async def write(client: Any, key: int) -> None:
            """The same values as the other one: once the index is there, one of them is refused."""
            value = 0
            while not refused.is_set():
                insert = "INSERT INTO t VALUES (?, ?)"
                if (
                    await unique_outcome(partial(client.sql, insert, key + value, value))
                    == "refused"
                ):
                    refused.set()
                value += 1

        writers = [asyncio.ensure_future(write(one, 0)), asyncio.ensure_future(write(two, 10**6))]
        third = await cluster.client(3)
        while True:
            try:
                await third.sql("CREATE UNIQUE INDEX i ON t (u)")
            except UniqueViolation:
                assert await third.sql("SHOW INDEXES") == []
                await third.sql("TRUNCATE t")
            else:
                break
        await asyncio.gather(*writers)
        assert await third.sql("SELECT count(*) - count(DISTINCT u) FROM t") == [(0,)]

    in_cluster(scenario)


def test_snapshots_from_before_the_index(in_cluster: Any) -> None:
    """Who wrote then had nothing to tell those who would read so early."""

    async def scenario(cluster: TestCluster) -> None:
        one, two = await cluster.client(1), await cluster.client(2)
        await one.sql("CREATE TABLE other (k BIGINT PRIMARY KEY)")
        for begin in ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"):
            await one.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT)")
            first = Session(one)
            await first.sql(begin)
            await first.sql("SELECT count(*) FROM other")
            await two.sql("INSERT INTO t VALUES (1, 7)")
            await two.sql("CREATE UNIQUE INDEX i ON t (u)")
            with pytest.raises(UniqueViolation):
                await first.sql("INSERT INTO t VALUES (2, 7)")
            await first.sql("ROLLBACK")
            assert await two.sql("SELECT * FROM t") == [(1, 7)]
            await one.sql("DROP TABLE t")
        await cluster.idle()

    in_cluster(scenario)


def test_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with cluster_of(1, data_dir=str(tmp_path)) as cluster:
            client = await cluster.client()
            await client.sql(TABLE)
            await client.sql("INSERT INTO t VALUES (1, 10)")
        async with cluster_of(1, data_dir=str(tmp_path)) as cluster:
            client = await cluster.client()
            with pytest.raises(UniqueViolation):
                await client.sql("INSERT INTO t VALUES (2, 10)")
            await client.sql("INSERT INTO t VALUES (2, 20)")
            assert await client.sql("SHOW TABLES") == [("t", 2, "k", False, None)]

    asyncio.run(main())


def test_a_guard_that_runs_out_is_no_conflict(in_cluster: Any) -> None:
    """A client that is alone removes a value and writes it again, while the guard of the first
    time ends."""

    async def scenario(cluster: TestCluster) -> None:
        calendar = Calendar(cluster)
        one = await cluster.client(1)
        await one.sql(TABLE)
        for begin in ("BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE"):
            await one.sql("INSERT INTO t VALUES (1, 10)")
            await one.sql("DELETE FROM t")
            calendar.advance(GUARD_TTL / 1e6 - 3)
            session = Session(one)
            await session.sql(begin)
            await session.sql("INSERT INTO t VALUES (2, 10)")
            calendar.advance(5)
            await session.sql("COMMIT")
            assert await one.sql("SELECT * FROM t") == [(2, 10)]
            await one.sql("DELETE FROM t")
        await cluster.idle()

    in_cluster(scenario, backups=1)


def test_conflicts_of_guards_do_not_name_their_map(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        one, two = await cluster.client(1), await cluster.client(2)
        await one.sql(TABLE)
        first, second = Session(one), Session(two)
        await first.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
        await second.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
        await first.sql("INSERT INTO t VALUES (1, 10)")
        await second.sql("INSERT INTO t VALUES (2, 10)")
        await first.sql("COMMIT")
        with pytest.raises(SerializationFailure) as refused:
            await second.sql("COMMIT")
        assert "unique constraint" in refused.value.message
        assert "guard" not in str(refused.value)
        assert "\x01" not in str(refused.value)
        await cluster.idle()

    in_cluster(scenario)
