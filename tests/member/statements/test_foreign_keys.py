"""Foreign keys: the order in which only the guard of the parent's key tells (decision 0108)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.member.conftest import TestCluster
from transacting import Session

from remuda.errors import RemudaError, SerializationFailure
from remuda.member.statements.checks.foreign_keys import ForeignKeyChecks

LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
ORPHANS = "SELECT c.k FROM c LEFT JOIN p ON p.k = c.p WHERE p.k IS NULL"


async def child_that_commits_late(cluster: TestCluster, level: str, other: str) -> list[Any]:
    """A transaction has written a child and seen its parent, before ``other`` runs and it
    commits."""
    client = await cluster.client(1)
    await client.sql("CREATE TABLE p (k BIGINT PRIMARY KEY, n BIGINT)")
    await client.sql("CREATE TABLE c (k BIGINT PRIMARY KEY, p BIGINT REFERENCES p)")
    await client.sql("INSERT INTO p VALUES (1, 0)")
    session = Session(await cluster.client(2))
    await session.sql(f"BEGIN ISOLATION LEVEL {level}")
    await session.sql("INSERT INTO c VALUES (1, 1)")
    await client.sql(other)
    try:
        await session.sql("COMMIT")
    finally:
        found: list[Any] = await client.sql(ORPHANS)
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_a_parent_that_goes_before_the_commit_refuses_the_child(
    in_cluster: Any, level: str
) -> None:
    async def scenario(cluster: TestCluster) -> None:
        with pytest.raises(SerializationFailure, match="key of a referenced table"):
            await child_that_commits_late(cluster, level, "DELETE FROM p")

    in_cluster(scenario)


@pytest.mark.parametrize("level", LEVELS)
def test_a_parent_that_keeps_its_key_refuses_nobody(in_cluster: Any, level: str) -> None:
    async def scenario(cluster: TestCluster) -> None:
        assert await child_that_commits_late(cluster, level, "UPDATE p SET n = n + 1") == []

    in_cluster(scenario)


@pytest.mark.parametrize("part", ("reads", "taken"))
def test_without_guards_the_child_would_be_without_a_parent(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    checked = ForeignKeyChecks._checked

    async def _checked(self: ForeignKeyChecks, own: Any, at: int) -> Any:
        found = await checked(self, own, at)
        getattr(found, part).clear()
        return found

    async def scenario(cluster: TestCluster) -> None:
        try:
            found = await child_that_commits_late(cluster, "REPEATABLE READ", "DELETE FROM p")
        except RemudaError as error:
            pytest.fail(f"the mutation shows nothing: {error}")
        assert found == [(1,)]

    monkeypatch.setattr(ForeignKeyChecks, "_checked", _checked)
    in_cluster(scenario)
