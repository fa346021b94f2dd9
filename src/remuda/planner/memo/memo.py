"""The MEMO: groups of equivalent expressions, each expression an operator over groups.

All expressions of a group give the same rows, so rows, columns and possible partitionings belong
to the group. Expressions are interned: the same operator over the same groups exists once. The
search (``planner.memo.search``) keeps in each group the best plan for every requirement made of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import AggregateCall, ColumnId, Expression, SortKey
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.logical import JoinKind, OutputColumn, Scan
from remuda.plan.physical import Distribution
from remuda.plan.windows import WindowCall
from remuda.planner.estimates.cardinality import Estimate
from remuda.planner.memo.properties import Required

if TYPE_CHECKING:
    from remuda.planner.memo.candidate import Candidate

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


Operator: TypeAlias = (
    AccessOperator
    | ValuesOperator
    | SuppliedOperator
    | SharedOperator
    | FilterOperator
    | ProjectOperator
    | JoinOperator
    | AggregateOperator
    | ExpandOperator
    | GroupLimitOperator
    | UnfoldOperator
    | WindowOperator
    | SortOperator
    | UnionOperator
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


EXPRESSIONS_MAX = 6_000
"""The effort of one statement, about 100 µs each: beyond it, join orders are found by heuristic
and optional alternatives are left out. It counts steps and not time, so plans do not depend on how
busy the machine is."""


class Memo:
    """``notes`` says where the effort was cut short; EXPLAIN shows it."""

    def __init__(self, expressions_max: int = EXPRESSIONS_MAX) -> None:
        self.groups: list[Group] = []
        self.expressions_max = expressions_max
        self.notes: list[str] = []
        self.joined_max = 0
        """Relations of the largest region of joins."""
        self._interned: dict[Hashable, list[Group]] = {}

    def left(self) -> int:
        """Expressions that the effort still allows."""
        return max(0, self.expressions_max - len(self._interned))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def __getitem__(self, group: int) -> Group:
        return self.groups[group]

    def new_group(
        self, columns: tuple[OutputColumn, ...], estimate: Estimate, natural: tuple[Keys, ...] = ()
    ) -> Group:
        group = Group(len(self.groups), {c.id: c for c in columns}, estimate, natural)
        self.groups.append(group)
        return group

    def find(
        self, operator: Operator, inputs: tuple[int, ...], columns: Iterable[OutputColumn] = ()
    ) -> Group | None:
        """The group that already has this expression, and the ``columns``: a sub-plan that occurs
        twice may be read for more columns the second time."""
        for group in self._interned.get((operator, inputs), ()):
            if all(column.id in group.columns for column in columns):
                return group
        return None

    def add(self, group: Group, operator: Operator, inputs: tuple[int, ...]) -> bool:
        """False when the expression is in the group already. In another one with the same columns
        it is an error."""
        owners = self._interned.setdefault((operator, inputs), [])
        if group in owners:
            return False
        for owner in owners:
            assert owner.columns.keys() != group.columns.keys(), (
                f"{operator} is in group {owner.id}, not in {group.id}"
            )
        owners.append(group)
        group.expressions.append(GroupExpression(operator, inputs))
        return True

    def check(self) -> None:
        """The invariants; for tests."""
        seen: set[tuple[Operator, tuple[int, ...], frozenset[ColumnId]]] = set()
        for group in self.groups:
            assert group.id == self.groups.index(group)
            assert group.expressions, f"group {group.id} is empty"
            for expression in group.expressions:
                key = (expression.operator, expression.inputs, frozenset(group.columns))
                assert key not in seen, f"{expression} is in two groups"
                seen.add(key)
                assert all(0 <= i < len(self.groups) for i in expression.inputs)
                assert group.id not in expression.inputs, "a group is its own input"
            assert group.estimate.rows >= 0
            for required, candidate in group.best.items():
                assert candidate is None or candidate.meets(required)
