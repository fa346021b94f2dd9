"""The archive of logs: moments that no cut of a snapshot reaches."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import logged
import pytest
from logged import Scenario
from tests.member.conftest import TestClient, TestCluster

from remuda.errors import InputError, ResourceError
from remuda.member.snapshots import schedule as snapshot_schedule
from remuda.storage.format.manifest import Manifest, MemberLog
from remuda.storage.snapshot import archive as archives


@pytest.fixture(autouse=True)
def no_base_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the members: it would close gaps that are looked for here."""
    monkeypatch.setattr(snapshot_schedule, "LOOK_EVERY", 3600.0)


def run(place: Path, scenario: Scenario, members: int = 2, **settings: Any) -> None:
    archive = {"log_archive": str(place / "archive"), "log_archive_every": 3600.0}
    logged.run(place, scenario, members, **archive, **settings)


async def turn(cluster: TestCluster) -> None:
    """Every log is closed now, and in the archive."""
    for member in cluster.members:
        member.snapshots.archive._idle = 1000
        await member.snapshots.archive.turn()


async def instant() -> datetime:
    """Between what was before and what comes."""
    await asyncio.sleep(0.002)
    found = datetime.now(UTC)
    await asyncio.sleep(0.002)
    return found


async def at(client: TestClient, moment: datetime, prefix: str) -> list[Any]:
    await client.sql(f"RESTORE SNAPSHOT s TO '{moment.isoformat()}' PREFIX '{prefix}_'")
    return await client.sql(f"SELECT k, v FROM {prefix}_m ORDER BY k")


