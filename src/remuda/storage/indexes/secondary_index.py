"""The common part of all kinds of secondary indexes.

An index covers chunks, not rows: the entries of a sealed chunk are made once, in the background,
and stay right as long as the chunk exists, because its columns never change. A lookup takes the
chunks that its reader has pinned, finds candidates in the entries of those that are covered, in the
small delta of a tail, and takes all rows of a chunk that is not covered yet. Whether a candidate is
to be seen is decided at its slot. So writers know nothing of indexes, no write, abort, rewriting of
chunks or truncation can leave one wrong, and the parts that a reader combines (its chunks, and the
entries as they are now) fit together at any moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from remuda.datatypes.index import IndexDefinition
from remuda.storage.chunks.chunk import OFFSET_BITS, Chunk, Row
from remuda.storage.chunks.chunk_table import TableView
from remuda.storage.chunks.layout import Layouts
from remuda.storage.chunks.row_set import RowSet
from remuda.storage.indexes.keys import Bound, KeyForm, Span
from remuda.storage.indexes.tail import (
    EMPTY,
    TailDelta,
    grown,
    keys_of,
    ordered,
    within,
)

Picks: TypeAlias = dict[int, RowSet]
"""Chunk number -> candidates in it."""
Candidates: TypeAlias = Mapping[int, RowSet | None]
"""The same; None stands for all rows, a chunk that is missing has no candidates."""


class Pinned:
    """The chunks that a reader sees, by number, how many rows of each, and how he reads them."""

    __slots__ = ("by_number", "layouts", "tail", "tail_rows")

    def __init__(self, view: TableView, layouts: Layouts) -> None:
        self.layouts = layouts
        self.by_number = {chunk.base >> OFFSET_BITS: chunk for chunk in view.chunks}
        self.tail = view.tail
        self.tail_rows = view.tail.length

    def count(self, chunk: Chunk) -> int:
        return self.tail_rows if chunk is self.tail else chunk.length


class SecondaryIndex(ABC):
    """One index of one map on one member."""

    def __init__(self, definition: IndexDefinition, form: KeyForm, layouts: Layouts) -> None:
        self.definition = definition
        self.form = form
        self.layouts = layouts
        """Of the newest schema of the map, as the positions of ``form`` are."""
        self.built = False
        """Every sealed chunk has been covered at some moment."""
        self._deltas: dict[int, TailDelta] = {}

    @abstractmethod
    def take_over(self, other: SecondaryIndex) -> None:
        """Have the entries of the same index of another schema of the map."""

    @property
    def nbytes(self) -> int:
        """Estimated memory."""
        return self.run_bytes + sum(100 * delta.known for delta in self._deltas.values())

    # --- lookups (any thread) ---

    def candidates(
        self, pinned: Pinned, spans: Sequence[Span], *, negated: bool = False
    ) -> Candidates:
        """Where rows of these keys can be."""
        picks, covered = self.pick_covered(pinned.by_number, spans, negated=negated)
        found: dict[int, RowSet | None] = dict(picks)
        tail = pinned.tail.number
        if tail in picks:  # sealed and covered since, with rows that came later
            offsets_then = picks[tail].sorted_offsets()
            offsets_then = offsets_then[offsets_then < pinned.tail_rows]
            found[tail] = RowSet(pinned.tail_rows, offsets_then)
        for number, chunk in pinned.by_number.items():
            count = pinned.count(chunk)
            if number in covered or not count:
                continue
            tuples = chunk.tuples
            if tuples is None or negated:
                found[number] = None
                continue
            offsets = self._in_tail(chunk, tuples, count, spans)
            if offsets:
                found[number] = RowSet(count, np.array(offsets, dtype=np.int64))
        return found

    def _in_tail(
        self, chunk: Chunk, rows: Sequence[Row], count: int, spans: Sequence[Span]
    ) -> list[int]:
        """The offsets of the keys of some spans, in order."""
        delta = self._known(chunk, rows, count)
        if len(spans) == 1:
            offsets = within(delta, spans[0])
        else:
            offsets = [offset for span in spans for offset in within(delta, span)]
        return sorted([offset for offset in offsets if offset < count]) if offsets else offsets

    def delta(self, chunk: Chunk, rows: Sequence[Row], count: int) -> TailDelta:
        """The keys of at least the first ``count`` of the ``rows`` of a tail, in order."""
        delta = self._known(chunk, rows, count)
        if delta.rows < count:
            delta = self._deltas[chunk.number] = ordered(delta)
        return delta

    def _known(self, chunk: Chunk, rows: Sequence[Row], count: int) -> TailDelta:
        """The keys of at least the first ``count`` of the ``rows`` of a tail."""
        delta = self._deltas.get(chunk.base >> OFFSET_BITS, EMPTY)
        if delta.rows + len(delta.fresh) < count:
            delta = grown(delta, self._keys(chunk, rows[delta.known : count]))
            self._deltas[chunk.number] = delta
        return delta

    def _keys(self, chunk: Chunk, rows: Sequence[Row]) -> list[Bound]:
        return keys_of(self.form, self.layouts.rows(chunk, rows))

    @abstractmethod
    def pick_covered(
        self, chunks: dict[int, Chunk], spans: Sequence[Span], *, negated: bool
    ) -> tuple[Picks, frozenset[int]]:
        """Candidates in covered chunks, and which chunks are covered."""

    # --- upkeep (event loop) ---

    def forget_tails(self, tails: frozenset[int]) -> None:
        """Only these chunks are tails still."""
        for number in [number for number in self._deltas if number not in tails]:
            del self._deltas[number]

    @property
    @abstractmethod
    def run_bytes(self) -> int: ...

    @abstractmethod
    def covered(self) -> frozenset[int]:
        """The numbers of the chunks whose entries have been made."""

    @abstractmethod
    def cover(self, chunks: list[Chunk]) -> Iterator[None]:
        """Make the entries of sealed chunks, in slices."""

    @abstractmethod
    def drop_dead(self, alive: frozenset[int]) -> None:
        """Free what belongs to chunks that are gone altogether."""

    @abstractmethod
    def tidy(self, alive: frozenset[int], rows: dict[int, int]) -> Iterator[None] | None:
        """Work that makes lookups faster, if any is due. ``rows``: of each chunk."""
