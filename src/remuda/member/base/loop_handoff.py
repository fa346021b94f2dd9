"""From the pool's threads onto the loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from remuda.member.base.core import attempt


class Hop:
    """Calls made on the loop's own thread run at once; calls from other threads run on the loop
    soon, in order, with one wake-up for a burst of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._waiting: deque[Callable[[], None]] = deque()
        self._woken = False
        self._lock = threading.Lock()

    def __call__(self, action: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread:
            action()
            return
        with self._lock:
            self._waiting.append(action)
            if self._woken:
                return
            self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop is closed: the process is ending
            self._waiting.clear()

    def _drain(self) -> None:
        with self._lock:
            actions = list(self._waiting)
            self._waiting.clear()
            self._woken = False
        for action in actions:
            attempt("a call from another thread", action)
