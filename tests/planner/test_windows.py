"""Where window functions run: partitions must be whole on their member."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.explain.explain import explain, preorder
from remuda.plan.physical import SortRows


@pytest.fixture
def t(plans: Any) -> Any:
    plans.map("sales", "id int, shop int, day date, price money", "id", rows=100_000, shop=50)
    plans.map("items", "o int, n int, price money", "o n", partition_by="o", rows=100_000, o=20_000)
    plans.map("shops", "shop int, name text", "shop", replicated=True, rows=50, shop=50)
    return plans


def test_placement(t: Any, golden: Any) -> None:
    """By hash; as the rows lie; at the initiator; of replicated rows, own keys or one copy."""
    blocks = []
    sales = t.scan("sales")
    by_shop = t.window(sales, "sales.shop", "sales.day", s=("sum", "sales.price"))
    items = t.scan("items")
    by_order = t.window(items, "items.o items.n", "items.price", r=("row_number", None))
    whole = t.window(t.scan("sales", "s2"), "", "s2.price", n=("row_number", None))
    shops = t.window(t.scan("shops"), "shops.name", "", c=("count", "shops.shop"))
    joined = t.join(by_shop, t.scan("shops", "s3"), t.eq("sales.shop", "s3.shop"))
    both = t.window(by_shop, "sales.shop sales.id", "sales.day", m=("max", "sales.price"))
    for title, node in (
        ("by another column than the key", by_shop),
        ("by the key: no exchange", by_order),
        ("one partition", whole),
        ("a replicated map", shops),
        ("joined by the partition", joined),
        ("two windows, one exchange", both),
    ):
        plan = t.plan(node)
        assert decode_plan(encode_plan(plan)) == plan
        blocks.append(f"-- {title}\n{explain(plan)}\n")
    blocks.append(f"-- alone\n{explain(t.plan(by_shop, members=1), verbose=True)}\n")
    golden.check("planner/windows.golden", "\n".join(blocks))


def sorts(plans: Any, keys: str, members: int = 3, limit: int | None = None) -> int:
    ranked = plans.window(plans.scan("t"), "t.g", "t.v", r=("row_number", None))
    kept = plans.where(ranked, plans.call("<", "r", 3))
    projected = plans.project(kept, x="t.g", y="t.v", z="r")
    plan = plans.plan(plans.sort(projected, keys, limit=limit), members)
    nodes = [node for fragment in plan.fragments for node in preorder(fragment.root)]
    return sum(isinstance(node, SortRows) for node in nodes)


@pytest.mark.parametrize("members", [1, 3])
def test_rows_of_a_window_are_sorted_already(plans: Any, members: int) -> None:
    plans.map("t", "k int, g int, v int", "k", rows=1e6, g=1000)
    assert sorts(plans, "x y", members) == 0
    assert sorts(plans, "x", members) == 0
    assert sorts(plans, "x y", members, limit=10) == 0
    assert sorts(plans, "y", members) > 0, "within partitions only"
    assert sorts(plans, "-x y", members) > 0
    assert sorts(plans, "x y z", members) > 0
