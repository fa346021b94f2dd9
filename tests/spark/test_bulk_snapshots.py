"""Spark verifies, compacts, restores and exports snapshots as the members themselves do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.member.conftest import TestClient, TestCluster
from tests.member.logged import logged_cluster

import remuda
from remuda.errors import DataCorrupted, InputError, UndefinedObject
from remuda.snapshot.store import open_store
from remuda.spark import snapshots
from remuda.spark.pieces import run_pieces
from remuda.spark.snapshots import (
    compact_snapshot,
    export_snapshot,
    restore_snapshot,
    verify_snapshot,
)
from remuda.storage.snapshot.cut_records import mark_version
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.verifying import Level, verify
from remuda.world import system_world

pytestmark = pytest.mark.spark

Scenario = Callable[[TestClient, TestCluster], Awaitable[None]]


def run(place: Path, scenario: Scenario) -> None:
    async def main() -> None:
        folders = [place / f"member{number}" for number in range(2)]
        settings = {"snapshot_store": str(place / "store"), "log_sync": "os"}
        async with logged_cluster(folders, **settings) as cluster:
            client = await cluster.client(2)
            await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
            await client.sql("CREATE TABLE r (k INTEGER PRIMARY KEY, v TEXT) REPLICATED")
            await client.sql("INSERT INTO m SELECT n, 'v' FROM generate_series(1, 300) AS g (n)")
            await client.sql("INSERT INTO r VALUES (1, 'a'), (2, 'b')")
            await client.sql("CREATE SNAPSHOT s")
            await client.sql("UPDATE m SET v = 'new' WHERE k <= 50")
            await client.sql("DELETE FROM m WHERE k > 280")
            await client.sql("UPDATE r SET v = 'c' WHERE k = 2")
            await client.sql("CREATE SNAPSHOT s INCREMENT")
            await scenario(client, cluster)

    asyncio.run(main())


async def contents(client: TestClient, prefix: str = "") -> list[Any]:
    return [await client.sql(f"SELECT * FROM {prefix}{name} ORDER BY k") for name in ("m", "r")]


def opened(store: str) -> ObjectStore:
    return open_store(store, system_world())


def test_the_same_answers_as_the_members(spark: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "store")

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        own = verify(opened(store), "s")
        found = await asyncio.to_thread(verify_snapshot, spark, store, "s")
        assert str(found) == str(own)
        assert found.ok
        user = cluster.member(1).addresses()["user"]

        def restore() -> list[Any]:
            with remuda.connect(user) as connected:
                return restore_snapshot(spark, connected, store, "s", prefix="new_")

        rows = await asyncio.to_thread(restore)
        assert [(row.map, row.restored_as, row["rows"]) for row in rows] == [
            ("m", "new_m", 280),
            ("r", "new_r", 2),
        ]
        await client.sql("RESTORE SNAPSHOT s PREFIX 'own_'")
        assert await contents(client, "new_") == await contents(client, "own_")
        assert {key.partition("/")[0] for key in opened(store).keys("")} == {"s"}, "nothing is left"
        done = await asyncio.to_thread(
            export_snapshot, spark, store, "s", str(tmp_path / "out"), pieces=2
        )
        assert [(each.map, each.rows) for each in done] == [("m", 280), ("r", 2)]
        folder = str(tmp_path / "out" / "m")
        read = await asyncio.to_thread(lambda: spark.read.parquet(folder).collect())
        assert sorted(map(tuple, read)) == await client.sql("SELECT * FROM own_m ORDER BY k")
        made = await asyncio.to_thread(compact_snapshot, spark, store, "s", pieces=2)
        assert (made.version, made.is_base) == (3, True)
        await client.sql("INSERT INTO m VALUES (1000, 'later')")
        await client.sql("CREATE SNAPSHOT s INCREMENT")
        await client.sql("RESTORE SNAPSHOT s PREFIX 'last_'")
        assert await contents(client, "last_") == await contents(client)

    run(tmp_path, scenario)


def test_what_is_damaged_is_named_and_nothing_is_left(spark: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "store")

    async def scenario(_client: TestClient, _cluster: TestCluster) -> None:
        [segment, *_] = sorted((tmp_path / "store" / "s" / "log").rglob("*.segment"))
        data = segment.read_bytes()
        segment.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        before = opened(store).keys("")
        own = verify(opened(store), "s", Level.RECORDS)
        found = await asyncio.to_thread(verify_snapshot, spark, store, "s", 2)
        assert found.findings == own.findings != []
        with pytest.raises(DataCorrupted, match="is damaged"):
            await asyncio.to_thread(compact_snapshot, spark, store, "s", pieces=1)
        # That the number was tried stays known, so that nobody gets it again.
        assert [key for key in opened(store).keys("") if not mark_version(key)] == before

    run(tmp_path, scenario)


def test_bad_input_is_told_before_any_task(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store"):
        verify_snapshot(spark, "", "s")
    with pytest.raises(UndefinedObject, match="there is no snapshot s"):
        verify_snapshot(spark, str(tmp_path), "s")
    with pytest.raises(UndefinedObject, match="there is no snapshot s"):
        compact_snapshot(spark, str(tmp_path), "s")
    with pytest.raises(InputError, match="level must be"):
        verify_snapshot(spark, str(tmp_path), "s", 4)
    with pytest.raises(InputError, match="not both"):
        export_snapshot(
            spark, str(tmp_path), "s", str(tmp_path / "o"), cut=1, moment=snapshots.datetime.now()
        )


@pytest.mark.soak
def test_a_killed_task_is_tried_again_as_another_attempt(spark: Any) -> None:
    def fails_once(piece: int, attempt: int) -> str:
        if not attempt:
            os._exit(9)
        return f"piece {piece}, attempt {attempt}"

    assert run_pieces(spark, 1, fails_once) == ["piece 0, attempt 1"]
    assert run_pieces(spark, 0, fails_once) == []


def test_reports_add_up() -> None:
    report = snapshots.VerifyReport(Level.REPLAY, 1, 2, 3, 4, 5)
    report.add(replace(report, findings=[snapshots.Finding("here", "this")]))
    assert (report.objects, report.size, report.rows, report.records, report.commits) == (
        *(2, 4, 6, 8),
        10,
    )
    assert not report.ok
