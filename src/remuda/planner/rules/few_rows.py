"""Rules on joins with rows that the statement itself gives: one row, or the rows of a VALUES."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.datatypes.sql import BOOLEAN
from remuda.plan.expression import (
    Call,
    ColumnId,
    Expression,
    InList,
    Literal,
    columns_of,
    conjuncts,
)
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import Join, JoinKind, Logical, Project, Values
from remuda.planner.algebra import (
    column_equality,
    columns,
    filtered,
    make_join,
    project_map,
    reference,
    substitute,
)
from remuda.planner.rules.rule import Rewriting, Rule

LISTED_ROWS_MAX = 100
"""The keys of a longer VALUES are not worth a second look at each row."""


def _join_one_row(node: Logical, _: Rewriting) -> Logical | None:
    """An inner join with one known row is a filter by its values, which may then find a key."""
    if not isinstance(node, Join) or node.kind is not JoinKind.INNER:
        return None
    for side, other in ((node.right, node.left), (node.left, node.right)):
        known = _one_row(side)
        if known is None:
            continue
        parts = [substitute(part, known) for part in conjuncts(node.condition)]
        below = filtered(other, parts)
        given = {c.id: reference(c) for c in other.output}
        return Project(node.output, below, tuple((given | known)[c.id] for c in node.output))
    return None


def _one_row(node: Logical) -> dict[ColumnId, Expression] | None:
    """The columns of ``node`` as expressions, if it is one row of constants and parameters."""
    match node:
        case Values(rows=(row,)):
            return {c.id: Literal(c.type, v) for c, v in zip(node.output, row, strict=True)}
        case Project(input=Values(rows=(_,))):
            known = project_map(node)
            for expression in known.values():
                if columns_of(expression) or is_volatile(expression):
                    return None
            return known
        case _:
            return None


JOIN_ONE_ROW = Rule("join one row", (Join,), _join_one_row)


def _list_values(node: Logical, _: Rewriting) -> Logical | None:
    """Rows that join a VALUES have one of its values, so a lookup of these may find them."""
    if not isinstance(node, Join) or node.kind not in (JoinKind.INNER, JoinKind.SEMI):
        return None
    left, right = node.left, node.right
    more_left = _lists(node.condition, left, right)
    more_right = _lists(node.condition, right, left) if node.kind is JoinKind.INNER else []
    if not more_left and not more_right:
        return None
    sides = filtered(left, more_left), filtered(right, more_right)
    return make_join(node.kind, *sides, node.condition)


def _lists(condition: Expression | None, side: Logical, other: Logical) -> list[Expression]:
    """``column IN (values)`` for columns of ``side`` that equal one of ``other``, a VALUES."""
    if not isinstance(other, Values) or not 1 <= len(other.rows) <= LISTED_ROWS_MAX:
        return []
    return list(_each_list(conjuncts(condition), side, other))


def _each_list(parts: tuple[Expression, ...], side: Logical, other: Values) -> Iterator[Expression]:
    own = columns(side)
    places = {column.id: place for place, column in enumerate(other.output)}
    for part in parts:
        pair = column_equality(part)
        if pair is None:
            continue
        for mine, theirs in (pair, pair[::-1]):
            if mine.column in own and theirs.column in places:
                values = (row[places[theirs.column]] for row in other.rows)
                known = dict.fromkeys(Literal(theirs.type, v) for v in values if v is not None)
                if len(known) > 1:
                    yield InList(BOOLEAN, mine, tuple(known))
                elif known:
                    yield Call(BOOLEAN, "=", (mine, *known))


LIST_VALUES = Rule("list values", (Join,), _list_values)
