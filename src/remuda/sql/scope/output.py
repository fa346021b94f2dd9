"""Output columns of logical operators: ids, names, nullability; and what plans use and produce."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.plan.expression import (
    ColumnId,
    ColumnRef,
    Expression,
    walk,
)
from remuda.plan.logical import (
    Aggregate,
    Join,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Values,
    inputs_of,
)
from remuda.plan.nullability import is_nullable, nullability
from remuda.plan.uses import expressions_of
from remuda.sql.scope.context import Context


def project(
    context: Context, plan: Logical, names: Sequence[str], expressions: Sequence[Expression]
) -> Logical:
    """``plan`` projected; bare columns keep their ids (the first time), and a projection that
    changes nothing is left out."""
    nullable = nullability(plan)
    used: set[ColumnId] = set()
    own = plan.column_ids  # a column of an enclosing query is not ours to put out
    output: list[OutputColumn] = []
    for name, expression in zip(names, expressions, strict=True):
        if (
            isinstance(expression, ColumnRef)
            and expression.column in own
            and expression.column not in used
        ):
            column_id = expression.column
        else:
            column_id = context.new_id()
        used.add(column_id)
        output.append(
            OutputColumn(column_id, name, expression.type, is_nullable(expression, nullable))
        )
    if tuple(output) == plan.output:
        return plan
    return Project(tuple(output), plan, tuple(expressions))


def joined(kind: JoinKind, left: Logical, right: Logical, condition: Expression | None) -> Logical:
    """A join with its output columns; the padded side of an outer join becomes nullable."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return Join(left.output, kind, left, right, condition)
    left_output, right_output = left.output, right.output
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        left_output = _padded(left_output)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        right_output = _padded(right_output)
    return Join(left_output + right_output, kind, left, right, condition)


def _padded(output: tuple[OutputColumn, ...]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(c.id, c.name, c.type, nullable=True) for c in output)


def distinct(plan: Logical) -> Logical:
    return Aggregate(plan.output, plan, tuple(column.id for column in plan.output), ())


def one_row() -> Logical:
    """The input of a SELECT without FROM."""
    return Values((), ((),))


def free_references(plan: Logical) -> dict[ColumnId, ColumnRef]:
    """The columns that ``plan`` uses and nobody in it produces, in the order of their ids: they
    belong to an enclosing query."""
    used: dict[ColumnId, ColumnRef] = {}
    produced: set[ColumnId] = set()
    pending = [plan]
    while pending:
        node = pending.pop()
        for expression in expressions_of(node):
            for part in walk(expression):
                if isinstance(part, ColumnRef):
                    used.setdefault(part.column, part)
        produced |= node.column_ids
        pending += inputs_of(node)
    return {column: used[column] for column in sorted(used.keys() - produced)}


def free_columns(plan: Logical) -> set[ColumnId]:
    """The ids of ``free_references``."""
    return set(free_references(plan))
