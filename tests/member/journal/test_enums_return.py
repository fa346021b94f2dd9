"""Enum types come back from logs and snapshots, with their order and the OIDs of their labels."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from logged import late_member, logged_cluster, memory_disk, on_disk, picture
from tests.member.conftest import cluster_of

from remuda.errors import RemudaError

LABELS = "SELECT enumlabel, oid FROM pg_enum ORDER BY enumsortorder"


async def define(client: Any) -> None:
    await client.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    await client.sql("CREATE TABLE t (id INT PRIMARY KEY, m mood, all_of mood[])")
    await client.sql(
        "INSERT INTO t VALUES (1, 'ok', '{sad,ok}'), (2, 'sad', NULL), (3, NULL, '{}')"
    )
    await client.sql("ALTER TYPE mood ADD VALUE 'angry' BEFORE 'sad'")
    await client.sql("INSERT INTO t VALUES (4, 'angry', '{angry}')")


async def check(client: Any) -> None:
    found = await client.sql("SELECT id, m::text FROM t WHERE m < 'ok' ORDER BY m")
    assert found == [(4, "angry"), (2, "sad")]
    assert await client.sql("SELECT max(m)::text FROM t") == [("ok",)]
    assert await client.sql("SELECT all_of::text FROM t ORDER BY id") == [
        ("{sad,ok}",), (None,), ("{}",), ("{angry}",),
    ]  # fmt: skip
    with pytest.raises(RemudaError, match="invalid input value for enum mood"):
        await client.sql("INSERT INTO t VALUES (9, 'glad', NULL)")


def test_a_cluster_that_starts_again_and_a_member_that_joins() -> None:
    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a")]
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            client = await cluster.client()
            await define(client)
            await check(client)
            labels = await client.sql(LABELS)
            killed = picture(disk)
        for after in (disk, killed):
            async with logged_cluster(folders, on_disk(after)) as cluster:
                client = await cluster.client()
                assert await client.sql(LABELS) == labels
                await check(client)
                async with late_member(cluster, Path("/b"), on_disk(after)):
                    second = await cluster.client()
                    assert await second.sql(LABELS) == labels
                    await check(second)
                await client.sql("DELETE FROM t WHERE id > 4")

    asyncio.run(scenario())


def test_a_snapshot_restored_by_another_cluster(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster_of(1, snapshot_store=str(tmp_path)) as cluster:
            client = await cluster.client()
            await define(client)
            await client.sql("CREATE SNAPSHOT s")
        async with cluster_of(2, snapshot_store=str(tmp_path)) as cluster:
            client = await cluster.client()
            await client.sql("RESTORE SNAPSHOT s")
            await check(client)
            await client.sql("ALTER TYPE mood ADD VALUE 'glad'")
            await client.sql("INSERT INTO t VALUES (9, 'glad', NULL)")
            assert await client.sql("SELECT id FROM t WHERE m > 'ok'") == [(9,)]

    asyncio.run(scenario())
