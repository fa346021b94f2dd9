"""What queries of earlier views may still read here of partitions that a view has given to other
members (design rule 20)."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.timestamp import FOREVER
from remuda.errors import ViewChanged

KEPT: Final = 100
"""Views that are remembered."""


class GivenAway:
    """The rows stay, with their history, for those who read below the time of the handover. But a
    write that was prepared here and not decided yet, is decided elsewhere: nobody here would see
    it. So who reads at or above its prepare timestamp must ask again.

    The loop calls ``note``; any thread calls ``check``, which reads what is replaced as a whole.
    """

    def __init__(self) -> None:
        self._lows: tuple[tuple[int, int], ...] = ()
        """By number of the view that came: the lowest prepare timestamp of what was undecided."""

    def note(self, view: int, low: int) -> None:
        """``view`` gives partitions to others, in which nothing below ``low`` is undecided."""
        if low != FOREVER:
            self._lows = (*self._lows[1 - KEPT :], (view, low))

    def check(self, view: int, at: int) -> None:
        """For a query of ``view`` that is about to read at ``at``. Raises ViewChanged."""
        for number, low in self._lows:
            if number > view and low <= at:
                raise ViewChanged(
                    f"view {number} has given partitions to other members, in which a write was "
                    "not decided yet",
                    hint="Ask again: the new view is known within a moment.",
                )
