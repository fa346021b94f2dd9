"""PREPARE, EXECUTE, SET and their like: the session travels with the client's statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import (
    DuplicateStatement,
    NotSupported,
    ProtocolError,
    QueryTimeout,
    RemudaError,
    SqlSyntaxError,
    UndefinedSetting,
    UndefinedStatement,
)

InCluster = Callable[..., None]
ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"


class Sessions:
    """Statements that go to all members in turn, with one session."""

    def __init__(self, clients: list[Any]) -> None:
        self.clients = clients
        self.session = b""
        self.turn = 0

    async def run(self, text: str) -> Any:
        self.turn += 1
        client = self.clients[self.turn % len(self.clients)]
        result = await client.run(text, session=self.session)
        if result.session is not None:
            self.session = result.session
        return result

    async def sql(self, text: str) -> list[tuple[Any, ...]]:
        result = await self.run(text)
        if result.error is not None:
            raise result.error
        return result.rows if result.pages else []

    async def fails(self, text: str, kind: type[RemudaError], offset: int | None = None) -> str:
        result = await self.run(text)
        assert isinstance(result.error, kind), result.error
        if offset is not None:
            assert result.error.position is not None
            assert result.error.position.offset == offset
        return result.error.message


async def filled(cluster: Any) -> Sessions:
    sessions = Sessions([await cluster.client(number) for number in (1, 2, 3)])
    await sessions.sql("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, day DATE)")
    await sessions.sql("INSERT INTO t VALUES (1, 10, '2024-01-01'), (2, 20, NULL)")
    return sessions


def test_a_prepared_statement_runs_on_every_member(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        s = await filled(cluster)
        await s.sql("PREPARE one AS SELECT a FROM t WHERE k = $1")
        await s.sql("PREPARE add (int, int, date) AS INSERT INTO t VALUES ($1, $2, $3)")
        for _ in range(4):
            assert await s.sql("EXECUTE one(1)") == [(10,)]
            assert await s.sql("EXECUTE one('1' )") == [(10,)]
            assert await s.sql("EXECUTE one(1 + 1)") == [(20,)]
        result = await s.run("EXECUTE add(3, NULL, CURRENT_DATE)")
        assert (result.tag, result.affected) == ("INSERT", 1)
        assert await s.sql("SELECT count(*) FROM t WHERE day >= '2024-06-01'") == [(1,)]
        plan = await s.sql("EXPLAIN (ANALYZE, COSTS OFF) EXECUTE one(2)")
        assert any("actual: rows=1" in line for (line,) in plan)
        await s.sql("DEALLOCATE one")
        await s.fails("EXECUTE one(1)", UndefinedStatement, 8)
        await s.sql("DEALLOCATE PREPARE ALL")
        await s.fails("EXECUTE add(1, 1, NULL)", UndefinedStatement)
        await cluster.idle()

    in_cluster(scenario)


def test_wrong_uses_of_prepared_statements(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        s = await filled(cluster)
        await s.sql("PREPARE p AS SELECT a FROM t WHERE k = $1 AND a > $2")
        await s.fails("PREPARE p AS SELECT 1", DuplicateStatement, 8)
        message = await s.fails("EXECUTE p(1)", SqlSyntaxError)
        assert message == 'wrong number of parameters for prepared statement "p"'
        await s.fails("EXECUTE q", UndefinedStatement)
        await s.fails("EXECUTE p('x', 1)", RemudaError, 10)
        await s.fails("EXECUTE p(k, 1)", RemudaError, 10)
        await s.fails("PREPARE r AS SELECT nope FROM t", RemudaError, 20)
        await s.fails("DEALLOCATE r", UndefinedStatement, 11)
        await s.sql("DROP TABLE t")
        assert "does not exist" in await s.fails("EXECUTE p(1, 1)", RemudaError, 8)
        await cluster.idle()

    in_cluster(scenario)


def test_settings(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        s = await filled(cluster)
        assert await s.sql("SHOW statement_timeout") == [("0",)]
        await s.sql("SET statement_timeout = '50 ms'")
        for _ in range(3):
            assert await s.sql("SHOW statement_timeout") == [("50ms",)]
        await s.fails(ENDLESS, QueryTimeout)
        await s.sql("RESET statement_timeout")
        assert await s.sql("SHOW statement_timeout") == [("0",)]
        await s.sql("SET LOCAL application_name = 'x'")
        assert await s.sql("SHOW application_name") == [("",)]
        await s.sql("SET SESSION application_name TO 'a b'")
        await s.sql("SET TIME ZONE 'UTC'")
        shown = {row[0]: row[1] for row in await s.sql("SHOW ALL")}
        assert (shown["application_name"], shown["TimeZone"]) == ("a b", "UTC")
        await s.sql("SET timezone = 'Europe/Berlin'")
        assert await s.sql("SHOW timezone") == [("Europe/Berlin",)]
        await s.fails("SET no_such_thing = 1", UndefinedSetting, 4)
        await s.fails("SHOW no_such_thing", UndefinedSetting, 5)
        await s.sql("SET read_consistency = 'causal'")
        assert await s.sql("SELECT count(*) FROM t") == [(2,)]
        await s.sql("DISCARD ALL")
        assert await s.sql("SHOW read_consistency") == [("latest",)]
        await cluster.idle()

    in_cluster(scenario)


def test_a_client_that_keeps_no_transaction_gets_none(in_cluster: InCluster) -> None:
    """BEGIN that does nothing would be a lie: everything after it would commit by itself."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        result = await client.run("BEGIN")
        assert isinstance(result.error, NotSupported)
        assert "does not keep a transaction" in result.error.message

    in_cluster(scenario, 1)


def test_a_session_that_is_none_is_refused(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        with pytest.raises(ProtocolError):
            await client.run("SELECT 1", session=b"nonsense")
        assert await client.sql("SELECT 1") == [(1,)]

    in_cluster(scenario, 1)


def test_analyze_takes_statistics_at_once(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        s = await filled(cluster)
        one = Sessions(s.clients[:1])
        await one.sql("ANALYZE t")
        [(line, *_)] = [r for r in await one.sql("EXPLAIN SELECT * FROM t") if "Scan t" in r[0]]
        assert "rows=2 " in line
        await one.sql("INSERT INTO t VALUES " + ", ".join(f"({i}, 1, NULL)" for i in range(3, 53)))
        result = await one.run("ANALYZE t (a, k)")
        assert result.tag == "ANALYZE"
        [(line, *_)] = [r for r in await one.sql("EXPLAIN SELECT * FROM t") if "Scan t" in r[0]]
        assert "rows=52 " in line

    in_cluster(scenario)
