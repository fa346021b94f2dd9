"""Rules on ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace

from remuda.datatypes.sql import BIGINT
from remuda.plan.expression import Call, Cast, Expression, Literal
from remuda.plan.logical import (
    Aggregate,
    Join,
    JoinKind,
    Logical,
    MarkJoin,
    Project,
    Sort,
    Union,
)
from remuda.planner.algebra import columns, is_limited, with_inputs
from remuda.planner.rules.rule import Rewriting, Rule

_BIGINT_MAX = 2**63 - 1


def limit_with_offset(limit: Expression | None, offset: Expression | None) -> Expression | None:
    """How many leading rows decide the result: limit + offset; None = all."""
    if limit is None or offset is None:
        return limit
    match limit, offset:
        case Literal(value=int(rows)), Literal(value=int(skipped)):
            return Literal(BIGINT, min(rows + skipped, _BIGINT_MAX))
        case _, _:
            return Call(BIGINT, "+", (_wide(limit), _wide(offset)))


def _wide(count: Expression) -> Expression:
    return count if count.type == BIGINT else Cast(BIGINT, count)


def _merge_sorts(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Sort(keys=(), input=Sort() as inner) if not is_limited(inner):
            return Sort(node.output, inner.input, inner.keys, node.limit, node.offset)
        case Sort(keys=keys, input=Sort() as inner) if keys and not is_limited(inner):
            # A later sort wins: sorting is not promised to be stable.
            return replace(node, input=inner.input)
        case Sort(keys=(), limit=None, offset=None, input=child):
            return child
        case _:
            return None


MERGE_SORTS = Rule("merge sorts", (Sort,), _merge_sorts)


def _remove_useless_sort(node: Logical, _: Rewriting) -> Logical | None:
    """Joins, aggregates and unions promise no order, so sorting below them is lost work."""
    match node:
        case Aggregate(input=Sort() as sort) if not is_limited(sort):
            return with_inputs(node, (sort.input,))
        case Join(left=left, right=right):
            sides = tuple(
                side.input if isinstance(side, Sort) and not is_limited(side) else side
                for side in (left, right)
            )
            return None if sides == (left, right) else with_inputs(node, sides)
        case _:
            return None


REMOVE_USELESS_SORT = Rule("remove useless sort", (Aggregate, Join), _remove_useless_sort)


def _push_limit_through_project(node: Logical, _: Rewriting) -> Logical | None:
    """LIMIT without ORDER BY: compute the expressions of the rows that stay."""
    match node:
        case Sort(keys=(), input=Project(input=child) as project) if is_limited(node):
            limited = with_inputs(node, (child,))
            return replace(project, input=limited)
        case _:
            return None


PUSH_LIMIT_THROUGH_PROJECT = Rule(
    "push limit through project", (Sort,), _push_limit_through_project
)


def _push_limit_into_union(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Sort(keys=(), input=Union(inputs=inputs) as union) if node.limit is not None:
            rows = limit_with_offset(node.limit, node.offset)
            pushed = tuple(
                child if _is_limited_below(child) else Sort(child.output, child, (), rows)
                for child in inputs
            )
            return None if pushed == inputs else with_inputs(node, (replace(union, inputs=pushed),))
        case _:
            return None


PUSH_LIMIT_INTO_UNION = Rule("push limit into union", (Sort,), _push_limit_into_union)


PUSHED_ROWS_MAX = 100_000
"""More rows than this are not brought to the initiator before a join."""


def _push_limit_into_left_join(node: Logical, _: Rewriting) -> Logical | None:
    """Every left row of a LEFT or mark join comes out at least once, so the first n rows by left
    columns come from the first n left rows. An OFFSET counts rows of the result and stays above."""
    match node:
        case Sort(limit=Expression() as limit, input=Join(kind=JoinKind.LEFT) | MarkJoin() as join):
            pass
        case _:
            return None
    keys = {key.column for key in node.keys}
    rows = limit_with_offset(limit, node.offset)
    if _is_limited_below(join.left) or not keys <= columns(join.left):
        return None
    if isinstance(rows, Literal) and not (
        isinstance(rows.value, int) and rows.value < PUSHED_ROWS_MAX
    ):
        return None
    left = Sort(join.left.output, join.left, node.keys, rows)
    return with_inputs(node, (with_inputs(join, (left, join.right)),))


def _is_limited_below(node: Logical) -> bool:
    """A limit that was pushed here may have gone on through projections."""
    while isinstance(node, Project):
        node = node.input
    return is_limited(node)


PUSH_LIMIT_INTO_LEFT_JOIN = Rule("push limit into left join", (Sort,), _push_limit_into_left_join)
