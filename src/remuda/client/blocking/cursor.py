"""``Cursor``: the result of a statement, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from remuda.client.core.result import Result, to_pandas, to_polars
from remuda.client.network.driving import finish
from remuda.client.values.row import Row

if TYPE_CHECKING:
    import pandas as pd


class Cursor(Result):
    """Rows as they are asked for. Iterate it, fetch from it, or take it whole as Arrow or pandas;
    libraries that read the Arrow C stream protocol (polars, DuckDB, pandas) take it as it is.

    A cursor that has not been read to its end holds one connection to a member and a few pages of
    rows there; ``close`` (or the end of a ``with`` block) cancels the rest. One thread at a time
    reads; ``cancel`` may be called from any thread.

    Every reading method raises the error that ended the statement: DataError for a wrong value,
    QueryTimeout, QueryCanceled, MemberUnavailable, ...
    """

    # --- rows ---

    def __iter__(self) -> Iterator[Row]:
        reader = self._reader
        while True:
            yield from reader.rows
            if not finish(reader.next_rows()):
                return

    def fetchone(self) -> Row | None:
        """The next row, or None at the end."""
        reader = self._reader
        while True:
            for row in reader.rows:
                return row
            if not finish(reader.next_rows()):
                return None

    def fetchmany(self, size: int = 100) -> list[Row]:
        """The next ``size`` rows, fewer at the end."""
        return finish(self._reader.fetch(size))

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return finish(self._reader.fetch_all())

    def scalar(self) -> Any:
        """The first column of the first row, None without rows; closes the cursor."""
        row = self.fetchone()
        self.close()
        return row[0] if row else None

    # --- Arrow ---

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rest as record batches; rows of a batch that ``fetchone`` began are not seen."""
        while (batch := finish(self._reader.next_batch())) is not None:
            yield batch

    def to_arrow(self) -> pa.Table:
        """The rest as an Arrow table."""
        return finish(self._reader.table())

    def to_arrow_reader(self) -> pa.RecordBatchReader:
        """The rest as a stream of record batches, for whatever reads such streams.

        Pages are fetched as they are read: a slow reader holds the members back, and memory does
        not grow with the result.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rest as an Arrow C stream (a PyCapsule)."""
        return self.to_arrow_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rest as a pandas DataFrame. JSON comes as its text, INTERVAL as DateOffset."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """The rest as a polars DataFrame; needs the package polars."""
        return to_polars(self.to_arrow())

    # --- ending ---

    def cancel(self) -> None:
        """Cancel the statement, from any thread; a reader gets QueryCanceled."""
        finish(self._reader.execution.cancel())

    def close(self) -> None:
        """Give up the rows that are left: reading raises InputError from now on. Closing twice does
        nothing."""
        finish(self._reader.close())

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
        reader = getattr(self, "_reader", None)
        if reader is not None:
            finish(reader.execution.abandon())
