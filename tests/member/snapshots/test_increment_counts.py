"""``SHOW SNAPSHOTS`` tells how many rows each increment holds."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from logged import asked, late_member, logged_cluster, run
from tests.member.commits.test_jobs import Writer, begun, commit
from tests.member.conftest import TestClient, TestCluster
from tests.member.snapshots.test_cuts_restarted import at_rest

from remuda.datatypes.schema import MapSchema
from remuda.member.snapshots.increment_counts import changed_maps
from remuda.storage.format.manifest import MapChanges, decode_manifest, encode_manifest
from remuda.storage.log import reader
from remuda.storage.log.tally import Tally
from remuda.storage.snapshot import writing
from remuda.world import system_world

SERIES = "INSERT INTO {} SELECT n, 7 FROM generate_series({}, {}) AS g (n)"


async def cut(client: TestClient) -> tuple[Any, ...]:
    """Kind, maps, rows and removed entries of a new cut, as CREATE and SHOW tell them."""
    [made] = await asked(client, "CREATE SNAPSHOT s INCREMENT")
    assert made[:-1] == (await client.sql("SHOW SNAPSHOTS"))[-1]
    assert made[:-1] == (await client.sql("SELECT * FROM sys.snapshots ORDER BY cut"))[-1]
    return (made[2], *made[5:8])


async def filled(client: TestClient) -> MapSchema:
    await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v INTEGER)")
    await client.sql("CREATE TABLE r (k INTEGER PRIMARY KEY, v INTEGER) REPLICATED")
    await client.sql(SERIES.format("m", 1, 300))
    await client.sql("INSERT INTO r VALUES (1, 1), (2, 2)")
    return await client.schema("m")


def test_increments_count_what_was_written_since_the_cut_before(tmp_path: Path) -> None:
    """Each row counts once, however many members note it, and as often as it was written."""

    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        schema = await filled(client)
        assert await cut(client) == ("base", 2, 302, 0)
        for row in ((5, 50), (5, 51), (1000, 0)):
            await client.put(schema, row)
        await client.remove(schema, 6)
        await client.remove(schema, 999)  # it is not there
        await client.sql("UPDATE m SET v = 8 WHERE k BETWEEN 10 AND 20")
        await client.sql("DELETE FROM m WHERE k BETWEEN 30 AND 39")
        await client.sql("UPDATE r SET v = 9 WHERE k = 2")
        await client.sql("DELETE FROM r WHERE k = 1")
        assert await cut(client) == ("increment", 2, 3 + 11 + 1, 1 + 10 + 1)
        assert await cut(client) == ("increment", 0, 0, 0)
        await client.sql(SERIES.format("m", 2000, 4999))
        await client.sql(SERIES.format("r", 10, 1009))
        assert await cut(client) == ("increment", 2, 4000, 0)
        await client.sql("DELETE FROM m WHERE k >= 2000")
        await client.sql("DELETE FROM r WHERE k >= 10")
        await client.sql("UPDATE m SET v = 1")
        assert await cut(client) == ("increment", 2, 290, 4000)
        await client.sql("CREATE TABLE gone (k INTEGER PRIMARY KEY, v INTEGER)")
        await client.sql(SERIES.format("gone", 1, 10))
        await client.sql("DROP TABLE gone")
        await client.sql("CREATE TABLE late (k INTEGER PRIMARY KEY, v INTEGER)")
        await client.sql(SERIES.format("late", 1, 20))
        assert await cut(client) == ("increment", 1, 20, 0)
        assert [row[1:6] for row in await client.sql("SHOW SNAPSHOT s")] == [
            (1, "base", "m", 300, 0), (1, "base", "r", 2, 0),
            (2, "increment", "m", 3 + 11, 1 + 10), (2, "increment", "r", 1, 1),
            (3, "increment", None, 0, 0),
            (4, "increment", "m", 3000, 0), (4, "increment", "r", 1000, 0),
            (5, "increment", "m", 290, 3000), (5, "increment", "r", 0, 1000),
            (6, "increment", "late", 20, 0),
        ]  # fmt: skip
        assert await client.sql("VERIFY SNAPSHOT s") == []
        await client.sql("RESTORE SNAPSHOT s PREFIX 'old_'")
        assert await client.sql("SELECT count(*), sum(v) FROM old_m") == [(290, 290)]

    run(tmp_path, scenario, members=3, backups=1)


def test_increments_count_the_rows_of_jobs(tmp_path: Path) -> None:
    """Those of the attempts that were taken; of an overwriting job, the rows that it writes."""

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await filled(client)
        await cut(client)
        job, schema = await begun(client)
        failed, good = (Writer(cluster, job, schema, f"0:{n}") for n in range(2))
        await failed.write(range(1000, 1050))
        await good.write(range(1000, 1100), repeat=2)
        assert await cut(client) == ("increment", 0, 0, 0)  # nobody sees them yet
        assert await commit(client, job, [await good.end()]) == 100
        assert await cut(client) == ("increment", 1, 100, 0)
        job, schema = await begun(client, overwrite=True)
        writer = Writer(cluster, job, schema, "0:0")
        await writer.write(range(3))
        await commit(client, job, [await writer.end()])
        assert await cut(client) == ("increment", 1, 3, 0)
        assert await client.sql("VERIFY SNAPSHOT s") == []

    run(tmp_path, scenario, members=3, backups=1)


def test_increments_count_after_a_restart_and_after_members_have_come(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    settings = {"snapshot_store": str(tmp_path / "store"), "log_sync": "os", "backups": 1}

    async def increments(cluster: TestCluster, first: int, rows: int) -> None:
        client = await cluster.client(1)
        assert await cut(client) == ("base", 2, rows, 0)
        await asked(client, SERIES.format("m", first, first + 1999))
        await asked(client, f"DELETE FROM m WHERE k BETWEEN {first} AND {first + 9}")
        assert await cut(client) == ("increment", 1, 2000, 10)
        job, schema = await begun(client)
        writer = Writer(cluster, job, schema, "0:0")
        await writer.write(range(first, first + 10))
        await commit(client, job, [await writer.end()])
        assert await cut(client) == ("increment", 1, 10, 0)

    async def main() -> None:
        async with logged_cluster(folders, **settings) as cluster:
            await filled(await cluster.client(1))
            await at_rest(cluster.members)
            await increments(cluster, 1000, 302)
        async with logged_cluster(folders, **settings) as cluster:
            await at_rest(cluster.members)
            await increments(cluster, 10000, 2302)
            async with late_member(cluster, tmp_path / "c", system_world(), **settings) as member:
                whole = TestCluster([*cluster.members, member])
                await at_rest(whole.members)
                await increments(whole, 20000, 4302)

    asyncio.run(main())


def test_an_increment_of_which_a_member_has_not_counted_is_not_known(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await filled(client)
        catalog = cluster.member(1).core.catalog
        [m, _] = catalog.maps
        counted = {m.map_id: Tally(1, 2)}
        assert changed_maps(catalog, [counted, None]) is None
        assert changed_maps(catalog, [counted, counted]) == (MapChanges(m.map_id, "m", 2, 4),)
        await cut(client)
        await client.sql("DELETE FROM m WHERE k <= 3")
        await cut(client)
        [path] = tmp_path.rglob("cut-0000000002.manifest")
        changes = decode_manifest(path.read_bytes()).changes
        assert changes is not None
        assert [(each.name, each.put, each.removed) for each in changes] == [("m", 0, 3)]

    run(tmp_path, scenario)


def test_increments_of_format_1_are_shown_without_counts_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await filled(client)
        with monkeypatch.context() as patch:
            patch.setattr(writing, "encode_manifest", partial(encode_manifest, number=1))
            await cut(client)
            await client.sql("DELETE FROM m WHERE k <= 3")
            await client.sql("CREATE SNAPSHOT s INCREMENT")
        shown = await client.sql("SELECT kind, maps, rows, removed FROM sys.snapshots ORDER BY cut")
        assert shown == [("base", 2, 302, 0), ("increment", None, None, None)]
        await client.sql("UPDATE m SET v = 2 WHERE k BETWEEN 4 AND 8")
        assert await cut(client) == ("increment", 1, 5, 0)
        assert await client.sql("VERIFY SNAPSHOT s") == []
        await client.sql("RESTORE SNAPSHOT s CUT 2 PREFIX 'old_'")
        assert await client.sql("SELECT count(*), sum(v) FROM old_m") == [(297, 7 * 297)]

    run(tmp_path, scenario)


def test_a_cut_reads_no_record_of_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each second between two cuts may have thousands: they are counted when they are noted. Of a
    job, a cut reads its own records."""
    read: list[int] = []
    original = reader.read_frame

    def noted(*arguments: Any) -> Any:
        frame = original(*arguments)
        read.append(0 if frame is None else frame.kind)
        return frame

    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        schema = await filled(client)
        assert await cut(client) == ("base", 2, 302, 0)
        monkeypatch.setattr(reader, "read_frame", noted)
        for repeat in range(2):
            for key in range(100):
                await client.put(schema, (key, repeat))
            await client.remove(schema, 200 + repeat)
            assert await cut(client) == ("increment", 1, 100, 1)
            assert read == []
        await client.sql("UPDATE m SET v = 8 WHERE k <= 200")
        await client.put(schema, (5, 5))
        assert await cut(client) == ("increment", 1, 201, 0)
        assert 0 < len(read) < 20, len(read)

    run(tmp_path, scenario)
