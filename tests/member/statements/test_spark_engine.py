"""Statements on Spark, as members see them: services are played by hand, there is no Spark here."""

from __future__ import annotations

import asyncio
import io
import json
import re
from typing import Any

import pyarrow as pa
import pytest
from tests.member.conftest import TestClient, TestCluster
from users_of_cluster import READER, ROOT, known_users, refused

from remuda.errors import (
    ConnectionBroken,
    DivisionByZero,
    InputError,
    NotOnSpark,
    QueryCanceled,
    QueryTimeout,
    SparkServiceLost,
    SparkServiceMissing,
)
from remuda.rpc import codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR, price DECIMAL(10,2))"
RECURSIVE = (
    "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r"
)
ON_SPARK = "/*+ ENGINE(spark) */ SELECT id, name FROM t WHERE price > 1.5 ORDER BY id"


class Service:
    """Asks one member for work, and answers as it is told."""

    def __init__(self, client: TestClient, name: str = "s1") -> None:
        self.client = client
        self.name = name

    async def poll(self, wait: float = 10.0, free: int = 4, running: Any = ()) -> Any:
        message = user_pb2.SparkPoll(service=self.name, wait=wait, free=free, running=running)
        return await self.client.ask(RpcType.SPARK_WORK, message, user_pb2.SparkNews)

    async def work(self) -> Any:
        while True:
            news = await self.poll()
            if news.work:
                return news.work[0]

    async def send(self, work: Any, rows: Any = None, **end: Any) -> Any:
        message = user_pb2.SparkRows(service=self.name, query=work.query, **end)
        data = () if rows is None else (stream(rows),)
        return await self.client.ask(RpcType.SPARK_ROWS, message, user_pb2.SparkWanted, data)


def stream(rows: list[tuple[int, str]]) -> bytes:
    columns = [pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows])]
    batch = pa.RecordBatch.from_arrays(columns, names=["0", "1"])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


async def prepared(cluster: TestCluster) -> tuple[TestClient, Service]:
    client = await cluster.client()
    await client.run(TABLE)
    return client, Service(await cluster.client())


async def service_known(service: Service) -> None:
    """From here on the member knows the service."""
    await service.poll(wait=0.0, free=0)


