"""Enumeration of join orders."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from remuda.datatypes.sql import BOOLEAN
from remuda.errors import LimitExceeded
from remuda.plan.explain.explain import explain, preorder
from remuda.plan.expression import Call
from remuda.plan.logical import JoinKind
from remuda.plan.physical import HashJoin, LookupJoin, NestedLoopJoin
from remuda.planner.exploration.joinorder import (
    bits,
    block_pairs,
    blocks,
    components,
    connected_pairs,
    greedy_tree,
    neighbours,
)
from remuda.planner.exploration.joinsize import JoinSizes, SizedRelation
from remuda.planner.memo.memo import EXPRESSIONS_MAX, Memo
from remuda.planner.planner import _plan


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
    plans.map("small", "k int, x int", "k", rows=50_000, x=10)
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


def sizes(plan: Any) -> int:
    operators = [n for f in plan.fragments for n in preorder(f.root)]
    return sum(isinstance(n, HashJoin | LookupJoin) for n in operators)


def chain(plans: Any, count: int) -> Any:
    node = None
    parts = []
    for i in range(count):
        plans.map(f"t{i}", "k int, x int", "k", rows=1000 * (1 + i % 7))
        scan = plans.scan(f"t{i}")
        node = scan if node is None else plans.join(node, scan)
        if i:
            parts.append(plans.eq(f"t{i - 1}.x", f"t{i}.k"))
    return plans.where(node, *parts)


@pytest.mark.parametrize("count", [20, 50, 120])
def test_the_effort_is_bounded_and_explain_says_so(plans: Any, count: int) -> None:
    memo = Memo()
    plan = _plan(chain(plans, count), plans.context(), memo)
    memo.check()
    assert sizes(plan) == count - 1
    assert plan.notes == (f"join order of {count} relations found by heuristic",)
    assert f"Note: join order of {count} relations" in explain(plan)
    assert sum(len(group.expressions) for group in memo.groups) <= EXPRESSIONS_MAX


def test_ten_relations_are_planned_exhaustively(plans: Any) -> None:
    columns = ", ".join(f"x{i} int" for i in range(1, 10))
    node = plans.scan(plans.map("t0", f"k int, {columns}", "k", rows=1e6).name)
    for i in range(1, 10):
        plans.map(f"t{i}", "k int, x int", "k", rows=1000 * i, replicated=True)
        node = plans.join(node, plans.scan(f"t{i}"), plans.eq(f"t0.x{i}", f"t{i}.k"))
    plan = plans.plan(node)
    assert plan.notes == ()
    assert sizes(plan) == 9


def test_a_small_effort_still_gives_a_plan(plans: Any) -> None:
    for limit in (0, 60, 300):
        memo = Memo(expressions_max=limit)
        plan = _plan(chain(plans, 9), plans.context(), memo)
        assert sizes(plan) == 8
        assert bool(plan.notes) == (limit < 300)


def test_greedy_trees_and_their_pieces() -> None:
    edges = graph(9, [(i, i + 1) for i in range(8)])
    tree = greedy_tree(9, edges, lambda a, b: float((a | b).bit_count() * 100 + min(a, b)))
    assert tree is not None
    assert (tree.mask, tree.leaves) == (0b111111111, 9)
    pieces = blocks(tree, 4)
    assert all(2 <= len(operands) <= 4 for operands, _ in pieces)
    assert sum(len(joins) for _, joins in pieces) == 8
    seen = {1 << i for i in range(9)}
    for operands, joins in pieces:
        assert set(operands) <= seen, "an operand is a relation or an earlier piece"
        pairs = block_pairs(operands, joins, edges, 100)
        assert {frozenset(pair) for pair in joins} <= {frozenset(pair) for pair in pairs}
        assert block_pairs(operands, joins, edges, 0) == joins
        whole = sum(operands)
        seen.add(whole)
    assert 0b111111111 in seen
    assert greedy_tree(3, graph(3, [(0, 1)]), lambda a, b: 1.0) is None, "not connected"
    assert greedy_tree(3, graph(3, [(0, 1), (1, 2)]), lambda a, b: None) is None, "never valid"


def test_sizes_do_not_depend_on_the_order() -> None:
    relations = [SizedRelation(rows) for rows in (1e6, 1e3, 1e4)]
    classes = [{0: 1e3, 1: 1e3, 2: 1e2}]
    predicates = [(0b110, 0.5)]
    found = set()
    for first, second in ((0b011, 0b100), (0b101, 0b010), (0b110, 0b001)):
        made = JoinSizes(relations, predicates, classes)
        low = first & -first
        made.joined(low, first ^ low)
        found.add(round(made.joined(first, second)))
    assert len(found) == 1
    made = JoinSizes([SizedRelation(100), SizedRelation(1e4, JoinKind.SEMI, 1e-5)], [], [])
    assert made.outer(1, 2) == pytest.approx(10)
    made = JoinSizes([SizedRelation(100), SizedRelation(1e4, JoinKind.LEFT, 1e-5)], [], [])
    assert made.outer(1, 2) == 100


def test_too_deep_is_a_clear_error(plans: Any) -> None:
    plans.map("t", "k int, x int", "k")
    node = plans.scan("t")
    condition = plans.eq("t.x", 1)
    for i in range(2000):
        condition = Call(BOOLEAN, "not", (Call(BOOLEAN, "or", (condition, plans.eq("t.k", i))),))
    with pytest.raises(LimitExceeded, match="too deeply"):
        plans.plan(plans.where(node, condition))
