"""What a result says of itself: the part of both cursors that waits for nothing."""

from __future__ import annotations

import html

import pyarrow as pa

from remuda.client.core.reader import Reader
from remuda.client.requests.pages import Header
from remuda.datatypes.schema import Column

_SHOWN = 20
"""Rows that a notebook shows."""


class Result:
    """The result of a statement, as far as it has arrived."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

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

    def __repr__(self) -> str:
        """Its columns, and how far it has come: nothing is fetched."""
        columns = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        rows = "" if self.rowcount < 0 else f", {self.rowcount} rows"
        return f"<{type(self).__name__} {self.tag or 'running'} ({columns}){rows}>"

    def _repr_html_(self) -> str:
        """For notebooks: rows that are here already. They stay to be fetched."""
        head = "".join(f"<th>{html.escape(column.name)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>"
            for row in self._reader.waiting(_SHOWN)
        )
        return f"<pre>{html.escape(repr(self))}</pre><table><tr>{head}</tr>{body}</table>"
