"""Implementation rules: the physical alternatives of each logical operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from remuda.plan.expression import ColumnRef, Literal, conjuncts
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.physical import (
    REPLICATED,
    SINGLETON,
    Distribution,
    Placement,
)
from remuda.planner.implementation.aggregate import implement_aggregate
from remuda.planner.implementation.group_limit import implement_group_limit
from remuda.planner.implementation.index import implement_index_scan, ordered_project, ordered_scan
from remuda.planner.implementation.join import implement_hash_join, implement_loop_join
from remuda.planner.implementation.lookup import implement_lookup_join, ordered_lookup_join
from remuda.planner.implementation.merge import implement_merge_join, ordered_merge_join
from remuda.planner.implementation.streaming import ordered_aggregate
from remuda.planner.implementation.window import implement_window
from remuda.planner.memo.access import likely_keys, whole_key
from remuda.planner.memo.candidate import Candidate, Group, LimitStep, LookupStep, ScanStep
from remuda.planner.memo.cost import FILTER, KEY_LOOKUP, PROJECT, SCAN, SCAN_START
from remuda.planner.memo.group_operators import (
    AccessOperator,
    AggregateOperator,
    ExpandOperator,
    FilterOperator,
    GroupLimitOperator,
    JoinOperator,
    Operator,
    ProjectOperator,
    SharedOperator,
    SortOperator,
    SuppliedOperator,
    UnfoldOperator,
    UnionOperator,
    ValuesOperator,
    WindowOperator,
)
from remuda.planner.memo.operators import partition_keys
from remuda.planner.memo.properties import (
    ANYWHERE,
    AT_INITIATOR,
    EVERYWHERE,
    SPREAD,
    Required,
    mapped_keys,
)
from remuda.planner.memo.search import Implementation, Search
from remuda.planner.rules.limits import limit_with_offset

Inputs = tuple[Group, ...]


def _partitioned(operator: AccessOperator) -> Distribution:
    keys = partition_keys(operator.scan)
    return Distribution(Placement.PARTITIONED, () if keys is None else (keys,))


def _scan(
    search: Search, group: Group, operator: Operator, _: Inputs, required: Required
) -> Iterator[Candidate]:
    """Read all rows; of a replicated map either everywhere, or each member its own keys."""
    assert isinstance(operator, AccessOperator)
    replicated = operator.scan.schema.replicated
    rows = max(group.estimate.bound, 1.0)
    tests = FILTER * len(conjuncts(operator.condition))
    natural = SINGLETON if search.alone else REPLICATED if replicated else _partitioned(operator)
    cost = SCAN_START + search.model.on_one(rows, natural) * (SCAN + tests)
    step = ScanStep(operator.scan, operator.condition)
    yield Candidate(group, step, (), natural, cost, group.estimate.rows)
    if replicated and not search.alone and required.placement is Placement.PARTITIONED:
        own = ScanStep(operator.scan, operator.condition, partitioned_replica=True)
        # Every row is hashed to see whose it is.
        cost = SCAN_START + rows * (SCAN + tests + FILTER)
        yield Candidate(group, own, (), _partitioned(operator), cost, group.estimate.rows)


def _key_lookup(
    search: Search, group: Group, operator: Operator, _: Inputs, _required: Required
) -> Iterator[Candidate]:
    assert isinstance(operator, AccessOperator)
    fixed = whole_key(operator.scan, operator.condition)
    if fixed is None:
        return
    natural = _partitioned(operator)
    if search.alone:
        natural = SINGLETON
    elif operator.scan.schema.replicated:
        natural = REPLICATED
    keys = sum(map(likely_keys, fixed.keys))
    cost = search.model.on_one(KEY_LOOKUP * keys, natural)
    step = LookupStep(operator.scan, fixed.keys, fixed.residual)
    yield Candidate(group, step, (), natural, cost, min(group.estimate.rows, keys))


def _values(
    search: Search, group: Group, operator: Operator, _: Inputs, _required: Required
) -> Iterator[Candidate]:
    """Constant rows are everywhere."""
    assert isinstance(operator, ValuesOperator)
    where = SINGLETON if search.alone else REPLICATED
    yield Candidate(group, operator, (), where, float(len(operator.rows)), group.estimate.rows)


def _supplied(
    _search: Search, group: Group, operator: Operator, _: Inputs, _required: Required
) -> Iterator[Candidate]:
    """Only the initiator has these rows."""
    assert isinstance(operator, SuppliedOperator)
    rows = group.estimate.rows
    yield Candidate(group, operator, (), SINGLETON, rows, rows)


def _shared(
    search: Search, group: Group, operator: Operator, _: Inputs, _required: Required
) -> Iterator[Candidate]:
    """Stored rows are read where they are."""
    assert isinstance(operator, SharedOperator)
    rows = group.estimate.rows
    cost = SCAN * search.model.on_one(rows, operator.distribution)
    yield Candidate(group, operator, (), operator.distribution, cost, rows)


def _filter(
    search: Search, group: Group, operator: Operator, inputs: Inputs, required: Required
) -> Iterator[Candidate]:
    assert isinstance(operator, FilterOperator)
    source = search.best(inputs[0], required)
    if source is not None:
        rows = search.model.on_one(source.rows, source.distribution)
        cost = source.cost + FILTER * rows * len(conjuncts(operator.condition))
        yield Candidate(
            group,
            operator,
            (source,),
            source.distribution,
            cost,
            group.estimate.rows,
            source.collation,
        )


def _project(
    search: Search, group: Group, operator: Operator, inputs: Inputs, required: Required
) -> Iterator[Candidate]:
    assert isinstance(operator, ProjectOperator)
    columns = tuple(zip(operator.output, operator.expressions, strict=True))
    keys = mapped_keys(
        required.keys, {c.id: e.column for c, e in columns if isinstance(e, ColumnRef)}
    )
    if keys is None:
        return
    source = search.best(inputs[0], Required(required.placement, keys))
    if source is None:
        return
    names = {e.column: c.id for c, e in columns if isinstance(e, ColumnRef)}
    kept = [m for k in source.distribution.keys if (m := mapped_keys(k, names)) is not None]
    if required.keys and required.keys not in kept:
        kept.append(required.keys)
    distribution = Distribution(source.distribution.placement, tuple(kept))
    by_chance = any(is_volatile(e) for e in operator.expressions)
    if by_chance and distribution.placement is Placement.REPLICATED:
        distribution = SINGLETON  # each member would have values of its own
    computed = sum(1 for e in operator.expressions if not isinstance(e, ColumnRef | Literal))
    cost = source.cost + PROJECT * computed * search.model.on_one(source.rows, distribution)
    kept_order = tuple(
        replace(key, column=names[key.column])
        for key in takewhile(lambda key: key.column in names, source.collation)
    )
    yield Candidate(group, operator, (source,), distribution, cost, source.rows, kept_order)


def _expand(
    search: Search, group: Group, operator: Operator, inputs: Inputs, required: Required
) -> Iterator[Candidate]:
    """Rows are repeated where they are."""
    assert isinstance(operator, ExpandOperator)
    if any(key not in inputs[0].columns for key in required.keys):
        return
    source = search.best(inputs[0], required)
    if source is not None:
        rows = source.rows * len(operator.sets)
        cost = source.cost + PROJECT * search.model.on_one(rows, source.distribution)
        yield Candidate(group, operator, (source,), source.distribution, cost, rows)


def _unfold(
    search: Search, group: Group, operator: Operator, inputs: Inputs, required: Required
) -> Iterator[Candidate]:
    """Rows are made where their input rows are."""
    assert isinstance(operator, UnfoldOperator)
    if any(key not in inputs[0].columns for key in required.keys):
        return
    source = search.best(inputs[0], required)
    if source is not None:
        rows = max(group.estimate.rows, 1.0)
        cost = source.cost + PROJECT * search.model.on_one(rows, source.distribution)
        yield Candidate(group, operator, (source,), source.distribution, cost, rows)


def _sort(
    search: Search, group: Group, operator: Operator, inputs: Inputs, _required: Required
) -> Iterator[Candidate]:
    """ORDER BY, LIMIT and OFFSET: the initiator cuts off, whoever sorted."""
    assert isinstance(operator, SortOperator)
    fetch = limit_with_offset(operator.limit, operator.offset)
    asked = Required(Placement.SINGLETON, collation=operator.keys, fetch=fetch)
    source = search.best(inputs[0], asked)
    if source is None:
        return
    if operator.limit is None and operator.offset is None:
        yield Candidate(
            group,
            source.step,
            source.inputs,
            source.distribution,
            source.cost,
            source.rows,
            source.collation,
        )
        return
    if operator.offset is not None:
        if source.fetched and isinstance(source.step, LimitStep):
            # Only the LIMIT that the fetch asked for: one without ``fetched`` belongs to the input.
            source = source.inputs[0]
        limit = LimitStep(operator.limit, operator.offset)
        yield Candidate(
            group,
            limit,
            (source,),
            SINGLETON,
            source.cost,
            group.estimate.rows,
            source.collation,
        )
        return
    yield Candidate(
        group, source.step, source.inputs, SINGLETON, source.cost, source.rows, source.collation
    )


def _union(
    search: Search, group: Group, operator: Operator, inputs: Inputs, required: Required
) -> Iterator[Candidate]:
    assert isinstance(operator, UnionOperator)
    if search.alone:
        options = [ANYWHERE]
    else:
        options = {
            Placement.ANY: [SPREAD, AT_INITIATOR, EVERYWHERE],
            Placement.SINGLETON: [AT_INITIATOR],
            Placement.REPLICATED: [EVERYWHERE],
            Placement.PARTITIONED: [] if required.keys else [SPREAD],
        }[required.placement]
    for option in options:
        sources = [search.best(child, option) for child in inputs]
        done = tuple(source for source in sources if source is not None)
        if len(done) < len(sources):
            continue
        distribution = {
            Placement.PARTITIONED: Distribution(Placement.PARTITIONED),
            Placement.REPLICATED: REPLICATED,
        }.get(option.placement, SINGLETON)
        cost = sum(source.cost for source in done)
        yield Candidate(group, operator, done, distribution, cost, group.estimate.rows)


def _ordered_join(
    search: Search, group: Group, operator: Operator, inputs: Inputs, required: Required
) -> Iterator[Candidate]:
    """Joins that keep the order of index scans below them."""
    assert isinstance(operator, JoinOperator)
    yield from ordered_merge_join(search, group, operator, inputs, required)
    yield from ordered_lookup_join(search, group, operator, inputs, required)


IMPLEMENTATIONS: dict[type, tuple[tuple[str, Implementation], ...]] = {
    AccessOperator: (
        ("table scan", _scan),
        ("key lookup", _key_lookup),
        ("index scan", implement_index_scan),
    ),
    ValuesOperator: (("values", _values),),
    SharedOperator: (("shared rows", _shared),),
    SuppliedOperator: (("supplied rows", _supplied),),
    FilterOperator: (("filter", _filter),),
    ProjectOperator: (("project", _project),),
    JoinOperator: (
        ("hash join", implement_hash_join),
        ("nested loops", implement_loop_join),
        ("merge join", implement_merge_join),
        ("lookup join", implement_lookup_join),
    ),
    AggregateOperator: (("hash aggregate", implement_aggregate),),
    ExpandOperator: (("expand", _expand),),
    UnfoldOperator: (("unfold", _unfold),),
    GroupLimitOperator: (("group limit", implement_group_limit),),
    WindowOperator: (("window", implement_window),),
    SortOperator: (("sort", _sort),),
    UnionOperator: (("union", _union),),
}
"""Operator -> its implementation rules by name."""

ORDERED_IMPLEMENTATIONS: dict[type, Implementation] = {
    AccessOperator: ordered_scan,
    ProjectOperator: ordered_project,
    AggregateOperator: ordered_aggregate,
    JoinOperator: _ordered_join,
}
"""Operator -> the implementation rule that delivers an order."""
