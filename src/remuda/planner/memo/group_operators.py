"""Operators of the MEMO: relational algebra over groups of equivalent expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import AggregateCall, ColumnId, Expression, SortKey
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.logical import JoinKind, OutputColumn, Scan
from remuda.plan.physical import Distribution
from remuda.plan.windows import WindowCall

Keys: TypeAlias = tuple[ColumnId, ...]


@dataclass(frozen=True, slots=True)
class AccessOperator:
    """A scan with everything that filters it."""

    scan: Scan
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class ValuesOperator:
    """``output`` keeps equal rows apart that stand in different places: each has its columns."""

    output: tuple[OutputColumn, ...]
    rows: tuple[tuple[PhysicalValue, ...], ...]


@dataclass(frozen=True, slots=True)
class SuppliedOperator:
    output: tuple[OutputColumn, ...]
    relation: str
    alias: str
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SharedOperator:
    """A read of spool ``spool``: ``output[i]`` is its column ``positions[i]``. ``distribution`` is
    where its rows are, in the columns read."""

    output: tuple[OutputColumn, ...]
    spool: int
    positions: tuple[int, ...]
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class FilterOperator:
    condition: Expression


@dataclass(frozen=True, slots=True)
class ProjectOperator:
    output: tuple[OutputColumn, ...]
    expressions: tuple[Expression, ...]


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
class ExpandOperator:
    """``results`` are the copies and the number of the set."""

    sources: Keys
    sets: tuple[tuple[int, ...], ...]
    results: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class UnfoldOperator:
    calls: tuple[SetCall, ...]
    ordinality: bool
    outer: bool
    results: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class GroupLimitOperator:
    """See ``plan.physical.GroupLimitRows``."""

    partition: Keys
    order: tuple[SortKey, ...]
    limit: Expression


@dataclass(frozen=True, slots=True)
class WindowOperator:
    partition: Keys
    order: tuple[SortKey, ...]
    results: tuple[OutputColumn, ...]
    calls: tuple[WindowCall, ...]


@dataclass(frozen=True, slots=True)
class SortOperator:
    keys: tuple[SortKey, ...]
    limit: Expression | None
    offset: Expression | None


@dataclass(frozen=True, slots=True)
class UnionOperator:
    """``columns[i]`` are the columns of input i, in the order of the group's output."""

    columns: tuple[tuple[OutputColumn, ...], ...]


PlainOperator: TypeAlias = (
    ValuesOperator
    | SuppliedOperator
    | SharedOperator
    | FilterOperator
    | ProjectOperator
    | ExpandOperator
    | GroupLimitOperator
    | UnfoldOperator
    | WindowOperator
    | UnionOperator
)
"""Operators that have one way to run: plans take them as they are."""

Operator: TypeAlias = (
    AccessOperator | JoinOperator | AggregateOperator | SortOperator | PlainOperator
)
