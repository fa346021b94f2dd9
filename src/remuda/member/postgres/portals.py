"""Results on their way to one of PostgreSQL's clients, as far as the client wants rows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from remuda.catalog.pg_types import declared_type, modifier
from remuda.copying.options import CopyOptions, Format
from remuda.copying.writing import RowWriter
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import SqlType
from remuda.datatypes.times.session_zones import UTC
from remuda.errors import NotSupported
from remuda.member.queries.cursors import Acknowledged, End
from remuda.postgres.catalog_values import wire_oid
from remuda.postgres.messages import (
    COPY_DONE_MESSAGE,
    Field,
    copy_out_response,
    row_description,
)
from remuda.postgres.rows import RowForm
from remuda.session.explaining import PLAN_COLUMNS
from remuda.session.shape import ResultShape

QUERY_PLAN: Final = tuple(replace(column, name="QUERY PLAN") for column in PLAN_COLUMNS)
"""PostgreSQL's name of what EXPLAIN gives."""


def fields_of(columns: Sequence[Column]) -> tuple[Field, ...]:
    """How RowDescription tells these columns."""
    if columns is PLAN_COLUMNS:
        columns = QUERY_PLAN
    return tuple(map(_field, columns))


def _field(column: Column) -> Field:
    name, sql_type, origin = column.name, column.type, column.origin
    told = (name, wire_oid(sql_type), _length(sql_type), modifier(sql_type))
    return Field(*told) if origin is None else Field(*told, origin.relation, origin.column)


def tells(fields: Sequence[Field] | None, columns: Sequence[Column]) -> bool:
    """Whether these fields tell a client of these columns. An altered table gives others."""
    told = [field.type for field in fields or ()]
    return told == [wire_oid(column.type) for column in columns]


def _length(sql_type: SqlType) -> int:
    return -1 if sql_type.element is not None else declared_type(sql_type)[0].length


@dataclass(frozen=True, slots=True)
class _Held:
    """Rows that the client has not asked for yet."""

    columns: Sequence[pa.Array]
    rows: int
    acknowledged: Acknowledged


@dataclass(frozen=True, slots=True)
class CopyOut:
    """The writer of the rows of a COPY TO, and the message that announces them."""

    writer: RowWriter
    response: bytes


