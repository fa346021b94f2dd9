"""UnionRows: UNION ALL, reading whichever input has rows."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import Upstream
from remuda.plan.physical import UnionRows


class UnionOperator(Operator):
    def __init__(self, sources: Sequence[Operator]) -> None:
        self._sources = [Upstream(source) for source in sources]
        self._open = list(self._sources)
        self._batch = Batch([], 0)

    def advance(self) -> Progress:
        for _ in range(len(self._open)):
            source = self._open[0]
            batch = source.fetch()
            if batch is None:
                self._open.append(self._open.pop(0))
                continue
            if source.done:
                self._open.pop(0)
            self._batch = batch
            return Progress.FETCHED if self._open else Progress.FETCHED_DONE
        if self._open:
            return Progress.WAIT
        self._batch = Batch([], 0)
        return Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        if not all(source.restart() for source in self._sources):
            return False
        self._open = list(self._sources)
        return True

    def close(self) -> None:
        self._batch = Batch([], 0)
        for source in self._sources:
            source.close()


@builds(UnionRows)
def _union(_node: UnionRows, inputs: Sequence[Operator], _build: BuildContext) -> Operator:
    return UnionOperator(inputs)
