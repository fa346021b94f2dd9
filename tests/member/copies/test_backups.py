"""Staged commits with backups: what is committed is on every copy of its partitions."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from tests.member.conftest import FAST, TestCluster
from transacting import Session

from remuda.cluster import movement
from remuda.config import MemberConfig
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.timestamp import from_micros
from remuda.datatypes.values import array_to_values
from remuda.errors import SerializationFailure
from remuda.member.member import Member
from remuda.member.state.routing import Router
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.storage.maps.map_store import MapStore
from remuda.world import system_world

Rows = dict[int, list[tuple[Any, ...]]]


def rows_in(store: MapStore | None) -> Rows:
    """The rows that exist now, by partition."""
    found: Rows = {}
    if store is None:
        return found
    router, places = Router(store.schema), store.schema.partition_positions
    cursor = store.scan(2**62, range(len(store.schema.columns)))
    while (batch := cursor.next()) is not None:
        columns = [
            array_to_values(array, column.type)
            for array, column in zip(batch.columns, store.schema.columns, strict=True)
        ]
        for row in zip(*columns, strict=True):
            partition = router.partition([row[place] for place in places])
            found.setdefault(partition, []).append(row)
    return {partition: sorted(rows, key=repr) for partition, rows in found.items()}


def copies(cluster: TestCluster, map_id: int) -> Rows:
    """All rows of a map, by partition, after a look at every copy: each member has what the view
    says, and all copies of a partition are equal."""
    alive = [member for member in cluster.members if not member.core.stopping]
    view = max((member.core.view for member in alive), key=lambda view: view.number)
    everything: Rows = {}
    for member in alive:
        number = member.core.number
        primary = rows_in(member.core.stores[map_id])
        backup = rows_in(member.core.backup_stores.get(map_id))
        assert primary.keys() <= set(view.partitions_of(number))
        assert backup.keys() <= set(view.backed_up_by(number))
        everything |= primary
    for member in alive:
        backup = rows_in(member.core.backup_stores.get(map_id))
        for partition in view.backed_up_by(member.core.number):
            assert backup.get(partition) == everything.get(partition), partition
    return everything


def count(rows: Rows) -> int:
    return sum(map(len, rows.values()))


def body(schema: Any, keys: range, value: str) -> tuple[pa.RecordBatch, list[Any]]:
    batch = pa.record_batch(
        [pa.array(keys, pa.int64()), pa.array([value] * len(keys))], schema=engine_schema(schema)
    )
    return batch, [arrow_stream.encode(batch.schema, [batch])]


def test_statements_and_batches_are_on_every_copy(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        schema = await client.schema("t")
        assert all(len(row) == 2 for row in cluster.members[0].core.view.replicas)
        for backups in (schema.map_id,):
            await client.sql("INSERT INTO t SELECT i, 'a' FROM generate_series(1, 500) AS g(i)")
            await cluster.settled()
            assert count(copies(cluster, backups)) == 500
        await client.sql("UPDATE t SET v = 'b' WHERE k % 2 = 0")
        await client.sql("DELETE FROM t WHERE k > 400")
        await cluster.settled()
        rows = copies(cluster, schema.map_id)
        assert count(rows) == 400
        assert sum(row[1] == "b" for part in rows.values() for row in part) == 200
        _, data = body(schema, range(1000, 3000), "c")
        message = user_pb2.PutBatchRequest(map="t")
        await client.channel.request(RpcType.MAP_PUT_BATCH, message, data)
        await cluster.settled()
        assert count(copies(cluster, schema.map_id)) == 2400
        await client.sql("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7")
        await client.sql("UPDATE t SET w = 8 WHERE k = 1000")
        await cluster.settled()
        assert count(copies(cluster, schema.map_id)) == 2400
        parts = await client.sql(
            "SELECT sum(rows), sum(backup_rows), min(backup_bytes) > 0 FROM sys.map_parts"
        )
        assert parts == [(2400, 2400, True)]
        await client.sql("TRUNCATE t")
        await cluster.settled()
        assert copies(cluster, schema.map_id) == {}
        await client.sql("DROP TABLE t")
        for member in cluster.members:
            assert not member.core.backup_stores
        await cluster.idle()

    in_cluster(scenario, backups=1)


def test_a_job_is_on_every_copy(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        await client.sql("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
        schema = await client.schema("t")
        begin = user_pb2.JobBegin(map="t", overwrite=True)
        job = (await client.ask(RpcType.JOB_BEGIN, begin, user_pb2.JobHandle)).job
        clients = {number: await cluster.client(number) for number in (1, 2, 3)}
        batch, _ = body(schema, range(300), "new")
        view = cluster.members[0].core.view
        shares, _ = Router(schema).shares(batch, view, (1, 2, 3))
        parts = {
            share.member: share.batch.slice(0, share.primaries)
            for share in shares
            if share.primaries
        }
        for number, part in parts.items():
            message = user_pb2.JobWrite(job=job, task="t", sequence=0)
            for _ in range(2):  # written again: it counts once, on backups as well
                data = [arrow_stream.encode(part.schema, [part])]
                await clients[number].channel.request(RpcType.JOB_WRITE, message, data)
        await cluster.settled()
        assert count(copies(cluster, schema.map_id)) == 2
        task = user_pb2.JobTask(task="t", members=sorted(parts))
        commit = user_pb2.JobCommit(job=job, tasks=[task])
        answer = await client.ask(RpcType.JOB_COMMIT, commit, user_pb2.Count)
        assert answer.count == 300
        await cluster.settled()
        rows = copies(cluster, schema.map_id)
        assert count(rows) == 300
        assert all(row[1] == "new" for part in rows.values() for row in part)
        await cluster.idle()

    in_cluster(scenario, backups=1)


def test_two_backups_and_a_replicated_map(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(2)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        await client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY, v VARCHAR) WITH (replicated=true)")
        await client.sql("INSERT INTO t SELECT i, 'a' FROM generate_series(1, 100) AS g(i)")
        await client.sql("INSERT INTO r SELECT i, 'a' FROM generate_series(1, 100) AS g(i)")
        schema, replicated = await client.schema("t"), await client.schema("r")
        await cluster.settled()
        assert count(copies(cluster, schema.map_id)) == 100
        for member in cluster.members:
            backup = rows_in(member.core.backup_stores[schema.map_id])
            assert backup.keys() <= set(member.core.view.backed_up_by(member.core.number))
            assert count(rows_in(member.core.stores[replicated.map_id])) == 100
            assert replicated.map_id not in member.core.backup_stores
        assert await client.sql("SELECT count(*) FROM t JOIN r USING (k)") == [(100,)]
        await cluster.idle()

    in_cluster(scenario, backups=2)


QUICK = {"backups": 1, "lease": 0.5}


async def until(condition: Any) -> None:
    """The suite's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0.01)


