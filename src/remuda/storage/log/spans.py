"""Which records lie in which segment, as the headers of the segments tell: nothing else is read."""

from __future__ import annotations

from typing import NamedTuple

from remuda.storage.format.segment import HEADER_SIZE, decode_header
from remuda.storage.log.reader import SegmentSource


class Span(NamedTuple):
    """Segment ``number`` holds the records ``first`` to ``last``."""

    number: int
    first: int
    last: int


def spans_back_to(source: SegmentSource, needs: int) -> list[Span]:
    """The complete segments, in order, from the one that holds record ``needs`` on; from the first
    that there is, when it lies behind. Reads as many headers, and no more: a log keeps segments for
    other reasons, too. Raises ``DataCorrupted``, ``ResourceError``."""
    found: list[Span] = []
    follower: int | None = None
    for number in reversed(source.numbers()):
        head = source.head(number)
        if follower is None and len(head) < HEADER_SIZE:
            continue  # it is being made
        first = decode_header(head).first
        if follower is not None:
            found.append(Span(number, first, follower - 1))
        if first <= needs:
            break
        follower = first
    return found[::-1]
