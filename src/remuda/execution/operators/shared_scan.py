"""A scan of one map by several instances of a fragment."""

from __future__ import annotations

import threading
from collections.abc import Callable

from remuda.execution.context import TableCursor


class SharedScan:
    """An instance that is free takes the next chunk.

    All read the chunks that the first of them pinned: pinned by each of them, they could differ,
    for the member seals and merges chunks in between. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pinned: TableCursor | None = None

    def open(self, scan: Callable[[], TableCursor]) -> TableCursor:
        """A cursor for one instance; together they give every row once."""
        with self._lock:
            if self._pinned is None:
                self._pinned = scan()
            return self._pinned.share()
