"""UNIQUE in bulk writes: no two rows have one value, of those of a job and of those there are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from jobs_by_hand import job
from transacting import Session, unique_outcome

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import RemudaError, SerializationFailure, UniqueViolation
from remuda.member.commits import unique_comparison
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.storage.maps import unique_values

InCluster = Callable[..., None]


@pytest.fixture(params=["by the index", "row by row"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How stored rows are found."""
    by_index = request.param == "by the index"
    monkeypatch.setattr(unique_comparison, "SOUGHT_BY_INDEX", 10_000 if by_index else 0)
    monkeypatch.setattr(unique_values, "INDEX_RATIO", 0 if by_index else 1000)


async def refused(client: Any, *arguments: Any, **named: Any) -> RemudaError:
    with pytest.raises(UniqueViolation) as caught:
        await job(client, *arguments, **named)
    return caught.value


async def indexed(cluster: Any) -> None:
    """Wait until every member has covered its rows by the indexes."""
    while any(
        not index.built or store.indexes.step()
        for member in cluster.members
        for store in member.core.stores.values()
        for index in store.indexes.by_id.values()
    ):
        await asyncio.sleep(0)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("backups", [0, 1])
def test_what_a_job_may_write(in_cluster: InCluster, backups: int) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE)")
        assert await job(client, [(k, 1000 + k) for k in range(300)]) == 300
        await indexed(cluster)
        twice = await refused(client, [(k, k if k != 470 else 420) for k in range(400, 500)])
        assert twice.message == 'duplicate key value violates unique constraint "t_u_key"'
        assert twice.detail == "Key (u)=(420) already exists."
        assert twice.subject.constraint == "t_u_key"
        there = await refused(client, [(k, k) for k in range(400, 500)] + [(777, 1299)])
        assert there.detail == "Key (u)=(1299) already exists."
        assert await client.sql("SELECT count(*) FROM t") == [(300,)]
        # Values may go from one row to another, and take the place of what is removed.
        assert await job(client, [(k, 1000 + (k + 1) % 300) for k in range(300)]) == 300
        assert await job(client, [(500 + k, 1001 + k) for k in range(20)], list(range(20))) == 40
        await refused(client, [(900, 1030)], [1])
        assert await job(client, [(k, None) for k in range(600, 620)]) == 20
        # Everything is replaced: only the new rows count.
        await refused(client, [(1, 5), (2, 5)], overwrite=True)
        assert await job(client, [(k, 1000 + k) for k in range(50, 60)], overwrite=True) == 10
        assert await client.sql("SELECT min(u), count(*) FROM t") == [(1050, 10)]
        await cluster.idle()

    in_cluster(scenario, backups=backups)


COLUMNS = {
    "DOUBLE PRECISION": [0.0, -0.0, float("nan"), float("inf"), 1.5, None],
    "CHAR(4)": ["a", "a ", "b", "", None],
    "NUMERIC(30, 2)": ["1.0", "1.00", "2", None],
    "TEXT": ["a", "a ", "b" * 300, "", None],
    "BYTEA": ["\\x00", "\\x0000", "\\x", None],
    "BOOLEAN": ["true", "false", None],
    "UUID": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-00000000000a", None],
}


