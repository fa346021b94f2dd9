"""``Cursor``: the result of a statement, streamed, on an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from remuda.client.frames import to_pandas, to_polars
from remuda.client.pages import Header
from remuda.client.reader import Reader
from remuda.client.row import Row
from remuda.datatypes.schema import Column

if TYPE_CHECKING:
    import pandas as pd


class Cursor:
    """Rows as they are asked for. Iterate it by ``async for``, fetch from it, or take it whole as
    Arrow or pandas.

    A cursor that has not been read to its end holds a few pages of rows here and on a member;
    ``close`` (or the end of an ``async with`` block) cancels the rest. One task at a time reads; a
    task that is cancelled while it reads has cancelled the statement. ``cancel`` may be called from
    any task.

    Whatever reads raises the error that ended the statement: DataError for a wrong value,
    QueryTimeout, QueryCanceled, MemberUnavailable, ...
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    # --- what it is ---

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, SQL type and nullability of each column; () for a statement without a result."""
        return self._reader.columns

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of ``batches()`` and ``to_arrow()``."""
        return self._reader.schema

    @property
    def rowcount(self) -> int:
        """Rows written by the statement, or rows of the result once all have arrived; else -1."""
        return self._reader.rowcount

    @property
    def tag(self) -> str:
        """The kind of the statement ("SELECT", "CREATE TABLE", ...); "" before its end is known."""
        return self._reader.tag

    @property
    def query_id(self) -> str:
        """The cluster-wide id of the query, as logs and ``remuda status`` print it."""
        return self._reader.query_id

    @property
    def header(self) -> Header | None:
        """Columns and Arrow schema in one, to be given to the next run of the same statement."""
        return self._reader.header

    # --- rows ---

    async def __aiter__(self) -> AsyncGenerator[Row, None]:
        reader = self._reader
        while True:
            for row in reader.rows:
                yield row
            if not await reader.next_rows():
                return

    async def fetchone(self) -> Row | None:
        """The next row, or None at the end."""
        rows = await self._reader.fetch(1)
        return rows[0] if rows else None

    async def fetchmany(self, size: int = 100) -> list[Row]:
        """The next ``size`` rows, fewer at the end."""
        return await self._reader.fetch(size)

    async def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return await self._reader.fetch_all()

    async def scalar(self) -> Any:
        """The first column of the first row, None without rows; closes the cursor."""
        row = await self.fetchone()
        await self.close()
        return row[0] if row else None

    # --- Arrow ---

    async def batches(self) -> AsyncGenerator[pa.RecordBatch, None]:
        """The rest as record batches; rows of a batch that ``fetchone`` began are not seen.

        Pages are fetched as they are read: a slow reader holds the members back, and memory does
        not grow with the result.
        """
        while (batch := await self._reader.next_batch()) is not None:
            yield batch

    async def to_arrow(self) -> pa.Table:
        """The rest as an Arrow table."""
        return await self._reader.table()

    async def to_pandas(self) -> pd.DataFrame:
        """The rest as a pandas DataFrame. JSON comes as its text, INTERVAL as DateOffset."""
        return to_pandas(await self._reader.table())

    async def to_polars(self) -> Any:
        """The rest as a polars DataFrame; needs the package polars."""
        return to_polars(await self._reader.table())

    # --- ending ---

    async def cancel(self) -> None:
        """Cancel the statement, from any task; a reader gets QueryCanceled."""
        await self._reader.execution.cancel()

    async def close(self) -> None:
        """Give up the rows that are left: reading raises InputError from now on. Closing twice does
        nothing."""
        await self._reader.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._reader.close()

    def __del__(self) -> None:
        reader = getattr(self, "_reader", None)
        if reader is not None:
            reader.execution.lose()
