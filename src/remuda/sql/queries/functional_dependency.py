"""Columns that a GROUP BY determines without listing them: those of a map whose key it lists."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from remuda.plan.expression import ColumnId
from remuda.plan.logical import DependentJoin, Filter, Join, Logical, MarkJoin, Scan


def determined_columns(plan: Logical, keys: AbstractSet[ColumnId]) -> frozenset[ColumnId]:
    """The columns of those maps in ``plan`` (a FROM clause) whose primary key is in ``keys``."""
    match plan:
        case Scan(output=output, positions=positions, schema=schema):
            by_position = {p: c.id for c, p in zip(output, positions, strict=True)}
            key = {by_position.get(position) for position in schema.key_positions}
            return plan.column_ids if key <= keys else frozenset()
        case Filter(input=child):
            return determined_columns(child, keys)
        case MarkJoin(left=left):
            return determined_columns(left, keys)
        case Join(left=left, right=right) | DependentJoin(left=left, right=right):
            return determined_columns(left, keys) | determined_columns(right, keys)
        case _:
            return frozenset()
