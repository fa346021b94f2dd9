"""The queries of a statement that writes a map with unique indexes, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remuda.errors import SerializationFailure, UniqueViolation
from remuda.member.commits.writes import StagedWrite
from remuda.member.statements import changes
from remuda.member.statements.initiated_queries import Runs

InCluster = Callable[..., None]
MANY = 600
"""Rows of a bulk write."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts of queries, in the order in which they begin."""
    texts: list[str] = []
    start = Runs.start

    async def noted(self: Runs, statement: Any, *arguments: Any, **named: Any) -> Any:
        texts.append(statement.text)
        return await start(self, statement, *arguments, **named)

    monkeypatch.setattr(Runs, "start", noted)
    return texts


def before_commits(
    patch: pytest.MonkeyPatch, times: int, act: Callable[[int], Any]
) -> Callable[[], int]:
    """``act`` runs before each of so many commits of bulk writes. How often one began."""
    commit = StagedWrite.commit
    begun = [0]

    async def acting(self: StagedWrite, **named: Any) -> int:
        begun[0] += 1
        if begun[0] <= times:
            await act(begun[0])
        return await commit(self, **named)

    patch.setattr(StagedWrite, "commit", acting)
    return lambda: begun[0]


def test_an_insert_of_many_rows_reads_once(in_cluster: InCluster, read: list[str]) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGSERIAL PRIMARY KEY, u BIGINT UNIQUE)")
        insert = f"INSERT INTO t (u) SELECT i FROM generate_series(1, {MANY}) AS g(i)"
        await client.sql(insert)
        assert read.count(insert) == 1
        with pytest.raises(UniqueViolation):
            await client.sql(insert)
        assert read.count(insert) == 2
        assert await client.sql("SELECT last_value FROM t_k_seq") == [(2 * MANY,)]
        assert await client.sql("SELECT min(k), max(k), count(*) FROM t") == [(1, MANY, MANY)]
        await cluster.idle()

    in_cluster(scenario)


def test_attempts_share_their_numbers(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    """A statement that runs again takes the numbers that its undone attempt has taken."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGSERIAL PRIMARY KEY, u BIGINT UNIQUE, w BIGINT)")
        values = f"SELECT i FROM generate_series(1, {MANY}) AS g(i)"
        insert = f"INSERT INTO t (u) {values} ON CONFLICT (u) DO UPDATE SET w = 1"

        async def between(number: int) -> None:
            await client.sql(f"INSERT INTO t (k, u, w) VALUES (-{number}, {number}, 0)")

        begun = before_commits(monkeypatch, 2, between)
        await client.sql(insert)
        assert begun() == 3
        assert read.count(insert) == 4  # the first one finds that there are many rows
        assert await client.sql("SELECT last_value FROM t_k_seq") == [(MANY,)]
        assert await client.sql("SELECT count(*), count(w), sum(w) FROM t") == [(MANY, 2, 2)]
        (row,) = await client.sql("INSERT INTO t (u) VALUES (-1) RETURNING k, currval('t_k_seq')")
        assert row == (MANY + 1, MANY + 1)
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.parametrize("target", ["", "(u) "])
def test_rows_that_come_meanwhile_are_conflicts(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """However often: ON CONFLICT DO NOTHING refuses nothing."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE)")

        async def between(number: int) -> None:
            await client.sql(f"INSERT INTO t VALUES (-{number}, {number})")

        begun = before_commits(monkeypatch, 6, between)
        values = f"SELECT i, i FROM generate_series(1, {MANY}) AS g(i)"
        await client.sql(f"INSERT INTO t {values} ON CONFLICT {target}DO NOTHING")
        assert begun() == 7
        assert await client.sql("SELECT count(*), count(DISTINCT u) FROM t") == [(MANY, MANY)]
        await cluster.idle()

    in_cluster(scenario)


def test_conflicts_without_end(in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE)")

        async def between(number: int) -> None:
            await client.sql(f"INSERT INTO t VALUES (-{number}, {number})")

        monkeypatch.setattr(changes, "ATTEMPTS", 5)
        begun = before_commits(monkeypatch, 5, between)
        values = f"SELECT i, i FROM generate_series(1, {MANY}) AS g(i)"
        with pytest.raises(SerializationFailure, match='written to map "t" again and again'):
            await client.sql(f"INSERT INTO t {values} ON CONFLICT (u) DO NOTHING")
        assert begun() == 5
        await cluster.idle()

    in_cluster(scenario)


def test_refusals_that_another_attempt_would_meet_again(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a constraint that ON CONFLICT does not name, and by the rows of DO UPDATE themselves."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, u BIGINT UNIQUE, v BIGINT UNIQUE)")
        values = f"SELECT i, i, i FROM generate_series(1, {MANY}) AS g(i)"
        await client.sql(f"INSERT INTO t {values}")
        begun = before_commits(monkeypatch, 0, lambda _: None)
        other = f"SELECT -i, -i, i FROM generate_series(1, {MANY}) AS g(i)"
        with pytest.raises(UniqueViolation):
            await client.sql(f"INSERT INTO t {other} ON CONFLICT (u) DO NOTHING")
        assert begun() == 1
        with pytest.raises(UniqueViolation):
            few = f"{values} WHERE i < {MANY}"
            await client.sql(f"INSERT INTO t {few} ON CONFLICT (u) DO UPDATE SET u = t.u + 1")
        assert begun() <= 6
        await cluster.idle()

    in_cluster(scenario)
