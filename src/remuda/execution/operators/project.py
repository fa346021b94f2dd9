"""ProjectRows: computed columns; bare references are passed on without being materialized."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.ordering import places_of
from remuda.plan.expression import ColumnRef
from remuda.plan.physical import ProjectRows


class ProjectOperator(Operator):
    """``columns[i]`` is a position of the input, or computes output column i."""

    def __init__(
        self, source: Operator, columns: Sequence[int | Callable[[Batch], pa.Array]]
    ) -> None:
        self._source = source
        self._columns = columns
        self._passed = [column for column in columns if isinstance(column, int)]
        self._computed = [column for column in columns if not isinstance(column, int)]
        passed, computed = (
            iter(range(len(self._passed))),
            iter(range(len(self._passed), len(columns))),
        )
        self._order = [
            next(passed) if isinstance(column, int) else next(computed) for column in columns
        ]
        self._batch = Batch([], 0)

    def advance(self) -> Progress:
        progress = self._source.advance()
        if progress is Progress.WAIT:
            return progress
        batch = self._source.current_batch()
        if batch.rows == 0:
            self._batch = Batch([], 0)
            return progress
        if not self._computed:
            self._batch = batch.project(self._passed)
            return progress
        made = Batch([compute(batch) for compute in self._computed], batch.rows)
        if self._passed:
            made = batch.project(self._passed).beside(made).project(self._order)
        self._batch = made
        return progress

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        return self._source.restart()

    def close(self) -> None:
        self._batch = Batch([], 0)
        self._source.close()


@builds(ProjectRows)
def _project(node: ProjectRows, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    compiler = build.compiler(node.input.output)
    places = places_of(node.input.output)
    columns: list[int | Callable[[Batch], pa.Array]] = [
        places[expression.column]
        if isinstance(expression, ColumnRef)
        else compiler.column(expression)
        for expression in node.expressions
    ]
    return ProjectOperator(inputs[0], columns)