def test_moments_behind_the_last_cut_and_between_bases(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE TABLE r (k INTEGER PRIMARY KEY, v TEXT) REPLICATED")
        await client.sql("INSERT INTO m SELECT n, 'old' FROM generate_series(1, 50) AS g (n)")
        await client.sql("INSERT INTO r VALUES (1, 'a')")
        await client.sql("CREATE SNAPSHOT s")
        await client.sql("UPDATE m SET v = 'new' WHERE k <= 10")
        await client.sql("UPDATE r SET v = 'b'")
        schema = await client.schema("m")
        await client.put(schema, (11, "put"))
        first = await instant()
        await client.sql("DELETE FROM m WHERE k > 5")
        second = await instant()
        await client.sql("CREATE SNAPSHOT s INCREMENT")
        await client.sql("INSERT INTO m VALUES (100, 'later')")
        third = await instant()
        await turn(cluster)
        await client.sql("CREATE SNAPSHOT s")  # a base that knows nothing of what was before
        await client.sql("TRUNCATE TABLE m")
        fourth = await instant()
        await client.sql("INSERT INTO m VALUES (1, 'end')")
        with pytest.raises(InputError, match="does not reach"):
            await at(client, fourth, "too_early")
        await turn(cluster)
        changed = [(k, "new") for k in range(1, 11)]
        assert await at(client, first, "a") == (
            [*changed, (11, "put"), *((k, "old") for k in range(12, 51))]
        )
        assert await client.sql("SELECT v FROM a_r") == [("b",)]
        assert await at(client, second, "b") == changed[:5]
        assert await at(client, third, "c") == [*changed[:5], (100, "later")]
        assert await at(client, fourth, "d") == []
        dry = f"RESTORE SNAPSHOT s TO '{third.isoformat()}' PREFIX 'x_' DRY RUN"
        assert len(await client.sql(dry)) == 2
        [(begun, ended)] = await client.sql("SELECT first, last FROM sys.restorable")
        assert begun < first
        assert ended > fourth
        [(archived, size, failures)] = await client.sql(
            "SELECT archived, archived_bytes, archive_failures FROM sys.logs WHERE member = 1"
        )
        assert archived > 0
        assert size > 0
        assert failures == 0

    run(tmp_path, scenario)


def test_the_catalog_is_that_of_the_moment(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("INSERT INTO m VALUES (1, 'a')")
        await client.sql("CREATE SNAPSHOT s")
        await client.sql("CREATE TABLE late (k INTEGER PRIMARY KEY, v TEXT) REPLICATED")
        await client.sql("INSERT INTO late VALUES (7, 'x')")
        await client.sql("ALTER TABLE m ADD COLUMN w INTEGER DEFAULT 3")
        await client.sql("INSERT INTO m VALUES (2, 'b', 4)")
        before = await instant()
        await client.sql("DROP TABLE m")
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        after = await instant()
        await turn(cluster)
        assert await at(client, before, "a") == [(1, "a"), (2, "b")]
        assert await client.sql("SELECT w FROM a_m ORDER BY k") == [(3,), (4,)]
        assert await client.sql("SELECT k FROM a_late") == [(7,)]
        assert await at(client, after, "b") == []

    run(tmp_path, scenario)


def test_a_view_is_a_gap_until_the_next_base(tmp_path: Path) -> None:
    moments: list[datetime] = []

    async def first(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE SNAPSHOT s")
        await client.sql("INSERT INTO m VALUES (1, 'a')")
        moments.append(await instant())
        await turn(cluster)

    async def again(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("INSERT INTO m VALUES (2, 'b')")
        moments.append(await instant())
        await turn(cluster)
        with pytest.raises(InputError, match="does not reach"):
            await at(client, moments[1], "x")
        await client.sql("INSERT INTO m VALUES (3, 'c')")
        while True:  # views follow while backups are made
            await client.sql("CREATE SNAPSHOT s")
            moment = await instant()
            await turn(cluster)
            ranges = await client.sql("SELECT first, last FROM sys.restorable ORDER BY first")
            if any(first <= moment <= last for first, last in ranges):
                break
        moments.append(moment)
        assert ranges[0][1] < moments[1] < ranges[1][0]
        assert await at(client, moments[0], "a") == [(1, "a")]
        assert await at(client, moments[2], "c") == [(1, "a"), (2, "b"), (3, "c")]

    run(tmp_path, first)
    run(tmp_path, again)


def test_no_moment_has_half_a_transfer(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v INTEGER)")
        await client.sql("INSERT INTO m SELECT n, 100 FROM generate_series(1, 20) AS g (n)")
        await client.sql("CREATE SNAPSHOT s")
        over, moved = False, 0

        async def move(first: int) -> None:
            nonlocal moved
            mover = await cluster.client(1)
            while not over:
                await mover.sql(
                    "UPDATE m SET v = v + CASE k WHEN ? THEN 1 ELSE -1 END WHERE k IN (?, ?)",
                    first, first, first % 20 + 1,
                )  # fmt: skip
                moved += 1

        movers = [asyncio.ensure_future(move(first)) for first in (1, 5, 9)]
        moments = []
        for number in range(1, 4):
            while moved < 10 * number:
                await asyncio.sleep(0.001)
            moments.append((moved, datetime.now(UTC)))
            await turn(cluster)
        over = True
        await asyncio.gather(*movers)
        for number, (least, moment) in enumerate(moments):
            rows = dict(await at(client, moment, f"p{number}"))
            assert sum(rows.values()) == 2000
            assert sum(rows[first] - 100 for first in (1, 5, 9)) >= least

    run(tmp_path, scenario, backups=1)


def test_checkpoints_wait_for_the_archive(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE SNAPSHOT s")
        [member] = cluster.members
        for number in range(4):
            await client.sql(f"INSERT INTO m VALUES ({number}, 'x')")
            await member.recovery.checkpoints.take()
        moment = await instant()
        (tmp_path / "archive").write_text("no folder can be made here")
        with pytest.raises(ResourceError):
            await turn(cluster)
        assert len(list((tmp_path / "member0").rglob("*.segment"))) > 4
        (tmp_path / "archive").unlink()
        await turn(cluster)
        await client.sql("CREATE SNAPSHOT other")  # no increment needs what was before
        await member.recovery.checkpoints.take()
        assert len(list((tmp_path / "member0").rglob("*.segment"))) < 4
        assert await at(client, moment, "a") == [(k, "x") for k in range(4)]
        await member.snapshots.archive._offload.result(member.snapshots.archive._retire)
        assert await at(client, moment, "b") == [(k, "x") for k in range(4)]

    run(tmp_path, scenario, members=1)


def test_damage_in_the_archive_is_an_error_or_a_gap(tmp_path: Path) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE SNAPSHOT s")
        await client.sql("INSERT INTO m VALUES (1, 'a')")
        moment = await instant()
        await turn(cluster)
        for segment in (tmp_path / "archive").rglob("*.segment"):
            data = bytearray(segment.read_bytes())
            data[len(data) // 2] ^= 1
            segment.write_bytes(data)
        with pytest.raises(Exception, match="is damaged"):
            await at(client, moment, "a")
        for note in (tmp_path / "archive").rglob("*.note"):
            note.write_bytes(note.read_bytes()[:-9])
        with pytest.raises(InputError, match="does not reach"):
            await at(client, moment, "a")
        await turn(cluster)
        with pytest.raises(InputError, match="does not reach"):
            await at(client, moment, "a")

    run(tmp_path, scenario, members=1)


def segment(number: int, first: int, last: int, **given: Any) -> archives.ArchivedSegment:
    made = {"cluster": "c", "identity": "a", "generation": 1, "member": 1, "size": 10, "view": 1}
    made |= {"sha256": "", "closed": 0, "finish": 0, "archived": number}
    return archives.ArchivedSegment(**(made | {"number": number, "first": first, "last": last}
                                       | given))  # fmt: skip


def test_the_oldest_of_each_log_go_first() -> None:
    found = [segment(n, 10 * n, 10 * n + 9) for n in range(1, 6)]
    found += [segment(n, 10 * n, 10 * n + 9, identity="b", size=100) for n in range(1, 4)]

    def gone(**given: int) -> list[tuple[str, int]]:
        chosen = archives.expired(found, [], **{"before": 0, "size": 0, **given})
        return sorted((each.identity, each.number) for each in chosen)

    assert gone() == []
    assert gone(before=3) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    log = MemberLog(1, "a", (), 0, 0, needs=35)
    cut = Manifest("s", 1, 0, 0, "c", 1, "", (log,))
    covered = archives.expired(found, [cut], before=0, size=0)
    assert [(each.identity, each.number) for each in covered] == [("a", 1), ("a", 2)]
    assert gone(size=40) == [("a", 1), ("b", 1), ("b", 2), ("b", 3)]
