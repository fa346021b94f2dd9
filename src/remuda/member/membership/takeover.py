"""When a new primary may serve what another member was the primary of (design rule 14), and from
which timestamp on (rule 16): above everything that a lost primary can have served, which was at
most what its clock was when the others dropped it, plus its lease.
"""

from __future__ import annotations

import asyncio

from remuda.cluster.lease import takeover_delay
from remuda.datatypes.timestamp import from_micros
from remuda.datatypes.view import NOBODY, View
from remuda.limits import CLOCK_DRIFT
from remuda.member.base.core import Core

KEY = "takeover"


class Takeover:
    """Holds the member's readiness after a view has made it the primary of further partitions:
    until those who had them are known to be in that view, or their leases are over."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._until = 0.0
        self._lost_until = 0.0
        """As long as that, nobody can tell that those who were dropped have stopped: time does."""
        self._ceiling = 0
        """No lost primary has served a timestamp above it. The clock goes there at the end: others
        would take it for the time otherwise, and add a lease of their own."""
        self._ceiling_unheard = 0
        """The same of those who are in the view, and were not heard before their leases ended."""
        self._unheard: set[int] = set()
        """Members of the view that had such partitions, and may not know yet that they are gone: of
        this view, and of views before it in which they were not heard."""
        self._view = 0
        self._timer: asyncio.TimerHandle | None = None

    def view_installed(
        self, before: View, view: View, takeover_at: float, dropped_until: float
    ) -> None:
        """``takeover_at``: monotonic seconds, when the leases of the view before are over;
        ``dropped_until``: those of members that ``view`` has dropped."""
        me = self._core.number
        gained = {p for p in view.partitions_of(me) if before.owners[p] != me}
        former = {before.owners[p] for p in gained}
        if former and view.number > before.number + 1:
            former |= view.by_number.keys() - {me}  # in a view between, any of them may have been
            gained.update(view.partitions_of(me))
        waited = self._unheard | former
        if not waited:
            return
        self._view = view.number
        self._unheard = waited & view.by_number.keys()
        lost = waited - view.by_number.keys()
        lease = takeover_delay(self._core.config.lease_seconds, CLOCK_DRIFT)
        ceiling = self._core.clock.last + from_micros(int(lease * 1_000_000))
        self._ceiling_unheard = max(self._ceiling_unheard, ceiling)
        if lost:
            over = takeover_at if NOBODY in lost else dropped_until
            self._lost_until = max(self._lost_until, over)
            self._ceiling = max(self._ceiling, ceiling)
        if former:
            self._core.readiness.take(gained)
            names = ", ".join(
                f"member {number}" if number != NOBODY else "members that are lost"
                for number in sorted(former)
            )
            self._core.readiness.hold(
                KEY, f"it takes over partitions of {names}, whose lease may not be over"
            )
        if former or lost:
            self._wait_until(takeover_at if self._unheard else self._lost_until)

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
        self._core.clock.observe(self._ceiling_unheard if self._unheard else self._ceiling)
        self._unheard = set()
        self._ceiling_unheard = 0
        self._core.readiness.release(KEY)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
