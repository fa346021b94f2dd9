"""How subqueries become joins: each way fires where it should, and not where it would be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import FixedStatistics
from remuda.errors import NotSupported
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.explain.explain import explain
from remuda.plan.explain.logical import logical_text
from remuda.plan.logical import DependentJoin, Join, JoinKind, Logical, MarkJoin
from remuda.plan.uses import operators_of, subqueries_of
from remuda.planner.algebra import highest_column, nodes_of
from remuda.planner.context import PlanningContext
from remuda.planner.normalize import normalize
from remuda.planner.planner import plan_query
from remuda.planner.rules.rule import Rewriting
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import BoundQuery, CreateMapStatement

MAPS = (
    "create table o (k int primary key, a int, b int not null, s varchar)",
    "create table t (k int primary key, a int, x int not null, s varchar)",
    "create table u (k int, n int, a int, primary key (k, n))",
    "create table r (a int primary key, name varchar) with (replicated = true)",
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    catalog = Catalog()
    for text in MAPS:
        created = bind(parse(text), catalog)
        assert isinstance(created, CreateMapStatement)
        catalog, _ = catalog.with_map(created.schema, if_not_exists=False)
    return catalog


def fold(expression: Any) -> Any:
    return evaluate_constant(expression)


def bound(catalog: Catalog, text: str) -> Logical:
    statement = bind(parse(text), catalog)
    assert isinstance(statement, BoundQuery)
    return statement.plan


def context(members: int = 3) -> PlanningContext:
    return PlanningContext(FixedStatistics({}), members, fold=fold)


def normal(catalog: Catalog, text: str) -> tuple[Logical, set[str]]:
    plan = bound(catalog, text)
    rewriting = Rewriting(context(), highest_column(plan) + 1, strict=True)
    node = normalize(plan, rewriting)
    assert not any(isinstance(n, DependentJoin) for n in nodes_of(node))
    assert not any(any(subqueries_of(n)) for n in operators_of(node))
    return node, set(rewriting.fired)


def kinds(node: Logical) -> list[JoinKind]:
    return [n.kind for n in nodes_of(node) if isinstance(n, Join)]


def marks(node: Logical) -> list[MarkJoin]:
    return [n for n in nodes_of(node) if isinstance(n, MarkJoin)]


NORMAL_FORMS = """
select k from o where exists (select 1 from t where t.a = o.a)
select k from o where not exists (select 1 from t where t.a = o.a and t.x > o.b)
select k from o where b in (select x from t)
select k from o where b not in (select x from t)
select k from o where a not in (select a from t)
select k from o where a not in (select a from t where t.s = o.s)
select k from o where (a, b) not in (select a, x from t)
select k, a in (select a from t) from o
select k, exists (select 1 from t where t.a = o.a and t.x <> o.b) from o
select k from o where b = 1 or a in (select a from t)
select k from o where b > all (select x from t where t.a = o.a)
select k, (select max(x) from t) from o
select k, (select max(x) from t where t.a = o.a) from o
select k, (select count(*) from t where t.a = o.a) from o
select k, (select count(*) from t where t.a > o.a) from o
select k, (select s from t where t.k = o.a) from o
select k, (select s from t where t.a = o.a) from o
select (select s from t)
select k, (select x from t where t.a = o.a order by x limit 1) from o
select k, (select max(q.n) from (select count(*) n from t where t.a = o.a) q) from o
select k, case when b <> 0 then (select max(x) from t where x > 10 / o.b) end from o
select k from o where exists (select 1 from t where t.a = o.a and exists (select 1 from u where u.a = o.b and u.k = t.k))
select o.k, l.n from o, lateral (select count(*) n from t where t.a = o.a) l
select o.k, l.x from o left join lateral (select x from t where t.a = o.a order by x limit 2) l on true
select o.k from o left join t on t.a = o.a and exists (select 1 from r where r.a = t.a)
select o.k from o left join t on t.a = o.a and exists (select 1 from r where r.a = t.x + o.b)
select k from o order by k limit (select count(*) from r)
"""  # noqa: E501


def test_normal_forms(catalog: Catalog, golden: Any) -> None:
    blocks = []
    for text in NORMAL_FORMS.strip().splitlines():
        node, fired = normal(catalog, text)
        ways = sorted(name for name in fired if "subquery" in name or "aggregate to left" in name)
        more = sorted(name for name in fired if "lateral" in name or "mark join" in name)
        blocks.append(
            f"{text}\n-- {', '.join([*ways, *more]) or 'no rule'}\n{logical_text(node)}\n"
        )
    golden.check("planner/unnesting.golden", "\n".join(blocks))


PLANS = """
select k, a in (select a from t) from o
select k, exists (select 1 from t where t.a = o.a and t.x <> o.b) from o
select k from o where a not in (select a from t)
select k, (select count(*) from t where t.a > o.a) from o
select o.k, l.x from o left join lateral (select x from t where t.a = o.a order by x limit 2) l on true
"""  # noqa: E501


@pytest.mark.parametrize("members", [1, 3])
def test_plans(catalog: Catalog, golden: Any, members: int) -> None:
    blocks = []
    for text in PLANS.strip().splitlines():
        plan = plan_query(bound(catalog, text), context(members))
        blocks.append(f"{text}\n{explain(plan)}\n")
    golden.check(f"planner/unnesting-plans-{members}.golden", "\n".join(blocks))


def test_subquery_to_semi_join(catalog: Catalog) -> None:
    node, fired = normal(catalog, "select k from o where exists (select 1 from t where t.a = o.a)")
    assert "subquery to semi join" in fired
    assert kinds(node) == [JoinKind.SEMI]
    # Below OR the row may stay without a match.
    node, fired = normal(catalog, "select k from o where b = 1 or k in (select k from t)")
    assert "subquery to semi join" not in fired
    assert "subquery to mark join" in fired
    assert kinds(node) == []


def test_subquery_to_anti_join(catalog: Catalog) -> None:
    node, fired = normal(catalog, "select k from o where b not in (select x from t)")
    assert "subquery to anti join" in fired
    assert kinds(node) == [JoinKind.ANTI]
    # With NULLs on either side no row of o can be chosen by equality alone.
    node, fired = normal(catalog, "select k from o where a not in (select x from t)")
    assert "subquery to anti join" not in fired
    assert [(mark.guard, mark.condition is None) for mark in marks(node)] == [(None, False)]


def test_subquery_to_mark_join(catalog: Catalog) -> None:
    node, fired = normal(catalog, "select k, b in (select x from t) from o")
    assert "subquery to mark join" in fired
    (mark,) = marks(node)
    assert mark.condition is None, "nothing can be NULL"
    assert not mark.mark.nullable
    node, _ = normal(catalog, "select k, a in (select x from t where t.s = o.s) from o")
    (mark,) = marks(node)
    assert mark.guard is not None
    assert mark.condition is not None, "an unknown correlation hides the row, an unknown = does not"
    assert mark.mark.nullable


def test_mark_join_to_semi_join(catalog: Catalog) -> None:
    text = "select * from (select k, b in (select x from t) m from o) q where"
    node, fired = normal(catalog, f"{text} m")
    assert "mark join to semi join" in fired
    assert kinds(node) == [JoinKind.SEMI]
    node, fired = normal(catalog, f"{text} not m")
    assert kinds(node) == [JoinKind.ANTI]
    nullable = "select * from (select k, a in (select a from t) m from o) q where"
    node, fired = normal(catalog, f"{nullable} not m")
    assert "mark join to semi join" not in fired, "NULL is not false"
    node, fired = normal(catalog, f"{nullable} m is not true")
    assert "mark join to semi join" not in fired


def test_push_filter_into_mark_join(catalog: Catalog) -> None:
    text = "select * from (select k, b, a in (select a from t) m from o) q"
    _, fired = normal(catalog, f"{text} where b > 3")
    assert "push filter into mark join" in fired
    _, fired = normal(catalog, f"{text} where m is null")
    assert "push filter into mark join" not in fired


def test_prune_empty_mark_join(catalog: Catalog) -> None:
    node, fired = normal(catalog, "select k, a in (select a from t where false) from o")
    assert "prune empty mark join" in fired
    assert marks(node) == []


def test_compute_mark_join_keys(catalog: Catalog) -> None:
    _, fired = normal(catalog, "select k, exists (select 1 from t where t.a = o.a + 1) from o")
    assert "compute mark join keys" in fired
    _, fired = normal(catalog, "select k, exists (select 1 from t where t.a > o.a + 1) from o")
    assert "compute mark join keys" not in fired


def test_null_safe_keys(catalog: Catalog) -> None:
    text = "select o.k from o left join t on t.a is not distinct from o.a"
    _, fired = normal(catalog, text)
    assert "null-safe keys" in fired
    _, fired = normal(catalog, "select o.k from o left join t on t.a is distinct from o.a")
    assert "null-safe keys" not in fired


def test_correlated_aggregate_to_left_join(catalog: Catalog) -> None:
    node, fired = normal(catalog, "select k, (select sum(x) from t where t.a = o.a) from o")
    assert {"correlated aggregate to left join", "subquery bound by equality"} <= fired
    assert "subquery over domain" not in fired
    assert kinds(node) == [JoinKind.LEFT]
    # Not an equality: the values of o.a come from o.
    node, fired = normal(catalog, "select k, (select sum(x) from t where t.a < o.a) from o")
    assert "subquery over domain" in fired
    assert "subquery bound by equality" not in fired


def test_a_column_of_another_type_is_no_binding(catalog: Catalog) -> None:
    _, fired = normal(catalog, "select k, (select sum(x) from t where t.a + 0.5 = o.a) from o")
    assert "subquery bound by equality" not in fired
    assert "subquery over domain" in fired


def test_scalar_subquery_to_join(catalog: Catalog) -> None:
    node, fired = normal(catalog, "select k, (select max(x) from t) from o")
    assert "scalar subquery to join" in fired
    assert kinds(node) == [JoinKind.INNER]
    node, _ = normal(catalog, "select k, (select x from t limit 1) from o")
    assert kinds(node) == [JoinKind.LEFT], "the row may be missing"


def test_scalar_subquery_by_key_to_left_join(catalog: Catalog) -> None:
    node, fired = normal(catalog, "select k, (select s from t where t.k = o.a) from o")
    assert "scalar subquery by key to left join" in fired
    assert "single_row" not in logical_text(node)
    # A part of the key finds several rows.
    node, fired = normal(catalog, "select k, (select a from u where u.k = o.a) from o")
    assert "scalar subquery by key to left join" not in fired
    assert "scalar subquery to left join" in fired
    assert "single_row" in logical_text(node)


def test_lateral(catalog: Catalog) -> None:
    text = "select o.k, l.x from o left join lateral (select x from t where t.a = o.a) l on true"
    node, fired = normal(catalog, text)
    assert "lateral to join" in fired
    assert kinds(node) == [JoinKind.LEFT]
    text = "select o.k, g from o, lateral generate_series(1, o.b) g"
    node, fired = normal(catalog, text)
    assert "lateral function over input" in fired
    assert kinds(node) == []


def test_what_may_fail_sees_only_its_rows(catalog: Catalog) -> None:
    """The division is computed for values of the domain, after the arm of CASE was taken."""
    text = "select case when b <> 0 then (select max(x) from t where x > 10 / o.b) end from o"
    node, fired = normal(catalog, text)
    assert "subquery over domain" in fired
    shown = logical_text(node)
    assert shown.index("10 / ") < shown.index("<> 0", shown.index("10 / "))
    _, fired = normal(catalog, "select (select max(x) from t where x > o.b) from o where b <> 0")
    assert "subquery bound by equality" not in fired


OVER_GROUPING_SETS = """
select (select * from (select max(o.s || t.s) from t group by grouping sets ((o.k), ()) offset 1) q limit 1) from o where k = 1
select (select max(m) from (select max(o.s || t.s) m from t group by grouping sets ((o.k), ()) union all select s from t where t.k = o.k limit 3) q) from o where k = 1
select o.k, l.m from o, lateral (select o.s, max(t.s) m from t group by rollup (o.s) offset 1 limit 2) l where k = 1
select k from o where exists (select 1 from t group by cube (o.k, t.a) offset 1) and k = 1
select k from o where a in (select max(t.a + o.b) from t group by grouping sets ((o.k), (t.a)) offset 1) and k = 1
select (select (select max(o.s || t.s) from u where u.a = t.k group by grouping sets ((o.k), (t.s)) offset 1 limit 1) from t group by grouping sets ((o.k, t.k, t.s), (t.k, t.s)) offset 1 limit 1) from o where k = 1
select 1 from (select k, a, count(*) from t group by k, rollup (a)) q join o on o.k = q.k where o.k in (1, 2)
select 1 from (select k, a, count(*) from (select k, a, count(*) from t group by k, rollup (a)) q group by k, cube (a)) q join o on o.k = q.k where o.k > 1
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("text", OVER_GROUPING_SETS)
def test_filters_below_grouping_sets_are_inferred_once(catalog: Catalog, text: str) -> None:
    plan = bound(catalog, text)
    rewriting = Rewriting(context(), highest_column(plan) + 1, strict=True)
    node = normalize(plan, rewriting)
    joins = len(kinds(node)) + len(marks(node))
    assert rewriting.fired.get("infer predicates", 0) <= joins
    assert max(rewriting.fired.values()) <= len(list(nodes_of(node)))


def test_a_subquery_used_twice_is_there_once(catalog: Catalog) -> None:
    text = "select k, (select max(x) from t), (select max(x) from t) + 1 from o"
    node, _ = normal(catalog, text)
    assert kinds(node) == [JoinKind.INNER]


def test_full_join_with_both_sides_in_a_subquery(catalog: Catalog) -> None:
    text = "select 1 from o full join t on exists (select 1 from r where r.a = o.a + t.a)"
    with pytest.raises(NotSupported, match="FULL JOIN"):
        normal(catalog, text)
