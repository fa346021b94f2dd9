"""Aggregation below joins: an alternative, taken where it is cheaper and only where it is right."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.plan.explain.explain import explain, preorder
from remuda.plan.expression import AggregateCall
from remuda.plan.logical import Aggregate, Logical
from remuda.plan.physical import HashAggregate, PhysicalPlan
from remuda.planner.exploration.eager import eager


@pytest.fixture
def t(plans: Any) -> Any:
    """Many sales of few items."""
    plans.map(
        "sales", "k int, item int, day int, price int", "k",
        rows=10e6, k=10e6, item=1000, day=100, price=500,
    )  # fmt: skip
    plans.map("items", "k int, brand int, size int", "k", rows=1000, k=1000, brand=20)
    plans.map("days", "k int, year int", "k", replicated=True, rows=100, k=100, year=2)
    return plans


def query(t: Any, group: str = "items.brand", kind: str = "inner", **calls: Any) -> Aggregate:
    sales, items = t.scan("sales"), t.scan("items")
    joined = t.join(sales, items, t.eq("sales.item", "items.k"), kind=kind)
    made = calls or {"total": ("sum", "sales.price"), "n": ("count", "sales.price")}
    return t.aggregate(joined, group, **made)


def fired(plan: PhysicalPlan) -> bool:
    return "aggregate below join" in plan.rules


def aggregates(plan: PhysicalPlan) -> list[HashAggregate]:
    return [n for f in plan.fragments for n in preorder(f.root) if isinstance(n, HashAggregate)]


@pytest.mark.parametrize("members", [1, 3])
def test_sales_are_grouped_by_item_before_they_meet_items(
    t: Any, members: int, golden: Any
) -> None:
    plan = t.plan(query(t), members)
    assert fired(plan)
    item = t.columns["sales.item"].id
    assert any(item in node.group for node in aggregates(plan))
    golden.check(f"planner/aggregate-below-join-{members}.golden", explain(plan))


def test_counts_below_are_summed_above(t: Any) -> None:
    node = query(t, low=("min", "sales.price"), high=("max", "sales.price"), n=("count", "sales.k"))
    found = eager(node, t.rewriting())
    assert found is not None
    assert [call.function for call in found.aggregate.calls] == ["min", "max", "sum"]
    assert found.aggregate.output == node.output
    assert found.keys == (t.columns["sales.item"].id,)


def test_all_columns_that_joins_and_groups_need_are_keys(t: Any) -> None:
    inner = query(t).input
    joined = t.join(inner, t.scan("days"), t.eq("sales.day", "days.k"))
    node = t.aggregate(joined, "items.brand sales.price days.year", n=("count", "sales.k"))
    found = eager(node, t.rewriting())
    assert found is not None
    assert set(found.keys) == {t.columns[f"sales.{name}"].id for name in ("item", "day", "price")}


@pytest.mark.parametrize("kind", ["left", "semi"])
def test_below_the_left_side_of_other_joins(t: Any, kind: str) -> None:
    assert eager(query(t, "sales.day", kind), t.rewriting()) is not None


def rejected(t: Any, node: Logical) -> bool:
    assert isinstance(node, Aggregate)
    return eager(node, t.rewriting()) is None


def test_not_where_it_would_be_wrong(t: Any) -> None:
    assert rejected(t, query(t, "sales.day", "right")), "rows that never come through are padded"
    both = {"a": ("sum", "sales.price"), "b": ("sum", "items.size")}
    assert rejected(t, query(t, **both)), "what the join multiplies is counted twice"
    assert rejected(t, query(t, n=("count", "sales.price", "distinct")))
    assert rejected(t, query(t, n=("avg", "sales.price"))), "rewritten before"
    assert rejected(t, query(t, "", n=("sum", "sales.price"))), "over no rows there is one group"
    risky = query(t)
    divided = t.call("/", "sales.price", "sales.day", type=t.c("sales.price").type)
    call = AggregateCall("sum", divided, risky.calls[0].type)
    node = Aggregate(risky.output[:2], risky.input, risky.group, (call,))
    assert rejected(t, node), "the join may leave out what divides by zero"


def test_not_where_it_saves_nothing(t: Any) -> None:
    assert not fired(t.plan(query(t, "sales.k"))), "every group is one row"
    assert rejected(t, t.aggregate(t.scan("sales"), "sales.item", n=("count", "sales.k")))
