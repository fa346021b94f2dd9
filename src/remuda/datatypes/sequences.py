"""Sequences: their numbers, and the next state of each. Pure values and functions.

A sequence is a map of one entry, its state, whose key is ``SequenceOptions.slot``. So the state has
copies, a log and a place in snapshots as every other entry has (decision 0081).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from remuda.datatypes.schema import SequenceOptions
from remuda.datatypes.sql import BIGINT, INTEGER, SMALLINT

RANGES: Final = {
    "smallint": (SMALLINT, -(2**15), 2**15 - 1),
    "integer": (INTEGER, -(2**31), 2**31 - 1),
    "bigint": (BIGINT, -(2**63), 2**63 - 1),
}
"""Types by name, with their least and greatest number."""

TAG_BITS: Final = 31


@dataclass(frozen=True, slots=True)
class SequenceState:
    """``last_value`` was given out if it ``is_called``; otherwise it is the next one."""

    last_value: int
    is_called: bool
    generation: int


@dataclass(frozen=True, slots=True)
class NumberBlock:
    """``count`` numbers from ``first`` on, each ``increment`` above the one before it. Numbers of
    an older ``generation`` than the state's are void."""

    first: int
    count: int
    increment: int
    generation: int

    @property
    def last(self) -> int:
        return self.first + (self.count - 1) * self.increment

    def divided(self, count: int) -> tuple[NumberBlock, NumberBlock | None]:
        """The first ``count`` numbers, and the others."""
        if count >= self.count:
            return self, None
        rest = replace(self, first=self.first + count * self.increment, count=self.count - count)
        return replace(self, count=count), rest


def following(generation: int, tag: int) -> int:
    """The next generation, which carries the ``tag`` of the request that begins it: its owner knows
    the request again when it is repeated."""
    return ((generation >> TAG_BITS) + 1 << TAG_BITS) + tag


def is_later(generation: int, other: int) -> bool:
    """Whether at least one more generation began before ``generation`` than before ``other``."""
    return generation >> TAG_BITS > other >> TAG_BITS


def initial(options: SequenceOptions, generation: int = 1) -> SequenceState:
    return SequenceState(options.start, is_called=False, generation=generation)


def taken(
    options: SequenceOptions, state: SequenceState, wanted: int
) -> tuple[SequenceState, NumberBlock] | None:
    """The next block of at most ``wanted`` numbers, and the state without them. Fewer numbers come
    at the end of the range and where a cycle begins again. None: the sequence is exhausted."""
    step = options.increment
    first = state.last_value + step if state.is_called else state.last_value
    if not options.minimum <= first <= options.maximum:
        if not options.cycle:
            return None
        first = options.minimum if step > 0 else options.maximum
    end = options.maximum if step > 0 else options.minimum
    count = min(wanted, (end - first) // step + 1)
    block = NumberBlock(first, count, step, state.generation)
    return SequenceState(block.last, is_called=True, generation=state.generation), block
