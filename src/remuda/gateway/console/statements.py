"""``POST /console/statements``: one statement for the editor, its rows streamed as lines of JSON.

The first line has the columns, further ones rows as texts, the last one how it ended. A page that
closes the request cancels the statement.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from aiohttp import web

from remuda.aio import Cursor
from remuda.datatypes.arrow import to_engine
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import SqlType
from remuda.datatypes.texts.valuetext import text_of
from remuda.datatypes.values import array_to_values
from remuda.errors import RemudaError
from remuda.gateway.console.replies import HEADERS, failure
from remuda.gateway.console.sessions import Session
from remuda.gateway.failures import Refused
from remuda.gateway.grids import Grids
from remuda.gateway.payload import SESSION_WORDS, first_word

ROWS_MAX: Final = 10_000
"""Rows that a page may ask for."""
ROWS_USUAL: Final = 1000
CELL_MAX: Final = 4000
"""Characters of a value that are shown."""
WHOLE_MAX: Final = 4 << 20
"""Of a value that a page wants whole, as the plan of EXPLAIN."""
PIECE_ROWS: Final = 256
STATEMENTS_MAX: Final = 32
"""Statements of all pages that run at the same time; more wait for their turn."""


@dataclass(frozen=True, slots=True)
class Asked:
    """``cell``: the most characters of a value."""

    text: str
    rows: int
    cell: int


def read_statement(body: dict[str, Any]) -> Asked:
    """Raises Refused, which says what is wrong."""
    text, rows = body.get("text"), body.get("rows", ROWS_USUAL)
    if not isinstance(text, str) or not text.strip():
        raise Refused(400, 'the field "text" is not a statement')
    if not isinstance(rows, int) or isinstance(rows, bool) or not 1 <= rows <= ROWS_MAX:
        raise Refused(400, f'the field "rows" is not a number from 1 to {ROWS_MAX}')
    if first_word(text) in SESSION_WORDS:
        raise Refused(
            400,
            "each statement of the console is a session of its own: it has no settings to change "
            "and no prepared statements",
        )
    return Asked(text, rows, WHOLE_MAX if body.get("whole") is True else CELL_MAX)


class Statements:
    def __init__(self, grids: Grids) -> None:
        self._grids = grids
        self._turn = asyncio.Semaphore(STATEMENTS_MAX)

    async def run(self, request: web.Request, asked: Asked, session: Session) -> web.StreamResponse:
        """Raises RemudaErrors as long as nothing has been sent."""
        began = time.monotonic()
        async with (
            self._turn,
            self._grids.client(session.credentials) as client,
            await client.sql(asked.text) as cursor,
        ):
            return await _stream(request, cursor, asked, began)


async def _stream(
    request: web.Request, cursor: Cursor, asked: Asked, began: float
) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={
            **HEADERS,
            "Content-Type": "application/x-ndjson; charset=utf-8",
            "Cache-Control": "no-store",
        }
    )
    columns = list(cursor.columns)
    head = {
        "query": cursor.query_id,
        "columns": [
            {"name": c.name, "type": str(c.type), "number": c.type.is_numeric} for c in columns
        ],
    }
    rows = 0
    end: dict[str, Any] = {}
    try:
        pieces = _pieces(cursor, asked.rows + 1) if columns else _nothing()
        async for piece in pieces:
            if not response.prepared:
                await response.prepare(request)
                await _write(response, head)
            shown = piece.slice(0, asked.rows - rows)
            rows += piece.num_rows
            await _write(response, {"rows": row_texts(columns, shown, asked.cell)})
    except (ConnectionResetError, asyncio.CancelledError):
        with suppress(RemudaError):
            await asyncio.shield(cursor.cancel())
        raise
    except RemudaError as error:
        if not response.prepared:
            raise
        end = {"error": failure(error)}
    if not response.prepared:
        await response.prepare(request)
        await _write(response, head)
    more = rows > asked.rows
    end |= {
        "tag": cursor.tag,
        "rows": min(rows, asked.rows) if columns else cursor.rowcount,
        "more": more,
        "seconds": time.monotonic() - began,
    }
    await _write(response, {"end": end})
    await response.write_eof()
    return response


async def _write(response: web.StreamResponse, line: dict[str, Any]) -> None:
    await response.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


async def _nothing() -> AsyncGenerator[pa.RecordBatch, None]:
    nothing: tuple[pa.RecordBatch, ...] = ()
    for batch in nothing:
        yield batch


async def _pieces(cursor: Cursor, limit: int) -> AsyncGenerator[pa.RecordBatch, None]:
    """Pieces that are written in a moment: other requests have their turn between them."""
    left = limit
    async for batch in cursor.batches():
        page = batch.slice(0, left)
        for first in range(0, page.num_rows, PIECE_ROWS):
            yield page.slice(first, PIECE_ROWS)
            await asyncio.sleep(0)
        left -= page.num_rows
        if left <= 0:
            return


def row_texts(
    columns: Sequence[Column], batch: pa.RecordBatch, cell: int = CELL_MAX
) -> list[list[str | None]]:
    """Each row as the texts of its values, as CAST to text writes them; NULL is None. Of a longer
    text, ``cell`` characters and a sign that it goes on."""
    texts = [
        _texts(array, column.type, cell)
        for column, array in zip(columns, batch.columns, strict=True)
    ]
    return [list(row) for row in zip(*texts, strict=True)]


def _texts(array: pa.Array, sql_type: SqlType, cell: int) -> list[str | None]:
    text = text_of(sql_type)
    found = [
        None if value is None else text(value)
        for value in array_to_values(to_engine(array, sql_type), sql_type)
    ]
    return [t if t is None or len(t) <= cell else f"{t[:cell]}…" for t in found]
