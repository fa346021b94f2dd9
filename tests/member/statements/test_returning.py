"""Members that leave in order, and return with the folder that they had: they need only what has
changed. Whatever happened meanwhile, a copy that was made of a former one is a whole copy."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logged import asked, late_member, logged_cluster, memory_disk, on_disk
from tests.member.conftest import TestCluster

from remuda.member.copies import differences as copy_differences
from remuda.member.member import Member
from remuda.member.membership.former_copies import Comparison, FormerCopies
from remuda.storage.maps.map_store import MapStore

ROWS = 2000
WIDE = "x" * 200
SETTINGS = {"backups": 1, "return_within": 60.0, "log_sync": "os"}
FOLDERS = [Path(f"/{name}") for name in "abc"]


def versions(store: MapStore | None, partition: int) -> list[tuple[Any, ...]]:
    """What lives for now, with begins and ends."""
    found: list[tuple[Any, ...]] = []
    if store is not None:
        for each in store.extraction(frozenset({partition})).versions():
            rows = [tuple(row.values()) for row in each.batch.to_pylist()]
            found += zip(each.begins.tolist(), each.ends.tolist(), rows, strict=True)
    return sorted(found, key=repr)


def require_equal_copies(members: list[Member], name: str) -> None:
    """All copies of each partition have the versions that readers may still see."""
    by_number = {member.core.number: member.core for member in members}
    view = members[0].core.view
    map_id = members[0].core.catalog.get(name).map_id
    for partition, (primary, *backups) in enumerate(view.replicas):
        mine = versions(by_number[primary].stores[map_id], partition)
        for backup in backups:
            theirs = versions(by_number[backup].backup_stores.get(map_id), partition)
            floor = max(by_number[primary].stores[map_id].floor, 0)
            seen = [[v for v in copy if v[1] > floor] for copy in (mine, theirs)]
            assert seen[0] == seen[1], f"partition {partition} on members {primary}, {backup}"


async def leave(cluster: TestCluster, place: int) -> list[Member]:
    """The member leaves in order. Those that stay."""
    member = cluster.members.pop(place)
    await member.leave()
    await member.stop()
    return cluster.members


async def complete(members: list[Member]) -> None:
    """Every partition is where it belongs, and all members know it and have its rows in place."""

    def placed() -> bool:
        cores = [member.core for member in members]
        return (
            len({core.view.number for core in cores}) == 1
            and all(core.ready and not any(core.unmoved.values()) for core in cores)
            and not members[0].giving.progress()["partitions_to_place"]
        )

    async with asyncio.timeout(30):
        while not placed():
            await asyncio.sleep(0.02)


def moved(members: list[Member]) -> int:
    return sum(member.giving.moved_bytes for member in members)


async def filled(cluster: TestCluster) -> Any:
    client = await cluster.client(1)
    await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, s VARCHAR)")
    rows = f"SELECT i, i, '{WIDE}' || i FROM generate_series(0, {ROWS - 1}) AS g(i)"
    await client.sql(f"INSERT INTO t {rows}")
    return client


async def changed(client: Any, number: int) -> None:
    """Rows that change, go, and come while a member is away."""
    third = number // 3
    await client.sql(f"UPDATE t SET n = -1 WHERE id < {third}")
    await client.sql(f"DELETE FROM t WHERE id >= {ROWS - third}")
    last = ROWS + number - 2 * third - 1
    await client.sql(
        f"INSERT INTO t SELECT i, 0, 'new' FROM generate_series({ROWS}, {last}) AS g(i)"
    )


def returned(number: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that are moved when one of three members leaves and returns, and ``number`` rows change
    meanwhile. All copies are alike at the end."""
    taken = []
    original = FormerCopies.end

    def end(self: FormerCopies, transfer: str, map_id: int) -> None:
        taken.append(transfer)
        original(self, transfer, map_id)

    monkeypatch.setattr(FormerCopies, "end", end)

    async def scenario() -> int:
        world = on_disk(memory_disk())
        async with logged_cluster(FOLDERS, world, **SETTINGS) as cluster:
            client = await filled(cluster)
            await complete(cluster.members)
            stay = await leave(cluster, 2)
            await changed(client, number)
            expected = await asked(client, "SELECT id, n, s FROM t ORDER BY id")
            before = moved(stay)
            async with late_member(cluster, FOLDERS[2], world, **SETTINGS) as member:
                members = [*stay, member]
                await complete(members)
                size = moved(members) - before
                require_equal_copies(members, "t")
                assert await asked(client, "SELECT id, n, s FROM t ORDER BY id") == expected
                held = member.core.view
                assert sum(member.core.number in row for row in held.replicas) > 100
                assert taken, "no former copy was of use"
            return size

    return asyncio.run(scenario())


