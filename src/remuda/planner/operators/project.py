"""Projections: expressions over the columns of the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from remuda.plan.expression import ColumnRef, Expression, Literal
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import SINGLETON, Distribution, Physical, Placement, ProjectRows
from remuda.planner.estimates.cardinality import column_of, estimate_project
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import PROJECT
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Build, Columns, traits_of, used_by
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import Required, mapped_keys
from remuda.planner.memo.search import Search


@dataclass(frozen=True, slots=True)
class ProjectOperator(PlainOperator):
    output: tuple[OutputColumn, ...]
    expressions: tuple[Expression, ...]


def project_group(
    groups: OperatorGroups,
    below: Group,
    output: tuple[OutputColumn, ...],
    expressions: tuple[Expression, ...],
) -> Group:
    known = below.estimate
    columns = {
        c.id: column_of(e, known.columns, known.rows)
        for c, e in zip(output, expressions, strict=True)
    }
    renamed = {
        below.same.get(e.column, e.column): c.id
        for c, e in zip(output, expressions, strict=True)
        if isinstance(e, ColumnRef)
    }
    natural = tuple(n for keys in below.natural if (n := mapped_keys(keys, renamed)))
    kept = {
        e.column: c.id for c, e in zip(output, expressions, strict=True) if isinstance(e, ColumnRef)
    }
    estimate = estimate_project(known, columns, kept)
    operator = ProjectOperator(output, expressions)
    return groups.group(operator, (below.id,), output, estimate, natural)


def _candidates(
    search: Search,
    group: Group,
    operator: ProjectOperator,
    inputs: tuple[Group, ...],
    required: Required,
) -> Iterator[Candidate]:
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


def _node(candidate: Candidate, step: ProjectOperator, needed: Columns, build: Build) -> Physical:
    kept = [
        (column, expression)
        for column, expression in zip(step.output, step.expressions, strict=True)
        if column.id in needed
    ]
    expressions = tuple(expression for _, expression in kept)
    child = build(candidate.inputs[0], used_by(expressions))
    output = tuple(column for column, _ in kept)
    return ProjectRows(output, traits_of(candidate), child, expressions)


register(ProjectOperator, PlainRule("project", _candidates, _node))
