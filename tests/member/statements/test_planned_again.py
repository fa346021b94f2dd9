"""Queries that meet a map that was altered or dropped before they gave a row are planned anew; and
statements that read what they change are atomic."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from remuda.errors import (
    DivisionByZero,
    MemberLeaving,
    NoLease,
    RemudaError,
    SchemaChanged,
    UndefinedMap,
    ViewChanged,
)
from remuda.member.sessions import replanning as planned_again

ALTERED = SchemaChanged('map "m" was altered meanwhile')
ROWS = [(1, 10), (2, 20), (3, 30)]


async def make(client: Any) -> None:
    await client.sql("CREATE TABLE m (a INTEGER PRIMARY KEY, b INTEGER)")
    await client.sql("INSERT INTO m VALUES (1, 10), (2, 20), (3, 30)")


def failing(member: Any, times: int, error: RemudaError = ALTERED) -> list[object]:
    """The first ``times`` queries of the member fail as if a map had been altered, or with another
    ``error``; the list counts all that begin."""
    queries = member.statements._queries
    begin, begun = queries.begin, []

    def begins(query: object, start: Any, ended: Any, *rest: Any) -> object:
        begun.append(query)
        if len(begun) > times:
            return begin(query, start, ended, *rest)
        return ended(error)

    queries.begin = begins
    return begun


def test_a_query_is_run_again_as_long_as_it_has_told_nothing(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await make(client)
        begun = failing(cluster.member(1), 3)
        assert sorted(await client.sql("SELECT a, b FROM m WHERE b > 5")) == ROWS
        assert len(begun) == 4
        assert len(set(begun)) == 4
        await cluster.idle()

    in_cluster(scenario, members=2)


@pytest.mark.parametrize("error", [NoLease("it is not heard"), ViewChanged("in view 7")])
def test_statements_of_clients_that_do_not_retry_wait_longer(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch, error: RemudaError
) -> None:
    """Remuda's clients ask another member; a driver of PostgreSQL only fails."""
    monkeypatch.setattr(planned_again, "PATIENCE", 0.0)
    monkeypatch.setattr(planned_again, "UNAIDED_PATIENCE", 100.0)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await make(client)
        host, port = cluster.member(1).postgres.address.split(":")
        door = await psycopg.AsyncConnection.connect(
            host=host, port=port, user="bob", autocommit=True
        )
        begun = failing(cluster.member(1), 4, error)
        found = await door.execute("SELECT a, b FROM m WHERE b > 5 ORDER BY a")
        assert await found.fetchall() == ROWS
        assert len(begun) == 5
        failing(cluster.member(1), 100, MemberLeaving("member 1 is leaving"))
        with pytest.raises(psycopg.OperationalError, match="is leaving"):
            await door.execute("SELECT a, b FROM m WHERE b > 5 ORDER BY a")
        await door.close()
        await cluster.idle()

    in_cluster(scenario, members=2)


def test_attempts_are_bounded_and_the_error_names_the_map(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_again, "PATIENCE", 0.05)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await make(client)
        begun = failing(cluster.member(1), 10_000)
        with pytest.raises(SchemaChanged, match='map "m" was altered'):
            await client.sql("SELECT a, b FROM m WHERE b > 5")
        assert 1 < len(begun) < 10  # pauses of 2, 8, 18 and 32 ms at least
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_changed_maps_are_named_also_after_they_were_dropped(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await make(client)
        core = cluster.member(1).core
        schema = core.catalog.get("m")
        await client.sql("ALTER TABLE m ADD COLUMN c INTEGER")
        with pytest.raises(SchemaChanged, match='map "m" was altered meanwhile') as altered:
            core.store(schema.map_id, schema.version)
        assert altered.value.hint
        await client.sql("DROP TABLE m")
        with pytest.raises(SchemaChanged, match='map "m" was dropped meanwhile'):
            core.readable(schema.map_id, schema.version)
        with pytest.raises(UndefinedMap):
            await client.sql("SELECT * FROM m")

    in_cluster(scenario, members=1)


def test_maps_that_change_all_the_time_disturb_no_reader(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_again, "PATIENCE", 100.0)  # where others keep the machine busy

    async def scenario(cluster: Any) -> None:
        writer, reader = await cluster.client(1), await cluster.client(2)
        await make(writer)
        done = asyncio.Event()
        asked = 0

        async def alter() -> None:
            for number in range(12):
                before = asked  # on a busy machine all of them might meet one statement
                while asked == before:
                    await asyncio.sleep(0)
                await writer.sql(f"ALTER TABLE m ADD COLUMN c{number} INTEGER DEFAULT {number}")
                await writer.sql(f"ALTER TABLE m DROP COLUMN c{number}")
            done.set()

        changing = asyncio.ensure_future(alter())
        while not done.is_set():
            asked += 1
            found = await reader.sql("SELECT x.a, y.b FROM m x JOIN m y ON x.a = y.a")
            assert sorted(found) == ROWS
        await changing
        await cluster.idle()

    in_cluster(scenario, members=3)


def test_a_plan_that_a_change_of_its_map_has_overtaken_is_not_kept(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(1), await cluster.client(1)
        await make(client)
        statistics = cluster.member(1).statements._plans._statistics
        refresh = statistics.refresh
        changes = ["ALTER TABLE m ADD COLUMN c INTEGER"]

        async def overtaken(maps: Any) -> None:
            await refresh(maps)
            if changes:
                await other.sql(changes.pop())

        monkeypatch.setattr(statistics, "refresh", overtaken)
        assert sorted(await client.sql("SELECT a, b FROM m WHERE b > 5")) == ROWS
        assert not changes
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_a_change_whose_answer_fails_changes_nothing(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await make(client)
        with pytest.raises(DivisionByZero):
            await client.sql(
                "WITH x AS (DELETE FROM m RETURNING a, b) SELECT 1 / (b - 20) FROM x ORDER BY a"
            )
        assert sorted(await client.sql("SELECT * FROM m")) == ROWS
        gone = await client.sql(
            "WITH x AS (DELETE FROM m WHERE b > 10 RETURNING a) "
            "SELECT m.a, x.a FROM m LEFT JOIN x ON x.a = m.a ORDER BY 1"
        )
        assert gone == [(1, None), (2, 2), (3, 3)]  # the query reads what was there before
        assert await client.sql("SELECT * FROM m") == [(1, 10)]
        await cluster.idle()

    in_cluster(scenario, members=3)
