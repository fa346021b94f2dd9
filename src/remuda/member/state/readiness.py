"""Whether this member may serve its primary partitions: its lease, and the things that it waits
for.

A member serves while a majority has just heard of it (``cluster.lease``), while the view has as
many members as the operator demands, and while nothing holds it back, such as a promotion that is
not done (design rule 14). Requests that come a little too early wait, and fail after a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from remuda.errors import MemberNotReady, MemberUnavailable, NoLease, TakenOver
from remuda.limits import PARTITIONS

READY_TIMEOUT = 15.0
"""Seconds that a request waits: well above a takeover with the default lease."""
PLACING = frozenset({"takeover", "promotion", "replicated maps"})
"""Reasons that hold a member back because rows that a view has given to it are not all there."""

TAKING = frozenset({"takeover", "promotion"})
"""Reasons that hold back only the partitions that it takes over."""


class Readiness:
    """``now`` is the monotonic clock, ``number`` that of the member, for errors."""

    def __init__(self, now: Callable[[], float], number: Callable[[], int]) -> None:
        self._now = now
        self._number = number
        self.lease_until = float("inf")
        """Monotonic seconds; the one thing that the fast paths look at, with ``holds``."""
        self.holds: dict[str, str] = {}
        """The things that it waits for, by key: the text says them to users. Change it by
        ``hold``."""
        self.taken = frozenset[int]()
        """Partitions that it takes over: they wait, while those that it has had go on."""
        self.placing = False
        """Whether one of ``PLACING`` holds it back: then scans wait, too, at whatever timestamp.
        Any thread may look."""
        self.on_placed: list[Callable[[], None]] = []
        """Called when ``placing`` ends."""
        self._no_lease: Callable[[], str] = lambda: "it has not heard from a majority"
        self.hopeless = False
        """A majority cannot be reached: a member without a lease need not wait for one."""
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def ready(self) -> bool:
        """Whether requests may be served right now."""
        return not self.holds and self._now() < self.lease_until

    @property
    def partly(self) -> bool:
        """Whether requests for the partitions that it has had before may be served right now."""
        return self.holds.keys() <= TAKING and self._now() < self.lease_until

    def serves(self, partition: int) -> bool:
        """Whether this partition may be served right now."""
        if not self.holds:
            return self._now() < self.lease_until
        return partition < PARTITIONS and partition not in self.taken and self.partly

    def take(self, partitions: Collection[int]) -> None:
        """Keys of these partitions wait until this member holds nothing back any more."""
        self.taken |= frozenset(partitions)

    def require_partitions(self, partitions: Iterable[int]) -> None:
        """Raises TakenOver unless all of them may be served right now."""
        if self.holds and not all(self.serves(partition) for partition in partitions):
            reasons = "; ".join(self.holds.values())
            number = self._number()
            raise TakenOver(
                f"member {number} does not serve the key yet: {reasons}", member=str(number)
            )

    @property
    def leased(self) -> bool:
        """Whether a majority has just heard of it, whatever else holds it back."""
        return self._now() < self.lease_until

    def require(self) -> None:
        """Raises MemberNotReady, NoLease."""
        if self.holds:
            reasons = "; ".join(self.holds.values())
            number = self._number()
            raise MemberNotReady(
                f"member {number} does not serve yet: {reasons}", member=str(number)
            )
        self.require_lease()

    def require_lease(self) -> None:
        """Raises NoLease."""
        if self._now() >= self.lease_until:
            number = self._number()
            raise NoLease(
                f"member {number} may not serve: {self._no_lease()}",
                member=str(number),
                hint="Ask a member that still reaches the majority. Mend the network if it is "
                "cut; if the others have crashed, start a new cluster.",
            )

    def hold(self, key: str, reason: str) -> None:
        """Not ready until ``release(key)``."""
        self.holds[key] = reason
        self.placing = self.placing or key in PLACING

    def release(self, key: str) -> None:
        if self.holds.pop(key, None) is None:
            return
        if self.placing and not PLACING & self.holds.keys():
            self.placing = False
            self.taken = frozenset()
            for listener in self.on_placed:
                listener()
        self.changed()

    def explain_lack_by(self, why: Callable[[], str]) -> None:
        """``why`` there is no lease, for errors."""
        self._no_lease = why

    def lease(self, until: float) -> None:
        """The lease ends then, if no further answer comes."""
        longer = until > self.lease_until
        self.lease_until = until
        if longer:
            self.changed()

    def changed(self) -> None:
        """Wake up whoever waits, if it may go on."""
        if self._waiting and self.ready:
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, timeout: float = READY_TIMEOUT) -> None:
        """Return when ready. Raises MemberNotReady, NoLease after ``timeout`` seconds."""
        deadline = self._now() + timeout
        while not self.ready and (left := deadline - self._now()) > 0:
            if self.hopeless:
                self.require_lease()
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await asyncio.wait_for(future, left)
            except TimeoutError:
                break
            finally:
                if future in self._waiting:
                    self._waiting.remove(future)
        self.require()

    def close(self, error: MemberUnavailable) -> None:
        """The member stops: nobody waits any more."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_exception(error)
