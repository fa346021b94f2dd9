"""Root: pages of rows for the user's cursor, produced only on demand."""

from __future__ import annotations

import pyarrow as pa

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.exchange.encoding import BatchForm
from remuda.execution.operators.input import EMPTY, Upstream
from remuda.execution.root_sink import RootSink


class RootOperator(Operator):
    """WAITs while enough pages are queued; cuts large batches, passes small ones on."""

    def __init__(self, source: Operator, sink: RootSink, form: BatchForm) -> None:
        self._source = Upstream(source)
        self._sink = sink
        self._form = form
        self._rest: pa.RecordBatch | None = None
        self._offset = 0

    def advance(self) -> Progress:
        while True:
            if not self._sink.wants_rows():
                return Progress.WAIT
            if self._rest is not None:
                if self._put_page():
                    return Progress.FETCHED_DONE
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

    def _put_page(self) -> bool:
        """Queue the next page; True if it is the last of all."""
        assert self._rest is not None
        page = self._rest.slice(self._offset, self._sink.page_rows)
        self._offset += page.num_rows
        if self._offset >= self._rest.num_rows:
            self._rest = None
        last = self._rest is None and self._source.done
        self._sink.put(page, last)
        return last

    def current_batch(self) -> Batch:
        return EMPTY

    def close(self) -> None:
        self._rest = None
        self._source.close()