class ResultRun:
    """One statement that runs, and its rows: a ``Wire`` for each shape that its result may have.

    Rows beyond the limit of an Execute stay here. They are not acknowledged, so the query behind
    them stops when a few pages wait; ``go_on`` sends more.
    """

    def __init__(
        self,
        *,
        write: Callable[[bytes | memoryview], None],
        when_taken: Callable[[Acknowledged], None],
        suspended: Callable[[], None],
        ended: Callable[[End], None],
        formats: Sequence[int] = (),
        fields: Sequence[Field] | None = None,
        described: bool = False,
        silent: bool = False,
        waiting: bool = False,
        limit: int = 0,
        zone: str = UTC,
        of_cursor: int | None = None,
    ) -> None:
        """``when_taken`` acknowledges a page when the client has taken enough of what was written.
        ``fields`` are those that the client was told of (``described``); otherwise they are sent
        in front of the rows, unless it is ``silent``. ``waiting``: they are sent after ``go_on``
        only. ``limit``: 0 for all rows. ``zone``: in which
        moments are written as text. ``of_cursor``: an Execute wants so many rows of a cursor that
        SQL has declared."""
        self._write = write
        self._when_taken = when_taken
        self._suspended = suspended
        self._ended = ended
        self._formats = formats
        self._fields = fields
        self._described = described
        self._silent = silent
        self._limit = limit
        self._zone = zone
        self.of_cursor = of_cursor
        self._sent = 0
        """Since the last Execute."""
        self._waiting = waiting
        """Suspended: nothing is sent before the next Execute."""
        self._held: deque[_Held] = deque()
        self._pulls: asyncio.Future[None] | None = None
        """Set while ``pull`` waits for rows or the end."""
        self._end: End | None = None
        self._form: RowForm | RowWriter | None = None
        self._copied: CopyOut | None = None
        self._shape: ResultShape | None = None
        self.over = False

    def wire(self, shape: ResultShape) -> ResultRun:
        """For a result of this shape. Raises NotSupported when the client was told of another."""
        if shape.columns and self._described and not tells(self._fields, shape.columns):
            raise NotSupported(
                "cached plan must not change result type",
                hint="Prepare the statement again: a table has been altered.",
            )
        self._shape = shape
        self._form = None
        return self

    def copied(
        self, options: CopyOptions, names: Sequence[str], zone: str
    ) -> Callable[[ResultShape], ResultRun]:
        """Wires that send rows as those of a COPY TO, all of them."""

        def wire(shape: ResultShape) -> ResultRun:
            self._limit = 0
            self._shape, self._form = shape, None
            writer = RowWriter(names, shape.types, options, zone, framed=True)
            binary = options.format is Format.BINARY
            self._copied = CopyOut(writer, copy_out_response(len(names), binary=binary))
            return self

        return wire

    # --- the wire -----------------------------------------------------------------------------

    def page(self, columns: Sequence[pa.Array], rows: int, on_acknowledged: Acknowledged) -> None:
        self._held.append(_Held(columns, rows, on_acknowledged))
        self._send()
        self._wake()

    def external_page(self, batch: pa.RecordBatch, on_acknowledged: Acknowledged) -> None:
        assert self._shape is not None
        self.page(self._shape.engine(batch), batch.num_rows, on_acknowledged)

    def finish(self, end: End) -> None:
        self._end = end if self._copied is None else replace(end, tag="COPY", affected_rows=None)
        if end.error is not None:
            self._held.clear()
            self._waiting = self.over = self._pulls is not None  # or else ``pull`` tells of it
        self._send()
        self._wake()

    # --- rows ---------------------------------------------------------------------------------

    async def pull(self, limit: int | None) -> pa.RecordBatch | None:
        """Rows for another statement than the next Execute: at most ``limit``, at least one, in
        engine form; None: none are left. Raises the error of the query."""
        while not self._held:
            if self._end is not None:
                if self._end.error is not None:
                    raise self._end.error
                return None
            self._pulls = asyncio.get_running_loop().create_future()
            try:
                await self._pulls
            finally:
                self._pulls = None
        page = self._held.popleft()
        wanted = page.rows if limit is None else min(limit, page.rows)
        rows = pa.record_batch(list(page.columns), names=[str(n) for n in range(len(page.columns))])
        if wanted < page.rows:
            rest = [array.slice(wanted) for array in page.columns]
            self._held.appendleft(_Held(rest, page.rows - wanted, page.acknowledged))
        else:
            page.acknowledged(None)
        return rows.slice(0, wanted)

    def _wake(self) -> None:
        if self._pulls is not None and not self._pulls.done():
            self._pulls.set_result(None)

    def go_on(self, limit: int) -> None:
        """The next Execute of a portal."""
        self._limit, self._sent, self._waiting = limit, 0, False
        self._send()

    def _send(self) -> None:
        while self._held and not self._waiting:
            self._send_page(self._held.popleft())
        if self._end is not None and not self._held and not self._waiting and not self.over:
            self._finish(self._end)

    def _send_page(self, page: _Held) -> None:
        form = self._described_form()
        wanted = page.rows if not self._limit else min(page.rows, self._limit - self._sent)
        columns = page.columns
        if wanted < page.rows:
            rest = [array.slice(wanted) for array in columns]
            self._held.appendleft(_Held(rest, page.rows - wanted, page.acknowledged))
            columns = [array.slice(0, wanted) for array in columns]
        if wanted and not self._silent:
            self._write(form.rows(columns, wanted))
        self._sent += wanted
        if wanted == page.rows:
            self._when_taken(page.acknowledged)
        if self._limit and self._sent == self._limit:
            self._waiting = True
            self._suspended()

    def _described_form(self) -> RowForm | RowWriter:
        """The client is told of the columns before the first row, if it was not yet."""
        if self._form is not None:
            return self._form
        assert self._shape is not None
        if self._copied is not None:
            self._form = self._copied.writer
            self._write(self._copied.response + self._copied.writer.head())
            return self._form
        columns = self._shape.columns
        own = int(self._shape.binary)
        formats = self._formats if self._described else (own,) * len(columns)
        self._form = RowForm(self._shape.types, formats, self._zone)
        if columns and not self._described and not self._silent:
            self._write(row_description(fields_of(columns), formats))
        return self._form

    def _finish(self, end: End) -> None:
        if end.error is None:
            self._described_form()
            if self._copied is not None:
                self._write(self._copied.writer.tail() + COPY_DONE_MESSAGE)
        self.over = True
        self._ended(end)

    @property
    def rows(self) -> int:
        """Those that the last Execute has sent."""
        return self._sent
