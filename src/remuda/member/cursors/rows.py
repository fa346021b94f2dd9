"""The rows of a cursor: those that come one after the other, and those that are kept."""

from __future__ import annotations

from bisect import bisect_right
from typing import Protocol

import pyarrow as pa

from remuda.execution.stored_rows import StoredRows


class PageSource(Protocol):
    """A query that runs."""

    async def next(self) -> pa.RecordBatch | None:
        """The next page in engine form; None behind the last one."""

    def close(self) -> None:
        """Nobody wants more; may be called again."""


class PassingRows:
    """Rows that are read once, forwards."""

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._page: pa.RecordBatch | None = None
        self._done = False

    async def piece(self, limit: int | None) -> pa.RecordBatch | None:
        """The next rows, at most ``limit`` and at least one; None: there are none left."""
        page = self._page
        while page is None or not page.num_rows:
            if self._done:
                return None
            page = await self._source.next()
            self._done = page is None
        wanted = page.num_rows if limit is None else min(limit, page.num_rows)
        self._page = page.slice(wanted) if wanted < page.num_rows else None
        return page.slice(0, wanted)


class KeptRows:
    """Rows that can be read again, by their numbers from 0 on. Those below ``first`` are gone."""

    def __init__(self, passing: PassingRows, stored: StoredRows, first: int = 0) -> None:
        self._passing = passing
        self._stored = stored
        self._starts: list[int] = []
        """The number of the first row of each batch."""
        self._count = first
        """The number of the next row that is read of the query."""

    async def fill(self) -> None:
        """Read the query to its end. Raises OutOfMemory, DiskFull."""
        while await self._read():
            pass

    async def _read(self) -> bool:
        piece = await self._passing.piece(None)
        if piece is None:
            return False
        self._stored.add(piece)
        self._starts.append(self._count)
        self._count += piece.num_rows
        return True

    async def forward(self, number: int, limit: int | None) -> pa.RecordBatch | None:
        """Rows from ``number`` on, at most ``limit`` and at least one; None: there are none."""
        while number >= self._count:
            if not await self._read():
                return None
        place = bisect_right(self._starts, number) - 1
        batch = self._stored[place].slice(number - self._starts[place])
        return batch if limit is None else batch.slice(0, limit)

    def backward(self, end: int, limit: int) -> pa.RecordBatch:
        """Rows in front of the number ``end``, the nearest first, at most ``limit`` and at least
        one. There are such rows."""
        place = bisect_right(self._starts, end - 1) - 1
        first = max(self._starts[place], end - limit)
        batch = self._stored[place].slice(first - self._starts[place], end - first)
        return batch.take(pa.array(range(batch.num_rows - 1, -1, -1), pa.int64()))

    def close(self) -> None:
        self._stored.close()
