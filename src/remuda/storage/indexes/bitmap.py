"""BITMAP indexes: for each chunk and each value the set of rows that have it.

Made for columns with few different values, whose sets are combined by AND, OR and NOT before any
row is read. A column with many values is right as well, and takes one small array for each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Final

import numpy as np

from remuda.storage.chunks.chunk import OFFSET_MASK, Chunk
from remuda.storage.chunks.row_set import RowSet
from remuda.storage.indexes.keys import NULL, NULL_WORD, Bound, KeyForm, Span
from remuda.storage.indexes.runs import IndexRun, WordRun, build
from remuda.storage.indexes.secondary_index import Picks, SecondaryIndex

SET_SIZE: Final = 250
"""Bytes of a key and of its set, besides what the set contains: Python's and NumPy's objects."""


class ChunkBitmaps:
    """``sets[i]`` are the rows of one chunk whose key is ``keys[i]``; ``keys`` are sorted."""

    __slots__ = ("keys", "sets")

    def __init__(self, keys: list[Bound], sets: list[RowSet]) -> None:
        self.keys = keys
        self.sets = sets

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for rows in self.sets) + SET_SIZE * len(self.keys)

    def within(self, spans: Sequence[Span]) -> list[RowSet]:
        found: list[RowSet] = []
        for low, high in spans:
            start = bisect_left(self.keys, low)
            found += self.sets[start : bisect_left(self.keys, high, start)]
        return found


class BitmapIndex(SecondaryIndex):
    """``bitmaps`` by chunk number is replaced as a whole, by the event loop only."""

    bitmaps: Mapping[int, ChunkBitmaps] = MappingProxyType({})

    def take_over(self, other: SecondaryIndex) -> None:
        assert isinstance(other, BitmapIndex)
        self.bitmaps = other.bitmaps

    @property
    def run_bytes(self) -> int:
        return sum(bitmaps.nbytes for bitmaps in self.bitmaps.values())

    # --- lookups (any thread) ---

    def pick_covered(
        self, chunks: dict[int, Chunk], spans: Sequence[Span], *, negated: bool
    ) -> tuple[Picks, frozenset[int]]:
        bitmaps = self.bitmaps
        excluded = [*spans, _null_span(self.form)] if negated else spans
        picks: Picks = {}
        for number, chunk in chunks.items():
            known = bitmaps.get(number)
            if known is None:
                continue
            sets = known.within(excluded)
            if negated:
                everything = RowSet.of_flags(np.ones(chunk.length, dtype=np.bool_))
                picks[number] = ~reduce(or_, sets) if sets else everything
            elif sets:
                picks[number] = reduce(or_, sets)
        return picks, frozenset(bitmaps)

    # --- upkeep (event loop) ---

    def covered(self) -> frozenset[int]:
        return frozenset(self.bitmaps)

    def cover(self, chunks: list[Chunk]) -> Iterator[None]:
        for chunk in chunks:
            for run in build(self.form, self.layouts, [chunk]):
                if run is not None:
                    made = _bitmaps(run, chunk.length)
                    self.bitmaps = {**self.bitmaps, chunk.number: made}
                yield

    def drop_dead(self, alive: frozenset[int]) -> None:
        if not alive.issuperset(self.bitmaps):
            self.bitmaps = {n: found for n, found in self.bitmaps.items() if n in alive}

    def tidy(self, alive: frozenset[int], rows: dict[int, int]) -> Iterator[None] | None:  # noqa: ARG002
        return None


def _null_span(form: KeyForm) -> Span:
    return (NULL_WORD, NULL_WORD + 1) if form.words else (NULL, NULL + b"\xff")


def _bitmaps(run: IndexRun, length: int) -> ChunkBitmaps:
    """The entries of a run of one chunk, value by value."""
    offsets = run.slots & OFFSET_MASK
    if isinstance(run, WordRun):
        starts = np.flatnonzero(np.diff(run.words, prepend=run.words[:1] - 1)).tolist()
        keys: list[Bound] = [run.words[start].item() for start in starts]
        if len(run.words) < len(offsets):
            starts.append(len(run.words))
            keys.append(NULL_WORD)
    else:
        every = run.bounds(0, len(run))
        starts = [i for i, key in enumerate(every) if i == 0 or key != every[i - 1]]
        keys = [every[start] for start in starts]
    stops = [*starts[1:], len(offsets)]
    sets = [
        RowSet.compact(np.sort(offsets[start:stop]), length)
        for start, stop in zip(starts, stops, strict=True)
    ]
    return ChunkBitmaps(keys, sets)
