"""SORTED indexes: sorted runs over whole chunks, put together in tiers as a log-structured merge
tree does, and small deltas for the tails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK, Chunk
from remuda.storage.chunks.key_index import Slots
from remuda.storage.chunks.row_set import RowSet
from remuda.storage.indexes.few_rows import Declined
from remuda.storage.indexes.keys import Span
from remuda.storage.indexes.runs import IndexRun, build, merge, run_of
from remuda.storage.indexes.secondary_index import Picks, SecondaryIndex

TIER: Final = 4
"""Runs whose sizes differ by less than this factor are put together."""
MERGED_RUNS: Final = 4
"""As many as this at a time."""
DEAD_SHARE: Final = 0.25
"""A run with a larger share of entries of chunks that are gone is written anew."""
FEW_SLOTS: Final = 64


class SortedIndex(SecondaryIndex):
    """``runs`` are replaced as a whole, by the event loop only."""

    runs: tuple[IndexRun, ...] = ()

    def take_over(self, other: SecondaryIndex) -> None:
        assert isinstance(other, SortedIndex)
        self.runs = other.runs

    @property
    def run_bytes(self) -> int:
        return sum(run.nbytes for run in self.runs)

    # --- lookups (any thread) ---

    def pick_covered(
        self, chunks: dict[int, Chunk], spans: Sequence[Span], *, negated: bool
    ) -> tuple[Picks, frozenset[int]]:
        assert not negated
        runs = self.runs
        found: list[Slots] = []
        for run in runs:
            for span in spans:
                start, stop = run.span(span)
                if stop > start:
                    found.append(run.slots[start:stop])
        covered = frozenset().union(*(run.chunks for run in runs))
        if not found:
            return {}, covered
        slots = found[0] if len(found) == 1 else np.concatenate(found)
        return by_chunk(slots, chunks), covered

    def few(
        self, chunks: Sequence[Chunk], spans: Sequence[Span], limit: int
    ) -> list[tuple[Chunk, int]] | Declined:
        """Where versions of these keys are, if there are at most ``limit``. On the event loop: no
        row comes meanwhile."""
        by_number: dict[int, Chunk] = {}
        for chunk in chunks:
            by_number[chunk.base >> OFFSET_BITS] = chunk
        found: list[tuple[Chunk, int]] = []
        runs = self.runs
        for run in runs:
            for span in spans:
                start, stop = run.span(span)
                if len(found) + stop - start > limit:
                    return Declined.CROWDED
                for slot in run.slots[start:stop].tolist():
                    known = by_number.get(slot >> OFFSET_BITS)
                    if known is not None:
                        found.append((known, slot & OFFSET_MASK))
        for number, chunk in by_number.items():
            for run in runs:
                if number in run.chunks:
                    break
            else:
                if not chunk.length:
                    continue
                if chunk.tuples is None:
                    return Declined.UNCOVERED
                places = self._in_tail(chunk, chunk.tuples, chunk.length, spans)
                if places:
                    found += [(chunk, at) for at in places]
        return found if len(found) <= limit else Declined.CROWDED

    def parts(self, chunks: dict[int, Chunk]) -> list[IndexRun]:
        """Runs that cover every sealed chunk; for those that have none, one is made now."""
        runs = self.runs
        covered = frozenset().union(*(run.chunks for run in runs))
        fresh = [
            run_of(self.form, self.layouts, chunk)
            for number, chunk in chunks.items()
            if number not in covered and chunk.tuples is None and chunk.length
        ]
        return [run for run in runs if not run.chunks.isdisjoint(chunks)] + fresh

    # --- upkeep (event loop) ---

    def covered(self) -> frozenset[int]:
        return frozenset().union(*(run.chunks for run in self.runs))

    def cover(self, chunks: list[Chunk]) -> Iterator[None]:
        for run in build(self.form, self.layouts, chunks):
            if run is None:
                yield
            else:
                self.runs = (*self.runs, run)

    def drop_dead(self, alive: frozenset[int]) -> None:
        kept = tuple(run for run in self.runs if not run.chunks.isdisjoint(alive))
        if len(kept) < len(self.runs):
            self.runs = kept

    def tidy(self, alive: frozenset[int], rows: dict[int, int]) -> Iterator[None] | None:
        for run in self.runs:
            living = sum(rows.get(number, 0) for number in run.chunks)
            if len(run) - living > DEAD_SHARE * len(run):
                return self._merge([run], alive)
        ordered = sorted(self.runs, key=len)
        for first in range(len(ordered) - MERGED_RUNS + 1):
            group = ordered[first : first + MERGED_RUNS]
            if len(group[-1]) <= TIER * max(len(group[0]), 1):
                return self._merge(group, alive)
        return None

    def _merge(self, runs: list[IndexRun], alive: frozenset[int]) -> Iterator[None]:
        covered = frozenset().union(*(run.chunks for run in runs)) & alive
        for made in merge(self.form, runs, alive, covered):
            if made is None:
                yield
            else:
                kept = tuple(r for r in self.runs if not any(r is other for other in runs))
                self.runs = (*kept, made)


def by_chunk(slots: Slots, chunks: dict[int, Chunk]) -> Picks:
    """The slots as sets of rows; those of chunks that are gone are left out."""
    picks: Picks = {}
    if len(slots) <= FEW_SLOTS:
        gathered: dict[int, list[int]] = {}
        for slot in slots.tolist():
            gathered.setdefault(slot >> OFFSET_BITS, []).append(slot & OFFSET_MASK)
        for number, found in gathered.items():
            chunk = chunks.get(number)
            if chunk is not None:
                picks[number] = RowSet(chunk.length, np.array(sorted(found), dtype=np.int64))
        return picks
    ordered = np.sort(slots)
    numbers = ordered >> OFFSET_BITS
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    stops = [*starts[1:].tolist(), len(ordered)]
    for start, stop in zip(starts.tolist(), stops, strict=True):
        chunk = chunks.get(int(numbers[start]))
        if chunk is not None:
            offsets = ordered[start:stop] & OFFSET_MASK
            picks[chunk.number] = RowSet(chunk.length, offsets)
    return picks


def keys_between(runs: Sequence[IndexRun], spans: Sequence[Span]) -> int:
    """How many entries the spans hold, those of rows that nobody sees included."""
    total = 0
    for run in runs:
        for span in spans:
            start, stop = run.span(span)
            total += stop - start
    return total
