"""The columns that tell for which values of its parameters a row of a plan is meant."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.plan.expression import Call, ColumnId, ColumnRef, Expression, Literal
from remuda.plan.functions.aggregates import never_null
from remuda.plan.logical import Logical, OutputColumn, Project
from remuda.planner.algebra import in_order, reference
from remuda.planner.rules.rule import Rewriting


@dataclass(frozen=True, slots=True)
class Bound:
    """The column that has a parameter's value. ``strict``: no row is meant for NULL, because the
    plan compares the parameter with ``=``."""

    column: ColumnRef
    strict: bool


Binding = dict[ColumnId, Bound]


def carry(
    below: Logical, bound: Binding, output: list[OutputColumn], expressions: list[Expression]
) -> None:
    """Add the bindings to a projection of ``below``, where it has not got them yet."""
    by_id = {column.id: column for column in below.output}
    ids = {column.id for column in output}
    for found in bound.values():
        column = by_id[found.column.column]
        if column.id not in ids:
            ids.add(column.id)
            output.append(column)
            expressions.append(reference(column))


def value_without_rows(value: ColumnRef, function: str) -> Expression:
    """Over no rows a count is 0, where an outer join pads with NULL."""
    if never_null(function):
        return Call(value.type, "coalesce", (value, Literal(value.type, 0)))
    return value


def listed(node: Logical, columns: tuple[OutputColumn, ...], rewriting: Rewriting) -> Logical:
    """``node`` putting out ``columns`` in this order; one that occurs twice gets a second id."""
    if len({column.id for column in columns}) == len(columns):
        return in_order(node, columns)
    seen: set[ColumnId] = set()
    output = []
    for column in columns:
        output.append(
            rewriting.fresh(column.name, column.type, column.nullable)
            if column.id in seen
            else column
        )
        seen.add(column.id)
    return Project(tuple(output), node, tuple(reference(c) for c in columns))
