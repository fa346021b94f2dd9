"""The small sorted delta of a secondary index: the keys of a tail, whose rows are still tuples.

Nothing is done when a row is put. A lookup that meets rows which no delta knows yet makes a larger
delta and leaves it for the next one; a few rows are compared one by one instead. A delta is
replaced as a whole, so lookups on several threads at most do the same work twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from remuda.storage.chunks.chunk import Row
from remuda.storage.indexes.keys import Bound, KeyForm, Span

FRESH_ROWS_MAX: Final = 128
"""Up to so many rows are compared one by one."""


class TailDelta(NamedTuple):
    """The first ``rows`` rows of a tail: ``keys`` in order, and their ``offsets``."""

    rows: int
    keys: list[Bound]
    offsets: list[int]


EMPTY: Final = TailDelta(0, [], [])


def grown(delta: TailDelta, fresh: Sequence[Bound]) -> TailDelta:
    """The delta with the keys of the rows that follow its own."""
    count = delta.rows + len(fresh)
    pairs = [
        *zip(delta.keys, delta.offsets, strict=True),
        *zip(fresh, range(delta.rows, count), strict=True),
    ]
    pairs.sort()
    return TailDelta(count, [key for key, _ in pairs], [offset for _, offset in pairs])


def keys_of(form: KeyForm, rows: Iterable[Row]) -> list[Bound]:
    positions, key = form.positions, form.key
    return [key([row[position] for position in positions]) for row in rows]


def within(delta: TailDelta, span: Span) -> list[int]:
    """The offsets of the keys of a span, in the order of the keys."""
    start = bisect_left(delta.keys, span[0])
    return delta.offsets[start : bisect_left(delta.keys, span[1], start)]


def inside(key: Bound, spans: Sequence[Span]) -> bool:
    return any(low <= key < high for low, high in spans)  # type: ignore[operator]