def placed(cluster: TestCluster, copies: int = 2) -> bool:
    """Whether all living members are in one view, have moved what there is to move, and serve."""
    alive = [member for member in cluster.members if not member.core.stopping]
    views = {member.core.view.number for member in alive}
    view = alive[0].core.view
    return (
        len(views) == 1
        and len(view.members) == len(alive)
        and all(member.core.ready for member in alive)
        and not any(member.giving.gauges()["copies_outgoing"] for member in alive)
        and movement.progress(view, min(copies, len(alive)))["partitions_to_place"] == 0
    )


@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_lost_member_is_replaced_by_backups_and_repaired(in_cluster: Any, victim: int) -> None:
    async def scenario(cluster: TestCluster) -> None:
        survivor = next(number for number in (1, 2, 3) if number != victim)
        client = await cluster.client(survivor)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        await client.sql("CREATE INDEX tv ON t (v)")
        await client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY, v VARCHAR) REPLICATED")
        await client.sql("INSERT INTO t SELECT i, 'a' FROM generate_series(1, 2000) AS g(i)")
        await client.sql("INSERT INTO r SELECT i, 'a' FROM generate_series(1, 10) AS g(i)")
        await client.sql("UPDATE t SET v = 'b' WHERE k % 3 = 0")
        schema = await client.schema("t")
        await client.put(schema, (5, "put"))
        before = await client.sql("SELECT k, v FROM t ORDER BY k")
        await cluster.member(victim).stop()
        await until(lambda: placed(cluster))
        assert await client.sql("SELECT k, v FROM t ORDER BY k") == before
        await cluster.settled()
        assert count(copies(cluster, schema.map_id)) == 2000
        assert await client.get(schema, 5, 6) == [(5, "put"), (6, "b")]
        await client.sql("UPDATE t SET v = 'c' WHERE k <= 100")
        await client.sql("DELETE FROM t WHERE k > 1900")
        await client.put(schema, (7, "put"))
        await cluster.settled()
        rows = copies(cluster, schema.map_id)
        assert count(rows) == 1900
        assert await client.sql("SELECT count(*) FROM t WHERE v = 'c'") == [(99,)]
        assert await client.sql("SELECT count(*) FROM r") == [(10,)]

    in_cluster(scenario, **QUICK)


