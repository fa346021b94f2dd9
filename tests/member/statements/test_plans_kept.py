"""Cached plans: how often a statement is planned while rows are written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.member.statements import plans

TOGETHER = "SELECT count(*) FROM a JOIN b ON a.id = b.id WHERE a.v > ?"
InCluster = Callable[..., None]
JOIN = "SELECT count(*) FROM a JOIN b ON a.id = b.id"
RECURSIVE = (
    "WITH RECURSIVE t(n) AS (SELECT 1::bigint UNION ALL SELECT a.id FROM t JOIN a "
    "ON a.id = t.n + 1 WHERE n < 4) SELECT count(*) FROM t"
)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("text", [JOIN, RECURSIVE])
def test_a_plan_is_made_anew_once_when_its_maps_have_grown_and_never_for_others(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, members: int, text: str
) -> None:
    planned = _counted(monkeypatch)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()

        async def times() -> list[int]:
            counts = []
            for _ in range(3):
                planned.clear()
                await client.sql(text)
                counts.append(len(planned))
            return counts

        async def insert(table: str, first: int, last: int) -> None:
            await client.sql(
                f"INSERT INTO {table} SELECT g, g FROM generate_series({first}, {last}) g"
            )

        for table in "abx":
            await client.sql(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, v BIGINT)")
            await insert(table, 1, 1000)
        assert await times() == [1, 0, 0]
        await insert("x", 1001, 9000)  # a map that it does not read
        await client.sql("SELECT count(*) FROM x WHERE v > 3")
        assert await times() == [0, 0, 0]
        await insert("a", 1001, 1010)  # not worth another plan
        assert await times() == [0, 0, 0]
        await insert("a", 1011, 9000)
        assert await times() == [1, 0, 0]
        await client.sql("ANALYZE a")
        assert await times() == [1, 0, 0]

    in_cluster(scenario, members)


@pytest.mark.parametrize("members", [1, 3])
def test_clients_that_ask_at_once_after_inserts_share_one_plan(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, members: int
) -> None:
    planned = _counted(monkeypatch)

    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client() for _ in range(5)]

        async def times() -> int:
            planned.clear()
            for _ in range(2):
                await asyncio.gather(*(client.sql(TOGETHER, 3) for client in clients))
            return len(planned)

        for table in "ab":
            await clients[0].sql(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, v BIGINT)")
        for number in range(1, 5):
            for table in "ab":
                await clients[0].sql(
                    f"INSERT INTO {table} SELECT g, g FROM generate_series({number * 1000}, "
                    f"{number * 1000 + 999}) g"
                )
            assert await times() == 1
            assert await times() == 0

    in_cluster(scenario, members)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What has been planned since it was cleared."""
    planned: list[object] = []
    original = plans.planned

    def counted(*arguments: Any) -> Any:
        planned.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(plans, "planned", counted)
    return planned
