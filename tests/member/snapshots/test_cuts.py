"""Increments by consistent cuts of members that keep logs, and what they restore."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from logged import run
from tests.member.conftest import TestClient, TestCluster

from remuda.errors import InputError, TransientError
from remuda.member.snapshots.cuts import Cut

ALL = "SELECT k, v FROM {}m ORDER BY k"


def test_every_cut_restores_what_was_there(tmp_path: Path) -> None:
    states: dict[int, list[Any]] = {}

    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        async def cut(kind: str) -> None:
            [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
            assert row[2] == kind, row
            states[row[1]] = await client.sql(ALL.format(""))

        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE TABLE r (k INTEGER PRIMARY KEY, v TEXT) REPLICATED")
        await client.sql("INSERT INTO m SELECT n, 'v' || n FROM generate_series(1, 300) AS g (n)")
        await client.sql("INSERT INTO r VALUES (1, 'a'), (2, 'b')")
        await cut("base")
        schema = await client.schema("m")
        await client.put(schema, (5, "put"))
        await client.put(schema, (1000, "new"))
        await client.remove(schema, 6)
        await client.sql("UPDATE m SET v = 'updated' WHERE k BETWEEN 10 AND 20")
        await client.sql("DELETE FROM m WHERE k BETWEEN 30 AND 40")
        await client.sql("UPDATE r SET v = 'c' WHERE k = 2")
        await cut("increment")
        await client.sql("CREATE TABLE late (k INTEGER PRIMARY KEY)")
        await client.sql("INSERT INTO late VALUES (7)")
        await cut("increment")
        await client.sql("TRUNCATE TABLE m")
        await client.sql("INSERT INTO m VALUES (1, 'again')")
        await cut("increment")
        assert await client.sql("VERIFY SNAPSHOT s") == []
        for number, state in states.items():
            await client.sql(f"RESTORE SNAPSHOT s CUT {number} PREFIX 'c{number}_'")
            assert await client.sql(ALL.format(f"c{number}_")) == state
        assert await client.sql("SELECT v FROM c1_r ORDER BY k") == [("a",), ("b",)]
        assert await client.sql("SELECT v FROM c2_r ORDER BY k") == [("a",), ("c",)]
        assert await client.sql("SELECT k FROM c3_late") == [(7,)]
        await client.sql("ALTER TABLE m ADD COLUMN w INTEGER")
        [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
        assert row[2] == "base"  # a log has rows as they were

    async def elsewhere(client: TestClient, _cluster: TestCluster) -> None:
        for number, state in states.items():
            await client.sql(f"RESTORE SNAPSHOT s CUT {number} MAPS m AS c{number}_m")
            assert await client.sql(ALL.format(f"c{number}_")) == state

    run(tmp_path, scenario, members=2)
    (tmp_path / "other").mkdir()
    store = str(tmp_path / "store")
    run(tmp_path / "other", elsewhere, members=1, snapshot_store=store)


def test_any_moment_between_cuts_restores(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE SNAPSHOT s")
        moments = []
        for number in range(4):
            await client.sql(f"INSERT INTO m VALUES ({number}, 'x')")
            await asyncio.sleep(0.002)
            moments.append(datetime.now(UTC))
            await asyncio.sleep(0.002)
        await client.sql("CREATE SNAPSHOT s INCREMENT")
        for number, moment in enumerate(moments):
            await client.sql(f"RESTORE SNAPSHOT s TO '{moment.isoformat()}' PREFIX 'm{number}_'")
            rows = await client.sql(f"SELECT k FROM m{number}_m ORDER BY k")
            assert rows == [(k,) for k in range(number + 1)]
        with pytest.raises(InputError, match="does not reach 2001-01-01") as refused:
            await client.sql("RESTORE SNAPSHOT s TO '2001-01-01' PREFIX 'x_'")
        reached = refused.value.detail.removeprefix("it reaches ").split(" to ")
        for prefix, end in zip("xy", reached, strict=True):  # what the error names is reached
            await client.sql(f"RESTORE SNAPSHOT s TO '{end}' PREFIX '{prefix}_'")
        assert await client.sql("SELECT count(*) FROM x_m") == [(0,)]
        assert await client.sql("SELECT count(*) FROM y_m") == [(4,)]

    run(tmp_path, scenario, members=2)


def test_an_increment_needs_logs(in_cluster: Callable[..., None], tmp_path: Path) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client()
        with pytest.raises(InputError, match="logs of all members"):
            await client.sql("CREATE SNAPSHOT s INCREMENT")

    in_cluster(scenario, 1, snapshot_store=str(tmp_path))


def test_cuts_under_transfers_are_whole(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v INTEGER)")
        await client.sql("INSERT INTO m SELECT n, 100 FROM generate_series(1, 20) AS g (n)")
        over = False

        async def move(first: int) -> None:
            mover = await cluster.client(1)
            schema = await mover.schema("m")
            while not over:
                a, b = first, first % 20 + 1
                await mover.sql(
                    "UPDATE m SET v = v + CASE k WHEN ? THEN 1 ELSE -1 END WHERE k IN (?, ?)",
                    a, a, b,
                )  # fmt: skip
                await mover.put(schema, (100 + first, 0))

        movers = [asyncio.ensure_future(move(first)) for first in (1, 5, 9)]
        await client.sql("CREATE SNAPSHOT s")
        for _ in range(5):
            await asyncio.sleep(0.05)
            [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
            assert row[2] == "increment"
        over = True
        await asyncio.gather(*movers)
        assert await client.sql("VERIFY SNAPSHOT s") == []
        for cut in (1, 3, 6):
            await client.sql(f"RESTORE SNAPSHOT s CUT {cut} PREFIX 'c{cut}_'")
            assert await client.sql(f"SELECT sum(v) FROM c{cut}_m") == [(2000,)]

    run(tmp_path, scenario, members=2, backups=1)


def test_a_cut_of_which_commits_were_not_noted_is_given_up(tmp_path: Path) -> None:
    """Another one has begun while it waited, or what is remembered for it was forgotten."""

    async def scenario(_client: TestClient, cluster: TestCluster) -> None:
        cuts = cluster.member(1).snapshots.cuts
        waiting: list[asyncio.Event] = []

        async def settled(_timestamp: int) -> None:
            waiting.append(asyncio.Event())
            await waiting[-1].wait()

        async def begun(version: int) -> asyncio.Task[Cut]:
            before, clocks = len(waiting), await cuts.clocks()
            cut = asyncio.ensure_future(cuts.take(version, clocks))
            while len(waiting) == before:
                await asyncio.sleep(0)
            return cut

        with mock.patch.object(cuts, "settled", settled):
            first, second = await begun(10), await begun(11)
            waiting[0].set()
            with pytest.raises(TransientError, match="waited too long"):
                await first
            waiting[1].set()
            assert (await second).version == 11
            third = await begun(12)
            assert cuts.wal is not None
            cuts._end_watch(cuts.wal)
            waiting[2].set()
            with pytest.raises(TransientError, match="waited too long"):
                await third

    run(tmp_path, scenario, members=1)


def test_cuts_are_made_on_a_schedule_and_expire(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY)")
        made: set[int] = set()
        kinds: set[str] = set()
        while len(made) < 6:
            rows = await client.sql("SHOW SNAPSHOTS")
            made |= {row[1] for row in rows if row[4] is not None}
            kinds |= {row[2] for row in rows if row[4] is not None}
            assert {row[0] for row in rows} <= {"scheduled"}
            await asyncio.sleep(0.01)
        assert kinds == {"base", "increment"}

    run(tmp_path, scenario, members=2, snapshot_every=0.05, snapshot_keep=1000.0)