@pytest.mark.soak
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("distinct", ["", "NULLS NOT DISTINCT"])
def test_values_are_equal_as_for_single_rows(in_cluster: InCluster, distinct: str) -> None:
    """Whatever a single INSERT refuses, a job refuses as well, and nothing else."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        for number, (kind, values) in enumerate(COLUMNS.items()):
            single, bulk, source = f"s{number}", f"b{number}", f"c{number}"
            unique = f"u {kind}, v INTEGER, UNIQUE {distinct} (u, v)"
            if number % 2:
                unique = f"u {kind}, v INTEGER, UNIQUE {distinct} (u)"
            for table in (single, bulk):
                await client.sql(f"CREATE TABLE {table} (k BIGINT PRIMARY KEY, {unique})")
            await client.sql(f"CREATE TABLE {source} (k BIGINT PRIMARY KEY, u {kind}, v INTEGER)")
            for key, value in enumerate([*values, *values]):
                v = None if key == len(values) else 1
                # By value and type: parameters of another type are converted as in a single row.
                text = "NULL" if value is None else f"CAST('{value}' AS {kind})"
                await client.sql(f"INSERT INTO {source} VALUES ({key}, {text}, {v or 'NULL'})")
            rows = await physical(cluster, source)
            for row in rows:
                one = await outcome(
                    client.sql(f"INSERT INTO {single} SELECT * FROM {source} WHERE k = {row[0]}")
                )
                many = await outcome(job(client, [row], table=bulk))
                assert (one, kind, row) == (many, kind, row)
            for _ in range(3):  # together: the first that comes twice refuses all
                some = random.Random(number).sample(rows, 4)
                keys = ", ".join(str(row[0]) for row in some)
                await client.sql(f"DELETE FROM {single}")
                await client.sql(f"DELETE FROM {bulk}")
                insert = f"INSERT INTO {single} SELECT * FROM {source} WHERE k IN ({keys})"
                assert await outcome(client.sql(insert)) == await outcome(
                    job(client, some, table=bulk)
                )
                assert await client.sql(f"SELECT count(*) FROM {single}") == await client.sql(
                    f"SELECT count(*) FROM {bulk}"
                )

    in_cluster(scenario)


async def physical(cluster: Any, table: str) -> list[tuple[Any, ...]]:
    """The rows as members keep them."""
    found: list[tuple[Any, ...]] = []
    for member in cluster.members:
        store = member.core.stores[member.core.catalog.find(table).map_id]
        cursor = store.scan(member.core.timestamp(), range(len(store.schema.columns)))
        while (batch := cursor.next()) is not None:
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return sorted(found, key=lambda row: row[0])


async def outcome(work: Any) -> str:
    try:
        await work
    except UniqueViolation:
        return "refused"
    return "written"


def test_transactions_that_looked_before_a_job_committed(in_cluster: InCluster) -> None:
    """They have not seen its rows, whichever they are: the commit is refused. Those that begin
    afterwards, and those that only remove, are not."""

    async def scenario(cluster: Any) -> None:
        one, two = await cluster.client(1), await cluster.client(2)
        await one.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE)")
        await job(one, [(k, k) for k in range(50)])
        writer, remover = Session(one), Session(two)
        for session in (writer, remover):
            await session.sql("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await writer.sql("INSERT INTO t VALUES (1000, 700)")
        await remover.sql("DELETE FROM t WHERE k = 3")
        # One row: most members have none of the job, and must remember it all the same.
        await job(two, [(2000, 700)])
        with pytest.raises(SerializationFailure, match="in bulk"):
            await writer.sql("COMMIT")
        await remover.sql("COMMIT")
        await writer.sql("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await writer.sql("INSERT INTO t VALUES (1000, 701)")
        await job(two, [], [2000])  # only removes: it writes no value
        await writer.sql("COMMIT")
        assert await one.sql("SELECT * FROM t WHERE u > 600") == [(1000, 701)]
        await cluster.idle()

    in_cluster(scenario)


def test_jobs_beside_single_writes_of_the_same_values(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(number) for number in (1, 2, 3)]
        await clients[0].sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE)")
        schema = await clients[0].schema("t")

        for value in range(8):
            writers: list[Callable[[], Any]] = [
                lambda v=value: job(clients[0], [(1000 + v, v), (2000 + v, 10_000 + v)]),
                lambda v=value: job(clients[1], [(3000 + v, 20_000 + v), (4000 + v, v)]),
                lambda v=value: clients[2].sql("INSERT INTO t VALUES (?, ?)", 5000 + v, v),
                lambda v=value: clients[1].put(schema, (6000 + v, v)),
            ]
            ends = await asyncio.gather(*(unique_outcome(writer) for writer in writers))
            assert sorted(ends) == ["refused"] * 3 + ["written"]
        rows = await clients[0].sql("SELECT count(u), count(DISTINCT u) FROM t")
        assert rows[0][0] == rows[0][1]
        await cluster.idle()

    in_cluster(scenario, backups=1)


@pytest.mark.usefixtures("way")
def test_a_hash_that_two_values_share_refuses_nothing(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(self: unique_values.UniqueForm, columns: list[pa.Array]) -> np.ndarray:
        return original(self, columns) % np.uint64(3)

    original = unique_values.UniqueForm.hashes
    monkeypatch.setattr(unique_values.UniqueForm, "hashes", few)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u TEXT, v INTEGER, UNIQUE (u, v))")
        assert await job(client, [(k, f"a{k % 50}", k // 50) for k in range(100)]) == 100
        assert await job(client, [(k, f"b{k}", 0) for k in range(50, 150)]) == 100
        twice = await refused(client, [(k, f"c{k}", 0) for k in range(200, 250)] + [(8, "b60", 0)])
        assert twice.detail == "Key (u, v)=(b60, 0) already exists."
        await refused(client, [(k, f"d{k % 99}", 0) for k in range(200, 300)])

    in_cluster(scenario)


def test_large_statements_and_batches_are_staged(in_cluster: InCluster) -> None:
    """Beyond ``transaction_memory``; constraints of other kinds hold as well."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE, "
            "w TEXT NOT NULL CHECK (w <> ''))"
        )
        insert = "INSERT INTO t SELECT i, {}, repeat('x', 100) FROM generate_series(1, 3000) g(i)"
        await client.sql(insert.format("i"))
        for statement, state in (
            (
                "INSERT INTO t SELECT i, i - 4000, 'y' FROM generate_series(4001, 7000) g(i)",
                "23505",
            ),
            ("UPDATE t SET u = u / 2", "23505"),
            ("INSERT INTO t SELECT i, i, '' FROM generate_series(4001, 7000) g(i)", "23514"),
            ("INSERT INTO t SELECT i, i, NULL FROM generate_series(4001, 7000) g(i)", "23502"),
            ("INSERT INTO t SELECT i, i + 9000, 'z' FROM generate_series(1, 3000) g(i)", "23505"),
        ):
            with pytest.raises(RemudaError) as caught:
                await client.sql(statement)
            assert (statement, caught.value.sqlstate) == (statement, state)
        await client.sql("UPDATE t SET u = u + 1, w = 'y'")
        await client.sql(
            "INSERT INTO t SELECT 10000 + i, i, 'c' FROM generate_series(1, 4000) g(i) "
            "ON CONFLICT (u) DO UPDATE SET w = 'met'"
        )
        await client.sql(
            "INSERT INTO t SELECT 20000 + i, i, 'c' FROM generate_series(1, 5000) g(i) "
            "ON CONFLICT DO NOTHING"
        )
        found = await client.sql(
            "SELECT count(*), count(DISTINCT u), count(*) FILTER (WHERE w = 'met') FROM t"
        )
        assert found == [(5000, 5000, 3000)]
        await client.sql("UPDATE t SET k = k + 100000")
        assert await client.sql("SELECT count(*), min(k) > 100000 FROM t") == [(5000, True)]
        await client.sql("DELETE FROM t WHERE k > 100000")
        assert await client.sql("SELECT count(*) FROM t") == [(0,)]
        await cluster.idle()

    in_cluster(scenario, backups=1, transaction_memory=64 * 1024)


