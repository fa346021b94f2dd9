"""What a transaction reads over its own writes is what everybody reads after its commit, whatever
way the plan takes: scans, indexes, lookups, joins, on one member and on several."""

# ruff: noqa: E501 (a statement per line)

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
from transacting import Session

from remuda.plan.explain.explain import explain
from remuda.session import planning

pytestmark = pytest.mark.cluster

TABLES = """
CREATE TABLE items (id BIGINT PRIMARY KEY, grp INT, name VARCHAR, price DOUBLE, day DATE)
CREATE TABLE lines (a INT, b VARCHAR, item BIGINT, n INT, PRIMARY KEY (a, b))
CREATE TABLE groups (grp INT PRIMARY KEY, title VARCHAR) WITH (replicated = true)
CREATE INDEX items_grp ON items USING bitmap (grp)
CREATE INDEX items_name ON items USING hash (name)
CREATE INDEX items_price ON items (price)
CREATE INDEX items_two ON items (grp, price DESC)
CREATE INDEX lines_item ON lines (item)
INSERT INTO items SELECT x, x % 7, 'name ' || x % 50, x / 4.0, DATE '2024-01-01' + (x % 30)::int FROM generate_series(1, 400) t(x)
INSERT INTO items VALUES (1000, NULL, NULL, NULL, NULL), (1001, 3, 'nan', 'NaN', NULL)
INSERT INTO lines SELECT x % 20, 'b' || x, x % 90, x FROM generate_series(1, 200) t(x)
INSERT INTO groups SELECT x, 'group ' || x FROM generate_series(0, 6) t(x)
"""
WRITES = """
INSERT INTO items VALUES (2000, 3, 'name 7', 10.1, DATE '2024-02-02'), (2001, NULL, 'new', 0.1, NULL)
UPDATE items SET price = price + 1000 WHERE id BETWEEN 10 AND 20
UPDATE items SET grp = 99, name = 'moved' WHERE id IN (1, 2, 3)
UPDATE items SET id = id + 5000 WHERE id = 50
DELETE FROM items WHERE id % 50 = 0
DELETE FROM items WHERE price = 'NaN'
INSERT INTO items VALUES (3000, 3, 'name 9', 'NaN', NULL) ON CONFLICT (id) DO NOTHING
INSERT INTO items VALUES (7, 0, 'again', 7, NULL) ON CONFLICT (id) DO UPDATE SET name = 'upserted'
INSERT INTO lines VALUES (100, 'x', 2000, 1), (5, 'y', 7, 2), (5, 'z', 5050, 3)
DELETE FROM lines WHERE a = 3
UPDATE lines SET item = 2000 WHERE n < 5
UPDATE groups SET title = 'three' WHERE grp = 3
DELETE FROM groups WHERE grp = 4
INSERT INTO groups VALUES (99, 'ninety-nine')
SINK INTO items VALUES (8, 1, 'sunk', 8.5, NULL), (4000, 1, 'sunk', 8.5, NULL)
MERGE INTO items USING (VALUES (9, 'm'), (9001, 'm')) s(id, name) ON items.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)
"""
QUERIES = """
SELECT * FROM items
SELECT count(*) FROM items
SELECT count(*), sum(price), min(id), max(id) FROM items WHERE price < 500
SELECT * FROM items WHERE id = 2000
SELECT * FROM items WHERE id IN (1, 50, 5050, 100, 400, 4000)
SELECT * FROM items WHERE id = 100
SELECT id FROM items WHERE grp = 3
SELECT id FROM items WHERE grp IN (99, 0) AND name = 'moved'
SELECT id FROM items WHERE grp IS NULL
SELECT id, name FROM items WHERE name = 'name 7'
SELECT id FROM items WHERE name = 'moved' OR name = 'sunk'
SELECT id, price FROM items WHERE price BETWEEN 3 AND 12
SELECT id, price FROM items WHERE price > 99 AND price < 1100
SELECT id FROM items WHERE price = 'NaN'
SELECT price FROM items ORDER BY price LIMIT 12
SELECT price FROM items ORDER BY price DESC NULLS LAST LIMIT 12
SELECT price FROM items WHERE price > 1000 ORDER BY price
SELECT grp, price FROM items WHERE grp = 3 ORDER BY price DESC LIMIT 5
SELECT l.a, l.b, i.name FROM lines l JOIN items i ON i.id = l.item WHERE l.a = 5
SELECT l.a, l.b, i.name FROM lines l LEFT JOIN items i ON i.id = l.item WHERE l.a IN (0, 100, 3)
SELECT i.id, l.n FROM items i JOIN lines l ON l.item = i.id WHERE i.id IN (7, 2000, 5050, 60)
SELECT count(*) FROM items i WHERE EXISTS (SELECT 1 FROM lines l WHERE l.item = i.id)
SELECT count(*) FROM items i WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.item = i.id)
SELECT g.title, count(*), sum(i.price) FROM items i JOIN groups g ON g.grp = i.grp WHERE i.price < 9999 GROUP BY g.title
SELECT * FROM groups
SELECT count(*) FROM groups
SELECT title FROM groups WHERE grp IN (3, 4, 99)
SELECT a, count(*) FROM lines GROUP BY a
SELECT * FROM lines WHERE a = 5 AND b = 'y'
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM groups)) SELECT count(*) FROM r
SELECT id, rank() OVER (ORDER BY id) FROM items WHERE id > 390
SELECT id FROM items WHERE id > 300 UNION SELECT grp FROM groups
SELECT name FROM items WHERE id = (SELECT max(item) FROM lines)
"""
WAYS = (
    "Scan items", "Key lookup items", "Index scan items", "Lookup join",
)  # fmt: skip
SEEDS = 3
SPREAD = 4.0
VARIANTS = [
    pytest.param(1, {}, id="one"),
    pytest.param(3, {}, id="three"),
    pytest.param(2, {"batch_rows": 1, "workers": 2, "parallel_rows": 1}, id="one-row-batches"),
]


