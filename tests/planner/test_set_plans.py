"""INTERSECT, EXCEPT, grouping sets, DISTINCT ON: which rules fire, and where the rows meet."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import ColumnStatistics, FixedStatistics, MapStatistics
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.explain.explain import explain
from remuda.plan.logical import Logical
from remuda.plan.physical import PhysicalPlan
from remuda.planner.planner import PlanningContext, plan_query
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import BoundQuery, CreateMapStatement

MAPS = (
    "CREATE TABLE sales (id INTEGER PRIMARY KEY, shop INTEGER NOT NULL, item INTEGER, price REAL)",
    (
        "CREATE TABLE lines (o INTEGER, n INTEGER, item INTEGER, PRIMARY KEY (o, n))"
        " WITH (partition_by = 'o')"
    ),
    "CREATE TABLE shops (shop INTEGER PRIMARY KEY, name VARCHAR) WITH (replicated = true)",
)


def statistics(rows: float, **distinct: float) -> MapStatistics:
    return MapStatistics(rows, {n: ColumnStatistics(distinct=d) for n, d in distinct.items()})


STATISTICS = {
    "sales": statistics(100_000, id=100_000, shop=50, item=2000),
    "lines": statistics(200_000, o=20_000, n=10, item=2000),
    "shops": statistics(50, shop=50, name=50),
}


def logical(text: str) -> Logical:
    catalog = Catalog()
    for definition in MAPS:
        created = bind(parse(definition), catalog)
        assert isinstance(created, CreateMapStatement)
        catalog, _ = catalog.with_map(created.schema, if_not_exists=False)
    bound = bind(parse(text), catalog)
    assert isinstance(bound, BoundQuery)
    return bound.plan


def planned(text: str, members: int = 3) -> PhysicalPlan:
    context = PlanningContext(FixedStatistics(STATISTICS), members, fold=evaluate_constant)
    plan = plan_query(logical(text), context)
    assert decode_plan(encode_plan(plan)) == plan
    return plan


@pytest.mark.parametrize(
    ("text", "rule", "other"),
    [
        (
            "SELECT id FROM sales INTERSECT SELECT o FROM lines",
            "set operation to join",
            "set operation to aggregate",
        ),
        (
            "SELECT shop FROM sales EXCEPT ALL SELECT item FROM lines",
            "set operation to join",
            "set operation to aggregate",
        ),
        (
            "SELECT item FROM sales INTERSECT SELECT item FROM lines",
            "set operation to aggregate",
            "set operation to join",
        ),
        (
            "SELECT shop, item FROM sales EXCEPT SELECT o, item FROM lines",
            "set operation to aggregate",
            "set operation to join",
        ),
        (
            "SELECT item FROM sales EXCEPT SELECT item FROM lines WHERE FALSE",
            "prune set operation",
            "set operation to aggregate",
        ),
        (
            "SELECT item FROM sales WHERE FALSE INTERSECT SELECT item FROM lines",
            "prune set operation",
            "set operation to aggregate",
        ),
        (
            (
                "SELECT * FROM (SELECT shop, item, count(*) FROM sales"
                " GROUP BY shop, ROLLUP (item)) x WHERE shop = 3"
            ),
            "push filter through expand",
            "prune empty",
        ),
        (
            (
                "SELECT * FROM (SELECT shop, count(*) FROM sales GROUP BY ROLLUP (shop)) s"
                " WHERE shop = 3"
            ),
            "prune columns",
            "push filter through expand",
        ),
        (
            "SELECT * FROM (SELECT shop, count(*) FROM sales WHERE FALSE GROUP BY CUBE (shop)) s",
            "prune empty",
            "push filter through expand",
        ),
    ],
)
def test_rules(text: str, rule: str, other: str) -> None:
    fired = planned(text).rules
    assert rule in fired
    assert other not in fired


QUERIES = (
    "SELECT id FROM sales INTERSECT SELECT o FROM lines",
    "SELECT o FROM lines EXCEPT SELECT id FROM sales",
    "SELECT shop FROM sales INTERSECT SELECT shop FROM shops",
    "SELECT item FROM sales INTERSECT SELECT item FROM lines",
    "SELECT item FROM sales EXCEPT ALL SELECT item FROM lines ORDER BY 1 LIMIT 5",
    "SELECT * FROM (SELECT item FROM sales EXCEPT SELECT item FROM lines) x WHERE item = 3",
    "SELECT shop, item, count(*), sum(price) FROM sales GROUP BY ROLLUP (shop, item)",
    "SELECT o, n, count(*) FROM lines GROUP BY o, ROLLUP (n)",
    "SELECT shop, count(DISTINCT item) FROM sales GROUP BY CUBE (shop)",
    "SELECT shop, count(DISTINCT item), count(*) FROM sales GROUP BY GROUPING SETS ((shop), ())",
    "SELECT shop, n, count(*), min(item) FROM lines, shops WHERE shop = n GROUP BY CUBE (shop, n)",
    "SELECT n, sum(item) FROM lines GROUP BY n, ROLLUP (n % 2)",
    "SELECT name, count(*) FROM shops GROUP BY ROLLUP (name)",
    "SELECT DISTINCT ON (shop) shop, id FROM sales ORDER BY shop, price DESC",
    "SELECT DISTINCT ON (o) o, n FROM lines ORDER BY o, n",
    "SELECT id FROM sales ORDER BY price FETCH FIRST 3 ROWS WITH TIES",
    "SELECT id FROM sales TABLESAMPLE BERNOULLI (10) REPEATABLE (1)",
)


def test_plans(golden: Any) -> None:
    blocks = [f"{text};\n{explain(planned(text))}\n" for text in QUERIES]
    golden.check("planner/sets.golden", "\n".join(blocks))


@pytest.mark.parametrize("text", QUERIES)
def test_one_member_needs_no_exchange(text: str) -> None:
    assert len(planned(text, members=1).fragments) == 1
