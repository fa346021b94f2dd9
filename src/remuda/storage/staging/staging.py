"""Staged rows, which the tasks of a job have written and nobody sees yet (design rule 22)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.violations import duplicate_key
from remuda.errors import InternalError, JobAborted, RemudaError
from remuda.storage.chunks.chunk import OFFSET_BITS, Chunk, Offsets
from remuda.storage.chunks.chunk_table import pieces
from remuda.storage.chunks.hash_order import hash_order
from remuda.storage.chunks.key_index import Run, Slots
from remuda.storage.chunks.keys import Hashes, Key, KeyRule
from remuda.storage.staging.pieces import Piece, shown
from remuda.storage.staging.row_ends import aligned, ends_of, without_ends

Match: TypeAlias = tuple[Chunk, Offsets, Offsets]
"""Stored rows with the keys of new ones: chunk, rows in the order of arrival, offsets."""


@dataclass(slots=True)
class PreparedRows:
    """The validated rows of a job, ready to be stored: ``order`` sorts them by hash.

    ``run`` holds their index entries, with slots as if ``batches`` were the chunks 0, 1, ...
    ``keys`` is of the schema that the rows were written with: the map may have got another since.
    """

    keys: KeyRule
    batches: list[pa.RecordBatch]
    partitions: npt.NDArray[np.uint16]
    run: Run
    order: Offsets
    overwrite: bool
    found: tuple[tuple[int, bool], list[Match] | None] = ((-1, False), None)
    """The ``stamp`` of the index at which stored versions of the same keys were looked for, and
    which there are (None = they do not matter)."""
    ttl: int = 0
    """How long the rows live from their commit, in microseconds; 0: for ever."""
    ends: npt.NDArray[np.int64] | None = None
    """Where each row ends by itself, if the rows brought that along: then ``ttl`` is nothing."""
    removals: list[tuple[int, Key, int]] = field(default_factory=list)
    """(hash, key, timestamp) of keys removed while the job was pending and the key was absent."""
    cleared: list[int] = field(default_factory=list)
    """Timestamps at which other jobs replaced the whole map while this one was pending."""

    @property
    def rows(self) -> int:
        return len(self.order)

    @property
    def stamp(self) -> tuple[int, bool]:
        return self.found[0]

    @property
    def hashes(self) -> Hashes:
        """Sorted."""
        return self.run.hashes

    @property
    def nbytes(self) -> int:
        size: int = sum(batch.nbytes for batch in self.batches)
        return size + self.partitions.nbytes + self.run.nbytes + self.order.nbytes

    def key_columns(self) -> list[pa.Array]:
        """The key columns over all batches, in row order."""
        return key_columns(self.batches, self.keys)

    def keys_with(self, hashes: Hashes) -> set[Key]:
        """The keys that have one of these hashes."""
        rows = self.order[np.isin(self.hashes, hashes)].tolist()
        return set(self.keys.keys_of(self.key_columns(), rows)) if rows else set()


def key_columns(batches: list[pa.RecordBatch], keys: KeyRule) -> list[pa.Array]:
    by_batch = [keys.columns(batch) for batch in batches]
    if len(by_batch) == 1:
        return by_batch[0]
    return [pa.concat_arrays(list(parts)) for parts in zip(*by_batch, strict=True)]


def arrange(
    keys: KeyRule,
    batches: list[pa.RecordBatch],
    hashes: Hashes,
    order: Offsets,
    *,
    overwrite: bool = False,
) -> PreparedRows:
    """Rows given in any batches, cut into chunks, with their index entries. Any thread."""
    columns = len(keys.schema.columns)
    batches = pieces(aligned(batches, columns))
    ends = ends_of(batches, columns)
    batches = [without_ends(batch, columns) for batch in batches]
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
    partitions = _joined(
        [
            keys.partitions(batch, hashes[start : start + batch.num_rows])
            for batch, start in zip(batches, starts, strict=False)
        ],
        np.uint16,
    )
    run = Run(hashes[order], _slots(batches, order))
    return PreparedRows(keys, batches, partitions, run, order, overwrite, ends=ends)


def _slots(batches: list[pa.RecordBatch], order: Offsets) -> Slots:
    """The slots of the rows in this order, as if the batches were the chunks 0, 1, ..."""
    if all(batch.num_rows == 1 << OFFSET_BITS for batch in batches[:-1]):
        return order.copy()  # the offsets run on from chunk to chunk
    slots = [
        np.arange(number << OFFSET_BITS, (number << OFFSET_BITS) + batch.num_rows)
        for number, batch in enumerate(batches)
    ]
    return np.concatenate(slots)[order]


@dataclass(slots=True)
class StagedJob:
    """The rows of one job: task -> sequence -> rows, of the schema of ``keys``."""

    keys: KeyRule
    tasks: dict[str, dict[int, Piece]] = field(default_factory=dict)
    closed: bool = False
    """The job is being committed: no more rows."""
    prepared: PreparedRows | None = None
    refusal: RemudaError | None = None

    @property
    def nbytes(self) -> int:
        if self.prepared is not None:
            return self.prepared.nbytes
        return sum(piece.nbytes for pieces in self.tasks.values() for piece in pieces.values())


class Staging:
    """All staged jobs of one map on one member."""

    def __init__(self, name: str, keys: KeyRule) -> None:
        self._name = name
        self.keys = keys
        """Of the newest schema."""
        self.jobs: dict[str, StagedJob] = {}
        self.freed = 0
        """Bytes of staged batches dropped so far."""
        self.pending: dict[str, int] = {}
        """Job -> prepare timestamp, of jobs prepared and not yet resolved."""
        self.unsettled_from: int | None = None
        """The lowest timestamp at which the outcome of a prepared job is not to be seen yet, which
        readers on other threads look at: it rises only in ``settle``, when all is in place."""

    @property
    def nbytes(self) -> int:
        return sum(job.nbytes for job in self.jobs.values())

    def stage(self, job_id: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep a batch, with ends of its rows or without (``row_ends``); returns its rows, or 0
        when this sequence number was here before."""
        job = self.jobs.get(job_id)
        keys = self.keys if job is None else job.keys
        keys.check(without_ends(batch, len(keys.schema.columns)))
        if job is None:
            job = self.jobs[job_id] = StagedJob(keys)
        if job.closed:
            raise JobAborted(f"job {job_id} is being committed and takes no more rows")
        batches = job.tasks.setdefault(task, {})
        if sequence in batches:
            return 0
        batches[sequence] = Piece(batch, keys.hashes(batch))
        rows: int = batch.num_rows
        return rows

    def staged_rows(self, job_id: str, task: str) -> int:
        job = self.jobs.get(job_id)
        batches = job.tasks.get(task, {}) if job is not None else {}
        return sum(piece.batch.num_rows for piece in batches.values())

    def pieces(self, job_id: str, task: str, keys: KeyRule) -> dict[int, Piece]:
        """The staged rows of a task, to be changed; made if need be."""
        job = self.jobs.setdefault(job_id, StagedJob(keys))
        return job.tasks.setdefault(task, {})

    def closed(self, job_id: str) -> bool:
        """Whether the job is being committed."""
        job = self.jobs.get(job_id)
        return job is not None and job.closed

    def open_pieces(self) -> Iterator[tuple[str, KeyRule, str, dict[int, Piece]]]:
        """Of all jobs that are still written: job, its keys, task, and the staged rows."""
        for job_id, job in self.jobs.items():
            if not job.closed:
                for task, pieces in job.tasks.items():
                    yield job_id, job.keys, task, pieces

    def close(self, job_id: str, tasks: Collection[str]) -> list[Piece]:
        """The rows of the accepted tasks; the job takes no more, all others are dropped."""
        job = self.jobs.setdefault(job_id, StagedJob(self.keys))
        job.closed = True
        for task in job.tasks.keys() - set(tasks):
            del job.tasks[task]
        return [
            job.tasks[task][sequence]
            for task in dict.fromkeys(tasks)
            if task in job.tasks
            for sequence in sorted(job.tasks[task])
            if job.tasks[task][sequence].batch.num_rows
        ]

    def keys_of(self, job_id: str) -> KeyRule:
        """How the keys of a job's rows are taken."""
        job = self.jobs.get(job_id)
        return self.keys if job is None else job.keys

    def arranged(
        self, accepted: Sequence[Piece], keys: KeyRule, *, overwrite: bool
    ) -> PreparedRows:
        """The rows in order. Raises ``UniqueViolation`` for two with one key. Any thread: it reads
        nothing but its arguments.
        """
        rows = shown(accepted, keys)
        hashes = _joined([piece.hashes for piece in rows], np.uint64)
        batches = [piece.batch for piece in rows]
        prepared = arrange(keys, batches, hashes, hash_order(hashes), overwrite=overwrite)
        if rows:
            self._refuse_repeats(prepared)
        return prepared

    def keep(self, job_id: str, prepared: PreparedRows | RemudaError) -> None:
        """Keep what ``arranged`` made of a job (or its refusal), if there still is one."""
        job = self.jobs.get(job_id)
        if job is None or job.prepared is not None:
            return
        if isinstance(prepared, RemudaError):
            job.refusal = prepared
        else:
            job.prepared = prepared
        self.freed += sum(each.nbytes for task in job.tasks.values() for each in task.values())
        job.tasks = {}

    def prepare(self, job_id: str, tasks: Collection[str], *, overwrite: bool) -> PreparedRows:
        """Validate and order the rows of the accepted tasks and drop all others. Idempotent."""
        accepted = self.close(job_id, tasks)
        job = self.jobs[job_id]
        if job.refusal is not None:
            raise job.refusal
        if job.prepared is None:
            self.keep(job_id, self.arranged(accepted, job.keys, overwrite=overwrite))
        assert job.prepared is not None
        return job.prepared

    def matched(self) -> bool:
        """Whether matches have been found ahead for a job that is about to commit."""
        return any(rows.found[1] is not None for rows in self._pending_rows())

    def prepared(self, job_id: str) -> PreparedRows | RemudaError | None:
        """The result of ``arranged`` for a job."""
        job = self.jobs.get(job_id)
        return None if job is None else job.prepared or job.refusal

    def prepared_rows(self, job_id: str) -> PreparedRows | None:
        job = self.jobs.get(job_id)
        return None if job is None else job.prepared

    def unarranged_rows(self, job_id: str) -> int:
        """Rows that ``prepare`` would have to put in order."""
        job = self.jobs.get(job_id)
        if job is None:
            return 0
        return sum(
            piece.batch.num_rows for pieces in job.tasks.values() for piece in pieces.values()
        )

    def _refuse_repeats(self, prepared: PreparedRows) -> None:
        if not (prepared.hashes[1:] == prepared.hashes[:-1]).any():
            return
        columns, keys = prepared.key_columns(), prepared.keys
        for _, key in keys.repeats(columns, prepared.hashes, prepared.order):
            raise duplicate_key(keys.schema, key)

    def refuse_pending(self, job_id: str, rows: PreparedRows) -> None:
        """Raise when another job that is about to commit holds one of the keys."""
        for other_id, other in self.jobs.items():
            if other_id == job_id or other_id not in self.pending or other.prepared is None:
                continue
            common = np.intersect1d(rows.hashes, other.prepared.hashes)
            if len(common):
                mine = rows.keys_with(common)
                for key in mine & other.prepared.keys_with(common):
                    raise duplicate_key(
                        self.keys.schema, key, f"Job {other_id} is about to commit a row with it."
                    )

    def mark(self, job_id: str, prepare_timestamp: int) -> None:
        """A prepared job is pending from here on."""
        if self.prepared_rows(job_id) is None:
            raise InternalError(f"job {job_id} of map {self._name} has not been prepared")
        self.pending[job_id] = prepare_timestamp
        self.settle()

    def settle(self) -> None:
        """Rows that the pending jobs do not hide are there for every reader."""
        self.unsettled_from = min(self.pending.values(), default=None)

    def discard(self, job_id: str) -> PreparedRows | None:
        """Forget a job; returns its prepared rows. ``settle`` is to follow when they are stored."""
        self.pending.pop(job_id, None)
        job = self.jobs.pop(job_id, None)
        if job is not None and job.prepared is None:
            self.freed += job.nbytes
        return None if job is None else job.prepared

    def note_removal(self, key_hash: int, key: Key, timestamp: int) -> None:
        """A key that is absent was removed: pending rows with an earlier timestamp end there."""
        for prepared in self._pending_rows():
            prepared.removals.append((key_hash, key, timestamp))

    def note_overwrite(self, timestamp: int) -> None:
        """The whole map was replaced: pending rows with an earlier timestamp end there."""
        for prepared in self._pending_rows():
            prepared.cleared.append(timestamp)

    def _pending_rows(self) -> Iterator[PreparedRows]:
        for job_id in self.pending:
            prepared = self.jobs[job_id].prepared
            if prepared is not None:
                yield prepared


def _joined(arrays: Sequence[npt.NDArray[Any]], dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=dtype)