def test_rows_come_from_a_service(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, service = await prepared(cluster)
        await service_known(service)
        [known] = await client.sql(
            "SELECT member, service, state, cores, free, running FROM sys.spark_services"
        )
        assert tuple(known) == (1, "s1", "idle", 1, 0, 0)
        result = await client.start(ON_SPARK)
        work = await service.work()
        assert [(scan.map, list(scan.columns)) for scan in work.scans] == [
            ("t", ["id", "name", "price"])
        ]
        assert "ORDER BY" in work.text
        assert work.read_timestamp > 0
        assert (await service.send(work, [(1, "a"), (2, "b")])).wanted
        await service.send(work, last=True)
        await result.done.wait()
        assert result.error is None
        assert result.rows == [(1, "a"), (2, "b")]
        assert result.columns == ["id", "name"]
        assert (await service.send(work, last=True)).wanted is False
        await cluster.idle()

    in_cluster(scenario, members=2)


def test_without_a_service(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client()
        await client.run(TABLE)
        await client.run("INSERT INTO t VALUES (1, 'a', 2)")
        with pytest.raises(SparkServiceMissing, match="no Spark service"):
            await client.sql(ON_SPARK)
        session = (await client.run("SET engine = spark")).session
        with pytest.raises(SparkServiceMissing):
            await client.sql("SELECT * FROM t", session=session)
        with pytest.raises(SparkServiceMissing):
            await client.sql("SELECT name FROM t WHERE id = 1", session=session)
        hinted = "SELECT /*+ ENGINE(grid) */ id FROM t"
        assert await client.sql(hinted, session=session) == [(1,)]
        session = (await client.run("SET engine = auto")).session
        assert await client.sql("SELECT id FROM t", session=session) == [(1,)]
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_what_is_refused(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client()
        await client.run(TABLE)
        for text, named in (
            ("SELECT * FROM information_schema.tables", "system relation"),
            ("SELECT * FROM generate_series(1, 3)", "a function that gives rows"),
            ("SELECT random() FROM t", "different each time"),
            ("SELECT array_agg(id) FROM t", "array_agg"),
            ("SELECT median(id) FROM t", "median"),
            ("SELECT INTERVAL '1 day' FROM t", "INTERVAL"),
            ("SELECT id FROM t FOR UPDATE", "FOR UPDATE"),
            (RECURSIVE, "RECURSIVE"),
            ("SELECT sum(id) OVER (ORDER BY id RANGE 1 PRECEDING) FROM t", "RANGE"),
        ):  # fmt: skip
            with pytest.raises(NotOnSpark, match=named):
                await client.sql(f"/*+ ENGINE(spark) */ {text}")
            assert (await client.run(f"/*+ ENGINE(auto) */ {text}")).error is None
        for hint in ("ENGINE(flink)", "ENGINE()"):
            with pytest.raises(InputError, match="no engine"):
                await client.sql(f"SELECT /*+ {hint} */ id FROM t")
        text = "'/*+ ENGINE(flink) */'"
        assert await client.sql(f"SELECT {text} -- /*+ ENGINE(flink) */") == [(text[1:-1],)]
        with pytest.raises(InputError, match="engine"):
            await client.sql("SET engine = flink")

    in_cluster(scenario, members=1)


def test_explain_says_the_engine(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client()
        await client.run(TABLE)
        lines = [row[0] for row in await client.sql(f"EXPLAIN {ON_SPARK}")]
        assert lines[0].startswith("Engine: spark (asked for; grid cost=")
        assert "  Scan of t: id, name, price" in lines
        session = (await client.run("SET engine = auto")).session
        lines = [row[0] for row in await client.sql("EXPLAIN SELECT id FROM t", session=session)]
        assert re.fullmatch(r"Engine: grid \(it is short; grid cost=\d+\)", lines[0])
        plain = [row[0] for row in await client.sql("EXPLAIN SELECT id FROM t")]
        assert plain == lines[1:]
        ((text,),) = await client.sql(f"EXPLAIN (FORMAT JSON) {ON_SPARK}")
        assert json.loads(text)[0]["Engine"].startswith("spark (asked for;")
        with pytest.raises(NotOnSpark, match="ANALYZE"):
            await client.sql(f"EXPLAIN ANALYZE {ON_SPARK}")

    in_cluster(scenario, members=1)


def test_auto_takes_what_does_not_fit_to_spark(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, service = await prepared(cluster)
        text = "/*+ ENGINE(auto) */ SELECT name, count(*) FROM t GROUP BY name"
        assert await client.sql(text) == []  # the grid must do without a service
        await service_known(service)
        explained = await client.sql(f"EXPLAIN {text}")
        assert explained[0][0].startswith("Engine: spark (it would hold about ")
        result = await client.start(text)
        await service.send(await service.work(), last=True)
        await result.done.wait()
        assert (result.error, result.columns) == (None, ["name", "count"])
        await cluster.idle()

    in_cluster(scenario, members=1, statement_memory=1 << 20, spill_limit=0)


def test_a_service_that_goes(in_cluster: Any) -> None:
    """Killed while it waits for work (nothing is lost), and while it runs a statement."""

    async def scenario(cluster: TestCluster) -> None:
        client, service = await prepared(cluster)
        await service_known(service)
        result = await client.start(ON_SPARK)
        work = await service.work()
        await service.send(work, [(1, "a")])
        polling = asyncio.ensure_future(service.poll(running=[work.query]))
        await service_of(cluster, service)
        service.client.channel.close()
        await result.done.wait()
        assert isinstance(result.error, SparkServiceLost)
        with pytest.raises(ConnectionBroken):
            await polling
        with pytest.raises(SparkServiceMissing):
            await client.sql(ON_SPARK)
        await cluster.idle()

    in_cluster(scenario, members=1)


async def service_of(cluster: TestCluster, service: Service) -> None:
    """Until its poll waits at the member."""
    services = cluster.member(1).statements.spark.services._services
    while service.name not in services or services[service.name].waiting is None:
        await asyncio.sleep(0.001)


def test_cancel_and_timeout(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, service = await prepared(cluster)
        await service_known(service)
        result = await client.start(ON_SPARK)
        work = await service.work()
        asked = asyncio.ensure_future(service.poll(running=[work.query]))
        await service_of(cluster, service)
        await client.cancel(result)
        await result.done.wait()
        assert isinstance(result.error, QueryCanceled)
        assert list((await asked).unwanted) == [work.query]
        assert (await service.send(work, [(1, "a")])).wanted is False

        result = await client.run(ON_SPARK, timeout=0.05)  # nobody takes it
        assert isinstance(result.error, QueryTimeout)
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_errors_and_rows_that_do_not_fit(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, service = await prepared(cluster)
        await service_known(service)
        result = await client.start(ON_SPARK)
        work = await service.work()
        error = codec.encode_error(DivisionByZero("division by zero"))
        await service.send(work, last=True, error=error)
        await result.done.wait()
        assert isinstance(result.error, DivisionByZero)

        result = await client.start("/*+ ENGINE(spark) */ SELECT name, id FROM t")
        await service.send(await service.work(), [(1, "a")])
        await result.done.wait()
        assert result.error is not None
        assert "expected VARCHAR, found BIGINT" in str(result.error)
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_rows_wait_for_a_slow_client(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, service = await prepared(cluster)
        await service_known(service)
        client.hold = True
        result = await client.start(ON_SPARK, page_rows=1)
        work = await service.work()
        rows = [(n, "x") for n in range(20)]
        sending = asyncio.ensure_future(service.send(work, rows))
        await result.first_page.wait()
        assert not sending.done()
        client.release()
        assert (await sending).room
        await service.send(work, last=True)
        await result.done.wait()
        assert result.rows == rows
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_versions_are_kept(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, service = await prepared(cluster)
        await service_known(service)
        result = await client.start(ON_SPARK)
        work = await service.work()
        pins = cluster.member(1).open.pins
        assert pins.oldest_read() == work.read_timestamp
        await client.cancel(result)
        await result.done.wait()
        assert pins.oldest_read() is None

    in_cluster(scenario, members=1)


def test_not_in_a_transaction(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client()
        await client.run(TABLE)
        begun = await client.run("BEGIN", transaction="")
        with pytest.raises(NotOnSpark, match="in a transaction"):
            await client.sql(ON_SPARK, transaction=begun.tx.transaction)

    in_cluster(scenario, members=1)


def test_roles(in_cluster: Any, tmp_path: Any, monkeypatch: Any) -> None:
    """A service is an administrator; who may not read a map gets none of its rows by it."""

    async def scenario(cluster: TestCluster) -> None:
        root = await cluster.client(security=ROOT)
        await root.run("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await root.run("CREATE TABLE u (k BIGINT PRIMARY KEY)")
        reader = await cluster.client(security=READER)
        with refused("admin"):
            await Service(reader).poll(wait=0.0)
        with refused("admin"):
            await Service(reader).send(user_pb2.SparkWork(), [(1, "a")])
        service = Service(await cluster.client(security=ROOT))
        await service_known(service)
        with refused("u"):
            await reader.sql("/*+ ENGINE(spark) */ SELECT * FROM u")
        assert not (await service.poll(wait=0.0)).work
        result = await reader.start("/*+ ENGINE(spark) */ SELECT k FROM t")
        await service.send(await service.work(), last=True)
        await result.done.wait()
        assert result.error is None

    in_cluster(scenario, members=1, **known_users(tmp_path, monkeypatch))
