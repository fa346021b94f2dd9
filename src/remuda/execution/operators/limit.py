"""LimitRows: skip ``offset`` rows, pass ``limit``, then end at once."""

from __future__ import annotations

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress


class LimitOperator(Operator):
    """Ends with FETCHED_DONE as soon as the limit is reached, without reading its input further."""

    def __init__(self, source: Operator, limit: int | None, offset: int) -> None:
        self._source = source
        self._limit = self._left = limit
        self._offset = self._skip = offset
        self._batch = Batch([], 0)

    def advance(self) -> Progress:
        if self._left == 0:
            self._batch = Batch([], 0)
            return Progress.FETCHED_DONE
        progress = self._source.advance()
        if progress is Progress.WAIT:
            return progress
        batch = self._source.current_batch()
        if self._skip and batch.rows:
            skipped = min(self._skip, batch.rows)
            self._skip -= skipped
            batch = (
                batch.slice(skipped, batch.rows - skipped) if skipped < batch.rows else Batch([], 0)
            )
        if self._left is not None and batch.rows:
            batch = batch.slice(0, self._left)
            self._left -= batch.rows
        self._batch = batch
        return Progress.FETCHED_DONE if self._left == 0 else progress

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        if not self._source.restart():
            return False
        self._left, self._skip = self._limit, self._offset
        return True

    def close(self) -> None:
        self._batch = Batch([], 0)
        self._source.close()
