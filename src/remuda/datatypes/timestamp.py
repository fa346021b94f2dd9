"""Hybrid logical timestamps: one order for reads, commits and cuts (design D4).

A timestamp is a signed 64-bit integer: microseconds since 1970 shifted left by ``LOGICAL_BITS``,
plus a logical counter in the low bits. Source: Kulkarni et al., "Logical Physical Clocks", 2014.
"""

from __future__ import annotations

from typing import Final

LOGICAL_BITS: Final = 10
FOREVER: Final = 2**63 - 1
"""The ``end`` of a version that nobody has replaced."""
BEGINNING: Final = 0


def from_micros(micros: int) -> int:
    return micros << LOGICAL_BITS


def to_micros(timestamp: int) -> int:
    return timestamp >> LOGICAL_BITS


class HybridClock:
    """A monotonic hybrid clock. Physical time is an argument: the clock itself never looks."""

    __slots__ = ("last",)

    def __init__(self, last: int = BEGINNING) -> None:
        self.last = last

    def next(self, now_micros: int) -> int:
        """A timestamp above every one given or observed before."""
        self.last = max(self.last + 1, now_micros << LOGICAL_BITS)
        return self.last

    def observe(self, timestamp: int) -> None:
        """Advance past a timestamp that another process gave out."""
        self.last = max(self.last, timestamp)