def test_maps_on_all_members_and_new_indexes(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE) WITH (replicated = true)"
        )
        for rows in ([(1, 5), (2, 5)], [(1, 1), (1000, 7), (2000, 7)]):
            with pytest.raises(UniqueViolation):
                await put_batch(client, "t", rows * 300)
        await client.sql("CREATE TABLE s (k BIGINT PRIMARY KEY, u BIGINT)")
        await job(client, [(k, k) for k in range(20)], table="s")

        async def index() -> None:
            await client.sql("CREATE UNIQUE INDEX s_u ON s (u)")

        # Of a job that was staged for the map without the index, nothing is known to be unique.
        with pytest.raises(RemudaError) as caught:
            await job(client, [(k, 1) for k in range(50, 60)], table="s", begun=index)
        assert not isinstance(caught.value, UniqueViolation)
        await refused(client, [(k, 1) for k in range(50, 51)], table="s")
        await cluster.idle()

    in_cluster(scenario)


async def put_batch(client: Any, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    schema: MapSchema = await client.schema(table)
    numbered = [(k + 10_000 * place, u) for place, (k, u) in enumerate(rows)]
    message = user_pb2.PutBatchRequest(
        map=table, map_id=schema.map_id, schema_version=schema.version
    )
    columns = [list(column) for column in zip(*numbered, strict=True)]
    batch = pa.record_batch(columns, schema=engine_schema(schema))
    body = arrow_stream.encode(batch.schema, [batch])
    await client.ask(RpcType.MAP_PUT_BATCH, message, user_pb2.Count, [body])
