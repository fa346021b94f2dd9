"""A query whose pages somebody pulls, whenever he wants one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping

import pyarrow as pa

from remuda.errors import QueryCanceled, RemudaError
from remuda.member.base.loop_handoff import Hop
from remuda.member.queries.queries import Queries
from remuda.member.queries.query_start import QueryStart
from remuda.query.ids import QueryId


class PulledQuery:
    """Begins at once, and runs no further than a few pages ahead of what was pulled."""

    def __init__(
        self,
        queries: Queries,
        hop: Hop,
        query: QueryId,
        start: QueryStart,
        *,
        active: MutableMapping[QueryId, int],
        closers: list[Callable[[], None]],
    ) -> None:
        """``active`` has the timestamps whose versions must stay, by query; ``closers`` free what
        the query reads besides maps."""
        assert start.sink is not None
        self._queries = queries
        self._query = query
        self._active = active
        self._closers = closers
        self._news = asyncio.Event()
        self._ended = False
        self._error: RemudaError | None = None
        sink = self._sink = start.sink
        news = self._news
        sink.tell(lambda: hop(news.set))
        active[query] = start.read_timestamp
        queries.begin(query, start, self._on_end)

    def _on_end(self, error: RemudaError | None) -> None:
        self._ended, self._error = True, error
        self._active.pop(self._query, None)
        self._news.set()

    async def next(self) -> pa.RecordBatch | None:
        """The next page in engine form; None: there are no more. Raises the error that has ended
        the query."""
        while True:
            self._news.clear()
            page = self._sink.take()
            if page is not None:
                return page
            if self._ended and (self._error is not None or self._sink.exhausted):
                if self._error is not None:
                    raise self._error
                return None
            await self._news.wait()

    def close(self) -> None:
        """Its rows are not wanted any more; may be called again."""
        self._sink.clear()
        self._sink.detach()
        if not self._ended:
            self._queries.fail(self._query, QueryCanceled("the cursor was closed"))
        self._active.pop(self._query, None)
        while self._closers:
            self._closers.pop()()
