"""Every rewriting rule: that it fires, and that it does not where it would be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remuda.datatypes.sql import BOOLEAN, INTEGER
from remuda.errors import DivisionByZero
from remuda.plan import logical
from remuda.plan.expression import Call, Case, Expression, Literal, conjuncts
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    MarkJoin,
    Project,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Supplied,
    Unfold,
    Union,
    Values,
    Window,
)
from remuda.plan.printing import expression_text
from remuda.planner.algebra import make_join, make_mark_join, nodes_of
from remuda.planner.normalize import (
    DERIVE,
    FINISH,
    FIRINGS_MIN,
    FIRINGS_PER_NODE,
    SIMPLIFY,
    normalize,
)
from remuda.planner.rules.rule import Rewriting, Rule
from remuda.planner.sharing import SharedRead


@pytest.fixture
def t(plans: Any) -> Any:
    """Maps a(k, x, y), b(k, x, y), c(k, x, y), all keyed by k."""
    for name in "abc":
        plans.map(name, "k int, x int, y int", "k")
    return plans


def find(node: Logical, kind: type) -> Any:
    return next(n for n in nodes_of(node) if isinstance(n, kind))


def has(node: Logical, kind: type) -> bool:
    return any(isinstance(n, kind) for n in nodes_of(node))


def filters(node: Logical, alias: str) -> list[str]:
    """What is tested right above the scan of ``alias``."""
    for n in nodes_of(node):
        if isinstance(n, Filter) and isinstance(n.input, Scan) and n.input.alias == alias:
            return sorted(expression_text(part) for part in conjuncts(n.condition))
    return []


def test_every_rule_is_named_once_and_tested() -> None:
    names = [rule.name for rule in (*FINISH, *DERIVE)]
    assert len(names) == len(set(names))
    files = Path(__file__).parent.glob("test_*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert [name for name in names if f'"{name}"' not in text] == []


# --- expressions -----------------------------------------------------------------------------


def simplified(t: Any, condition: Expression) -> Expression | None:
    node, _ = t.normalize(t.where(t.scan("a"), condition))
    found = [n for n in nodes_of(node) if isinstance(n, Filter)]
    return found[0].condition if found else None


def test_fold_constants(t: Any) -> None:
    def fold(e: Expression) -> int:
        assert isinstance(e, Call)
        left, right = (a.value for a in e.arguments)  # type: ignore[attr-defined]
        if e.function == "/":
            raise DivisionByZero("division by zero")
        return left + right

    t.fold = fold
    a = t.scan("a")
    five = Call(INTEGER, "+", (Literal(INTEGER, 2), Literal(INTEGER, 3)))
    node, fired = t.normalize(t.where(a, t.eq("a.x", five)))
    assert "fold constants" in fired
    assert filters(node, "a") == ["x = 5"]
    # What cannot be computed is left for the execution: it may never be evaluated.
    broken = Call(INTEGER, "/", (Literal(INTEGER, 1), Literal(INTEGER, 0)))
    node, fired = t.normalize(t.where(a, t.eq("a.x", broken)))
    assert "fold constants" not in fired
    assert filters(node, "a") == ["x = 1 / 0"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda t, p: Call(BOOLEAN, "or", (p, Literal(BOOLEAN, False))), "x = 1"),
        (lambda t, p: Call(BOOLEAN, "and", (p, p)), "x = 1"),
        (lambda t, p: Call(BOOLEAN, "not", (Call(BOOLEAN, "not", (p,)),)), "x = 1"),
        (lambda t, p: Call(BOOLEAN, "not", (t.call("<", "a.x", 3),)), "x >= 3"),
        (lambda t, p: t.any(p, t.eq("a.x", 2)), "x IN (1, 2)"),
        (lambda t, p: t.isin("a.x", 1, 1), "x = 1"),
        (
            lambda t, p: Call(BOOLEAN, "not", (t.any(p, t.eq("a.y", 2)),)),
            "x <> 1 AND y <> 2",
        ),
        (lambda t, p: Case(BOOLEAN, ((Literal(BOOLEAN, True), p),), p), "x = 1"),
        # Different columns are no list, and NULL OR x is not x.
        (lambda t, p: t.any(p, t.eq("a.y", 2)), "x = 1 OR y = 2"),
        (lambda t, p: t.any(Literal(BOOLEAN, None), p), "NULL OR x = 1"),
    ],
)
def test_simplify_booleans(t: Any, make: Any, expected: str) -> None:
    t.scan("a")
    condition = make(t, t.eq("a.x", 1))
    node = Filter((), t.scan("a"), condition)
    result, fired = t.normalize(node)
    assert expression_text(find(result, Filter).condition) == expected
    assert ("simplify booleans" in fired) == (expression_text(condition) != expected)


def test_factor_or(t: Any) -> None:
    joined = t.join(t.scan("a"), t.scan("b"))
    same = t.eq("a.k", "b.k")
    arms = t.any(
        t.all(same, t.eq("a.x", 1), t.eq("b.x", 2)), t.all(same, t.eq("a.x", 3), t.eq("b.x", 4))
    )
    node, fired = t.normalize(t.where(joined, arms))
    assert {"factor or", "derive filters from or"} <= fired
    assert expression_text(conjuncts(find(node, Join).condition)[0]) == "k = k"
    # Every arm restricts both sides, so both are filtered early as well.
    assert filters(node, "a") == ["x IN (1, 3)"]
    assert filters(node, "b") == ["x IN (2, 4)"]
    # With an arm that has nothing in common, there is nothing to take out.
    other = t.any(t.all(same, t.eq("a.x", 1)), t.eq("b.x", 4))
    node, fired = t.normalize(t.where(joined, other))
    assert "factor or" not in fired
    assert "derive filters from or" not in fired


# --- filters ---------------------------------------------------------------------------------


def test_merge_filters_and_true(t: Any) -> None:
    node, fired = t.normalize(
        t.where(
            t.where(t.where(t.scan("a"), t.eq("a.x", 1)), t.eq("a.y", 2)), Literal(BOOLEAN, True)
        )
    )
    assert {"merge filters", "remove true filter"} <= fired
    assert filters(node, "a") == ["x = 1", "y = 2"]


def test_push_filter_through_project(t: Any) -> None:
    projected = t.project(t.scan("a"), z=Call(INTEGER, "+", (t.of(1), t.c("a.x"))))
    node, fired = t.normalize(t.where(projected, t.eq("z", 5)))
    assert "push filter through project" in fired
    assert filters(node, "a") == ["1 + x = 5"]


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [("inner", True, True), ("left", True, False), ("semi", True, False), ("anti", True, False)],
)
def test_push_filter_into_join(t: Any, kind: str, left: bool, right: bool) -> None:
    joined = t.join(t.scan("a"), t.scan("b"), t.eq("a.k", "b.k"), kind=kind)
    parts = [t.eq("a.x", 1)]
    if kind in ("inner", "left"):
        # This one accepts NULL, so it does not make the join an inner join.
        parts.append(t.call("is_null", "b.x"))
    node, fired = t.normalize(t.where(joined, *parts))
    assert "push filter into join" in fired
    assert find(node, Join).kind is JoinKind(kind)
    assert (filters(node, "a") == ["x = 1"]) is left
    assert (filters(node, "b") == ["x IS NULL"]) is right


def test_no_filter_goes_into_a_full_join(t: Any) -> None:
    joined = t.join(t.scan("a"), t.scan("b"), t.eq("a.k", "b.k"), kind="full")
    node, fired = t.normalize(t.where(joined, t.call("is_null", "a.x")))
    assert "push filter into join" not in fired
    assert isinstance(node, Filter)


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("inner", True, True),
        ("left", False, True),
        ("full", False, False),
        ("semi", True, True),
        ("anti", False, True),
    ],
)
def test_push_join_condition(t: Any, kind: str, left: bool, right: bool) -> None:
    node, fired = t.normalize(
        t.join(
            t.scan("a"),
            t.scan("b"),
            t.eq("a.k", "b.k"),
            t.eq("a.x", 1),
            t.eq("b.x", 2),
            kind=kind,
        )
    )
    assert ("push join condition" in fired) is (left or right)
    assert ("x = 1" in filters(node, "a")) is left
    assert ("x = 2" in filters(node, "b")) is right


def test_push_filter_through_aggregate(t: Any) -> None:
    grouped = t.aggregate(t.scan("a"), "a.x", n=("count", None))
    node, fired = t.normalize(t.where(grouped, t.eq("a.x", 1), t.call(">", "n", 2)))
    assert "push filter through aggregate" in fired
    assert filters(node, "a") == ["x = 1"]
    assert isinstance(node, Filter), "the condition on the count stays above"
    whole = t.aggregate(t.scan("b"), "", m=("count", None))
    node, fired = t.normalize(t.where(whole, t.call("=", 1, 2)))
    assert "push filter through aggregate" not in fired


def test_push_filter_through_union_and_sort(t: Any) -> None:
    union = t.union(t.scan("a"), t.scan("b"))
    t.columns["u"] = union.output[1]
    node, fired = t.normalize(t.where(t.sort(union, "u"), t.eq("u", 7)))
    assert {"push filter through union", "push filter through sort"} <= fired
    assert filters(node, "a") == filters(node, "b") == ["x = 7"]
    limited = t.sort(t.scan("c"), "c.x", limit=3)
    node, fired = t.normalize(t.where(limited, t.eq("c.x", 1)))
    assert "push filter through sort" not in fired
    assert isinstance(node, Filter)


def test_order_conjuncts(t: Any) -> None:
    t.map("d", "k int, s text", "k")
    scan = t.scan("d")
    like = t.call("like", "d.s", "%x%")
    node, fired = t.normalize(t.where(scan, like, t.eq("d.k", 1)))
    assert "order conjuncts" in fired
    assert expression_text(find(node, Filter).condition) == "k = 1 AND s LIKE '%x%'"
    _, fired = t.normalize(t.where(scan, t.eq("d.k", 1), like))
    assert "order conjuncts" not in fired


# --- joins -----------------------------------------------------------------------------------


def test_right_join_to_left_join(t: Any) -> None:
    node, fired = t.normalize(t.join(t.scan("a"), t.scan("b"), t.eq("a.k", "b.k"), kind="right"))
    assert "right join to left join" in fired
    join = find(node, Join)
    assert join.kind is JoinKind.LEFT
    assert join.left.alias == "b"


@pytest.mark.parametrize(
    ("condition", "simplified"),
    [
        (lambda t: t.eq("b.x", 1), True),
        (lambda t: t.call("is_not_null", "b.x"), True),
        (lambda t: t.any(t.eq("b.x", 1), t.call(">", "b.x", 5)), True),
        (lambda t: Call(BOOLEAN, "not", (t.isin("b.x", 1, 2),)), True),
        (lambda t: t.call("is_null", "b.x"), False),
        (lambda t: t.any(t.eq("b.x", 1), t.eq("a.x", 5)), False),
        (lambda t: t.eq(Call(INTEGER, "coalesce", (t.c("b.x"), t.of(1))), t.of(1)), False),
        (lambda t: t.eq("a.x", 1), False),
    ],
)
def test_simplify_outer_join(t: Any, condition: Any, simplified: bool) -> None:
    joined = t.join(t.scan("a"), t.scan("b"), t.eq("a.k", "b.k"), kind="left")
    node, fired = t.normalize(t.where(joined, condition(t)))
    assert ("simplify outer join" in fired) is simplified
    assert (find(node, Join).kind is JoinKind.INNER) is simplified


def test_simplify_full_join_by_a_join_above(t: Any) -> None:
    full = t.join(t.scan("a"), t.scan("b"), t.eq("a.k", "b.k"), kind="full")
    node, fired = t.normalize(t.join(full, t.scan("c"), t.eq("a.x", "c.x")))
    assert "simplify outer join" in fired
    assert find(find(node, Join).left, Join).kind is JoinKind.LEFT


@pytest.mark.parametrize(
    ("kind", "filtered"), [("inner", "b"), ("left", "b"), ("semi", "b"), ("anti", "b")]
)
def test_infer_predicates(t: Any, kind: str, filtered: str) -> None:
    left = t.where(t.scan("a"), t.eq("a.k", 5))
    node, fired = t.normalize(t.join(left, t.scan("b"), t.eq("a.k", "b.k"), kind=kind))
    assert "infer predicates" in fired
    assert filters(node, filtered) == ["k = 5"]


def test_infer_predicates_never_filters_the_kept_side(t: Any) -> None:
    right = t.where(t.scan("b"), t.eq("b.k", 5))
    for kind in ("left", "anti", "full"):
        node, fired = t.normalize(t.join(t.scan("a"), right, t.eq("a.k", "b.k"), kind=kind))
        assert "infer predicates" not in fired
        assert filters(node, "a") == []


def test_compute_join_keys(t: Any) -> None:
    one_more = Call(INTEGER, "+", (t.scan("a") and t.c("a.x"), t.of(1)))
    a = Scan(tuple(t.columns[f"a.{n}"] for n in "kxy"), t.schemas["a"], "a", (0, 1, 2))
    node, fired = t.normalize(t.join(a, t.scan("b"), Call(BOOLEAN, "=", (one_more, t.c("b.k")))))
    assert "compute join keys" in fired
    assert isinstance(find(node, Join).left, Project)
    _, fired = t.normalize(t.join(a, t.scan("b"), t.eq("a.x", "b.k")))
    assert "compute join keys" not in fired


# --- columns, empties, limits, aggregates --------------------------------------------------------


def test_prune_columns_and_projects(t: Any) -> None:
    inner = t.project(t.scan("a"), p="a.k", q="a.x", r="a.y")
    node, fired = t.normalize(t.project(inner, s=Call(INTEGER, "+", (t.c("q"), t.of(1)))))
    assert {"merge projects", "prune columns"} <= fired
    assert [c.name for c in find(node, Scan).output] == ["x"]
    assert len([n for n in nodes_of(node) if isinstance(n, Project)]) == 1
    # An expression that is used twice is computed once.
    costly = t.project(t.scan("b"), z=Call(INTEGER, "+", (t.c("b.x"), t.of(1))))
    twice = t.project(costly, z1="z", z2=Call(INTEGER, "+", (t.c("z"), t.c("z"))))
    _, fired = t.normalize(twice)
    assert "merge projects" not in fired


def test_inline_renames(t: Any) -> None:
    renamed = t.project(t.scan("a"), p="a.k", q="a.x")
    node, fired = t.normalize(t.where(t.join(renamed, t.scan("b"), t.eq("p", "b.k"))
                                      , t.eq("q", 1)))  # fmt: skip
    assert "inline renames" in fired
    assert not has(find(node, Join), Project)
    assert filters(node, "a") == ["x = 1"]


def test_remove_identity_project(t: Any) -> None:
    scan = t.scan("a")
    same = Project(scan.output, scan, tuple(t.c(f"a.{n}") for n in "kxy"))
    node, fired = t.normalize(t.sort(same, "a.k"))
    assert "remove identity project" in fired
    assert not has(node, Project)
    other_order = Project(scan.output[::-1], scan, tuple(t.c(f"a.{n}") for n in "yxk"))
    node, fired = t.normalize(other_order)
    assert "remove identity project" not in fired
    assert isinstance(node, Project)


@pytest.mark.parametrize("kind", ["inner", "semi", "left", "anti", "full"])
def test_prune_empty_join(t: Any, kind: str) -> None:
    nothing = t.where(t.scan("b"), Literal(BOOLEAN, None))
    node, fired = t.normalize(t.join(t.scan("a"), nothing, t.eq("a.k", "b.k"), kind=kind))
    assert "prune empty" in fired
    match kind:
        case "inner" | "semi":
            assert isinstance(node, Values)
        case "left":
            assert isinstance(node, Project)
            assert isinstance(node.input, Scan)
        case "anti":
            assert isinstance(node, Scan)
        case "full":
            assert isinstance(node, Join)


def test_prune_empty_keeps_the_row_of_a_global_aggregate(t: Any) -> None:
    nothing = t.where(t.scan("a"), Literal(BOOLEAN, False))
    node, _ = t.normalize(t.aggregate(nothing, "", n=("count", None)))
    assert isinstance(node, Aggregate)
    node, _ = t.normalize(t.aggregate(nothing, "a.x", m=("count", None)))
    assert isinstance(node, Values)
    union = t.union(nothing, t.scan("b"))
    node, _ = t.normalize(union)
    assert not has(node, Union)
    node, _ = t.normalize(t.sort(t.scan("c"), "c.x", limit=0))
    assert isinstance(node, Values)


def test_sorts(t: Any) -> None:
    twice = t.sort(t.sort(t.scan("a"), "a.x"), "", limit=5)
    node, fired = t.normalize(twice)
    assert "merge sorts" in fired
    assert (len(node.keys), isinstance(node.input, Sort)) == (1, False)
    top = t.sort(t.sort(t.scan("b"), "b.x", limit=9), "", limit=5)
    node, fired = t.normalize(top)
    assert "merge sorts" not in fired
    sorted_below = t.aggregate(t.sort(t.scan("c"), "c.x"), "c.x", n=("count", None))
    node, fired = t.normalize(sorted_below)
    assert "remove useless sort" in fired
    assert not has(node, Sort)
    kept = t.aggregate(t.sort(t.scan("a", "a2"), "a2.x", limit=3), "a2.x", m=("count", None))
    node, fired = t.normalize(kept)
    assert "remove useless sort" not in fired


def test_push_limits(t: Any) -> None:
    union = t.union(t.scan("a"), t.scan("b"))
    node, fired = t.normalize(t.sort(union, "", limit=5, offset=2))
    assert "push limit into union" in fired
    assert [n.limit.value for n in nodes_of(node) if isinstance(n, Sort)] == [5, 7, 7]
    computed = t.project(t.scan("c"), z=Call(INTEGER, "+", (t.c("c.x"), t.of(1))))
    node, fired = t.normalize(t.sort(computed, "", limit=5))
    assert "push limit through project" in fired
    assert isinstance(node, Project)
    by_key = t.union(t.scan("a", "a2"), t.scan("b", "b2"))
    t.columns["by"] = by_key.output[0]
    _, fired = t.normalize(t.sort(by_key, "by", limit=5))
    assert "push limit into union" not in fired


def test_a_limit_is_pushed_into_a_union_of_projections_once(t: Any) -> None:
    def computed(table: str) -> Logical:
        scan = t.scan(table)
        more = Call(INTEGER, "+", (t.c(f"{table}.x"), t.of(1)))
        return t.project(scan, **{f"more_{table}": more})  # type: ignore[no-any-return]

    union = t.union(computed("a"), computed("b"))
    node, _ = t.normalize(t.sort(union, "", limit=5))
    assert [n.limit.value for n in nodes_of(node) if isinstance(n, Sort)] == [5, 5, 5]


def test_what_is_known_under_another_name_is_not_inferred_again(t: Any) -> None:
    """A filter is below a projection under the column's own name; the join calls it by an alias."""
    left, right = t.scan("a"), t.scan("b")
    known = t.c("a.x")
    more = t.column("more", INTEGER)
    below = Project(
        (t.columns["a.x"], more),
        t.where(left, t.eq("a.x", 3)),
        (known, Call(INTEGER, "+", (known, t.of(1)))),
    )
    aliased = replace(known, name="alias")
    join = t.join(below, t.where(right, t.eq("b.x", 3)), t.eq(aliased, "b.x"))
    node, fired = t.normalize(join)
    assert "infer predicates" not in fired
    assert len([n for n in nodes_of(node) if isinstance(n, Filter)]) == 2


