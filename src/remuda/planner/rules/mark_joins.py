"""Rules on mark joins, which EXISTS and IN inside of expressions become."""

from __future__ import annotations

from remuda.plan.expression import Call, Literal, columns_of, conjunction, conjuncts
from remuda.plan.logical import Filter, JoinKind, Logical, MarkJoin, Project
from remuda.planner.algebra import (
    FALSE,
    TRUE,
    columns,
    empty,
    filtered,
    is_empty,
    make_join,
    make_mark_join,
    reference,
    with_inputs,
)
from remuda.planner.rules.joins import computed_keys
from remuda.planner.rules.rule import Rewriting, Rule


def _push_filter_into_mark_join(node: Logical, _: Rewriting) -> Logical | None:
    """Conditions on the left side's columns choose left rows, marked or not."""
    match node:
        case Filter(input=MarkJoin(left=left) as join, condition=condition):
            parts = conjuncts(condition)
            down = [part for part in parts if columns_of(part) <= columns(left)]
            if not down:
                return None
            stay = [part for part in parts if part not in down]
            return filtered(with_inputs(join, (filtered(left, down), join.right)), stay)
        case _:
            return None


PUSH_FILTER_INTO_MARK_JOIN = Rule(
    "push filter into mark join", (Filter,), _push_filter_into_mark_join
)


def _mark_join_to_semi_join(node: Logical, _: Rewriting) -> Logical | None:
    """A filter that wants the mark: the rows without it need not be looked at any more."""
    match node:
        case Filter(input=MarkJoin() as join, condition=condition):
            parts = conjuncts(condition)
            mark = reference(join.mark)
            without = Call(mark.type, "not", (mark,))
            on = conjunction((*conjuncts(join.guard), *conjuncts(join.condition)))
            if mark in parts:
                kind, value = JoinKind.SEMI, TRUE
            elif without in parts and join.condition is None:
                kind, value = JoinKind.ANTI, FALSE
            else:
                return None
            joined = _with_mark(join, make_join(kind, join.left, join.right, on), value)
            return filtered(joined, [part for part in parts if part not in (mark, without)])
        case _:
            return None


def _with_mark(join: MarkJoin, rows: Logical, value: Literal) -> Project:
    own = tuple(reference(column) for column in rows.output)
    return Project((*rows.output, join.mark), rows, (*own, value))


MARK_JOIN_TO_SEMI_JOIN = Rule("mark join to semi join", (Filter,), _mark_join_to_semi_join)


def _prune_empty_mark_join(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case MarkJoin(left=left) if is_empty(left):
            return empty(node.output)
        case MarkJoin(left=left, right=right) if is_empty(right):
            return _with_mark(node, left, FALSE)
        case _:
            return None


PRUNE_EMPTY_MARK_JOIN = Rule("prune empty mark join", (MarkJoin,), _prune_empty_mark_join)


def _compute_mark_join_keys(node: Logical, rewriting: Rewriting) -> Logical | None:
    """``f(a) = g(b)`` becomes an equality of columns, as for other joins."""
    if not isinstance(node, MarkJoin):
        return None
    every = (*conjuncts(node.guard), *conjuncts(node.condition))
    found = computed_keys(node.left, node.right, every, rewriting)
    if found is None:
        return None
    left, right, parts = found
    guards = len(conjuncts(node.guard))
    return make_mark_join(
        left, right, conjunction(parts[:guards]), conjunction(parts[guards:]), node.mark
    )


COMPUTE_MARK_JOIN_KEYS = Rule("compute mark join keys", (MarkJoin,), _compute_mark_join_keys)
