"""Change streams: batches from a position that can be stored, whatever becomes of the members."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from logged import logged_cluster, memory_disk, on_disk, picture
from tests.member.conftest import FAST, TestCluster

import remuda.aio
from remuda.config import MemberConfig
from remuda.datatypes.timestamp import from_micros
from remuda.errors import ChangesExpired, DuplicateColumn, InputError, UndefinedMap
from remuda.member import upkeep
from remuda.member.changes import change_logs
from remuda.member.member import Member
from remuda.storage.maps.map_store import MapStore
from remuda.world import system_world

QUICK = {"backups": 1, "lease": 0.5}
KEPT = "WITH (change_retention = '1 h')"


def connect(cluster: TestCluster) -> Any:
    running = [m for m in cluster.members if not m.core.stopping]
    return remuda.aio.connect([(m.info.host, m.info.user_port) for m in running])


@pytest.fixture
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the option, versions go soon."""
    monkeypatch.setattr(upkeep, "VERSIONS_KEPT", from_micros(100_000))
    monkeypatch.setattr(change_logs, "KEPT", from_micros(100_000))


def told(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """(kind, key, value before, value) of each change of a map (k, v)."""
    return [
        (
            row["_change"],
            row["k"],
            None if row["_before"] is None else row["_before"]["v"],
            None if row["_change"] == "delete" else row["v"],
        )
        for row in batch.to_pylist()
    ]


async def all_of(stream: Any, end: int) -> list[tuple[Any, ...]]:
    """What a stream tells until ``end``."""
    found = []
    while stream._feed.position < end or stream._pages or stream._reader is not None:
        batch = await stream.read(0.01)
        if batch is not None:
            found += told(batch)
    return found


async def now(client: Any) -> int:
    clock: int = (await client.cluster_info()).clock
    return clock


def settled(changes: list[tuple[Any, ...]]) -> dict[int, int]:
    """What is left after some changes, each of which must go on from the one before."""
    last: dict[int, int] = {}
    for kind, key, before, value in changes:
        assert last.get(key) == before, (kind, key, before, value)
        assert (kind == "delete") == (value is None)
        assert kind == "snapshot" or (kind == "insert") == (before is None)
        if value is None:
            del last[key]
        else:
            last[key] = value
    return last


async def dropped_until(store: MapStore, at: int) -> None:
    """Versions that nobody wants have been collected."""
    while store.floor <= at:
        await asyncio.sleep(0.005)


def test_kinds_images_and_times(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with connect(cluster) as client:
            await client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT)")
            await client.sql("INSERT INTO m VALUES (1, 10), (2, 20)")
            stream = await client.map("m").changes("snapshot")
            assert stream.schema.names == [
                "k", "v", "_change", "_commit_timestamp", "_transaction", "_before",
            ]  # fmt: skip
            numbers = client.map("m")
            await client.sql("UPDATE m SET v = v + 1")
            await client.sql("DELETE FROM m WHERE k = 1")
            await client.sql("INSERT INTO m VALUES (3, NULL)")
            await numbers.set_ttl(3, 0.001)
            await client.sql("TRUNCATE TABLE m")
            end = await now(client)
            batches = []
            while stream._feed.position < end or stream._pages or stream._reader is not None:
                batch = await stream.read(0.01)
                if batch is not None:
                    assert batch.schema.equals(stream.schema)
                    batches.append(batch)
            rows = pa.Table.from_batches(batches).to_pylist()
            by_key = {
                key: [(r["_change"], r["_before"], r["v"]) for r in rows if r["k"] == key]
                for key in (1, 2, 3)
            }
            assert by_key[1] == [
                ("snapshot", None, 10),
                ("update", {"k": 1, "v": 10}, 11),
                ("delete", {"k": 1, "v": 11}, 11),
            ]
            assert by_key[2] == [
                ("snapshot", None, 20),
                ("update", {"k": 2, "v": 20}, 21),
                ("delete", {"k": 2, "v": 21}, 21),
            ]
            assert [found[0] for found in by_key[3]] == ["insert", "update", "delete"]
            assert by_key[3][1] == ("update", {"k": 3, "v": None}, None)
            updates = [r for r in rows if r["_change"] == "update" and r["v"] is not None]
            assert len({r["_transaction"] for r in updates}) == 1, "one commit"
            moments = {r["_commit_timestamp"] for r in rows}
            assert all(m.tzinfo is not None for m in moments)
            first = updates[0]
            assert first["_transaction"] >> 10 == first["_commit_timestamp"].timestamp() * 1e6 // 1
            await stream.stop()
            assert await stream.read() is None

    in_cluster(scenario, members=2)


@pytest.mark.parametrize("start", ["snapshot", "earliest", "latest", "moment"])
def test_resumed_elsewhere(in_cluster: Any, start: str) -> None:
    """A stream is stopped after every batch, its position stored, and goes on in another client."""

    async def scenario(cluster: TestCluster) -> None:
        async with connect(cluster) as client:
            await client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT)")
            begin = dt.datetime.now(dt.UTC) if start == "moment" else start
            numbers = client.map("m")
            for key in range(10):
                await numbers.put(key, {"v": 0})
            stream = await numbers.changes(begin, rows=64)
            changes: list[tuple[Any, ...]] = []
            if start == "latest":
                changes = [("insert", key, None, 0) for key in range(10)]
            for value in range(1, 60):
                await numbers.put(value % 10, {"v": value})
            await client.sql("DELETE FROM m WHERE k = 5")
            end = await now(client)
            if start == "snapshot":  # in the middle of it there is nothing but its begin
                position = json.loads(json.dumps(stream.position))
                await stream.stop()
                stream = await numbers.changes(position)
            while True:
                batch = await stream.read(0.2)
                if batch is not None:
                    changes += told(batch)
                if stream.position.get("read") and batch is None:
                    if stream._feed.position >= end:
                        break
                    continue
                if "snapshot" in stream.position:
                    continue
                position = json.loads(json.dumps(stream.position))
                await stream.stop()
                async with connect(cluster) as other:
                    moved = await other.map("m").changes(position, rows=64)
                    batch = await moved.read(0.05)
                    changes += [] if batch is None else told(batch)
                    position = moved.position
                    await moved.stop()
                stream = await numbers.changes(position, rows=64)
            await stream.stop()
            assert settled(changes) == {k: 50 + k for k in range(10) if k != 5}
            assert len([c for c in changes if c[0] == "update"]) == 59

    in_cluster(scenario, members=3)


