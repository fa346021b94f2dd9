"""``POST /query.json``: one statement, its rows streamed as JSON.

Never more than a page of rows is in memory here: the next one is asked for when the HTTP client has
taken what was there. When that client goes away, its statement is cancelled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
from aiohttp import web

from remuda.aio import Client, Cursor
from remuda.datatypes.schema import Column
from remuda.errors import NotSupported, RemudaError
from remuda.gateway.failures import Refused, failure
from remuda.gateway.grids import Credentials, Grids
from remuda.gateway.login import Logins
from remuda.gateway.payload import Payload, first_word, read_payload
from remuda.gateway.values import row_texts, type_text
from remuda.rpc.value_vectors.batch import distinct_names

STATEMENTS_MAX: Final = 64
"""Statements that run at the same time; more wait for their turn."""
SESSION_TAGS: Final = ("SET", "RESET", "PREPARE", "DEALLOCATE", "DEALLOCATE ALL", "DISCARD ALL")
"""Of statements that change the session, which is shared by all requests of a user."""
PIECE_ROWS: Final = 512
COUNTED: Final = ("INSERT", "UPDATE", "DELETE", "MERGE", "SELECT")


class Queries:
    def __init__(self, grids: Grids, logins: Logins) -> None:
        self._grids = grids
        self._logins = logins
        self._turn = asyncio.Semaphore(STATEMENTS_MAX)
        self._running: dict[str, tuple[Credentials, Cursor]] = {}

    async def on_query(self, request: web.Request) -> web.StreamResponse:
        """Raises Refused and RemudaErrors as long as nothing has been sent."""
        if request.content_type != "application/json":
            raise Refused(415, "the content type must be application/json")
        payload = read_payload(await request.read())
        credentials = self._logins.credentials(request)
        if payload.user is not None and payload.user != credentials.user:
            raise NotSupported(
                f'statements cannot be run as another user ("{payload.user}")',
                hint="Log in as this user.",
            )
        async with self._turn, self._grids.client(credentials) as client:
            return await self._answer(request, payload, credentials, client)

    async def _answer(
        self, request: web.Request, payload: Payload, credentials: Credentials, client: Client
    ) -> web.StreamResponse:
        async with await client.sql(payload.query) as cursor:
            if cursor.tag in SESSION_TAGS and first_word(payload.query) != "USE":
                await self._grids.forget(credentials)  # it got past ``read_payload``
            if not cursor.columns:
                return web.Response(text=_summary(cursor), content_type="application/json")
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            self._running[cursor.query_id] = (credentials, cursor)
            try:
                await _stream(request, response, cursor, payload.limit)
            except (ConnectionResetError, asyncio.CancelledError):
                with suppress(RemudaError):
                    await asyncio.shield(cursor.cancel())
                raise
            finally:
                self._running.pop(cursor.query_id, None)
            return response

    async def on_cancel(self, request: web.Request) -> web.Response:
        """``GET /profiles/cancel/{id}``: of statements that the same user runs through here."""
        query = request.match_info["query"]
        credentials, cursor = self._running.get(query, (None, None))
        if cursor is None or credentials != self._logins.credentials(request):
            raise Refused(404, f"no statement {query} of yours runs through this gateway")
        await cursor.cancel()
        return web.json_response({"status": f"cancelled {query}"})


def _head(query: str, columns: tuple[Column, ...], names: list[str], limit: int | None) -> str:
    head = {
        "queryId": query,
        "columns": names,
        "metadata": [type_text(column.type) for column in columns],
        "attemptedAutoLimit": limit or 0,
    }
    return json.dumps(head, ensure_ascii=False)[:-1]


async def _stream(
    request: web.Request, response: web.StreamResponse, cursor: Cursor, limit: int | None
) -> None:
    """Errors that come when rows have been sent stand behind the rows, as in Drill."""
    columns = cursor.columns
    names = distinct_names(column.name for column in columns)
    before = _head(cursor.query_id, columns, names, limit) + ', "rows": ['
    end: dict[str, Any] = {"queryState": "COMPLETED"}
    sent = 0
    try:
        async for piece in _pieces(cursor, limit):
            text = before + ",\n".join(row_texts(names, columns, piece))
            if not response.prepared:
                await response.prepare(request)
            await response.write(text.encode())
            before = ",\n"
            sent += piece.num_rows
    except RemudaError as error:
        if not response.prepared:
            raise
        end = failure(error, cursor.query_id)
    if not response.prepared:
        await response.prepare(request)
    tail = (before if not sent else "") + "], " + json.dumps(end, ensure_ascii=False)[1:]
    await response.write(tail.encode())
    await response.write_eof()


async def _pieces(cursor: Cursor, limit: int | None) -> AsyncGenerator[pa.RecordBatch, None]:
    """Rows in pieces that are written as JSON in a moment: other requests have their turn between
    them."""
    left = limit
    async for batch in cursor.batches():
        page = batch if left is None else batch.slice(0, left)
        for first in range(0, page.num_rows, PIECE_ROWS):
            yield page.slice(first, PIECE_ROWS)
            await asyncio.sleep(0)
        if left is not None:
            left -= page.num_rows
            if not left:
                return


def _summary(cursor: Cursor) -> str:
    """A statement without a result, as Drill answers it."""
    rows = cursor.rowcount
    summary = f"{cursor.tag} {rows}" if cursor.tag in COUNTED and rows >= 0 else cursor.tag
    return json.dumps(
        {
            "queryId": cursor.query_id,
            "columns": ["ok", "summary"],
            "metadata": ["BIT", "VARCHAR"],
            "attemptedAutoLimit": 0,
            "rows": [{"ok": True, "summary": summary}],
            "queryState": "COMPLETED",
        },
        ensure_ascii=False,
    )
