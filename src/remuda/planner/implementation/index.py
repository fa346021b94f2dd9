"""Implementation rule of scans by secondary index: one index, several of them, or in order.

A row that an index names costs far more than one that a scan passes, because it is fetched from
where it happens to lie: about thirty times. So an index pays where few rows are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from remuda.datatypes.index import IndexDefinition, IndexKind
from remuda.datatypes.sql import BOOLEAN, Kind
from remuda.plan.expression import (
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    Parameter,
    SortKey,
    conjunction,
    conjuncts,
    walk,
)
from remuda.plan.index_access import (
    IndexAccess,
    IndexIntersection,
    IndexPrefix,
    IndexProbe,
    IndexRange,
    probes_of,
)
from remuda.plan.physical import REPLICATED, SINGLETON, Distribution, IndexOrder, Placement
from remuda.planner.estimates.cardinality import Estimate, estimate_filter, estimate_scan
from remuda.planner.memo.candidate import (
    AggregateStep,
    Candidate,
    ExchangeStep,
    Group,
    JoinStep,
    LimitStep,
    LookupJoinStep,
    ScanStep,
)
from remuda.planner.memo.cost import FILTER, PROJECT, SCAN, SCAN_START
from remuda.planner.memo.group_operators import AccessOperator, Operator
from remuda.planner.memo.index_paths import IndexPath, index_paths, union_path
from remuda.planner.memo.operators import literal_rows, partition_keys
from remuda.planner.memo.properties import Required, mapped_keys
from remuda.planner.memo.search import Search
from remuda.planner.operators.project import ProjectOperator

PROBE = 400.0
"""Finding one key or the ends of one range in the runs of an index."""
ENTRY = 10.0
"""Taking an entry: sorting by place, combining sets."""
FETCH = 20.0
"""Fetching a row from where it lies."""
ORDERED = 400.0
"""Taking an entry in the order of the index: merging runs, putting rows back in order."""
AT_MOST = 0.9
"""A range of parameters, and a value of a unique index, cost no more than this share of a scan. For
the value there is a short way without operators, and the map may grow while the plan is kept."""
BITMAP_ROW = 0.3
"""A bitmap index looks at one bit for each row of the map."""
COMBINED_ROWS = 500.0
"""Indexes are combined only where one alone leaves more rows than this."""
COMBINED_PATHS = 4

_TRUE = Literal(BOOLEAN, True)


def implement_index_scan(
    search: Search,
    group: Group,
    operator: Operator,
    _: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    assert isinstance(operator, AccessOperator)
    scan = operator.scan
    if operator.condition is None or not scan.schema.indexes:
        return
    base = estimate_scan(scan, search.context.statistics.statistics(scan.schema))
    paths = [
        (path, _left(base, path.served), _looks(index, base.rows))
        for index, path in index_paths(scan, operator.condition)
    ]
    paths.sort(key=lambda found: found[1])
    options: list[tuple[IndexPath, float, float]] = [
        (path, PROBE * path.choices + looks, (ENTRY + FETCH) * rows) for path, rows, looks in paths
    ]
    if paths and paths[0][1] > COMBINED_ROWS:
        options += _intersections(base, paths[:COMBINED_PATHS])
    union = union_path(scan, operator.condition)
    if union is not None:
        rows = _left(base, union.served)
        options.append((union, PROBE * union.choices, (ENTRY + FETCH) * rows))
    tests = FILTER * len(conjuncts(operator.condition))
    for path, fixed, spread in options:
        step = ScanStep(scan, operator.condition, access=path.access)
        where = natural(search, operator)
        cost = SCAN_START + fixed + search.model.on_one(spread, where)
        cost += tests * search.model.on_one(_left(base, path.served), where)
        if path.single or _depends_on_values(path.access):
            everything = SCAN_START + search.model.on_one(base.rows, where) * (SCAN + tests)
            cost = min(cost, AT_MOST * everything)
        yield Candidate(group, step, (), where, cost, group.estimate.rows)
        if where is REPLICATED and required.placement is Placement.PARTITIONED:
            own = ScanStep(scan, operator.condition, True, path.access)
            keys = partition_keys(scan)
            spread_out = Distribution(Placement.PARTITIONED, () if keys is None else (keys,))
            yield Candidate(group, own, (), spread_out, cost, group.estimate.rows)


def _depends_on_values(access: IndexAccess) -> bool:
    """Whether the parameters decide how many rows are left: the member that opens the scan knows
    them, and may still read everything."""
    return any(
        any(isinstance(part, Parameter) for bound in bounds if bound for part in walk(bound))
        for probe in probes_of(access)
        for tests in probe.choices
        for test in tests
        for bounds in (
            (test.low, test.high)
            if isinstance(test, IndexRange)
            else (test.prefix,)
            if isinstance(test, IndexPrefix)
            else (),
        )
    )


def natural(search: Search, operator: AccessOperator) -> Distribution:
    """Where the rows of a map are."""
    if search.alone:
        return SINGLETON
    if operator.scan.schema.replicated:
        return REPLICATED
    keys = partition_keys(operator.scan)
    return Distribution(Placement.PARTITIONED, () if keys is None else (keys,))


def _left(base: Estimate, condition: Expression) -> float:
    return estimate_filter(base, condition).rows


def _looks(index: IndexDefinition, rows: float) -> float:
    return BITMAP_ROW * rows if index.kind is IndexKind.BITMAP else 0.0


def _intersections(
    base: Estimate, paths: list[tuple[IndexPath, float, float]]
) -> Iterator[tuple[IndexPath, float, float]]:
    """Two or three indexes that look at different conjuncts."""
    for count in (2, 3):
        for chosen in combinations(paths, count):
            parts = [part for path, _, _ in chosen for part in conjuncts(path.served)]
            together = conjunction(tuple(dict.fromkeys(parts)))
            if together is None or len(set(parts)) < len(parts):
                continue
            access = IndexIntersection(tuple(path.access for path, _, _ in chosen))
            choices = sum(path.choices for path, _, _ in chosen)
            looks = sum(look for _, _, look in chosen)
            entries = ENTRY * sum(rows for _, rows, look in chosen if not look)
            path = IndexPath(access, together, choices)
            yield path, PROBE * choices + looks, entries + FETCH * _left(base, together)


# --- order ---------------------------------------------------------------------------------------


def ordered_scan(
    search: Search,
    group: Group,
    operator: Operator,
    _: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """Scans whose index delivers the order that is required; LIMIT makes them read no more than it
    needs."""
    assert isinstance(operator, AccessOperator)
    scan = operator.scan
    if not any(index.kind is IndexKind.SORTED and index.ready for index in scan.schema.indexes):
        return
    base = estimate_scan(scan, search.context.statistics.statistics(scan.schema))
    paths = {index.index_id: path for index, path in index_paths(scan, operator.condition)}
    where = natural(search, operator)
    top = literal_rows(required.fetch)
    for index in scan.schema.indexes:
        if index.kind is not IndexKind.SORTED or not index.ready:
            continue
        whole = IndexProbe(index.name, index.index_id, index.names, ((),))
        path = paths.get(index.index_id, IndexPath(whole, _TRUE, 1))
        order = _order(operator, index, path.fixed, required.collation)
        if order is None:
            continue
        entries = base.rows if path.served == _TRUE else _left(base, path.served)
        rows = group.estimate.rows
        if top is not None:
            # Rows that the rest of the condition lets pass lie anywhere among the entries.
            rows = min(rows, top * (search.model.members if _spread(where) else 1))
            entries = min(entries, rows * entries / max(group.estimate.rows, 1.0))
        each = search.model.on_one(entries, where)
        cost = SCAN_START + PROBE * path.choices + (ORDERED + FETCH) * each
        cost += FILTER * len(conjuncts(operator.condition)) * each
        step = ScanStep(scan, operator.condition, access=path.access, order=order)
        found = Candidate(group, step, (), where, cost, rows, required.collation)
        yield found if required.fetch is None else limited(found, required, rows)


def ordered_project(
    search: Search,
    group: Group,
    operator: Operator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
    """A projection keeps the order of an index scan below it."""
    assert isinstance(operator, ProjectOperator)
    asked = _asked_below(operator, required)
    source = None if asked is None else search.best(inputs[0], asked)
    if source is not None and _by_index(source):
        yield _projected(search, group, operator, source, required)


def index_scans_in_order(search: Search, group: Group, required: Required) -> Iterator[Candidate]:
    """Index scans in the order of ``required`` at any cost: a parent that reads only the first rows
    knows better. Projections above them are looked through."""
    for expression in group.expressions:
        operator = expression.operator
        found: list[Candidate] = []
        if isinstance(operator, AccessOperator):
            found = list(ordered_scan(search, group, operator, (), required))
        elif isinstance(operator, ProjectOperator):
            asked = _asked_below(operator, required)
            below = search.memo[expression.inputs[0]]
            sources = () if asked is None else index_scans_in_order(search, below, asked)
            found = [_projected(search, group, operator, one, required) for one in sources]
        yield from (candidate for candidate in found if candidate.meets(required))


def _asked_below(operator: ProjectOperator, required: Required) -> Required | None:
    """``required`` in the columns below the projection."""
    below = _renamed(operator)
    keys = mapped_keys(required.keys, below)
    if keys is None or any(key.column not in below for key in required.collation):
        return None
    collation = tuple(replace(key, column=below[key.column]) for key in required.collation)
    return Required(required.placement, keys, collation, required.fetch)


def _renamed(operator: ProjectOperator) -> dict[ColumnId, ColumnId]:
    return {
        column.id: expression.column
        for column, expression in zip(operator.output, operator.expressions, strict=True)
        if isinstance(expression, ColumnRef)
    }


def _projected(
    search: Search,
    group: Group,
    operator: ProjectOperator,
    source: Candidate,
    required: Required,
) -> Candidate:
    computed = sum(1 for e in operator.expressions if not isinstance(e, ColumnRef | Literal))
    names = {old: new for new, old in _renamed(operator).items()}
    kept = [m for k in source.distribution.keys if (m := mapped_keys(k, names)) is not None]
    where = Distribution(source.distribution.placement, tuple(kept))
    cost = source.cost + PROJECT * computed * search.model.on_one(source.rows, where)
    return Candidate(
        group, operator, (source,), where, cost, source.rows, required.collation, source.fetched
    )


def _by_index(candidate: Candidate) -> bool:
    """Whether the order comes from an index."""
    step = candidate.step
    if isinstance(step, ScanStep):
        return step.order is not IndexOrder.NONE
    keeps = (
        isinstance(step, LimitStep | ExchangeStep | ProjectOperator | LookupJoinStep)
        or (isinstance(step, AggregateStep) and step.streaming)
        or (isinstance(step, JoinStep) and bool(step.order))
    )
    return keeps and _by_index(candidate.inputs[0])


def cut_short(source: Candidate, share: float) -> Candidate:
    """``source`` of which only the first ``share`` is read."""
    cost = min(source.cost, SCAN_START + share * max(source.cost - SCAN_START, 0.0))
    return replace(source, cost=cost, rows=share * source.rows)


def limited(source: Candidate, required: Required, rows: float) -> Candidate:
    """The first rows on each member."""
    where = source.distribution
    return Candidate(
        source.group,
        LimitStep(required.fetch, None),
        (source,),
        # Ties: members may keep different rows of a replicated map.
        where if _spread(where) else SINGLETON,
        source.cost,
        rows,
        source.collation,
        fetched=True,
    )


def _spread(where: Distribution) -> bool:
    return where.placement is Placement.PARTITIONED


def _order(
    operator: AccessOperator,
    index: IndexDefinition,
    fixed: int,
    collation: tuple[SortKey, ...],
) -> IndexOrder | None:
    """In which direction the index has the order; its first columns that are ``fixed`` to one value
    do not matter."""
    scan = operator.scan
    names = {
        c.id: scan.schema.columns[p].name for c, p in zip(scan.output, scan.positions, strict=True)
    }
    alone = len(index.columns) == 1
    for start in range(fixed + 1):
        rest = index.columns[start:]
        if len(collation) > len(rest):
            continue
        backward: set[bool] = set()
        for key, column in zip(collation, rest, strict=False):
            # NULLs last going up, first going down: what the index has in either direction.
            if names.get(key.column) != column.name or key.nulls_first != key.descending:
                break
            if scan.schema.column(column.name).type.kind is Kind.ENUM:
                break  # the index has labels in the order of texts
            # An index of one column is kept ascending, whatever it says.
            backward.add(key.descending != (column.descending and not alone))
        else:
            if len(backward) == 1:
                return IndexOrder.BACKWARD if backward.pop() else IndexOrder.FORWARD
    return None
