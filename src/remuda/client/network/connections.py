"""The blocking ports: a pool of sockets per member, one thread at a time on each."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar

from remuda.client.network.contact import Contact
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.driving import finish
from remuda.client.network.forking import forget_in_children
from remuda.client.network.ports import RETIREMENT, SILENCE, Settings
from remuda.client.network.tracing import OPENTELEMETRY, traced
from remuda.client.requests.requests import Buffers, Call
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    LimitExceeded,
    NotServed,
    QueryTimeout,
    RemudaError,
)
from remuda.rpc.blocking import BlockingChannel
from remuda.rpc.request import Body, Incoming

T = TypeVar("T")
Later: TypeAlias = Callable[[float, Callable[[], Coroutine[Any, Any, None]]], None]

MAX_CONNECTIONS = 256
"""To one member, unless told otherwise: each thread that waits and each cursor that is not read to
its end has one to itself."""
_IDLE_CONNECTIONS_KEPT = 16
_IDLE = 0.1
"""Seconds: a look at a connection costs a system call, so not before every request."""
_GLANCE = 0.001
_LOOK_AGAIN = 0.05
"""Seconds: a connection that was closed, not given back, makes room without a word."""


class BlockingPorts:
    """Sockets in the caller's thread; no coroutine over these ports ever suspends."""

    def member(self, number: int | None, host: str, port: int, settings: Settings) -> Pool:
        return Pool(number, host, port, settings, self.later)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def whole(
        self,
        work: Coroutine[Any, Any, T],
        undo: Callable[[T], Coroutine[Any, Any, None]],  # noqa: ARG002 (threads are not cancelled)
    ) -> T:
        return await work

    def lock(self) -> ThreadLock:
        return ThreadLock()

    def later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        timer = threading.Timer(seconds, lambda: finish(work()))
        timer.daemon = True
        with contextlib.suppress(RuntimeError):  # the interpreter is ending: nobody needs it
            timer.start()

    async def together(
        self, calls: Sequence[tuple[Pool, Call[T]]], deadline: Deadline
    ) -> list[T | RemudaError]:
        return await scatter(calls, deadline)


