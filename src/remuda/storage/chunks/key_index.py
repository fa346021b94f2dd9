"""The key index: key hashes -> slots, as sorted runs with a small dict in front.

Every stored version of every key has one entry (hash, slot); which version a reader sees is decided
by the begin and end timestamps of the slots, so the index needs no chains and no order between
entries. Single puts go to the *delta*, a dict. Bulk loads and full deltas become *runs*: two
parallel arrays sorted by hash. Runs are merged in tiers, small ones at once, large ones in slices
by ``merge``. See docs/decisions/0001-key-index-sorted-hashes.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from remuda.datatypes.timestamp import FOREVER
from remuda.errors import InternalError
from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK
from remuda.storage.chunks.chunk_table import ChunkTable
from remuda.storage.chunks.keys import Key, KeyRule

Hashes: TypeAlias = npt.NDArray[np.uint64]
Slots: TypeAlias = npt.NDArray[np.int64]
Positions: TypeAlias = npt.NDArray[np.int64]

NOWHERE: Final = -1
"""The slot of an entry whose version has been collected."""

REWRITES_MET_MAX = 100
"""So often a lookup on another thread starts again because upkeep was faster."""

DELTA_ENTRIES: Final = 32 * 1024
"""``maintain`` turns a delta of this size into a run."""
DELTA_ENTRIES_MAX: Final = 4 * DELTA_ENTRIES
TIER: Final = 4
"""A run is merged into its older neighbour unless that one is more than this many times longer."""
SMALL_MERGE: Final = 64 * 1024
"""Merges of up to this many entries happen at once (about 2 ms)."""
SLICE_ENTRIES: Final = 128 * 1024
RUNS_MAX: Final = 16

_BUCKET_BITS: Final = 2  # a directory bucket holds 2 to 4 entries on average
_HASH_BITS: Final = 64
_NONE: Final = np.empty(0, dtype=np.int64)


class Run:
    """Entries sorted by hash, with a directory from the top bits of a hash to its bucket of
    entries.
    """

    __slots__ = ("dead", "directory", "hash_view", "hashes", "shift", "slot_view", "slots", "until")

    def __init__(
        self, hashes: Hashes, slots: Slots, directory: npt.NDArray[np.uint32] | None = None
    ) -> None:
        self.hashes = hashes
        self.slots = slots
        self.hash_view = hashes.data
        self.slot_view = slots.data
        self.dead = 0
        self.until = FOREVER
        """Every version in this run has ended then: the map was replaced."""
        self.shift = _HASH_BITS - directory_bits(len(hashes))
        if directory is None:
            directory = np.empty((1 << directory_bits(len(hashes))) + 1, dtype=np.uint32)
            directory[0] = 0
            _fill_directory(directory, hashes, self.shift, 0, len(directory) - 1, 0)
        self.directory = directory.data

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        return self.hashes.nbytes + self.slots.nbytes + self.directory.nbytes

    def find(self, key_hash: int) -> int:
        """The position of the first entry with this hash, or -1."""
        bucket = key_hash >> self.shift
        stop = self.directory[bucket + 1]
        position = bisect_left(self.hash_view, key_hash, self.directory[bucket], stop)
        return position if position < stop and self.hash_view[position] == key_hash else -1

    def match(self, hashes: Hashes) -> tuple[Positions, Positions]:
        """All pairs (index into the sorted ``hashes``, position in this run) with equal hashes."""
        last = len(self.hashes) - 1
        first = np.searchsorted(self.hashes, hashes)
        rows = np.flatnonzero(self.hashes[np.minimum(first, last)] == hashes)
        if not len(rows):
            return _NONE, _NONE
        first = first[rows]
        wanted = hashes[rows]
        following = np.minimum(first + 1, last)
        if not (self.hashes[following[following > first]] == wanted[following > first]).any():
            return rows, first
        counts = np.searchsorted(self.hashes, wanted, side="right") - first
        return np.repeat(rows, counts), expand(first, counts)


def expand(first: Positions, counts: Positions) -> Positions:
    """The positions first[0], first[0]+1, ... (counts[0] of them), first[1], ..."""
    ends = np.cumsum(counts)
    result: Positions = np.arange(int(ends[-1])) + np.repeat(first - (ends - counts), counts)
    return result


def directory_bits(entries: int) -> int:
    """How many top bits of a hash select a bucket, for a run of so many entries; at least 1."""
    return max(1, entries.bit_length() - _BUCKET_BITS)


def _fill_directory(  # noqa: PLR0917 (ranges come in pairs)
    directory: npt.NDArray[np.uint32], hashes: Hashes, shift: int, low: int, high: int, start: int
) -> None:
    """Entries low+1 .. high of a directory, for the hashes of these buckets that begin at
    ``start``.
    """
    buckets = (hashes >> np.uint64(shift)).astype(np.int64) - low
    counts = np.bincount(buckets, minlength=high - low)
    np.add(np.cumsum(counts), start, out=directory[low + 1 : high + 1], casting="unsafe")


class KeyIndex:
    """The delta and the runs. Only the event loop changes it.

    Other threads look single hashes up: first in ``delta``, then in ``runs``, each read once. A
    delta that becomes a run is in ``runs`` before it is out of ``delta``, and ``runs`` is replaced
    as a whole. A slot that they find may point to a chunk that has been rewritten since (its number
    is gone): then they look again.
    """

    def __init__(self) -> None:
        self.delta: dict[int, int | list[int]] = {}
        self.delta_entries = 0
        self.runs: tuple[Run, ...] = ()
        """From the oldest to the newest."""
        self.generation = 0
        """Grows whenever a run is replaced: positions found before are void."""
        self.epoch = 0
        """Grows whenever a run gets new entries or slots: matches found before are void."""
        self._busy: set[int] = set()

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs) + self.delta_entries * 200

    def slots(self, key_hash: int) -> list[int]:
        """All slots with this hash, collected ones left out."""
        entry = self.delta.get(key_hash)
        found = [] if entry is None else [entry] if isinstance(entry, int) else entry[::-1]
        for run in reversed(self.runs):
            position = run.find(key_hash)
            if position >= 0:
                view, hashes, size = run.slot_view, run.hash_view, len(run)
                while position < size and hashes[position] == key_hash:
                    if view[position] != NOWHERE:
                        found.append(view[position])
                    position += 1
        return found

    def add(self, key_hash: int, slot: int) -> None:
        """One entry; the caller adds a slot only once."""
        delta = self.delta
        other = delta.setdefault(key_hash, slot)
        if other != slot:
            if isinstance(other, int):
                delta[key_hash] = [other, slot]
            else:
                other.append(slot)
        self.delta_entries += 1

    def add_sorted(self, hashes: Hashes, slots: Slots) -> None:
        """Many entries, sorted by hash."""
        if len(hashes):
            self.add_run(Run(hashes, slots))

    def add_run(self, run: Run) -> None:
        self.runs = (*self.runs, run)
        self.epoch += 1
        self._merge_small()

    @property
    def stamp(self) -> tuple[int, bool]:
        """Matches found at the same stamp are still all there are."""
        return self.epoch, bool(self.delta)

    def end_all(self, timestamp: int) -> None:
        """Every version has ended at ``timestamp``: the map is being replaced. Nothing is merged
        with these runs any more, and they are dropped as they are.
        """
        self.freeze()
        for run in self.runs:
            run.until = min(run.until, timestamp)

    def drop_ended(self, horizon: int) -> None:
        """Drop whole runs without a version that anyone can still read."""
        kept = tuple(r for r in self.runs if r.until > horizon and r.dead < len(r))
        if len(kept) < len(self.runs):
            self.runs = kept
            self.generation += 1

    @property
    def live_runs(self) -> int:
        return sum(run.until == FOREVER for run in self.runs)

    def match(self, hashes: Hashes) -> Iterator[tuple[Positions, Slots]]:
        """Pairs (index into the sorted ``hashes``, slot) with equal hashes, run by run.

        The delta becomes a run first.
        """
        self.freeze()
        return match_runs(self.runs, hashes)

    # --- upkeep ---

    def freeze(self) -> None:
        """Turn the delta into a run."""
        delta = self.delta
        if not delta:
            return
        hashes = np.fromiter(delta.keys(), dtype=np.uint64, count=len(delta))
        if self.delta_entries == len(delta):
            slots = np.fromiter(delta.values(), dtype=np.int64, count=len(delta))
        else:
            lists = [[entry] if isinstance(entry, int) else entry for entry in delta.values()]
            counts = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
            hashes = np.repeat(hashes, counts)
            slots = np.fromiter(
                (slot for entry in lists for slot in entry), np.int64, count=len(hashes)
            )
        order = np.argsort(hashes, kind="stable")
        self.add_sorted(hashes[order], slots[order])
        self.delta = {}
        self.delta_entries = 0

    def _merge_small(self) -> None:
        """Merge the newest runs while the result is small; keeps many small loads cheap."""
        while len(self.runs) > 1:
            older, newer = self.runs[-2], self.runs[-1]
            total = len(older) + len(newer)
            fits = total <= SMALL_MERGE and _belong_together(older, newer)
            if not fits or id(older) in self._busy or id(newer) in self._busy:
                return
            self._replace(
                [older, newer],
                Run(*_merged([older.hashes, newer.hashes], [older.slots, newer.slots])),
            )

    def _replace(self, old: Sequence[Run], new: Run) -> None:
        index = self.runs.index(old[0])
        put = (new,) if len(new) else ()
        new.until = max(run.until for run in old)
        self.runs = (*self.runs[:index], *put, *self.runs[index + len(old) :])
        self.generation += 1

    def wanted_merge(self) -> list[Run] | None:
        """The neighbouring runs that should become one now (or one run with many dead entries)."""
        for run in self.runs:
            if run.dead * 4 > len(run) and run.until == FOREVER:
                return [run]
        for index in range(len(self.runs) - 1, 0, -1):
            older, newer = self.runs[index - 1], self.runs[index]
            if _belong_together(older, newer):
                return [older, newer]
        return None

    def merge(self, runs: list[Run]) -> Iterator[None]:
        """Replace neighbouring runs by one, in slices of about ``SLICE_ENTRIES`` (a few ms each).

        Nothing may change the slots of these runs before the iterator is exhausted.
        """
        self._busy.update(map(id, runs))
        try:
            total = sum(map(len, runs))
            yield
            bits = directory_bits(total)
            shift = _HASH_BITS - bits
            directory = np.empty((1 << bits) + 1, dtype=np.uint32)
            directory[0] = 0
            hashes = np.empty(total, dtype=np.uint64)
            slots = np.empty(total, dtype=np.int64)
            count = max(1, min(1 << bits, 1 << (total // SLICE_ENTRIES).bit_length()))
            width = (1 << bits) // count
            filled = 0
            starts = [0] * len(runs)
            for piece in range(count):
                low, high = piece * width, (piece + 1) * width
                stops = [_first_at(run, high << shift) for run in runs]
                ranges = [slice(a, b) for a, b in zip(starts, stops, strict=True)]
                part, where = _merged(
                    [run.hashes[r] for run, r in zip(runs, ranges, strict=True)],
                    [run.slots[r] for run, r in zip(runs, ranges, strict=True)],
                )
                hashes[filled : filled + len(part)] = part
                slots[filled : filled + len(part)] = where
                _fill_directory(directory, part, shift, low, high, filled)
                filled += len(part)
                starts = stops
                yield
                if any(run.until != FOREVER for run in runs):
                    return  # replaced meanwhile: they will be dropped as they are
            if filled == total:
                self._replace(runs, Run(hashes, slots, directory))
            elif directory_bits(filled) == bits:
                self._replace(runs, Run(hashes[:filled].copy(), slots[:filled].copy(), directory))
            else:
                self._replace(runs, Run(hashes[:filled].copy(), slots[:filled].copy()))
        finally:
            self._busy.difference_update(map(id, runs))

    def find_entries(self, hashes: Hashes) -> list[tuple[Run, Positions]]:
        """The positions of all entries with one of these (sorted, unique) hashes, in every run."""
        found = []
        for run in self.runs:
            _, positions = run.match(hashes)
            if len(positions):
                found.append((run, positions))
        return found

    def relocate(self, entries: list[tuple[Run, Positions]], moved: Mapping[int, Slots]) -> None:
        """Point entries at new slots: ``moved[chunk number][offset]`` is the new slot or
        ``NOWHERE``.
        """
        for run, positions in entries:
            slots = run.slots[positions]
            chunks = slots >> OFFSET_BITS
            for number, targets in moved.items():
                chosen = np.flatnonzero(chunks == number)
                if len(chosen):
                    new = targets[slots[chosen] & OFFSET_MASK]
                    run.slots[positions[chosen]] = new
                    run.dead += int(np.count_nonzero(new == NOWHERE))
        self.epoch += 1

    def forget(self, chunks: Collection[int]) -> Iterator[None]:
        """Mark all entries of these chunks as collected, in slices of ``SLICE_ENTRIES``; nobody
        reads their rows any more.
        """
        self.freeze()
        numbers = np.fromiter(chunks, dtype=np.int64, count=len(chunks))
        done: list[Run] = []
        while todo := [run for run in self.runs if not any(run is other for other in done)]:
            run = todo[0]
            for start in range(0, len(run), SLICE_ENTRIES):
                part = run.slots[start : start + SLICE_ENTRIES]
                gone = np.isin(part >> OFFSET_BITS, numbers)
                run.dead += int(np.count_nonzero(gone))
                part[gone] = NOWHERE
                yield
            done.append(run)
        self.epoch += 1


def match_runs(runs: Sequence[Run], hashes: Hashes) -> Iterator[tuple[Positions, Slots]]:
    """Pairs (index into the sorted ``hashes``, slot) with equal hashes, run by run."""
    for run in runs:
        rows, positions = run.match(hashes)
        if len(rows):
            slots = run.slots[positions]
            if run.dead:
                alive = slots != NOWHERE
                rows, slots = rows[alive], slots[alive]
            yield rows, slots


def _belong_together(older: Run, newer: Run) -> bool:
    """Whether two neighbours should be one run."""
    alive = older.until == newer.until == FOREVER
    return alive and len(older) <= TIER * len(newer)


def _first_at(run: Run, bound: int) -> int:
    """The number of entries with a hash below ``bound`` (which may be 2**64)."""
    if bound >> _HASH_BITS:
        return len(run)
    return int(np.searchsorted(run.hashes, np.uint64(bound)))


def _merged(hashes: list[Hashes], slots: list[Slots]) -> tuple[Hashes, Slots]:
    """Sorted pieces as one, dead entries left out; a stable sort of sorted pieces is a merge."""
    all_hashes, all_slots = np.concatenate(hashes), np.concatenate(slots)
    alive = all_slots != NOWHERE
    if not alive.all():
        all_hashes, all_slots = all_hashes[alive], all_slots[alive]
    order = np.argsort(all_hashes, kind="stable")
    return all_hashes[order], all_slots[order]


class KeyLookup:
    """Where the version of a key lies that exists at a timestamp: on the path of each read and
    write of an entry. ``keys`` is the rule of the newest schema."""

    def __init__(self, keys: KeyRule, table: ChunkTable, index: KeyIndex) -> None:
        self.keys = keys
        self._table = table
        self._index = index

    def locate(self, key_hash: int, key: Key, at: int) -> int:
        """The slot of the version of ``key`` that exists at ``at``, or ``NOWHERE``."""
        for _ in range(REWRITES_MET_MAX):
            try:
                return self.search(key_hash, key, at)
            except KeyError:  # on another thread: its chunk has been rewritten just now
                continue
        name = self.keys.schema.name
        raise InternalError(f"the index of map {name} points to a chunk that is gone")

    def search(self, key_hash: int, key: Key, at: int) -> int:
        """The same, on the loop. On another thread it raises KeyError when a chunk has been
        rewritten just now."""
        index = self._index
        entry = index.delta.get(key_hash)
        if entry is not None:
            for slot in (entry,) if isinstance(entry, int) else reversed(entry):
                if self._is_version(slot, key, at):
                    return slot
        by_number = self._table.by_number
        exact = self.keys.exact
        for run in reversed(index.runs):  # `Run.find` and `_is_version` written out: the hot path
            if run.until <= at:
                continue
            directory, hashes = run.directory, run.hash_view
            bucket = key_hash >> run.shift
            stop = directory[bucket + 1]
            position = bisect_left(hashes, key_hash, directory[bucket], stop)
            while position < stop and hashes[position] == key_hash:
                slot = run.slot_view[position]
                position += 1
                if slot == NOWHERE:
                    continue
                chunk = by_number[slot >> OFFSET_BITS]
                offset = slot & OFFSET_MASK
                begins, ends = chunk.begin_view, chunk.end_view
                if (
                    (chunk.begin if begins is None else begins[offset]) <= at
                    and (chunk.end if ends is None else ends[offset]) > at
                    and (exact or self.keys.holds(chunk, offset, key))
                ):
                    return slot
        return NOWHERE

    def _is_version(self, slot: int, key: Key, at: int) -> bool:
        """Whether the row at ``slot`` exists at ``at`` and has this key (its hash does match)."""
        chunk = self._table.by_number[slot >> OFFSET_BITS]
        offset = slot & OFFSET_MASK
        begins, ends = chunk.begin_view, chunk.end_view
        return (
            (chunk.begin if begins is None else begins[offset]) <= at
            and (chunk.end if ends is None else ends[offset]) > at
            and (self.keys.exact or self.keys.holds(chunk, offset, key))
        )
