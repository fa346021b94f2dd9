"""The parts that physical nodes of all operators have in common: traits, columns, their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from remuda.plan.expression import ColumnId, Expression, columns_of
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import Physical, ProjectRows, Traits
from remuda.planner.algebra import reference
from remuda.planner.memo.candidate import Candidate

Columns: TypeAlias = frozenset[ColumnId]
Build: TypeAlias = Callable[[Candidate, Columns], Physical]
"""(candidate, columns that are needed of it) -> its node."""


def traits_of(candidate: Candidate) -> Traits:
    return Traits(candidate.distribution, candidate.collation, candidate.rows, candidate.cost)


def used_by(expressions: Iterable[Expression]) -> Columns:
    return frozenset().union(*(columns_of(expression) for expression in expressions))


def ordered(node: Physical, output: tuple[OutputColumn, ...]) -> Physical:
    """``node`` putting out exactly ``output``, in this order."""
    if tuple(column.id for column in node.output) == tuple(column.id for column in output):
        return node
    return ProjectRows(output, node.traits, node, tuple(reference(column) for column in output))


def narrowed(node: Physical, needed: Columns) -> Physical:
    """``node`` without the columns that are not ``needed``."""
    output = tuple(column for column in node.output if column.id in needed)
    return ordered(node, output)
