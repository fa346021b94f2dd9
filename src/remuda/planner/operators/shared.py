"""Rows of a shared sub-plan: a spool holds them, and each read has its columns of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.plan.logical import OutputColumn
from remuda.plan.physical import Distribution, Physical, Placement, SpoolScan
from remuda.planner.estimates.cardinality import estimate_project
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.cost import SCAN
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Build, Columns, traits_of
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.memo.plain_rules import PlainRule, register
from remuda.planner.memo.properties import Required, mapped_keys
from remuda.planner.memo.search import Search
from remuda.planner.sharing import SharedRead


@dataclass(frozen=True, slots=True)
class SharedOperator(PlainOperator):
    """A read of spool ``spool``: ``output[i]`` is its column ``positions[i]``. ``distribution`` is
    where its rows are, in the columns read."""

    output: tuple[OutputColumn, ...]
    spool: int
    positions: tuple[int, ...]
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class Definition:
    """A shared sub-plan as it was planned: ``output`` are its columns in order."""

    group: Group
    output: tuple[OutputColumn, ...]
    distribution: Distribution

    def places(self, read: SharedRead) -> tuple[int, ...]:
        """The places of the columns that ``read`` uses."""
        places = {column.id: place for place, column in enumerate(self.output)}
        return tuple(places[column] for column in read.columns)


def shared_group(groups: OperatorGroups, node: SharedRead, definition: Definition) -> Group:
    """``definition`` is how the shared sub-plan is computed: there are its rows."""
    source = definition.group
    names = {old: new.id for old, new in zip(node.columns, node.output, strict=True)}
    standing = {source.same.get(old, old): new for old, new in names.items()}
    found = [mapped_keys(source.canonical(k), standing) for k in definition.distribution.keys]
    keys = tuple(key for key in found if key is not None)
    distribution = Distribution(definition.distribution.placement, keys)
    known = source.estimate.columns
    columns = {new: known[old] for old, new in names.items() if old in known}
    group = groups.group(
        SharedOperator(node.output, node.number, definition.places(node), distribution),
        (),
        node.output,
        estimate_project(source.estimate, columns, names),
        keys,
    )
    group.central = distribution.placement is Placement.SINGLETON
    return group


def _candidates(
    search: Search,
    group: Group,
    operator: SharedOperator,
    _: tuple[Group, ...],
    _required: Required,
) -> Iterator[Candidate]:
    """Stored rows are read where they are."""
    rows = group.estimate.rows
    cost = SCAN * search.model.on_one(rows, operator.distribution)
    yield Candidate(group, operator, (), operator.distribution, cost, rows)


def _node(candidate: Candidate, step: SharedOperator, needed: Columns, _build: Build) -> Physical:
    pairs = zip(step.output, step.positions, strict=True)
    kept = [(column, place) for column, place in pairs if column.id in needed]
    return SpoolScan(
        tuple(column for column, _ in kept),
        traits_of(candidate),
        step.spool,
        tuple(place for _, place in kept),
    )


register(SharedOperator, PlainRule("shared rows", _candidates, _node))
