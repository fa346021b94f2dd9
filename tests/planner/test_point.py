"""Key lookups, pruning, and what a session may read without operators."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.datatypes.sql import BIGINT, INTEGER
from remuda.plan.explain.explain import preorder
from remuda.plan.expression import Call, Cast, Literal, Parameter
from remuda.plan.physical import KeyLookup, PhysicalPlan, Site, TableScan
from remuda.planner.point import point_read


@pytest.fixture
def t(plans: Any) -> Any:
    plans.map("m", "k int, v text, w int", "k", rows=1000)
    plans.map("p", "k int, n bigint, w int", "k n", partition_by="k", rows=1000)
    return plans


def leaf(plan: PhysicalPlan) -> Any:
    return next(
        n for f in plan.fragments for n in preorder(f.root) if isinstance(n, KeyLookup | TableScan)
    )


@pytest.mark.parametrize("members", [1, 3])
def test_point_read(t: Any, members: int) -> None:
    parameter = t.parameter(0, INTEGER)
    found = t.where(t.scan("m"), t.eq("m.k", parameter), t.call(">", "m.w", 3))
    plan = t.plan(t.project(found, w="m.w", v="m.v"), members)
    read = point_read(plan)
    assert read is not None
    assert (read.map_name, read.keys) == ("m", ((parameter,),))
    assert read.positions == (2, 1)
    assert read.filter is not None
    assert dict(read.columns)[t.columns["m.w"].id] == 2
    if members == 3:
        assert plan.fragments[1].site is Site.DATA_MEMBERS
        assert plan.fragments[1].pruning is not None
        assert plan.fragments[1].pruning.keys == ((parameter,),)


def test_point_read_computes(t: Any) -> None:
    found = t.where(t.scan("m"), t.eq("m.k", 5))
    plan = t.plan(t.project(found, more=Call(INTEGER, "+", (t.c("m.w"), t.of(1)))))
    read = point_read(plan)
    assert read is not None
    assert read.positions is None
    assert len(read.expressions) == 1


def test_no_point_read(t: Any) -> None:
    by_key = t.where(t.scan("m"), t.eq("m.k", 5))
    assert point_read(t.plan(t.aggregate(by_key, "", n=("count", None)))) is None
    assert point_read(t.plan(t.sort(by_key, "", limit=1))) is None
    assert point_read(t.plan(t.where(t.scan("m", "m2"), t.eq("m2.w", 5)))) is None
    assert point_read(t.plan(t.where(t.scan("m", "m3"), t.call(">", "m3.k", 5)))) is None


def test_in_list_and_composite_keys(t: Any) -> None:
    plan = t.plan(t.where(t.scan("p"), t.isin("p.k", 1, 2), t.isin("p.n", 3, 4)))
    lookup = leaf(plan)
    assert isinstance(lookup, KeyLookup)
    assert len(lookup.keys) == 4
    assert plan.fragments[1].pruning is not None
    assert len(plan.fragments[1].pruning.keys) == 2, "only k places a row"


def test_partition_attribute_prunes_a_scan(t: Any) -> None:
    plan = t.plan(t.where(t.scan("p"), t.eq("p.k", 1)))
    assert isinstance(leaf(plan), TableScan)
    assert plan.fragments[1].pruning is not None
    plan = t.plan(t.where(t.scan("p", "p2"), t.eq("p2.n", 1)))
    assert plan.fragments[1].pruning is None


def test_types_must_match_exactly(t: Any) -> None:
    scan = t.scan("m")
    wide = Call(t.eq("m.k", 1).type, "=", (Cast(BIGINT, t.c("m.k")), Literal(BIGINT, 7)))
    lookup = leaf(t.plan(t.where(scan, wide)))
    assert isinstance(lookup, KeyLookup)
    assert lookup.keys == ((Literal(INTEGER, 7),),), "a widening cast is stripped"
    beyond = Call(wide.type, "=", (Cast(BIGINT, t.c("m.k")), Literal(BIGINT, 2**40)))
    assert isinstance(leaf(t.plan(t.where(scan, beyond))), TableScan)
    unknown = Call(wide.type, "=", (Cast(BIGINT, t.c("m.k")), Parameter(BIGINT, 0)))
    assert isinstance(leaf(t.plan(t.where(scan, unknown))), TableScan)


def test_both_sides_of_a_collocated_join_are_pruned(t: Any) -> None:
    joined = t.join(t.scan("m"), t.scan("p"), t.eq("m.k", "p.k"))
    plan = t.plan(t.where(joined, t.eq("m.k", 5)))
    assert len(plan.fragments) == 2
    assert plan.fragments[1].pruning is not None
    assert plan.fragments[1].pruning.keys == ((Literal(INTEGER, 5),),)


def test_no_pruning_when_rows_arrive_by_hash(t: Any) -> None:
    plan = t.plan(
        t.join(
            t.where(t.scan("m"), t.eq("m.k", 5)), t.scan("m", "other"), t.eq("m.w", "other.w"),
            kind="full",
        )
    )  # fmt: skip
    for fragment in plan.fragments:
        hashed = any(
            type(n).__name__ == "Receive" and n.traits.distribution.keys
            for n in preorder(fragment.root)
        )
        assert not (hashed and fragment.pruning)
