"""Rules on ORDER BY and LIMIT."""

from __future__ import annotations

from dataclasses import replace

from remuda.datatypes.sql import BIGINT
from remuda.plan.expression import Call, Cast, Expression, Literal
from remuda.plan.logical import Aggregate, Join, Logical, Project, Sort, Union
from remuda.planner.algebra import is_limited, with_inputs
from remuda.planner.rules.rule import Rewriting, Rule


def limit_with_offset(limit: Expression | None, offset: Expression | None) -> Expression | None:
    """How many leading rows decide the result: limit + offset; None = all."""
    if limit is None or offset is None:
        return limit
    match limit, offset:
        case Literal(value=int(rows)), Literal(value=int(skipped)):
            return Literal(BIGINT, rows + skipped)
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
                child if is_limited(child) else Sort(child.output, child, (), rows)
                for child in inputs
            )
            return None if pushed == inputs else with_inputs(node, (replace(union, inputs=pushed),))
        case _:
            return None


PUSH_LIMIT_INTO_UNION = Rule("push limit into union", (Sort,), _push_limit_into_union)
