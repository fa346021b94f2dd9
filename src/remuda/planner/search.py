"""Phase 2, second half: the cheapest plan of a group that meets a requirement.

Top-down and memoized: a group is asked with a requirement, asks its inputs in turn, and remembers
the answer. A requirement that no alternative delivers by itself is enforced: rows are moved by an
exchange, ordered by a sort. An alternative is given up as soon as its first inputs cost more than
the best plan found (branch and bound).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from remuda.plan.physical import REPLICATED as EVERY_MEMBER
from remuda.plan.physical import SINGLETON, Distribution, ExchangeKind, Placement
from remuda.planner.candidate import Candidate, ExchangeStep, LimitStep, SortStep, Step
from remuda.planner.context import PlanningContext
from remuda.planner.cost import CostModel
from remuda.planner.memo import Group, Keys, Memo, Operator
from remuda.planner.operators import literal_rows
from remuda.planner.properties import ANYWHERE, SPREAD, Required

Implementation = Callable[
    ["Search", Group, Operator, tuple[Group, ...], Required], Iterator[Candidate]
]

_MOVES = {
    Placement.SINGLETON: ExchangeKind.GATHER,
    Placement.REPLICATED: ExchangeKind.BROADCAST,
    Placement.PARTITIONED: ExchangeKind.UNICAST,
}


class Search:
    def __init__(
        self,
        memo: Memo,
        context: PlanningContext,
        implementations: dict[type, tuple[tuple[str, Implementation], ...]],
    ) -> None:
        self.memo = memo
        self.context = context
        self.model = CostModel(max(1, context.members))
        self.alone = context.members <= 1
        self._implementations = implementations
        self.bound = float("inf")

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
            if (found is None or candidate.cost < found.cost) and candidate.meets(required):
                found = candidate
                self.bound = candidate.cost
        self.bound = outer
        group.best[required] = found
        return found

    def _alternatives(self, group: Group, required: Required) -> Iterator[Candidate]:
        if not required.is_plain:
            yield from self._ordered(group, required)
            return
        for expression in group.expressions:
            inputs = tuple(self.memo[i] for i in expression.inputs)
            for _, implement in self._implementations[type(expression.operator)]:
                yield from implement(self, group, expression.operator, inputs, required)
        yield from self._moved(group, required)

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
        if required.collation:
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
