"""Rows of clients' jobs by *frame*: the rows that one request brought to one member. However often
and over whichever ways rows of a frame arrive at a store, each partition of it is staged once; and
they go from store to store as their partitions do (design rule 22)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from remuda.errors import JobAborted
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.staging.pieces import Piece, present
from remuda.storage.staging.removals import Removals
from remuda.storage.staging.staging import PreparedRows, Staging

PART_SHIFT = 128
FRAMES = 1 << PART_SHIFT
"""Frames are numbered below it; above it, the parts in which a frame came."""

Place: TypeAlias = tuple[str, int, bool]
"""Task, frame, and whether its rows are keys to be removed."""


@dataclass(frozen=True, slots=True)
class FramePart:
    job: str
    place: Place
    piece: Piece
    keys: KeyRule


class StagedFrames:
    """The staged rows of the jobs of clients, in the store's ``Staging`` and ``Removals``."""

    def __init__(self, staging: Staging, removals: Removals) -> None:
        self._staging = staging
        self._removals = removals
        self._moved: set[str] = set()

    @property
    def nbytes(self) -> int:
        """Estimated memory of all that is staged."""
        return self._staging.nbytes + self._removals.nbytes

    @property
    def unarranged_bytes(self) -> int:
        """Bytes that commits of jobs copy, besides ``nbytes``, before they drop the staged rows."""
        return sum(job.nbytes for job in self._staging.jobs.values() if job.prepared is None)

    @property
    def removal_bytes(self) -> int:
        """The part of ``nbytes`` of keys of rows that jobs will remove."""
        return self._removals.nbytes

    # --- one frame ---

    def stage(
        self,
        job: str,
        place: Place,
        batch: pa.RecordBatch,
        within: int = -1,
        has: int | None = None,
    ) -> bool:
        """Keep the rows whose partitions are among ``within`` and were not here before; whether
        there were any. ``has``: the partitions of the rows, if they are known. Raises JobAborted
        when the job takes no more, and the errors of ``KeyRule.check``."""
        keys = self._keys(job, removal=place[2])
        if not place[2]:
            keys.check(batch)
        hashes = keys.hashes(batch)
        if has is None:
            has = present(keys.partitions(batch, hashes))
        return self._add(job, place, Piece(batch, hashes, has, has & within), keys)

    def _add(self, job: str, place: Place, piece: Piece, keys: KeyRule) -> bool:
        if not self.open(job):
            raise JobAborted(f"job {job} is being committed and takes no more rows")
        task, frame, removal = place
        pieces = self._pieces(job, task, removal=removal, keys=keys)
        number = frame
        while number in pieces:
            piece.valid &= ~pieces[number].valid
            number += FRAMES
        if piece.valid:
            pieces[number] = piece
            if piece.valid != piece.has:
                self._moved.add(job)
        return bool(piece.valid)

    def _keys(self, job: str, *, removal: bool) -> KeyRule:
        return self._removals.keys_of(job) if removal else self._staging.keys_of(job)

    def _pieces(self, job: str, task: str, *, removal: bool, keys: KeyRule) -> dict[int, Piece]:
        if removal:
            return self._removals.pieces(job, task, keys)
        return self._staging.pieces(job, task, keys)

    # --- all of them ---

    def open(self, job: str) -> bool:
        """Whether the job may still be written, as far as this store knows."""
        return not (self._staging.closed(job) or self._removals.closed(job))

    def parts(self, partitions: int = -1) -> list[FramePart]:
        """The rows of these partitions, each with its own bits to change."""
        found = []
        for job, place, _pieces, piece, keys in self._all():
            if piece.valid & partitions:
                task, number, removal = place
                here = piece.part(partitions)
                found.append(FramePart(job, (task, number % FRAMES, removal), here, keys))
        return found

    def has(self, job: str) -> bool:
        """Whether rows of the job count here."""
        return any(of == job and piece.valid for of, _, _, piece, _ in self._all())

    def jobs(self) -> set[str]:
        return {job for job, *_ in self._all()}

    def give(self, partitions: int, *targets: tuple[StagedFrames, int]) -> None:
        """The rows of ``partitions`` go: to each target those of its partitions."""
        for job, (task, number, removal), pieces, piece, keys in self._all():
            leaving = piece.valid & partitions
            if not leaving:
                continue
            self._moved.add(job)
            for target, wanted in targets:
                given = piece.part(leaving & wanted)
                if given.valid and target.open(job):
                    target._moved.add(job)  # noqa: SLF001 (of the same class)
                    target._add(job, (task, number % FRAMES, removal), given, keys)  # noqa: SLF001
            piece.valid &= ~leaving
            if not piece.valid:  # its number stays: later parts of the frame are found behind it
                pieces[number] = piece.emptied()

    def moved(self, job: str) -> bool:
        """Whether rows of the job have come from another store, or not all of them count here."""
        return job in self._moved

    def forget_ended(self) -> None:
        """Of jobs of which nothing is left here nobody needs to know how it came."""
        self._moved = {job for job in self._moved if self._knows(job)}

    def _knows(self, job: str) -> bool:
        return job in self._staging.jobs or self._removals.has(job)

    def arranged(self, job: str) -> tuple[PreparedRows | None, PreparedRows | None]:
        """The rows that a prepared job writes, and those that it removes."""
        return self._staging.prepared_rows(job), self._removals.prepared(job)

    def drop(self, job: str) -> None:
        """Free what is staged of a job."""
        self._staging.discard(job)
        self._removals.discard(job)
        self._moved.discard(job)

    def _all(self) -> Iterator[tuple[str, Place, dict[int, Piece], Piece, KeyRule]]:
        """Of the jobs that move with their partitions. (A list: callers change what they see.)"""
        found: list[tuple[str, Place, dict[int, Piece], Piece, KeyRule]] = []
        for removal, source in ((False, self._staging), (True, self._removals)):
            for job, keys, task, pieces in source.open_pieces():
                for number, piece in pieces.items():
                    if piece.has is not None:
                        found.append((job, (task, number, removal), pieces, piece, keys))
        return iter(found)
