"""SuppliedScan: rows that the initiator was given when the query started."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from remuda.errors import InternalError
from remuda.execution.batch import Batch
from remuda.execution.context import FragmentContext, SuppliedRows
from remuda.execution.contract import Operator, Progress
from remuda.limits import BATCH_ROWS
from remuda.plan.physical import SuppliedScan


class SuppliedOperator(Operator):
    def __init__(self, node: SuppliedScan, context: FragmentContext) -> None:
        rows = context.supplied.get(node.relation)
        if rows is None:
            raise InternalError(f'nobody supplied the rows of "{node.relation}"')
        self._rows = rows
        self._piece_rows = context.batch_rows or BATCH_ROWS
        self._pieces = _pieces(rows, self._piece_rows)
        self._positions = node.positions
        self._batch = Batch([], 0)

    def advance(self) -> Progress:
        rows = next(self._pieces, None)
        if rows is None:
            self._batch = Batch([], 0)
            return Progress.FETCHED_DONE
        self._batch = Batch([rows.column(place) for place in self._positions], rows.num_rows)
        return Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        self._pieces = _pieces(self._rows, self._piece_rows)
        return True

    def close(self) -> None:
        self._batch = Batch([], 0)
        self._pieces = iter(())


def _pieces(rows: SuppliedRows, limit: int) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        for first in range(0, batch.num_rows, limit):
            yield batch.slice(first, limit)
