"""The small sorted delta of a secondary index: the keys of a tail, whose rows are still tuples.

Nothing is done when a row is put. A lookup that meets rows which no delta knows yet makes a larger
delta and leaves it for the next one, so the key of a row is made once; the last ones are compared
one by one, until there are enough of them to be put in order. A delta is replaced as a whole, so
lookups on several threads at most do the same work twice.
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
    """The first ``rows`` rows of a tail: ``keys`` in order, and their ``offsets``; and the keys of
    the ``fresh`` ones behind them."""

    rows: int
    keys: list[Bound]
    offsets: list[int]
    fresh: list[Bound]

    @property
    def known(self) -> int:
        """Rows whose keys are known."""
        return self.rows + len(self.fresh)


EMPTY: Final = TailDelta(0, [], [], [])


def grown(delta: TailDelta, keys: list[Bound]) -> TailDelta:
    """The delta with the keys of the rows that follow; many are put in order."""
    fresh = delta.fresh + keys
    if len(fresh) > FRESH_ROWS_MAX:
        return ordered(delta._replace(fresh=fresh))
    return delta._replace(fresh=fresh)


def ordered(delta: TailDelta) -> TailDelta:
    """The delta with all keys that it knows in order."""
    fresh, count = delta.fresh, delta.known
    pairs = [
        *zip(delta.keys, delta.offsets, strict=True),
        *zip(fresh, range(delta.rows, count), strict=True),
    ]
    pairs.sort()
    return TailDelta(count, [key for key, _ in pairs], [offset for _, offset in pairs], [])


def keys_of(form: KeyForm, rows: Iterable[Row]) -> list[Bound]:
    positions, key = form.positions, form.key
    return [key([row[position] for position in positions]) for row in rows]


def within(delta: TailDelta, span: Span) -> list[int]:
    """The offsets of the keys of a span."""
    low, high = span
    start = bisect_left(delta.keys, low)
    found = delta.offsets[start : bisect_left(delta.keys, high, start)]
    if delta.fresh:
        fresh = enumerate(delta.fresh, delta.rows)
        found += [offset for offset, key in fresh if low <= key < high]  # type: ignore[operator]
    return found


def inside(key: Bound, spans: Sequence[Span]) -> bool:
    return any(low <= key < high for low, high in spans)  # type: ignore[operator]
