"""Which keys a scan is confined to, and which members therefore take part."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN, INTEGER, VARCHAR, array
from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.expression import Call, EachOf, Expression, Literal, Parameter
from remuda.plan.logical import Logical, Values
from remuda.plan.physical import KeyLookup
from remuda.planner.point import point_read


@pytest.fixture
def t(plans: Any) -> Any:
    plans.map("m", "k int, v int, s text", "k", rows=1e5, k=1e5, v=100)
    plans.map("c", "a int, b int, v int", "a b", rows=1e5, a=300, b=300)
    plans.map("p", "a int, b int, v int", "a b", partition_by="a", rows=1e5, a=300, b=300)
    plans.map("r", "k int, v int", "k", replicated=True, rows=1e5, k=1e5)
    return plans


def keys(t: Any, node: Logical) -> set[tuple[Any, ...]] | None:
    """The pruning keys of the only fragment at the data members; literals by value."""
    plan = t.plan(node, 3)
    assert decode_plan(encode_plan(plan)) == plan
    (fragment,) = plan.fragments[1:]
    if fragment.pruning is None:
        return None
    return {tuple(part(e) for e in key) for key in fragment.pruning.keys}


def part(expression: Expression) -> Any:
    return expression.value if isinstance(expression, Literal) else expression


def any_of(t: Any, column: str, items: Expression) -> Expression:
    return Call(BOOLEAN, "any_of", (Literal(VARCHAR, "="), t.c(column), items))


def elements(*values: Expression) -> Expression:
    return Call(array(INTEGER), "array", values)


def test_arms_of_an_or(t: Any) -> None:
    m = t.scan("m")
    one = t.all(t.eq("m.k", 1), t.call(">", "m.v", 5))
    two = t.all(t.eq("m.v", 7), t.isin("m.k", 2, 3))
    assert keys(t, t.where(m, t.any(one, two))) == {(1,), (2,), (3,)}
    assert keys(t, t.where(m, t.any(one, t.eq("m.v", 7)))) is None
    assert keys(t, t.where(m, t.any(one, two), t.call("<", "m.v", 9))) == {(1,), (2,), (3,)}


def test_composite_keys(t: Any) -> None:
    c = t.scan("c")
    one = t.all(t.eq("c.a", 1), t.eq("c.b", 2))
    two = t.all(t.eq("c.a", 3), t.eq("c.b", 4))
    assert keys(t, t.where(c, one)) == {(1, 2)}
    assert keys(t, t.where(c, t.any(one, two))) == {(1, 2), (3, 4)}
    assert keys(t, t.where(c, t.isin("c.a", 1, 2), t.eq("c.b", 4))) == {(1, 4), (2, 4)}
    # One part from every arm, the other one from beside the OR.
    either = t.any(t.all(t.eq("c.a", 1), t.eq("c.v", 2)), t.all(t.eq("c.a", 3), t.eq("c.v", 4)))
    assert keys(t, t.where(c, either, t.eq("c.b", 9))) == {(1, 9), (3, 9)}
    assert keys(t, t.where(c, t.eq("c.a", 1))) is None
    assert keys(t, t.where(c, t.any(one, t.eq("c.a", 3)))) is None


def test_part_of_the_key_places_rows(t: Any) -> None:
    p = t.scan("p")
    assert keys(t, t.where(p, t.eq("p.a", 1), t.call(">", "p.b", 2))) == {(1,)}
    arms = t.any(t.all(t.eq("p.a", 1), t.eq("p.b", 5)), t.all(t.eq("p.a", 2), t.eq("p.v", 5)))
    assert keys(t, t.where(p, arms)) == {(1,), (2,)}
    assert keys(t, t.where(p, t.eq("p.b", 1))) is None


def test_arrays(t: Any) -> None:
    one, two = t.parameter(0, INTEGER), t.parameter(1, INTEGER)
    m = t.scan("m")
    listed = elements(Literal(INTEGER, 4), one, two, Literal(INTEGER, None))
    found = keys(t, t.where(m, any_of(t, "m.k", listed)))
    assert found == {(4,), (one,), (two,), (None,)}
    whole = Literal(array(INTEGER), (5, 6))
    assert keys(t, t.where(m, any_of(t, "m.k", whole))) == {(5,), (6,)}
    given = Parameter(array(INTEGER), 0)
    assert keys(t, t.where(m, any_of(t, "m.k", given))) == {(EachOf(INTEGER, given),)}
    other = Call(BOOLEAN, "any_of", (Literal(VARCHAR, "<"), t.c("m.k"), given))
    assert keys(t, t.where(m, other)) is None


def test_arrays_of_other_types(t: Any) -> None:
    m = t.scan("m")
    wide = Parameter(array(BIGINT), 0)
    text = Parameter(array(VARCHAR), 0)
    assert keys(t, t.where(m, any_of(t, "m.k", wide))) == {(EachOf(INTEGER, wide),)}
    assert keys(t, t.where(m, any_of(t, "m.k", text))) is None


def test_a_lookup_by_array_is_a_point_read(t: Any) -> None:
    given = Parameter(array(INTEGER), 0)
    m = t.scan("m")
    plan = t.plan(t.where(m, any_of(t, "m.k", given)), 3)
    lookup = plan.fragments[1].root.input
    assert isinstance(lookup, KeyLookup)
    point = point_read(plan)
    assert point is not None
    assert point.by_array
    plain = point_read(t.plan(t.where(t.scan("m", "n"), t.eq("n.k", 1)), 3))
    assert plain is not None
    assert not plain.by_array


# --- rows of the statement -----------------------------------------------------------------------


def test_join_with_one_row(t: Any) -> None:
    """Its values are put in its place, parameters as well."""
    m, one = t.scan("m"), t.values((5, 6))
    x, y = (t.c(name) for name in list(t.columns)[-2:])
    joined = t.join(m, one, t.eq("m.k", x), t.call(">", "m.v", y))
    node, fired = t.normalize(joined)
    assert "join one row" in fired
    assert [c.id for c in node.output] == [c.id for c in joined.output]
    assert keys(t, joined) == {(5,)}
    parameter = t.parameter(0, INTEGER)
    given = t.project(t.values((0,)), w=parameter)
    again = t.join(given, t.scan("m", "n"), t.eq("n.k", "w"))
    assert keys(t, again) == {(parameter,)}


@pytest.mark.parametrize("kind", ["left", "semi", "anti", "full"])
def test_other_joins_with_one_row_stay(t: Any, kind: str) -> None:
    m, one = t.scan("m"), t.values((5,))
    x = t.c(list(t.columns)[-1])
    _, fired = t.normalize(t.join(m, one, t.eq("m.k", x), kind=kind))
    assert "join one row" not in fired


def test_one_row_by_chance_stays(t: Any) -> None:
    chance = Call(INTEGER, "random", ())
    given = t.project(t.values((0,)), w=chance)
    _, fired = t.normalize(t.join(t.scan("m"), given, t.eq("m.k", "w")))
    assert "join one row" not in fired


@pytest.mark.parametrize("kind", ["inner", "semi"])
def test_join_with_values(t: Any, kind: str) -> None:
    m, rows = t.scan("m"), t.values((1, 7), (2, 8), (1, 9), (None, 5))
    x = t.c(list(t.columns)[-2])
    joined = t.join(m, rows, t.eq("m.k", x), kind=kind)
    _, fired = t.normalize(joined)
    assert "list values" in fired
    assert keys(t, joined) == {(1,), (2,)}


@pytest.mark.parametrize("kind", ["left", "anti", "full"])
def test_values_do_not_confine_what_is_kept(t: Any, kind: str) -> None:
    m, rows = t.scan("m"), t.values((1,), (2,))
    x = t.c(list(t.columns)[-1])
    _, fired = t.normalize(t.join(m, rows, t.eq("m.k", x), kind=kind))
    assert "list values" not in fired


def test_many_values_are_joined(t: Any) -> None:
    rows = t.values(*((i,) for i in range(200)))
    assert isinstance(rows, Values)
    x = t.c(list(t.columns)[-1])
    m = t.scan("m")
    _, fired = t.normalize(t.join(m, rows, t.eq("m.k", x)))
    assert "list values" not in fired
