"""Operators of the MEMO: relational algebra over groups of equivalent expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import AggregateCall, ColumnId, Expression, SortKey
from remuda.plan.logical import JoinKind, OutputColumn, Scan

Keys: TypeAlias = tuple[ColumnId, ...]


class PlainOperator:
    """An operator that has one way to run: plans take it as it is (``planner.operators``)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AccessOperator:
    """A scan with everything that filters it."""

    scan: Scan
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class JoinOperator:
    """``equalities`` are (left column, right column). ``mark`` is the column of a MARK join;
    ``null_aware``: see ``physical.HashJoin``, needs the whole right side wherever left rows are."""

    kind: JoinKind
    equalities: tuple[tuple[ColumnId, ColumnId], ...]
    residual: tuple[Expression, ...]
    mark: OutputColumn | None = None
    null_aware: bool = False


@dataclass(frozen=True, slots=True)
class AggregateOperator:
    """``states[i]`` are the state columns of ``calls[i]`` when it is computed in two phases."""

    group: Keys
    results: tuple[OutputColumn, ...]
    calls: tuple[AggregateCall, ...]
    states: tuple[tuple[OutputColumn, ...], ...]
    always: tuple[tuple[PhysicalValue, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class SortOperator:
    keys: tuple[SortKey, ...]
    limit: Expression | None
    offset: Expression | None


Operator: TypeAlias = (
    AccessOperator | JoinOperator | AggregateOperator | SortOperator | PlainOperator
)
