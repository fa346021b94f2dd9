"""``Cursor``: the result of a statement, streamed, on an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from remuda.client.core.result import Result, to_pandas, to_polars
from remuda.client.values.row import Row

if TYPE_CHECKING:
    import pandas as pd


class Cursor(Result):
    """Rows as they are asked for. Iterate it by ``async for``, fetch from it, or take it whole as
    Arrow or pandas.

    A cursor that has not been read to its end holds a few pages of rows here and on a member;
    ``close`` (or the end of an ``async with`` block) cancels the rest. One task at a time reads; a
    task that is cancelled while it reads has cancelled the statement. ``cancel`` may be called from
    any task.

    Every reading method raises the error that ended the statement: DataError for a wrong value,
    QueryTimeout, QueryCanceled, MemberUnavailable, ...
    """

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
        if reader is not None and reader.execution.talk is not None:
            reader.execution.lose()