def lines(text: str) -> list[str]:
    return [line for line in text.strip().splitlines() if line]


def normal(query: str, rows: list[Any]) -> list[str]:
    """NaN is not equal to itself, and only some queries say in which order rows come."""
    texts = [repr(row) for row in rows]
    return texts if "ORDER BY price" in query else sorted(texts)


@pytest.mark.parametrize(("members", "settings"), VARIANTS)
def test_own_writes_are_seen_as_after_the_commit(
    in_cluster: Any, members: int, settings: dict[str, Any]
) -> None:
    async def scenario(cluster: Any) -> None:
        other = Session(await cluster.client(members))
        own = Session(await cluster.client())
        for text in lines(TABLES):
            await other.sql(text)
        await own.sql("ANALYZE")
        before = {query: normal(query, await other.sql(query)) for query in lines(QUERIES)}
        await own.sql("BEGIN")
        for text in lines(WRITES):
            await own.sql(text)
        seen = {query: normal(query, await own.sql(query)) for query in lines(QUERIES)}
        for query in lines(QUERIES):
            assert normal(query, await other.sql(query)) == before[query], query
        await own.sql("COMMIT")
        after = {query: normal(query, await other.sql(query)) for query in lines(QUERIES)}
        for query in lines(QUERIES):
            assert seen[query] == after[query], query
        assert sum(after[query] != before[query] for query in after) > 25
        await cluster.idle()

    in_cluster(scenario, members, **settings)


@pytest.mark.parametrize("members", [1, 3])
def test_whatever_way_the_plan_takes(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch, members: int
) -> None:
    """Costs by chance: plans that the optimizer would not choose for so few rows."""
    plans: list[str] = []
    plan_query = planning.plan_query

    def noted(*arguments: Any) -> Any:
        plan = plan_query(*arguments)
        plans.append(explain(plan))
        return plan

    async def scenario(cluster: Any) -> None:
        own = Session(await cluster.client())
        for text in lines(TABLES):
            await own.sql(text)
        await own.sql("ANALYZE")
        await own.sql("BEGIN")
        for text in lines(WRITES):
            await own.sql(text)
        asked = [q for q in lines(QUERIES) if members == 1 or " JOIN " in q or "EXISTS" in q]
        expected = {query: normal(query, await own.sql(query)) for query in asked}
        monkeypatch.setattr(planning, "plan_query", noted)
        for seed in range(SEEDS):
            chance = random.Random(seed)
            context = functools.partial(
                planning.PlanningContext,
                perturb=lambda cost, by=chance: cost * by.lognormvariate(0.0, SPREAD),  # type: ignore[misc]
            )
            with monkeypatch.context() as patched:
                patched.setattr(planning, "PlanningContext", context)
                for query in asked:
                    found = normal(query, await own.sql(f"{query} -- {seed}"))
                    assert found == expected[query], f"{query}\n{plans[-1]}"
        text = "\n".join(plans)
        for way in WAYS if members == 1 else WAYS[-1:]:
            assert way in text, f"no plan has: {way}"

    in_cluster(scenario, members)
