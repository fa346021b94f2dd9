"""A row that was made for an earlier version of its map is applied by members, and kept by logs,
that have never had that version."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from logged import late_member, logged_cluster, memory_disk, on_disk, picture

from remuda.limits import PARTITIONS
from remuda.member.member import Member
from remuda.member.state import former_schemas
from remuda.member.state.transaction_sets import PartWork
from remuda.member.transactions.apply import Applying
from remuda.transaction.writes import Write


async def altered(client: Any) -> Write:
    """A row that was prepared before its map got two more columns."""
    await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) WITH (replicated = true)")
    schema = await client.schema("t")
    await client.sql("ALTER TABLE t ADD COLUMN w BIGINT DEFAULT 7")
    await client.sql("ALTER TABLE t ADD COLUMN x BIGINT")
    return Write(schema.map_id, schema.version, (1,), (1, 10))


def check(member: Member, write: Write) -> None:
    core, work = member.core, PartWork(0, (write,))
    assert core.wal._changes(work), "the log leaves the row out"
    Applying(core).apply(PARTITIONS + core.number, work, core.timestamp())
    store = core.stores[write.map_id]
    assert store.get(write.key, core.timestamp()) == (1, 10, 7, None)


def test_a_member_that_joins_after_an_alter() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        async with logged_cluster([Path("/a")], on_disk(disk)) as cluster:
            write = await altered(await cluster.client())
            async with late_member(cluster, Path("/b"), on_disk(disk)) as joined:
                check(joined, write)

    asyncio.run(scenario())


def test_a_member_that_starts_again_after_an_alter() -> None:
    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a")]
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            write = await altered(await cluster.client())
            killed = picture(disk)
        for after in (disk, killed):
            async with logged_cluster(folders, on_disk(after)) as cluster:
                check(cluster.member(1), write)

    asyncio.run(scenario())


def test_the_catalog_tells_the_latest_versions_of_maps_that_are_there(monkeypatch: Any) -> None:
    monkeypatch.setattr(former_schemas, "SCHEMAS_TOLD", 3)

    async def scenario() -> None:
        async with logged_cluster([Path("/a")], on_disk(memory_disk())) as cluster:
            client = await cluster.client()
            await altered(client)
            await client.sql("CREATE TABLE u (k BIGINT PRIMARY KEY)")
            for number in range(3):
                await client.sql(f"ALTER TABLE u ADD COLUMN c{number} BIGINT")
            state = cluster.member(1).catalog.state()
            assert [(each.name, len(each.columns)) for each in state.former_maps] == [
                ("u", 1),
                ("u", 2),
                ("u", 3),
            ]
            await client.sql("DROP TABLE u")
            state = cluster.member(1).catalog.state()
            assert [len(each.columns) for each in state.former_maps] == [2, 3]

    asyncio.run(scenario())
