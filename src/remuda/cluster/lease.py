"""The right to serve as a primary, as long as a majority has just heard of it (rule 14). Pure.

Times are seconds of the member's own monotonic clock. A lease is counted from the *sending* of a
heartbeat, never from the arrival of its answer: whoever answered did so later, so its idea of when
the lease ends is never earlier than the holder's. Clocks may run at different speeds, by ``drift``
at most (a share, such as 0.01).
"""

from __future__ import annotations

from collections.abc import Iterable

from remuda.cluster.decree import majority


class Lease:
    """Of member ``me`` among the members of one view; a new view takes a new lease."""

    def __init__(self, me: int, members: Iterable[int], duration: float) -> None:
        self.duration = duration
        others = [member for member in members if member != me]
        self._needed = majority(len(others) + 1) - 1
        self._answered: dict[int, float] = dict.fromkeys(others, float("-inf"))

    def on_answer(self, member: int, sent: float) -> None:
        """``member`` has answered the heartbeat that this one sent at ``sent``."""
        if sent > self._answered.get(member, sent):
            self._answered[member] = sent

    def until(self, now: float) -> float:
        """When the lease ends, if no further answer comes."""
        if self._needed == 0:
            return now + self.duration
        latest = sorted(self._answered.values(), reverse=True)
        return latest[self._needed - 1] + self.duration

    def valid(self, now: float) -> bool:
        """Ask before a request is served, and again just before its answer leaves."""
        return now < self.until(now)


def takeover_delay(duration: float, drift: float) -> float:
    """How long after it has learned of a view its members wait before they serve what a member
    owned that the view has dropped: until that member's lease is over on its own clock, too.

    A majority accepted the view before it was decided, and none of these has answered the dropped
    member since (``Agreement.may_answer``), so no lease is counted from a heartbeat sent later.
    """
    return duration * (1 + drift) / (1 - drift)
