"""Compares two copies of partitions by the versions of rows that they have, so that only what
differs need be sent. Pure, and for any thread.

A version is told apart by the hash of its key, its begin and its end: within one generation of a
partition, a commit timestamp names one write of a key. Versions are put into *buckets* by their
partitions and the first bits of their hashes. One copy sends a digest of each bucket; for the
buckets whose digests differ it sends what tells its versions apart; the other one finds out which
of them are void there, and which of its own are lacking. A row that was removed meanwhile is void
like everything that only one side has, so no record of removals is needed, however long ago they
were.

Keys with equal hashes are no exception: where the two copies do not have a version equally often,
all versions of that description are void, and all are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from remuda.storage.chunks.chunk import Flags, Offsets, Times
from remuda.storage.chunks.keys import Hashes, KeyRule
from remuda.storage.maps.transfer import Extraction, Versions

Digests: TypeAlias = npt.NDArray[np.uint64]
Buckets: TypeAlias = npt.NDArray[np.int64]

BUCKET_ROWS: Final = 32
"""Versions of a bucket, about: each that has changed costs so many descriptions, and each that has
not its share of a digest."""
BUCKETS_MAX: Final = 1 << 17
"""Of one comparison."""
WORD: Final = "<u8"
_NO_TIMES: Final = np.empty(0, dtype=np.int64)
_FACTORS: Final = tuple(
    np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True, slots=True)
class Marks:
    """The words that tell versions apart."""

    hashes: Hashes
    begins: Times
    ends: Times

    def __len__(self) -> int:
        return len(self.hashes)

    def where(self, chosen: Flags | Offsets) -> Marks:
        return Marks(self.hashes[chosen], self.begins[chosen], self.ends[chosen])

    def to_bytes(self) -> bytes:
        """Three runs of little-endian words of 64 bits: hashes, begins, ends."""
        columns = (self.hashes, self.begins.view(np.uint64), self.ends.view(np.uint64))
        return b"".join(column.astype(WORD).tobytes() for column in columns)

    @classmethod
    def from_bytes(cls, data: bytes) -> Marks:
        if not data:
            return cls(np.empty(0, dtype=np.uint64), _NO_TIMES, _NO_TIMES)
        hashes, begins, ends = np.frombuffer(data, dtype=WORD).astype(np.uint64).reshape(3, -1)
        return cls(hashes, begins.view(np.int64), ends.view(np.int64))


def bucket_bits(rows: int, partitions: int) -> int:
    """How many bits of a hash choose the bucket within a partition."""
    wanted = max(1, rows // max(1, partitions) // BUCKET_ROWS)
    most = max(1, BUCKETS_MAX // max(1, partitions))
    return max(0, min(wanted, most).bit_length() - 1)


class Inventory:
    """The versions that an extraction has, all of one moment: a version that ended later is shown
    as it was. ``partitions``: those that are compared, in order."""

    def __init__(self, extraction: Extraction, partitions: Sequence[int]) -> None:
        self._extraction = extraction
        keys = KeyRule(extraction.schema)
        pieces = list(extraction.descriptions())
        self._pieces = [(piece.chunk, piece.offsets) for piece in pieces]
        hashes = [keys.hashes_of(piece.keys.columns) for piece in pieces]
        self.marks = Marks(
            np.concatenate([np.empty(0, dtype=np.uint64), *hashes]),
            np.concatenate([_NO_TIMES, *(piece.begins for piece in pieces)]),
            np.concatenate([_NO_TIMES, *(piece.ends for piece in pieces)]),
        )
        places = np.zeros(max(partitions, default=0) + 1, dtype=np.int64)
        places[list(partitions)] = np.arange(len(partitions))
        of_rows = [places[piece.chunk.partitions[piece.offsets]] for piece in pieces]
        self._places = np.concatenate([_NO_TIMES, *of_rows])
        self._partitions = len(partitions)

    def __len__(self) -> int:
        return len(self.marks)

    def _buckets(self, bits: int) -> Buckets:
        if bits == 0:
            return self._places
        first = self.marks.hashes >> np.uint64(64 - bits)
        return (self._places << bits) | first.astype(np.int64)

    def digests(self, bits: int) -> Digests:
        """One of each bucket; 0 of an empty one. The order of the versions does not matter."""
        found = np.zeros(self._partitions << bits, dtype=np.uint64)
        if len(self):
            buckets = self._buckets(bits)
            order = np.argsort(buckets, kind="stable")
            ordered = buckets[order]
            starts = np.flatnonzero(np.diff(ordered, prepend=-1))
            found[ordered[starts]] = np.add.reduceat(_mixed(self.marks)[order], starts)
        return found

    def inside(self, bits: int, buckets: Buckets) -> Flags:
        """Which of the versions are in some buckets."""
        wanted = np.zeros(self._partitions << bits, dtype=np.bool_)
        wanted[buckets] = True
        return wanted[self._buckets(bits)]

    def versions(self, chosen: Flags) -> Iterator[Versions]:
        """Some of the versions, with their rows."""
        start = 0
        for chunk, offsets in self._pieces:
            stop = start + len(offsets)
            flags = chosen[start:stop]
            if flags.any():
                some = self.marks
                yield Versions(
                    self._extraction.schema,
                    self._extraction.rows(chunk, offsets[flags]),
                    some.begins[start:stop][flags],
                    some.ends[start:stop][flags],
                )
            start = stop


def _mixed(marks: Marks) -> Digests:
    """A number for each version that any difference changes altogether."""
    mixed = np.zeros(len(marks), dtype=np.uint64)
    times = (marks.begins.view(np.uint64), marks.ends.view(np.uint64))
    for column, factor in zip((marks.hashes, *times), _FACTORS, strict=True):
        mixed = (mixed ^ column) * factor
        mixed ^= mixed >> np.uint64(29)
        mixed *= _FACTORS[0]
        mixed ^= mixed >> np.uint64(32)
    return mixed


def differing(mine: Digests, theirs: Digests) -> Buckets:
    """The buckets that are not alike."""
    return np.flatnonzero(mine != theirs)


def compared(mine: Marks, theirs: Marks) -> tuple[Flags, Flags]:
    """Of two copies of some buckets: which versions of mine are lacking there, and which of theirs
    are void."""
    hashes = np.concatenate([mine.hashes, theirs.hashes])
    begins = np.concatenate([mine.begins, theirs.begins])
    ends = np.concatenate([mine.ends, theirs.ends])
    if not len(hashes):
        nothing = np.zeros(0, dtype=np.bool_)
        return nothing, nothing
    order = np.lexsort((ends, begins, hashes))
    fresh = np.zeros(len(order), dtype=np.bool_)
    fresh[0] = True
    for column in (hashes, begins.view(np.uint64), ends.view(np.uint64)):
        ordered = column[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    groups = np.cumsum(fresh) - 1
    side = np.where(order < len(mine), 1, -1)
    uneven = np.bincount(groups, weights=side) != 0
    alike = np.empty(len(order), dtype=np.bool_)
    alike[order] = ~uneven[groups]
    return ~alike[: len(mine)], ~alike[len(mine) :]
