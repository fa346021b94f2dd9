"""ValuesScan: constant rows."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.values import values_to_array
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.operator_builders import BuildContext, builds
from remuda.plan.physical import ValuesScan


class ValuesOperator(Operator):
    def __init__(self, node: ValuesScan) -> None:
        self._batch = Batch(
            [
                values_to_array([row[place] for row in node.rows], column.type)
                for place, column in enumerate(node.output)
            ],
            len(node.rows),
        )

    def advance(self) -> Progress:
        return Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        return True


@builds(ValuesScan)
def _values(node: ValuesScan, _inputs: Sequence[Operator], _build: BuildContext) -> Operator:
    return ValuesOperator(node)
