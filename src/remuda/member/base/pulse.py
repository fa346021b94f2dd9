"""Rest for periodic work of an idle member: one timer for all of it, instead of one for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

REST_MAX: Final = 1.0
"""Seconds; a member with a view has a beat at least as often."""


class Pulse:
    """Work that looks for something to do rests here while there is nothing.

    It goes on with the next beat, which the heartbeats of the member give, or at once when
    something begins that it should look after. So it may miss that something has begun: it looks a
    moment later then. Only the event loop uses it."""

    def __init__(self) -> None:
        self.resting = False
        """Whether somebody rests until something begins: only then is ``wake`` worth a call."""
        self._resting: list[asyncio.Future[bool]] = []
        self._waiting: list[asyncio.Future[bool]] = []
        self._latest: asyncio.TimerHandle | None = None
        self._listeners: list[Callable[[], None]] = []

    def on_beat(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` with each beat."""
        self._listeners.append(listener)

    async def rest(self) -> bool:
        """Until the next beat (False) or until something begins (True)."""
        self.resting = True
        return await self._until(self._resting)

    async def next_beat(self) -> None:
        """Until then, whatever begins."""
        await self._until(self._waiting)

    async def _until(self, waiting: list[asyncio.Future[bool]]) -> bool:
        loop = asyncio.get_running_loop()
        if self._latest is None:
            self._latest = loop.call_later(REST_MAX, self.beat)
        over: asyncio.Future[bool] = loop.create_future()
        waiting.append(over)
        return await over

    def beat(self) -> None:
        """A moment in which the member is awake anyway."""
        if self._latest is not None:
            self._latest.cancel()
            self._latest = None
        self.resting = False
        for over in (*self._resting, *self._waiting):
            _end(over, something_begins=False)
        self._resting.clear()
        self._waiting.clear()
        for listener in self._listeners:
            listener()

    def wake(self) -> None:
        """Something begins that periodic work looks after."""
        self.resting = False
        for over in self._resting:
            _end(over, something_begins=True)
        self._resting.clear()


def _end(over: asyncio.Future[bool], *, something_begins: bool) -> None:
    if not over.done():  # cancelled
        over.set_result(something_begins)
