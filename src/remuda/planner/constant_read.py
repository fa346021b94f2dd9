"""Recognizes plans that read no map: expressions over a few rows that are in the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import ColumnId, Expression, Subquery, conjunction, walk
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.physical import PhysicalPlan, ValuesScan
from remuda.planner.point import rows_of_leaf

ROWS_MAX: Final = 100
"""In the plan: more are computed in the general way."""


@dataclass(frozen=True, slots=True)
class ConstantRead:
    """``SELECT expressions FROM (VALUES rows) WHERE filter``, and nothing else. ``columns`` maps
    the column ids used by ``expressions`` and ``filter`` to places in the rows."""

    rows: tuple[tuple[PhysicalValue, ...], ...]
    columns: tuple[tuple[ColumnId, int], ...]
    filter: Expression | None
    expressions: tuple[Expression, ...]
    types: tuple[SqlType, ...]
    """Of the columns of ``rows``."""


def constant_read(plan: PhysicalPlan) -> ConstantRead | None:
    """The constant read that ``plan`` is, or None. Its values are the same each time that they are
    computed from the same parameters."""
    found = rows_of_leaf(plan)
    if found is None or not isinstance(found.leaf, ValuesScan) or found.gathered:
        return None
    leaf = found.leaf
    parts = (*found.expressions, *found.filters)
    if not found.expressions or len(leaf.rows) > ROWS_MAX:
        return None
    if any(is_volatile(part) for part in parts):
        return None
    if any(isinstance(each, Subquery) for part in parts for each in walk(part)):
        return None
    return ConstantRead(
        leaf.rows,
        tuple([(column.id, place) for place, column in enumerate(leaf.output)]),
        conjunction(found.filters),
        found.expressions,
        tuple([column.type for column in leaf.output]),
    )