def test_kept_changes_outlive_versions(in_cluster: Any, short_memory: None) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with connect(cluster) as client:
            for name, options in (("kept", KEPT), ("short", "")):
                await client.sql(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, v BIGINT) {options}")
                await client.sql(f"INSERT INTO {name} SELECT i, 0 FROM generate_series(1, 50) g(i)")
            begin = await now(client)
            for value in range(1, 5):
                for name in ("kept", "short"):
                    await client.sql(f"UPDATE {name} SET v = {value}")
            await client.sql("DELETE FROM kept WHERE k > 10")
            core = cluster.member(1).core
            stores = {store.schema.name: store for store in core.stores.values()}
            for store in stores.values():  # what is small is not sealed by itself so soon
                store._table.next_tail()
            await client.sql("INSERT INTO short VALUES (0, 0)")
            await dropped_until(stores["short"], begin)
            with pytest.raises(ChangesExpired, match='the changes of map "short" since') as error:
                await client.map("short").changes(begin)
            assert "They are there since" in error.value.detail
            assert "change_retention" in error.value.hint
            stream = await client.map("kept").changes("earliest")
            changes = await all_of(stream, await now(client))
            await stream.stop()
            assert settled(changes) == dict.fromkeys(range(1, 11), 4)
            assert len(changes) == 50 * 5 + 40
            shown = await client.sql("SHOW CREATE TABLE kept")
            assert "change_retention = '1 h'" in str(await shown.fetchall())

    in_cluster(scenario, members=1)


def test_the_oldest_go_when_they_take_too_much(in_cluster: Any, short_memory: None) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with connect(cluster) as client:
            await client.sql(
                "CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT) WITH "
                "(change_retention = '1 h', change_retention_bytes = '1 MB')"
            )
            begin = await now(client)
            (store,) = cluster.member(1).core.stores.values()
            for _ in range(6):
                await client.sql("INSERT INTO m SELECT i, 0 FROM generate_series(1, 20000) g(i)")
                await client.sql("DELETE FROM m")
            middle = await now(client)
            while store.floor <= begin:
                await asyncio.sleep(0.005)
            await client.sql("INSERT INTO m VALUES (1, 1)")
            with pytest.raises(ChangesExpired):
                await client.map("m").changes(begin)
            stream = await client.map("m").changes(middle)
            assert await all_of(stream, await now(client)) == [("insert", 1, None, 1)]
            await stream.stop()

    in_cluster(scenario, members=1)


