"""From which columns of tables and views the columns of a result come, as PostgreSQL tells clients
in RowDescription: those that the query puts out as they are, also out of subqueries and joins."""

from __future__ import annotations

from collections.abc import Iterable

from remuda.datatypes.schema import HIDDEN, Origin
from remuda.plan.expression import ColumnId, ColumnRef, Expression
from remuda.plan.logical import Logical, Project, SetOperation, Union, inputs_of
from remuda.sql.scope.context import Context


def note_origins(context: Context, oid: int, columns: Iterable[tuple[str, Expression]]) -> None:
    """``columns`` are those of the relation ``oid``, in its order; 0: of no known one."""
    shown = [expression for name, expression in columns if name not in HIDDEN] if oid else []
    for number, expression in enumerate(shown, 1):
        if isinstance(expression, ColumnRef):
            context.origins[expression.column] = Origin(oid, number)


def origins(context: Context, plan: Logical) -> tuple[Origin | None, ...]:
    """Of each column of ``plan``, in order; None for what an expression or a set operation made."""
    return tuple([_of_column(context, plan, column.id) for column in plan.output])


def _of_column(context: Context, plan: Logical, column: ColumnId) -> Origin | None:
    known = context.origins.get(column)
    if known is not None:
        return known
    match plan:
        case Project(input=below, expressions=expressions):
            place = next(i for i, output in enumerate(plan.output) if output.id == column)
            expression = expressions[place]
            if isinstance(expression, ColumnRef):
                return _of_column(context, below, expression.column)
            return None
        case Union() | SetOperation():
            return None
        case _:
            inputs = [each for each in inputs_of(plan) if column in each.column_ids]
            return _of_column(context, inputs[0], column) if len(inputs) == 1 else None
