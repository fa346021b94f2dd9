"""How long a client waits before it tries again: exponential, with jitter, bounded."""

from __future__ import annotations

import random

_FIRST = 0.05
_CHANCE = random.SystemRandom()
"""Its own: a program that seeds Python's generator, or forks, must not make its clients alike."""
_LONGEST = 5.0
_CONFLICT = 0.002
_LONG = 1.0
"""Seconds: an attempt that failed by waiting longer than this is not repeated for ``_LONGEST``. A
member that hangs must not cost every request a whole connect timeout."""


def pause(attempt: int) -> float:
    """Seconds before the next attempt, after ``attempt`` (from 0) failed. Between half and all of
    an exponentially growing time, so that many clients do not come back at the same moment."""
    bound: float = min(_LONGEST, _FIRST * 2.0**attempt)
    return bound * (0.5 + _CHANCE.random() / 2)


def conflict_pause(attempt: int) -> float:
    """The same before a transaction that met a conflict is run again: shorter, for whoever was in
    the way has finished already."""
    bound: float = min(_LONG, _CONFLICT * 2.0**attempt)
    return bound * (0.5 + _CHANCE.random() / 2)


class Backoff:
    """When a member that could not be reached may be tried again. Until then requests for it fail
    at once. Times are those of one monotonic clock."""

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0

    def failed(self, begin: float, end: float) -> None:
        """An attempt to connect that began then has failed now. Attempts made side by side count
        once."""
        if begin < self.until:
            return
        wait = _LONGEST if end - begin > _LONG else pause(self.failures)
        self.failures = min(self.failures + 1, 16)
        self.until = end + wait

    def succeeded(self) -> None:
        self.failures = 0
        self.until = 0.0
