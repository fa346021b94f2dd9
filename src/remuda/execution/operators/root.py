"""Root: pages of rows for the user's cursor, produced only on demand."""

from __future__ import annotations

import pyarrow as pa

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.exchange.encoding import BatchForm
from remuda.execution.operators.input import EMPTY, Upstream, piece_rows
from remuda.execution.root_sink import RootSink


class RootOperator(Operator):
    """WAITs while enough pages are queued; cuts large batches, passes small ones on."""

    def __init__(self, source: Operator, sink: RootSink, form: BatchForm) -> None:
        self._source = Upstream(source)
        self._sink = sink
        self._form = form
        self._rest: pa.RecordBatch | None = None
        self._offset = 0
        self._page_rows = sink.page_rows

    def advance(self) -> Progress:
        while True:
            if not self._sink.wants_rows():
                return Progress.WAIT
            if self._rest is not None:
                last = self._last_of(self._rest)
                if not self._sink.put(self._rest.slice(self._offset, self._page_rows), last):
                    return Progress.WAIT
                if last:
                    self._rest = None
                    return Progress.FETCHED_DONE
                self._offset += self._page_rows
                if self._offset >= self._rest.num_rows:
                    self._rest = None
                continue
            if self._source.done:
                self._sink.put(None, last=True)
                return Progress.FETCHED_DONE
            batch = self._source.fetch()
            if batch is None:
                return Progress.WAIT
            if not batch.rows:
                if self._source.done:
                    continue
                return Progress.FETCHED
            self._rest = self._form.record_batch(batch)
            self._offset = 0
            self._page_rows = min(self._sink.page_rows, piece_rows(batch, self._sink.page_size))

    def _last_of(self, rest: pa.RecordBatch) -> bool:
        """Whether the page that is next is the last of all."""
        return self._source.done and self._offset + self._page_rows >= rest.num_rows

    def current_batch(self) -> Batch:
        return EMPTY

    def close(self) -> None:
        self._rest = None
        self._source.close()
