"""Statements of many times their memory: the same answers as with enough of it; and without
spilling a clear error, after which the member goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remuda.errors import OutOfMemory

InCluster = Callable[..., None]
MIB = 1 << 20
ROWS = 40_000

QUERIES = {
    "not in": "SELECT count(*), sum(k) FROM t "
    "WHERE s NOT IN (SELECT s || '1' FROM t WHERE k % 2 = 0)",
    "not in with a NULL": "SELECT count(*) FROM t "
    "WHERE s NOT IN (SELECT CASE WHEN k <> 7 THEN s || 'x' END FROM t)",
    "nested loops": "SELECT count(*), sum(x.k - y.k) FROM "
    "(SELECT * FROM t WHERE k % 500 = 0) x LEFT JOIN t y ON x.a < y.a AND x.s > y.s",
    "distinct": "SELECT a % 3, count(DISTINCT s), sum(DISTINCT k) FROM t GROUP BY 1 ORDER BY 1",
    "distinct without groups": "SELECT count(DISTINCT s), count(DISTINCT k + 1) FROM t",
    "intersect all": "SELECT count(*), sum(k) FROM "
    "(SELECT k, s FROM t INTERSECT ALL SELECT k, s FROM t WHERE a > 100) i",
    "except all": "SELECT count(*), sum(k) FROM "
    "(SELECT k, s FROM t EXCEPT ALL SELECT k, s FROM t WHERE a > 100) i",
    "row_number": "SELECT count(*), sum(n * k), max(n) FROM "
    "(SELECT k, row_number() OVER (ORDER BY s) n FROM t) w",
    "ranks": "SELECT sum(r * k), sum(d * k), max(d) FROM (SELECT k, rank() OVER (ORDER BY a) r, "
    "dense_rank() OVER (ORDER BY a) d FROM t) w",
    "running": "SELECT sum(x), max(y), sum(z), sum(v), sum(w) FROM (SELECT "
    "sum(a) OVER (ORDER BY s) x, max(k) OVER (ORDER BY k DESC ROWS UNBOUNDED PRECEDING) y, "
    "count(*) FILTER (WHERE k % 3 = 0) OVER (ORDER BY a) z, min(k) OVER (ORDER BY s) v, "
    "first_value(k) OVER (ORDER BY a DESC, k) w FROM t) q",
    "lag and lead": "SELECT sum(x * k), sum(y * k), count(x), count(y) FROM (SELECT k, "
    "lag(a) OVER (ORDER BY s) x, lead(a, 3, 0) OVER (ORDER BY s) y FROM t) w",
    "share of the total": "SELECT sum(p), max(m) FROM "
    "(SELECT k * 1.0 / sum(k) OVER () p, avg(a) OVER () m FROM t) w",
    "stored": "WITH c AS MATERIALIZED (SELECT k, s, a FROM t) "
    "SELECT count(*), sum(x.k) FROM c x JOIN c y ON x.k = y.a",
    "recursive": "WITH RECURSIVE r(n, s) AS (SELECT k, s FROM t UNION ALL "
    "SELECT n - 25000, s FROM r WHERE n > 25000) SELECT count(*), sum(n), max(length(s)) FROM r",
}
WIDE = {
    "sort": "SELECT sum(k * r) FROM (SELECT k, row_number() OVER (ORDER BY w, k) r FROM t) x",
    "rows in order": "SELECT k, w FROM t ORDER BY w DESC, k",
    "top": "SELECT k, w FROM t ORDER BY a, w DESC LIMIT 5000",
    "join": "SELECT count(*), sum(x.k) FROM t x JOIN t y ON x.w = y.w",
    "merging join": "SELECT x.k, y.w FROM t x JOIN t y ON x.k = y.k ORDER BY x.k",
    "groups": "SELECT count(*), sum(c) FROM (SELECT w, count(*) c FROM t GROUP BY w) x",
    "arrays": "SELECT a, array_agg(w ORDER BY k DESC), median(k), count(DISTINCT w), max(w), "
    "mode() WITHIN GROUP (ORDER BY w) FROM t WHERE a < 900 GROUP BY a",
    "union": "SELECT count(*) FROM (SELECT w FROM t UNION SELECT w || '1' FROM t) x",
    "partitions": "SELECT max(c), sum(c) FROM "
    "(SELECT count(*) OVER (PARTITION BY a % 5 ORDER BY w) c FROM t) x",
}
"""Over rows of which a single batch has more bytes than the statement may hold."""
HOLDERS = {
    "not in": "HashJoin",
    "distinct": "HashAggregate",
    "row_number": "WindowRows",
    "recursive": 'recursive query "r"',
}


async def fill(client: Any) -> None:
    await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT, s VARCHAR)")
    await client.sql(
        "INSERT INTO t SELECT g, g % 1000, 'text of the row ' || g "
        f"FROM generate_series(1, {ROWS}) g"
    )


def test_the_same_answers(in_cluster: InCluster) -> None:
    answers: list[dict[str, Any]] = []

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client)
        answers.append({name: await client.sql(text) for name, text in QUERIES.items()})
        spilled = await client.sql("SELECT text FROM sys.query_history WHERE spilled > 0")
        if len(answers) == 2:
            found = {name for name, text in QUERIES.items() if (text,) in spilled}
            assert len(found) >= len(QUERIES) // 2, "it was not larger than its memory"
        else:
            assert spilled == []
        await cluster.idle()

    in_cluster(scenario, members=1)
    in_cluster(scenario, statement_memory=6 * MIB, members=1)
    for name in QUERIES:
        assert answers[1][name] == answers[0][name], name


def test_without_spilling_they_fail_and_the_member_goes_on(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client)
        for name, holder in HOLDERS.items():
            result = await client.run(QUERIES[name])
            assert isinstance(result.error, OutOfMemory), name
            assert result.error.sqlstate == "53200"
            assert holder in result.error.detail
            assert "spill_limit is 0" in result.error.detail
            assert await client.sql("SELECT count(*) FROM t") == [(ROWS,)]
            await cluster.idle()

    in_cluster(scenario, 1, statement_memory=2 * MIB, spill_limit=0)


def test_batches_are_cut_to_fit(in_cluster: InCluster) -> None:
    answers: list[dict[str, Any]] = []

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT, w VARCHAR)")
        await client.sql(
            "INSERT INTO t SELECT g, g % 1000, repeat('w', 300) || g "
            "FROM generate_series(1, 12000) g"
        )
        answers.append({name: await client.sql(text) for name, text in WIDE.items()})
        await cluster.idle()

    in_cluster(scenario, members=1)
    in_cluster(scenario, statement_memory=2 * MIB, members=2)
    for name in WIDE:
        assert sorted(answers[1][name]) == sorted(answers[0][name]), name
    assert answers[1]["rows in order"] == answers[0]["rows in order"]
