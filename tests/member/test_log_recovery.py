"""Members that start again from their logs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from logged import asked, late_member, logged_cluster, memory_disk, on_disk, picture

from remuda.errors import RemudaError


def test_one_member_comes_back_with_everything() -> None:
    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a")]
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR, x DOUBLE)")
            await client.sql("CREATE INDEX t_name ON t (name)")
            await client.sql("CREATE VIEW v AS SELECT id, name FROM t WHERE x > 1")
            schema = await client.schema("t")
            for number in range(20):
                await client.put(schema, (number, f"n{number}", number / 2))
            await client.remove(schema, 3)
            await client.sql("INSERT INTO t SELECT id + 100, name, x FROM t")
            await client.sql("UPDATE t SET name = 'changed' WHERE id = 4")
            await client.sql("DELETE FROM t WHERE id = 105")
            await client.sql("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7")
            await client.sql("INSERT INTO t VALUES (1000, NULL, 0.5, NULL)")
            await client.sql("CREATE TABLE gone (id BIGINT PRIMARY KEY)")
            await client.sql("DROP TABLE gone")
            expected = await client.sql("SELECT * FROM t ORDER BY id")
            killed = picture(disk)
        for after in (disk, killed):
            async with logged_cluster(folders, on_disk(after)) as cluster:
                client = await cluster.client()
                assert await client.sql("SELECT * FROM t ORDER BY id") == expected
                assert await client.sql("SELECT count(*) FROM v") == [
                    (sum(1 for row in expected if row[2] > 1),)
                ]
                assert await client.sql("SELECT id FROM t WHERE name = 'changed'") == [(4,)]
                with pytest.raises(RemudaError, match="gone"):
                    await client.sql("SELECT * FROM gone")
                await client.sql("INSERT INTO t VALUES (2000, 'new', 1.5, 1)")
            async with logged_cluster(folders, on_disk(after)) as cluster:
                client = await cluster.client()
                assert len(await client.sql("SELECT * FROM t")) == len(expected) + 1

    asyncio.run(scenario())


async def fill(client, rows: int = 200) -> None:  # type: ignore[no-untyped-def]
    await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR)")
    await client.sql("CREATE TABLE r (id BIGINT PRIMARY KEY, x BIGINT) WITH (REPLICATED = TRUE)")
    values = ", ".join(f"({number}, 'n{number}')" for number in range(rows))
    await client.sql(f"INSERT INTO t VALUES {values}")
    await client.sql("INSERT INTO r VALUES (1, 10), (2, 20)")
    schema = await client.schema("t")
    for number in range(rows, rows + 20):
        await client.put(schema, (number, "put"))
    await client.remove(schema, 5)
    await client.sql("UPDATE t SET name = 'changed' WHERE id < 3")
    await client.sql("DELETE FROM r WHERE id = 2")


async def holds(client, rows: int = 200) -> None:  # type: ignore[no-untyped-def]
    found = dict(await asked(client, "SELECT id, name FROM t"))
    expected = {n: f"n{n}" for n in range(rows)} | dict.fromkeys(range(rows, rows + 20), "put")
    expected |= dict.fromkeys(range(3), "changed")
    del expected[5]
    assert found == expected
    assert await asked(client, "SELECT * FROM r") == [(1, 10)]


@pytest.mark.parametrize("backups", [0, 2])
def test_a_whole_cluster_comes_back_in_any_order(backups: int) -> None:
    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=backups) as cluster:
            client = await cluster.client()
            await fill(client)
            killed = picture(disk)
        turned = folders[1:] + folders[:1]
        for after, order in ((killed, turned), (killed, folders), (disk, folders)):
            async with logged_cluster(order, on_disk(after), backups=backups) as cluster:
                if order is turned:
                    assert {member.info.number for member in cluster.members} == {1, 2, 3}
                for member in cluster.members:
                    await holds(await cluster.client(member.info.number))
                while order is turned and any(
                    len(row) <= backups for row in cluster.members[0].core.view.replicas
                ):
                    await asyncio.sleep(0.01)  # backups are made anew

    asyncio.run(scenario())


def test_members_that_had_gone_on_are_what_counts() -> None:
    """One member ends, the others go on and write; all come back."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            client = await cluster.client()
            await fill(client)
            gone = cluster.members.pop()
            await gone.stop()
            while len(cluster.member(1).core.view.members) == 3:
                await asyncio.sleep(0.01)
            await asked(client, "UPDATE t SET name = 'later' WHERE id = 100")
            killed = on_disk(picture(disk))
        async with logged_cluster(folders[:2], killed, late=folders[2:], backups=1) as cluster:
            for member in cluster.members:
                client = await cluster.client(member.info.number)
                assert await asked(client, "SELECT name FROM t WHERE id = 100") == [("later",)]
                assert await asked(client, "SELECT count(*) FROM t") == [(219,)]
                assert await asked(client, "SELECT * FROM r") == [(1, 10)]
            assert {m.info.number for m in cluster.members} == {1, 2, 4}

    asyncio.run(scenario())


