"""Subqueries that have one row whatever happens: an aggregate without GROUP BY, or no FROM."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.datatypes.sql import BIGINT
from remuda.plan.expression import ColumnId, Expression, Literal, conjuncts
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import Aggregate, Filter, Logical, Project, Sort, Values
from remuda.plan.uses import expressions_of
from remuda.planner.algebra import project_map, reference, substitute
from remuda.planner.unnest.bindings import value_without_rows


@dataclass(frozen=True, slots=True)
class SingleRow:
    """``values`` computes each output column of the subquery from the only row of ``core``; the
    row is there if all ``conditions`` (HAVING, WHERE above) are true. Without ``core`` there is
    nothing that they are computed from."""

    core: Aggregate | None
    values: dict[ColumnId, Expression]
    conditions: tuple[Expression, ...]


def single_row(plan: Logical) -> SingleRow | None:
    """The nodes above the only row of ``plan``; None if it may have any number of rows."""
    chain: list[Project | Filter | Sort] = []
    node = plan
    while True:
        match node:
            case Project(input=child) | Filter(input=child):
                chain.append(node)
            case Sort(input=child, limit=limit, offset=None) if _keeps_one(limit):
                chain.append(node)
            case _:
                break
        node = child
    if any(is_volatile(e) for above in chain for e in expressions_of(above)):
        return None  # the row is computed once, not for each row of the outer query
    core: Aggregate | None = None
    values: dict[ColumnId, Expression] = {}
    if isinstance(node, Aggregate) and not node.group:
        core = node
        for column, call in zip(node.output, node.calls, strict=True):
            values[column.id] = value_without_rows(reference(column), call.function)
    elif not (isinstance(node, Values) and node.rows == ((),)):
        return None
    conditions: list[Expression] = []
    for above in reversed(chain):
        if isinstance(above, Project):
            made = project_map(above)
            values = {column: substitute(e, values) for column, e in made.items()}
        elif isinstance(above, Filter):
            parts = conjuncts(above.condition)
            conditions += [substitute(part, values) for part in parts]
    return SingleRow(core, values, tuple(conditions))


def _keeps_one(limit: Expression | None) -> bool:
    return limit is None or (
        isinstance(limit, Literal)
        and limit.type == BIGINT
        and (limit.value is None or (isinstance(limit.value, int) and limit.value >= 1))
    )
