"""Estimates: selectivities, joins, groups, by distinct values, histograms and common values."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.catalog.statistics import ColumnStatistics
from remuda.datatypes.sql import BOOLEAN, DATE, INTEGER, TIMESTAMP, VARCHAR, decimal
from remuda.plan.expression import Call, Case, ColumnRef, Literal
from remuda.plan.logical import JoinKind
from remuda.planner.estimates.cardinality import (
    ROWS_MAX,
    Estimate,
    column_of,
    estimate_filter,
    estimate_groups,
    estimate_join,
    estimate_project,
    estimate_scan,
    undecided,
)
from remuda.planner.estimates.distribution import ColumnEstimate, join_share, value_in
from remuda.planner.estimates.selectivity import selectivity

SKEWED = tuple((value, share) for value, share in (("a", 0.5), ("b", 0.3)))


@pytest.fixture
def t(plans: Any) -> Any:
    plans.map(
        "t", "k int, x int, label text, d date, m money", "k", rows=10_000,
        k=10_000,
        x=ColumnStatistics(0.1, 100, 0, 1000, histogram=(0, 1, 2, 3, 1000)),
        label=ColumnStatistics(0.0, 20, "a", "z", common=SKEWED, histogram=("a", "a", "b", "z")),
        d=ColumnStatistics(0.0, 1000, 8000, 9000),
        m=ColumnStatistics(0.0, 100, 0, 10_000),
    )  # fmt: skip
    return plans


def share(t: Any, *parts: Any) -> float:
    scan = t.scan("t")
    known = estimate_scan(scan, t.statistics["t"])
    made = [part() for part in parts]
    return estimate_filter(known, t.all(*made)).rows / known.rows


def test_equality(t: Any) -> None:
    assert share(t, lambda: t.eq("t.label", "a")) == pytest.approx(0.5)
    assert share(t, lambda: t.eq("t.label", "q")) == pytest.approx(0.2 / 18)
    assert share(t, lambda: t.eq("t.x", 5)) == pytest.approx(0.9 / 100)
    assert share(t, lambda: t.eq("t.label", t.parameter(0, VARCHAR))) == pytest.approx(1 / 20)
    assert share(t, lambda: t.call("<>", "t.label", "a")) == pytest.approx(0.5)


def test_ranges_follow_the_histogram(t: Any) -> None:
    assert share(t, lambda: t.call("<", "t.x", 2)) == pytest.approx(0.9 / 2)
    assert share(t, lambda: t.call(">=", "t.x", 3)) == pytest.approx(0.9 / 4)
    assert share(t, lambda: t.call("<", "t.x", -5)) < 0.01
    assert share(t, lambda: t.call("<", "t.x", t.parameter(0, INTEGER))) == pytest.approx(0.3)


def test_two_bounds_are_one_interval(t: Any) -> None:
    between = share(t, lambda: t.call(">=", "t.d", 8200), lambda: t.call("<", "t.d", 8300))
    assert between == pytest.approx(0.1, rel=0.05)
    arm = t.all(t.call(">=", "t.d", 8200), t.call("<", "t.d", 8300))
    known = estimate_scan(t.scan("t"), t.statistics["t"])
    columns = {t.columns["t.d"].id: next(e for e in known.columns.values() if e.minimum == 8000)}
    arm = t.all(t.call(">=", "t.d", 8200), t.call("<", "t.d", 8300))
    assert selectivity(t.any(arm, arm), columns) == pytest.approx(0.19, rel=0.1)


def test_in_null_and_prefix(t: Any) -> None:
    assert share(t, lambda: t.isin("t.label", "a", "b")) == pytest.approx(0.8)
    assert share(t, lambda: t.call("is_null", "t.x")) == pytest.approx(0.1)
    assert share(t, lambda: t.call("like", "t.label", "a%")) >= 0.5
    assert share(t, lambda: t.call("like", "t.label", "q%")) < 0.3
    assert share(t, lambda: t.call("like", "t.label", "%q%")) == pytest.approx(0.1)


def test_a_literal_in_the_units_of_the_column() -> None:
    assert value_in(Literal(decimal(3, 1), 15), decimal(15, 2)) == 150
    assert value_in(Literal(INTEGER, 2), decimal(15, 2)) == 200
    assert value_in(Literal(decimal(3, 1), 15), INTEGER) == 1.5
    assert value_in(Literal(DATE, 2), TIMESTAMP) == 2 * 86_400_000_000
    assert value_in(Literal(TIMESTAMP, 86_400_000_000), DATE) == 1
    assert value_in(Literal(INTEGER, None), INTEGER) is None
    assert value_in(Call(INTEGER, "abs", ()), INTEGER) is None


def test_values_of_another_type_do_not_crash() -> None:
    known = ColumnEstimate(10, histogram=("a", "m", "z"), common=(("a", 0.5),))
    condition = Call(INTEGER, "<", (Literal(INTEGER, 3),) * 2)
    assert 0 <= selectivity(condition, {0: known}) <= 1


def test_join_of_common_values() -> None:
    skewed = ColumnEstimate(1000, common=(("a", 0.9),))
    even = ColumnEstimate(1000, common=(("a", 0.001), ("b", 0.001)))
    assert join_share(skewed, skewed) == pytest.approx(0.81, rel=0.01)
    assert join_share(skewed, even) == pytest.approx(0.001, rel=0.05)
    assert join_share(ColumnEstimate(10), ColumnEstimate(1000)) == pytest.approx(0.001)
    assert join_share(ColumnEstimate(10, 0.5), ColumnEstimate(10)) == pytest.approx(0.05)


def column(distinct: float) -> ColumnEstimate:
    return ColumnEstimate(distinct)


def test_a_key_of_several_columns_meets_one_row() -> None:
    items = Estimate(6e6, 6e6, {1: column(200e3), 2: column(10e3)})
    pairs = Estimate(8e5, 8e5, {3: column(200e3), 4: column(10e3)}, ((frozenset((3, 4)), 8e5),))
    both = ((1, 3), (2, 4))
    assert estimate_join(JoinKind.INNER, items, pairs, both, ()).rows == pytest.approx(6e6)
    plain = Estimate(8e5, 8e5, pairs.columns)
    assert estimate_join(JoinKind.INNER, items, plain, both, ()).rows < 3e6


def test_semi_and_anti_joins_by_values_seen() -> None:
    left = Estimate(1e6, 1e6, {1: column(1e5)})
    right = Estimate(4e6, 4e6, {2: column(1e5)})
    few = Estimate(1e3, 4e6, {2: column(1e5)})
    pair = ((1, 2),)
    assert estimate_join(JoinKind.SEMI, left, right, pair, ()).rows == pytest.approx(1e6)
    assert estimate_join(JoinKind.SEMI, left, few, pair, ()).rows == pytest.approx(1e4, rel=0.02)
    assert estimate_join(JoinKind.ANTI, left, few, pair, ()).rows == pytest.approx(9.9e5, rel=0.01)
    assert estimate_join(JoinKind.LEFT, left, few, pair, ()).rows == 1e6


def test_products_stay_finite() -> None:
    huge = Estimate(1e15, 1e15)
    assert estimate_join(JoinKind.INNER, huge, huge, (), ()).rows == ROWS_MAX


def test_groups_are_capped_and_keys_decide_their_row() -> None:
    key = frozenset((1,))
    known = Estimate(
        1e6, 1e6, {1: column(1e4), 2: column(1e4), 3: column(25)},
        ((key, 1e4),), ((key, frozenset((1, 2))),),
    )  # fmt: skip
    assert undecided((1, 2, 3), known.dependencies) == (1, 3)
    assert estimate_groups(known, (1, 2))[0] == pytest.approx(1e4, rel=0.01)
    assert estimate_groups(known, (2, 3))[0] == pytest.approx(2.5e5 * 0.98, rel=0.02)
    assert estimate_groups(known, (1, 2, 3))[0] <= 2.5e5
    assert estimate_groups(Estimate(10, 1e6, known.columns), (2,))[0] <= 10


def test_equal_columns_decide_each_other() -> None:
    """GROUP BY a customer's key and the name of its nation."""
    customer, nation = frozenset((1,)), frozenset((3,))
    left = Estimate(
        1e5, 1e5, {1: column(1e5), 2: column(25)}, ((customer, 1e5),),
        ((customer, frozenset((1, 2))),),
    )  # fmt: skip
    right = Estimate(
        25, 25, {3: column(25), 4: column(25)}, ((nation, 25),), ((nation, frozenset((3, 4))),)
    )
    joined = estimate_join(JoinKind.INNER, left, right, ((2, 3),), ())
    assert undecided((1, 4), joined.dependencies) == (1,)
    assert joined.keys == left.keys, "each customer meets one nation"
    many = estimate_join(JoinKind.LEFT, right, left, ((3, 2),), ())
    assert many.keys == (), "a nation meets many customers"
    assert undecided((1, 4), many.dependencies) == (1, 4), "an outer join equates nothing"


