"""Enumeration of join orders."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from remuda.datatypes.sql import BOOLEAN
from remuda.errors import LimitExceeded
from remuda.plan.explain import preorder
from remuda.plan.expression import Call
from remuda.plan.physical import HashJoin, NestedLoopJoin
from remuda.planner.joinorder import bits, components, connected_pairs, neighbours


def graph(count: int, edges: list[tuple[int, int]]) -> list[int]:
    result = [0] * count
    for a, b in edges:
        result[a] |= 1 << b
        result[b] |= 1 << a
    return result


def connected(mask: int, edges: list[int]) -> bool:
    grown = mask & -mask
    while more := neighbours(grown, edges) & mask:
        grown |= more
    return grown == mask


SHAPES = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "clique": list(combinations(range(5), 2)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_connected_pair_once(shape: str) -> None:
    edges = graph(5, SHAPES[shape])
    pairs = connected_pairs(5, edges)
    assert pairs is not None
    expected = {
        frozenset((a, b))
        for a in range(1, 32)
        for b in range(1, 32)
        if not a & b and connected(a, edges) and connected(b, edges) and neighbours(a, edges) & b
    }
    assert len(pairs) == len(expected)
    assert {frozenset(pair) for pair in pairs} == expected


def test_bits_and_components() -> None:
    assert list(bits(0b1011)) == [0, 1, 3]
    assert components(4, graph(4, [(0, 2)])) == [0b101, 0b10, 0b1000]


@pytest.mark.parametrize("count", [3, 8, 14])
def test_a_chain_needs_no_cross_join(plans: Any, count: int) -> None:
    node = None
    parts = []
    for i in range(count):
        plans.map(f"t{i}", "k int, x int", "k", rows=1000 * (i + 1))
        scan = plans.scan(f"t{i}")
        node = scan if node is None else plans.join(node, scan)
        if i:
            parts.append(plans.eq(f"t{i - 1}.x", f"t{i}.k"))
    plan = plans.plan(plans.where(node, *parts))
    operators = [n for f in plan.fragments for n in preorder(f.root)]
    assert sum(isinstance(n, HashJoin) for n in operators) == count - 1
    assert not any(isinstance(n, NestedLoopJoin) for n in operators)


def test_the_smaller_side_is_built(plans: Any) -> None:
    plans.map("small", "k int, x int", "k", rows=10, x=10)
    plans.map("large", "k int, x int", "k", rows=1e6, x=10)
    for order in (("small", "large"), ("large", "small")):
        node = plans.join(*(plans.scan(name) for name in order), plans.eq("small.k", "large.k"))
        join = next(
            n
            for f in plans.plan(node, members=1).fragments
            for n in preorder(f.root)
            if isinstance(n, HashJoin)
        )
        assert join.right.map_name == "small"  # type: ignore[attr-defined]


def test_many_relations_are_planned_greedily(plans: Any) -> None:
    node = plans.scan(plans.map("t0", "k int, x int", "k", rows=1000).name)
    for i in range(1, 15):
        plans.map(f"t{i}", "k int, x int", "k", rows=1000 * i)
        node = plans.join(node, plans.scan(f"t{i}"), plans.eq("t0.k", f"t{i}.k"))
    plan = plans.plan(node)
    operators = [n for f in plan.fragments for n in preorder(f.root)]
    assert sum(isinstance(n, HashJoin) for n in operators) == 14
    assert len(plan.fragments) == 2, "all are partitioned by the join key"


def test_too_deep_is_a_clear_error(plans: Any) -> None:
    plans.map("t", "k int, x int", "k")
    node = plans.scan("t")
    condition = plans.eq("t.x", 1)
    for i in range(2000):
        condition = Call(BOOLEAN, "not", (Call(BOOLEAN, "or", (condition, plans.eq("t.k", i))),))
    with pytest.raises(LimitExceeded, match="too deeply"):
        plans.plan(plans.where(node, condition))