def expanded(t: Any, node: Logical, *sources: str) -> Expand:
    """``node`` once with all copies, and once with none."""
    copies = tuple(t.column(f"{name}.copy", t.columns[name].type) for name in sources)
    output = (*node.output, *copies, t.column("set", INTEGER))
    places = tuple(range(len(sources)))
    return Expand(output, node, tuple(t.columns[name].id for name in sources), (places, ()))


def unfolded(t: Any, node: Logical) -> Unfold:
    call = SetCall("generate_series", (t.of(1), t.c("b.y")), (INTEGER,))
    return Unfold((*node.output, t.column("unfolded", INTEGER)), node, (call,))


def marked(t: Any, node: Logical) -> MarkJoin:
    other = t.scan("c", "mark")
    return make_mark_join(node, other, t.eq("b.y", "mark.y"), None, t.column("m", BOOLEAN))


def counted_by_sets(t: Any, node: Logical) -> Aggregate:
    return t.aggregate(expanded(t, node, "b.y"), "b.x b.y.copy", n=("count", None))  # type: ignore[no-any-return]


def operator_of(t: Any, kind: type[Logical], below: Logical) -> tuple[Logical, str]:
    """An operator over ``below``, a scan of b, and the name of a column that comes from b.x."""
    makers: dict[type[Logical], Callable[[], Logical]] = {
        Scan: lambda: below,
        Filter: lambda: t.where(below, t.call(">", "b.y", 1)),
        Project: lambda: t.project(below, named="b.x", more=Call(INTEGER, "+", (t.c("b.x"),) * 2)),
        Join: lambda: t.join(below, t.scan("c"), t.eq("b.y", "c.y"), kind="left"),
        MarkJoin: lambda: marked(t, below),
        Aggregate: lambda: counted_by_sets(t, below),
        Expand: lambda: expanded(t, below, "b.y"),
        Unfold: lambda: unfolded(t, below),
        Window: lambda: t.window(below, "b.x", "b.y", r=("sum", "b.y")),
        Sort: lambda: t.sort(below, "b.x", limit=3),
        Values: lambda: t.values((1, 2), (5, 6)),
        Supplied: lambda: Supplied((t.column("given", INTEGER),), "given", (0,)),
        SharedRead: lambda: SharedRead((t.column("shared", INTEGER),), 0, (below.output[1].id,)),
        Union: lambda: t.union(below, t.scan("c")),
        SetOperation: lambda: SetOperation(
            tuple(t.column(f"both.{c.name}", c.type) for c in below.output),
            SetKind.INTERSECT,
            True,
            (below, t.scan("c")),
        ),
    }
    node = makers[kind]()
    match node:
        case Project() | Values() | Supplied() | SharedRead():
            column = node.output[0]
        case Union() | SetOperation():
            column = node.output[1]
        case _:
            column = t.columns["b.x"]
    t.columns["found"] = column
    return node, "found"


