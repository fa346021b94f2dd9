"""FilterRows: the rows that pass leave as a selection."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.operator_builders import BuildContext, builds
from remuda.plan.physical import FilterRows


class FilterOperator(Operator):
    def __init__(self, source: Operator, predicate: Predicate) -> None:
        self._source = source
        self._predicate = predicate
        self._batch = Batch([], 0)

    def advance(self) -> Progress:
        progress = self._source.advance()
        if progress is not Progress.WAIT:
            batch = self._source.current_batch()
            self._batch = self._predicate.filter(batch) if batch.rows else batch
        return progress

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        return self._source.restart()

    def close(self) -> None:
        self._batch = Batch([], 0)
        self._source.close()


@builds(FilterRows)
def _filter(node: FilterRows, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    predicate = Predicate(node.condition, build.compiler(node.input.output))
    return FilterOperator(inputs[0], predicate)
