"""Queries whose changes are told: a SELECT over one map, row by row.

Each row of the map gives at most one row of the result, so a change of the map is a change of the
result that follows from the row before and the row after alone. Queries that need other rows
(joins, aggregates, ORDER BY, LIMIT, ...) cannot be watched, nor expressions that change by
themselves (now(), random()).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import NotSupported, RemudaError, WrongParameters
from remuda.execution.arrays import Indices
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.predicate import Predicate
from remuda.plan.expression import EachOf, Expression, Subquery, walk
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import Filter, Logical, Project, Scan
from remuda.session.parameters import fitted, with_clock_parameters
from remuda.sql.scope.statements import BoundQuery, BoundStatement

HINT = (
    "Watch a SELECT over one map: expressions of its columns, with or without WHERE; no joins, "
    "aggregates, DISTINCT, ORDER BY, LIMIT, subqueries, functions of the current time."
)
Step = Callable[[Batch, Indices], tuple[Batch, Indices]]
"""Some rows with their numbers, to those that are left and their new columns."""


class WatchedQuery:
    """``columns`` of the rows that ``select`` gives, for rows of ``schema``."""

    def __init__(
        self, statement: BoundStatement, values: Sequence[PhysicalValue], given: Sequence[SqlType]
    ) -> None:
        """Raises NotSupported for what cannot be watched, WrongParameters."""
        if not isinstance(statement, BoundQuery) or statement.locking:
            raise NotSupported("only a SELECT can be watched", hint=HINT)
        fit = fitted(values, given, statement.parameter_types)
        if fit is None:
            raise WrongParameters("a parameter has no exact counterpart in the type that is needed")
        scan, steps = _chain(statement.plan)
        if with_clock_parameters(statement.plan, 0)[1]:
            raise NotSupported(
                "a query of the current time, user or settings cannot be watched", hint=HINT
            )
        self.schema: MapSchema = scan.schema
        self.columns = tuple(
            Column(name, column.type, column.nullable)
            for name, column in zip(statement.names, statement.plan.output, strict=True)
        )
        self._positions = scan.positions
        self._steps: list[Step] = []
        below: Logical = scan
        for node in steps:
            places = {column.id: place for place, column in enumerate(below.output)}
            self._steps.append(_step(node, Compiler(places, fit)))
            below = node

    def select(self, rows: pa.RecordBatch) -> tuple[Indices, list[pa.Array]]:
        """Which of some rows of the map are in the result, and their columns there. Raises
        DataError where an expression fails."""
        batch = Batch([rows.column(position) for position in self._positions], rows.num_rows)
        numbers = np.arange(rows.num_rows)
        for step in self._steps:
            if not batch.rows:
                break
            batch, numbers = step(batch, numbers)
        if not batch.rows:
            return numbers[:0], []
        arrays = [
            canonical(array, column.type)
            for array, column in zip(batch.columns(), self.columns, strict=True)
        ]
        return numbers, arrays


def _chain(plan: Logical) -> tuple[Scan, list[Filter | Project]]:
    """The scan, and the nodes above it, lowest first."""
    steps: list[Filter | Project] = []
    node = plan
    while not isinstance(node, Scan):
        if not isinstance(node, Filter | Project):
            raise _refused(type(node).__name__)
        expressions = node.expressions if isinstance(node, Project) else (node.condition,)
        for expression in expressions:
            _check(expression)
        steps.append(node)
        node = node.input
    return node, steps[::-1]


def _check(expression: Expression) -> None:
    if any(isinstance(part, Subquery | EachOf) for part in walk(expression)):
        raise _refused("Subquery")
    if is_volatile(expression):
        raise NotSupported("a query with random values cannot be watched", hint=HINT)


_NAMES = {
    "Join": "a join",
    "DependentJoin": "a join",
    "MarkJoin": "a subquery",
    "Aggregate": "an aggregate, GROUP BY or DISTINCT",
    "Expand": "grouping sets",
    "Window": "window functions",
    "Sort": "ORDER BY, LIMIT or OFFSET",
    "Values": "no map",
    "Supplied": "a system relation or a recursive WITH",
    "Union": "UNION",
    "SetOperation": "a set operation",
    "Unfold": "a function that gives rows",
    "Subquery": "a subquery",
}


def _refused(kind: str) -> RemudaError:
    what = _NAMES.get(kind, kind)
    return NotSupported(f"a query with {what} cannot be watched", hint=HINT)


def _step(node: Filter | Project, compiler: Compiler) -> Step:
    if isinstance(node, Filter):
        predicate = Predicate(node.condition, compiler)

        def narrow(batch: Batch, numbers: Indices) -> tuple[Batch, Indices]:
            chosen = predicate.select(batch)
            return (batch, numbers) if chosen is None else (batch.narrow(chosen), numbers[chosen])

        return narrow
    computed = [compiler.column(expression) for expression in node.expressions]

    def project(batch: Batch, numbers: Indices) -> tuple[Batch, Indices]:
        return Batch([compute(batch) for compute in computed], batch.rows), numbers

    return project
