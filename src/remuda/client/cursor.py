"""``Cursor``: the result of a statement, streamed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from remuda.client.execution import Execution
from remuda.client.frames import to_pandas
from remuda.client.pages import ArrowPage, Header, Page
from remuda.client.row import Row
from remuda.datatypes.schema import Column
from remuda.errors import InputError, NotSupported

if TYPE_CHECKING:
    import pandas as pd

_NO_SCHEMA = pa.schema([])


class Cursor:
    """Rows as they are asked for. Iterate it, fetch from it, or take it whole as Arrow or pandas.

    A cursor that has not been read to its end holds one connection to a member and a few pages of
    rows there; ``close`` (or the end of a ``with`` block) cancels the rest. One thread at a time
    reads; ``cancel`` may be called from any thread.

    Whatever reads raises the error that ended the statement: DataError for a wrong value,
    QueryTimeout, QueryCanceled, MemberUnavailable, ...
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._pages: deque[Page] = deque()
        self._batches: list[pa.RecordBatch] = []
        self._rows: Iterator[Row] = iter(())
        self._received = 0
        self._closed = False
        while self._advance() and not self.columns:
            pass  # a statement without a result has ended when its cursor is there

    # --- what it is ---

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, SQL type and nullability of each column; () for a statement without a result."""
        header = self._execution.stream.header
        return header.columns if header is not None else ()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of ``batches()`` and ``to_arrow()``."""
        header = self._execution.stream.header
        return header.schema if header is not None else _NO_SCHEMA

    @property
    def rowcount(self) -> int:
        """Rows written by the statement, or rows of the result once all have arrived; else -1."""
        outcome = self._execution.stream.outcome
        if outcome is None:
            return -1
        return self._received if outcome.affected_rows is None else outcome.affected_rows

    @property
    def tag(self) -> str:
        """The kind of the statement ("SELECT", "CREATE TABLE", ...); "" before its end is known."""
        outcome = self._execution.stream.outcome
        return outcome.tag if outcome else ""

    @property
    def query_id(self) -> str:
        """The cluster-wide id of the query, as logs and ``remuda status`` print it."""
        found = self._execution.stream.query_id
        return "" if found is None else str(found)

    @property
    def header(self) -> Header | None:
        """Columns and Arrow schema in one, to be given to the next run of the same statement."""
        return self._execution.stream.header

    # --- rows ---

    def __iter__(self) -> Iterator[Row]:
        while True:
            yield from self._rows
            if not self._next_rows():
                return

    def fetchone(self) -> Row | None:
        """The next row, or None at the end."""
        for row in self:
            return row
        return None

    def fetchmany(self, size: int = 100) -> list[Row]:
        """The next ``size`` rows, fewer at the end."""
        rows = []
        if size > 0:
            for row in self:
                rows.append(row)
                if len(rows) == size:
                    break
        return rows

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        rows = list(self._rows)
        while self._next_rows():
            rows += self._rows
        return rows

    def scalar(self) -> Any:
        """The first column of the first row, None without rows; closes the cursor."""
        row = self.fetchone()
        self.close()
        return row[0] if row else None

    # --- Arrow ---

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rest as record batches; rows of a batch that ``fetchone`` began are not seen."""
        while True:
            while self._batches:
                yield self._batches.pop(0)
            if not self._pages and not self._advance():
                return
            self._batches = self._pages.popleft().batches

    def to_arrow(self) -> pa.Table:
        """The rest as an Arrow table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rest as a pandas DataFrame. JSON comes as its text, INTERVAL as DateOffset."""
        frame: pd.DataFrame = to_pandas(self.to_arrow())
        return frame

    def to_polars(self) -> Any:
        """The rest as a polars DataFrame; needs the package polars."""
        try:
            polars = import_module("polars")
        except ImportError:
            raise NotSupported(
                "to_polars() needs the package polars", hint="pip install polars"
            ) from None
        return polars.from_arrow(self.to_arrow())

    # --- ending ---

    def cancel(self) -> None:
        """Cancel the statement, from any thread; a reader gets QueryCanceled."""
        self._execution.cancel()

    def close(self) -> None:
        """Give up the rows that are left: reading raises InputError from now on. Closing twice does
        nothing."""
        self._closed = True
        self._pages.clear()
        self._batches = []
        self._rows = iter(())
        self._execution.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        execution = getattr(self, "_execution", None)
        if execution is not None:
            execution.abandon()

    # --- pages ---

    def _advance(self) -> bool:
        """Receive the next page (the first one, or the end, when the cursor is made)."""
        if self._closed:
            raise InputError("the cursor is closed")
        page = self._execution.next_page()
        if page is None:
            return False
        self._received += page.count
        self._pages.append(page)
        return True

    def _next_rows(self) -> bool:
        if self._batches:  # ``batches`` began this page
            page: Page = ArrowPage(self._batches, self.columns)
            self._batches = []
        elif self._pages or self._advance():
            page = self._pages.popleft()
        else:
            return False
        self._rows = iter(page.rows())
        return True
