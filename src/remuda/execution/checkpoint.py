"""Where long work between two calls of ``advance`` looks whether its query still runs.

A fragment looks for its cancellation between two calls. One call may evaluate a function of Python
for each of ``BATCH_ROWS`` rows, which takes a minute if the function takes a millisecond. Such work
calls ``checkpoint()`` in between.
"""

from __future__ import annotations

import threading
from typing import Protocol


class Cancellable(Protocol):
    def still_wanted(self) -> None:
        """Raises the error with which it was cancelled."""


class _Running(threading.local):
    task: Cancellable | None = None


RUNNING = _Running()
"""``FragmentInstance`` sets it around ``advance`` to the fragment that this thread runs."""


def checkpoint() -> None:
    """Raises the error with which the work of this thread was cancelled. Cheap, yet a call: not for
    each value of a column."""
    task = RUNNING.task
    if task is not None:
        task.still_wanted()
