"""When a new primary may serve what another member was the primary of (design rule 14)."""

from __future__ import annotations

import asyncio

from remuda.datatypes.view import NOBODY, View
from remuda.member.core import Core

KEY = "takeover"


class Takeover:
    """Holds the member's readiness after a view has made it the primary of further partitions:
    until those who had them are known to be in that view, or their leases are over."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._until = 0.0
        self._lost_until = 0.0
        """As long as that, nobody can tell that those who were dropped have stopped: time does."""
        self._unheard: set[int] = set()
        """Members of the view that had such partitions, and may not know yet that they are gone."""
        self._view = 0
        self._timer: asyncio.TimerHandle | None = None

    def view_installed(self, before: View, view: View, takeover_at: float) -> None:
        """``takeover_at``: monotonic seconds, when the leases of the view before are over."""
        me = self._core.number
        former = {
            old
            for old, new in zip(before.owners, view.owners, strict=True)
            if new == me and old not in (me, NOBODY)
        }
        if not former:
            self._view = view.number if self._unheard else self._view
            return
        self._view = view.number
        self._unheard = former & view.by_number.keys()
        lost = former - view.by_number.keys()
        names = ", ".join(f"member {number}" for number in sorted(former))
        self._core.readiness.hold(
            KEY, f"it takes over partitions of {names}, whose lease may not be over"
        )
        if lost:
            self._lost_until = takeover_at
        self._wait_until(takeover_at)

    def heard(self, number: int, view: int) -> None:
        """A member is known to be in ``view``."""
        if view >= self._view and number in self._unheard:
            self._unheard.discard(number)
            if not self._unheard:
                self._until = self._lost_until
                self._wait_until(self._until)

    def _wait_until(self, time: float) -> None:
        self._until = max(self._until, time)
        if self._timer is not None:
            self._timer.cancel()
        left = self._until - self._core.world.clock.monotonic()
        if left <= 0:
            self._over()
        else:  # a timer may be a little early: it looks again
            self._timer = asyncio.get_running_loop().call_later(left, self._wait_until, self._until)

    def _over(self) -> None:
        self.close()
        self._unheard = set()
        self._core.readiness.release(KEY)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
