"""Where aggregates stream over rows that come in the order of their groups."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.explain.explain import explain, preorder
from remuda.plan.logical import Logical
from remuda.plan.physical import (
    HashAggregate,
    Physical,
    Receive,
    SortRows,
    StreamingAggregate,
    inputs_of,
)


@pytest.fixture
def t(plans: Any) -> Any:
    plans.map(
        "t", "k int, a int, b text, v int", "k",
        rows=1e6, k=1e6, a=1000, b=500,
    )  # fmt: skip
    plans.map("rep", "k int, a int", "k", replicated=True, rows=1e5, k=1e5, a=1000)
    plans.map("part", "a int, k int", "a k", partition_by="a", rows=1e6, a=10_000, k=1e6)
    for name, columns in (("t", ("a", "-b")), ("rep", ("a",)), ("part", ("a",))):
        parts = tuple(IndexedColumn(c.lstrip("-"), c.startswith("-")) for c in columns)
        index = IndexDefinition(f"{name}_i", IndexKind.SORTED, parts, 1, True)
        plans.schemas[name] = replace(plans.schemas[name], indexes=(index,))
    return plans


def counted(t: Any, group: str, keys: str = "", limit: int | None = None) -> Logical:
    node: Logical = t.aggregate(t.scan("t"), group, n=("count", None), s=("sum", "t.v"))
    return t.sort(node, keys, limit) if keys or limit is not None else node


def planned(t: Any, node: Logical, members: int = 3) -> list[Physical]:
    plan = t.plan(node, members)
    assert decode_plan(encode_plan(plan)) == plan
    return [node for fragment in plan.fragments for node in preorder(fragment.root)]


def streams(t: Any, node: Logical, members: int = 3) -> bool:
    found = planned(t, node, members)
    kinds = {type(node) for node in found if isinstance(node, HashAggregate)}
    assert len(kinds) == 1
    return kinds == {StreamingAggregate}


@pytest.mark.parametrize("members", [1, 3])
def test_plans(t: Any, members: int, golden: Any) -> None:
    blocks = []
    over_windows = t.window(t.scan("t", "w"), "w.a", "w.v", r=("row_number", None))
    first = t.sort(t.scan("t", "f"), "f.b -f.a", limit=1000)
    for title, node in (
        ("the first groups, by an index", counted(t, "t.a", "t.a", 10)),
        ("an order of all its columns, backwards", counted(t, "t.b t.a", "-t.a t.b", 10)),
        ("an order of some group columns", counted(t, "t.a t.b", "t.a", 10)),
        ("a replicated map", t.sort(t.aggregate(t.scan("rep"), "rep.a"), "rep.a", 5)),
        (
            "groups whole on their member",
            t.sort(t.aggregate(t.scan("part"), "part.a", n=("count", "part.k")), "part.a", 5, 3),
        ),
        (
            "partitions of a window",
            t.sort(t.aggregate(over_windows, "w.a", m=("max", "r")), "w.a"),
        ),
        ("sorted rows", t.aggregate(first, "f.a f.b", m=("max", "f.v"))),
    ):
        blocks.append(f"-- {title}\n{explain(t.plan(node, members))}\n")
    golden.check(f"planner/streaming-{members}.golden", "\n".join(blocks))


@pytest.mark.parametrize("members", [1, 3])
def test_where_nothing_is_gained(t: Any, members: int) -> None:
    """All groups, nearly all, another order than the index has, more columns than it has."""
    assert streams(t, counted(t, "t.a", "t.a", 10), members)
    assert not streams(t, counted(t, "t.a"), members)
    assert not streams(t, counted(t, "t.a", "t.a"), members)
    assert not streams(t, counted(t, "t.a", "t.a", 900), members)
    assert not streams(t, counted(t, "t.b", "t.b", 10), members)
    assert not streams(t, counted(t, "t.a t.v", "t.a", 10), members)
    assert not streams(t, counted(t, "t.a", "n", 10), members)
    assert not streams(t, counted(t, "", "n", 10), members)
    assert not streams(t, counted(t, "t.a t.b", "t.a t.b", 10), members)  # b goes down
    assert streams(t, counted(t, "t.a t.b", "t.a -t.b", 10), members)


@pytest.mark.parametrize("members", [1, 3])
def test_order_of_another_set_of_columns(t: Any, members: int) -> None:
    """Rows sorted by (a, b) do not have all rows of one b together."""
    first = t.sort(t.scan("t", "f"), "f.a f.b", limit=1000)
    assert streams(t, t.aggregate(first, "f.b f.a"), members)
    assert streams(t, t.aggregate(first, "f.a"), members)
    assert not streams(t, t.aggregate(first, "f.b"), members)
    assert not streams(t, t.aggregate(first, "f.a f.v"), members)


def has_order(node: Physical, group: tuple[int, ...]) -> bool:
    return {key.column for key in node.traits.collation[: len(group)]} == set(group)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("seed", range(40))
def test_whatever_plan_is_picked_its_input_is_sorted(t: Any, members: int, seed: int) -> None:
    chance = random.Random(seed)
    over_windows = t.window(t.scan("t", "w"), "w.a w.b", "w.v", r=("row_number", None))
    for node in (
        counted(t, "t.a t.b", "t.a", 10),
        t.sort(t.aggregate(over_windows, "w.b w.a", m=("max", "r")), "w.a w.b"),
    ):
        plan = t.plan(node, members, lambda cost: cost * chance.lognormvariate(0, 2))
        found = [node for fragment in plan.fragments for node in preorder(fragment.root)]
        for each in found:
            if isinstance(each, StreamingAggregate):
                assert has_order(inputs_of(each)[0], each.group)
            if isinstance(each, Receive) and each.collation:
                sender = plan.fragments[each.sender_fragment].root
                assert sender.traits.collation[: len(each.collation)] == each.collation
        assert any(isinstance(n, StreamingAggregate | SortRows) for n in found)