def test_a_transaction_that_looked_for_its_values_before_a_promotion(in_cluster: Any) -> None:
    """The lost primary may know of rows that a bulk write wrote meanwhile: it looks again."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE)")
        await client.sql("INSERT INTO t SELECT i, i FROM generate_series(1, 50) AS g(i)")
        keys = range(1000, 1100)  # some of those that the lost member serves
        values = ", ".join(f"({key}, {key})" for key in keys)
        writer = Session(client)
        await writer.sql("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await writer.sql(f"INSERT INTO t VALUES {values}")
        await cluster.member(3).stop()
        await until(lambda: placed(cluster))
        with pytest.raises(SerializationFailure, match="took over partitions of map"):
            await writer.sql("COMMIT")
        await client.sql(f"INSERT INTO t VALUES {values}")
        assert await client.sql("SELECT count(*) FROM t") == [(150,)]

    in_cluster(scenario, **QUICK)


async def join(cluster: TestCluster, **settings: Any) -> Member:
    """Another member for a cluster that is there."""
    first = next(member for member in cluster.members if not member.core.stopping)
    config = MemberConfig(join=first.addresses()["control"], **{**FAST, **QUICK, **settings})
    member = Member(config, system_world())
    cluster.members.append(member)
    await member.start()
    return member


@pytest.mark.parametrize("backups", [0, 1])
def test_a_joining_member_gets_its_share_while_others_write(in_cluster: Any, backups: int) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        await client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY, v VARCHAR) REPLICATED")
        await client.sql("INSERT INTO t SELECT i, 'a' FROM generate_series(1, 2000) AS g(i)")
        await client.sql("INSERT INTO r SELECT i, 'a' FROM generate_series(1, 500) AS g(i)")
        schema, replicated = await client.schema("t"), await client.schema("r")
        done = asyncio.Event()
        written: dict[int, str] = {}

        async def write() -> None:
            number = 0
            while not done.is_set():
                number += 1
                key, value = number % 2500 + 1, f"w{number}"
                if number % 7:
                    await client.put(schema, (key, value))
                else:
                    await client.sql("DELETE FROM t WHERE k = $1", key)
                    await client.sql("INSERT INTO t VALUES ($1, $2)", key, value)
                written[key] = value
                rows = await client.sql("SELECT count(*) FROM t WHERE k <= 2000")
                assert rows == [(2000,)]

        writer = asyncio.ensure_future(write())
        joined = await join(cluster, backups=backups)
        while not placed(cluster, backups + 1):
            if writer.done():
                writer.result()
            await asyncio.sleep(0.01)
        done.set()
        await writer
        assert count(rows_in(joined.core.stores[replicated.map_id])) == 500
        assert len(joined.core.view.partitions_of(joined.core.number)) >= 67
        await cluster.settled()
        rows = copies(cluster, schema.map_id)
        found = {row[0]: row[1] for part in rows.values() for row in part}
        assert found == {**dict.fromkeys(range(1, 2001), "a"), **written}
        other = await cluster.client(joined.core.number)
        assert await other.sql("SELECT count(*) FROM r") == [(500,)]
        assert await other.sql("SELECT count(*) FROM t") == [(len(found),)]
        await other.sql("UPDATE r SET v = 'b' WHERE k = 3")
        assert await client.sql("SELECT v FROM r WHERE k = 3") == [("b",)]

    in_cluster(scenario, **{**QUICK, "backups": backups})


@pytest.mark.parametrize("backups", [0, 1])
def test_a_member_that_leaves_gives_everything_away_first(in_cluster: Any, backups: int) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        await client.sql("INSERT INTO t SELECT i, 'a' FROM generate_series(1, 2000) AS g(i)")
        schema = await client.schema("t")
        leaving = cluster.member(3)
        await leaving.leave()
        await until(lambda: 3 not in cluster.member(1).core.view.by_number)
        assert not leaving.core.view.partitions_of(3)
        await leaving.stop()
        await until(lambda: placed(cluster, backups + 1))
        assert await client.sql("SELECT count(*) FROM t") == [(2000,)]
        await cluster.settled()
        assert count(copies(cluster, schema.map_id)) == 2000

    in_cluster(scenario, **{**QUICK, "backups": backups})


def test_a_promoted_member_serves_above_what_the_lost_one_has_served(in_cluster: Any) -> None:
    """All clocks are ahead of the time of day, so that waiting does not raise them; the lost member
    has read at a timestamp that nobody has heard of (design rule 16)."""

    async def scenario(cluster: TestCluster) -> None:
        ahead = cluster.member(1).core.timestamp() + from_micros(10_000_000)
        for member in cluster.members:
            member.core.clock.observe(ahead)
        victim = cluster.member(2)
        victim.core.clock.observe(victim.core.clock.last + from_micros(300_000))
        served = victim.core.timestamp()
        await victim.stop()
        await until(lambda: placed(cluster))
        for number in (1, 3):
            assert cluster.member(number).core.timestamp() > served

    in_cluster(scenario, **QUICK)
