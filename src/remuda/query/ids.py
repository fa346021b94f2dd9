"""The identity of a query and of its streams."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

MEMBER_SHIFT = 48
_MASK_64 = 2**64 - 1


class QueryId(NamedTuple):
    """Two signed 64-bit halves, as on Drill's wire.

    The high 15 bits of ``part2`` are the number of the coordinating member, so that anyone who
    holds a query id knows whom to ask about it (design rule 10).
    """

    part1: int
    part2: int

    @property
    def member(self) -> int:
        return (self.part2 >> MEMBER_SHIFT) & 0x7FFF

    def __str__(self) -> str:
        text = f"{self.part1 & _MASK_64:016x}{self.part2 & _MASK_64:016x}"  # as a UUID is written
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def parse_query_id(text: str) -> QueryId:
    """The id that ``str`` writes. Raises ValueError."""
    number = UUID(text).int
    halves = (number >> 64, number & _MASK_64)
    return QueryId(*(half - 2**64 if half >= 2**63 else half for half in halves))


class Endpoint(NamedTuple):
    """One end of the streams of an edge: an instance of the sending or of the receiving fragment.

    A stream is (query, edge, sender endpoint, receiver endpoint); ordinals, credit and the end
    belong to a stream (design rule 2).
    """

    member: int
    instance: int = 0

    def __str__(self) -> str:
        return instance_text(self.member, self.instance)


def instance_text(fragment: int, instance: int) -> str:
    """An instance of a fragment, for people: the first one is called like the fragment."""
    return f"{fragment}.{instance}" if instance else str(fragment)


def new_query_id(member: int, now_micros: int, entropy: int) -> QueryId:
    """``part1`` descends with time (newest first, as in Drill); ``entropy`` is 48 random bits."""
    part2 = (member << MEMBER_SHIFT) | (entropy & (2**MEMBER_SHIFT - 1))
    return tuple.__new__(QueryId, (2**62 - now_micros, part2))  # without a call of Python