OPERATORS = [
    SharedRead,
    *(
        kind
        for kind in vars(logical).values()
        if isinstance(kind, type)
        and issubclass(kind, Logical)
        # ``unnest`` makes joins of dependent joins before any rule is tried.
        and kind not in (Logical, DependentJoin)
    ),
]


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda kind: kind.__name__)
def test_what_is_known_of_an_operator_is_inferred_once(t: Any, kind: type[Logical]) -> None:
    """A filter that rules push below an operator is still known above it: else it is inferred and
    pushed again for ever."""
    node, column = operator_of(t, kind, t.scan("b"))
    left = t.where(t.scan("a"), t.eq("a.x", 5))
    rewriting = t.rewriting()
    rewriting.strict = True
    normalize(t.join(left, node, t.eq("a.x", column)), rewriting)
    assert rewriting.fired["infer predicates"] == 1


def test_nothing_is_known_of_groups_that_are_always_there(t: Any) -> None:
    """Their columns are NULL or constant, whatever filters the input."""
    below = expanded(t, t.scan("b"), "b.x")
    kept = t.where(below, t.eq("b.x.copy", 5))
    groups = t.aggregate(kept, "b.x.copy set", n=("count", None))
    always = replace(groups, always=((None, 1),))
    node, fired = t.normalize(t.join(always, t.scan("a"), t.eq("b.x.copy", "a.x")))
    assert "infer predicates" not in fired
    node, fired = t.normalize(t.join(groups, t.scan("c"), t.eq("b.x.copy", "c.x")))
    assert "infer predicates" in fired
    assert filters(node, "c") == ["x = 5"]


