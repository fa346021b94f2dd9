"""Chains of increments across restarts of the whole cluster and changes of its members: what cannot
be an increment is a base by itself, and every cut can be restored, before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from logged import asked, late_member, logged_cluster
from tests.member.conftest import TestClient

from remuda.cluster import movement
from remuda.member.member import Member
from remuda.member.snapshots import schedule as snapshot_schedule
from remuda.world import system_world

ALL = "SELECT k, v FROM {}m ORDER BY k"


class Chain:
    """Cuts of a map, and what was in it then."""

    def __init__(self) -> None:
        self.states: dict[int, list[Any]] = {}
        self.kinds: list[str] = []
        self.restored = 0

    async def cut(self, client: TestClient) -> None:
        [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
        self.kinds.append(row[2])
        assert row[1] not in self.states
        self.states[row[1]] = await client.sql(ALL.format(""))

    async def look(self, client: TestClient) -> None:
        """All cuts are whole, whoever restores them."""
        assert await client.sql("VERIFY SNAPSHOT s LEVEL 3") == []
        for number, state in self.states.items():
            self.restored += 1
            prefix = f"r{self.restored}_"
            await client.sql(f"RESTORE SNAPSHOT s CUT {number} PREFIX '{prefix}'")
            assert await client.sql(ALL.format(prefix)) == state
            await client.sql(f"DROP TABLE {prefix}m")


async def put(client: TestClient, *keys: int) -> None:
    rows = ", ".join(f"({key}, 'of {key}')" for key in keys)
    await client.sql(f"INSERT INTO m VALUES {rows} ON CONFLICT (k) DO UPDATE SET v = excluded.v")


async def at_rest(members: Sequence[Member], copies: int = 2) -> None:
    """All copies are where they are to be: a move between two cuts makes the second a base."""
    while True:
        views = [each.core.view for each in members]
        if (
            len({view.number for view in views}) == 1
            and len(views[0].members) == len(members)
            and not any(each.giving.gauges()["copies_outgoing"] for each in members)
            and movement.progress(views[0], copies)["partitions_to_place"] == 0
        ):
            return
        await asyncio.sleep(0.01)


def test_increments_go_on_after_a_restart(tmp_path: Path) -> None:
    """The first cut of a cluster that has started again is a base; the ones before it stay."""
    folders = [tmp_path / "a", tmp_path / "b"]
    settings = {"snapshot_store": str(tmp_path / "store"), "log_sync": "os", "backups": 1}
    chain = Chain()

    async def life(number: int) -> None:
        async with logged_cluster(folders, **settings) as cluster:
            client = await cluster.client(1 + number % 2)
            if not number:
                await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
            await at_rest(cluster.members)
            for turn in range(2):
                await put(client, *range(10 * number + turn, 10 * number + 20))
                await client.sql(f"DELETE FROM m WHERE k = {10 * number}")
                await chain.cut(client)
            await chain.look(client)

    for number in range(2):
        asyncio.run(life(number))
    assert chain.kinds == ["base", "increment"] * 2


def test_increments_go_on_after_a_change_of_the_members(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    settings = {"snapshot_store": str(tmp_path / "store"), "log_sync": "os", "backups": 1}
    chain = Chain()

    async def main() -> None:
        async with logged_cluster(folders, **settings) as cluster:
            client = await cluster.client(1)
            await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")

            async def both() -> None:
                await put(client, *range(len(chain.states), 30))
                await chain.cut(client)
                await client.sql(f"DELETE FROM m WHERE k = {len(chain.states)}")
                await chain.cut(client)

            await both()
            third = tmp_path / "c"
            async with late_member(cluster, third, system_world(), **settings) as member:
                await at_rest([*cluster.members, member])
                await both()
                await member.leave()
            await at_rest(cluster.members)
            async with late_member(cluster, third, system_world(), **settings) as member:
                await at_rest([*cluster.members, member])
                await both()  # its new log begins with segment 1, as the one before did
                await chain.look(client)

    asyncio.run(main())
    assert chain.kinds == ["base", "increment"] * 3


def test_a_change_of_the_members_makes_a_base_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where moments are promised: behind it, increments go on."""
    monkeypatch.setattr(snapshot_schedule, "LOOK_EVERY", 0.05)
    folders = [tmp_path / "a", tmp_path / "b"]
    settings: dict[str, Any] = {
        "snapshot_store": str(tmp_path / "store"),
        "log_archive": str(tmp_path / "archive"),
        "log_sync": "os",
        "backups": 1,
    }

    async def main() -> None:
        async with logged_cluster(folders, **settings) as cluster:
            client = await cluster.client(1)
            await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
            await at_rest(cluster.members)

            async def base_by_itself(known: int) -> int:
                while True:
                    cuts = await asked(client, "SHOW SNAPSHOTS")
                    finished = [cut for cut in cuts if cut[3] is not None]
                    if len(finished) > known:
                        assert finished[-1][2] == "base"
                        return len(finished)
                    await asyncio.sleep(0.01)

            [made] = await client.sql("CREATE SNAPSHOT s INCREMENT")
            assert made[2] == "base"
            assert made[-1] == "it is the first cut"
            third = tmp_path / "c"
            async with late_member(cluster, third, system_world(), **settings) as member:
                cuts = await base_by_itself(1)
                await at_rest([*cluster.members, member])
                await member.leave()
            await at_rest(cluster.members)
            await base_by_itself(cuts)

    asyncio.run(main())


def test_a_base_instead_of_an_increment_says_why(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    settings = {"snapshot_store": str(tmp_path / "store"), "log_sync": "os"}

    async def main() -> None:
        async with logged_cluster(folders, **settings) as cluster:
            client = await cluster.client(1)
            await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
            await at_rest(cluster.members)
            [made] = await client.sql("CREATE SNAPSHOT s")
            assert made[-1] is None
            [made] = await client.sql("CREATE SNAPSHOT s INCREMENT")
            assert (made[2], made[-1]) == ("increment", None)
            await client.sql("ALTER TABLE m ADD COLUMN w INTEGER")
            [made] = await client.sql("CREATE SNAPSHOT s INCREMENT")
            assert made[2] == "base"
            assert made[-1].startswith('map "m" was altered since cut 2; moments between cut 2')
            third = tmp_path / "c"
            async with late_member(cluster, third, system_world(), **settings) as member:
                await at_rest([*cluster.members, member])
                [made] = await client.sql("CREATE SNAPSHOT s INCREMENT")
                assert made[-1].startswith("members have come or gone, or partitions have moved")
                gap = "SELECT count(*) FROM sys.restorable"
                assert await client.sql(gap) == [(3,)]

    asyncio.run(main())
