"""Groups of equivalent expressions, and candidates: physical alternatives with their cost, before
operators are built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from remuda.datatypes.index import IndexDefinition
from remuda.plan.expression import ColumnId, Expression, SortKey
from remuda.plan.index_access import IndexAccess
from remuda.plan.logical import JoinKind, OutputColumn, Scan
from remuda.plan.physical import AggregatePhase, Distribution, ExchangeKind, IndexOrder
from remuda.planner.estimates.cardinality import Estimate
from remuda.planner.memo.group_operators import AggregateOperator, Keys, Operator, PlainOperator
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
    | JoinStep
    | LookupJoinStep
    | AggregateStep
    | SortStep
    | LimitStep
    | ExchangeStep
    | PlainOperator
)


@dataclass(frozen=True, slots=True)
class GroupExpression:
    operator: Operator
    inputs: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Group:
    """``natural`` lists the partitionings that some expression delivers without moving rows.

    ``same`` maps a column to the one that stands for all columns that equal it in every row; keys
    of partitionings are written with these. ``replicated``: all its data is on every member.
    ``central``: some of it can only be computed at the initiator.
    """

    id: int
    columns: dict[ColumnId, OutputColumn]
    estimate: Estimate
    natural: tuple[Keys, ...] = ()
    same: dict[ColumnId, ColumnId] = field(default_factory=dict)
    replicated: bool = False
    central: bool = False
    expressions: list[GroupExpression] = field(default_factory=list)
    best: dict[Required, Candidate | None] = field(default_factory=dict)

    def canonical(self, keys: Keys) -> Keys:
        """``keys`` in the columns that stand for theirs."""
        same = self.same
        return tuple(same.get(key, key) for key in keys) if same else keys

    @property
    def output(self) -> tuple[OutputColumn, ...]:
        return tuple(self.columns.values())

    @property
    def width(self) -> float:
        return self.estimate.width(self.columns)


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
