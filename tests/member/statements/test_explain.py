"""EXPLAIN over a cluster: options, JSON, and what operators did against what was expected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

InCluster = Callable[..., None]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def test_json_has_estimates_and_actual_rows_of_every_operator(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await client.sql("INSERT INTO t SELECT g, g % 5 FROM generate_series(1, 500) g")
        [(text,)] = await client.sql(
            "EXPLAIN (ANALYZE, FORMAT JSON) SELECT a, count(*) FROM t WHERE k > 100 GROUP BY a"
        )
        [made] = json.loads(text)
        assert made["Execution Time"] > 0
        seen = {}
        for fragment in made["Fragments"]:
            for node in nodes(fragment["Plan"]):
                assert node["Plan Rows"] >= 0
                assert node["Actual Rows"] == sum(m["Rows"] for m in node["Members"])
                seen.setdefault(node["Node Type"], node)
        assert seen["Root"]["Actual Rows"] == 5
        assert seen["TableScan"]["Actual Rows"] == 400
        assert seen["TableScan"]["Distribution"] == "PARTITIONED"
        sent = seen["Send"]
        assert sent["Actual Rows"] == sent["Plans"][0]["Actual Rows"] >= 5
        assert len(sent["Members"]) == 3
        tree = made["Plan"]  # one tree over all fragments, with the keys of PostgreSQL's plans
        every = list(nodes(tree))
        assert {"Root", "Send"}.isdisjoint(node["Node Type"] for node in every)
        assert {n["Node Type"] for n in every} == set(seen) - {"Root", "Send"}
        (scan,) = (node for node in every if node["Node Type"] == "TableScan")
        assert (scan["Relation Name"], scan["Alias"]) == ("t", "t")
        assert scan["Actual Rows"] == 400
        assert scan["Actual Loops"] == 1
        assert tree["Actual Rows"] == 5
        assert tree["Total Cost"] >= scan["Total Cost"]
        shared = (
            "EXPLAIN (COSTS OFF, FORMAT JSON) WITH s AS MATERIALIZED (SELECT a, count(*) AS n "
            "FROM t GROUP BY a) SELECT * FROM s x JOIN s y ON x.a = y.n"
        )
        [(text,)] = await client.sql(shared)
        [made] = json.loads(text)
        every = list(nodes(made["Plan"]))
        assert sum(node["Node Type"] == "TableScan" for node in every) == 1
        assert all("Total Cost" not in node for node in every)

    in_cluster(scenario)


def test_root_and_send_count_what_they_pass_on(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await client.sql("INSERT INTO t SELECT * FROM generate_series(1, 60)")
        lines = [line for (line,) in await client.sql("EXPLAIN ANALYZE SELECT k FROM t")]
        for start in ("Root", "Send"):
            at = next(i for i, line in enumerate(lines) if line.strip().startswith(start))
            assert "actual: rows=60 " in lines[at + 1]

    in_cluster(scenario)


def test_costs_off_shows_no_estimates(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        lines = await client.sql("EXPLAIN (COSTS OFF) SELECT 1")
        assert not any("cost=" in line for (line,) in lines)
        lines = await client.sql("EXPLAIN (COSTS) SELECT 1")
        assert all("cost=" in line for (line,) in lines if "[" in line)

    in_cluster(scenario, 1)


def test_changes_and_recursion_show_their_parts(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        first = {}
        for text in (
            "INSERT INTO t VALUES (1, 1), (2, 2)",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "MERGE INTO t USING t s ON t.k = s.k WHEN MATCHED THEN DELETE",
            "CREATE TABLE u AS SELECT * FROM t",
        ):
            first[text.split()[0]] = (await client.sql(f"EXPLAIN {text}"))[0][0]
        assert first == {
            "INSERT": "INSERT INTO t (staged on the owners, then committed)",
            "UPDATE": "Modify: UPDATE t (staged on the owners, then committed)",
            "DELETE": "Modify: DELETE FROM t (staged on the owners, then committed)",
            "MERGE": "Modify: MERGE INTO t (staged on the owners, then committed)",
            "CREATE": "CREATE TABLE u AS",
        }
        for text, shown in (
            ("INSERT INTO t VALUES (1, 1)", "INSERT INTO t"),
            ("UPDATE t SET a = 1 WHERE k = 1", "Modify: UPDATE t"),
            ("DELETE FROM t WHERE k = 1", "Modify: DELETE FROM t"),
        ):
            [line, *_] = await client.sql(f"EXPLAIN {text}")
            assert line == (f"{shown} (by the owner of the key, in one step)",)
        assert await client.sql("SHOW TABLES") != []
        assert await client.sql("SELECT count(*) FROM t") == [(0,)]
        recursive = "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT n FROM r"
        lines = [line for (line,) in await client.sql(f"EXPLAIN {recursive}")]
        assert "Recursive r: at first" in lines
        assert "Recursive r: then UNION, until no rows come" in lines
        [(text,)] = await client.sql(f"EXPLAIN (FORMAT JSON) {recursive}")
        [made] = json.loads(text)
        assert made["Recursive"][0]["Name"] == "r"

    in_cluster(scenario)
