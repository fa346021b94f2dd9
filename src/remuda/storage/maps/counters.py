"""The counts of one map on one member: requests for entries and when they came last, and the rows
that statements have read.

Requests are those by key (``get``, ``put``, ``remove`` and their kin). The numbers begin at 0 with
the process, and are those of the member that served the request.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class MapCounters:
    """``last_access`` and ``last_update`` are timestamps, 0 at first."""

    gets: int = 0
    """Keys that were asked for, found or not."""
    misses: int = 0
    puts: int = 0
    removes: int = 0
    evictions: int = 0
    """Entries that went because the map was full."""
    idle: int = 0
    """Entries that went because nobody used them."""
    last_access: int = 0
    last_update: int = 0
    looked_up: int = 0
    """Rows that short statements have read. On the event loop."""
    _scanned: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def scan(self, rows: int) -> None:
        """Operators have read rows, before their filters. Any thread."""
        with self._lock:
            self._scanned += rows

    @property
    def rows_read(self) -> int:
        """Rows that statements have read."""
        return self.looked_up + self._scanned

    def get(self, entries: int, misses: int, at: int) -> None:
        self.gets += entries
        self.misses += misses
        self.last_access = at

    def put(self, entries: int, at: int) -> None:
        self.puts += entries
        self.last_update = at

    def remove(self, entries: int, at: int) -> None:
        self.removes += entries
        self.last_update = at

    @property
    def hits(self) -> int:
        return self.gets - self.misses
