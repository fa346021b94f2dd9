"""How many rows a subquery can have for one row of the query around it."""

from __future__ import annotations

from collections.abc import Iterable

from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    columns_of,
    conjuncts,
)
from remuda.plan.logical import Aggregate, Filter, Logical, Project, Scan, Sort, Values, Window
from remuda.planner.algebra import project_map, substitute


def at_most_one_row(plan: Logical) -> bool:
    match plan:
        case Aggregate(group=group, always=always):
            return not group and len(always) <= 1
        case Values(rows=rows):
            return len(rows) <= 1
        case Sort(limit=Literal(value=int(limit))) if limit <= 1:
            return True
        case Project(input=child) | Filter(input=child) | Sort(input=child) | Window(input=child):
            return at_most_one_row(child)
        case _:
            return False


def exactly_one_row(plan: Logical) -> bool:
    match plan:
        case Aggregate(group=group, always=always):
            return not group and len(always) <= 1
        case Values(rows=rows):
            return len(rows) == 1
        case Project(input=child) | Window(input=child):
            return exactly_one_row(child)
        case _:
            return False


def finds_one_row(node: Logical, conditions: Iterable[Expression]) -> bool:
    """Whether ``conditions``, over columns of ``node`` and others that are fixed, compare a key of
    ``node`` for equality, so that at most one row meets them."""
    match node:
        case Project(input=child):
            made = project_map(node)
            return finds_one_row(child, [substitute(part, made) for part in conditions])
        case Filter(input=child, condition=condition):
            return finds_one_row(child, [*conditions, *conjuncts(condition)])
        case Sort(input=child):
            return finds_one_row(child, conditions)
        case Scan(schema=schema):
            fixed = {
                schema.columns[position].name
                for column, position in zip(node.output, node.positions, strict=True)
                if column.id in _fixed(node, conditions)
            }
            return set(schema.key) <= fixed
        case Aggregate(group=group) if group:
            return set(group) <= _fixed(node, conditions)
        case _:
            return False


def _fixed(node: Logical, conditions: Iterable[Expression]) -> set[ColumnId]:
    """Columns of ``node`` that must equal something which is not of ``node``."""
    found: set[ColumnId] = set()
    for part in conditions:
        if not isinstance(part, Call) or part.function != "=":
            continue
        for this, other in (part.arguments, part.arguments[::-1]):
            if (
                isinstance(this, ColumnRef)
                and this.column in node.column_ids
                and not columns_of(other) & node.column_ids
            ):
                found.add(this.column)
    return found
