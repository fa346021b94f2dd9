"""Cached plans: how often a statement is planned while rows are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remuda.member import plans

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
    planned: list[object] = []
    original = plans.planned

    def counted(*arguments: Any) -> Any:
        planned.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(plans, "planned", counted)

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
