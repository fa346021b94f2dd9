"""Relational algebra: *what* to compute. Immutable trees, columns by id (``plan.expression``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import AggregateCall, ColumnId, Expression, SortKey
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.relation import Logical, OutputColumn
from remuda.plan.sequence_calls import SequenceCall
from remuda.plan.windows import WindowCall

__all__ = ["Logical", "OutputColumn"]  # of remuda.plan.relation


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"
    """Of physical joins only: see MarkJoin."""


@dataclass(frozen=True, slots=True)
class Scan(Logical):
    """All visible rows of a map. ``positions[i]`` is the schema position of ``output[i]``."""

    schema: MapSchema
    alias: str
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Project(Logical):
    """``expressions[i]`` computes ``output[i]``; a bare ColumnRef may keep its id."""

    input: Logical
    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Filter(Logical):
    input: Logical
    condition: Expression


@dataclass(frozen=True, slots=True)
class Join(Logical):
    """``output``: left and right columns (left only for SEMI, ANTI); no condition: cross join."""

    kind: JoinKind
    left: Logical
    right: Logical
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class MarkJoin(Logical):
    """Every row of ``left``, with one more column, BOOLEAN: whether a row of ``right`` matches.

    Only rows of ``right`` for which ``guard`` is true count. The mark is true if ``condition`` is
    true for one of them, NULL if it is NULL for one of them, else false. So it is never NULL
    without a condition (EXISTS).
    """

    left: Logical
    right: Logical
    guard: Expression | None
    condition: Expression | None

    @property
    def mark(self) -> OutputColumn:
        return self.output[-1]


@dataclass(frozen=True, slots=True)
class DependentJoin(Logical):
    """LATERAL: ``right`` is computed for each row of ``left`` and may use its columns. INNER or
    LEFT. The planner makes a Join of it."""

    kind: JoinKind
    left: Logical
    right: Logical
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class Aggregate(Logical):
    """``output`` = the group columns (ids of the input), then one column per call.

    Without group columns there is exactly one row, also over empty input. ``always`` are groups
    (values of the group columns) that are there even if no row falls into them.
    """

    input: Logical
    group: tuple[ColumnId, ...]
    calls: tuple[AggregateCall, ...]
    always: tuple[tuple[PhysicalValue, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Expand(Logical):
    """Each input row once per grouping set, for an Aggregate above.

    ``output`` = the columns of the input, then a copy of each of ``sources``, then the number of
    the set. ``sets[n]`` lists the places in ``sources`` whose copies keep their values in set
    ``n``; the others are NULL.
    """

    input: Logical
    sources: tuple[ColumnId, ...]
    sets: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Unfold(Logical):
    """Each input row once for every row that ``calls`` give for it.

    ``output`` = the columns of the input, then those of each call, then, with ``ordinality``, the
    number of the call's row (BIGINT, from 1). Several calls stand side by side; the shorter ones
    end in NULLs. ``outer``: an input row for which they give none comes out once, with NULLs.
    """

    input: Logical
    calls: tuple[SetCall, ...]
    ordinality: bool = False
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Window(Logical):
    """``output`` = the columns of the input, then one column per call; every input row comes out.

    All calls share one partitioning and one order. () for ``partition``: one partition of all rows.
    """

    input: Logical
    partition: tuple[ColumnId, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]


@dataclass(frozen=True, slots=True)
class Sort(Logical):
    """ORDER BY, LIMIT, OFFSET; any of them may be missing. Limit and offset may be parameters."""

    input: Logical
    keys: tuple[SortKey, ...]
    limit: Expression | None = None
    offset: Expression | None = None


@dataclass(frozen=True, slots=True)
class Values(Logical):
    """Constant rows in physical values."""

    rows: tuple[tuple[PhysicalValue, ...], ...]


@dataclass(frozen=True, slots=True)
class Supplied(Logical):
    """Rows that the initiator has before the query starts: a system relation, or a table that the
    statement itself makes (``definition``). ``relation`` names them, once in a statement.

    ``positions[i]`` is the place of ``output[i]`` among the relation's columns; ``rows`` estimates
    their number.

    A recursive CTE may use columns of the query around it: ``definition`` knows them as
    ``parameters``, and ``arguments`` are their values. The planner takes them away
    (``planner.unnest``) before the definition is planned.
    """

    relation: str
    positions: tuple[int, ...]
    rows: float = 100.0
    alias: str = ""
    definition: Recursion | None = field(default=None, compare=False, repr=False)
    parameters: tuple[ColumnId, ...] = ()
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Recursion:
    """A recursive CTE: the rows of ``base``, then those of ``step`` over what came last, as long as
    it gives any. ``step`` reads them as the relation ``working``; both put out the same types.
    ``distinct`` (UNION): a row that was there before does not count.

    Without ``step``: a CTE that must be computed once, because it would give other rows the next
    time. ``calls`` are then made for each row; their results are its last columns."""

    name: str
    working: str
    base: Logical
    step: Logical | None
    distinct: bool
    calls: tuple[SequenceCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Union(Logical):
    """UNION ALL; the inputs put out the same types in the same order."""

    inputs: tuple[Logical, ...]


class SetKind(Enum):
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(frozen=True, slots=True)
class SetOperation(Logical):
    """INTERSECT or EXCEPT of two or more inputs that put out the same types in the same order.

    NULLs are equal to each other. INTERSECT: rows that every input has; EXCEPT: rows of the first
    input that no other has. ``distinct``: each row once; else (ALL) as often as in the input that
    has it least, or in the first input less the occurrences in the others.
    """

    kind: SetKind
    distinct: bool
    inputs: tuple[Logical, ...]


def _input(node: Any) -> tuple[Logical, ...]:
    return (node.input,)


_INPUTS: Final[dict[type[Logical], Callable[[Any], tuple[Logical, ...]]]] = {
    **dict.fromkeys((Project, Filter, Aggregate, Expand, Unfold, Window, Sort), _input),
    **dict.fromkeys((Join, MarkJoin, DependentJoin), attrgetter("left", "right")),
    **dict.fromkeys((Union, SetOperation), attrgetter("inputs")),
}


def inputs_of(node: Logical) -> tuple[Logical, ...]:
    inputs = _INPUTS.get(type(node))
    return () if inputs is None else inputs(node)
