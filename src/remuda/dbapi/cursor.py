"""``Cursor`` of PEP 249."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.client.blocking.client import Client
from remuda.client.blocking.cursor import Cursor as ClientCursor
from remuda.client.values.row import Row
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import INTEGER_KINDS, SqlType
from remuda.dbapi.exceptions import InterfaceError, ProgrammingError, translating
from remuda.dbapi.placeholders import Parameters, template

if TYPE_CHECKING:
    import pandas as pd

Description: TypeAlias = tuple[
    str, SqlType, int | None, int | None, int | None, int | None, bool | None
]


_INSERT: Final = re.compile(r"\s*insert\b", re.IGNORECASE)


class Owner(Protocol):
    """The connection that a cursor belongs to."""

    paramstyle: str

    def client_for(self, operation: str) -> Client:
        """The client that runs a statement; begins a transaction first, if one is due."""

    def require_open(self) -> None:
        """Raises InterfaceError once it is closed."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class Cursor:
    """Runs statements and holds the result of the last one. One thread at a time.

    Rows come as ``remuda.Row``: tuples whose items also have names. A result is fetched from the
    members as it is read; one that is not read to its end is given up by the next ``execute``, by
    ``close``, or at the end of a ``with`` block.
    """

    def __init__(self, connection: Owner) -> None:
        self.connection = connection
        self.arraysize = 1
        """Rows of a ``fetchmany`` that does not say how many."""
        self.lastrowid: None = None
        self.messages: list[tuple[type[Exception], Exception]] = []
        """Always empty: Remuda gives no warnings."""
        self._result: ClientCursor | None = None
        self._rowcount = -1
        self._position = 0
        self._closed = False

    # --- what it holds ---

    @property
    def description(self) -> tuple[Description, ...] | None:
        """Name, type, None, None, precision, scale and nullability of each column; None without a
        result. The type is a SqlType, which equals STRING, NUMBER, DATETIME or BINARY."""
        if self._result is None or not self._result.columns:
            return None
        return tuple(_described(column) for column in self._result.columns)

    @property
    def rowcount(self) -> int:
        """Rows that the last statement wrote, or rows of its result once all have arrived; -1
        where that is not known."""
        return self._rowcount if self._result is None else self._result.rowcount

    @property
    def rownumber(self) -> int | None:
        """The number, from 0, of the row that comes next; None without a result."""
        return None if self._result is None or not self._result.columns else self._position

    # --- running ---

    @translating
    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Run one statement, in the connection's transaction unless that is in autocommit mode."""
        client = self._begin(operation)
        if parameters is None:
            self._result = client.sql(operation)
            return self
        made = template(self.connection.paramstyle, _text(operation))
        values = made.values(parameters)
        if _INSERT.match(made.text) and _has_bools(values):
            values = _fitted(values, client.prepare(made.text).parameter_types)
        self._result = client.sql(made.text, tuple(values))
        return self

    @translating
    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Self:
        """Run one statement for each set of parameters. ``rowcount`` is the sum.

        ``INSERT INTO m (a, b) VALUES (?, ?)`` inserts thousands of rows at a time, each of these
        parts completely or not at all; other statements run one after the other.
        """
        client = self._begin(operation)
        if not isinstance(seq_of_parameters, Iterable):
            kind = type(seq_of_parameters).__name__
            raise ProgrammingError(f"executemany takes several sets of parameters, not {kind}")
        made = template(self.connection.paramstyle, _text(operation))
        self._rowcount = 0
        types = client.prepare(made.text).parameter_types
        self._rowcount = client.execute_many(
            made.text,
            (_fitted(made.values(parameters), types) for parameters in seq_of_parameters),
        )
        return self

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Does nothing: sizes need no announcement."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: columns of any size are fetched."""

    # --- fetching ---

    @translating
    def fetchone(self) -> Row | None:
        """The next row, or None at the end."""
        row = self._rows().fetchone()
        self._position += row is not None
        return row

    @translating
    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next ``size`` rows (``arraysize`` unless told), fewer at the end."""
        rows = self._rows().fetchmany(self.arraysize if size is None else size)
        self._position += len(rows)
        return rows

    @translating
    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        rows = self._rows().fetchall()
        self._position += len(rows)
        return rows

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    # --- Arrow: extensions ---

    @translating
    def fetch_arrow_table(self) -> pa.Table:
        """All rows that are left, as an Arrow table."""
        return self._rows().to_arrow()

    @translating
    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """The rows that are left, as a stream of Arrow record batches."""
        return self._rows().to_arrow_reader()

    @translating
    def fetch_df(self) -> pd.DataFrame:
        """All rows that are left, as a pandas DataFrame."""
        return self._rows().to_pandas()

    # --- ending ---

    @translating
    def close(self) -> None:
        """Give up what is left. The cursor is of no use any more; closing twice does nothing."""
        self._closed = True
        self._give_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- inside ---

    def _begin(self, operation: str) -> Client:
        """The runner of the statement, after the last result has been given up."""
        self._require_open()
        self._give_up()
        self._rowcount = -1
        self._position = 0
        return self.connection.client_for(_text(operation))

    def _give_up(self) -> None:
        result, self._result = self._result, None
        if result is not None:
            result.close()

    def _require_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection.require_open()

    def _rows(self) -> ClientCursor:
        self._require_open()
        if self._result is None:
            raise ProgrammingError("there is no result: nothing was executed, or no query")
        if not self._result.columns:
            raise ProgrammingError("the last statement has no result")
        return self._result


def _has_bools(values: Sequence[Any]) -> bool:
    return any(isinstance(value, bool | np.bool_) for value in values)


def _fitted(values: Sequence[Any], types: Sequence[SqlType]) -> Sequence[Any]:
    """The values with 0 and 1 for the bools of whole numbers: to Python they are the same, and
    pandas stores bools in columns that it has made as INTEGER."""
    if not _has_bools(values):
        return values
    return [
        int(value)
        if isinstance(value, bool | np.bool_) and i < len(types) and types[i].kind in INTEGER_KINDS
        else value
        for i, value in enumerate(values)
    ]


def _described(column: Column) -> Description:
    declared = column.type
    length = declared.length
    return (
        column.name,
        declared,
        None,
        length,
        declared.precision,
        declared.scale,
        column.nullable,
    )


def _text(operation: object) -> str:
    if not isinstance(operation, str):
        raise InterfaceError(f"a statement is text, found {type(operation).__name__}")
    return operation
