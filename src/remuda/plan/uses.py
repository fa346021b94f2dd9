"""The expressions that stand in an operator."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.plan.expression import Expression, Subquery, walk
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Filter,
    Join,
    Logical,
    MarkJoin,
    Project,
    Sort,
    Supplied,
    Unfold,
    Window,
    inputs_of,
)
from remuda.plan.windows import expressions_of as parts_of_call


def expressions_of(node: Logical) -> Iterator[Expression]:
    """The expressions of ``node`` itself, not of its inputs."""
    match node:
        case Project(expressions=expressions):
            yield from expressions
        case Filter(condition=condition):
            yield condition
        case (
            Join(condition=Expression() as condition)
            | DependentJoin(condition=Expression() as condition)
        ):
            yield condition
        case MarkJoin(guard=guard, condition=optional):
            yield from (part for part in (guard, optional) if part is not None)
        case Aggregate(calls=calls):
            for call in calls:
                yield from call.expressions
        case Window(calls=window_calls):
            for window_call in window_calls:
                yield from parts_of_call(window_call)
        case Sort(limit=limit, offset=offset):
            yield from (part for part in (limit, offset) if part is not None)
        case Unfold(calls=set_calls):
            for set_call in set_calls:
                yield from set_call.arguments
        case Supplied(arguments=arguments):
            yield from arguments
        case _:
            return


def subqueries_of(node: Logical) -> Iterator[Subquery]:
    """The subqueries in the expressions of ``node`` itself, not those inside of them."""
    for expression in expressions_of(node):
        yield from (part for part in walk(expression) if isinstance(part, Subquery))


def operators_of(node: Logical) -> Iterator[Logical]:
    """``node``, everything below it, and everything in the plans of subqueries."""
    yield node
    for subquery in subqueries_of(node):
        yield from operators_of(subquery.plan)
    for child in inputs_of(node):
        yield from operators_of(child)


def is_by_chance(plan: Logical) -> bool:
    """Whether computing ``plan`` twice may give other rows the second time."""
    return any(is_volatile(e) for node in operators_of(plan) for e in expressions_of(node))
