"""The end of the root fragment: pages of rows on their way to the user's cursor."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from remuda.errors import OutOfMemory
from remuda.execution.memory import MemoryAccount, piece_of
from remuda.limits import PAGES_IN_FLIGHT


class RootSink:
    """A bounded queue of pages between a fragment and the member that pulls them.

    The fragment asks ``wants_rows`` before it produces, and puts pages of at most ``page_rows``
    rows of engine-form columns (canonical types of the plan's output). The member takes
    pages; taking one is the demand that schedules the fragment again. ``on_page`` is called from
    the fragment's thread when the queue was empty before and when the end arrives: hop to the loop.
    """

    def __init__(
        self,
        page_rows: int,
        on_page: Callable[[], None] | None = None,
        pages_in_flight: int = PAGES_IN_FLIGHT,
    ) -> None:
        self.page_rows = page_rows
        self._on_page = on_page
        self.finished = False
        """True after the last page was put: nothing follows what is queued."""
        self._pages_in_flight = pages_in_flight
        self._pages: deque[pa.RecordBatch] = deque()
        self._lock = threading.Lock()
        self._on_demand: Callable[[], None] | None = None
        self._memory: MemoryAccount | None = None
        self._cleared = False

    def tell(self, on_page: Callable[[], None]) -> None:
        """``on_page``: see the class."""
        self._on_page = on_page

    def attach(self, on_demand: Callable[[], None], memory: MemoryAccount | None = None) -> None:
        """The fragment's wake-up, set when the fragment is built, and the account that the pages
        count in while they wait here."""
        self._on_demand = on_demand
        self._memory = memory

    def wants_rows(self) -> bool:
        """False as well when nobody wants any: the fragment, which is cancelled then, would go on
        within one ``advance`` until its input ends, since dropped pages never fill the queue."""
        return not self._cleared and len(self._pages) < self._pages_in_flight

    @property
    def page_size(self) -> int:
        """Bytes that a page has at most, if it has more than one row."""
        return sys.maxsize if self._memory is None else piece_of(self._memory.share)

    def put(self, page: pa.RecordBatch | None, last: bool) -> bool:
        """Called by the Root operator. ``page`` is None when the end brings no rows. False: there
        is no memory for it now, and there will be when a page before it is taken, which schedules
        the fragment. Raises OutOfMemory when none is before it."""
        if page is not None and not self._reserved(page):
            return False
        with self._lock:
            was_empty = not self._pages
            unwanted = self._cleared
            if page is not None and not unwanted:
                self._pages.append(page)
            self.finished = self.finished or last
            if last:
                self._on_demand = None
            on_page = self._on_page
        if unwanted:
            self._release(page)
        if on_page is not None and (was_empty or last):
            on_page()
        return True

    def _reserved(self, page: pa.RecordBatch) -> bool:
        memory = self._memory
        if memory is None:
            return True
        try:
            memory.reserve(page.nbytes, "the pages of the result")
        except OutOfMemory:
            with self._lock:
                if self._pages:
                    return False
            # What has been taken meanwhile has given its bytes back.
            memory.reserve(page.nbytes, "the pages of the result")
        return True

    def take(self) -> pa.RecordBatch | None:
        """The next page, or None if there is none now (or no more: see ``exhausted``)."""
        with self._lock:
            page = self._pages.popleft() if self._pages else None
            demand = None if page is None else self._on_demand
            self._release(page)
        if demand is not None:
            demand()
        return page

    def detach(self) -> None:
        """Nobody takes pages any more. The remains of a query must not hang together in a circle:
        the collector of cycles seldom runs, and members would grow until it does."""
        with self._lock:
            self._on_page = self._on_demand = None

    @property
    def exhausted(self) -> bool:
        """Every page has been taken and no more will come."""
        with self._lock:
            return self.finished and not self._pages

    def clear(self) -> None:
        """Drop the queued pages, and those that still come (cancel)."""
        with self._lock:
            pages = list(self._pages)
            self._pages.clear()
            self._cleared = True
            self._on_demand = None
        for page in pages:
            self._release(page)

    def _release(self, page: pa.RecordBatch | None) -> None:
        if page is not None and self._memory is not None:
            self._memory.release(page.nbytes)