class ThreadLock:
    """A lock of threads in the form of one of tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        forget_in_children(self)

    def after_fork(self) -> None:
        """In the child: a thread of the parent may have held it."""
        self._lock = threading.Lock()

    async def take(self, deadline: Deadline) -> bool:
        left = deadline.remaining()
        return self._lock.acquire() if left is None else self._lock.acquire(timeout=left)

    def release(self) -> None:
        self._lock.release()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class Pool(Contact):
    """Connections to one member. Any thread may take one, and is alone on it until it gives it
    back.

    At most ``settings.max_connections`` are open; a thread that needs one more waits for one that
    is given back, ``settings.connect_timeout`` seconds at most.
    """

    def __init__(
        self, number: int | None, host: str, port: int, settings: Settings, later: Later
    ) -> None:
        """``later``: of the ports."""
        super().__init__(number, host, port, settings)
        self._later = later
        self._limit = settings.max_connections or MAX_CONNECTIONS
        self._idle: deque[BlockingChannel] = deque()  # append and pop are atomic
        self._open: weakref.WeakSet[BlockingChannel] = weakref.WeakSet()
        self._connecting = 0
        self._waiting = 0
        self._freed = threading.Condition()
        forget_in_children(self)

    def take(self, deadline: Deadline = NEVER) -> BlockingChannel:
        """An idle connection, or a new one. MemberUnavailable when nobody answers; LimitExceeded
        when all are in use and none is given back."""
        while True:
            try:
                channel = self._idle.pop()
            except IndexError:
                return self._another(deadline)
            if not channel.closed and not _ended(channel):
                return channel

    async def reach(self, deadline: Deadline = NEVER) -> None:
        """Make a connection unless an idle one is there. MemberUnavailable when nobody answers."""
        self.give(self.take(deadline))

    def give(self, channel: BlockingChannel) -> None:
        """Take back a connection on which nothing is under way."""
        if self.closed or channel.closed or len(self._idle) >= _IDLE_CONNECTIONS_KEPT:
            channel.close()
        else:
            self._idle.append(channel)
        if self._waiting:
            with self._freed:
                self._freed.notify()

    def drop_idle(self) -> None:
        """Close the idle connections: after one broke, the others are suspect as well."""
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:  # another thread took the last one
                return

    def close(self) -> None:
        """A thread that waits on a connection meets its end, and the member ends its work there."""
        self._shut()
        for channel in list(self._open):
            channel.interrupt()

    def _shut(self) -> None:
        self.closed = True
        self.drop_idle()

    def retire(self) -> None:
        self.retired = True
        self._shut()
        if self._open:
            self._later(RETIREMENT, self._interrupt)

    async def _interrupt(self) -> None:
        """Wake the threads that still wait for answers."""
        for channel in list(self._open):
            channel.interrupt()

    def after_fork(self) -> None:
        """In the child: its connections are the parent's. New ones are made when needed."""
        self._freed = threading.Condition()
        self._connecting = self._waiting = 0
        for channel in list(self._open):
            channel.close("given up: it belongs to the process that this one was forked from")
        self._open.clear()
        self._idle.clear()

    async def call(self, call: Call[T], deadline: Deadline | None = None) -> T:
        """Connect if need be, send one request, wait for its answer and read it: all of that before
        the deadline (``request_timeout`` from now unless told)."""
        if deadline is None:
            deadline = Deadline(self.request_timeout)
        channel = self.take(deadline)
        try:
            left, body = deadline.remaining(), call.body
            if OPENTELEMETRY in sys.modules:
                body = traced(call.rpc_type, body)
            reply = channel.request(call.rpc_type, body, call.dbody, timeout=left)
        except (ConnectionBroken, QueryTimeout) as error:
            channel.close()
            raise self.broken(error, deadline.seconds) from error
        except RemudaError:
            self.give(channel)
            raise
        except BaseException:  # an interrupt: the answer may still come
            channel.close()
            raise
        self.give(channel)
        return call.parse(reply.pbody)

    async def converse(self, deadline: Deadline = NEVER) -> Talk:
        """A connection of its own for several messages."""
        return Talk(self, self.take(deadline))

    def broken(self, error: RemudaError, timeout: float | None = None) -> RemudaError:
        """The error of a lost connection or an unanswered request, naming the member."""
        self.drop_idle()
        return super().broken(error, timeout)

    def _another(self, deadline: Deadline) -> BlockingChannel:
        """A new connection, or one that is given back while no more may be opened."""
        patience = Deadline(deadline.left(self.settings.connect_timeout))
        with self._freed:
            while len(self._open) + self._connecting >= self._limit and self._full():
                if patience.passed:
                    raise LimitExceeded(
                        f"all {self._limit} connections to {self.name} are in use",
                        hint="Close cursors that are not read to their end, or raise "
                        "max_connections of connect().",
                    )
                self._waiting += 1
                try:
                    self._freed.wait(patience.left(_LOOK_AGAIN))
                finally:
                    self._waiting -= 1
                if self._idle:
                    with contextlib.suppress(IndexError):
                        channel = self._idle.pop()
                        if not channel.closed:
                            return channel
            self._connecting += 1
        try:
            return self._connect(patience)
        finally:
            with self._freed:
                self._connecting -= 1

    def _full(self) -> bool:
        for channel in list(self._open):
            if channel.closed:
                self._open.discard(channel)
        return len(self._open) + self._connecting >= self._limit

    def _connect(self, deadline: Deadline) -> BlockingChannel:
        begin = self.require_reachable()
        patience = deadline.left(self.settings.connect_timeout)
        try:
            channel = BlockingChannel(
                self.host,
                self.port,
                self.hello(),
                timeout=patience,
                tls=self.security.client_tls(),
                login=self.security.exchange(),
            )
        except (ConnectionRefused, ConnectionBroken, QueryTimeout) as error:
            raise self.unreachable(begin, error, patience) from error
        try:
            self.require_member(channel.handshake)
        except RemudaError:
            channel.close()
            raise
        channel.watch(SILENCE, self.on_silence)
        self.backoff.succeeded()
        self._open.add(channel)
        return channel


