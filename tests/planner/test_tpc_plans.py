"""The plans of TPC-H and TPC-DS 3, from their SQL text, with the statistics of scale 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import ColumnStatistics, FixedStatistics, MapStatistics
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.explain.explain import explain
from remuda.plan.logical import Logical
from remuda.plan.physical import Send
from remuda.planner.memo.memo import EXPRESSIONS_MAX, Memo
from remuda.planner.planner import PlanningContext, _plan, plan_query
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import BoundQuery, CreateMapStatement

DATA = Path(__file__).parents[1] / "data"


def days(distinct: float, minimum: int, maximum: int) -> ColumnStatistics:
    return ColumnStatistics(distinct=distinct, minimum=minimum, maximum=maximum)


def stats(rows: float, **columns: float | ColumnStatistics) -> MapStatistics:
    known = {
        name: c if isinstance(c, ColumnStatistics) else ColumnStatistics(distinct=c)
        for name, c in columns.items()
    }
    return MapStatistics(rows, known)


TPCH = {
    "region": stats(5, r_regionkey=5, r_name=5),
    "nation": stats(25, n_nationkey=25, n_name=25, n_regionkey=5),
    "supplier": stats(10_000, s_suppkey=10_000, s_nationkey=25),
    "customer": stats(150_000, c_custkey=150_000, c_nationkey=25, c_mktsegment=5, c_name=150_000),
    "part": stats(200_000, p_partkey=200_000, p_brand=25, p_type=150, p_size=50, p_container=40),
    "partsupp": stats(800_000, ps_partkey=200_000, ps_suppkey=10_000),
    "orders": stats(
        1_500_000,
        o_orderkey=1_500_000,
        o_custkey=99_996,
        o_orderdate=days(2406, 8035, 10440),
        o_orderpriority=5,
        o_orderstatus=3,
        o_shippriority=1,
    ),
    "lineitem": stats(
        6_001_215,
        l_orderkey=1_500_000,
        l_partkey=200_000,
        l_suppkey=10_000,
        l_linenumber=7,
        l_quantity=ColumnStatistics(distinct=50, minimum=100, maximum=5000),
        l_discount=ColumnStatistics(distinct=11, minimum=0, maximum=10),
        l_returnflag=3,
        l_linestatus=2,
        l_shipmode=7,
        l_shipinstruct=4,
        l_shipdate=days(2526, 8036, 10561),
        l_commitdate=days(2466, 8065, 10530),
        l_receiptdate=days(2554, 8037, 10591),
    ),
}
TPCDS = {
    "date_dim": stats(73_049, d_date_sk=73_049, d_year=200, d_moy=12),
    "item": stats(18_000, i_item_sk=18_000, i_brand_id=950, i_brand=712, i_manufact_id=1000),
    "store_sales": stats(
        2_880_404,
        ss_item_sk=18_000,
        ss_ticket_number=240_000,
        ss_sold_date_sk=ColumnStatistics(distinct=1823, null_fraction=0.045),
    ),
}


def catalog_of(suite: str) -> Catalog:
    catalog = Catalog()
    for line in (DATA / suite / "schema.sql").read_text().splitlines():
        if line.startswith("CREATE"):
            created = bind(parse(line.rstrip(";")), catalog)
            assert isinstance(created, CreateMapStatement)
            catalog, _ = catalog.with_map(created.schema, if_not_exists=False)
    return catalog


CATALOGS = {suite: catalog_of(suite) for suite in ("tpch", "tpcds")}


def query(suite: str, number: int) -> Logical:
    lines = (DATA / suite / f"q{number:02}.sql").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    bound = bind(parse(text.strip().rstrip(";")), CATALOGS[suite])
    assert isinstance(bound, BoundQuery)
    return bound.plan


def context(suite: str, members: int) -> PlanningContext:
    statistics = FixedStatistics({"tpch": TPCH, "tpcds": TPCDS}[suite])
    return PlanningContext(statistics, members, fold=evaluate_constant)


@pytest.mark.parametrize("number", range(1, 23))
def test_tpch(number: int, golden: Any) -> None:
    logical = query("tpch", number)
    golden.check(
        f"planner/tpch/q{number:02}.golden", explain(plan_query(logical, context("tpch", 3)))
    )
    alone = plan_query(logical, context("tpch", 1))
    assert not any(isinstance(fragment.root, Send) for fragment in alone.fragments)


def test_tpcds_3_is_the_articles_plan(golden: Any) -> None:
    plan = plan_query(query("tpcds", 3), context("tpcds", 3))
    assert len(plan.fragments) == 3
    golden.check("planner/tpcds/q03.golden", explain(plan))


def tpcds_statistics() -> FixedStatistics:
    """Rows, distinct values and NULLs at scale 0.1."""
    found = json.loads((DATA / "tpcds" / "statistics.json").read_text())
    maps = {}
    for name, (rows, columns) in found.items():
        known = {
            column: ColumnStatistics(distinct=distinct, null_fraction=nulls)
            for column, (distinct, nulls) in columns.items()
        }
        maps[name] = MapStatistics(rows, known)
    return FixedStatistics(maps)


TPCDS_NUMBERS = sorted(int(path.stem[1:]) for path in (DATA / "tpcds").glob("q*.sql"))


@pytest.mark.parametrize("number", TPCDS_NUMBERS)
def test_tpcds(number: int, golden: Any) -> None:
    logical = query("tpcds", number)
    memo = Memo()
    known = PlanningContext(tpcds_statistics(), 3, fold=evaluate_constant)
    plan = _plan(logical, known, memo)
    memo.check()
    assert sum(len(group.expressions) for group in memo.groups) <= EXPRESSIONS_MAX
    if number != 3:
        golden.check(f"planner/tpcds/q{number:02}.golden", explain(plan))


@pytest.mark.parametrize("number", range(1, 23))
def test_the_memo_keeps_its_invariants(number: int) -> None:
    memo = Memo()
    _plan(query("tpch", number), context("tpch", 3), memo)
    memo.check()
    for group in memo.groups:
        for candidate in group.best.values():
            if candidate is not None:
                assert candidate.cost >= max((i.cost for i in candidate.inputs), default=0.0)