def test_push_limit_into_left_join(t: Any) -> None:
    def joined(kind: str, keys: str, number: str, limit: object = 5) -> tuple[Logical, set[str]]:
        left, right = t.scan("a", f"l{number}"), t.scan("b", f"r{number}")
        join = t.join(left, right, t.eq(f"l{number}.x", f"r{number}.y"), kind=kind)
        return t.normalize(t.sort(join, keys, limit=limit, offset=2))

    node, fired = joined("left", "l1.y", "1")
    assert "push limit into left join" in fired
    assert isinstance(node, Sort)
    inner = find(node.input, Sort)
    assert (node.limit.value, node.offset.value) == (5, 2)  # type: ignore[union-attr]
    assert (inner.limit.value, inner.offset) == (7, None)
    assert isinstance(inner.input, Scan)
    assert "push limit into left join" in joined("left", "", "2")[1]
    assert "push limit into left join" not in joined("left", "r3.k", "3")[1], "a right column"
    assert "push limit into left join" not in joined("inner", "l4.y", "4")[1], "rows may go"
    assert "push limit into left join" not in joined("full", "l5.y", "5")[1]
    assert "push limit into left join" not in joined("left", "l6.y", "6", 10_000_000)[1]


def test_rewrite_avg(t: Any) -> None:
    grouped = t.aggregate(
        t.scan("a"), "a.x", m=("avg", "a.y"), s=("sum", "a.y"), n=("count", "a.y")
    )
    node, fired = t.normalize(grouped)
    assert "rewrite avg" in fired
    calls = [call.function for call in find(node, Aggregate).calls]
    assert sorted(calls) == ["count", "sum"], "the sum and the count are shared"
    _, fired = t.normalize(t.aggregate(t.scan("b"), "b.x", z=("sum", "b.y")))
    assert "rewrite avg" not in fired


