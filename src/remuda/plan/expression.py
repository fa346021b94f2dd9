"""Scalar expressions and aggregate calls: bound, typed, immutable.

Columns are referred to by a *column id*, an integer that is unique in one statement and keeps its
meaning wherever the column travels in the plan. Positions are resolved only when operators are
built. Every implicit conversion has been made an explicit ``Cast`` by the binder, so both the
optimizer and the evaluator may take the types of arguments at face value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import attrgetter, is_not
from typing import Any, Final

from remuda.datatypes.sql import BOOLEAN, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.plan.relation import ColumnId, Logical

__all__ = ["ColumnId"]  # of remuda.plan.relation


@dataclass(frozen=True, slots=True)
class Expression:
    """The root of the scalar algebra; ``type`` is always known."""

    type: SqlType


@dataclass(frozen=True, slots=True)
class ColumnRef(Expression):
    """``name`` is for people: two references to one column are equal, whatever aliases they were
    written with. (Else rules that look whether something is already known add it for ever.)"""

    column: ColumnId
    name: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    value: PhysicalValue


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """A positional parameter, counted from 0; its value comes with the execution."""

    index: int


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function by its catalog name: ``+``, ``=``, ``and``, ``like``, ``upper`` ...

    The names, their argument types and their NULL rules are in ``plan.functions.catalog``.
    """

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """Searched CASE: ``branches`` are (condition, value); arms not taken are not evaluated."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class InList(Expression):
    """``operand IN (values)``, three-valued; NOT IN is ``not`` around it."""

    operand: Expression
    values: tuple[Expression, ...]


class SubqueryKind(Enum):
    SCALAR = "scalar"
    """The value of output column ``column`` of the only row; NULL without a row."""
    EXISTS = "exists"
    ANY = "any"
    """Whether ``condition`` holds for any row, three-valued: ``IN``, ``= ANY``, ``< SOME``."""


@dataclass(frozen=True, slots=True)
class Subquery(Expression):
    """A query inside an expression; the planner turns it into joins before anything else.

    ``plan`` sees of the query around it only ``parameters``, columns that nothing inside produces:
    for each row, ``parameters[i]`` has the value of ``arguments[i]``. So rewriting the arguments is
    all that rules have to do when columns around the subquery change their names. ``condition`` is
    over the output of ``plan`` and the parameters.
    """

    kind: SubqueryKind
    plan: Logical
    parameters: tuple[ColumnId, ...]
    arguments: tuple[Expression, ...]
    condition: Expression | None = None
    column: ColumnId = 0


@dataclass(frozen=True, slots=True)
class ArgumentOrder:
    """One key of the ORDER BY inside an aggregate call, or of its WITHIN GROUP."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of an Aggregate operator: ``count``, ``sum``, ``avg``, ``min``, ``max``, ...

    ``argument`` is None for ``count(*)``, ``more`` are the arguments after the first. ``filter`` is
    the FILTER clause. ``order`` is the order in which rows are taken, where it decides the result;
    of WITHIN GROUP (ORDER BY x) it is that order, x is the argument, and the direct arguments are
    in ``more``.
    """

    function: str
    argument: Expression | None
    type: SqlType
    distinct: bool = False
    filter: Expression | None = None
    more: tuple[Expression, ...] = ()
    order: tuple[ArgumentOrder, ...] = ()

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """() for ``count(*)``."""
        return () if self.argument is None else (self.argument, *self.more)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Everything that is computed for each row: arguments, filter, order."""
        parts = (*self.arguments, *(key.expression for key in self.order))
        return parts if self.filter is None else (*parts, self.filter)

    def rewritten(self, rewrite: Callable[[Expression], Expression]) -> AggregateCall:
        """The call with each of its expressions replaced."""
        return replace(
            self,
            argument=None if self.argument is None else rewrite(self.argument),
            filter=None if self.filter is None else rewrite(self.filter),
            more=tuple(rewrite(part) for part in self.more),
            order=tuple(replace(key, expression=rewrite(key.expression)) for key in self.order),
        )


@dataclass(frozen=True, slots=True)
class SortKey:
    column: ColumnId
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class EachOf(Expression):
    """Only in the keys of lookups and of pruning: not one value, but each element of ``array`` (an
    expression without columns) that a column of ``type`` can hold."""

    array: Expression


def _of_case(expression: Case) -> tuple[Expression, ...]:
    parts = [part for branch in expression.branches for part in branch]
    return (*parts, expression.otherwise)


_PARTS: Final[dict[type[Expression], Callable[[Any], tuple[Expression, ...]]]] = {
    Call: attrgetter("arguments"),
    Subquery: attrgetter("arguments"),
    Cast: lambda cast: (cast.operand,),
    EachOf: lambda each: (each.array,),
    Case: _of_case,
    InList: lambda part: (part.operand, *part.values),
}
"""By type, because the planner asks more often for parts than for anything else."""


def children(expression: Expression) -> tuple[Expression, ...]:
    parts = _PARTS.get(type(expression))
    return () if parts is None else parts(expression)


def with_children(expression: Expression, parts: tuple[Expression, ...]) -> Expression:
    """``expression`` with ``children`` replaced, in the same order."""
    match expression:
        case Call():
            return Call(expression.type, expression.function, parts)
        case Cast():
            return Cast(expression.type, parts[0])
        case EachOf():
            return EachOf(expression.type, parts[0])
        case Case(branches=branches):
            pairs = tuple((parts[2 * i], parts[2 * i + 1]) for i in range(len(branches)))
            return Case(expression.type, pairs, parts[-1])
        case InList():
            return InList(expression.type, parts[0], parts[1:])
        case Subquery():
            return replace(expression, arguments=parts)
        case _:
            return expression


def transform(expression: Expression, rewrite: Callable[[Expression], Expression]) -> Expression:
    """Rewrite bottom-up."""
    parts = children(expression)
    if parts:
        new_parts = tuple([transform(part, rewrite) for part in parts])
        if any(map(is_not, new_parts, parts)):
            expression = with_children(expression, new_parts)
    return rewrite(expression)


def walk(expression: Expression) -> Iterator[Expression]:
    """``expression`` and all of its parts, each before its own."""
    pending = [expression]
    while pending:
        part = pending.pop()
        yield part
        pending += reversed(children(part))


def columns_of(expression: Expression) -> frozenset[ColumnId]:
    if type(expression) is ColumnRef:
        return frozenset((expression.column,))
    return frozenset([part.column for part in walk(expression) if isinstance(part, ColumnRef)])


def conjuncts(condition: Expression | None) -> tuple[Expression, ...]:
    """The parts of a top-level AND; () for no condition."""
    if condition is None:
        return ()
    if isinstance(condition, Call) and condition.function == "and":
        return tuple(c for part in condition.arguments for c in conjuncts(part))
    return (condition,)


def conjunction(parts: tuple[Expression, ...]) -> Expression | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call(BOOLEAN, "and", parts)
