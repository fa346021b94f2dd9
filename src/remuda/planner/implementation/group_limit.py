"""Small ranks: ``rank() OVER w <= n`` above a window lets each member drop rows before they move.

A row that has a rank above n among the rows of its own member has one above n among all rows. So
the input of the window may be cut to such rows wherever it is; the filter stays where it was. This
is how DISTINCT ON, FETCH FIRST ... WITH TIES and queries for the first n of each group come by
without moving or sorting all rows. (Spark calls it WindowGroupLimit.)
"""

from __future__ import annotations

from collections.abc import Iterator

from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    walk,
)
from remuda.plan.expression import Subquery as SubqueryExpression
from remuda.plan.logical import Window
from remuda.planner.algebra import window_results
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import TOP
from remuda.planner.memo.group_operators import GroupLimitOperator, Operator
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search

_FROM_EARLIER_ROWS = frozenset({"row_number", "rank", "dense_rank"})
"""Window functions whose value for a row does not depend on the rows after it."""
_BOUNDING = frozenset({"row_number", "rank"})
"""Functions whose value is at least the rank."""
_FLIPPED = {"<=": ">=", "<": ">", "=": "="}


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


def implement_group_limit(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """Rows are dropped where they are."""
    assert isinstance(operator, GroupLimitOperator)
    source = search.best(inputs[0], required)
    if source is None:
        return
    rows = search.model.on_one(max(source.rows, 1.0), source.distribution)
    cost = search.model.sort(rows, None) if operator.partition else TOP * rows
    kept = min(source.rows, group.estimate.rows)
    yield Candidate(group, operator, (source,), source.distribution, source.cost + cost, kept)
