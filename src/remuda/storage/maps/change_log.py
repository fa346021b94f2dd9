"""The changes of one map on one member, read from the begins and ends of its versions.

Every change leaves its timestamp on a version: the row that it wrote begins there, the row that it
replaced or removed ends there. (So do handovers of partitions; their timestamps are marked.) So a
log needs no help from writers. A reader of the changes in (low, high] looks for begins and ends in
between, as long as ``high`` is *closed* (nothing can commit at or below it any more) and ``low`` is
not below the floor of the store (what ended before has been collected). A ``ChangeLog`` keeps what
it has found for others who ask, and looks again only at chunks that have changed since.

Changes have one order, the same on every member: by timestamp, partition, hash of the key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.timestamp import EXPIRY_MARK, FOREVER, HANDOVER_MARK
from remuda.storage.chunks.chunk import Chunk, Flags, Offsets, Times
from remuda.storage.chunks.keys import Hashes, Key, KeyRule
from remuda.storage.chunks.layout import Layouts
from remuda.storage.maps.transfer import Extraction

ENTRIES_MAX = 4_000_000
"""Changes that a log remembers; those before are read from the versions again, if need be."""
NONE = -1
"""In the place of a row: there is none."""
_ENDED, _BEGUN = 0, 1

Place = tuple[int, int, int]
"""In the order of changes: timestamp, partition, hash of the key."""
Slots = npt.NDArray[np.int64]
Partitions = npt.NDArray[np.uint16]


@dataclass(slots=True)
class Changes:
    """Changes in their order. ``old`` and ``new`` say where the rows are: the number of one of
    ``chunks`` shifted left by 32, plus the offset; ``NONE`` where there is no row."""

    chunks: list[Chunk]
    times: Times
    partitions: Partitions
    hashes: Hashes
    old: Slots
    new: Slots

    def __len__(self) -> int:
        return len(self.times)

    def where(self, chosen: Flags) -> Changes:
        if chosen.all():
            return self
        return Changes(
            self.chunks,
            self.times[chosen],
            self.partitions[chosen],
            self.hashes[chosen],
            self.old[chosen],
            self.new[chosen],
        )

    def slice(self, start: int, stop: int) -> Changes:
        return Changes(
            self.chunks,
            self.times[start:stop],
            self.partitions[start:stop],
            self.hashes[start:stop],
            self.old[start:stop],
            self.new[start:stop],
        )

    def first(self, count: int) -> Changes:
        """The first ones, at least ``count`` if there are so many: those of one place in the order
        are never torn apart."""
        return self.slice(0, self.whole(count))

    def whole(self, count: int) -> int:
        """The next number from ``count`` on that tears no place apart."""
        total = len(self)
        while 0 < count < total and self._same_place(count - 1, count):
            count += 1
        return min(count, total)

    def after(self, place: Place) -> int:
        """How many of these, which are in order, come before a place or are at it."""
        time, partition, hash_ = place
        low, high = (int(np.searchsorted(self.times, time, side)) for side in ("left", "right"))
        inside = self.partitions[low:high]
        first, last = (int(np.searchsorted(inside, partition, side)) for side in ("left", "right"))
        hashes = self.hashes[low + first : low + last]
        return low + first + int(np.searchsorted(hashes, np.uint64(hash_), "right"))

    def place(self, index: int) -> Place:
        return int(self.times[index]), int(self.partitions[index]), int(self.hashes[index])

    def _same_place(self, a: int, b: int) -> bool:
        return bool(
            self.times[a] == self.times[b]
            and self.partitions[a] == self.partitions[b]
            and self.hashes[a] == self.hashes[b]
        )

    def rows(self, slots: Slots, layouts: Layouts) -> pa.RecordBatch:
        """The rows at some slots, none of them ``NONE``, in that order."""
        schema = engine_schema(layouts.schema)
        if not len(slots):
            return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        numbers = slots >> 32
        offsets = slots & 0xFFFFFFFF
        parts, places = [], []
        for number in np.unique(numbers).tolist():
            here = np.flatnonzero(numbers == number)
            chunk, inside = self.chunks[number], offsets[here]
            count = int(inside.max()) + 1 if chunk.tuples is not None else chunk.length
            parts.append(layouts.columns(chunk, count).take(pa.array(inside)))
            places.append(here)
        if len(parts) == 1:
            return parts[0]
        whole = pa.concat_batches(parts)
        back = np.empty(len(slots), dtype=np.int64)
        back[np.concatenate(places)] = np.arange(len(slots))
        return whole.take(pa.array(back))


def joined(parts: Sequence[Changes]) -> Changes:
    """Changes of periods that follow each other."""
    if len(parts) == 1:
        return parts[0]
    chunks: list[Chunk] = []
    old, new = [], []
    for part in parts:
        shift = len(chunks) << 32
        chunks.extend(part.chunks)
        old.append(np.where(part.old == NONE, NONE, part.old + shift))
        new.append(np.where(part.new == NONE, NONE, part.new + shift))
    if not parts:
        return _found([], [], 0)
    return Changes(
        chunks,
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.partitions for part in parts]),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate(old),
        np.concatenate(new),
    )


def in_order(changes: Changes) -> Changes:
    """The same changes in their order."""
    order = np.lexsort((changes.hashes, changes.partitions, changes.times))
    return Changes(
        changes.chunks,
        changes.times[order],
        changes.partitions[order],
        changes.hashes[order],
        changes.old[order],
        changes.new[order],
    )


class Scan:
    """A look at chunks for what has happened in (``low``, ``high``]: made by the loop, ``run`` on
    any thread."""

    def __init__(
        self,
        chunks: Sequence[tuple[Chunk, int]],
        layouts: Layouts,
        rule: KeyRule,
        low: int,
        high: int,
    ) -> None:
        self.low, self.high = low, high
        self.rows = sum(count for _, count in chunks)
        self._chunks = [(chunk, count, _stamp(chunk, count)) for chunk, count in chunks]
        self._layouts = layouts
        self._rule = rule
        self.found: Changes
        self.seen: dict[int, _Seen] = {}

    def run(self) -> Scan:
        chunks = [(chunk, count) for chunk, count, _ in self._chunks]
        self.found = changes_of(chunks, self._layouts, self._rule, self.low, self.high)
        # What the loop has changed meanwhile lies above `high`, and gives another stamp.
        for chunk, count, stamp in self._chunks:
            self.seen[chunk.base] = (*stamp, _next(chunk, count, self.high))
        return self


class ChangeLog:
    """The changes in (``low``, ``high``]; on the loop alone."""

    def __init__(self, high: int) -> None:
        self.low = self.high = high
        self._periods: deque[tuple[int, Changes]] = deque()
        """With the high end of each."""
        self._seen: dict[int, _Seen] = {}
        self._rule: KeyRule | None = None
        self.entries = 0

    def ahead(self, pinned: Extraction, high: int) -> Scan:
        """The step that finds the changes until ``high``, which is closed, for ``take``."""
        seen: dict[int, _Seen] = {}
        dirty: list[tuple[Chunk, int]] = []
        for chunk, count in pinned.chunks:
            known = self._seen.get(chunk.base)
            if known is None or known[3] <= high or known[:3] != _stamp(chunk, count):
                dirty.append((chunk, count))
            else:
                seen[chunk.base] = known
        self._seen = seen
        return Scan(dirty, pinned.layouts, self._rule_of(pinned.layouts), self.high, high)

    def behind(self, pinned: Extraction, low: int) -> Scan:
        """The same back to ``low``, which is not below the floor of the store."""
        rule = self._rule_of(pinned.layouts)
        return Scan(pinned.chunks, pinned.layouts, rule, low, self.low)

    def take(self, scan: Scan) -> bool:
        """Keep what has been found at one of the ends; whether there was anything."""
        found = scan.found
        if scan.low == self.high:
            self.high = max(self.high, scan.high)
            self._seen |= scan.seen
            if len(found):
                self._periods.append((scan.high, found))
        elif scan.high == self.low:
            if len(found):
                self._periods.appendleft((self.low, found))
            self.low = min(self.low, scan.low)
        else:
            return False
        self.entries += len(found)
        return len(found) > 0

    def advance(self, pinned: Extraction, high: int) -> bool:
        """``ahead`` and ``take`` at once."""
        return high > self.high and self.take(self.ahead(pinned, high).run())

    def reach(self, pinned: Extraction, low: int) -> None:
        """``behind`` and ``take`` at once."""
        if low < self.low:
            self.take(self.behind(pinned, low).run())

    def since(self, low: int) -> Iterator[Changes]:
        """The changes in (``low``, ``high``], period by period; ``low`` is not below that of
        the log."""
        for high, changes in self._periods:
            if high > low:
                yield changes

    def forget(self, low: int) -> None:
        """Nobody asks for what was at or below ``low``; nor for what is more than may be kept."""
        while self._periods and (
            self._periods[0][0] <= low or (self.entries > ENTRIES_MAX and len(self._periods) > 1)
        ):
            high, changes = self._periods.popleft()
            self.entries -= len(changes)
            self.low = max(self.low, high)

    def _rule_of(self, layouts: Layouts) -> KeyRule:
        rule = self._rule
        if rule is None or rule.schema is not layouts.schema:
            rule = self._rule = KeyRule(layouts.schema)
        return rule


def changes_of(  # noqa: PLR0917 (where, how, when)
    chunks: Sequence[tuple[Chunk, int]],
    layouts: Layouts,
    rule: KeyRule,
    low: int,
    high: int,
    partitions: Flags | None = None,
) -> Changes:
    """The changes in (``low``, ``high``] in chunks, of which so many rows count."""
    sources: list[Chunk] = []
    pieces: list[_Piece] = []
    for chunk, count in chunks:
        if not count or (chunk.begin <= low and not chunk.closed):
            continue
        begins, ends = _times(chunk, count)
        alive = begins < ends
        begun = (begins > low) & (begins <= high) & alive
        ended = (ends > low) & (ends <= high) & alive
        if partitions is not None:
            inside = partitions[chunk.partitions[:count]]
            begun &= inside
            ended &= inside
        for kind, flags, times in ((_ENDED, ended, ends), (_BEGUN, begun, begins)):
            offsets = np.flatnonzero(flags)
            # Where a partition was given away and came back, nothing has happened to its rows.
            offsets = offsets[times[offsets] & EXPIRY_MARK != HANDOVER_MARK]
            if len(offsets):
                if not sources or sources[-1] is not chunk:
                    sources.append(chunk)
                place = (len(sources) - 1 << 32) + offsets
                pieces.append(_piece(chunk, count, offsets, place, times, kind, layouts, rule))
    found = _found(sources, pieces, len(pieces))
    return found if rule.exact else _checked(found, layouts, rule)


@dataclass(slots=True)
class _Piece:
    """Versions of one chunk that began, or that ended."""

    kind: int
    times: Times
    partitions: Partitions
    hashes: Hashes
    slots: Slots


def _piece(  # noqa: PLR0917 (of a chunk: which rows, and how to read them)
    chunk: Chunk,
    count: int,
    offsets: Offsets,
    slots: Slots,
    times: Times,
    kind: int,
    layouts: Layouts,
    rule: KeyRule,
) -> _Piece:
    batch = layouts.columns(chunk, count)
    if len(offsets) < count:
        batch = batch.take(pa.array(offsets))
    return _Piece(kind, times[offsets], chunk.partitions[offsets], rule.hashes(batch), slots)


def _times(chunk: Chunk, count: int) -> tuple[Times, Times]:
    begins = chunk.begins
    if begins is None:
        begins = np.full(count, chunk.begin, dtype=np.int64)
    ends = chunk.ends
    if ends is None:
        ends = np.full(count, chunk.end, dtype=np.int64)
    return begins[:count], ends[:count]


_Seen = tuple[int, int, int, int]
"""Of a chunk: its rows, closed and reclosed ones when it was looked at last, and the first begin or
end that was still to come."""


def _stamp(chunk: Chunk, count: int) -> tuple[int, int, int]:
    """Another one when something has begun, or has got another end."""
    return count, chunk.closed, chunk.reclosed


def _next(chunk: Chunk, count: int, high: int) -> int:
    """The first begin or end in a chunk after ``high``: rows may end by themselves later, and rows
    that were written after ``high`` are there already."""
    if not count:
        return FOREVER
    begins, ends = _times(chunk, count)
    first_begin = int(begins[begins > high].min(initial=FOREVER)) if chunk.begin > high else FOREVER
    later = ends[ends > high]
    return min(first_begin, int(later.min(initial=FOREVER)))


def _found(sources: list[Chunk], pieces: Sequence[_Piece], count: int) -> Changes:
    """One change for what ended and what began at one time under one hash."""
    if not count:
        empty = np.empty(0, dtype=np.int64)
        return Changes(
            [],
            empty,
            np.empty(0, dtype=np.uint16),
            np.empty(0, dtype=np.uint64),
            empty,
            empty,
        )
    times = np.concatenate([piece.times for piece in pieces])
    partitions = np.concatenate([piece.partitions for piece in pieces])
    hashes = np.concatenate([piece.hashes for piece in pieces])
    slots = np.concatenate([piece.slots for piece in pieces])
    kinds = np.concatenate([np.full(len(p.times), p.kind, dtype=np.int8) for p in pieces])
    order = np.lexsort((kinds, hashes, partitions, times))
    times, partitions, hashes = times[order], partitions[order], hashes[order]
    slots, kinds = slots[order], kinds[order]
    paired = np.zeros(len(times), dtype=np.bool_)
    paired[1:] = (
        (times[1:] == times[:-1])
        & (partitions[1:] == partitions[:-1])
        & (hashes[1:] == hashes[:-1])
        & (kinds[1:] == _BEGUN)
        & (kinds[:-1] == _ENDED)
    )
    old = np.where(kinds == _ENDED, slots, NONE)
    new = np.where(kinds == _BEGUN, slots, NONE)
    new[:-1][paired[1:]] = slots[1:][paired[1:]]
    kept = ~paired
    return Changes(sources, times[kept], partitions[kept], hashes[kept], old[kept], new[kept])


def _checked(changes: Changes, layouts: Layouts, rule: KeyRule) -> Changes:
    """Other keys may have the same hash: the rows of a pair must have one key."""
    same = np.zeros(len(changes), dtype=np.bool_)
    if len(changes) > 1:
        same[1:] = (
            (changes.times[1:] == changes.times[:-1])
            & (changes.partitions[1:] == changes.partitions[:-1])
            & (changes.hashes[1:] == changes.hashes[:-1])
        )
        same[:-1] |= same[1:]
    both = np.flatnonzero((changes.old != NONE) & (changes.new != NONE))
    wrong = same.copy()
    if len(both):
        olds = rule.columns(changes.rows(changes.old[both], layouts))
        news = rule.columns(changes.rows(changes.new[both], layouts))
        wrong[both[~_equal(olds, news)]] = True
    if not wrong.any():
        return changes
    return _paired_by_key(changes, wrong, layouts, rule)


def _equal(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Flags:
    """Row by row, over all columns; NaN is equal to NaN."""
    result = np.ones(len(left[0]), dtype=np.bool_)
    for one, other in zip(left, right, strict=True):
        same = pc.equal(one, other)
        if pa.types.is_floating(one.type):
            same = pc.or_(same, pc.and_(pc.is_nan(one), pc.is_nan(other)))
        result &= same.to_numpy(zero_copy_only=False)
    return result


def _paired_by_key(changes: Changes, wrong: Flags, layouts: Layouts, rule: KeyRule) -> Changes:
    """Put the changes that are ``wrong`` together once more, by their keys."""
    apart = changes.where(wrong)
    slots: dict[tuple[tuple[int, int, int], Key], list[int]] = {}
    for column in (apart.old, apart.new):
        present = np.flatnonzero(column != NONE)
        keys = rule.keys_of(
            rule.columns(changes.rows(column[present], layouts)), list(range(len(present)))
        )
        for place, key in zip(present.tolist(), keys, strict=True):
            at = (int(apart.times[place]), int(apart.partitions[place]), int(apart.hashes[place]))
            rows = slots.setdefault((at, key), [NONE, NONE])
            rows[0 if column is apart.old else 1] = int(column[place])
    right = Changes(
        changes.chunks,
        np.array([at[0] for at, _ in slots], dtype=np.int64),
        np.array([at[1] for at, _ in slots], dtype=np.uint16),
        np.array([at[2] for at, _ in slots], dtype=np.uint64),
        np.array([rows[0] for rows in slots.values()], dtype=np.int64),
        np.array([rows[1] for rows in slots.values()], dtype=np.int64),
    )
    rest = changes.where(~wrong)
    return in_order(
        Changes(
            changes.chunks,
            np.concatenate([rest.times, right.times]),
            np.concatenate([rest.partitions, right.partitions]),
            np.concatenate([rest.hashes, right.hashes]),
            np.concatenate([rest.old, right.old]),
            np.concatenate([rest.new, right.new]),
        )
    )
