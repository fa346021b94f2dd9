"""Statements that change one entry by its key, or read no map, answered in one message: others see
them as they see all statements, and some take the general way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import ConnectionBroken, DivisionByZero, QueryTimeout, RemudaError, ViewChanged
from remuda.member.statements import short_statements

InCluster = Callable[..., None]

UPDATE = "UPDATE t SET n = n + ? WHERE id = ?"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement gets a handle because the machine is slow."""
    monkeypatch.setattr(short_statements, "LONG", 60.0)


async def filled(cluster: Any) -> Any:
    """A client that takes short answers, after the plan of ``UPDATE`` is known to member 1."""
    client = await cluster.client(1)
    await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)")
    for key in range(8):
        await client.sql("INSERT INTO t VALUES (?, 0)", key)
    await client.run(UPDATE, 0, 0)
    client.short = True
    return client


def test_a_change_is_one_answer_and_says_what_it_did(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        for key in range(8):
            found = await client.run(UPDATE, 5, key)
            assert (found.tag, found.affected, found.rows) == ("UPDATE", 1, [])
        assert client.answers == 8
        assert (await client.run(UPDATE, 5, 1000)).affected == 0
        text = "UPDATE t SET n = n + 1 WHERE id = ? RETURNING n, n / 2 AS half"
        for _ in range(2):
            found = await client.run(text, 3)
        assert (found.columns, found.affected, found.tag) == (["n", "half"], 1, "UPDATE")
        assert found.rows == [(7, 3)]
        assert (await client.run(text, 1000)).rows == []
        await cluster.idle()

    in_cluster(scenario, backups=1)


def test_statistics_and_history_have_each_of_them(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        text = "UPDATE t SET n = 100 / ? WHERE id = ?"
        for divisor in (1, 2):
            await client.run(text, divisor, 1)
        with pytest.raises(DivisionByZero):
            await client.run(text, 0, 1)
        assert client.answers == 1  # the first one was planned
        (row,) = await client.sql(
            "SELECT calls, errors, rows FROM sys.statement_statistics "
            "WHERE text LIKE 'UPDATE t SET n = % / %'"
        )
        assert row == (3, 1, 2)
        found = await client.sql(
            "SELECT state, sqlstate FROM sys.query_history WHERE text LIKE 'UPDATE t SET n = 100%' "
            "ORDER BY started"
        )
        assert found == [("finished", None), ("finished", None), ("failed", "22012")]
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_a_short_timeout_ends_it_without_a_handle(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await filled(cluster), await cluster.client(1)
        begun = await other.run("BEGIN PESSIMISTIC", transaction="")
        name = begun.tx.transaction
        await other.run("UPDATE t SET n = 1 WHERE id = 1", transaction=name)
        with pytest.raises(QueryTimeout) as caught:
            await client.run(UPDATE, 1, 1, timeout=0.01)
        assert not caught.value.may_have_run
        await other.run("ROLLBACK", transaction=name)
        assert await client.sql("SELECT n FROM t WHERE id = 1") == [(0,)]
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_a_client_that_goes_takes_its_waiting_change_along(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await filled(cluster), await cluster.client(1)
        begun = await other.run("BEGIN PESSIMISTIC", transaction="")
        name = begun.tx.transaction
        await other.run("UPDATE t SET n = 1 WHERE id = 1", transaction=name)
        small = cluster.member(1).maps.writes.small
        waiting = asyncio.ensure_future(client.run(UPDATE, 10, 1))
        while not len(small):
            await asyncio.sleep(0)
        client.channel.close()
        with pytest.raises(ConnectionBroken):
            await waiting
        while len(small):
            await asyncio.sleep(0)
        await other.run("COMMIT", transaction=name)
        assert await other.sql("SELECT n FROM t WHERE id = 1") == [(1,)]
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_it_is_planned_again_for_another_version_of_the_map(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await filled(cluster), await cluster.client(2)
        for number, column in enumerate(("one", "two", "three"), 1):
            await other.sql(f"ALTER TABLE t ADD COLUMN {column} BIGINT DEFAULT {number}")
            for key in range(8):
                assert (await client.run(UPDATE, 1, key)).affected == 1
        assert sorted(await client.sql("SELECT * FROM t")) == [
            (key, 3, 1, 2, 3) for key in range(8)
        ]

    in_cluster(scenario, members=2, backups=1)


def test_an_owner_that_has_changed_is_met_by_the_general_way(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its handle then, and the end as every other statement."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        by_key = cluster.member(1).statements.by_key
        begin, refused = by_key._begin, 0

        def refusing(*arguments: Any) -> None:
            nonlocal refused
            if not refused:
                refused += 1
                raise ViewChanged("member 1 does not own the key of the statement")
            begin(*arguments)

        monkeypatch.setattr(by_key, "_begin", refusing)
        found = await client.run(UPDATE, 3, 1)
        assert (found.affected, found.tag, client.answers, refused) == (1, "UPDATE", 0, 1)
        assert await client.sql("SELECT n FROM t WHERE id = 1") == [(3,)]
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_settings_of_the_session_hold(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        said = await client.run("SET default_transaction_read_only = on")
        assert said.session is not None
        found = await client.run(UPDATE, 1, 1, session=said.session)
        assert isinstance(found.error, RemudaError)
        assert found.error.sqlstate == "25006"
        said = await client.run("SET application_name = 'short'")
        assert (await client.run(UPDATE, 1, 1, session=said.session)).affected == 1
        assert client.answers == 1
        await cluster.idle()

    in_cluster(scenario, members=1)


CONSTANTS: list[tuple[str, tuple[object, ...]]] = [
    ("SELECT 1 + 1", ()),
    ("SELECT ? + 1 AS n, upper(?), NULL AS nothing", (41, "x")),
    ("SELECT CAST(0.1 AS REAL), CAST('12.50' AS DECIMAL(30,2)), 1.5e0, -0.0e0", ()),
    ("SELECT DATE '2024-02-29' + INTERVAL '1 year', TIMESTAMP '2024-02-29 12:00:00'", ()),
    ("SELECT ARRAY[1, NULL, 3], ROW(1, 'a'), CAST('{}' AS JSON)", ()),
    ("SELECT CAST(? AS BIGINT), CAST(? AS VARCHAR(3))", (None, "abcdef")),
    ("SELECT v * 2 AS twice FROM (VALUES (1), (2), (NULL)) AS t(v) WHERE v > 1", ()),
    ("SELECT v FROM (VALUES ('a'), ('b')) AS t(v) WHERE v = ?", ("c",)),
    ("SELECT current_user, current_setting('application_name', true)", ()),
    ("SELECT CASE WHEN ? > 0 THEN 1 / ? ELSE 0 END", (0, 0)),
    ("SELECT 1 / ?", (0,)),
    ("SELECT CAST(? AS INTEGER)", ("none",)),
    ("SELECT (SELECT max(v) FROM (VALUES (1), (2)) AS t(v))", ()),
]


def test_queries_without_a_map_have_the_same_outcomes_in_one_message(in_cluster: InCluster) -> None:
    async def outcomes(client: Any) -> list[object]:
        found: list[object] = []
        for text, parameters in CONSTANTS:
            try:
                result = await client.run(text, *parameters)
                error = result.error
            except RemudaError as refused:
                error = refused
            if error is not None:
                found.append((text, type(error), error.sqlstate, error.message))
            else:
                found.append((text, result.tag, result.columns, result.rows))
        return found

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        general = await outcomes(client)
        client.short = True
        assert await outcomes(client) == general
        assert client.answers >= 9
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_a_query_without_a_map_is_counted_and_kept_in_the_history(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        text = "SELECT 7 / ?"
        await client.run(text, 1)
        client.short = True
        await client.run(text, 2)
        with pytest.raises(DivisionByZero):
            await client.run(text, 0)
        assert client.answers == 1
        found = await client.sql(
            "SELECT calls, errors, rows FROM sys.statement_statistics WHERE text LIKE 'SELECT 7%' "
            "OR text LIKE 'SELECT % / %'"
        )
        assert (3, 1, 2) in found
        kept = await client.sql(
            "SELECT state, sqlstate FROM sys.query_history WHERE text = ?", text
        )
        assert sorted(kept, key=str) == [
            ("failed", "22012"), ("finished", None), ("finished", None)
        ]  # fmt: skip
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_random_values_and_settings_that_limit_take_the_general_way(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        for text in ("SELECT random()", "SELECT * FROM generate_series(1, 3)", "SELECT 1"):
            await client.run(text)
        client.short = True
        assert await client.sql("SELECT random()") != await client.sql("SELECT random()")
        assert len(await client.sql("SELECT * FROM generate_series(1, 3)")) == 3
        assert await client.sql("SELECT 1", autolimit_rowcount=1) == [(1,)]
        assert client.answers == 0
        await cluster.idle()

    in_cluster(scenario, members=1)
