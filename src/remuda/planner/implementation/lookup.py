"""Implementation rule of lookup joins: the rows of the left side find their matches on the right
by key or by secondary index, one by one, instead of reading the right side as a whole.

Where the right side is partitioned, left rows go to where their matches are: to the owners of the
partitions, if the equalities name the columns that place rows; otherwise (for inner joins) to all
members, each of which finds what it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from math import sqrt

from remuda.datatypes.sql import BOOLEAN
from remuda.plan.expression import Call, ColumnRef, Expression, conjuncts
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import REPLICATED, Distribution, Placement
from remuda.planner.estimates.cardinality import estimate_join, estimate_scan
from remuda.planner.implementation.index import cut_short, index_scans_in_order, limited
from remuda.planner.implementation.join import keys_in
from remuda.planner.memo.candidate import Candidate, Group, LookupJoinStep
from remuda.planner.memo.cost import FILTER, LOOKUP_KEY, SCAN_START
from remuda.planner.memo.group_operators import AccessOperator, JoinOperator, Operator
from remuda.planner.memo.lookup_paths import LookupPath, equal_columns, inner_access, lookup_paths
from remuda.planner.memo.operators import literal_rows, partition_keys
from remuda.planner.memo.properties import (
    ANYWHERE,
    AT_INITIATOR,
    EVERYWHERE,
    SPREAD,
    Required,
    partitioned,
)
from remuda.planner.memo.search import Search
from remuda.planner.operators.values import ValuesOperator

POINT = 1_500.0
"""Finding the entries of one key in an index."""
MATCH = 40.0
"""Fetching a match from where it lies."""


def implement_lookup_join(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    assert isinstance(operator, JoinOperator)
    left_group, right_group = inputs
    if not _worth_a_look(search, left_group):
        return
    inner = inner_access(right_group)
    if inner is None:
        return
    for path in _paths(search, operator, inputs, inner):
        for asked, spread in _sides(search, group, operator, inputs, inner, required):
            left = search.best(left_group, asked)
            if left is not None and left.cost < search.bound:
                rows = _rows(left_group, left)
                yield _looked_up(search, group, operator, inner, path, left, rows, spread=spread)


def ordered_lookup_join(
    search: Search,
    group: Group,
    operator: JoinOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """The first rows in an order of the left side, which comes in the order of an index and is read
    only as far as they need."""
    top = literal_rows(required.fetch)
    inner = inner_access(inputs[1])
    left_group = inputs[0]
    if top is None or inner is None:
        return
    if any(key.column not in left_group.columns for key in required.collation):
        return
    plain = Required(required.placement, required.keys)
    for path in _paths(search, operator, inputs, inner):
        for asked, spread in _sides(search, group, operator, inputs, inner, plain):
            ordered = Required(asked.placement, asked.keys, required.collation)
            for left in index_scans_in_order(search, left_group, ordered):
                found = _looked_up(
                    search, group, operator, inner, path, left, left.rows, spread=spread
                )
                share = top * (
                    search.model.members
                    if found.distribution.placement is Placement.PARTITIONED
                    else 1
                )
                share = min(1.0, share / max(group.estimate.rows, 1.0))
                found = _looked_up(
                    search,
                    group,
                    operator,
                    inner,
                    path,
                    cut_short(left, share),
                    share * left.rows,
                    spread=spread,
                    share=share,
                )
                yield limited(found, required, found.rows)


def _looked_up(  # noqa: PLR0917 (the join, and what was chosen for it)
    search: Search,
    group: Group,
    operator: JoinOperator,
    inner: AccessOperator,
    path: tuple[LookupPath, float],
    left: Candidate,
    rows: float,
    *,
    spread: bool,
    share: float = 1.0,
) -> Candidate:
    """``rows`` of ``left`` are reckoned with, over all members; ``share``: see ``cut_short``."""
    way, found = path
    where = _distribution(group, inner, left, operator) if spread else left.distribution
    matches = search.model.on_one(share * found, where)
    each = LOOKUP_KEY if way.index is None else POINT
    cost = left.cost + SCAN_START + each * search.model.on_one(rows, left.distribution)
    cost += (MATCH + FILTER * len(conjuncts(inner.condition))) * matches
    step = LookupJoinStep(
        operator.kind,
        inner.scan,
        way.index,
        way.pairs,
        _residual(operator, way, inner, left.group),
        spread and left.distribution.placement is Placement.REPLICATED,
    )
    order = tuple(takewhile(lambda key: key.column in group.columns, left.collation))
    return Candidate(group, step, (left,), where, cost, share * group.estimate.rows, order)


def _paths(
    search: Search, operator: JoinOperator, inputs: tuple[Group, ...], inner: AccessOperator
) -> list[tuple[LookupPath, float]]:
    """The ways to look matches up, each with the number of matches; worked out once."""
    place = (id(operator), inputs[0].id, inputs[1].id)
    known = search.lookups.get(place)
    if known is None:
        known = search.lookups[place] = _new_paths(search, operator, inputs, inner)
    return known


def _new_paths(
    search: Search, operator: JoinOperator, inputs: tuple[Group, ...], inner: AccessOperator
) -> list[tuple[LookupPath, float]]:
    left, right = inputs
    paths = [p for p in lookup_paths(operator, right) if _same_types(p, left, inner)]
    if not paths:
        return []
    base = estimate_scan(inner.scan, search.context.statistics.statistics(inner.scan.schema))
    return [
        (path, estimate_join(JoinKind.INNER, left.estimate, base, path.pairs, ()).rows)
        for path in paths
    ]


def _rows(group: Group, left: Candidate) -> float:
    """How many left rows to plan with. Above joins, estimates are mostly far too low, and a lookup
    for each row costs a hundred times what it costs to scan one."""
    if any(isinstance(e.operator, AccessOperator | ValuesOperator) for e in group.expressions):
        return left.rows
    return sqrt(left.rows * max(group.estimate.bound, left.rows))


def _worth_a_look(search: Search, left: Group) -> bool:
    """Whether even the cheapest lookups would beat the best plan found."""
    cheapest = search.best(left, ANYWHERE)
    if cheapest is None:
        return False
    each = LOOKUP_KEY * _rows(left, cheapest) / search.model.members
    return cheapest.cost + SCAN_START + each < search.bound


def _sides(  # noqa: PLR0917 (what implementation rules take)
    search: Search,
    group: Group,
    operator: JoinOperator,
    inputs: tuple[Group, ...],
    inner: AccessOperator,
    required: Required,
) -> Iterator[tuple[Required, bool]]:
    """(the left side's required distribution, whether rows come out where the inner ones lie)."""
    if search.alone:
        yield ANYWHERE, False
        return
    if inner.scan.schema.replicated:
        yield from ((asked, False) for asked in _beside_replica(group, inputs[0], required))
        return
    if required.placement not in (Placement.ANY, Placement.PARTITIONED):
        return
    outer = equal_columns(operator, inner.scan)
    places = inner.scan.schema.partition_positions
    if all(position in outer for position in places):
        yield partitioned(tuple(outer[position] for position in places)), True
    elif operator.kind is JoinKind.INNER:
        yield EVERYWHERE, True


def _beside_replica(group: Group, left: Group, required: Required) -> Iterator[Required]:
    match required.placement:
        case Placement.ANY:
            yield ANYWHERE
        case Placement.SINGLETON:
            yield AT_INITIATOR
        case Placement.REPLICATED:
            if left.replicated:
                yield EVERYWHERE
        case Placement.PARTITIONED if not required.keys:
            yield SPREAD
        case Placement.PARTITIONED:
            keys = keys_in(required.keys, group, left)
            if keys is not None and required.keys in group.natural:
                yield partitioned(keys)


def _distribution(
    group: Group, inner: AccessOperator, left: Candidate, operator: JoinOperator
) -> Distribution:
    """Of a join whose rows come out where the inner ones lie."""
    own = partition_keys(inner.scan)
    if own is not None and any(column not in group.columns for column in own):
        own = None
    keys = left.distribution.keys
    if operator.kind is JoinKind.INNER and own is not None:
        keys = tuple(dict.fromkeys((*keys, own)))
    if left.distribution == REPLICATED:
        keys = () if own is None else (own,)
    return Distribution(Placement.PARTITIONED, keys)


def _residual(
    operator: JoinOperator, path: LookupPath, inner: AccessOperator, left: Group
) -> tuple[Expression, ...]:
    """The condition that decides matches besides the lookup."""
    served = set(path.pairs) if path.exact else set()
    columns = {c.id: c for c in inner.scan.output}
    rest = tuple(
        Call(BOOLEAN, "=", (_reference(left.columns[a]), _reference(columns[b])))
        for a, b in operator.equalities
        if (a, b) not in served
    )
    return (*conjuncts(inner.condition), *rest, *operator.residual)


def _same_types(path: LookupPath, left: Group, inner: AccessOperator) -> bool:
    """Whether equal values have equal forms on both sides."""
    types = {c.id: c.type for c in inner.scan.output}
    for a, b in path.pairs:
        mine, other = left.columns[a].type, types[b]
        if not (mine == other or (mine.is_text and other.is_text)):
            return False
    return True


def _reference(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.type, column.id, column.name)
