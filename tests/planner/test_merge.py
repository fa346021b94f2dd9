"""Where joins merge sides that come in the order of their keys, and where they keep an order."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.explain.explain import explain, preorder
from remuda.plan.expression import SortKey
from remuda.plan.logical import JoinKind, Logical, Sort
from remuda.plan.physical import (
    HashJoin,
    IndexScan,
    LookupJoin,
    MergeJoin,
    Physical,
    Receive,
    SortRows,
    inputs_of,
)


@pytest.fixture
def t(plans: Any) -> Any:
    plans.map("a", "k int, x int, s text, v int, m money", "k", rows=1e6, k=1e6, x=1e5, s=1e5)
    plans.map("b", "k int, x int, s text, v int, m price", "k", rows=1e6, k=1e6, x=1e5, s=1e5)
    plans.map("p", "x int, k int", "x k", partition_by="x", rows=1e6, x=1e5, k=1e6)
    plans.map("q", "x int, k int", "x k", partition_by="x", rows=1e6, x=1e5, k=1e6)
    plans.map("w", "k int, x int", "k", rows=1e6, k=1e6, x=1e5)
    plans.map("c", "id int, name text", "id", replicated=True, rows=1e5, id=1e5)
    for name, columns in (("a", ("x", "s")), ("b", ("x", "s")), ("p", ("x", "k")), ("q", ("x",))):
        parts = tuple(IndexedColumn(c.lstrip("-"), c.startswith("-")) for c in columns)
        index = IndexDefinition(f"{name}_i", IndexKind.SORTED, parts, 1, True)
        plans.schemas[name] = replace(plans.schemas[name], indexes=(index,))
    return plans


def first(t: Any, name: str, keys: str, limit: int = 100_000, *, nulls_first: bool = False) -> Sort:
    """A sorted subquery that stays sorted: its LIMIT needs the order."""
    node: Sort = t.sort(t.scan(name), keys, limit)
    if nulls_first:
        node = replace(node, keys=tuple(SortKey(k.column, k.descending, True) for k in node.keys))
    return node


def nodes(t: Any, node: Logical, members: int = 3) -> list[Physical]:
    plan = t.plan(node, members)
    assert decode_plan(encode_plan(plan)) == plan
    return [n for fragment in plan.fragments for n in preorder(fragment.root)]


def joins(t: Any, node: Logical, members: int = 3) -> set[type]:
    found = nodes(t, node, members)
    return {type(n) for n in found if isinstance(n, HashJoin | LookupJoin)}


def over_two_keys(t: Any, kind: str = "inner") -> Logical:
    left, right = first(t, "a", "a.x a.s"), first(t, "b", "b.x b.s")
    node: Logical = t.join(left, right, t.eq("a.s", "b.s"), t.eq("a.x", "b.x"), kind=kind)
    return node


def windowed(t: Any, name: str, keys: str) -> Logical:
    node: Logical = t.window(t.scan(name), keys, f"{name}.k", **{f"r{name}": ("row_number", None)})
    return node


@pytest.mark.parametrize("members", [1, 3])
def test_plans(t: Any, members: int, golden: Any) -> None:
    blocks = []
    by_text = t.join(first(t, "a", "a.s"), first(t, "b", "b.s"), t.eq("a.s", "b.s"), kind="left")
    windows = windowed(t, "p", "p.x p.k"), windowed(t, "q", "q.x q.k")
    over_windows = t.join(*windows, t.eq("p.x", "q.x"), t.eq("p.k", "q.k"))
    ordered = t.join(t.scan("p"), t.scan("q"), t.eq("p.x", "q.x"))
    named = t.join(t.scan("a", "o"), t.scan("c"), t.eq("o.v", "c.id"))
    for title, node in (
        ("sorted subqueries", over_two_keys(t)),
        ("and an order that the join keeps", t.sort(over_two_keys(t), "a.x a.s")),
        ("texts", by_text),
        ("windows", over_windows),
        ("the first rows, by an index and lookups", t.sort(ordered, "p.x", limit=10)),
        ("more of the first rows, by two indexes", t.sort(ordered, "p.x", limit=1000)),
        ("the first rows, each with its name", t.sort(named, "o.x", limit=10)),
    ):
        blocks.append(f"-- {title}\n{explain(t.plan(node, members))}\n")
    golden.check(f"planner/merge-{members}.golden", "\n".join(blocks))


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("kind", [k.value for k in JoinKind if k is not JoinKind.MARK])
def test_every_kind_merges_sorted_sides(t: Any, members: int, kind: str) -> None:
    if kind != "inner":  # which may be turned round
        found = [n for n in nodes(t, over_two_keys(t, kind), members) if isinstance(n, HashJoin)]
        assert [type(n) for n in found] == [MergeJoin]
        assert found[0].kind.value in (kind, "left" if kind == "right" else kind)
    assert joins(t, over_two_keys(t, kind), members) == {MergeJoin}


@pytest.mark.parametrize("members", [1, 3])
def test_where_the_order_is_another_one(t: Any, members: int) -> None:
    """One side goes down, only part of the key is sorted, keys in another order, other types."""
    two = (t.eq, "a.x", "b.x"), (t.eq, "a.s", "b.s")

    def by(left: str, right: str, **more: Any) -> set[type]:
        sides = first(t, "a", left), first(t, "b", right, **more)
        return joins(t, t.join(*sides, *(eq(x, y) for eq, x, y in two)), members)

    assert by("a.x a.s", "b.x b.s") == {MergeJoin}
    assert by("-a.x a.s", "-b.x b.s") == {MergeJoin}
    assert by("a.x a.s a.v", "b.x b.s b.k") == {MergeJoin}
    assert by("a.s a.x", "b.s b.x") == {MergeJoin}
    assert by("a.x a.s", "b.x b.s", nulls_first=True) == {MergeJoin}  # NULLs match nothing
    assert by("a.x a.s", "b.x") == {HashJoin}
    assert by("a.x", "b.x") == {HashJoin}
    assert by("a.v a.x a.s", "b.v b.x b.s") == {HashJoin}
    # Sorting one side again costs more than a hash table of numbers.
    numbers = first(t, "a", "a.x"), first(t, "b", "-b.x")
    assert joins(t, t.join(*numbers, t.eq("a.x", "b.x")), members) == {HashJoin}


def test_sides_that_are_ordered_otherwise_are_sorted_again(t: Any) -> None:
    sides = first(t, "a", "a.x a.s"), first(t, "b", "b.x -b.s")
    node = t.join(*sides, t.eq("a.x", "b.x"), t.eq("a.s", "b.s"))
    for merge in (n for n in nodes(t, node) if isinstance(n, MergeJoin)):
        assert_sorted(merge)


@pytest.mark.parametrize("members", [1, 3])
def test_decimals_of_different_scales(t: Any, members: int) -> None:
    """150 of scale 1 is 15.0, of scale 2 it is 1.50: sorted alike, but not by the same numbers."""
    left, right = first(t, "a", "a.m"), first(t, "b", "b.m")
    same = t.join(left, right, t.eq("a.m", "b.m"))  # (15, 2) and (7, 2)
    for merge in (n for n in nodes(t, same, members) if isinstance(n, MergeJoin)):
        assert_sorted(merge)
    from remuda.planner.implementation.merge import _same_order  # noqa: PLC0415

    columns = {name: t.columns[name].type for name in ("a.m", "b.m", "a.x", "a.s")}
    assert _same_order(columns["a.m"], columns["b.m"])
    assert not _same_order(columns["a.m"], replace(columns["b.m"], scale=3))
    assert not _same_order(columns["a.x"], columns["a.s"])


@pytest.mark.parametrize("members", [1, 3])
def test_small_or_unsorted_inputs_are_hashed(t: Any, members: int) -> None:
    for left, right in (
        (lambda: t.scan("a"), lambda: t.scan("b")),
        (lambda: first(t, "a", "a.x a.s", 10), lambda: first(t, "b", "b.x b.s", 10)),
    ):
        node = t.join(left(), right(), t.eq("a.x", "b.x"), t.eq("a.s", "b.s"))
        assert joins(t, node, members) == {HashJoin}


@pytest.mark.parametrize("members", [1, 3])
def test_first_rows_of_joins(t: Any, members: int) -> None:
    """Index scans below joins are read in order for a small LIMIT only, and only if it keeps."""

    def scans(node: Logical) -> int:
        return sum(isinstance(n, IndexScan) for n in nodes(t, node, members))

    def joined(kind: str = "inner") -> Logical:
        node: Logical = t.join(t.scan("p"), t.scan("q"), t.eq("p.x", "q.x"), kind=kind)
        return node

    assert scans(t.sort(joined(), "p.x", limit=10))
    assert scans(t.sort(joined("left"), "p.x", limit=10))
    assert scans(t.sort(joined("semi"), "-p.x", limit=10))
    assert not scans(joined())
    assert not scans(t.sort(joined(), "p.x"))
    assert not scans(t.sort(joined(), "p.x", limit=9_000_000))
    assert not scans(t.sort(joined(), "q.k", limit=10))


def assert_sorted(node: MergeJoin) -> None:
    for side, keys in zip(inputs_of(node), (node.left_keys, node.right_keys), strict=True):
        found = side.traits.collation[: len(keys)]
        assert tuple(key.column for key in found) == keys
        assert [key.descending for key in found] == [key.descending for key in node.order]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("seed", range(40))
def test_whatever_plan_is_picked_its_sides_are_sorted(t: Any, members: int, seed: int) -> None:
    chance = random.Random(seed)
    kind = chance.choice(["inner", "left", "semi", "anti", "full", "right"])
    windows = windowed(t, "p", "p.x p.k"), windowed(t, "q", "q.x q.k")
    more = t.join(*windows, t.eq("p.x", "q.x"), t.eq("p.k", "q.k"), kind=kind)
    top = t.join(t.scan("p", "y"), t.scan("q", "z"), t.eq("y.x", "z.x"), kind="left")
    for node in (over_two_keys(t, kind), more, t.sort(top, "y.x", limit=10)):
        plan = t.plan(node, members, lambda cost: cost * chance.lognormvariate(0, 2))
        found = [n for fragment in plan.fragments for n in preorder(fragment.root)]
        for each in found:
            if isinstance(each, MergeJoin):
                assert_sorted(each)
            if isinstance(each, Receive) and each.collation:
                sender = plan.fragments[each.sender_fragment].root
                assert sender.traits.collation[: len(each.collation)] == each.collation
        assert any(isinstance(n, HashJoin | LookupJoin) for n in found)
        if isinstance(node, Sort):
            assert any(isinstance(n, SortRows | IndexScan) for n in found)