def test_without_backups_a_lost_member_brings_its_rows_back() -> None:
    """Its partitions were lost in between: when all start again, its log has them."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=0) as cluster:
            client = await cluster.client()
            await fill(client)
            await cluster.members.pop().stop()
            while not cluster.member(1).core.view.lost:
                await asyncio.sleep(0.01)
            killed = on_disk(picture(disk))
            with pytest.raises(RemudaError, match=r"only copies of .* partitions"):
                async with late_member(cluster, folders[2], on_disk(disk)):
                    pass
        async with logged_cluster(folders, killed, backups=0) as cluster:
            await holds(await cluster.client())

    asyncio.run(scenario())


# --- refusals -------------------------------------------------------------------------------------


async def refused(disk: Any, folders: list[Path], **settings: Any) -> RemudaError:
    with pytest.raises(RemudaError) as caught:
        async with logged_cluster(folders, on_disk(disk), **settings):
            pass
    return caught.value


def test_a_folder_is_for_one_process() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        async with logged_cluster([Path("/a")], on_disk(disk)):
            error = await refused(disk, [Path("/a")])
            assert error.message == "data_dir /a is used by another process"

    asyncio.run(scenario())


def test_folders_of_two_clusters_do_not_mix() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        for folder in ("/a", "/b"):
            async with logged_cluster([Path(folder)], on_disk(disk)):
                pass
        error = await refused(disk, [Path("/a"), Path("/b")], join_timeout=2.0)
        assert error.message == "data_dir of the member belongs to another cluster"
        error = await refused(disk, [Path("/new"), Path("/b")], join_timeout=2.0)
        assert "belongs to another cluster: this one is new" in error.message
        async with logged_cluster([Path("/a")], on_disk(disk)) as cluster:
            with pytest.raises(RemudaError, match="belongs to another cluster"):
                async with late_member(cluster, Path("/b"), on_disk(disk)):
                    pass
            with pytest.raises(RemudaError, match="has no data_dir"):
                async with late_member(cluster, Path("/c"), on_disk(disk), data_dir=""):
                    pass

    asyncio.run(scenario())


def test_missing_members_are_named_and_waited_for() -> None:
    """Too many of them, that is; in words, the cluster starts without them."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            await fill(await cluster.client())
            killed = picture(disk)
        error = await refused(picture(killed), folders[:1], join_timeout=1.0)
        assert "members 2, 3 are not back yet; only they have" in error.message
        one_missing = on_disk(picture(killed))
        soon = {"heartbeat_timeout": 0.3, "backups": 1}
        async with logged_cluster(folders[:2], one_missing, **soon) as cluster:
            await holds(await cluster.client())
        given_up = on_disk(killed)
        async with logged_cluster(folders[:1], given_up, start_without="2,3", **soon) as cluster:
            client = await cluster.client()
            assert len(cluster.member(1).core.view.lost) > 80
            assert await asked(client, "SELECT * FROM r") == [(1, 10)]

    asyncio.run(scenario())


def test_damage_is_refused_with_its_place() -> None:
    async def scenario() -> None:
        disk, folder = memory_disk(), Path("/a")
        async with logged_cluster([folder], on_disk(disk)) as cluster:
            await fill(await cluster.client())
        segment = folder / "log-0001" / "0000000001.segment"
        damaged = picture(disk)
        damaged.flip(segment, 2000, 4)
        error = await refused(damaged, [folder])
        assert error.message.startswith("the log is damaged: segment 1, offset ")
        before = bytes(damaged.read(segment))
        damaged.flip(segment, 2000, 4)
        assert bytes(damaged.read(segment)) != before
        async with logged_cluster([folder], on_disk(damaged)) as cluster:
            await holds(await cluster.client())

    asyncio.run(scenario())


def test_a_full_disk_ends_the_member_and_loses_nothing() -> None:
    async def scenario() -> None:
        disk, folder, told = memory_disk(), Path("/a"), [-1]
        async with logged_cluster([folder], on_disk(disk)) as cluster:
            client = await cluster.client()
            ended: list[str] = []
            closed = asyncio.Event()
            cluster.member(1).on_given_up.append(ended.append)
            client.channel.on_closed.append(lambda _: closed.set())
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            disk.capacity = disk.used + 3000

            async def insert() -> None:
                for number in range(1000):
                    await client.sql(f"INSERT INTO t VALUES ({number})")
                    told[0] = number

            writing = asyncio.ensure_future(insert())
            await closed.wait()
            writing.cancel()
            assert "its log cannot be written" in ended[0]
            assert "No space left" in ended[0]
        disk.capacity = None
        async with logged_cluster([folder], on_disk(disk)) as cluster:
            client = await cluster.client()
            ((count, highest),) = await client.sql("SELECT count(*), max(id) FROM t")
            assert count == highest + 1
            assert highest in {told[0], told[0] + 1}
            assert told[0] > 0

    asyncio.run(scenario())
