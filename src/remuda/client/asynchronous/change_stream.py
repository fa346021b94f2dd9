"""``ChangeStream``: the changes of a map as record batches, from a position that can be stored."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from remuda.client.asynchronous.feed import Ends, Feed
from remuda.client.asynchronous.listener import subscription_name
from remuda.client.core.core import Core
from remuda.client.core.reader import Reader
from remuda.client.requests.change_batches import (
    EARLIEST,
    SNAPSHOT,
    StreamStart,
    changed_batch,
    check_not_ahead,
    position_document,
    snapshot_batch,
    stream_schema,
    stream_start,
)
from remuda.client.requests.feeds import FeedPage, FeedPositions, FeedQuery
from remuda.client.requests.requests import RunOptions
from remuda.client.values.predicate import quote
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import ChangesExpired, InputError, RemudaError, from_report
from remuda.limits import CHANGES_STREAM_ROWS

ROWS = 8192
_TRIES = 3
"""Of a stream that begins with the earliest changes, which may go while it asks for them."""


class ChangeStream:
    """The changes of a map, batch by batch. Made by ``Map.changes``.

        async with await flights.changes(from_="snapshot") as stream:
            async for batch in stream:
                ...
                save(stream.position)

    Each batch has the columns of the map (of a delete: the row that was removed), ``_change``
    (snapshot, insert, update, delete), ``_commit_timestamp``, ``_transaction`` (the hybrid
    timestamp of the commit) and ``_before`` (a struct; NULL of what was not there). The changes of
    one key come in the order of their commits, each exactly once, whatever becomes of the members.
    A stream that is resumed at a ``position`` goes on after the batch that was handed out last.
    A slow reader waits for nothing and holds nobody up; when changes are gone before they
    were read, reading raises ChangesExpired, which says since when there are some.
    """

    def __init__(  # noqa: PLR0917 (what is read, and how)
        self,
        core: Core,
        schema: MapSchema,
        condition: str,
        parameters: Sequence[PhysicalValue],
        types: tuple[SqlType, ...],
        rows: int,
    ) -> None:
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InputError(f"rows is a number of changes, 1 or more, found {rows!r}")
        self.schema = stream_schema(schema.shown)
        """Of the batches, as the map was when the stream began."""
        self._core = core
        self._text = f"SELECT * FROM {quote(schema.name)}{condition}"  # noqa: S608 (quoted)
        self._parameters, self._types = parameters, types
        query = FeedQuery(subscription_name(), "stream", self._text, parameters, types, arrow=True)
        ends = Ends(gap=None, failed=self._on_failed)
        self._feed = Feed(
            core, query, None, self._on_page, self._room, ends, rows=min(rows, CHANGES_STREAM_ROWS)
        )
        self._pages: deque[FeedPage] = deque()
        self._told = FeedPositions(0)
        self._snapshot: int | None = None
        self._reader: Reader | None = None
        self._map_id = 0
        self._kept = 0
        self._error: RemudaError | None = None
        self._stopped = False
        self._arrived = asyncio.Event()

    # --- for the application ------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = await self.read()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def read(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """The next batch, never empty; None: the stream was stopped, or nothing has changed for
        ``timeout`` seconds. Raises what has ended the stream: ChangesExpired, UndefinedMap,
        InsufficientPrivilege, ..."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        while not self._stopped:
            batch = await self._next()
            if batch is not None:
                return batch
            if self._error is not None:
                raise from_report(self._error.to_report()) from self._error
            self._arrived.clear()
            left = None if until is None else until - loop.time()
            if left is not None and left <= 0:
                return None
            with contextlib.suppress(TimeoutError):  # something may have come in that moment
                await asyncio.wait_for(self._arrived.wait(), left)
        return None

    @property
    def position(self) -> dict[str, Any]:
        """The place where another stream begins to go on after the last batch that was handed out.
        JSON holds it. In the middle of a snapshot: at the begin of that snapshot."""
        reading = self._snapshot is not None
        return position_document(self._map_id, None if reading else self._told, self._snapshot)

    async def stop(self) -> None:
        """End it. Stopping twice does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self._arrived.set()
        if self._reader is not None:
            await self._reader.close()
        await self._feed.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- inside -------------------------------------------------------------------------------

    async def begin(self, wanted: Any) -> Self:
        """See ``change_batches.stream_start``."""
        start = stream_start(wanted)
        try:
            await self._begin(start)
        except BaseException:
            await self._feed.close()
            raise
        self._feed.start()
        return self

    async def _begin(self, start: StreamStart) -> None:
        if start.word == EARLIEST:
            await self._begin_earliest()
        elif start.word or start.snapshot is not None:
            positions = None if start.snapshot is None else FeedPositions(start.snapshot)
            now = await self._open(positions, start.map_id)
            if start.word == SNAPSHOT or start.snapshot is not None:
                self._snapshot = now if start.snapshot is None else start.snapshot
                options = RunOptions(read_timestamp=self._snapshot)
                self._reader = await self._core.execute(
                    self._text, self._parameters, self._types, options
                )
        else:
            assert start.positions is not None
            begin = start.positions.low
            now = await self._open(start.positions, start.map_id)
            if not start.map_id:  # a moment; the position of a stream was the grid's own word
                check_not_ahead(begin, now)

    async def _begin_earliest(self) -> None:
        for attempt in range(_TRIES):
            await self._open(None, 0)
            try:
                await self._open(FeedPositions(self._kept), 0)
                return
            except ChangesExpired:
                if attempt == _TRIES - 1:
                    raise

    async def _open(self, positions: FeedPositions | None, map_id: int) -> int:
        self._pages.clear()
        self._kept = 0
        begin = None if positions is None else FeedPositions.at_each(positions.each)
        now = await self._feed.open(positions, map_id)
        self._told = begin or FeedPositions(now)
        return now

    async def _next(self) -> pa.RecordBatch | None:
        if self._reader is not None:
            assert self._snapshot is not None
            while (found := await self._reader.next_batch()) is not None:
                if found.num_rows:
                    return snapshot_batch(found, self._reader.columns, self._snapshot)
            self._reader = self._snapshot = None
        while self._pages:
            page = self._pages.popleft()
            self._feed.wake()
            found = [changed_batch(each, page) for each in page.batches if each.num_rows]
            self._told.advance(page.partitions, page)
            if found:
                return found[0] if len(found) == 1 else pa.concat_batches(found)
        return None

    def _room(self) -> bool:
        return len(self._pages) < 2 * max(1, len(self._core.view.members)) and not self._stopped

    def _on_page(self, page: FeedPage) -> None:
        self._map_id = page.map_id
        self._kept = max(self._kept, page.kept_since)
        self._pages.append(page)
        self._arrived.set()

    def _on_failed(self, error: RemudaError) -> None:
        self._error = error
        self._arrived.set()
