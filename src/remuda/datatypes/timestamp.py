"""Hybrid logical timestamps: one order for reads, commits and cuts (design D4).

A timestamp is a signed 64-bit integer: microseconds since 1970 shifted left by ``LOGICAL_BITS``,
plus a logical counter in the low bits. Source: Kulkarni et al., "Logical Physical Clocks", 2014.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

LOGICAL_BITS: Final = 10
FOREVER: Final = 2**63 - 1
"""The ``end`` of a version that nobody has replaced."""
EXPIRY_MARK: Final = (1 << LOGICAL_BITS) - 1
"""The logical part of the ends that nobody has made: of versions that end by themselves when their
time is over, and of ``FOREVER``. No clock gives out a timestamp with it, nor with the next."""
HANDOVER_MARK: Final = EXPIRY_MARK - 1
"""The logical part of the timestamps at which partitions go from member to member: versions that
end or begin there do so because of the move, and nothing has happened to their rows."""
BEGINNING: Final = 0
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def from_micros(micros: int) -> int:
    return micros << LOGICAL_BITS


def to_micros(timestamp: int) -> int:
    return timestamp >> LOGICAL_BITS


def moment(micros: int) -> dt.datetime:
    """The moment so many microseconds after the begin of 1970, in UTC."""
    return _EPOCH + dt.timedelta(microseconds=micros)


def expiry(begin: int, micros: int) -> int:
    """The end of a version that lives for ``micros`` from its begin, if nothing ends it before; 0:
    for ever."""
    return (begin | EXPIRY_MARK) + (micros << LOGICAL_BITS) if micros else FOREVER


def ended_by_write(end: int) -> bool:
    """Whether something has ended the version; False: it ends by itself, then or never."""
    return end & EXPIRY_MARK != EXPIRY_MARK


def handover(timestamp: int) -> int:
    """A timestamp at or above one that a clock gave out, and below the next one, that shows what
    it is."""
    return timestamp & ~EXPIRY_MARK | HANDOVER_MARK


class HybridClock:
    """A monotonic hybrid clock. Physical time is an argument: the clock itself never looks."""

    __slots__ = ("last",)

    def __init__(self, last: int = BEGINNING) -> None:
        self.last = last

    def next(self, now_micros: int) -> int:
        """A timestamp above every one given or observed before."""
        physical = now_micros << LOGICAL_BITS
        last = self.last
        if physical <= last:
            physical = last + 1
            if physical & EXPIRY_MARK >= HANDOVER_MARK:
                physical = (physical | EXPIRY_MARK) + 1
        self.last = physical
        return physical

    def observe(self, timestamp: int) -> None:
        """Advance past a timestamp that another process gave out."""
        self.last = max(self.last, timestamp)
