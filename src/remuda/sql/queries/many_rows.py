"""Long lists of rows with parameters, as drivers write them: one operator gives the cells of all
rows, and one projection computes what is computed of them.

A projection for each row would make an operator for each row, which a member builds on its loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from remuda.datatypes.sql import BOOLEAN, INTEGER, Kind, SqlType
from remuda.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    Parameter,
    children,
    with_children,
)
from remuda.plan.functions.set_functions import GIVEN_ROWS, SetCall
from remuda.plan.logical import Logical, OutputColumn, Project, Unfold
from remuda.plan.nullability import is_nullable
from remuda.sql.scope.context import Context
from remuda.sql.scope.output import one_row

MANY: Final = 16
"""From so many rows the cells stand in one operator."""
SHAPES_MAX: Final = 8
"""Cells of one column that are computed in more ways than these get a projection for each row."""

_TWO_ZEROS: Final = (Kind.REAL, Kind.DOUBLE)
"""Kinds of which values that are equal may be told apart."""

Shape: TypeAlias = object
Leaf: TypeAlias = Literal | Parameter


class _NotPlain(Exception):
    """A cell that has a subquery, or a column of an outer query, or is a CASE."""


@dataclass(slots=True)
class _Form:
    """Cells of one shape: they differ in their leaves alone."""

    number: int
    cell: Expression
    """The first one."""
    leaves: list[list[Leaf]] = field(default_factory=list)
    """For each leaf the values in all rows; rows of other forms have NULL."""


def many_rows(
    context: Context, output: tuple[OutputColumn, ...], rows: Sequence[Sequence[Expression]]
) -> Logical | None:
    """The rows, at least ``MANY``, as one plan, or None if it does not suit their cells."""
    cells = _Cells(context, len(rows))
    try:
        expressions = tuple(
            cells.column([row[place] for row in rows], column.type)
            for place, column in enumerate(output)
        )
    except _NotPlain:
        return None
    if not cells.columns:
        return None
    arguments = tuple(leaf for row in zip(*cells.values, strict=True) for leaf in row)
    types = tuple(column.type for column in cells.columns)
    call = SetCall(GIVEN_ROWS, arguments, types)
    return Project(output, Unfold(tuple(cells.columns), one_row(), (call,)), expressions)


class _Cells:
    """The columns of the operator that gives the leaves."""

    def __init__(self, context: Context, rows: int) -> None:
        self._context = context
        self._rows = rows
        self.columns: list[OutputColumn] = []
        self.values: list[Sequence[Leaf]] = []

    def column(self, cells: Sequence[Expression], sql_type: SqlType) -> Expression:
        """The expression that computes a column of the rows from the leaves. Raises _NotPlain."""
        forms: dict[Shape, _Form] = {}
        numbers: list[int] = []
        for row, cell in enumerate(cells):
            leaves: list[Leaf] = []
            shape = _shape(cell, leaves, fixed=False)
            form = forms.get(shape)
            if form is None:
                if len(forms) == SHAPES_MAX:
                    raise _NotPlain
                form = forms[shape] = _Form(len(forms), cell, [[] for _ in leaves])
            for known, leaf in zip(form.leaves, leaves, strict=True):
                known.extend([Literal(leaf.type, None)] * (row - len(known)))
                known.append(leaf)
            numbers.append(form.number)
        found = [self._computed(form) for form in forms.values()]
        if len(found) == 1:
            return found[0]
        which = self._given([Literal(INTEGER, number) for number in numbers])
        branches = tuple(
            (Call(BOOLEAN, "=", (which, Literal(INTEGER, number))), value)
            for number, value in enumerate(found[:-1])
        )
        return Case(sql_type, branches, found[-1])

    def _computed(self, form: _Form) -> Expression:
        parts = iter([self._leaf(values) for values in form.leaves])
        return _rebuilt(form.cell, parts, fixed=False)

    def _leaf(self, values: list[Leaf]) -> Expression:
        first = values[0]
        values += [Literal(first.type, None)] * (self._rows - len(values))
        same = first.type.kind not in _TWO_ZEROS and all(value == first for value in values)
        return first if same else self._given(values)

    def _given(self, values: Sequence[Leaf]) -> ColumnRef:
        name = f"cell{len(self.columns) + 1}"
        nullable = any(is_nullable(value, {}) for value in values)
        column = OutputColumn(self._context.new_id(), name, values[0].type, nullable)
        self.columns.append(column)
        self.values.append(values)
        return ColumnRef(column.type, column.id, name)


def _shape(cell: Expression, leaves: list[Leaf], *, fixed: bool) -> Shape:
    """Cells of equal shapes are computed by one expression. ``fixed``: constants count,
    because some functions want theirs to be literals."""
    match cell:
        case Parameter():
            leaves.append(cell)
            return cell.type
        case Literal():
            if fixed:
                return cell.type, repr(cell.value)
            leaves.append(cell)
            return cell.type
        case Cast(type=target, operand=operand):
            return Cast, target, _shape(operand, leaves, fixed=fixed)
        case Call(type=target, function=function, arguments=arguments):
            parts = tuple([_shape(part, leaves, fixed=True) for part in arguments])
            return Call, target, function, parts
        case _:
            raise _NotPlain


def _rebuilt(cell: Expression, leaves: Iterator[Expression], *, fixed: bool) -> Expression:
    """``cell`` with others in place of its leaves, in the order in which ``_shape`` finds them."""
    if isinstance(cell, Parameter) or (isinstance(cell, Literal) and not fixed):
        return next(leaves)
    parts = children(cell)
    inside = fixed or isinstance(cell, Call)
    found = tuple([_rebuilt(part, leaves, fixed=inside) for part in parts])
    return with_children(cell, found) if parts else cell
