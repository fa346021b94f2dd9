"""Statements of PostgreSQL's clients that need no task: changes of one entry by its key, and
queries that read no map."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from remuda.member.metrics.families import exposition
from remuda.member.statements import short_statements
from remuda.member.statements.statements import Statements

InCluster = Callable[..., None]
UPDATE = "UPDATE t SET n = n + %s WHERE id = %s"


async def connect(cluster: Any, member: int = 1) -> psycopg.AsyncConnection[Any]:
    """Every statement is prepared when it comes for the first time."""
    host, port = cluster.member(member).postgres.address.split(":")
    made = await psycopg.AsyncConnection.connect(
        host=host, port=int(port), user="bob", dbname="shop", autocommit=True
    )
    made.prepare_threshold = 0
    return made


async def filled(cluster: Any) -> psycopg.AsyncConnection[Any]:
    connection = await connect(cluster)
    await connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER NOT NULL)")
    for key in range(4):
        await connection.execute("INSERT INTO t VALUES (%s, %s)", (key, 0))
    await connection.execute(UPDATE, (0, 0))
    return connection


async def rows(connection: Any, text: str, *values: Any, binary: bool = False) -> list[Any]:
    cursor = connection.cursor(binary=binary)
    return await (await cursor.execute(text, values)).fetchall()


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the statements that take the general way."""
    texts: list[str] = []
    run = Statements.run

    async def noted(self: Statements, statement: Any, *, local: bool = False) -> None:
        texts.append(statement.text)
        await run(self, statement, local=local)

    monkeypatch.setattr(Statements, "run", noted)
    return texts


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement goes on in the general way because the machine is slow."""
    monkeypatch.setattr(short_statements, "LONG", 60.0)


@pytest.mark.usefixtures("patient")
def test_they_do_what_they_say(in_cluster: InCluster, general: list[str]) -> None:
    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        del general[:]
        for key in range(4):
            cursor = await connection.execute(UPDATE, (5, key))
            assert (cursor.rowcount, cursor.statusmessage) == (1, "UPDATE 1")
        assert (await connection.execute(UPDATE, (5, 99))).statusmessage == "UPDATE 0"
        inserted = await connection.execute("INSERT INTO t VALUES (%s, %s)", (9, 7))
        assert inserted.statusmessage == "INSERT 0 1"
        returning = "UPDATE t SET n = n * %s WHERE id = %s RETURNING id, n, n / 2.0"
        for binary in (False, True):
            ((key, number, _),) = await rows(connection, returning, 2, 9, binary=binary)
            assert (key, number) == (9, 28 if binary else 14)
        assert await rows(connection, returning, 2, 99) == []
        deleted = await connection.execute("DELETE FROM t WHERE id = %s", (9,))
        assert deleted.statusmessage == "DELETE 1"
        for binary in (False, True):
            assert await rows(connection, "SELECT %s::int + 1, 'x'", 2, binary=binary) == [(3, "x")]
        assert general == []
        assert sorted(await rows(connection, "SELECT id, n FROM t")) == [(k, 5) for k in range(4)]
        page = exposition(cluster.member(1).core.measures.postgres.families()).decode()
        assert 'remuda_postgres_statements_total{kind="update",outcome="ok"} 9' in page
        assert 'remuda_postgres_statements_total{kind="delete",outcome="ok"} 1' in page
        await connection.close()
        await cluster.idle()

    in_cluster(scenario, members=2, backups=1)


@pytest.mark.usefixtures("patient")
def test_errors_and_the_session_after_them(in_cluster: InCluster, general: list[str]) -> None:
    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        insert = "INSERT INTO t VALUES (%s, %s)"
        del general[:]
        for error, text, values in (
            (psycopg.errors.UniqueViolation, insert, (1, 1)),
            (psycopg.errors.NumericValueOutOfRange, UPDATE, (2**31 - 1, 1)),
            (psycopg.errors.NotNullViolation, insert, (77, None)),
            (psycopg.errors.DivisionByZero, "SELECT 1 / %s::int", (0,)),
        ):
            await connection.execute(UPDATE, (1, 1))
            with pytest.raises(error):
                await connection.execute(text, values)
            assert connection.info.transaction_status is TransactionStatus.IDLE
        assert set(general) <= {insert.replace("%s, %s", "$1, $2")}  # of other types: planned anew
        assert await rows(connection, "SELECT n FROM t WHERE id = %s", 1) == [(4,)]
        await connection.close()
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.usefixtures("patient")
def test_a_pipeline_is_one_transaction(in_cluster: InCluster, general: list[str]) -> None:
    async def scenario(cluster: Any) -> None:
        connection = await filled(cluster)
        with pytest.raises(psycopg.errors.UniqueViolation):
            async with connection.pipeline():
                await connection.execute(UPDATE, (1, 1))
                await connection.execute(UPDATE, (1, 2))
                await connection.execute("INSERT INTO t VALUES (%s, %s)", (3, 3))
        assert await rows(connection, "SELECT sum(n) FROM t") == [(0,)]
        async with connection.pipeline():
            for key in range(4):
                await connection.execute(UPDATE, (key, key))
                await connection.execute(UPDATE, (key, key))
        assert await rows(connection, "SELECT sum(n) FROM t") == [(12,)]
        del general[:]
        async with connection.transaction():
            await connection.execute(UPDATE, (1, 1))
            assert await rows(await connect(cluster), "SELECT sum(n) FROM t") == [(12,)]
        assert UPDATE.replace("%s", "$1", 1).replace("%s", "$2") in general
        assert await rows(connection, "SELECT sum(n) FROM t") == [(13,)]
        await connection.close()
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.parametrize("long", [0.0, 60.0], ids=["in the general way", "shortly"])
@pytest.mark.parametrize("end", ["cancel", "timeout", "unlock"])
def test_a_change_that_waits_is_seen_and_ends(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, long: float, end: str
) -> None:
    monkeypatch.setattr(short_statements, "LONG", long)

    async def scenario(cluster: Any) -> None:
        connection, other, third = await filled(cluster), await connect(cluster), None
        await other.execute("BEGIN PESSIMISTIC")
        await other.execute("UPDATE t SET n = 10 WHERE id = 1")
        if end == "timeout":
            await connection.execute("SET statement_timeout = 50")
        waiting = asyncio.create_task(connection.execute(UPDATE, (1, 1)))
        if end != "timeout":
            third = await connect(cluster)
            asked = "SELECT pg_blocking_pids(%s), (SELECT count(*) FROM sys.queries"
            asked += " WHERE state = 'waiting')"
            pid, blocker = connection.info.backend_pid, other.info.backend_pid
            while await rows(third, asked, pid) != [([blocker], 1)]:
                assert not waiting.done()
            await third.close()
        if end == "cancel":
            await connection.cancel_safe()
        if end == "unlock":
            await other.execute("COMMIT")
            assert (await waiting).statusmessage == "UPDATE 1"
        else:
            with pytest.raises(psycopg.errors.QueryCanceled):
                await waiting
            await other.execute("COMMIT")
        expected = 11 if end == "unlock" else 10
        assert await rows(connection, "SELECT n FROM t WHERE id = %s", 1) == [(expected,)]
        await connection.close()
        await other.close()
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.usefixtures("patient")
def test_a_table_that_was_altered_gives_no_other_columns(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        connection, other = await filled(cluster), await connect(cluster)
        texts = ("SELECT n FROM t WHERE id = %s", "UPDATE t SET n = 1 WHERE id = %s RETURNING n")
        for text in texts:
            assert len(await rows(connection, text, 1)) == 1
        await other.execute("ALTER TABLE t ALTER COLUMN n TYPE BIGINT")
        for text in texts:
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan"):
                await connection.execute(text, (1,))
        await connection.close()
        await other.close()
        await cluster.idle()

    in_cluster(scenario)
