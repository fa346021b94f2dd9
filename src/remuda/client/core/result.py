"""The columns and counts of a result, and its forms as frames: the part of both cursors that waits
for nothing."""

from __future__ import annotations

import html
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.client.core.reader import Reader
from remuda.client.requests.pages import Header
from remuda.datatypes.schema import Column
from remuda.errors import NotSupported

if TYPE_CHECKING:
    import pandas as pd

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


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """``table.to_pandas()``; lists of UUID or JSON, which it does not take, become lists of
    objects."""
    wanting = [
        place
        for place, field in enumerate(table.schema)
        if pa.types.is_list(field.type) and isinstance(field.type.value_type, pa.BaseExtensionType)
    ]
    plain = table
    for place in wanting:
        plain = plain.set_column(place, table.schema.names[place], pa.nulls(table.num_rows))
    frame: pd.DataFrame = plain.to_pandas()
    for place in wanting:
        values = frame.iloc[:, place].astype(object)
        values[:] = table.column(place).to_pylist()
        frame.isetitem(place, values.array)
    return frame


def to_polars(table: pa.Table) -> Any:
    """The table as a polars DataFrame. NotSupported without the package."""
    try:
        polars = import_module("polars")
    except ImportError:
        raise NotSupported(
            "to_polars() needs the package polars", hint="pip install polars"
        ) from None
    return polars.from_arrow(table)