def test_what_a_member_needs_is_in_proportion_to_what_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing, some, more = (returned(number, monkeypatch) for number in (0, 60, 600))
    whole = ROWS * 2 // 3 * len(WIDE)
    """Of the rows that it kept, without their other columns: this much would be moved otherwise."""
    assert nothing < whole / 50
    assert nothing < some < whole / 4
    assert more - nothing < 12 * (some - nothing)


def test_a_removal_that_was_missed_must_be_void(monkeypatch: pytest.MonkeyPatch) -> None:
    """A way to break it: all rows of the former copy are taken."""
    monkeypatch.setattr(
        Comparison, "good", lambda self: self.inventory.versions(self.void | ~self.void)
    )
    with pytest.raises(AssertionError, match="partition"):
        returned(60, monkeypatch)


def test_digests_must_show_every_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A way to break it: nothing is found to differ."""
    monkeypatch.setattr(copy_differences, "differing", lambda *_: np.empty(0, dtype=np.int64))
    with pytest.raises(AssertionError, match="partition"):
        returned(60, monkeypatch)


def test_a_copy_of_an_older_generation_is_void() -> None:
    """Its rows never were in the partition that has begun again since."""

    async def scenario() -> None:
        async with logged_cluster(FOLDERS[:1], on_disk(memory_disk()), **SETTINGS) as cluster:
            (member,) = cluster.members
            former = FormerCopies(member.core)
            former.find({}, {1: 0, 2: 0, 3: 1}, replicated=False)
            view = replace(member.core.view, generations=((2, 1), (3, 1)))
            assert former.partitions(view, range(5)) == [1, 3]

    asyncio.run(scenario())


def test_without_return_within_copies_are_made_elsewhere_before_a_leave() -> None:
    async def scenario() -> None:
        world = on_disk(memory_disk())
        settings = {**SETTINGS, "return_within": 0.0}
        async with logged_cluster(FOLDERS, world, **settings) as cluster:
            await filled(cluster)
            await complete(cluster.members)
            stay = await leave(cluster, 2)
            view = stay[0].core.view
            assert not view.away
            assert all(len(row) == 2 for row in view.replicas)

    asyncio.run(scenario())


def test_copies_of_a_member_that_stays_away_are_made_elsewhere() -> None:
    """Not before ``return_within`` is over."""

    async def scenario() -> None:
        world = on_disk(memory_disk())
        settings = {**SETTINGS, "return_within": 0.5}
        async with logged_cluster(FOLDERS, world, **settings) as cluster:
            client = await filled(cluster)
            await complete(cluster.members)
            stay = await leave(cluster, 2)
            (away,) = stay[0].core.view.away
            assert all(stay[0].core.view.replicas)
            assert len(away.partitions) > 150
            states = "SELECT DISTINCT state FROM sys.partitions ORDER BY state"
            short = [("complete",), ("short of backups",)]
            assert short[1] in await asked(client, states) or stay[0].core.timestamp() > away.until
            await complete(stay)
            assert stay[0].core.timestamp() > away.until
            assert await asked(client, states) == [short[0]]
            require_equal_copies(stay, "t")

    asyncio.run(scenario())