def test_projections_rename_keys() -> None:
    key = frozenset((1,))
    known = Estimate(10, 10, {}, ((key, 10.0),), ((key, frozenset((1, 2))),))
    renamed = estimate_project(known, {}, {1: 7, 2: 8})
    assert renamed.keys == ((frozenset((7,)), 10.0),)
    assert renamed.dependencies == ((frozenset((7,)), frozenset((7, 8))),)
    assert estimate_project(known, {}, {2: 8}).keys == ()


def test_computed_columns() -> None:
    columns = {1: ColumnEstimate(2500.0)}
    day = ColumnRef(DATE, 1, "day")

    def values(expression: Any) -> float:
        return column_of(expression, columns, 1e6).distinct

    def field(name: str) -> Call:
        return Call(INTEGER, "extract", (Literal(VARCHAR, name), day))

    assert values(field("year")) == pytest.approx(7.85, abs=0.01)
    assert values(field("month")) == 12
    assert values(field("epoch")) == 2500
    assert values(Call(BOOLEAN, "<", (day, day))) == 2
    one, two = Literal(INTEGER, 1), Literal(INTEGER, 2)
    assert values(Case(INTEGER, ((Call(BOOLEAN, "<", (day, day)), one),), two)) == 2
    assert values(Call(DATE, "+", (day, one))) == 2500


def test_rows_padded_by_an_outer_join_are_null(t: Any) -> None:
    """``LEFT JOIN ... WHERE right.key IS NULL`` leaves what found no match."""
    left, right = t.scan("t", "l"), t.scan("t", "r")
    known = t.statistics["t"]
    every = estimate_scan(right, known)
    few = Estimate(1000.0, every.bound, every.columns, every.keys, every.dependencies)
    pairs = ((t.columns["l.k"].id, t.columns["r.k"].id),)
    for kind, share_alone in ((JoinKind.LEFT, 0.9), (JoinKind.FULL, 9 / 11)):
        joined = estimate_join(kind, estimate_scan(left, known), few, pairs, ())
        alone = joined.columns[t.columns["r.d"].id]
        assert alone.null_fraction == pytest.approx(share_alone, abs=0.02)
        unmatched = estimate_filter(joined, t.call("is_null", "r.d"))
        assert unmatched.rows == pytest.approx(9000, rel=0.1)
    inner = estimate_join(JoinKind.INNER, estimate_scan(left, known), few, pairs, ())
    assert inner.columns[t.columns["r.d"].id].null_fraction == 0.0
