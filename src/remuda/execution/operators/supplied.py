"""SuppliedScan: rows that the initiator was given when the query started."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.errors import InternalError
from remuda.execution.batch import Batch
from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator, Progress
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Outgoing
from remuda.limits import BATCH_ROWS
from remuda.plan.physical import SuppliedScan


class SuppliedOperator(Operator):
    """The last rows come with the end: a round of a recursive query takes one turn."""

    def __init__(self, node: SuppliedScan, context: FragmentContext) -> None:
        rows = context.supplied.get(node.relation)
        if rows is None:
            raise InternalError(f'nobody supplied the rows of "{node.relation}"')
        self._rows = rows
        self._piece_rows = context.batch_rows or BATCH_ROWS
        self._positions = node.positions
        self._next = 0
        """The batch of ``rows`` that comes next."""
        self._pieces = Outgoing()
        self._batch = EMPTY

    def advance(self) -> Progress:
        if not self._pieces and self._next < len(self._rows):
            rows = self._rows[self._next]
            self._next += 1
            columns = [rows.column(place) for place in self._positions]
            self._pieces = Outgoing(Batch(columns, rows.num_rows), self._piece_rows)
        self._batch = self._pieces.next()
        ended = not self._pieces and self._next >= len(self._rows)
        return Progress.FETCHED_DONE if ended else Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        self._next = 0
        self._pieces = Outgoing()
        return True

    def close(self) -> None:
        self._batch = EMPTY
        self._pieces = Outgoing()


@builds(SuppliedScan)
def _supplied(node: SuppliedScan, _inputs: Sequence[Operator], build: BuildContext) -> Operator:
    return SuppliedOperator(node, build.context)
