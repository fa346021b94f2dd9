"""An event loop in a thread of its own, for what a blocking client does beside its requests:
listeners, continuous queries, the invalidation of near caches. One for each client, begun when it
is first needed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from typing import Any, TypeVar

from remuda.client.core.core import Core
from remuda.client.network.contact import client_closed
from remuda.client.network.loop_connections import AsyncioPorts

T = TypeVar("T")

_LOOK = 1.0
"""Seconds between two looks at whether the loop is still there."""


class Background:
    """``core`` is that of the loop: the same cluster, over connections of its own."""

    core: Core

    def __init__(self, front: Core) -> None:
        """Raises MemberUnavailable, AuthenticationFailed, ... as ``connect``."""
        self._front = front
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self.thread = threading.Thread(target=self._work, name="remuda-changes", daemon=True)
        self.thread.start()
        try:
            self.core = self.run(self._connect())
        except BaseException:
            self.close()
            raise

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _connect(self) -> Core:
        front = self._front
        # Timeouts of ``with_timeout`` are for calls; what goes on here does not end with one.
        settings = replace(front.settings, timeout=None)
        core = Core(front.addresses, settings, AsyncioPorts())
        core.clock.value = front.clock.value  # what the client has written was before
        await core.open()
        return core

    @property
    def closed(self) -> bool:
        return self._closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs there; the caller waits."""
        if self._closed:
            work.close()
            raise client_closed()
        if hasattr(self, "core"):
            self.core.clock.value = max(self.core.clock.value, self._front.clock.value)
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while True:
                try:
                    return future.result(_LOOK)
                except (CancelledError, asyncio.CancelledError):
                    raise client_closed() from None
                except NotYet:
                    if future.done():  # it was the work that raised TimeoutError
                        raise
                    if self._closed:
                        raise client_closed() from None
        except BaseException:
            future.cancel()
            raise

    def soon(self, begin: Callable[[], None]) -> None:
        """Call ``begin`` there, without waiting for it."""
        if self._closed:
            raise client_closed()
        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError as problem:  # the loop has just been closed
            raise client_closed() from problem

    def close(self) -> None:
        """End the work that is under way; those that wait for it get ConnectionBroken."""
        if self._closed:
            return
        self._closed = True
        if self._loop.is_closed():
            return

        def end() -> None:
            if hasattr(self, "core"):
                self.core.close()
            self._loop.stop()

        self._loop.call_soon_threadsafe(end)
        if threading.current_thread() is not self.thread:
            self.thread.join(timeout=5.0)


_lock = threading.Lock()


def background(front: Core) -> Background:
    """That of a blocking client."""
    with _lock:
        found = front.shared.background
        if found is None or found.closed:
            if front.closed:
                raise client_closed()
            found = front.shared.background = Background(front)
        assert isinstance(found, Background)
        return found