def test_distinct_aggregates(t: Any) -> None:
    grouped = t.aggregate(
        t.scan("a"), "a.x", n=("count", "a.y", "distinct"), low=("min", "a.k", "distinct")
    )
    node, fired = t.normalize(grouped)
    assert {"split distinct", "drop useless distinct"} <= fired
    outer = find(node, Aggregate)
    assert not any(call.distinct for call in outer.calls)
    assert isinstance(outer.input, Aggregate)
    several = t.aggregate(
        t.scan("b"), "", p=("count", "b.x", "distinct"), q=("sum", "b.y", "distinct")
    )
    node, fired = t.normalize(several)
    assert "split distinct" not in fired
    beside = t.aggregate(t.scan("c"), "", r=("count", "c.x", "distinct"), s=("count", None))
    _, fired = t.normalize(beside)
    assert "split distinct" not in fired


def test_push_filter_through_window(t: Any) -> None:
    window = t.window(t.scan("a"), "a.x", "a.y", n=("row_number", None))
    node, fired = t.normalize(t.where(window, t.eq("a.x", 1), t.eq("n", 2), t.eq("a.y", 3)))
    assert "push filter through window" in fired
    assert filters(node, "a") == ["x = 1"], "only whole partitions may be left out"
    assert isinstance(node, Filter)
    assert isinstance(node.input, Window)
    whole = t.window(t.scan("b"), "", "b.y", m=("row_number", None))
    _, fired = t.normalize(t.where(whole, t.eq("b.x", 1), t.eq("m", 2)))
    assert "push filter through window" not in fired


