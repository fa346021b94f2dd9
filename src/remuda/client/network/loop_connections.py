"""The ports of an event loop: a few connections per member, many requests under way on each."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from remuda.client.network.contact import Contact, client_closed
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.line import Line, Talk
from remuda.client.network.ports import RETIREMENT, Settings
from remuda.client.network.tracing import OPENTELEMETRY, traced
from remuda.client.requests.requests import Call
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    InputError,
    NotServed,
    QueryTimeout,
    RemudaError,
    from_report,
)
from remuda.rpc import transport
from remuda.rpc.connection import ChannelKind

T = TypeVar("T")

MAX_CONNECTIONS = 4
"""To one member, unless told otherwise: they are shared, so more would not serve more tasks."""
_BUSY = 32
"""Requests and conversations under way on the least used connection before another is opened."""


class AsyncioPorts:
    """Connections on the running event loop, and for it alone."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._aside: set[asyncio.Task[None]] = set()

    def member(self, number: int | None, host: str, port: int, settings: Settings) -> Lines:
        return Lines(number, host, port, settings, self._loop)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def lock(self) -> TaskLock:
        return TaskLock()

    def later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._loop.call_later(seconds, self._begin, work)

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = self._loop.create_task(work())
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def whole(
        self, work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]]
    ) -> T:
        task = self._loop.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._begin(lambda: _undone(task, undo))
            raise

    async def together(
        self, calls: Sequence[tuple[Lines, Call[T]]], deadline: Deadline
    ) -> list[T | RemudaError]:
        found = await asyncio.gather(
            *(lines.call(call, deadline) for lines, call in calls), return_exceptions=True
        )
        results: list[T | RemudaError] = []
        for item in found:
            if isinstance(item, BaseException) and not isinstance(item, RemudaError):
                raise item
            results.append(item)
        return results


class TaskLock(asyncio.Lock):
    """A lock of tasks that may be waited for until a deadline."""

    async def take(self, deadline: Deadline) -> bool:
        try:
            async with asyncio.timeout(deadline.remaining()):
                return await self.acquire()
        except TimeoutError:
            return False


async def _undone(task: asyncio.Task[T], undo: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    with contextlib.suppress(RemudaError, asyncio.CancelledError):  # then there is nothing to undo
        await undo(await task)


class Lines(Contact):
    """The connections to one member. A request takes the least used one, and opens another one for
    those after it when that is busy."""

    def __init__(
        self,
        number: int | None,
        host: str,
        port: int,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(number, host, port, settings)
        self._loop = loop
        self._limit = settings.max_connections or MAX_CONNECTIONS
        self._lines: list[Line] = []
        self._connecting: asyncio.Task[Line] | None = None

    async def reach(self, deadline: Deadline = NEVER) -> None:
        """Make a connection unless one is there. MemberUnavailable when nobody answers."""
        await self._line(deadline)

    async def call(self, call: Call[T], deadline: Deadline | None = None) -> T:
        """Connect if need be, send one request, wait for its answer and read it: all of that before
        the deadline (``request_timeout`` from now unless told)."""
        if deadline is None:
            deadline = Deadline(self.request_timeout)
        line = await self._line(deadline)
        line.take()
        try:
            if not line.channel.writable:
                await line.until_writable(deadline)
            left, body = deadline.remaining(), call.body
            if OPENTELEMETRY in sys.modules:
                body = traced(call.rpc_type, body)
            reply = await line.channel.request(call.rpc_type, body, call.dbody, left)
        except (ConnectionBroken, QueryTimeout) as error:
            line.retired = True
            raise self.broken(error, deadline.seconds) from error
        finally:
            line.give()
        return call.parse(reply.pbody)

    async def converse(self, deadline: Deadline = NEVER) -> Talk:
        """Begin a conversation on a connection that others use as well."""
        return (await self._line(deadline)).talk()

    def close(self) -> None:
        """Close all connections; requests in progress fail with ConnectionBroken."""
        self.closed = True
        if self._loop.is_closed():
            return  # and its sockets with it
        if self._connecting is not None:
            self._connecting.cancel()
        lines, self._lines = self._lines, []
        for line in lines:
            line.channel.close(
                ConnectionBroken(f"{self.name} has left the cluster")
                if self.retired
                else client_closed(may_have_run=True)
            )

    def retire(self) -> None:
        self.retired = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._lines:
            self._loop.call_later(RETIREMENT, self.close)
        else:
            self.close()

    # --- lines ---

    async def _line(self, deadline: Deadline) -> Line:
        if asyncio.get_running_loop() is not self._loop:
            raise InputError(
                "this client belongs to another event loop",
                hint="Connect in the loop (and in the process, after a fork) that uses it.",
            )
        if self.closed or self.retired:
            self.require_open()
        best: Line | None = None
        for line in self._lines:
            if line.retired or line.channel.closed:
                continue
            if best is None or line.load < best.load:
                best = line
        if best is None:
            return await self._first(deadline)
        if best.load >= _BUSY and len(self._lines) < self._limit and self._connecting is None:
            self._connect()
        return best

    async def _first(self, deadline: Deadline) -> Line:
        """The connection that is being made; a task that waits for it may be cancelled without
        harm, or give up at its deadline."""
        task = self._connecting or self._connect()
        try:
            async with asyncio.timeout(deadline.remaining()):
                return await asyncio.shield(task)
        except TimeoutError:
            raise NotServed(
                f"{self.name} is not reachable: no connection in {deadline.seconds:g} s",
                member=self.member,
            ) from None
        except asyncio.CancelledError:
            if task.cancelled():  # by ``close`` or ``retire``
                self.require_open()
            raise
        except RemudaError as error:  # an object of its own for each who waits
            raise from_report(error.to_report()) from error

    def _connect(self) -> asyncio.Task[Line]:
        task = self._loop.create_task(self._open())
        self._connecting = task
        task.add_done_callback(self._connected)
        return task

    def _connected(self, task: asyncio.Task[Line]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # those who wait have it; nobody need

    async def _open(self) -> Line:
        begin = self.require_reachable()
        line = Line(self.on_silence)
        try:
            channel = await transport.connect(
                self.host,
                self.port,
                ChannelKind.USER,
                self.hello(),
                line.on_request,
                timeout=self.settings.connect_timeout,
                tls=self.security.client_tls(),
                login=self.security.exchange(),
            )
        except (ConnectionRefused, ConnectionBroken, QueryTimeout) as error:
            patience = self.settings.connect_timeout
            raise self.unreachable(begin, error, patience) from error
        try:
            self.require_member(channel.handshake)
        except RemudaError:
            channel.close()
            raise
        self.backoff.succeeded()
        line.opened(channel)
        channel.on_closed.append(lambda _: self._forget(line))
        if self.closed:
            channel.close(client_closed())
            raise client_closed()
        self._lines.append(line)
        return line

    def _forget(self, line: Line) -> None:
        if line in self._lines:
            self._lines.remove(line)
