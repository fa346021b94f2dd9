"""Rules that cut off what cannot give rows."""

from __future__ import annotations

from remuda.plan.expression import Expression, Literal, conjunction, conjuncts
from remuda.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Sort,
    Unfold,
    Union,
    Window,
)
from remuda.planner.algebra import (
    empty,
    filtered,
    is_empty,
    is_never_true,
    is_true,
    make_join,
    reference,
    rename,
)
from remuda.planner.rules.rule import Rewriting, Rule


def _remove_true_filter(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Filter(input=child, condition=condition):
            parts = conjuncts(condition)
            kept = [part for part in parts if not is_true(part)]
            return None if len(kept) == len(parts) else filtered(child, kept)
        case Join(kind=kind, left=left, right=right, condition=condition):
            parts = conjuncts(condition)
            stay = tuple(part for part in parts if not is_true(part))
            if len(stay) == len(parts):
                return None
            return make_join(kind, left, right, conjunction(stay))
        case _:
            return None


REMOVE_TRUE_FILTER = Rule("remove true filter", (Filter, Join), _remove_true_filter)


def _prune_empty(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Filter(condition=condition) if any(is_never_true(p) for p in conjuncts(condition)):
            return empty(node.output)
        case Sort(limit=Literal(value=0)):
            return empty(node.output)
        case (
            Filter(input=child)
            | Project(input=child)
            | Sort(input=child)
            | Window(input=child)
            | Expand(input=child)
            | Unfold(input=child)
        ) if is_empty(child):
            return empty(node.output)
        case Aggregate(input=child, group=group, always=()) if group and is_empty(child):
            return empty(node.output)
        case Join():
            return _prune_join(node)
        case Union(inputs=inputs) if any(is_empty(child) for child in inputs):
            return _prune_union(node)
        case _:
            return None


def _prune_join(join: Join) -> Logical | None:
    never = any(is_never_true(part) for part in conjuncts(join.condition))
    no_left, no_right = is_empty(join.left), is_empty(join.right)
    match join.kind:
        case JoinKind.INNER | JoinKind.SEMI if no_left or no_right or never:
            return empty(join.output)
        case JoinKind.LEFT | JoinKind.ANTI if no_left:
            return empty(join.output)
        case JoinKind.LEFT if no_right or never:
            return _padded(join.output, join.left, join.right)
        case JoinKind.ANTI if no_right or never:
            return join.left
        case _:
            return None


def _padded(output: tuple[OutputColumn, ...], kept: Logical, lost: Logical) -> Logical:
    gone = {column.id for column in lost.output}
    expressions: tuple[Expression, ...] = tuple(
        Literal(column.type, None) if column.id in gone else reference(column) for column in output
    )
    return Project(output, kept, expressions)


def _prune_union(union: Union) -> Logical | None:
    rest = tuple(child for child in union.inputs if not is_empty(child))
    if not rest:
        return empty(union.output)
    if len(rest) > 1:
        return Union(union.output, rest)
    names = {o.id: c for o, c in zip(union.output, rest[0].output, strict=True)}
    expressions = tuple(rename(reference(column), names) for column in union.output)
    return Project(union.output, rest[0], expressions)


PRUNE_EMPTY = Rule(
    "prune empty",
    (Filter, Join, Project, Aggregate, Expand, Unfold, Sort, Union, Window),
    _prune_empty,
)
