"""Implementation rules of merge joins: both sides come in the order of the keys.

Where the inputs deliver that order anyway (sorted subqueries, windows, aggregates over sorted
rows), no hash table is built and the order is kept for whoever needs it. With a LIMIT above, scans
in the order of an index are merged, and read only as far as the first rows need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, takewhile

from remuda.datatypes.sql import Kind, SqlType
from remuda.plan.expression import ColumnId, SortKey
from remuda.plan.logical import JoinKind
from remuda.plan.physical import Distribution, Placement
from remuda.planner.implementation.index import cut_short, index_scans_in_order, limited
from remuda.planner.implementation.join import (
    Sides,
    distribution_of_join,
    sides_of_join,
)
from remuda.planner.memo.candidate import Candidate, Group, JoinStep
from remuda.planner.memo.group_operators import JoinOperator, Operator
from remuda.planner.memo.operators import literal_rows
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search

Pairs = tuple[tuple[ColumnId, ColumnId], ...]
Order = tuple[SortKey, ...]

_ORDERED_KINDS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
_KEYS_MAX = 3
"""Of joins by more keys, an order that is only begun by what is required is not looked for."""


def implement_merge_join(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """Where one side comes in the order of the keys; the other one does, or is brought into it."""
    assert isinstance(operator, JoinOperator)
    if not mergeable(operator, inputs):
        return
    for asked in sides_of_join(search, group, operator, inputs, required):
        left, right = (search.best(g, r) for g, r in zip(inputs, asked, strict=True))
        if left is None or right is None:
            continue
        for pairs, order in (
            sorted_pairs(operator.equalities, left.collation, 0),
            sorted_pairs(operator.equalities, right.collation, 1),
        ):
            if not order or left.cost + right.cost >= search.bound:
                continue
            one = _in_order(search, left, asked[0], pairs, order, 0)
            other = _in_order(search, right, asked[1], pairs, order, 1)
            if one is not None and other is not None:
                yield merged(search, group, operator, (one, other), pairs, order)


def _in_order(  # noqa: PLR0917
    search: Search, source: Candidate, asked: Required, pairs: Pairs, order: Order, side: int
) -> Candidate | None:
    """``source``, or the cheapest plan of its group that has the order."""
    wanted = _order_of_side(pairs, order, side)
    if is_sorted(source.collation, wanted):
        return source
    return search.best(source.group, Required(asked.placement, asked.keys, wanted))


def _order_of_side(pairs: Pairs, order: Order, side: int) -> Order:
    """``order``, by the columns of the left (0) or the right side (1)."""
    return tuple(
        SortKey(pair[side], by.descending, by.nulls_first)
        for pair, by in zip(pairs, order, strict=True)
    )


def is_sorted(collation: Order, wanted: Order) -> bool:
    """Where NULLs are does not matter: rows with a NULL in the key are set aside."""
    return len(collation) >= len(wanted) and all(
        a.column == b.column and a.descending == b.descending
        for a, b in zip(collation, wanted, strict=False)
    )


def mergeable(operator: JoinOperator, inputs: Sequence[Group]) -> bool:
    """Whether equal keys are ordered alike on both sides, and every key occurs once."""
    pairs = operator.equalities
    if not pairs or operator.kind is JoinKind.MARK or operator.null_aware:
        return False
    left, right = inputs
    return len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs) and all(
        _same_order(left.columns[a].type, right.columns[b].type) for a, b in pairs
    )


def _same_order(left: SqlType, right: SqlType) -> bool:
    if left.kind is not right.kind:
        return False
    if left.kind is Kind.DECIMAL:
        return left.scale == right.scale
    return left.is_text or not left.ordered_by_key or left == right


def sorted_pairs(pairs: Pairs, collation: Order, side: int) -> tuple[Pairs, Order]:
    """The pairs in the order in which ``collation`` has their columns of ``side``, and its keys;
    nothing when some are not among its first columns."""
    first = collation[: len(pairs)]
    by_column = {pair[side]: pair for pair in pairs}
    if len(first) < len(pairs) or {key.column for key in first} != set(by_column):
        return (), ()
    chosen = tuple(by_column[key.column] for key in first)
    order = tuple(replace(key, column=pair[0]) for key, pair in zip(first, chosen, strict=True))
    return chosen, order


def merged(  # noqa: PLR0917 (the join, and what was chosen for it)
    search: Search,
    group: Group,
    operator: JoinOperator,
    sides: tuple[Candidate, Candidate],
    pairs: Pairs,
    order: Order,
    *,
    share: float = 1.0,
) -> Candidate:
    """``share``: as much of the sides as somebody reads."""
    left, right = sides
    where = distribution_of_join(group, operator, left, right)
    model = search.model
    work = model.merge_join(
        model.on_one(left.rows, left.distribution),
        model.on_one(right.rows, right.distribution),
        model.on_one(share * group.estimate.rows, where),
        [left.group.columns[a].type for a, _ in pairs],
    )
    step = JoinStep(operator.kind, pairs, operator.residual, order=order)
    return Candidate(
        group,
        step,
        sides,
        where,
        left.cost + right.cost + work,
        share * group.estimate.rows,
        _kept_order(group, operator, left, pairs),
    )


def _kept_order(group: Group, operator: JoinOperator, left: Candidate, pairs: Pairs) -> Order:
    """The order of the left side, where rows without a match come in their place."""
    kind = operator.kind
    if kind not in _ORDERED_KINDS or (kind is JoinKind.LEFT and operator.residual):
        return ()
    if kind in (JoinKind.LEFT, JoinKind.ANTI) and any(
        left.group.columns[a].nullable for a, _ in pairs
    ):
        return ()  # rows without a key come out first of all
    return tuple(takewhile(lambda key: key.column in group.columns, left.collation))


# --- order ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """The properties that an ordered merge join requires of its sides."""

    sides: Sides
    pairs: Pairs
    order: Order


def ordered_merge_join(
    search: Search,
    group: Group,
    operator: JoinOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """Merges of index scans for the first rows in the order of the keys."""
    top = literal_rows(required.fetch)
    if top is None or operator.kind not in _ORDERED_KINDS or not mergeable(operator, inputs):
        return
    for asked in _asked(search, group, operator, inputs, required):
        for left in index_scans_in_order(search, inputs[0], asked.sides[0]):
            for right in index_scans_in_order(search, inputs[1], asked.sides[1]):
                where = distribution_of_join(group, operator, left, right)
                rows = top * (search.model.members if _spread(where) else 1)
                share = min(1.0, rows / max(group.estimate.rows, 1.0))
                cut = (cut_short(left, share), cut_short(right, share))
                found = merged(search, group, operator, cut, asked.pairs, asked.order, share=share)
                if found.collation[: len(required.collation)] == required.collation:
                    yield limited(found, required, min(found.rows, rows))


def _asked(
    search: Search,
    group: Group,
    operator: JoinOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[_Asked]:
    plain = Required(required.placement, required.keys)
    sides = list(dict.fromkeys(sides_of_join(search, group, operator, inputs, plain)))
    for pairs, order in _orders(operator.equalities, required.collation):
        ordered = [_order_of_side(pairs, order, side) for side in (0, 1)]
        for asked in sides:
            left, right = (
                Required(one.placement, one.keys, keys)
                for one, keys in zip(asked, ordered, strict=True)
            )
            yield _Asked((left, right), pairs, order)


def _orders(pairs: Pairs, collation: Order) -> Iterator[tuple[Pairs, Order]]:
    """All pairs, in orders of their left columns that begin with ``collation``."""
    by_column = {a: (a, b) for a, b in pairs}
    if len(collation) > len(pairs) or any(key.column not in by_column for key in collation):
        return
    first = tuple(by_column[key.column] for key in collation)
    rest = [pair for pair in pairs if pair not in first]
    if not rest:
        yield first, collation
        return
    if len(pairs) > _KEYS_MAX:
        return
    for chosen in permutations(rest):
        for descending in (False, True):
            # NULLs as an index has them: last going up, first going down.
            more = tuple(SortKey(a, descending, descending) for a, _ in chosen)
            yield (*first, *chosen), (*collation, *more)


def _spread(where: Distribution) -> bool:
    return where.placement is Placement.PARTITIONED
