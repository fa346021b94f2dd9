"""The result of a statement as it is read: the common part of the cursors of both faces."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from remuda.client.core.execution import Execution
from remuda.client.requests.pages import ArrowPage, Header, Page
from remuda.client.values.row import Row
from remuda.datatypes.schema import Column
from remuda.errors import InputError

_NO_SCHEMA = pa.schema([])


class Reader:
    """Pages as they come, handed out as rows or as batches. One reader at a time."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.rows: Iterator[Row] = iter(())
        """The rest of the page that is read row by row."""
        self._pages: deque[Page] = deque()
        self._batches: list[pa.RecordBatch] = []
        self._received = 0
        self._closed = False

    async def begin(self) -> None:
        """Wait for the first page, or for the end. A statement without a result has ended when its
        cursor is there."""
        execution = self.execution
        while (page := await execution.next_page()) is not None:
            self._received += page.count
            self._pages.append(page)
            header = execution.stream.header
            if header is not None and header.columns:
                return

    # --- what it is ---

    @property
    def header(self) -> Header | None:
        return self.execution.stream.header

    @property
    def columns(self) -> tuple[Column, ...]:
        header = self.execution.stream.header
        return header.columns if header is not None else ()

    @property
    def schema(self) -> pa.Schema:
        header = self.execution.stream.header
        return header.schema if header is not None else _NO_SCHEMA

    @property
    def rowcount(self) -> int:
        outcome = self.execution.stream.outcome
        if outcome is None:
            return -1
        return self._received if outcome.affected_rows is None else outcome.affected_rows

    @property
    def tag(self) -> str:
        outcome = self.execution.stream.outcome
        return outcome.tag if outcome else ""

    @property
    def query_id(self) -> str:
        found = self.execution.stream.query_id
        return "" if found is None else str(found)

    # --- reading ---

    async def next_rows(self) -> bool:
        """Put the next page into ``rows``; False at the end."""
        if self._batches:  # ``next_batch`` began this page
            page: Page = ArrowPage(self._batches, self.columns)
            self._batches = []
        elif self._pages or await self._advance():
            page = self._pages.popleft()
        else:
            return False
        self.rows = iter(page.rows())
        return True

    def waiting(self, size: int) -> list[Row]:
        """Up to ``size`` rows of the next pages that have arrived; they stay."""
        found: list[Row] = []
        for page in self._pages:
            found += page.rows()[: size - len(found)]
        return found

    async def fetch(self, size: int) -> list[Row]:
        """The next ``size`` rows, fewer at the end."""
        found = list(islice(self.rows, max(0, size)))
        while len(found) < size and await self.next_rows():
            found += islice(self.rows, size - len(found))
        return found

    async def fetch_all(self) -> list[Row]:
        rows = list(self.rows)
        while await self.next_rows():
            rows += self.rows
            outcome = self.execution.stream.outcome
            if not self._pages and outcome is not None and outcome.error is None:
                self.rows = iter(())
                break  # that was everything
        return rows

    async def next_batch(self) -> pa.RecordBatch | None:
        """The next record batch; None at the end. Rows of a page that ``rows`` began are gone."""
        while not self._batches:
            if not self._pages and not await self._advance():
                return None
            self._batches = self._pages.popleft().batches
        return self._batches.pop(0)

    async def table(self) -> pa.Table:
        """The rest as an Arrow table."""
        batches = []
        while (batch := await self.next_batch()) is not None:
            batches.append(batch)
        return pa.Table.from_batches(batches, self.schema)

    async def close(self) -> None:
        """Give up what is left: reading raises InputError from now on."""
        self._let_go()
        await self.execution.close()

    def drop(self) -> None:
        """``close`` at once, where nobody can wait."""
        self._let_go()
        self.execution.lose()

    def _let_go(self) -> None:
        self._closed = True
        self._pages.clear()
        self._batches = []
        self.rows = iter(())

    async def _advance(self) -> bool:
        """Receive the next page; False at the end."""
        if self._closed:
            raise InputError("the cursor is closed")
        page = await self.execution.next_page()
        if page is None:
            return False
        self._received += page.count
        self._pages.append(page)
        return True
