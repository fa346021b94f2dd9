"""Rules that move filters towards the data."""

from __future__ import annotations

from dataclasses import replace

from remuda.plan.expression import (
    ColumnId,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    walk,
)
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    Project,
    Scan,
    Sort,
    Union,
)
from remuda.planner.algebra import (
    columns,
    disjunction,
    disjuncts,
    filtered,
    is_limited,
    make_filter,
    make_join,
    project_map,
    rename,
    substitute,
    with_inputs,
)
from remuda.planner.rules.rule import Rewriting, Rule


def _merge_filters(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Filter(input=Filter(input=child, condition=inner), condition=outer):
            parts = tuple(dict.fromkeys(conjuncts(inner) + conjuncts(outer)))
            condition = conjunction(parts)
            assert condition is not None
            return make_filter(child, condition)
        case _:
            return None


MERGE_FILTERS = Rule("merge filters", (Filter,), _merge_filters)


def _push_filter_through_project(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Filter(input=Project(input=child) as project, condition=condition):
            made = project_map(project)
            if any(is_volatile(made[column]) for column in columns_of(condition) if column in made):
                return None  # the row would be judged by another value than it shows
            below = substitute(condition, made)
            return replace(project, input=make_filter(child, below))
        case _:
            return None


PUSH_FILTER_THROUGH_PROJECT = Rule(
    "push filter through project", (Filter,), _push_filter_through_project
)


def _push_filter_into_join(node: Logical, _: Rewriting) -> Logical | None:
    """A conjunct goes to the side that has all its columns, unless that side's rows are padded with
    NULLs by the join; a conjunct that needs both sides becomes part of an INNER join's
    condition."""
    match node:
        case Filter(input=Join() as join, condition=condition):
            pass
        case _:
            return None
    to_left = join.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
    to_right = join.kind in (JoinKind.INNER, JoinKind.RIGHT)
    left, right = columns(join.left), columns(join.right)
    lefts: list[Expression] = []
    rights: list[Expression] = []
    inside: list[Expression] = []
    above: list[Expression] = []
    for part in conjuncts(condition):
        needs = columns_of(part)
        if to_left and needs <= left:
            lefts.append(part)
        elif to_right and needs <= right:
            rights.append(part)
        elif join.kind is JoinKind.INNER:
            inside.append(part)
        else:
            above.append(part)
    if not (lefts or rights or inside):
        return None
    joined = make_join(
        join.kind,
        filtered(join.left, lefts),
        filtered(join.right, rights),
        conjunction(tuple(dict.fromkeys(conjuncts(join.condition) + tuple(inside)))),
    )
    return filtered(joined, above)


PUSH_FILTER_INTO_JOIN = Rule("push filter into join", (Filter,), _push_filter_into_join)

_CONDITION_SIDES = {
    # kind: (left, right): may a one-sided part of the ON condition filter that side?
    JoinKind.INNER: (True, True),
    JoinKind.LEFT: (False, True),
    JoinKind.RIGHT: (True, False),
    JoinKind.FULL: (False, False),
    JoinKind.SEMI: (True, True),
    JoinKind.ANTI: (False, True),
}


def _push_join_condition(node: Logical, _: Rewriting) -> Logical | None:
    assert isinstance(node, Join)
    to_left, to_right = _CONDITION_SIDES[node.kind]
    left, right = columns(node.left), columns(node.right)
    lefts: list[Expression] = []
    rights: list[Expression] = []
    rest: list[Expression] = []
    for part in conjuncts(node.condition):
        needs = columns_of(part)
        if to_left and needs <= left:
            lefts.append(part)
        elif to_right and needs <= right:
            rights.append(part)
        else:
            rest.append(part)
    if not (lefts or rights):
        return None
    return make_join(
        node.kind,
        filtered(node.left, lefts),
        filtered(node.right, rights),
        conjunction(tuple(rest)),
    )


PUSH_JOIN_CONDITION = Rule("push join condition", (Join,), _push_join_condition)


def _push_filter_through_aggregate(node: Logical, _: Rewriting) -> Logical | None:
    """HAVING on group columns only. Not below an aggregate that has a row over no input."""
    match node:
        case Filter(input=Aggregate(group=group, always=()) as aggregate, condition=condition) if (
            group
        ):
            keys = set(group)
            down = [part for part in conjuncts(condition) if columns_of(part) <= keys]
            if not down:
                return None
            stay = [part for part in conjuncts(condition) if part not in down]
            return filtered(replace(aggregate, input=filtered(aggregate.input, down)), stay)
        case _:
            return None


PUSH_FILTER_THROUGH_AGGREGATE = Rule(
    "push filter through aggregate", (Filter,), _push_filter_through_aggregate
)


def _push_filter_through_expand(node: Logical, _: Rewriting) -> Logical | None:
    """Conditions on columns that are the same in every grouping set."""
    match node:
        case Filter(input=Expand(input=child) as expand, condition=condition):
            below = columns(child)
            down = [part for part in conjuncts(condition) if columns_of(part) <= below]
            if not down:
                return None
            stay = [part for part in conjuncts(condition) if part not in down]
            return filtered(with_inputs(expand, (filtered(child, down),)), stay)
        case _:
            return None


PUSH_FILTER_THROUGH_EXPAND = Rule(
    "push filter through expand", (Filter,), _push_filter_through_expand
)


def _push_filter_through_union(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Filter(input=Union(inputs=inputs) as union, condition=condition):
            pass
        case _:
            return None
    pushed = []
    for child in inputs:
        names = {o.id: c for o, c in zip(union.output, child.output, strict=True)}
        pushed.append(make_filter(child, rename(condition, names)))
    return replace(union, inputs=tuple(pushed))


PUSH_FILTER_THROUGH_UNION = Rule("push filter through union", (Filter,), _push_filter_through_union)


def _push_filter_through_sort(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Filter(input=Sort(input=child) as sort, condition=condition) if not is_limited(sort):
            return with_inputs(sort, (make_filter(child, condition),))
        case _:
            return None


PUSH_FILTER_THROUGH_SORT = Rule("push filter through sort", (Filter,), _push_filter_through_sort)


def _derive_filters_from_or(node: Logical, _: Rewriting) -> Logical | None:
    """Every arm of ``(n1 = 'F' AND n2 = 'G') OR (n1 = 'G' AND n2 = 'F')`` restricts n1, so the
    OR of these restrictions may filter n1's side early; the OR itself stays in the condition."""
    if not isinstance(node, Join) or node.kind is not JoinKind.INNER or node.condition is None:
        return None
    sides: list[Logical] = []
    derived_any = False
    for side in (node.left, node.right):
        parts: list[Expression] = []
        for source in _sources(side):
            for part in conjuncts(node.condition):
                derived = _restriction(part, source)
                if derived is not None:
                    parts.append(derived)
        derived_any |= bool(parts)
        sides.append(filtered(side, dict.fromkeys(parts)))
    return make_join(node.kind, sides[0], sides[1], node.condition) if derived_any else None


def _sources(node: Logical) -> list[frozenset[ColumnId]]:
    """The column sets of the relations that are inner-joined in ``node``."""
    match node:
        case Join(kind=JoinKind.INNER, left=left, right=right):
            return _sources(left) + _sources(right)
        case Filter(input=child):
            return _sources(child)
        case _:
            return [columns(node)]


def _restriction(part: Expression, source: frozenset[ColumnId]) -> Expression | None:
    arms = disjuncts(part)
    if len(arms) < 2 or columns_of(part) <= source:
        return None
    restrictions = []
    for arm in arms:
        own = tuple(p for p in conjuncts(arm) if columns_of(p) and columns_of(p) <= source)
        restriction = conjunction(own)
        if restriction is None:
            return None
        restrictions.append(restriction)
    return disjunction(tuple(dict.fromkeys(restrictions)))


DERIVE_FILTERS_FROM_OR = Rule("derive filters from or", (Join,), _derive_filters_from_or)


def condition_cost(expression: Expression) -> int:
    """A rough order in which to test conjuncts: plain comparisons first, text search last."""
    weights = {"like": 20, "ilike": 30}
    return sum(weights.get(getattr(part, "function", ""), 1) for part in walk(expression))


def _order_conjuncts(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Filter(input=Scan() as scan, condition=condition):
            parts = conjuncts(condition)
            ordered = tuple(sorted(parts, key=condition_cost))
            if ordered == parts:
                return None
            new = conjunction(ordered)
            assert new is not None
            return make_filter(scan, new)
        case _:
            return None


ORDER_CONJUNCTS = Rule("order conjuncts", (Filter,), _order_conjuncts)
