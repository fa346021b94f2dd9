"""Only members that own a key take part in a query by keys, whenever the keys become known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from remuda.member.state.routing import Router
from remuda.member.statements import initiated_queries as runs

KEYS = [4, 5, 7, 1000]


def participants(cluster: Any, keys: Iterable[tuple[Any, ...]], name: str) -> set[int]:
    core = cluster.members[0].core
    schema = next(s for s in core.catalog.maps if s.name == name)
    router = Router(schema)
    return {core.view.owners[router.partition(key)] for key in keys}


QUERIES: list[tuple[str, list[Any], str, list[tuple[Any, ...]]]] = [
    ("SELECT count(*) FROM t WHERE k = ?", [5], "t", [(5,)]),
    ("SELECT count(*) FROM t WHERE k = ? + 1", [5], "t", [(6,)]),
    ("SELECT count(*) FROM t WHERE k IN (?, ?)", [4, 5], "t", [(4,), (5,)]),
    ("SELECT count(*) FROM t WHERE k = ANY(?)", [KEYS], "t", [(k,) for k in KEYS]),
    ("SELECT count(*) FROM t WHERE k = ANY(?)", [[4, None, 2**40]], "t", [(4,)]),
    ("SELECT count(*) FROM t WHERE k = ? AND v > 1 OR k = ? AND v < 3", [4, 5], "t", [(4,), (5,)]),
    ("SELECT count(*) FROM c WHERE (a, b) IN ((?, 2), (3, ?))", [1, 4], "c", [(1, 2), (3, 4)]),
    ("SELECT count(*) FROM c WHERE a IN (1, 2) AND b = ?", [3], "c", [(1, 3), (2, 3)]),
    ("SELECT count(*) FROM p WHERE a = ANY(?) AND b > 0", [[1, 2]], "p", [(1,), (2,)]),
    ("SELECT sum(t.v) FROM t JOIN (VALUES (1), (2)) x (k) ON t.k = x.k", [], "t", [(1,), (2,)]),
    ("SELECT sum(t.v) FROM t JOIN (SELECT ?::int AS k) x ON t.k = x.k", [9], "t", [(9,)]),
    ("SELECT v FROM t WHERE k = ? UNION ALL SELECT v FROM t WHERE k = 6", [8], "t", [(8,), (6,)]),
    ("SELECT sum(p.v + t.v) FROM p JOIN t ON p.a = t.k WHERE t.k = ?", [3], "t", [(3,)]),
]


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The members of each query but the initiator's share of it."""
    found: list[set[int]] = []
    place = runs.place

    def noted(plan: Any, *arguments: Any) -> Any:
        placed = place(plan, *arguments)
        found.append({m for f, members in placed.sites.items() if f for m in members})
        return placed

    monkeypatch.setattr(runs, "place", noted)
    return found


def test_participants(in_cluster: Any, places: list[set[int]]) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        for text in (
            "CREATE TABLE t (k INT PRIMARY KEY, v INT)",
            "CREATE TABLE c (a INT, b INT, v INT, PRIMARY KEY (a, b))",
            "CREATE TABLE p (a INT, b INT, v INT, PRIMARY KEY (a, b)) WITH (partition_by = 'a')",
        ):
            await client.sql(text)
        await client.sql("INSERT INTO t SELECT i, i FROM generate_series(1, 2000) g (i)")
        for name in "cp":
            await client.sql(
                f"INSERT INTO {name} SELECT i, i + 1, i FROM generate_series(1, 2000) g (i)"
            )
        for text, parameters, name, keys in QUERIES:
            places.clear()
            rows = await client.sql(text, *parameters)
            want = participants(cluster, keys, name)
            assert places[-1] == want, text
            # The same rows as without pruning.
            hidden = text.replace(" k = ", " k + 0 = ").replace(" a = ", " a + 0 = ")
            assert sorted(await client.sql(hidden, *parameters)) == sorted(rows), text
            lines = [line for (line,) in await client.sql("EXPLAIN " + text, *parameters)]
            assert any("owning" in line for line in lines), text

    in_cluster(scenario)


def test_so_many_keys_that_everybody_takes_part(in_cluster: Any, places: list[set[int]]) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        await client.sql("INSERT INTO t SELECT i, i FROM generate_series(1, 5000) g (i)")
        text = "SELECT count(*), sum(v) FROM t WHERE k = ANY(?)"
        for keys in ([], [None], list(range(3000)), [7] * 2000):
            known = {k for k in keys if k}
            want = [(len(known), sum(known) if known else None)]
            assert await client.sql(text, keys) == want
        assert places[-2] == {1, 2, 3}
        # As a read of single keys, too.
        assert len(await client.sql("SELECT v FROM t WHERE k = ANY(?)", list(range(3000)))) == 2999
        assert await client.sql("SELECT v FROM t WHERE k = ANY(?)", [3, 3, None]) == [(3,)]

    in_cluster(scenario)
