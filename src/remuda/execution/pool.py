"""The cooperative pool: a few threads that run slices of fragments in turn (design D5).

One queue for all threads, not one for each with stealing between them: a slice takes a hundred
microseconds at least, so the queue is not what threads wait for, and only one queue can let the
queries take turns (decision 0014).
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Protocol

_log = logging.getLogger(__name__)


class Runnable(Protocol):
    @property
    def query(self) -> Hashable:
        """Whose turn it takes."""

    def run_slice(self) -> None:
        """One bounded piece of work; never raises, never blocks."""


class Scheduler(Protocol):
    """Where a fragment asks to be run: the pool, or a hand-cranked one in tests."""

    def submit(self, task: Runnable, inline: bool = False) -> None: ...


class Thread(Protocol):
    def join(self, timeout: float | None = None) -> None: ...


class Workers(Protocol):
    """The part of ``world.Workers`` that the pool needs."""

    def start_thread(self, target: Callable[[], None], name: str) -> Thread: ...


class Rotation:
    """Tasks that wait. Queries take turns, whatever the number of their tasks; within a query it is
    first come, first served. So a query waits for one slice of each other query at most."""

    def __init__(self) -> None:
        self._turns: deque[Hashable] = deque()
        self._tasks: dict[Hashable, deque[Runnable]] = {}

    def add(self, task: Runnable) -> None:
        waiting = self._tasks.get(task.query)
        if waiting is None:
            waiting = self._tasks[task.query] = deque()
            self._turns.append(task.query)
        waiting.append(task)

    def take(self) -> Runnable:
        """The next one; there is one."""
        query = self._turns.popleft()
        waiting = self._tasks[query]
        task = waiting.popleft()
        if waiting:
            self._turns.append(query)
        else:
            del self._tasks[query]
        return task


class Pool:
    """Slices of fragments; a fragment whose slice is over and that has more to do waits again.

    ``submit(task, inline=True)`` runs the slice in the calling thread (a thread hop costs more than
    a short fragment); slices submitted inline from within an inline slice run after it, in the same
    thread, so the stack stays flat. A pool without threads gives every other slice to ``later``,
    which runs it in a turn of its own (the event loop's ``call_soon``); without that, inline too.

    The threads start with the first slice for them. A member has several pools, and most of them
    have nothing to do for long: starting all threads at once would delay its start.
    """

    def __init__(
        self,
        threads: int,
        workers: Workers,
        name: str = "fragments",
        later: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self._rotation = Rotation()
        self._lock = threading.Lock()
        self._tokens: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True for each task in the rotation, False for each thread that is to end."""
        self._inline = threading.local()
        self._later = later
        self._wanted = threads
        self._workers = workers
        self._name = name
        self._threads: list[Thread] = []
        self._closed = False

    def submit(self, task: Runnable, inline: bool = False) -> None:
        if inline or not (self._wanted or self._later):
            self._run_inline(task)
            return
        with self._lock:
            self._rotation.add(task)
            if not self._threads and not self._closed:
                self._threads = [
                    self._workers.start_thread(self._work, f"{self._name}-{number}")
                    for number in range(self._wanted)
                ]
        if self._wanted:
            self._tokens.put(True)
        elif self._later is not None:
            self._later(self._run_next)

    def _run_inline(self, task: Runnable) -> None:
        waiting: deque[Runnable] | None = getattr(self._inline, "waiting", None)
        if waiting is not None:
            waiting.append(task)
            return
        waiting = deque([task])
        self._inline.waiting = waiting
        try:
            while waiting:
                waiting.popleft().run_slice()
        finally:
            self._inline.waiting = None

    def _work(self) -> None:
        while self._tokens.get():
            self._run_next()

    def _run_next(self) -> None:
        with self._lock:
            task = self._rotation.take()
        try:
            task.run_slice()
        except Exception:  # noqa: BLE001 - the boundary
            # A bug, for a task takes care of its own; the thread is there for others, too.
            _log.exception("a slice of query %s", task.query)

    def close(self) -> None:
        """Stop the threads after the slices already queued; call after every query has ended."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._tokens.put(False)
        for thread in self._threads:
            thread.join()
