"""A deterministic event loop: virtual time, and one queue of callbacks per simulated process.

Each process (``Node``) has its callbacks run in the order in which it scheduled them, as asyncio
promises; which process goes next is chance, from one seed. Time stands still while there is
something to do, and then jumps to the next timer. A dead node's callbacks are dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import warnings
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any

CURRENT: ContextVar[Node] = ContextVar("CURRENT")
STEPS_MAX = 20_000_000
"""Callbacks of one run: more is a loop that does not end."""


class Stuck(AssertionError):
    """Nothing will ever happen again, or things happen for ever."""


class Node:
    """One simulated process: members, clients, and the director of the run."""

    def __init__(self, name: str, *, member: bool = False) -> None:
        self.name = name
        self.member = member
        self.alive = True
        self.ready: deque[asyncio.Handle] = deque()
        self.queued = False
        self.frozen = False
        """As after SIGSTOP: nothing of it runs, and what comes for it waits."""
        context = copy_context()
        context.run(CURRENT.set, self)
        self.context: Context = context

    def __repr__(self) -> str:
        return self.name


class SimulatedLoop(asyncio.AbstractEventLoop):
    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 1000.0
        self.steps = 0
        self.closed = False
        self.network: Any = None
        self.tasks: list[tuple[Node, asyncio.Task[Any]]] = []
        self.problems: list[str] = []
        """Exceptions that nobody caught."""
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._counter = 0
        self._busy: list[Node] = []
        self._kept = 1000

    # ---- what asyncio asks of a loop ----

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.closed

    def is_closed(self) -> bool:
        return self.closed

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro, *, name=None, context=None) -> asyncio.Task[Any]:
        # Kept until it is done: a task of a dead node must not be collected (and so run its
        # ``finally`` blocks) at a moment that depends on the garbage collector.
        if len(self.tasks) > self._kept:
            self.tasks = [entry for entry in self.tasks if not entry[1].done()]
            self._kept = 2 * len(self.tasks) + 1000
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self.tasks.append((CURRENT.get() if context is None else context[CURRENT], task))
        return task

    def call_soon(self, callback, *args, context: Context | None = None) -> asyncio.Handle:
        handle = events.Handle(callback, args, self, context)
        if not self.closed:
            self._enqueue(handle)
        return handle

    call_soon_threadsafe = call_soon

    def _enqueue(self, handle: asyncio.Handle) -> None:
        node: Node = handle._context[CURRENT]
        node.ready.append(handle)
        self._queue(node)

    def _queue(self, node: Node) -> None:
        if node.ready and not node.queued and not node.frozen:
            node.queued = True
            self._busy.append(node)

    def thaw(self, node: Node) -> None:
        """A node that was frozen goes on."""
        node.frozen = False
        self._queue(node)

    def call_later(self, delay, callback, *args, context=None) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(self, when, callback, *args, context=None) -> asyncio.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True
        if not self.closed:
            self._counter += 1
            heapq.heappush(self._timers, (when, self._counter, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is skipped when its time comes."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        node = CURRENT.get(None)
        if self.closed or (node is not None and not node.alive):
            return
        error = context.get("exception")
        self.problems.append(f"{node}: {context.get('message')}: {error!r}")

    async def create_server(self, protocol_factory, host=None, port=None, *, sock=None, **_):
        return self.network.serve(sock, protocol_factory)

    async def create_connection(self, protocol_factory, host=None, port=None, **_):
        return await self.network.connect(protocol_factory, host, port)

    # ---- running ----

    def passes(self, seconds: float) -> None:
        """Time that work takes."""
        self.now += seconds

    def run(self, until: Callable[[], bool], limit: float) -> bool:
        """Run callbacks until ``until()``; False when ``limit`` seconds pass before."""
        deadline = self.now + limit
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while not until():
                if not self._step(deadline):
                    return False
            return True
        finally:
            events._set_running_loop(before)

    def complete(self, work: Awaitable[Any], node: Node, limit: float = 1000.0) -> Any:
        """Run ``work`` as a task of ``node`` and give what it gives."""
        task = node.context.run(self.create_task, work)  # type: ignore[arg-type]
        if not self.run(task.done, limit):
            raise Stuck(f"{task.get_coro().__qualname__} did not end within {limit:g} s")
        return task.result()

    def rest(self, seconds: float) -> None:
        """Let so much time pass."""
        self.run(lambda: False, seconds)

    def _step(self, deadline: float) -> bool:
        busy = self._busy
        timers = self._timers
        while timers and (timers[0][0] <= self.now or not busy):
            when, _, handle = timers[0]
            if when > deadline and when > self.now:
                if busy:
                    break
                self.now = deadline
                return False
            heapq.heappop(timers)
            if handle._cancelled or not handle._context[CURRENT].alive:
                continue
            self.now = max(self.now, when)
            self._enqueue(handle)
        if not busy:
            if timers:
                return True
            self.now = deadline
            return False
        if self.now > deadline + 1.0:
            return False
        index = self.random.randrange(len(busy)) if len(busy) > 1 else 0
        node = busy[index]
        if not node.alive:
            node.ready.clear()
        if node.ready and not node.frozen:
            handle = node.ready.popleft()
            if not handle._cancelled:
                self.steps += 1
                if self.steps > STEPS_MAX:
                    raise Stuck(f"{STEPS_MAX} steps and no end")
                self.now += 2e-6
                handle._run()
        if not node.ready or node.frozen:
            node.queued = False
            busy[index] = busy[-1]
            busy.pop()
        return True

    def pending(self, node: Node) -> list[str]:
        """The coroutines that are not done on a node."""
        return sorted(
            task.get_coro().__qualname__
            for owner, task in self.tasks
            if owner is node and not task.done()
        )

    def close(self) -> None:
        """Nothing runs any more; what is left is let go."""
        self.closed = True
        # What still waits is closed here and now: the collector would do it during a later run.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of coroutines that never began
            for owner, task in self.tasks:
                task._log_destroy_pending = False
                if not task.done():
                    with contextlib.suppress(BaseException):
                        owner.context.run(task.get_coro().close)
        self._timers.clear()
        self._busy.clear()
