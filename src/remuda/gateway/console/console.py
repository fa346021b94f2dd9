"""The routes of the console: its files, login, events, statements."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from remuda.aio import Client
from remuda.errors import RemudaError
from remuda.gateway.console.feeds import Feeds, Listener
from remuda.gateway.console.replies import HEADERS, answer, failure
from remuda.gateway.console.sessions import STREAMS_MAX, Session, Sessions
from remuda.gateway.console.statements import Statements, read_statement
from remuda.gateway.console.topics import MARK, PROFILE, query_id, topic_of
from remuda.gateway.console.words import words_of
from remuda.gateway.failures import Refused, status_of
from remuda.gateway.grids import NOBODY, Credentials, Grids

PAGE: Final = Path(__file__).with_name("page")
KEEP_ALIVE: Final = 15.0
"""Seconds after which a silent stream sends a comment: proxies close silent connections."""
TOPICS_MAX: Final = 16
QUIET: Final = "SET keep_profiles = off"
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """``connect(credentials)`` makes a client, a coroutine. ``now`` gives seconds."""

    def __init__(
        self,
        connect: Callable[[Credentials], Awaitable[Client]],
        now: Callable[[], float],
        *,
        https: bool,
    ) -> None:
        self._sessions = Sessions(now, https=https)
        self._watching = Grids(connect, (QUIET,))
        self._editing = Grids(connect, ())
        self._statements = Statements(self._editing)
        self.feeds = Feeds(self._watching)
        self._files = {path.name: _File(path) for path in PAGE.iterdir() if path.suffix in _KINDS}

    def routes(self) -> list[web.RouteDef]:
        get, post = web.get, web.post
        return [
            get("/", self._told(self._on_page)),
            get("/console/session", self._told(self._on_session)),
            post("/console/login", self._told(self._on_login)),
            post("/console/logout", self._told(self._on_logout)),
            get("/console/events", self._told(self._on_events)),
            get("/console/words", self._told(self._on_words)),
            get("/console/profile/{query}", self._told(self._on_profile)),
            post("/console/statements", self._told(self._on_statement)),
            post("/console/cancel", self._told(self._on_cancel)),
            get("/console/{file}", self._told(self._on_file)),
        ]

    async def shutdown(self, _app: web.Application) -> None:
        """Event streams end: nobody waits for them."""
        self._sessions.close()

    async def close(self) -> None:
        await self._watching.close()
        await self._editing.close()

    def _told(self, handler: Handler) -> Handler:
        """Errors as the page reads them."""

        async def told(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except Refused as error:
                return answer({"error": {"message": error.message}}, error.status)
            except RemudaError as error:
                return answer({"error": failure(error)}, status_of(error))

        return told

    # --- files --------------------------------------------------------------------------------

    async def _on_page(self, request: web.Request) -> web.Response:
        return self._files["index.html"].answer(request)

    async def _on_file(self, request: web.Request) -> web.Response:
        file = self._files.get(request.match_info["file"])
        if file is None:
            raise Refused(404, f"there is no {request.path} here")
        return file.answer(request)

    # --- sessions -----------------------------------------------------------------------------

    async def _on_session(self, request: web.Request) -> web.Response:
        """The user and the token of the session; begins a session when there is none."""
        session = self._sessions.find(request) or self._sessions.begin()
        response = await self._described(session)
        self._sessions.give(response, session)
        return response

    async def _described(self, session: Session) -> web.Response:
        found: dict[str, Any] = {
            "token": session.token,
            "logged_in": session.credentials != NOBODY,
        }
        try:
            async with self._watching.client(session.credentials) as client:
                found["user"] = await (await client.sql("SELECT current_user")).scalar()
                found["version"] = await (await client.sql("SELECT version()")).scalar()
        except RemudaError as error:
            found["error"] = failure(error)
        return answer(found)

    async def _on_login(self, request: web.Request) -> web.Response:
        before = self._sessions.of_change(request)
        body = await _object(request)
        user, password = body.get("user"), body.get("password")
        if not isinstance(user, str) or not isinstance(password, str) or not user:
            raise Refused(400, 'a login has the fields "user" and "password"')
        credentials = Credentials(user, password)
        async with self._watching.client(credentials):
            self._sessions.end(before)  # whoever knew its name knows nothing of the new one
            session = self._sessions.begin(credentials)
        response = await self._described(session)
        self._sessions.give(response, session)
        return response

    async def _on_logout(self, request: web.Request) -> web.Response:
        session = self._sessions.of_change(request)
        self._sessions.end(session)
        if session.credentials != NOBODY:
            await self._watching.forget(session.credentials)
            await self._editing.forget(session.credentials)
        response = answer({})
        self._sessions.give(response, self._sessions.begin())
        return response

    # --- what happens -------------------------------------------------------------------------

    async def _on_events(self, request: web.Request) -> web.StreamResponse:
        session = self._sessions.of(request)
        names = dict.fromkeys(request.query.getall("topic", []))
        if not 1 <= len(names) <= TOPICS_MAX:
            raise Refused(400, f"a stream has 1 to {TOPICS_MAX} topics (?topic=members)")
        topics = [topic_of(name) for name in names]
        if len(session.streams) >= STREAMS_MAX:
            raise Refused(429, f"a session has at most {STREAMS_MAX} open streams: close a tab")
        response = web.StreamResponse(
            headers={
                **HEADERS,
                "Content-Type": "text/event-stream",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        listener, own = Listener(), asyncio.current_task()
        assert own is not None
        session.streams.add(own)
        self.feeds.join(session.credentials, topics, listener)
        try:
            await response.prepare(request)
            await response.write(b"retry: 2000\n\n")
            while True:
                await response.write(await _next(listener))
        except ConnectionResetError:
            return response
        finally:
            session.streams.discard(own)
            self.feeds.leave(session.credentials, topics, listener)

    async def _on_words(self, request: web.Request) -> web.Response:
        """Names that the editor completes."""
        session = self._sessions.of(request)
        async with self._watching.client(session.credentials) as client:
            return answer(await words_of(client))

    async def _on_profile(self, request: web.Request) -> web.Response:
        """The profile of one statement that runs or has ended."""
        session = self._sessions.of(request)
        query = query_id(request.match_info["query"])
        async with self._watching.client(session.credentials) as client:
            cursor = await client.sql(f"{MARK} {PROFILE}", query)
            row = await cursor.fetchone()
        if row is None:
            raise Refused(404, "no profile of this statement is kept any more")
        return answer(row[0] if not isinstance(row[0], str) else json.loads(row[0]))

    async def _on_statement(self, request: web.Request) -> web.StreamResponse:
        session = self._sessions.of_change(request)
        asked = read_statement(await _object(request))
        return await self._statements.run(request, asked, session)

    async def _on_cancel(self, request: web.Request) -> web.Response:
        """Of a statement or a transaction of anybody, as far as the user may."""
        session = self._sessions.of_change(request)
        body = await _object(request)
        query, transaction = body.get("query"), body.get("transaction")
        async with self._editing.client(session.credentials) as client:
            if isinstance(query, str):
                await client.activity.cancel_query(query)
            elif isinstance(transaction, str):
                await client.activity.cancel_transaction(transaction)
            else:
                raise Refused(400, 'name what ends: the field "query" or "transaction"')
        return answer({})


class _File:
    """A file of the page, in memory."""

    def __init__(self, path: Path) -> None:
        self._body = path.read_bytes()
        self._tag = f'"{hashlib.sha256(self._body).hexdigest()[:24]}"'
        self._headers = {
            **HEADERS,
            "Content-Type": _KINDS[path.suffix],
            "Cache-Control": "no-cache",
            "ETag": self._tag,
        }

    def answer(self, request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == self._tag:
            return web.Response(status=304, headers=self._headers)
        response = web.Response(body=self._body, headers=self._headers)
        response.enable_compression()
        return response


async def _object(request: web.Request) -> dict[str, Any]:
    if request.content_type != "application/json":
        raise Refused(415, "the content type must be application/json")
    try:
        found = json.loads(await request.read())
    except (ValueError, RecursionError) as problem:
        raise Refused(400, f"the body is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise Refused(400, "the body is not a JSON object")
    return found


async def _next(listener: Listener) -> bytes:
    """The next event as the stream writes it; a comment after a long silence."""
    try:
        async with asyncio.timeout(KEEP_ALIVE):
            event = await listener.next()
    except TimeoutError:
        return b":\n\n"
    return b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
