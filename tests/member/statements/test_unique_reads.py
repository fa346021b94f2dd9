"""Rows that are read and changed by their unique values: what their transactions ask for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.member.conftest import TestCluster
from transacting import Session

from remuda.errors import SerializationFailure, UniqueViolation
from remuda.member.statements.checks.unique_checks import UniqueChecks
from remuda.member.transactions.shell import TransactionShell

ROWS = (
    "CREATE TABLE t (k INTEGER, n INTEGER)",
    "INSERT INTO t SELECT i, 0 FROM generate_series(1, 20) g(i)",
    "ALTER TABLE t ADD PRIMARY KEY (k)",
)
"""As ``pgbench -i`` has it: the key is a unique index."""


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each commit, the number of its parts."""
    counts: list[int] = []
    begin = TransactionShell.begin

    def counted(shell: TransactionShell, work: Any, *more: Any, **named: Any) -> Any:
        counts.append(len(work))
        return begin(shell, work, *more, **named)

    monkeypatch.setattr(TransactionShell, "begin", counted)
    return counts


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The unique values for which others' rows are searched, by search."""
    values: list[tuple[Any, ...]] = []
    rows = UniqueChecks._rows

    def counted(checks: UniqueChecks, new: Any, condition: str, sought: Any, at: int) -> Any:
        values.append(sought)
        return rows(checks, new, condition, sought, at)

    monkeypatch.setattr(UniqueChecks, "_rows", counted)
    return values


def test_an_update_that_keeps_the_values_searches_nothing_and_commits_one_part(
    in_cluster: Any, parts: list[int], searches: list[tuple[Any, ...]]
) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        for text in ROWS:
            await client.sql(text)
        await client.sql("UPDATE t SET n = n + 1 WHERE k = ?", 4)
        session = Session(client)
        parts.clear()
        searches.clear()
        await client.sql("UPDATE t SET n = n + 1 WHERE k = ?", 5)
        await session.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
        await session.sql("UPDATE t SET n = n + 1 WHERE k = ?", 5)
        await session.sql("UPDATE t SET n = n + 1 WHERE k = 5 AND n > 0")
        assert await session.sql("SELECT n FROM t WHERE k = ?", 5) == [(3,)]
        await session.sql("COMMIT")
        assert (parts, searches) == ([1, 1], [])
        await cluster.idle()

    in_cluster(scenario)


def test_each_statement_searches_for_what_it_writes(
    in_cluster: Any, searches: list[tuple[Any, ...]]
) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        for text in ROWS:
            await client.sql(text)
        session = Session(client)
        await session.sql("BEGIN")
        searches.clear()
        for value in (101, 102, 103):
            await session.sql("INSERT INTO t VALUES (?, 0)", value)
        assert searches == [(101,), (102,), (103,)]
        with pytest.raises(UniqueViolation):
            await session.sql("INSERT INTO t VALUES (102, 0)")
        await session.sql("ROLLBACK")
        await session.sql("BEGIN")
        await session.sql("UPDATE t SET n = 1 WHERE k = 7")
        with pytest.raises(UniqueViolation):  # of a row that the transaction has written
            await session.sql("UPDATE t SET k = 7 WHERE k = 8")
        await session.sql("ROLLBACK")
        await session.sql("BEGIN")
        await session.sql("UPDATE t SET k = 50 WHERE k = 8")
        await session.sql("UPDATE t SET n = 1 WHERE k = 50")  # keeps a value that is new
        searches.clear()
        await session.sql("COMMIT")
        assert searches == [(50,)]
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.parametrize(
    "other",
    [
        "UPDATE t SET n = 9 WHERE k = 5",
        "UPDATE t SET k = 55 WHERE k = 5",
        "DELETE FROM t WHERE k = 5",
        "INSERT INTO t VALUES (66, 0)",
    ],
)
def test_what_others_change_in_rows_that_were_read_is_a_conflict(
    in_cluster: Any, other: str
) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, second = await cluster.client(1), await cluster.client(2)
        for text in ROWS:
            await client.sql(text)
        session = Session(client)
        await session.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
        assert await session.sql("SELECT n FROM t WHERE k = 66") == []
        await session.sql("UPDATE t SET n = n + 1 WHERE k = 5")
        await second.sql("UPDATE t SET n = 3 WHERE k = 6")
        await second.sql(other)
        with pytest.raises(SerializationFailure):
            await session.sql("COMMIT")
        await cluster.idle()

    in_cluster(scenario)


def test_transactions_on_other_rows_do_not_conflict(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client, second = await cluster.client(1), await cluster.client(2)
        for text in ROWS:
            await client.sql(text)
        sessions = [Session(client), Session(second)]
        for session in sessions:
            await session.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
        for number, session in enumerate(sessions):
            await session.sql("UPDATE t SET n = n + 1 WHERE k = ?", 5 + number)
            await session.sql("SELECT n FROM t WHERE k = ?", 5 + number)
        for session in sessions:
            await session.sql("COMMIT")
        assert await client.sql("SELECT sum(n) FROM t") == [(2,)]
        await cluster.idle()

    in_cluster(scenario)
