"""Transactions with definitions at the moments of a cut (decision 0109): each is in it with its
definitions and its rows, or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from logged import run
from tests.member.conftest import TestClient, TestCluster
from transacting import Session

from remuda.catalog.own.definitions import is_made
from remuda.errors import UndefinedMap
from remuda.member.snapshots.making import SnapshotMaking


def before(method: str, work: Callable[[], Awaitable[None]]) -> Any:
    """The next call of ``SnapshotMaking``'s method begins when the work is done."""
    original, left = getattr(SnapshotMaking, method), [work]

    async def late(*arguments: Any) -> Any:
        while left:
            await left.pop()()
        return await original(*arguments)

    return mock.patch.object(SnapshotMaking, method, late)


async def begun(client: TestClient, name: str) -> Session:
    """A transaction that has made a table of three rows."""
    session = Session(client)
    await session.sql("BEGIN")
    await session.sql(f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, v TEXT)")
    await session.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return session


def test_a_commit_behind_the_timestamp_of_a_cut(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY)")
        await client.sql("CREATE SNAPSHOT s")
        session, other = await begun(client, "made"), await begun(client, "undone")

        async def commit() -> None:
            await session.sql("COMMIT")

        with before("_base", commit):
            await client.sql("CREATE SNAPSHOT s")
        await other.sql("ROLLBACK")

    async def check(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("RESTORE SNAPSHOT s PREFIX 'c_'")
        assert await client.sql("SELECT count(*) FROM c_made") == [(3,)]
        with pytest.raises(UndefinedMap):
            await client.sql("SELECT * FROM c_undone")
        for member in cluster.members:
            catalog = member.core.catalog
            assert [each.name for each in catalog.maps if is_made(each)] == []
            assert catalog.decided == ()

    run(tmp_path, scenario)
    (tmp_path / "other").mkdir()
    run(tmp_path / "other", check, members=1, snapshot_store=str(tmp_path / "store"))


def test_a_restore_while_a_transaction_is_open(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY)")
        await client.sql("INSERT INTO m VALUES (7)")
        session = await begun(client, "made")
        await client.sql("CREATE SNAPSHOT s")
        await client.sql("RESTORE SNAPSHOT s PREFIX 'c_'")
        assert await client.sql("SELECT k FROM c_m") == [(7,)]
        assert await session.sql("SELECT count(*) FROM made") == [(3,)]
        await session.sql("COMMIT")
        assert await client.sql("SELECT count(*) FROM made") == [(3,)]

    run(tmp_path, scenario)


def test_a_cluster_that_starts_again_has_all_of_a_transaction(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        session = await begun(client, "made")
        await session.sql("COMMIT")

    async def check(client: TestClient, cluster: TestCluster) -> None:
        assert await client.sql("SELECT count(*) FROM made") == [(3,)]
        for member in cluster.members:
            left = [each.name for each in member.core.catalog.maps if is_made(each)]
            assert left == []

    run(tmp_path, scenario)
    run(tmp_path, check)
