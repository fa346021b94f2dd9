"""Whole plans as golden files: the article's query, joins, aggregates, sorting, point reads."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.catalog.statistics import ColumnStatistics
from remuda.datatypes.sql import INTEGER
from remuda.plan.explain.explain import explain
from remuda.plan.logical import Logical


def declare_tpcds(plans: Any, scale: float | None) -> None:
    def stats(rows: float, **columns: Any) -> dict[str, Any]:
        return {} if scale is None else {"rows": rows, **columns}

    small = scale is not None and scale < 1
    plans.map(
        "date_dim", "d_date_sk int, d_year int, d_moy int", "d_date_sk", replicated=True,
        **stats(73049, d_date_sk=73049, d_year=200, d_moy=12),
    )  # fmt: skip
    plans.map(
        "item", "i_item_sk int, i_brand_id int, i_brand text, i_manufact_id int", "i_item_sk",
        replicated=True,
        **stats(2000 if small else 18000, i_item_sk=2000 if small else 18000, i_brand_id=950,
                i_brand=712, i_manufact_id=1000),
    )  # fmt: skip
    plans.map(
        "store_sales",
        "ss_item_sk int, ss_ticket_number bigint, ss_sold_date_sk int, ss_ext_sales_price price",
        "ss_item_sk ss_ticket_number",
        **stats(
            2_880_000 * (scale or 1),
            ss_item_sk=2000 if small else 18000,
            ss_ticket_number=240_000 * (scale or 1),
            ss_sold_date_sk=ColumnStatistics(distinct=1823, null_fraction=0.045),
        ),
    )


def tpcds3(plans: Any) -> Logical:
    joined = plans.join(
        plans.join(plans.scan("date_dim", "dt"), plans.scan("store_sales")), plans.scan("item")
    )
    filtered = plans.where(
        joined,
        plans.eq("dt.d_date_sk", "store_sales.ss_sold_date_sk"),
        plans.eq("store_sales.ss_item_sk", "item.i_item_sk"),
        plans.eq("item.i_manufact_id", 128),
        plans.eq("dt.d_moy", 11),
    )
    grouped = plans.aggregate(
        filtered,
        "dt.d_year item.i_brand item.i_brand_id",
        sum_agg=("sum", "store_sales.ss_ext_sales_price"),
    )
    projected = plans.project(
        grouped,
        d_year="dt.d_year",
        brand_id="item.i_brand_id",
        brand="item.i_brand",
        sum_agg_out="sum_agg",
    )
    return plans.sort(projected, "d_year -sum_agg_out brand_id", limit=100)


@pytest.mark.parametrize("scale", [1, 0.1, None], ids=["scale-1", "scale-0.1", "unknown"])
def test_query_3_is_the_articles_three_fragments(plans: Any, golden: Any, scale: float) -> None:
    declare_tpcds(plans, scale)
    plan = plans.plan(tpcds3(plans))
    assert len(plan.fragments) == 3
    golden.check(f"planner/tpcds-3-{scale or 'unknown'}.golden", explain(plan))


def test_query_3_alone_is_one_fragment(plans: Any, golden: Any) -> None:
    declare_tpcds(plans, 1)
    plan = plans.plan(tpcds3(plans), members=1)
    assert len(plan.fragments) == 1
    golden.check("planner/tpcds-3-alone.golden", explain(plan, verbose=True))


def test_a_key_of_a_parameter(plans: Any, golden: Any) -> None:
    declare_tpcds(plans, 1)
    scan = plans.where(
        plans.scan("store_sales"),
        plans.eq("store_sales.ss_item_sk", 17),
        plans.eq("store_sales.ss_ticket_number", plans.parameter(0, INTEGER)),
    )
    golden.check("planner/partial-key.golden", explain(plans.plan(scan)))


def joined_sides(plans: Any, rows: int, *, only: int | None = None) -> int:
    """Fragments of a join of two maps of so many rows; ``only``: of one key of the first."""
    for name in ("flights", "carriers"):
        plans.map(name, "id int, code int", "id", rows=rows, id=rows, code=rows)
    joined = plans.where(
        plans.join(plans.scan("flights"), plans.scan("carriers")),
        plans.eq("flights.code", "carriers.code"),
        *([] if only is None else [plans.eq("flights.code", only)]),
    )
    plan = plans.plan(plans.project(joined, id="flights.id", other="carriers.id"))
    return explain(plan).count("Send gather")


def test_two_small_maps_are_joined_at_the_initiator(plans: Any) -> None:
    """One gather for each, side by side, and no message between the others."""
    assert joined_sides(plans, 300) == 2


def test_few_rows_of_large_maps_are_joined_where_they_are(plans: Any) -> None:
    """An estimate behind a condition may be far too low."""
    assert joined_sides(plans, 100_000, only=7) == 1
