"""Sorted runs of a secondary index: keys in order, each with the slot of its row.

A run covers whole chunks: every row of them, of all versions, has one entry, and since the columns
of a chunk never change, neither does the run. Which rows a reader sees is decided at their slots;
entries of chunks that are gone are skipped, and left out when runs are merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.storage.chunks.chunk import OFFSET_BITS, Chunk
from remuda.storage.chunks.key_index import Positions, Slots, expand
from remuda.storage.chunks.layout import Layouts
from remuda.storage.indexes.keys import LOWEST_WORD, NULL_WORD, Bound, KeyForm, Span, Words, after

WORD_SLICE: Final = 64 * 1024
STRING_SLICE: Final = 12 * 1024
"""So many entries are sorted or merged at a time (a few ms)."""
FEW_KEYS: Final = 16
"""So many keys are looked up one by one: calls of NumPy cost more."""
NEAR: Final = 8
"""So many keys behind the first one of a span are compared before the end of it is searched for."""


class IndexRun(ABC):
    """``slots[i]`` is the slot of the i-th key; ``chunks`` are the numbers of the chunks."""

    __slots__ = ("chunks", "slots")

    slots: Slots
    chunks: frozenset[int]

    def __len__(self) -> int:
        return len(self.slots)

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @abstractmethod
    def place(self, bound: Bound) -> int:
        """The number of keys below ``bound``."""

    @abstractmethod
    def bounds(self, start: int, stop: int) -> list[Bound]:
        """The keys at these positions."""

    def span(self, span: Span) -> tuple[int, int]:
        """The positions of the keys of a span: first, and the one after the last."""
        start = self.place(span[0])
        return start, max(start, self.place(span[1]))

    def match(self, keys: Sequence[Bound]) -> tuple[Positions, Slots]:
        """All pairs (index into ``keys``, slot) with equal keys, or first parts of keys."""
        found: list[int] = []
        slots: list[Slots] = []
        for index, key in enumerate(keys):
            start = self.place(key)
            stop = self.place(_above(self, key, start))
            if stop > start:
                found.extend([index] * (stop - start))
                slots.append(self.slots[start:stop])
        if not slots:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.array(found, dtype=np.int64), np.concatenate(slots)


def _above(run: IndexRun, key: Bound, start: int) -> Bound:
    """The end of the span of keys that are, or begin with, ``key``; ``start`` is its beginning."""
    if isinstance(key, int):
        return key + 1
    there = run.bounds(start, start + 1)
    begins = bool(there) and there[0].startswith(key)  # type: ignore[union-attr]
    return after(key) if begins else key


def _expanded(
    indexes: Positions, first: Positions, counts: Positions, slots: Slots
) -> tuple[Positions, Slots]:
    """Pairs of each index and all slots from position ``first`` on, ``counts`` of them."""
    hit = np.flatnonzero(counts)
    if not len(hit):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    counts = counts[hit]
    return np.repeat(indexes[hit], counts), slots[expand(first[hit], counts)]


class WordRun(IndexRun):
    """``words`` are sorted; the slots of NULLs come behind those of the words."""

    __slots__ = ("view", "words")

    def __init__(self, words: Words, slots: Slots, chunks: frozenset[int]) -> None:
        self.words = words
        self.view = words.data
        self.slots = slots
        self.chunks = chunks

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.slots.nbytes

    def place(self, bound: Bound) -> int:
        assert isinstance(bound, int)
        if bound > NULL_WORD:
            return len(self.slots)
        return bisect_left(self.view, bound) if bound > LOWEST_WORD else 0

    def bounds(self, start: int, stop: int) -> list[Bound]:
        known: list[Bound] = self.words[start:stop].tolist()
        return known + [NULL_WORD] * (min(stop, len(self)) - start - len(known))

    def match(self, keys: Sequence[Bound]) -> tuple[Positions, Slots]:
        if len(keys) <= FEW_KEYS:
            return super().match(keys)
        known = np.array([key for key in keys if key != NULL_WORD], dtype=np.int64)
        indexes = np.array([i for i, key in enumerate(keys) if key != NULL_WORD], dtype=np.int64)
        first = np.searchsorted(self.words, known)
        counts = np.searchsorted(self.words, known, side="right") - first
        return _expanded(indexes, first, counts, self.slots)


class StringRun(IndexRun):
    """``keys`` are sorted large binaries without NULLs."""

    __slots__ = ("_data", "_offsets", "keys")

    def __init__(self, keys: pa.Array, slots: Slots, chunks: frozenset[int]) -> None:
        self.keys = keys
        self.slots = slots
        self.chunks = chunks
        _, offsets, data = keys.buffers()
        count = len(keys)
        assert keys.offset == 0
        view = memoryview(offsets).cast("B")[: (count + 1) * 8] if count else memoryview(bytes(8))
        self._offsets = view.cast("q")
        self._data = memoryview(data) if data is not None else memoryview(b"")

    @property
    def nbytes(self) -> int:
        size: int = self.keys.nbytes
        return size + self.slots.nbytes

    def key(self, position: int) -> bytes:
        offsets = self._offsets
        return self._data[offsets[position] : offsets[position + 1]].tobytes()

    def place(self, bound: Bound) -> int:
        offsets, data = self._offsets, self._data
        start, stop = 0, len(self.slots)
        while start < stop:  # `bisect_left` written out: a call for each key costs more
            middle = (start + stop) >> 1
            if data[offsets[middle] : offsets[middle + 1]].tobytes() < bound:  # type: ignore[operator]
                start = middle + 1
            else:
                stop = middle
        return start

    def span(self, span: Span) -> tuple[int, int]:
        low, high = span
        start = self.place(low)
        offsets, data = self._offsets, self._data
        for stop in range(start, min(start + NEAR, len(self.slots))):
            if data[offsets[stop] : offsets[stop + 1]].tobytes() >= high:  # type: ignore[operator]
                return start, stop
        return start, max(start, self.place(high))

    def match(self, keys: Sequence[Bound]) -> tuple[Positions, Slots]:
        if len(keys) <= FEW_KEYS or not len(self):
            return super().match(keys)
        first = self._places(pa.array(keys, pa.large_binary()))
        stop = self._places(pa.array([after(key) for key in keys], pa.large_binary()))  # type: ignore[arg-type]
        return _expanded(np.arange(len(keys)), first, stop - first, self.slots)

    def _places(self, bounds: pa.Array) -> Positions:
        """``place`` of many bounds: a binary search of all of them at once."""
        low = np.zeros(len(bounds), dtype=np.int64)
        high = np.full(len(bounds), len(self), dtype=np.int64)
        for _ in range(len(self).bit_length()):
            middle = (low + high) >> 1
            inside = low < high
            there = self.keys.take(pa.array(np.minimum(middle, len(self) - 1)))
            less = pc.less(there, bounds).to_numpy(zero_copy_only=False)
            low = np.where(inside & less, middle + 1, low)
            high = np.where(inside & ~less, middle, high)
        return low

    def bounds(self, start: int, stop: int) -> list[Bound]:
        return [self.key(position) for position in range(start, min(stop, len(self)))]


# --- making runs ---------------------------------------------------------------------------------


def run_of(form: KeyForm, layouts: Layouts, chunk: Chunk) -> IndexRun:
    """The run of a sealed chunk, at once."""
    run: IndexRun | None = None
    for made in build(form, layouts, [chunk]):
        run = made
    assert run is not None
    return run


def build(form: KeyForm, layouts: Layouts, chunks: Sequence[Chunk]) -> Iterator[IndexRun | None]:
    """One run of sealed chunks, sorted in slices; the last thing that comes is the run."""
    size = WORD_SLICE if form.words else STRING_SLICE
    pieces: list[IndexRun] = []
    for chunk in chunks:
        batch = layouts.columns(chunk, chunk.length, list(form.positions))
        for start in range(0, chunk.length, size):
            part = batch.slice(start, size)
            slots = np.arange(chunk.base + start, chunk.base + start + part.num_rows)
            pieces.append(_sorted(form, part, slots, chunk.number))
            yield None
    numbers = frozenset(chunk.number for chunk in chunks)
    if len(pieces) == 1:
        pieces[0].chunks = numbers
        yield pieces[0]
    else:
        yield from merge(form, pieces, numbers, numbers)


def _sorted(form: KeyForm, part: pa.RecordBatch, slots: Slots, chunk: int) -> IndexRun:
    keys, nulls = form.keys_of(part.columns)
    chunks = frozenset((chunk,))
    if isinstance(keys, np.ndarray):
        if nulls is None:
            order = np.argsort(keys)
            return WordRun(keys[order], slots[order], chunks)
        known = np.flatnonzero(~nulls)
        order = known[np.argsort(keys[known])]
        return WordRun(keys[order], np.concatenate([slots[order], slots[nulls]]), chunks)
    indexes = pc.array_sort_indices(keys)
    return StringRun(_whole(keys.take(indexes)), slots[indexes.to_numpy()], chunks)


def merge(
    form: KeyForm, runs: Sequence[IndexRun], alive: frozenset[int], chunks: frozenset[int]
) -> Iterator[IndexRun | None]:
    """One run of the entries of several whose chunks are ``alive``, in slices; the last thing that
    comes is the run. ``chunks`` are those that it is to cover."""
    stale = any(run.chunks - alive for run in runs)
    numbers = np.array(sorted(alive), dtype=np.int64) if stale else None
    parts: list[tuple[Words | pa.Array, Slots]] = []
    nulls: list[Slots] = []
    for ranges in _slices(runs, WORD_SLICE if form.words else STRING_SLICE):
        if form.words:
            parts.append(_merged_words(ranges, numbers))
        else:
            parts.append(_merged_strings(ranges, numbers))
        yield None
    slots = [slots for _, slots in parts]
    if form.words:
        for run in runs:
            assert isinstance(run, WordRun)
            nulls.append(_alive(run.slots[len(run.words) :], numbers))
        words = [keys for keys, _ in parts]
        yield WordRun(_joined(words), _joined([*slots, *nulls]), chunks)
        return
    keys = [keys for keys, _ in parts]
    strings = _whole(pa.concat_arrays(keys) if keys else pa.array([], pa.large_binary()))
    yield StringRun(strings, _joined(slots), chunks)


def _slices(runs: Sequence[IndexRun], size: int) -> Iterator[list[tuple[IndexRun, int, int]]]:
    """Ranges of positions of all runs that hold the same keys, about ``size`` entries at a time
    (more where a key repeats more often)."""
    counts = [len(run.words) if isinstance(run, WordRun) else len(run) for run in runs]
    longest = max(range(len(runs)), key=counts.__getitem__)
    step = max(1, size * counts[longest] // max(sum(counts), 1))
    starts = [0] * len(runs)
    position = step
    while any(start < count for start, count in zip(starts, counts, strict=True)):
        if position < counts[longest]:
            bound = runs[longest].bounds(position, position + 1)[0]
            stops = [min(run.place(bound), count) for run, count in zip(runs, counts, strict=True)]
        else:
            stops = counts
        yield list(zip(runs, starts, stops, strict=True))
        starts = stops
        position += step


def _merged_words(
    ranges: list[tuple[IndexRun, int, int]], alive: Slots | None
) -> tuple[Words, Slots]:
    words: list[npt.NDArray[np.int64]] = []
    slots: list[Slots] = []
    for run, start, stop in ranges:
        assert isinstance(run, WordRun)
        part, where = run.words[start:stop], run.slots[start:stop]
        if alive is not None:
            kept = np.isin(where >> OFFSET_BITS, alive)
            part, where = part[kept], where[kept]
        words.append(part)
        slots.append(where)
    all_words, all_slots = np.concatenate(words), np.concatenate(slots)
    order = np.argsort(all_words, kind="stable")
    return all_words[order], all_slots[order]


def _merged_strings(
    ranges: list[tuple[IndexRun, int, int]], alive: Slots | None
) -> tuple[pa.Array, Slots]:
    keys: list[pa.Array] = []
    slots: list[Slots] = []
    for run, start, stop in ranges:
        assert isinstance(run, StringRun)
        part, where = run.keys.slice(start, stop - start), run.slots[start:stop]
        if alive is not None:
            kept = np.isin(where >> OFFSET_BITS, alive)
            part, where = part.filter(pa.array(kept)), where[kept]
        keys.append(part)
        slots.append(where)
    together = pa.concat_arrays(keys)
    indexes = pc.array_sort_indices(together)
    return together.take(indexes), np.concatenate(slots)[indexes.to_numpy()]


def _alive(slots: Slots, alive: Slots | None) -> Slots:
    return slots if alive is None else slots[np.isin(slots >> OFFSET_BITS, alive)]


def _joined(arrays: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)


def _whole(keys: pa.Array) -> pa.Array:
    """The array with buffers of its own that begin at its first value."""
    if keys.offset or keys.null_count:
        return pa.concat_arrays([keys, keys.slice(0, 0)])
    return keys