def test_a_history_moves_with_its_partitions(in_cluster: Any) -> None:
    """Members come, leave and are lost; partitions come back to where they were: the whole history
    can be read all the while, and each change is in it once."""

    async def scenario(cluster: TestCluster) -> None:
        async with connect(cluster) as client:
            await client.sql(f"CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT) {KEPT}")
            numbers, made = client.map("m"), 0

            async def write() -> None:
                nonlocal made
                for key in range(40):
                    made += 1
                    await numbers.put(key, {"v": made})
                await numbers.remove(7)
                made += 1

            async def check() -> None:
                stream = await numbers.changes("earliest")
                changes = await all_of(stream, await now(client))
                await stream.stop()
                rows = await (await client.sql("SELECT k, v FROM m")).fetchall()
                assert settled(changes) == {row.k: row.v for row in rows}
                assert len(changes) == made

            await write()
            first = next(m for m in cluster.members if not m.core.stopping)
            config = MemberConfig(join=first.addresses()["control"], **{**FAST, **QUICK})
            joined = Member(config, system_world())
            cluster.members.append(joined)
            await joined.start()
            while not first.core.view.partitions_of(joined.core.number):
                await asyncio.sleep(0.01)
            await write()
            await joined.leave()
            await joined.stop()
            await write()
            await check()
            await cluster.member(2).stop("a test")
        async with connect(cluster) as client:  # none whose requests the lost one may have met
            numbers = client.map("m")
            await write()
            await check()

    in_cluster(scenario, members=3, **QUICK)


def test_a_history_is_there_after_a_start() -> None:
    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a"), Path("/b")]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            async with connect(cluster) as client:
                await client.sql(f"CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT) {KEPT}")
                await client.sql("CREATE TABLE plain (k BIGINT PRIMARY KEY, v BIGINT)")
                for value in range(5):
                    for key in range(20):
                        await client.map("m").put(key, {"v": value})
                await client.sql("DELETE FROM m WHERE k > 9")
                await client.map("plain").put(1, {"v": 1})
                position = await now(client)
                for each in cluster.members:
                    await each.recovery.checkpoints.take()
                await client.sql("UPDATE m SET v = 100 WHERE k = 1")
            killed = picture(disk)
        async with (
            logged_cluster(folders, on_disk(killed), backups=1) as cluster,
            connect(cluster) as client,
        ):
            stream = await client.map("m").changes("earliest")
            changes = await all_of(stream, await now(client))
            await stream.stop()
            assert settled(changes) == dict.fromkeys(range(10), 4) | {1: 100}
            assert len(changes) == 111
            with pytest.raises(ChangesExpired, match="plain"):
                await client.map("plain").changes(position - 1)

    asyncio.run(scenario())


def test_a_reader_of_the_future_takes_nothing_from_others(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with connect(cluster) as client:
            await client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT)")
            m, later = client.map("m"), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
            with pytest.raises(InputError, match="lies in the future"):
                await m.changes(later)
            async with await m.changes() as here:
                ahead = here.position
            ahead["read"][0][0] += from_micros(3_600_000_000)
            async with await m.changes(ahead) as future:
                assert await future.read(0.05) is None
                stream = await m.changes()
                await client.sql("INSERT INTO m VALUES (1, 10)")
                await client.sql("UPDATE m SET v = 11")
                found = await all_of(stream, await now(client))
                assert found == [("insert", 1, None, 10), ("update", 1, 10, 11)]
                assert await future.read(0.01) is None
                await stream.stop()

    in_cluster(scenario, members=1)


def test_what_cannot_be(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        async with connect(cluster) as client:
            await client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT)")
            m = client.map("m")
            naive = dt.datetime(2024, 1, 1)  # noqa: DTZ001 (that is what is wrong with it)
            part = {"map_id": 1, "read": [[1, None, [1]]]}
            for wrong in ("yesterday", -1, 1.5, naive, {}, {"read": []}, part, True, None):
                with pytest.raises(InputError):
                    await m.changes(wrong)
            with pytest.raises(InputError, match="rows is a number of changes"):
                await m.changes(rows=0)
            stream = await m.changes()
            position = stream.position
            await client.sql("DROP TABLE m")
            await client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT)")
            with pytest.raises(UndefinedMap):
                await stream.read()
            await stream.stop()
            with pytest.raises(UndefinedMap, match="another one has its name"):
                await m.changes(position)
            await client.sql("CREATE TABLE w (k BIGINT PRIMARY KEY, _change BIGINT)")
            with pytest.raises(DuplicateColumn, match="_change"):
                await client.map("w").changes()
            with pytest.raises(InputError, match="needs change_retention"):
                await client.sql(
                    "CREATE TABLE x (k BIGINT PRIMARY KEY) WITH (change_retention_bytes = 1)"
                )

    in_cluster(scenario, members=1)
