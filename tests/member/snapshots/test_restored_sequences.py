"""Sequences in snapshots: a restore goes on behind all numbers that were given out before it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.member.conftest import TestClient, TestCluster, cluster_of
from tests.member.snapshots.test_snapshots import run

from remuda.errors import NumberNotDefined, UniqueViolation


async def numbers(client: TestClient, text: str) -> list[int]:
    return [row[0] for row in await client.sql(text)]


def test_a_restore_into_another_cluster_repeats_no_number(tmp_path: Path) -> None:
    """Neither those of a block that a member keeps, nor those of other forms of columns."""
    given: dict[str, list[int]] = {"s": [], "down": [], "t": [], "i": []}
    takes = {
        "s": "SELECT nextval('s') FROM generate_series(1, 3)",
        "down": "SELECT -nextval('down')",
        "t": "INSERT INTO t (v) VALUES (1), (2) RETURNING id",
        "i": "INSERT INTO shop.i (v) VALUES (1) RETURNING id",
    }

    async def make(client: TestClient, cluster: TestCluster) -> None:
        for text in (
            "CREATE SEQUENCE s CACHE 10",
            "CREATE SEQUENCE down INCREMENT -1",
            "CREATE SEQUENCE fresh START 7",
            "CREATE SCHEMA shop",
            "CREATE TABLE t (id SERIAL PRIMARY KEY, v INT)",
            "CREATE TABLE shop.i (id BIGINT GENERATED ALWAYS AS IDENTITY (START 5), v INT)",
            "SELECT setval('s', 1000)",
        ):
            await client.sql(text)
        other = await cluster.client(1)
        for who in (client, other, client):
            for name, text in takes.items():
                given[name] += await numbers(who, text)
        await client.sql("CREATE SNAPSHOT one")
        for name, text in takes.items():
            given[name] += await numbers(other, text)
        await client.sql("CREATE SNAPSHOT one")

    async def look(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("RESTORE SNAPSHOT one")
        for name in ("s", "t_id_seq"):
            with pytest.raises(NumberNotDefined):
                await client.sql(f"SELECT currval('{name}')")
        for name, text in takes.items():
            found = await numbers(client, text)
            assert min(found) > max(given[name])
        assert await numbers(client, "SELECT nextval('fresh')") == [7]
        assert await client.sql(
            "SELECT pg_get_serial_sequence('t', 'id'), pg_get_serial_sequence('shop.i', 'id')"
        ) == [("public.t_id_seq", "shop.i_id_seq")]
        await client.sql("DROP TABLE t")
        assert await client.sql("SELECT to_regclass('t_id_seq')") == [(None,)]

    run(tmp_path, make, members=3)
    run(tmp_path, look, members=1)


def test_a_restore_beside_the_map_has_a_sequence_of_its_own(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE t (id SERIAL PRIMARY KEY, v INT)")
        await client.sql("INSERT INTO t (v) VALUES (1), (2)")
        await client.sql("CREATE SNAPSHOT one")
        await client.sql("INSERT INTO t (v) VALUES (3)")
        await client.sql("RESTORE SNAPSHOT one MAPS t AS copy")
        take = "INSERT INTO {} (v) VALUES (9) RETURNING id"
        assert await numbers(client, take.format("copy")) == [3]
        assert await numbers(client, take.format("t")) == [4]
        await client.sql("SELECT setval(pg_get_serial_sequence('copy', 'id'), 1, false)")
        with pytest.raises(UniqueViolation):
            await client.sql(take.format("copy"))
        assert await numbers(client, take.format("t")) == [5]
        await client.sql("DROP TABLE t")
        assert await numbers(client, "SELECT nextval(pg_get_serial_sequence('copy', 'id'))") == [2]

    run(tmp_path, scenario)


def test_a_restore_while_numbers_are_taken_repeats_none(tmp_path: Path) -> None:
    """The cut has a state behind every number that was answered before it began."""

    async def scenario() -> None:
        async with cluster_of(3, snapshot_store=str(tmp_path)) as cluster:
            clients = [await cluster.client(number) for number in (1, 2, 3)]
            await clients[0].sql("CREATE SEQUENCE s CACHE 5")
            before: list[int] = []
            made = asyncio.Event()

            async def take(client: TestClient) -> None:
                while not made.is_set():
                    before.extend(await numbers(client, "SELECT nextval('s')"))

            taking = [asyncio.ensure_future(take(client)) for client in clients[1:]]
            while len(before) < 10:
                await asyncio.sleep(0)
            least = max(before)
            await clients[0].sql("CREATE SNAPSHOT one")
            made.set()
            await asyncio.gather(*taking)
            await clients[0].sql("RESTORE SNAPSHOT one MAPS s AS again")
            assert min(await numbers(clients[0], "SELECT nextval('again')")) > least
            await cluster.idle()

    asyncio.run(scenario())