def _ended(channel: BlockingChannel) -> bool:
    """Whether a connection that was idle for a while has been closed by its member. A request that
    is sent on it now would be lost, and nobody could tell whether it was carried out."""
    if time.monotonic() - channel.heard < _IDLE or not channel.ended():
        return False
    channel.close()
    return True


class Talk:
    """A conversation that has a connection to itself."""

    __slots__ = ("_channel", "_pool")

    def __init__(self, pool: Pool, channel: BlockingChannel) -> None:
        self._pool = pool
        self._channel = channel

    async def send(
        self, rpc_type: int, body: Body, dbody: Buffers = (), deadline: Deadline = NEVER
    ) -> int:
        left = deadline.remaining()
        ends = None if left is None else time.monotonic() + left
        return self._channel.send_request(rpc_type, body, dbody, ends=ends)

    async def receive(self, timeout: float | None) -> Incoming:
        return self._channel.receive(timeout)

    def acknowledge(self, incoming: Incoming) -> None:
        self._channel.acknowledge(incoming)

    def release(self) -> None:
        """The result is complete, so a connection that breaks now, or a goodbye, harms nobody."""
        with contextlib.suppress(ConnectionBroken, NotServed):
            self._channel.flush()
        self._pool.give(self._channel)

    def abandon(self) -> None:
        """A closed connection is a cancel, too."""
        self._channel.close()


async def scatter(
    calls: Sequence[tuple[Pool, Call[T]]], deadline: Deadline
) -> list[T | RemudaError]:
    """Several requests at once, on a connection each; answers or errors in the order of ``calls``.

    They come after every answer has been read, so that no request is still under way when the
    caller sees them.
    """
    if len(calls) == 1:
        ((pool, call),) = calls
        try:
            answer: T = await pool.call(call, deadline)
            return [answer]
        except RemudaError as error:
            return [error]
    found: dict[int, T | RemudaError] = {}
    under_way: dict[int, BlockingChannel] = {}
    try:
        for place, (pool, call) in enumerate(calls):
            try:
                under_way[place] = _send(pool, call, deadline)
            except RemudaError as error:
                found[place] = error
        while under_way:
            place = next(iter(under_way))
            pool, call = calls[place]
            try:
                found[place] = _answer(pool, call, under_way[place], deadline)
            except RemudaError as error:
                found[place] = error
            del under_way[place]
    finally:
        for channel in under_way.values():  # after an interrupt
            channel.close()
    return [found[place] for place in range(len(calls))]


def _send(pool: Pool, call: Call[T], deadline: Deadline) -> BlockingChannel:
    channel = pool.take(deadline)
    try:
        left = deadline.remaining()
        ends = None if left is None else time.monotonic() + left
        body = call.body
        if OPENTELEMETRY in sys.modules:
            body = traced(call.rpc_type, body)
        channel.send_request(call.rpc_type, body, call.dbody, ends=ends)
    except (ConnectionBroken, QueryTimeout) as error:
        raise pool.broken(error, deadline.seconds) from error
    except BaseException:
        channel.close()
        raise
    return channel


def _answer(pool: Pool, call: Call[T], channel: BlockingChannel, deadline: Deadline) -> T:
    try:
        # What has arrived while other answers were read counts, however late it is now.
        left = deadline.remaining()
        incoming = channel.receive(None if left is None else max(left, _GLANCE))
    except NotServed:  # it has said goodbye
        channel.close()
        raise
    except RemudaError as error:
        channel.close()
        raise pool.broken(error, deadline.seconds) from error
    pool.give(channel)
    if incoming.error is not None:
        raise incoming.error
    return call.parse(incoming.pbody)
