"""Candidates: physical alternatives with their cost, before operators are built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from remuda.datatypes.index import IndexDefinition
from remuda.plan.expression import ColumnId, Expression, SortKey
from remuda.plan.index_access import IndexAccess
from remuda.plan.logical import JoinKind, OutputColumn, Scan
from remuda.plan.physical import AggregatePhase, Distribution, ExchangeKind, IndexOrder
from remuda.planner.memo.memo import (
    AggregateOperator,
    ExpandOperator,
    FilterOperator,
    Group,
    GroupLimitOperator,
    Keys,
    ProjectOperator,
    SharedOperator,
    SuppliedOperator,
    UnfoldOperator,
    UnionOperator,
    ValuesOperator,
    WindowOperator,
)
from remuda.planner.memo.properties import Required, satisfies


@dataclass(frozen=True, slots=True)
class ScanStep:
    scan: Scan
    condition: Expression | None
    partitioned_replica: bool = False
    access: IndexAccess | None = None
    """The rows that secondary indexes name, instead of all."""
    order: IndexOrder = IndexOrder.NONE


@dataclass(frozen=True, slots=True)
class LookupStep:
    scan: Scan
    keys: tuple[tuple[Expression, ...], ...]
    residual: Expression | None


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Hash join when there are ``pairs``, nested loops otherwise; with an ``order`` (of the left
    columns of ``pairs``, one by one) a merge join."""

    kind: JoinKind
    pairs: tuple[tuple[ColumnId, ColumnId], ...]
    residual: tuple[Expression, ...]
    mark: OutputColumn | None = None
    null_aware: bool = False
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class LookupJoinStep:
    """The rows of the input find their matches among the rows of ``scan``, by ``index`` or by key
    (None). ``pairs`` are (outer column, inner column). ``spread``: the input is on all members."""

    kind: JoinKind
    scan: Scan
    index: IndexDefinition | None
    pairs: tuple[tuple[ColumnId, ColumnId], ...]
    residual: tuple[Expression, ...]
    spread: bool


@dataclass(frozen=True, slots=True)
class AggregateStep:
    """``streaming``: the input comes group by group."""

    operator: AggregateOperator
    phase: AggregatePhase
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class SortStep:
    keys: tuple[SortKey, ...]
    limit: Expression | None


@dataclass(frozen=True, slots=True)
class LimitStep:
    limit: Expression | None
    offset: Expression | None


@dataclass(frozen=True, slots=True)
class ExchangeStep:
    kind: ExchangeKind
    keys: Keys = ()
    collation: tuple[SortKey, ...] = ()


Step: TypeAlias = (
    ScanStep
    | LookupStep
    | ValuesOperator
    | SuppliedOperator
    | SharedOperator
    | FilterOperator
    | ProjectOperator
    | JoinStep
    | LookupJoinStep
    | AggregateStep
    | ExpandOperator
    | GroupLimitOperator
    | UnfoldOperator
    | WindowOperator
    | SortStep
    | LimitStep
    | ExchangeStep
    | UnionOperator
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute ``group``; ``cost`` includes the inputs, ``rows`` counts over all members
    (for REPLICATED, one copy)."""

    group: Group
    step: Step
    inputs: tuple[Candidate, ...]
    distribution: Distribution
    cost: float
    rows: float
    collation: tuple[SortKey, ...] = ()
    fetched: bool = False
    """Whether only the rows that a ``fetch`` asked for are left."""

    def meets(self, required: Required) -> bool:
        return (
            satisfies(self.distribution, required)
            and self.collation[: len(required.collation)] == required.collation
            and (self.fetched or required.fetch is None)
        )
