"""Relational algebra: *what* to compute. Immutable trees, columns by id (``plan.expression``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import AggregateCall, ColumnId, Expression, SortKey
from remuda.plan.windows import WindowCall


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column that an operator puts out."""

    id: ColumnId
    name: str
    type: SqlType
    nullable: bool = True


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True, slots=True)
class Logical:
    """``output`` lists the columns in order; every other node refers to them by id."""

    output: tuple[OutputColumn, ...]


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
class Aggregate(Logical):
    """``output`` = the group columns (ids of the input), then one column per call.

    Without group columns there is exactly one row, also over empty input.
    """

    input: Logical
    group: tuple[ColumnId, ...]
    calls: tuple[AggregateCall, ...]


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
class Union(Logical):
    """UNION ALL; the inputs put out the same types in the same order."""

    inputs: tuple[Logical, ...]


def inputs_of(node: Logical) -> tuple[Logical, ...]:
    match node:
        case (
            Project(input=child)
            | Filter(input=child)
            | Aggregate(input=child)
            | Window(input=child)
            | Sort(input=child)
        ):
            return (child,)
        case Join(left=left, right=right):
            return (left, right)
        case Union(inputs=nodes):
            return nodes
        case _:
            return ()
