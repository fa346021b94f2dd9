"""Rows of a map by secondary index: unordered, in the order of an index, or for many keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import values_to_array
from remuda.limits import BATCH_ROWS
from remuda.storage.chunks.chunk import (
    OFFSET_BITS,
    OFFSET_MASK,
    Chunk,
    Flags,
    Offsets,
    Row,
    rows_to_batch,
)
from remuda.storage.chunks.key_index import Slots
from remuda.storage.chunks.layout import Layouts
from remuda.storage.chunks.row_set import RowSet
from remuda.storage.chunks.scan import ScanCursor, concatenated, filtered, partition_flags, shown
from remuda.storage.indexes.keys import Bound, Span
from remuda.storage.indexes.runs import IndexRun
from remuda.storage.indexes.secondary_index import Candidates, Pinned, SecondaryIndex
from remuda.storage.indexes.sorted import SortedIndex

FIRST_WINDOW: Final = 256
"""An ordered scan begins with so many entries of each run, and doubles them."""
FEW_ROWS: Final = 64


def seen(chunk: Chunk, offsets: Offsets, at: int, wanted: Flags | None) -> Flags:
    """Which of these rows of a chunk a reader sees."""
    alive = (chunk.begins_of(offsets) <= np.int64(at)) & (chunk.ends_of(offsets) > at)
    visible: Flags = np.broadcast_to(np.asarray(alive), offsets.shape)
    if wanted is not None:
        visible = visible & wanted[chunk.partitions[offsets]]
    return visible


def rows_at(
    chunk: Chunk, offsets: Offsets, count: int, positions: Sequence[int], layouts: Layouts
) -> pa.RecordBatch:
    """Some rows of the first ``count`` of a chunk, projected, in the order of ``offsets``."""
    tuples = chunk.tuples
    if not positions:
        return chunk.columns(count).select([]).slice(0, len(offsets))
    if tuples is not None and len(offsets) <= FEW_ROWS:  # not all of a tail for a few rows
        rows = layouts.rows(chunk, [tuples[offset] for offset in offsets.tolist()])
        return rows_to_batch(list(rows), layouts.schema).select(list(positions))
    return layouts.columns(chunk, count, list(positions)).take(pa.array(offsets))


class IndexCursor(ScanCursor):
    """The rows of ``candidates`` that exist at one timestamp, chunk by chunk."""

    def __init__(
        self,
        pinned: Pinned,
        candidates: Candidates,
        at: int,
        positions: Sequence[int],
        partitions: frozenset[int] | None,
    ) -> None:
        chunks = [pinned.by_number[number] for number in sorted(candidates)]
        super().__init__(chunks, pinned.tail, at, positions, partitions, pinned.layouts)
        self._tail_rows = pinned.tail_rows
        self._candidates = candidates
        if _are_few(candidates):
            self._held = self._few_rows()

    def _few_rows(self) -> pa.RecordBatch | None:
        """All rows, read value by value: an Arrow call for each chunk and column takes longer."""
        rows: list[Row] = []
        wanted = self._wanted
        for chunk in self._chunks:
            found = self._candidates[chunk.number]
            assert found is not None
            rows += [
                self._layouts.values_at(chunk, offset, self._positions)
                for offset in found.sorted_offsets().tolist()
                if chunk.exists_at(offset, self._at)
                and (wanted is None or wanted[chunk.partitions[offset]])
            ]
        self._source = iter(())
        return values_to_batch(rows, self._layouts.schema, self._positions) if rows else None

    def _next_piece(self) -> pa.RecordBatch | None:
        for chunk in self._source:
            rows = self._candidates[chunk.number]
            count = self._tail_rows if chunk is self._open_tail else chunk.length
            batch = self._piece(chunk) if rows is None else self._picked(chunk, rows, count)
            if batch is not None:
                return batch
        return None

    def _picked(self, chunk: Chunk, rows: RowSet, count: int) -> pa.RecordBatch | None:
        if rows.offsets is None:
            mask = shown(chunk, count, self._at, self._wanted)
            if mask is False:
                return None
            flags = rows.flags()
            flags = flags if mask is True else flags & mask
            found = int(np.count_nonzero(flags))
            batch = self._layouts.columns(chunk, count, self._positions)
            return filtered(batch, flags, found) if found else None
        offsets = rows.offsets[seen(chunk, rows.offsets, self._at, self._wanted)]
        if not len(offsets):
            return None
        return rows_at(chunk, offsets, count, self._positions, self._layouts)

    def close(self) -> None:
        super().close()
        self._candidates = {}


def _are_few(candidates: Candidates) -> bool:
    total = 0
    for rows in candidates.values():
        if rows is None or rows.offsets is None:
            return False
        total += len(rows.offsets)
        if total > FEW_ROWS:
            return False
    return True


def values_to_batch(
    rows: Sequence[Row], schema: MapSchema, positions: Sequence[int]
) -> pa.RecordBatch:
    """Values of some columns, row by row, as one engine-form batch."""
    if not positions:
        return pa.RecordBatch.from_arrays([pa.nulls(len(rows))], names=["rows"]).select([])
    columns = [schema.columns[position] for position in positions]
    arrays = [
        values_to_array(values, column.type)
        for values, column in zip(zip(*rows, strict=True), columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


class _Source:
    """The entries of some spans of one run or tail, read from one end."""

    def __init__(self, ranges: list[tuple[int, int]], run: IndexRun, descending: bool) -> None:
        self._run = run
        self._ranges = ranges if descending else ranges[::-1]
        self._descending = descending
        self.keys: list[Bound] = []
        self.slots: list[int] = []

    @property
    def exhausted(self) -> bool:
        return not self._ranges

    def fill(self, wanted: int) -> None:
        """Have at least ``wanted`` entries at hand, if there are as many."""
        while self._ranges and len(self.keys) < wanted:
            start, stop = self._ranges.pop()
            missing = wanted - len(self.keys)
            if stop - start > missing:
                if self._descending:
                    self._ranges.append((start, stop - missing))
                    start = stop - missing
                else:
                    self._ranges.append((start + missing, stop))
                    stop = start + missing
            keys, slots = self._run.bounds(start, stop), self._run.slots[start:stop].tolist()
            self.keys += keys[::-1] if self._descending else keys
            self.slots += slots[::-1] if self._descending else slots

    def take(self, bound: Bound | None) -> list[tuple[Bound, int]]:
        """The entries up to ``bound`` and with it, in the direction of the scan; None: all."""
        count = len(self.keys)
        if bound is not None:
            keys = self.keys
            if self._descending:
                count = next((i for i, key in enumerate(keys) if key < bound), count)  # type: ignore[operator]
            else:
                count = next((i for i, key in enumerate(keys) if key > bound), count)  # type: ignore[operator]
        found = list(zip(self.keys[:count], self.slots[:count], strict=True))
        del self.keys[:count], self.slots[:count]
        return found


class OrderedIndexCursor:
    """The rows of some spans of a SORTED index that exist at one timestamp, in the order of the
    index or backwards. Any thread, one at a time.
    """

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        index: SortedIndex,
        pinned: Pinned,
        spans: Sequence[Span],
        descending: bool,
        at: int,
        positions: Sequence[int],
        partitions: frozenset[int] | None,
    ) -> None:
        self._pinned = pinned
        self._descending = descending
        self._at = at
        self._positions = list(positions)
        self._wanted = partition_flags(partitions)
        self._window = FIRST_WINDOW
        runs = [*index.parts(pinned.by_number), *tail_runs(index, pinned)]
        self._sources = [
            _Source([run.span(span) for span in spans], run, descending) for run in runs
        ]

    def next(self) -> pa.RecordBatch | None:
        """Some rows in order, never empty; None at the end."""
        while self._sources:
            batch = self._batch(self._take())
            self._window = min(2 * self._window, BATCH_ROWS)
            if batch is not None:
                return batch
        return None

    def _take(self) -> Slots:
        """The next entries of all sources: those that no source has anything before."""
        ends: list[Bound] = []
        for source in self._sources:
            source.fill(self._window)
            if not source.exhausted and source.keys:
                ends.append(source.keys[-1])
        bound = None
        if ends:
            bound = max(ends) if self._descending else min(ends)
        found = [entry for source in self._sources for entry in source.take(bound)]
        found.sort(key=lambda entry: entry[0], reverse=self._descending)
        self._sources = [s for s in self._sources if s.keys or not s.exhausted]
        return np.array([slot for _, slot in found], dtype=np.int64)

    def _batch(self, slots: Slots) -> pa.RecordBatch | None:
        fetched = fetch(self._pinned, slots, self._at, self._positions, self._wanted)
        if fetched is None:
            return None
        batch, order = fetched
        places = np.argsort(order, kind="stable")
        if not self._positions or (np.diff(order) > 0).all():
            return batch
        return batch.take(pa.array(places))

    def close(self) -> None:
        """Release the pinned chunks; ``next`` gives None afterwards."""
        self._sources = []


def fetch(
    pinned: Pinned, slots: Slots, at: int, positions: Sequence[int], wanted: Flags | None
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]] | None:
    """The rows at some slots that a reader sees, and which of the slots they are, chunk by
    chunk."""
    batches: list[pa.RecordBatch] = []
    order: list[npt.NDArray[np.int64]] = []
    for chunk, indexes, offsets in _groups(pinned, slots):
        inside = offsets < pinned.count(chunk)
        visible = np.flatnonzero(inside & seen(chunk, offsets, at, wanted))
        if len(visible):
            count = pinned.count(chunk)
            batches.append(rows_at(chunk, offsets[visible], count, positions, pinned.layouts))
            order.append(indexes[visible])
    if not batches:
        return None
    return concatenated(batches) if len(batches) > 1 else batches[0], np.concatenate(order)


def _groups(pinned: Pinned, slots: Slots) -> Iterator[tuple[Chunk, Slots, Offsets]]:
    """The slots by chunk: (chunk, indexes into ``slots``, offsets); those of others left out."""
    if not len(slots):
        return
    numbers = slots >> OFFSET_BITS
    order = np.argsort(numbers, kind="stable")
    bounds = np.flatnonzero(np.diff(numbers[order])) + 1
    for indexes in np.split(order, bounds):
        chunk = pinned.by_number.get(int(numbers[indexes[0]]))
        if chunk is not None:
            yield chunk, indexes, slots[indexes] & OFFSET_MASK


def tail_runs(index: SecondaryIndex, pinned: Pinned) -> list[IndexRun]:
    """The tails as runs."""
    runs: list[IndexRun] = []
    for number, chunk in pinned.by_number.items():
        tuples, count = chunk.tuples, pinned.count(chunk)
        if tuples is None or not count:
            continue
        delta = index.delta(chunk, tuples, count)
        slots = np.array(delta.offsets, dtype=np.int64) + chunk.base
        runs.append(_ListRun(delta.keys, slots, frozenset((number,))))
    return runs


class _ListRun(IndexRun):
    """A delta as a run."""

    __slots__ = ("keys",)

    def __init__(self, keys: list[Bound], slots: Slots, chunks: frozenset[int]) -> None:
        self.keys = keys
        self.slots = slots
        self.chunks = chunks

    @property
    def nbytes(self) -> int:
        return self.slots.nbytes

    def place(self, bound: Bound) -> int:
        return bisect_left(self.keys, bound)

    def bounds(self, start: int, stop: int) -> list[Bound]:
        return self.keys[start:stop]


def match_keys(  # noqa: PLR0917 (what a scan takes, behind the index)
    index: SortedIndex,
    pinned: Pinned,
    columns: Sequence[pa.Array],
    at: int,
    positions: Sequence[int],
    partitions: frozenset[int] | None,
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]] | None:
    """The rows at ``at`` whose first indexed columns equal a row of ``columns``, and for each the
    number of that row; None = no row."""
    matched = _matched(index, pinned, columns)
    if not matched:
        return None
    which = np.concatenate([numbers for numbers, _ in matched])
    slots = np.concatenate([slots for _, slots in matched])
    fetched = fetch(pinned, slots, at, positions, partition_flags(partitions))
    if fetched is None:
        return None
    batch, order = fetched
    return batch, which[order]


def _matched(
    index: SortedIndex, pinned: Pinned, columns: Sequence[pa.Array]
) -> list[tuple[Slots, Slots]]:
    """Numbers of rows of ``columns``, and the slots of their keys, by run."""
    found, _ = index.form.keys_of(columns)
    keys: list[Bound] = found.tolist() if isinstance(found, np.ndarray) else found.to_pylist()
    runs = [*index.parts(pinned.by_number), *tail_runs(index, pinned)]
    return [pair for run in runs if len((pair := run.match(keys))[0])]


def slots_of_keys(index: SortedIndex, pinned: Pinned, columns: Sequence[pa.Array]) -> Slots:
    """Where versions lie whose first indexed columns equal a row of ``columns`` (without NULLs; of
    a HASH index, others as well), in any order."""
    none: Slots = np.empty(0, np.int64)
    return np.concatenate([none, *(slots for _, slots in _matched(index, pinned, columns))])
