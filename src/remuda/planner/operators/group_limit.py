"""Small ranks: ``rank() OVER w <= n`` above a window lets each member drop rows before they move.

A row that has a rank above n among the rows of its own member has one above n among all rows. So
the input of the window may be cut to such rows wherever it is; the filter stays where it was. This
is how DISTINCT ON, FETCH FIRST ... WITH TIES and queries for the first n of each group come by
without moving or sorting all rows. (Spark calls it WindowGroupLimit.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    columns_of,
    conjuncts,
    walk,
)
from remuda.plan.expression import Subquery as SubqueryExpression
from remuda.plan.logical import Window
from remuda.plan.physical import GroupLimitRows, Physical
from remuda.planner.algebra import window_results
from remuda.planner.estimates.cardinality import Estimate, estimate_groups
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import TOP
from remuda.planner.memo.group_operators import Keys, PlainOperator
from remuda.planner.memo.nodes import Build, Columns, traits_of
from remuda.planner.memo.operators import OperatorGroups, literal_rows
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search

_FROM_EARLIER_ROWS = frozenset({"row_number", "rank", "dense_rank"})
"""Window functions whose value for a row does not depend on the rows after it."""
_BOUNDING = frozenset({"row_number", "rank"})
"""Functions whose value is at least the rank."""
_FLIPPED = {"<=": ">=", "<": ">", "=": "="}


@dataclass(frozen=True, slots=True)
class GroupLimitOperator(PlainOperator):
    """See ``plan.physical.GroupLimitRows``."""

    partition: Keys
    order: tuple[SortKey, ...]
    limit: Expression


def limited_group(groups: OperatorGroups, below: Group, window: Window, limit: Expression) -> Group:
    """The input of ``window``, less rows of a rank above ``limit``."""
    known = below.estimate
    partitions = 1.0
    if window.partition:
        partitions, _ = estimate_groups(known, window.partition)
    members = max(1, groups.rewriting.context.members)
    rows = min(known.rows, partitions * members * max(literal_rows(limit) or 1.0, 1.0))
    made = groups.group(
        GroupLimitOperator(window.partition, window.order, limit),
        (below.id,),
        below.output,
        Estimate(rows, rows, known.columns),
        below.natural,
    )
    made.same = below.same
    return made


def largest_rank(window: Window, condition: Expression) -> Expression | None:
    """The n of ``rank() <= n`` (or ``<``, ``=``) in ``condition`` if rows of higher ranks change
    nothing; it has no columns."""
    if not window.order or any(c.function not in _FROM_EARLIER_ROWS for c in window.calls):
        return None
    ranks = {
        column.id
        for column, call in zip(window_results(window), window.calls, strict=True)
        if call.function in _BOUNDING
    }
    for part in conjuncts(condition):
        bound = _bound_of(part, ranks)
        if bound is not None:
            return bound
    return None


def _bound_of(part: Expression, ranks: set[ColumnId]) -> Expression | None:
    if not isinstance(part, Call) or len(part.arguments) != 2:
        return None
    left, right = part.arguments
    if part.function in _FLIPPED and _is_rank(left, ranks) and _is_constant(right):
        return right
    if part.function in _FLIPPED.values() and _is_rank(right, ranks) and _is_constant(left):
        return left
    return None


def _is_rank(expression: Expression, ranks: set[ColumnId]) -> bool:
    return isinstance(expression, ColumnRef) and expression.column in ranks


def _is_constant(expression: Expression) -> bool:
    if isinstance(expression, Literal) and expression.value is None:
        return False
    return (
        expression.type.is_integer
        and not columns_of(expression)
        and not any(isinstance(part, SubqueryExpression) for part in walk(expression))
    )


def _candidates(
    search: Search,
    group: Group,
    operator: GroupLimitOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """Rows are dropped where they are."""
    source = search.best(inputs[0], required)
    if source is None:
        return
    rows = search.model.on_one(max(source.rows, 1.0), source.distribution)
    cost = search.model.sort(rows, None) if operator.partition else TOP * rows
    kept = min(source.rows, group.estimate.rows)
    yield Candidate(group, operator, (source,), source.distribution, source.cost + cost, kept)


def _node(
    candidate: Candidate, step: GroupLimitOperator, needed: Columns, build: Build
) -> Physical:
    used = set(step.partition) | {key.column for key in step.order}
    child = build(candidate.inputs[0], needed | used)
    return GroupLimitRows(
        child.output, traits_of(candidate), child, step.partition, step.order, step.limit
    )


register(GroupLimitOperator, PlainRule("group limit", _candidates, _node))
