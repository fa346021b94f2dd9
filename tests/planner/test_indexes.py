"""When secondary indexes are used, and how: access paths, order, lookup joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from remuda.catalog.statistics import ColumnStatistics
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.sql import INTEGER
from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.explain.explain import explain
from remuda.plan.expression import Expression
from remuda.plan.index_access import IndexIntersection, IndexProbe, IndexUnion, probes_of
from remuda.plan.logical import Logical
from remuda.plan.physical import IndexOrder, IndexScan, LookupJoin, Physical, inputs_of
from remuda.planner.memo.index_paths import fixed_prefix

ROWS = 1_000_000


def nodes(root: Physical) -> list[Physical]:
    return [root, *(below for child in inputs_of(root) for below in nodes(child))]


@pytest.fixture
def grid(plans: Any) -> Any:
    """``t`` with a million rows, ``few`` with ten, and the indexes that a test asks for."""
    plans.map(
        "t", "id bigint, a int, b text, c int, d date, f bool, m money", "id", rows=ROWS,
        id=ROWS, a=1000, b=50_000, c=20,
        d=ColumnStatistics(distinct=2000, minimum=0, maximum=2000), f=2,
        m=ColumnStatistics(distinct=100_000, minimum=0, maximum=1_000_000),
    )  # fmt: skip
    plans.map("few", "k bigint, a int, t_id bigint", "k", rows=10, k=10, a=10, t_id=10)
    plans.map("rep", "k bigint, a int", "k", replicated=True, rows=200_000, k=200_000, a=20_000)
    return plans


def define(plans: Any, name: str, *texts: str, ready: bool = True) -> None:
    """``texts``: kind and columns, ``-`` in front of one that goes down."""
    made = []
    for number, text in enumerate(texts, 1):
        kind, *columns = text.split()
        parsed = tuple(IndexedColumn(c.lstrip("-"), c.startswith("-")) for c in columns)
        label = f"{kind[0]}_{'_'.join(c.lstrip('-') for c in columns)}"
        made.append(IndexDefinition(label, IndexKind(kind), parsed, number, ready))
    plans.schemas[name] = replace(plans.schemas[name], indexes=tuple(made))


def planned(plans: Any, node: Logical, members: int = 3) -> list[Physical]:
    plan = plans.plan(node, members)
    assert decode_plan(encode_plan(plan)) == plan
    return [node for fragment in plan.fragments for node in nodes(fragment.root)]


def access(plans: Any, *conditions: Expression) -> IndexScan | None:
    scan = plans.where(plans.last, *conditions)
    found = [node for node in planned(plans, scan) if isinstance(node, IndexScan)]
    return found[0] if found else None


def names(scan: IndexScan | None) -> list[str]:
    return [] if scan is None else [probe.index for probe in probes_of(scan.access)]


@pytest.fixture
def t(grid: Any) -> Any:
    def make(*texts: str, ready: bool = True) -> Any:
        define(grid, "t", *texts, ready=ready)
        grid.last = grid.scan("t")
        return grid

    return make


# --- which index ---------------------------------------------------------------------------------


def test_without_a_ready_index_everything_is_scanned(t: Any) -> None:
    p = t("sorted a", ready=False)
    assert access(p, p.eq("t.a", 5)) is None


def test_equality_uses_any_kind(t: Any) -> None:
    for kind in ("sorted", "hash", "bitmap"):
        p = t(f"{kind} a")
        assert names(access(p, p.eq("t.a", 5))) == [f"{kind[0]}_a"]


def test_a_condition_that_leaves_many_rows_scans(t: Any) -> None:
    p = t("sorted f", "hash f", "sorted d")
    assert access(p, p.eq("t.f", True)) is None
    assert access(p, p.call(">", "t.d", 1000)) is None


def test_a_range_needs_a_sorted_index(t: Any) -> None:
    p = t("hash d")
    narrow = (p.call(">=", "t.d", 100), p.call("<", "t.d", 110))
    assert access(p, *narrow) is None
    p = t("sorted d")
    narrow = (p.call(">=", "t.d", 100), p.call("<", "t.d", 110))
    found = access(p, *narrow)
    assert found is not None
    assert isinstance(found.access, IndexProbe)
    ((test,),) = found.access.choices
    assert (test.low_inclusive, test.high_inclusive) == (True, False)


def test_components_are_taken_in_order(t: Any) -> None:
    p = t("sorted a d b")
    found = access(p, p.eq("t.b", "x"), p.eq("t.a", 5), p.call(">", "t.d", 1990))
    assert found is not None
    assert isinstance(found.access, IndexProbe)
    assert [len(tests) for tests in found.access.choices] == [2], "b stands behind a range"
    p = t("sorted d a")
    assert access(p, p.eq("t.a", 5)) is None, "the first component has no test"


def test_hash_needs_all_components(t: Any) -> None:
    p = t("hash a b")
    assert access(p, p.eq("t.a", 5)) is None
    p = t("hash a b")
    assert names(access(p, p.eq("t.b", "x"), p.isin("t.a", 1, 2, 3))) == ["h_a_b"]


def test_in_is_several_points(t: Any) -> None:
    p = t("sorted a b")
    found = access(p, p.isin("t.a", 1, 2), p.isin("t.b", "x", "y", "z"))
    assert found is not None
    assert isinstance(found.access, IndexProbe)
    assert len(found.access.choices) == 6


def test_or_of_one_column_is_one_probe_and_of_several_a_union(t: Any) -> None:
    p = t("sorted a", "hash b")
    found = access(p, p.any(p.eq("t.a", 1), p.eq("t.a", 7)))
    assert found is not None
    assert isinstance(found.access, IndexProbe)
    p = t("sorted a", "hash b")
    found = access(p, p.any(p.eq("t.a", 1), p.eq("t.b", "x")))
    assert found is not None
    assert isinstance(found.access, IndexUnion)
    p = t("sorted a")
    assert access(p, p.any(p.eq("t.a", 1), p.eq("t.b", "x"))) is None


def test_indexes_are_combined_where_one_leaves_many_rows(t: Any) -> None:
    p = t("bitmap c", "sorted a")
    found = access(p, p.eq("t.c", 1), p.eq("t.a", 7))
    assert names(found) == ["s_a"], "a thousand rows are few"
    p = t("sorted c", "sorted d")
    narrow = (p.eq("t.c", 3), p.call(">=", "t.d", 100), p.call("<", "t.d", 300))
    found = access(p, *narrow)
    assert found is None or isinstance(found.access, IndexIntersection)


def test_null_tests(t: Any) -> None:
    p = t("sorted b")
    p.statistics["t"].columns["b"] = ColumnStatistics(distinct=50_000, null_fraction=0.0001)
    assert names(access(p, p.call("is_null", "t.b"))) == ["s_b"]
    p = t("sorted b")
    assert access(p, p.call("is_not_null", "t.b")) is None


def test_like_with_a_fixed_beginning(t: Any) -> None:
    for pattern, used in (("abcdef%", True), ("%abc", False), ("_bc%", False)):
        p = t("sorted b")
        found = access(p, p.call("like", "t.b", pattern))
        assert (names(found) == ["s_b"]) is used or found is None
    assert fixed_prefix(r"a\%b_c", "\\") == "a%b"
    assert fixed_prefix("plain", "\\") == "plain"
    assert fixed_prefix("%", "\\") == ""
    assert fixed_prefix("a!_b%", "!") == "a_b"


def test_parameters_are_values(t: Any) -> None:
    p = t("sorted a")
    assert names(access(p, p.eq("t.a", p.parameter(0, INTEGER)))) == ["s_a"]


def test_the_key_is_better(t: Any) -> None:
    p = t("sorted id", "sorted a")
    found = planned(p, p.where(p.last, p.eq("t.id", 5), p.eq("t.a", 7)))
    assert not any(isinstance(node, IndexScan) for node in found)


# --- order ---------------------------------------------------------------------------------------


def ordered(p: Any, keys: str, limit: int | None, *conditions: Expression) -> IndexOrder | None:
    source = p.where(p.last, *conditions) if conditions else p.last
    for node in planned(p, p.sort(source, keys, limit)):
        if isinstance(node, IndexScan) and node.order is not IndexOrder.NONE:
            return node.order
    return None


def test_order_by_with_limit_reads_the_index_in_order(t: Any) -> None:
    p = t("sorted d")
    assert ordered(p, "t.d", 10) is IndexOrder.FORWARD
    assert ordered(p, "-t.d", 10) is IndexOrder.BACKWARD
    assert ordered(p, "t.d", None) is None, "all rows are sorted more cheaply"
    assert ordered(p, "t.a", 10) is None


def test_directions_of_several_columns(t: Any) -> None:
    p = t("sorted a -d")
    assert ordered(p, "t.a -t.d", 10) is IndexOrder.FORWARD
    assert ordered(p, "-t.a t.d", 10) is IndexOrder.BACKWARD
    assert ordered(p, "t.a t.d", 10) is None
    assert ordered(p, "t.a", 10) is IndexOrder.FORWARD


def test_columns_with_one_value_do_not_matter(t: Any) -> None:
    p = t("sorted c d")
    assert ordered(p, "t.d", 10, p.eq("t.c", 3)) is IndexOrder.FORWARD
    assert ordered(p, "t.d", 10, p.isin("t.c", 3, 4)) is None


def test_a_hash_index_has_no_order(t: Any) -> None:
    p = t("hash d", "bitmap c")
    assert ordered(p, "t.d", 10) is None


# --- lookup joins --------------------------------------------------------------------------------


def joined(p: Any, *conditions: Any, kind: str = "inner", members: int = 3) -> LookupJoin | None:
    node = p.join(p.scan("few"), p.scan("t"), *(make() for make in conditions), kind=kind)
    found = [node for node in planned(p, node, members) if isinstance(node, LookupJoin)]
    return found[0] if found else None


def test_few_rows_look_up_by_key_at_the_owners(grid: Any) -> None:
    p = grid
    for kind in ("inner", "left", "semi", "anti"):
        found = joined(p, lambda: p.eq("few.t_id", "t.id"), kind=kind)
        assert found is not None, kind
        assert (found.index_id, found.limited) == (0, False)


def test_by_index_inner_rows_are_everywhere(grid: Any) -> None:
    define(grid, "t", "sorted a")
    p = grid
    found = joined(p, lambda: p.eq("few.a", "t.a"))
    assert found is not None
    assert (found.index, found.limited) == ("s_a", True)
    for kind in ("left", "semi", "anti"):
        assert joined(p, lambda: p.eq("few.a", "t.a"), kind=kind) is None, kind
        assert joined(p, lambda: p.eq("few.a", "t.a"), kind=kind, members=1) is not None, kind


def test_many_rows_are_hashed(grid: Any) -> None:
    define(grid, "rep", "sorted a")
    p = grid
    node = p.join(p.scan("t"), p.scan("rep"), p.eq("t.a", "rep.a"))
    assert not any(isinstance(node, LookupJoin) for node in planned(p, node))


def test_a_hash_index_is_checked_again(grid: Any) -> None:
    define(grid, "t", "hash a")
    p = grid
    found = joined(p, lambda: p.eq("few.a", "t.a"))
    assert found is not None
    assert found.residual is not None


# --- whole plans ---------------------------------------------------------------------------------


def test_plans_as_text(grid: Any, golden: Any) -> None:
    define(grid, "t", "sorted a -d", "hash b", "bitmap c", "sorted m", "bitmap f")
    define(grid, "rep", "sorted a")
    p = grid
    texts = []

    def add(title: str, node: Logical) -> None:
        texts.append(f"-- {title}\n{explain(p.plan(node))}\n")

    s = p.scan("t")
    add("a point and a range", p.where(s, p.eq("t.a", 5), p.call(">", "t.d", 1900)))
    s = p.scan("t")
    add("points", p.where(s, p.isin("t.b", "x", "y"), p.eq("t.f", True)))
    s = p.scan("t")
    both = p.any(p.eq("t.b", "x"), p.all(p.eq("t.a", 5), p.eq("t.d", 7)))
    add("a union", p.where(s, both))
    s = p.scan("t")
    money = (p.call(">=", "t.m", 100), p.call("<", "t.m", 400))
    add("a range, aggregated", p.aggregate(p.where(s, *money), "", n=("count", None)))
    s = p.scan("t")
    add("in order", p.sort(p.where(s, p.eq("t.c", 3)), "t.a -t.d", 10, 5))
    s = p.scan("few")
    add(
        "lookups by key and by index",
        p.join(
            p.join(s, p.scan("t"), p.eq("few.t_id", "t.id")),
            p.scan("rep"),
            p.eq("few.a", "rep.a"),
            kind="left",
        ),
    )
    s = p.where(p.scan("rep"), p.eq("rep.a", p.parameter(0, INTEGER)))
    add("a replicated map", s)
    golden.check("planner/indexes.golden", "\n".join(texts))
