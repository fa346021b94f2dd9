"""Recognizes plans that are nothing but a secondary index that finds few rows, for a short way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from remuda.datatypes.sql import Kind
from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
)
from remuda.plan.index_access import IndexProbe
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import IndexOrder, IndexScan, PhysicalPlan
from remuda.planner.point import rows_of_leaf

FEW_ROWS_EXPECTED: Final = 100.0
"""By the estimate, of all members together: others go the general way at once."""


@dataclass(frozen=True, slots=True)
class IndexRead:
    """``SELECT expressions FROM map WHERE access AND equal AND filter``, and nothing else.

    ``fetched`` are the schema positions of the columns that it needs of a row, ``columns`` maps the
    column ids used by ``expressions`` and ``filter`` to places among them. ``equal`` are conditions
    ``place = value`` over values whose equality is that of their physical form. ``positions`` is
    set when every output column is simply a column of the map: result row = row[p] for p in
    positions.
    """

    map_name: str
    map_id: int
    schema_version: int
    access: IndexProbe
    fetched: tuple[int, ...]
    equal: tuple[tuple[int, Expression], ...]
    filter: Expression | None
    expressions: tuple[Expression, ...]
    columns: tuple[tuple[ColumnId, int], ...]
    positions: tuple[int, ...] | None
    output: tuple[OutputColumn, ...]
    gathered: bool
    """All members with partitions are asked; otherwise the initiator has all rows."""


def index_read(plan: PhysicalPlan) -> IndexRead | None:
    """The index read that ``plan`` is, or None: one probe of an index, in no order, of all
    partitions, that finds few rows by the estimate."""
    found = rows_of_leaf(plan)
    if found is None or not isinstance(found.leaf, IndexScan):
        return None
    scan = found.leaf
    if not isinstance(scan.access, IndexProbe) or scan.access.negated or not scan.access.choices:
        return None
    if scan.order is not IndexOrder.NONE or scan.partitioned_replica:
        return None
    if scan.traits.rows > FEW_ROWS_EXPECTED or any(f.pruning for f in plan.fragments):
        return None
    at = dict(scan.filter_columns)
    at.update((column.id, place) for column, place in zip(scan.output, scan.positions, strict=True))
    fetched = tuple(sorted(set(at.values())))
    place_of = {column: fetched.index(position) for column, position in at.items()}
    equal: list[tuple[int, Expression]] = []
    others: list[Expression] = []
    for part in (*conjuncts(scan.filter), *found.filters):
        test = _equality(part)
        if test is None:
            others.append(part)
        else:
            equal.append((place_of[test[0]], test[1]))
    places = [place_of[e.column] for e in found.expressions if isinstance(e, ColumnRef)]
    return IndexRead(
        scan.map_name,
        scan.map_id,
        scan.schema_version,
        scan.access,
        fetched,
        tuple(equal),
        conjunction(tuple(others)),
        found.expressions,
        tuple(place_of.items()),
        tuple(places) if len(places) == len(found.expressions) else None,
        plan.output,
        found.gathered,
    )


def _equality(part: Expression) -> tuple[ColumnId, Expression] | None:
    """``column = value`` where equal values have equal physical forms. Floats do not (NaN), nor do
    values of other types than the column's."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    for column, value in _both_ways(part):
        if isinstance(column, ColumnRef) and not columns_of(value) and column.type == value.type:
            exact = column.type.is_integer or column.type.kind is Kind.VARCHAR
            return (column.column, value) if exact else None
    return None


def _both_ways(part: Call) -> Iterator[tuple[Expression, Expression]]:
    left, right = part.arguments
    yield left, right
    yield right, left
