"""Phase 2, second half: the cheapest plan of a group that meets a requirement.

Top-down and memoized: a group is asked with a requirement, asks its inputs in turn, and remembers
the answer. A requirement that no alternative delivers by itself is enforced: rows are moved by an
exchange, ordered by a sort.

Branch and bound: an expression costs at least what its inputs cost wherever their rows may be, and
its own work shared by all members. Expressions are tried by this lower bound, until it exceeds the
best plan found; an alternative is given up as soon as its first inputs cost more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from remuda.datatypes.sql import VARCHAR
from remuda.plan.expression import ColumnId
from remuda.plan.physical import REPLICATED as EVERY_MEMBER
from remuda.plan.physical import SINGLETON, Distribution, ExchangeKind, Placement
from remuda.planner.context import PlanningContext
from remuda.planner.memo.candidate import (
    Candidate,
    ExchangeStep,
    Group,
    GroupExpression,
    LimitStep,
    SortStep,
    Step,
)
from remuda.planner.memo.cost import LOOKUP_KEY, SCAN_START, CostModel
from remuda.planner.memo.group_operators import JoinOperator, Keys, Operator
from remuda.planner.memo.lookup_paths import LookupPath, lookup_paths
from remuda.planner.memo.memo import Memo
from remuda.planner.memo.operators import literal_rows
from remuda.planner.memo.properties import ANYWHERE, SPREAD, Required, partitioned

Implementation = Callable[
    ["Search", Group, Operator, tuple[Group, ...], Required], Iterator[Candidate]
]

ASKED_FROM_ABOVE_MAX = 50
"""With joins of more relations than this, groups are asked from below (``Search.prepare``)."""

TRIED_MAX = 6
"""Expressions of a group that are tried for a requirement of their own, the most promising first:
of the others, only what moves their result is."""

_MOVES = {
    Placement.SINGLETON: ExchangeKind.GATHER,
    Placement.REPLICATED: ExchangeKind.BROADCAST,
    Placement.PARTITIONED: ExchangeKind.UNICAST,
}


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """The equalities of a join as its implementation rules need them, worked out once.

    ``to_right`` maps columns that stand for left columns to the right columns that they equal;
    ``left`` maps columns that stand for columns of the join to columns of the left side;
    ``choices`` are (left keys, right keys) by which both sides may be partitioned."""

    to_right: dict[ColumnId, ColumnId]
    left: dict[ColumnId, ColumnId]
    choices: tuple[tuple[Keys, Keys], ...]


class Search:
    def __init__(
        self,
        memo: Memo,
        context: PlanningContext,
        implementations: dict[type, tuple[tuple[str, Implementation], ...]],
        ordered: Mapping[type, Implementation] = MappingProxyType({}),
    ) -> None:
        """``ordered``: the implementations that deliver an order."""
        self.memo = memo
        self.context = context
        self.model = CostModel(max(1, context.members))
        self.alone = context.members <= 1
        self._implementations = implementations
        self._ordered_implementations = ordered
        self.bound = float("inf")
        self._lower_bounds: dict[int, list[tuple[float, GroupExpression]]] = {}
        self.lookups: dict[tuple[int, int, int], list[tuple[LookupPath, float]]] = {}
        self.join_keys: dict[tuple[int, int, int], JoinKeys] = {}

    def prepare(self) -> None:
        """Ask inputs before what reads them. The answers are the same, but hundreds of joins on
        top of each other would otherwise ask through thousands of calls."""
        if self.memo.joined_max <= ASKED_FROM_ABOVE_MAX:
            return
        for required in (ANYWHERE, SPREAD):
            for group in self.memo.groups:
                self.best(group, required)
        for group in self.memo.groups:
            for keys in group.natural:
                self.best(group, partitioned(keys))

    def best(self, group: Group, required: Required) -> Candidate | None:
        """None when nothing can deliver ``required``; SINGLETON can always be had."""
        if self.alone and required.placement is not Placement.ANY:
            required = Required(collation=required.collation, fetch=required.fetch)
        if required.keys and group.same:
            keys = group.canonical(required.keys)
            if keys != required.keys:
                required = Required(required.placement, keys, required.collation, required.fetch)
        if required in group.best:
            return group.best[required]
        if required.is_plain and required != ANYWHERE:
            # The cheapest plan of all may do, and then nothing else need be looked at.
            cheapest = self.best(group, ANYWHERE)
            if cheapest is not None and cheapest.meets(required):
                group.best[required] = cheapest
                return cheapest
        found: Candidate | None = None
        outer = self.bound
        self.bound = float("inf")
        for candidate in self._alternatives(group, required):
            cost = self.weigh(candidate.cost)
            if (found is None or cost < self.bound) and candidate.meets(required):
                found = candidate
                self.bound = cost
        self.bound = outer
        group.best[required] = found
        return found

    def weigh(self, cost: float) -> float:
        """The cost by which to choose."""
        perturb = self.context.perturb
        return cost if perturb is None else perturb(cost)

    def _alternatives(self, group: Group, required: Required) -> Iterator[Candidate]:
        if not required.is_plain:
            yield from self._presorted(group, required)
            yield from self._ordered(group, required)
            return
        # First, because it is had at once and bounds the others.
        yield from self._moved(group, required)
        found = self._by_lower_bound(group)
        if required != ANYWHERE and self.context.perturb is None:
            found = found[:TRIED_MAX]
        for lower, expression in found:
            if lower >= self.bound:
                break
            inputs = tuple([self.memo[i] for i in expression.inputs])
            for _, implement in self._implementations[type(expression.operator)]:
                yield from implement(self, group, expression.operator, inputs, required)

    def _by_lower_bound(self, group: Group) -> list[tuple[float, GroupExpression]]:
        known = self._lower_bounds.get(group.id)
        if known is None:
            expressions = group.expressions
            if len(expressions) == 1 or self.context.perturb is not None:
                known = [(0.0, expression) for expression in expressions]
            else:
                known = sorted(
                    ((self._lower_bound(e, group), e) for e in expressions), key=lambda p: p[0]
                )
            self._lower_bounds[group.id] = known
        return known

    def _lower_bound(self, expression: GroupExpression, group: Group) -> float:
        """A lower bound of the cost of all plans of ``expression``."""
        inputs = [self.memo[i] for i in expression.inputs]
        sources = [self.best(below, ANYWHERE) for below in inputs]
        costs = [0.0 if source is None else source.cost for source in sources]
        operator = expression.operator
        if not isinstance(operator, JoinOperator) or not operator.equalities:
            return sum(costs)
        probe, build = (below.estimate.rows / self.model.members for below in inputs)
        matches = group.estimate.rows / self.model.members
        right = costs[1] + self.model.hash_join(probe, build, matches)
        if any(source is not None and source.collation for source in sources):
            # A merge join; by texts, because a bound must not be too high.
            right = min(right, costs[1] + self.model.merge_join(probe, build, matches, [VARCHAR]))
        if any(lookup_paths(operator, inputs[1])):
            # A lookup join does not read its right side.
            right = min(right, SCAN_START + LOOKUP_KEY * probe)
        return costs[0] + right

    def _presorted(self, group: Group, required: Required) -> Iterator[Candidate]:
        """Expressions that deliver the order by themselves."""
        if not required.collation:
            return
        for expression in group.expressions:
            implement = self._ordered_implementations.get(type(expression.operator))
            if implement is not None:
                inputs = tuple([self.memo[i] for i in expression.inputs])
                yield from implement(self, group, expression.operator, inputs, required)

    # --- enforcers ---

    def _moved(self, group: Group, required: Required) -> Iterator[Candidate]:
        """Rows moved to where they are required."""
        kind = _MOVES.get(required.placement)
        if kind is None or required == SPREAD:
            return
        if any(key not in group.columns for key in required.keys):
            return
        source = self.best(group, ANYWHERE)
        if source is not None:
            yield self.exchange(source, kind, source.rows, group.width, required.keys)

    def _ordered(self, group: Group, required: Required) -> Iterator[Candidate]:
        """Rows sorted and cut off where they are, or on each member and merged at the initiator."""
        source = self.best(group, Required(required.placement, required.keys))
        if source is not None:
            yield self._sorted(source, required)
        if required.placement is not Placement.SINGLETON:
            return
        spread = Required(Placement.PARTITIONED, collation=required.collation, fetch=required.fetch)
        local = self.best(group, spread)
        if local is None:
            return
        kind = ExchangeKind.MERGE if required.collation else ExchangeKind.GATHER
        moved = self.exchange(local, kind, local.rows, group.width)
        if required.fetch is not None:
            rows = min(moved.rows, literal_rows(required.fetch) or moved.rows)
            moved = Candidate(
                group,
                LimitStep(required.fetch, None),
                (moved,),
                moved.distribution,
                moved.cost,
                rows,
                moved.collation,
                fetched=True,
            )
        yield moved

    def _sorted(self, source: Candidate, required: Required) -> Candidate:
        """``source`` sorted and limited on each member by itself."""
        top = literal_rows(required.fetch)
        spread = source.distribution.placement is Placement.PARTITIONED
        rows = source.rows
        if top is not None:
            rows = min(rows, top * (self.model.members if spread else 1))
        step: Step = LimitStep(required.fetch, None)
        cost = source.cost
        presorted = source.collation[: len(required.collation)] == required.collation
        if presorted and required.fetch is None:
            return source
        if not presorted:
            step = SortStep(required.collation, required.fetch)
            each = self.model.on_one(source.rows, source.distribution)
            cost += self.model.sort(each, None if top is None else min(top, each))
        return Candidate(
            source.group,
            step,
            (source,),
            # Ties: members may keep different rows of a replicated input.
            SINGLETON if required.fetch is not None and not spread else source.distribution,
            cost,
            rows,
            required.collation,
            fetched=required.fetch is not None,
        )

    def exchange(
        self, source: Candidate, kind: ExchangeKind, rows: float, width: float, keys: Keys = ()
    ) -> Candidate:
        """``source`` moved; ``rows`` is the number to reckon with."""
        match kind:
            case ExchangeKind.UNICAST:
                distribution = Distribution(Placement.PARTITIONED, (keys,))
            case ExchangeKind.BROADCAST:
                distribution = EVERY_MEMBER
            case _:
                distribution = SINGLETON
        collation = source.collation if kind is ExchangeKind.MERGE else ()
        return Candidate(
            source.group,
            ExchangeStep(kind, keys, collation),
            (source,),
            distribution,
            source.cost + self.model.exchange(kind, rows, width, source.distribution),
            source.rows,
            collation,
        )
