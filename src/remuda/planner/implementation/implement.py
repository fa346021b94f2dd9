"""Implementation rules: the physical alternatives of each logical operator."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.plan.expression import conjuncts
from remuda.plan.physical import REPLICATED, SINGLETON, Distribution, Placement
from remuda.planner.implementation.aggregate import implement_aggregate
from remuda.planner.implementation.index import implement_index_scan, ordered_project, ordered_scan
from remuda.planner.implementation.join import implement_hash_join, implement_loop_join
from remuda.planner.implementation.lookup import implement_lookup_join, ordered_lookup_join
from remuda.planner.implementation.merge import implement_merge_join, ordered_merge_join
from remuda.planner.implementation.streaming import ordered_aggregate
from remuda.planner.memo.access import likely_keys, whole_key
from remuda.planner.memo.candidate import Candidate, Group, LimitStep, LookupStep, ScanStep
from remuda.planner.memo.cost import FILTER, KEY_LOOKUP, SCAN, SCAN_START
from remuda.planner.memo.group_operators import (
    AccessOperator,
    AggregateOperator,
    JoinOperator,
    Operator,
    SortOperator,
)
from remuda.planner.memo.operators import partition_keys
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Implementation, Search
from remuda.planner.operators.project import ProjectOperator
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
    JoinOperator: (
        ("hash join", implement_hash_join),
        ("nested loops", implement_loop_join),
        ("merge join", implement_merge_join),
        ("lookup join", implement_lookup_join),
    ),
    AggregateOperator: (("hash aggregate", implement_aggregate),),
    SortOperator: (("sort", _sort),),
}
"""Operator -> its implementation rules by name; those of plain operators are in
``planner.operators``."""

ORDERED_IMPLEMENTATIONS: dict[type, Implementation] = {
    AccessOperator: ordered_scan,
    ProjectOperator: ordered_project,
    AggregateOperator: ordered_aggregate,
    JoinOperator: _ordered_join,
}
"""Operator -> the implementation rule that delivers an order."""
