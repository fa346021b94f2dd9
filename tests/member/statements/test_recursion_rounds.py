"""The rounds of a recursive query run in one fragment: what a round costs, and that it gives what
queries started one by one give."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import LimitExceeded, QueryCanceled
from remuda.execution import build
from remuda.execution.operators.hash_join import HashJoinOperator
from remuda.member.queries.queries import Queries
from remuda.member.statements import recursion

InCluster = Callable[..., None]

COUNTED = (
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {}) "
    "SELECT count(*), max(n) FROM t"
)
JOINED = (
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT t.n + v.x FROM t "
    "JOIN (VALUES (0, 1), (1, 1)) v(k, x) ON v.k = t.n % 2 WHERE n < {}) "
    "SELECT count(*), max(n) FROM t"
)
TWICE = (
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL (WITH q AS (SELECT n FROM t) "
    "SELECT a.n + 1 FROM q a JOIN q b ON a.n = b.n WHERE a.n < {})) SELECT count(*), max(n) FROM t"
)

FORMS = (
    "VALUES (1), (5), (9) UNION ALL SELECT n + 3 FROM t WHERE n < 40",
    "VALUES (1), (5), (NULL) UNION SELECT (n * 3 + 1) % 17 FROM t",
    "SELECT 1 UNION ALL SELECT n + x FROM t, (VALUES (1), (2)) v(x) WHERE n < 9",
    "SELECT 1 UNION ALL SELECT n + x FROM t JOIN generate_series(1, 3) g(x) ON x <= n WHERE n < 6",
    (
        "SELECT 1 UNION ALL SELECT n + coalesce(x, 1) FROM t LEFT JOIN (VALUES (2), (4)) v(x) "
        "ON x = n WHERE n < 12"
    ),
    (
        "SELECT 1 UNION ALL SELECT n + coalesce(x, 1) FROM t LEFT JOIN (VALUES (2), (4)) v(x) "
        "ON x < n WHERE n < 7"
    ),
    "SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n IN (VALUES (1), (2), (3))",
    "SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n NOT IN (VALUES (7), (8))",
    (
        "SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE NOT EXISTS (SELECT FROM (VALUES (6)) v(x) "
        "WHERE x < n)"
    ),
    "SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE (n = ANY (SELECT 3)) IS NOT TRUE AND n < 9",
    (
        "SELECT 1 UNION ALL (WITH q AS (SELECT n FROM t) SELECT a.n + 1 FROM q a JOIN q b "
        "ON a.n = b.n WHERE a.n < 9)"
    ),
    (
        "SELECT 1 UNION ALL (WITH q AS (SELECT n FROM t) SELECT coalesce(a.n, 0) + 1 FROM q a "
        "FULL JOIN q b ON a.n = b.n + 1 WHERE coalesce(a.n, 0) BETWEEN 1 AND 8)"
    ),
    (
        "VALUES (1), (5) UNION ALL (WITH q AS (SELECT n FROM t) SELECT n + 1 FROM q "
        "WHERE n < 20 AND n NOT IN (SELECT nullif(n, 7) * 2 FROM q))"
    ),
    "SELECT 1 UNION ALL SELECT g FROM t, generate_series(n + 1, n + 2) g WHERE n < 6",
    "SELECT 1 UNION ALL SELECT DISTINCT n + x FROM t, (VALUES (1), (1), (2)) v(x) WHERE n < 9",
    (
        "SELECT 1 UNION ALL SELECT n + 1 FROM (SELECT n, row_number() OVER (ORDER BY n) k FROM t) "
        "q WHERE k < 3 AND n < 9"
    ),
    "SELECT 1 UNION ALL (SELECT n + 1 FROM t WHERE n < 5 UNION ALL SELECT 100 WHERE false)",
    (
        "SELECT 1 UNION ALL SELECT n + 1 FROM t, (SELECT max(x) m FROM (VALUES (4), (6)) v(x)) q "
        "WHERE n < m"
    ),
    "SELECT 1 UNION ALL SELECT n + 1 FROM (SELECT n FROM t LIMIT 1) q WHERE n < 7",
    "SELECT 1 UNION ALL SELECT e.b::integer FROM t JOIN edges e ON e.a = t.n",
    "SELECT 1 UNION ALL SELECT r.b::integer FROM t JOIN roads r ON r.a = t.n",
    "SELECT '' UNION ALL SELECT n || 'ab' FROM t WHERE length(n) < 20",
    "SELECT 1.5 UNION ALL SELECT n * 1.5 FROM t WHERE n < 1000",
    "SELECT ARRAY[1] UNION ALL SELECT n || cardinality(n) FROM t WHERE cardinality(n) < 9",
    "SELECT 0.0::double precision UNION SELECT -n FROM t",
    "SELECT INTERVAL '1 month' UNION SELECT INTERVAL '30 days' FROM t",
)
CLAUSES = (
    (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 5 FROM t) "
        "CYCLE n SET again USING path SELECT n, again, path FROM t"
    ),
    (
        "WITH RECURSIVE t(n) AS (VALUES (1), (2) UNION ALL SELECT n * 2 FROM t WHERE n < 30) "
        "SEARCH DEPTH FIRST BY n SET o SELECT n FROM t ORDER BY o"
    ),
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t LIMIT 7",
)
QUERIES = (*(f"WITH RECURSIVE t(n) AS ({form}) SELECT n FROM t" for form in FORMS), *CLAUSES)


async def _rows(client: Any, text: str) -> list[str]:
    result = await client.run(text)
    assert result.error is None, (text, result.error)
    return sorted(map(repr, result.rows))


@pytest.mark.parametrize("members", [1, 3])
def test_rounds_in_one_fragment_give_what_queries_give(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, members: int
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE edges (a BIGINT PRIMARY KEY, b BIGINT)")
        await client.sql("CREATE TABLE roads (a BIGINT PRIMARY KEY, b BIGINT) REPLICATED")
        for table in ("edges", "roads"):
            rows = ", ".join(f"({a}, {a + 1})" for a in range(1, 12))
            await client.sql(f"INSERT INTO {table} VALUES {rows}")
        in_rounds = [await _rows(client, text) for text in QUERIES]
        monkeypatch.setattr(recursion, "_runs_in_rounds", lambda _: False)
        for text, found in zip(QUERIES, in_rounds, strict=True):
            assert found == await _rows(client, text), text
        await cluster.idle()

    in_cluster(scenario, members)


@pytest.mark.parametrize("text", [COUNTED, COUNTED.replace(" ALL", ""), JOINED, TWICE])
def test_a_round_starts_no_query_and_builds_no_operator(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    counts = {"queries": 0, "fragments": 0, "joins": 0}

    def counted(what: str, owner: type, name: str) -> None:
        original = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            counts[what] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, call)

    counted("queries", Queries, "begin")
    counted("fragments", build._FragmentBuilder, "__init__")
    counted("joins", HashJoinOperator, "__init__")

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        found = []
        for rounds in (10, 500):
            counts.update(queries=0, fragments=0, joins=0)
            assert await client.sql(text.format(rounds)) == [(rounds, rounds)]
            found.append(dict(counts))
        assert found[0] == found[1]
        assert found[0]["queries"] == 3  # the base, all rounds, and what reads them

    in_cluster(scenario, 1)


def test_errors_and_bounds_hold_within_rounds(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        result = await client.run(
            "WITH RECURSIVE t(n) AS (SELECT 1::smallint UNION ALL SELECT n * 2::smallint FROM t) "
            "SELECT count(*) FROM t"
        )
        assert result.error.sqlstate == "22003"
        monkeypatch.setattr(recursion, "ITERATIONS_MAX", 9)
        assert await client.sql(COUNTED.format(9)) == [(9, 9)]
        result = await client.run(COUNTED.format(11))
        assert isinstance(result.error, LimitExceeded)
        await cluster.idle()

    in_cluster(scenario, 1)


def test_a_round_of_many_rows_can_be_cancelled(in_cluster: InCluster) -> None:
    """One round gives rows for ever, as far as anybody would wait: the fragment looks up between
    two batches."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        result = await client.start(
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL "
            "SELECT 2 FROM t, generate_series(1, 100000000000) g WHERE n < 2 AND g % 2 = 3) "
            "SELECT count(*) FROM t"
        )
        while not cluster.member(1).statements.gauges()["reads"]:
            await asyncio.sleep(0)
        await client.cancel(result)
        await result.done.wait()
        assert isinstance(result.error, QueryCanceled)
        await cluster.idle()

    in_cluster(scenario, 1)
