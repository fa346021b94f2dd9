"""``Deadline``: the moment at which a request must have ended, for every step that waits for it."""

from __future__ import annotations

import time
from math import inf
from typing import Final

from remuda.limits import HEARTBEAT_INTERVAL

GRACE: Final = HEARTBEAT_INTERVAL
"""Seconds after a statement's timeout in which its member may still say that it has ended it. Then
the client gives up: the member may hang."""


_ROUNDED: Final = 0.001
"""Seconds that do not matter, so that messages name the timeout that the user gave."""


class Deadline:
    """A moment on the monotonic clock. Connecting, sending, waiting, paging, closing, and each
    further try take their time from the same deadline."""

    __slots__ = ("_ends", "seconds")

    def __init__(self, seconds: float | None, *, ends: float | None = None) -> None:
        """``seconds`` from now on; None: never. ``ends`` is known where another one is moved."""
        self.seconds = seconds
        if ends is None:
            ends = inf if seconds is None else time.monotonic() + seconds
        self._ends = ends

    def left(self, bound: float) -> float:
        """The seconds that one step may take: at most ``bound``, 0 if the deadline has passed."""
        left = self._ends - time.monotonic()
        if left > bound - _ROUNDED:
            return bound
        return max(0.0, left)

    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None: there is none."""
        return None if self._ends == inf else max(0.0, self._ends - time.monotonic())

    @property
    def passed(self) -> bool:
        return self._ends != inf and time.monotonic() >= self._ends

    def later(self, seconds: float) -> Deadline:
        """One that much later."""
        return Deadline(self.seconds, ends=self._ends + seconds)


NEVER: Final = Deadline(None)