def test_rewrite_window_avg(t: Any) -> None:
    window = t.window(
        t.scan("a"), "a.x", "a.y", m=("avg", "a.y"), s=("sum", "a.y"), n=("count", "a.y")
    )
    node, fired = t.normalize(window)
    assert "rewrite window avg" in fired
    calls = [call.function for call in find(node, Window).calls]
    assert sorted(calls) == ["count", "sum"], "the sum and the count are shared"
    assert [c.id for c in node.output] == [c.id for c in window.output]
    _, fired = t.normalize(t.window(t.scan("b"), "b.x", "", z=("sum", "b.y")))
    assert "rewrite window avg" not in fired


def test_columns_below_a_window(t: Any) -> None:
    inner = t.project(t.scan("a"), p="a.x", o="a.y", v="a.k")
    window = t.window(inner, "p", "o", s=("sum", "v"), unused=("min", "o"))
    node, fired = t.normalize(t.project(window, out="s"))
    assert {"inline renames", "prune columns"} <= fired
    found = find(node, Window)
    assert [call.function for call in found.calls] == ["sum"]
    assert isinstance(found.input, Scan)
    window = t.window(t.scan("b"), "b.x", "", w=("sum", "b.y"))
    node, _ = t.normalize(t.project(window, out2="b.k"))
    assert not has(node, Window), "nobody asks for the result"
    assert {c.name for c in find(node, Scan).output} == {"k"}
    never = t.where(t.scan("c"), Literal(BOOLEAN, False))
    node, fired = t.normalize(t.window(never, "c.x", "", e=("sum", "c.y")))
    assert "prune empty" in fired
    assert not has(node, Window)


