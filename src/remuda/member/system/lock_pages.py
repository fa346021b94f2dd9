"""Lists of locks that are told page by page."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from remuda.errors import UndefinedObject
from remuda.member.state.lock_rows import LockRow

ROWS: Final = 2_000
"""Of a page. Encoding them takes some ten milliseconds of the loop."""
KEPT: Final = 16
"""Lists; the oldest leaves for a new one."""
IDLE_MAX: Final = 30.0
"""Seconds after which a list is forgotten whose next page nobody has asked for."""


class LockPages:
    """A list is taken at one moment. Locks that come and go while its pages are fetched do not
    change it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds that never go back."""
        self._clock = clock
        self._numbers = count(1)
        self._lists: OrderedDict[int, tuple[float, deque[Sequence[LockRow]]]] = OrderedDict()
        """With the time of the last page; the one that was asked for least recently first."""

    def __len__(self) -> int:
        return len(self._lists)

    def begin(self, rows: Sequence[LockRow]) -> tuple[Sequence[LockRow], int]:
        """The first page, and the number of the list; 0: there is no other page."""
        self.expire()
        if len(rows) <= ROWS:
            return rows, 0
        pages = deque(rows[at : at + ROWS] for at in range(0, len(rows), ROWS))
        while len(self._lists) >= KEPT:
            self._lists.popitem(last=False)
        number = next(self._numbers)
        return pages.popleft(), self._keep(number, pages)

    def next(self, number: int) -> tuple[Sequence[LockRow], int]:
        """Another page. Raises UndefinedObject for a list that was forgotten."""
        known = self._lists.pop(number, None)
        if known is None:
            raise UndefinedObject(
                "this list of locks was forgotten before its last page was read",
                hint="Run the statement again.",
            )
        pages = known[1]
        return pages.popleft(), self._keep(number, pages)

    def _keep(self, number: int, pages: deque[Sequence[LockRow]]) -> int:
        if not pages:
            return 0
        self._lists[number] = self._clock(), pages
        return number

    def expire(self) -> None:
        """Forget the lists that nobody reads any more."""
        before = self._clock() - IDLE_MAX
        while self._lists and next(iter(self._lists.values()))[0] < before:
            self._lists.popitem(last=False)
