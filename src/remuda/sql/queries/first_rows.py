"""DISTINCT ON, WITH TIES and LIMIT by columns: the first rows of groups, and of all, by the numbers
that window functions give them."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.sql import BIGINT, BOOLEAN, VARCHAR
from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    conjunction,
)
from remuda.plan.logical import Filter, Logical, OutputColumn, Project, Sort, Window
from remuda.plan.windows import WindowCall
from remuda.sql.scope.context import Context


def first_of_each(
    context: Context, plan: Logical, group: Sequence[ColumnId], keys: Sequence[SortKey]
) -> Logical:
    """The first row, in the order of ``keys``, of those that are equal in ``group``."""
    order = tuple(key for key in keys if key.column not in group)
    number = OutputColumn(context.new_id(), "row_number", BIGINT, nullable=False)
    call = WindowCall("row_number", (), BIGINT)
    window = Window((*plan.output, number), plan, tuple(dict.fromkeys(group)), order, (call,))
    return _kept(plan, window, _compared(number, "=", Literal(BIGINT, 1)))


def with_ties(
    context: Context,
    plan: Logical,
    keys: tuple[SortKey, ...],
    limit: Expression,
    offset: Expression | None,
) -> Logical:
    """``OFFSET offset FETCH FIRST limit ROWS WITH TIES``, sorted by ``keys``.

    A row is among the first n or ties with the last of them exactly if its rank is at most n.
    """
    columns = [
        OutputColumn(context.new_id(), name, BIGINT, nullable=False)
        for name in ("rank", "row_number")
    ]
    calls = tuple(WindowCall(column.name, (), BIGINT) for column in columns)
    window = Window((*plan.output, *columns), plan, (), keys, calls)
    last = limit if offset is None else _sum(limit, offset)
    conditions = [_compared(columns[0], "<=", last)]
    if offset is not None:
        conditions.append(_compared(columns[1], ">", offset))
    condition = conjunction(tuple(conditions))
    assert condition is not None
    return Sort(plan.output, _kept(plan, window, condition), keys)


def limited_by_columns(
    context: Context,
    plan: Logical,
    keys: tuple[SortKey, ...],
    limit: Expression | None,
    offset: Expression | None,
) -> Logical:
    """LIMIT and OFFSET that refer to columns of a query around this one: how many rows stay differs
    from one row there to the next. NULL stands for no LIMIT and no OFFSET."""
    number = OutputColumn(context.new_id(), "row_number", BIGINT, nullable=False)
    call = WindowCall("row_number", (), BIGINT)
    window = Window((*plan.output, number), plan, (), keys, (call,))
    skipped: Expression = Literal(BIGINT, 0)
    if offset is not None:
        skipped = Call(BIGINT, "coalesce", (_counted(offset, "OFFSET"), skipped))
    conditions = [_compared(number, ">", skipped)]
    if limit is not None:
        behind = Call(BIGINT, "-", (ColumnRef(BIGINT, number.id, number.name), skipped))
        within = Call(BOOLEAN, "<=", (behind, _counted(limit, "LIMIT")))
        conditions.append(Call(BOOLEAN, "or", (Call(BOOLEAN, "is_null", (limit,)), within)))
    condition = conjunction(tuple(conditions))
    assert condition is not None
    return Sort(plan.output, _kept(plan, window, condition), keys)


def _counted(value: Expression, clause: str) -> Expression:
    return Call(BIGINT, "row_count", (value, Literal(VARCHAR, clause)))


def _sum(limit: Expression, offset: Expression) -> Expression:
    match limit, offset:
        case Literal(value=int(rows)), Literal(value=int(skipped)):
            return Literal(BIGINT, min(rows + skipped, 2**63 - 1))
        case _:
            return Call(BIGINT, "+", (limit, offset))


def _compared(column: OutputColumn, comparison: str, value: Expression) -> Expression:
    return Call(BOOLEAN, comparison, (ColumnRef(column.type, column.id, column.name), value))


def _kept(plan: Logical, window: Window, condition: Expression) -> Logical:
    """The rows of ``window`` that pass, with the columns of ``plan``."""
    expressions = tuple(ColumnRef(c.type, c.id, c.name) for c in plan.output)
    return Project(plan.output, Filter(window.output, window, condition), expressions)
