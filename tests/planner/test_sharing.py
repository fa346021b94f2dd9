"""Common sub-plans: found where they are the same, computed once where that is cheaper."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.datatypes.sql import UUID
from remuda.plan.explain.explain import explain, preorder
from remuda.plan.expression import Call
from remuda.plan.logical import Logical
from remuda.plan.physical import PhysicalPlan, Placement, SpoolScan, Store
from remuda.planner.normalize import simplified
from remuda.planner.sharing import share


@pytest.fixture
def t(plans: Any) -> Any:
    plans.map("sales", "k int, shop int, price int, note text", "k", rows=1e6, shop=1000)
    plans.map("shops", "k int, city int", "k", replicated=True, rows=1000)
    return plans


def totals(t: Any, name: str, filtered: int | None = None) -> Logical:
    """Sales by shop; the columns are called after ``name``."""
    node = t.scan("sales", name)
    if filtered is not None:
        node = t.where(node, t.eq(f"{name}.price", filtered))
    return t.aggregate(node, f"{name}.shop", **{f"{name}_sum": ("sum", f"{name}.price")})


def twice(t: Any, first: Logical, second: Logical) -> Logical:
    return t.join(first, second, t.eq("x.shop", "y.shop"))


def stored(plan: PhysicalPlan) -> list[Store]:
    return [f.root for f in plan.fragments if isinstance(f.root, Store)]


def reads(plan: PhysicalPlan) -> list[SpoolScan]:
    return [n for f in plan.fragments for n in preorder(f.root) if isinstance(n, SpoolScan)]


@pytest.mark.parametrize("members", [1, 3])
def test_an_aggregate_that_is_joined_with_itself(t: Any, members: int, golden: Any) -> None:
    plan = t.plan(twice(t, totals(t, "x"), totals(t, "y")), members)
    assert len(stored(plan)) == 1
    assert len(reads(plan)) == 2
    assert "share common sub-plans" in plan.rules
    golden.check(f"planner/shared-{members}.golden", explain(plan))


def test_columns_that_one_use_does_not_need(t: Any) -> None:
    """Sub-plans are compared before columns are pruned; the spool has what any use needs."""
    node = t.project(twice(t, totals(t, "x"), totals(t, "y")), s="x_sum", z="y.shop")
    plan = t.plan(node)
    (store,) = stored(plan)
    assert len(store.output) == 2
    assert sorted(len(read.positions) for read in reads(plan)) == [1, 2]


def test_other_filters_are_other_sub_plans(t: Any) -> None:
    plan = t.plan(twice(t, totals(t, "x", 1), totals(t, "y", 2)))
    assert not stored(plan)
    assert stored(t.plan(twice(t, totals(t, "x", 1), totals(t, "y", 1))))


def test_scans_are_not_stored(t: Any) -> None:
    first, second = t.scan("sales", "x"), t.scan("sales", "y")
    assert not stored(t.plan(t.join(first, second, t.eq("x.k", "y.k"))))


def test_what_is_on_every_member_is_computed_where_it_is_needed(t: Any) -> None:
    def cities(name: str) -> Logical:
        return t.aggregate(t.scan("shops", name), f"{name}.city", **{f"{name}_n": ("count", None)})

    node = t.join(cities("x"), cities("y"), t.eq("x.city", "y.city"))
    assert not stored(t.plan(node))


def test_random_values_are_computed_each_time(t: Any) -> None:
    def tagged(name: str) -> Logical:
        return t.project(totals(t, name), **{f"{name}_id": Call(UUID, "gen_random_uuid", ())})

    assert share(simplified(t.union(tagged("x"), tagged("y")), t.rewriting())) is not None
    node = simplified(t.union(tagged("x2"), tagged("y2")), t.rewriting())
    shared = share(node)
    assert shared is not None
    assert len(shared.definitions) == 1, "the aggregate, without the random values above"
    assert not any("gen_random_uuid" in repr(d) for d in shared.definitions)


def test_sub_plans_in_sub_plans(t: Any) -> None:
    def pair(name: str) -> Logical:
        inner = t.join(
            totals(t, f"{name}1"), totals(t, f"{name}2"), t.eq(f"{name}1.shop", f"{name}2.shop")
        )
        return t.aggregate(inner, f"{name}1.shop", **{f"{name}_t": ("sum", f"{name}2_sum")})

    node = t.join(pair("x"), pair("y"), t.eq("x1.shop", "y1.shop"))
    plan = t.plan(node)
    assert len(stored(plan)) == 2
    assert len(reads(plan)) == 4


def test_fragments_that_store_or_read_are_not_pruned(t: Any) -> None:
    def one(name: str) -> Logical:
        return t.aggregate(
            t.where(t.scan("sales", name), t.eq(f"{name}.k", 7)),
            f"{name}.shop",
            **{f"{name}_n": ("count", None)},
        )

    plan = t.plan(t.union(one("x"), one("y")), 3, lambda cost: 1.0 / (1.0 + cost))
    for fragment in plan.fragments:
        nodes = list(preorder(fragment.root))
        if any(isinstance(node, Store | SpoolScan) for node in nodes):
            assert fragment.pruning is None


def test_rows_are_where_they_were_stored(t: Any) -> None:
    plan = t.plan(twice(t, totals(t, "x"), totals(t, "y")))
    (store,) = stored(plan)
    for read in reads(plan):
        assert read.traits.distribution.placement is store.traits.distribution.placement
        assert read.traits.distribution.placement is Placement.PARTITIONED
