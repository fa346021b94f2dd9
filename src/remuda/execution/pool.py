"""The cooperative pool: a few threads that run slices of fragments in turn (design D5)."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol


class Runnable(Protocol):
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


class Pool:
    """First come, first served: a fragment whose slice is over goes to the end of the queue.

    ``submit(task, inline=True)`` runs the slice in the calling thread (a thread hop costs more than
    a short fragment); slices submitted inline from within an inline slice run after it, in the same
    thread, so the stack stays flat. A pool without threads gives every other slice to ``later``,
    which runs it in a turn of its own (the event loop's ``call_soon``); without that, inline too.
    """

    def __init__(
        self,
        threads: int,
        workers: Workers,
        name: str = "fragments",
        later: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self._queue: queue.SimpleQueue[Runnable | None] = queue.SimpleQueue()
        self._inline = threading.local()
        self._later = later
        self._threads = [
            workers.start_thread(self._work, f"{name}-{number}") for number in range(threads)
        ]

    def submit(self, task: Runnable, inline: bool = False) -> None:
        if self._threads and not inline:
            self._queue.put(task)
        elif self._later is not None and not inline:
            self._later(task.run_slice)
        else:
            self._run_inline(task)

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
        while (task := self._queue.get()) is not None:
            task.run_slice()
            task = None

    def close(self) -> None:
        """Stop the threads after the slices already queued; call after every query has ended."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