def test_a_rule_without_end_is_left_out_of_the_rest(
    t: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement is planned, EXPLAIN tells of it, and the rules above have done their work."""

    def turn(node: Logical, _: Rewriting) -> Logical | None:
        assert isinstance(node, Join)
        return make_join(node.kind, node.right, node.left, node.condition)

    turning = Rule("turn inner joins", (Join,), turn)
    monkeypatch.setattr("remuda.planner.normalize.FIRST", (((turning, *SIMPLIFY), True),))
    joined = t.join(t.scan("a"), t.scan("b"), t.eq("a.k", "b.k"))
    again = t.join(joined, t.scan("c"), t.eq("b.k", "c.k"))
    rewriting = t.rewriting()
    node = normalize(t.where(again, t.eq("a.x", 1)), rewriting)
    limit = FIRINGS_MIN + FIRINGS_PER_NODE * 6
    assert rewriting.fired["turn inner joins"] == limit
    assert rewriting.notes == [f"rule 'turn inner joins' stopped after {limit} rewritings"]
    assert filters(node, "a") == ["x = 1"]
    plan = t.plan(t.where(again, t.eq("a.x", 1)))
    assert plan.notes == tuple(rewriting.notes)
    strict = t.rewriting()
    strict.strict = True
    with pytest.raises(AssertionError, match="'turn inner joins' does not come to an end"):
        normalize(again, strict)


def test_shared_nodes_stay_shared(t: Any) -> None:
    """A tree that no rule touches comes back as the same object."""
    node = t.where(t.scan("a"), t.eq("a.x", 1))
    again, fired = t.normalize(node)
    assert again is node
    assert fired == set()
