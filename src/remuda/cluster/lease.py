"""The right to serve as a primary, as long as a majority has just heard of it (rule 14). Pure.

Times are seconds of the member's own monotonic clock. A lease is counted from the *sending* of a
heartbeat, never from the arrival of its answer. The answering member heard it later, so by its
clock the lease never ends earlier than by the holder's. Clocks may run at different speeds, by
``drift`` at most (a share, such as 0.01).
"""

from __future__ import annotations

from collections.abc import Iterable

from remuda.cluster.decree import majority


class Lease:
    """Of member ``me`` among the members of one view. A new view takes a new lease; until that is
    granted, ``before``, the end of the old one, holds: a later drop of the member waits longer."""

    def __init__(
        self, me: int, members: Iterable[int], duration: float, before: float = float("-inf")
    ) -> None:
        self.duration = duration
        self._before = before
        others = [member for member in members if member != me]
        self._needed = majority(len(others) + 1) - 1
        self._answered: dict[int, float] = dict.fromkeys(others, float("-inf"))

    def on_answer(self, member: int, sent: float) -> None:
        """``member`` has answered the heartbeat that this one sent at ``sent``."""
        if sent > self._answered.get(member, sent):
            self._answered[member] = sent

    @property
    def granted(self) -> bool:
        """Whether a majority has answered in this view yet."""
        return sum(sent > float("-inf") for sent in self._answered.values()) >= self._needed

    @property
    def unanswered(self) -> frozenset[int]:
        """Other members that have answered no heartbeat of this view yet."""
        return frozenset(n for n, sent in self._answered.items() if sent == float("-inf"))

    def until(self, now: float) -> float:
        """When the lease ends, if no further answer comes."""
        if self._needed == 0:
            return now + self.duration
        latest = sorted(self._answered.values(), reverse=True)
        return max(self._before, latest[self._needed - 1] + self.duration)

    def valid(self, now: float) -> bool:
        """Ask before a request is served, and again just before its answer leaves."""
        return now < self.until(now)


def takeover_delay(duration: float, drift: float) -> float:
    """How long after it has learned of a view its members wait before they serve what a member
    owned that the view has dropped: until that member's lease is over on its own clock, too.

    A majority accepted the view before it was decided, and none of these has answered a heartbeat
    of the old view since (``Agreement.answers``), so no lease is counted from one sent later.
    """
    return duration * (1 + drift) / (1 - drift)
