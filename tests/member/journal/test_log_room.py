"""A log on a full disk: writers are told, readers go on, nothing that was acknowledged is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from logged import logged_cluster, memory_disk, on_disk, picture

from remuda.errors import DiskFull
from remuda.member.state.routing import Router

ALL = "SELECT id FROM t ORDER BY id"
FOLDER = Path("/a")
LOOK_EVERY = "remuda.member.journal.checkpoint.LOOK_EVERY"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LOOK_EVERY, 1000)  # no mark may find the full disk before a write does
    monkeypatch.setattr("remuda.member.journal.group.TRY_EVERY", 0.01)


@asynccontextmanager
async def with_table(disk: Any) -> AsyncIterator[tuple[Any, Any]]:
    """A cluster of one member that has a table, and a client."""
    async with logged_cluster([FOLDER], on_disk(disk)) as cluster:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        yield cluster, client


async def left_on(disk: Any) -> list[tuple[int]]:
    """What a member finds that starts from the disk."""
    async with logged_cluster([FOLDER], on_disk(disk)) as cluster:
        return await (await cluster.client()).sql(ALL)


def test_a_disk_that_is_full_all_at_once() -> None:
    """As with a quota: what was begun waits, and is there in the end; it was not acknowledged."""

    async def scenario() -> None:
        disk = memory_disk()
        async with with_table(disk) as (cluster, client):
            schema = await client.schema("t")
            await client.put(schema, (1,))
            group = cluster.member(1).recovery.wal.group
            disk.capacity = disk.used + 20
            begun = asyncio.ensure_future(client.put(schema, (2,)))
            while not group.waits_for_room:
                await asyncio.sleep(0)
            for write in (
                client.put(schema, (3,)),
                client.sql("INSERT INTO t VALUES (4), (5)"),
            ):
                with pytest.raises(DiskFull, match="until there is room") as refused:
                    await write
                assert "Reads go on" in refused.value.hint
            assert await client.get(schema, 1) == [(1,)]
            assert not begun.done()
            then = picture(disk)
            disk.capacity = None
            await begun
            await client.put(schema, (6,))
            assert await client.sql(ALL) == [(1,), (2,), (6,)]
            now = picture(disk)
        for left, found in ((then, [(1,)]), (now, [(1,), (2,), (6,)])):
            left.capacity = None
            assert await left_on(left) == found

    asyncio.run(scenario())


def test_a_disk_that_is_nearly_full_keeps_room_for_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LOOK_EVERY, 0.01)

    async def scenario() -> None:
        disk = memory_disk()
        async with with_table(disk) as (cluster, client):
            schema = await client.schema("t")
            group = cluster.member(1).recovery.wal.group
            await client.put(schema, (1,))
            disk.space = lambda _path: (2**20 - 1, 2**24)
            while group.room.refusal is None:
                with suppress(DiskFull):  # a mark may have found it first
                    await client.put(schema, (1,))
            with pytest.raises(DiskFull) as refused:
                await client.put(schema, (2,))
            assert "1048575 bytes are free there, and 1048576 are kept" in refused.value.detail
            assert cluster.member(1).gauges()["log_full"] == 1
            disk.space = lambda _path: (2**20, 2**24)
            while group.room.refusal is not None:
                await asyncio.sleep(0.001)
            assert cluster.member(1).gauges()["log_full"] == 0
            await client.put(schema, (3,))
            assert await client.sql(ALL) == [(1,), (3,)]

    asyncio.run(scenario())


def test_a_member_that_has_no_room_can_be_stopped() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        async with with_table(disk) as (cluster, client):
            disk.capacity = disk.used
            begun = asyncio.ensure_future(client.sql("INSERT INTO t VALUES (1)"))
            while not cluster.member(1).recovery.wal.group.waits_for_room:
                await asyncio.sleep(0)
        begun.cancel()
        disk.capacity = None
        assert await left_on(disk) == []

    asyncio.run(scenario())


def test_a_member_whose_last_words_find_no_room_ends() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        async with with_table(disk) as (_, client):
            await client.sql("INSERT INTO t VALUES (1)")
            disk.capacity = disk.used
        disk.capacity = None
        assert await left_on(disk) == [(1,)]

    asyncio.run(scenario())


def test_a_checkpoint_that_finds_no_room_leaves_nothing() -> None:
    """The log has to wait for what it would keep."""

    async def scenario() -> None:
        disk = memory_disk()
        async with with_table(disk) as (cluster, client):
            await client.sql("INSERT INTO t SELECT * FROM generate_series(1, 1000)")
            checkpoints, image = cluster.member(1).recovery.checkpoints, FOLDER / "image-0001"
            await checkpoints.take()
            kept = disk.names(image)
            [rows] = [len(disk.read(image / name)) for name in kept if name.endswith(".arrow")]
            for room in (0, rows // 2, rows + 10):  # at last all but the manifest fits
                disk.capacity = disk.used + room
                with pytest.raises(DiskFull):
                    await checkpoints.take()
                assert disk.names(image) == kept
                disk.capacity = None
            await checkpoints.take()
            assert len(disk.names(image)) == len(kept)
            assert disk.names(image) != kept

    asyncio.run(scenario())


@pytest.mark.parametrize("backups", [1, 2])
def test_a_backup_without_room_refuses_what_its_primaries_would_write(
    backups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is prepared, so nobody waits for its disk."""
    monkeypatch.setattr(LOOK_EVERY, 0.01)
    folders = [Path(f"/{name}") for name in "abc"][: backups + 1]
    full = folders[-1]

    async def scenario() -> None:
        disk = memory_disk()
        async with logged_cluster(folders, on_disk(disk), backups=backups) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            schema, core = await client.schema("t"), cluster.member(1).core
            owners, partition = core.view.owners, Router(schema).key_partition
            key = next(k for k in range(1000) if owners[partition((k,))] == 1)
            other = next(k for k in range(1000) if owners[partition((k,))] == len(folders))
            await client.put(schema, (key,))
            room = cluster.member(len(folders)).recovery.wal.group.room

            def space(path: Path) -> tuple[int, int]:
                return (2**20 - 1 if path.is_relative_to(full) else 2**24), 2**24

            disk.space = space
            while room.refusal is None:
                with suppress(DiskFull):
                    await client.put(schema, (key,))
            last = next(k for k in range(key + 1, 1000) if owners[partition((k,))] == 1)
            for write in (
                client.put(schema, (last,)),
                client.put(schema, (other,)),
                client.sql(f"INSERT INTO t VALUES ({last})"),
                client.sql(f"INSERT INTO t VALUES ({last}), ({other})"),
                client.sql("INSERT INTO t SELECT 2000 + i FROM generate_series(1, 500) AS g(i)"),
                client.sql(f"DELETE FROM t WHERE id = {key}"),
            ):
                with pytest.raises(DiskFull, match="until there is room") as refused:
                    async with asyncio.timeout(30):
                        await write
                assert str(full) in (refused.value.detail or "")
            assert await client.sql(ALL) == [(key,)]
            del disk.space
            while room.refusal is not None:
                await asyncio.sleep(0.001)
            await client.put(schema, (last,))
            await client.sql(f"INSERT INTO t VALUES ({other})")
            assert await client.sql(ALL) == sorted([(key,), (last,), (other,)])
            await cluster.idle()

    asyncio.run(scenario())
