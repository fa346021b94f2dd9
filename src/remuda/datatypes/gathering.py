"""Small record batches put together: converting, routing and staging one costs about as much for
few rows as for many."""

from __future__ import annotations

import pyarrow as pa


class Gathering:
    """Batches of one schema that wait until they have ``rows`` rows or ``size`` bytes together."""

    def __init__(self, rows: int, size: int) -> None:
        self._rows_enough = rows
        self._size_enough = size
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._size = 0

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """All rows that wait, in the order in which they came, once they are enough; else None."""
        if batch.num_rows:
            self._waiting.append(batch)
            self._rows += batch.num_rows
            self._size += batch.nbytes
        enough = self._rows >= self._rows_enough or self._size >= self._size_enough
        return self.rest() if enough else None

    def rest(self) -> pa.RecordBatch | None:
        """All rows that wait; None: there are none."""
        waiting, self._waiting = self._waiting, []
        self._rows = self._size = 0
        if len(waiting) > 1:
            return pa.concat_batches(waiting)
        return waiting[0] if waiting else None
