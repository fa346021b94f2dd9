"""``Listener``: the events of an entry listener or a continuous query, for a blocking program."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Self, TypeVar

from remuda.client.asynchronous.listener import Listener as AsyncListener
from remuda.client.blocking.background import Background, background
from remuda.client.core.core import Core
from remuda.errors import ConnectionBroken, InputError, RemudaError

log = logging.getLogger(__name__)

E = TypeVar("E")
_TOGETHER = 256
"""Events that are fetched from the other thread at once."""


class Listener(Generic[E]):
    """Changes as they are committed, those of one key in their order. Made by ``Map.listen`` and
    ``Client.watch``.

        with flights.listen() as changes:
            for event in changes:
                print(event.kind, event.key, event.value)

        listener = flights.listen(on_change)   # called in a thread of its own, event by event
        listener.stop()

    It goes on when members are lost and partitions move: each change comes exactly once. A listener
    that reads too slowly, or cannot reach the cluster, for longer than members keep changes (ten
    seconds) gets an event GAP in place of those that it missed. It ends with an error when that is
    for good: the map was dropped, the right to read it was taken away, an expression of its
    condition failed. A callback that raises is logged, and called for the next event.
    """

    def __init__(
        self,
        core: Core,
        begin: Callable[[Core], Coroutine[Any, Any, AsyncListener[E]]],
        callback: Callable[[E], object] | None,
    ) -> None:
        if callback is not None and not callable(callback):
            raise InputError(f"a listener calls a function, found {type(callback).__name__}")
        self._background: Background = background(core)
        self._listener = self._background.run(begin(self._background.core))
        self._ready: deque[E] = deque()
        self._taking = threading.Lock()
        self._stopped = False
        self._error: RemudaError | None = None
        self._thread: threading.Thread | None = None
        if callback is not None:
            self._thread = threading.Thread(
                target=self._call, args=(callback,), name="remuda-listener", daemon=True
            )
            self._thread.start()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> E:
        """The next event; waits for it. Raises what has ended the listener."""
        if self._thread is not None and threading.current_thread() is not self._thread:
            raise InputError("the events of this listener go to its callback")
        with self._taking:
            if not self._ready:
                self._ready.extend(self._take())
            return self._ready.popleft()

    def _take(self) -> list[E]:
        if self._stopped:
            raise StopIteration
        try:
            return self._background.run(_taken(self._listener))
        except _Stopped:
            raise StopIteration from None
        except ConnectionBroken:
            if self._stopped:
                raise StopIteration from None
            raise

    def _call(self, callback: Callable[[E], object]) -> None:
        try:
            for event in self:
                if self._stopped:
                    return
                try:
                    callback(event)
                except Exception:  # the boundary: whatever the application's function raises
                    log.exception("a callback of a listener failed")
        except RemudaError as error:
            self._error = error
            if not self._background.closed:
                log.error("a listener has ended: %s", error.message)

    @property
    def error(self) -> RemudaError | None:
        """The error that ended a listener with a callback; None while it runs."""
        return self._error

    @property
    def position(self) -> int:
        """A hybrid timestamp: every change that was committed at or below it has arrived here."""
        return self._listener.position

    def stop(self) -> None:
        """End it; events that were not taken are dropped. Stopping twice does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self._ready.clear()
        if not self._background.closed:
            self._background.run(self._listener.stop())
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Stopped(Exception):
    """StopAsyncIteration cannot leave a coroutine."""


async def _taken(listener: AsyncListener[E]) -> list[E]:
    try:
        return await listener.take(_TOGETHER)
    except StopAsyncIteration:
        raise _Stopped from None
