"""Staged rows: what the tasks of a job have written and nobody sees yet (design rule 22)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.errors import JobAborted, UniqueViolation
from remuda.storage.chunk import Offsets
from remuda.storage.chunk_table import pieces
from remuda.storage.keys import Hashes, Key, KeyRule


@dataclass(slots=True)
class PreparedRows:
    """The validated rows of a job: ``order`` sorts them by hash, ``hashes`` are sorted."""

    batches: list[pa.RecordBatch]
    partitions: npt.NDArray[np.uint16]
    hashes: Hashes
    order: Offsets
    overwrite: bool
    removals: list[tuple[int, Key, int]] = field(default_factory=list)
    """(hash, key, timestamp) of keys removed while the job was pending and the key was absent."""
    cleared: list[int] = field(default_factory=list)
    """Timestamps at which other jobs replaced the whole map while this one was pending."""

    @property
    def rows(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        size: int = sum(batch.nbytes for batch in self.batches)
        return size + self.partitions.nbytes + self.hashes.nbytes + self.order.nbytes

    def key_columns(self, keys: KeyRule) -> list[pa.Array]:
        """The key columns over all batches, in row order."""
        return key_columns(self.batches, keys)

    def keys_with(self, hashes: Hashes, keys: KeyRule) -> set[Key]:
        """The keys that have one of these hashes."""
        rows = self.order[np.isin(self.hashes, hashes)].tolist()
        return set(keys.keys_of(self.key_columns(keys), rows)) if rows else set()


def key_columns(batches: list[pa.RecordBatch], keys: KeyRule) -> list[pa.Array]:
    by_batch = [keys.columns(batch) for batch in batches]
    if len(by_batch) == 1:
        return by_batch[0]
    return [pa.concat_arrays(list(parts)) for parts in zip(*by_batch, strict=True)]


@dataclass(slots=True)
class StagedJob:
    """The rows of one job: task -> sequence -> (batch, hashes)."""

    tasks: dict[str, dict[int, tuple[pa.RecordBatch, Hashes]]] = field(default_factory=dict)
    prepared: PreparedRows | None = None
    prepare_timestamp: int | None = None

    @property
    def nbytes(self) -> int:
        if self.prepared is not None:
            return self.prepared.nbytes
        return sum(
            batch.nbytes + hashes.nbytes
            for batches in self.tasks.values()
            for batch, hashes in batches.values()
        )


class Staging:
    """All staged jobs of one map on one member."""

    def __init__(self, name: str, keys: KeyRule) -> None:
        self._name = name
        self._keys = keys
        self.jobs: dict[str, StagedJob] = {}
        self.pending: dict[str, int] = {}
        """Job -> prepare timestamp, of jobs prepared and not yet resolved."""

    @property
    def nbytes(self) -> int:
        return sum(job.nbytes for job in self.jobs.values())

    def stage(self, job_id: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep a batch; returns its rows, or 0 when this sequence number was here before."""
        self._keys.check(batch)
        job = self.jobs.setdefault(job_id, StagedJob())
        if job.prepared is not None:
            raise JobAborted(f"job {job_id} is being committed and takes no more rows")
        batches = job.tasks.setdefault(task, {})
        if sequence in batches:
            return 0
        batches[sequence] = (batch, self._keys.hashes(batch))
        rows: int = batch.num_rows
        return rows

    def staged_rows(self, job_id: str, task: str) -> int:
        job = self.jobs.get(job_id)
        batches = job.tasks.get(task, {}) if job is not None else {}
        return sum(batch.num_rows for batch, _ in batches.values())

    def prepare(self, job_id: str, tasks: Collection[str], *, overwrite: bool) -> PreparedRows:
        """Validate and order the rows of the accepted tasks and drop all others. Idempotent."""
        job = self.jobs.setdefault(job_id, StagedJob())
        if job.prepared is not None:
            return job.prepared
        accepted = [
            job.tasks[task][sequence]
            for task in dict.fromkeys(tasks)
            if task in job.tasks
            for sequence in sorted(job.tasks[task])
        ]
        accepted = [pair for pair in accepted if pair[0].num_rows]
        batches = pieces([batch for batch, _ in accepted])
        hashes = _joined([hashes for _, hashes in accepted], np.uint64)
        order = np.argsort(hashes)
        partitions = _joined(self._partitions(batches, hashes), np.uint16)
        prepared = PreparedRows(batches, partitions, hashes[order], order, overwrite)
        if batches:
            self._refuse_repeats(job_id, prepared)
        job.prepared = prepared
        job.tasks = {}
        return prepared

    def _partitions(
        self, batches: list[pa.RecordBatch], hashes: Hashes
    ) -> list[npt.NDArray[np.uint16]]:
        starts = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
        return [
            self._keys.partitions(batch, hashes[start : start + batch.num_rows])
            for batch, start in zip(batches, starts, strict=False)
        ]

    def _refuse_repeats(self, job_id: str, prepared: PreparedRows) -> None:
        if not (prepared.hashes[1:] == prepared.hashes[:-1]).any():
            return
        columns = prepared.key_columns(self._keys)
        for _, key in self._keys.repeats(columns, prepared.hashes, prepared.order):
            raise UniqueViolation(
                f"two rows of job {job_id} for map {self._name} have the same key",
                detail=f"key ({self._keys.show(key)})",
            )

    def refuse_pending(self, job_id: str, rows: PreparedRows) -> None:
        """Raise when another job that is about to commit holds one of the keys."""
        for other_id, other in self.jobs.items():
            if other_id == job_id or other_id not in self.pending or other.prepared is None:
                continue
            common = np.intersect1d(rows.hashes, other.prepared.hashes)
            if len(common):
                mine = rows.keys_with(common, self._keys)
                for key in mine & other.prepared.keys_with(common, self._keys):
                    raise UniqueViolation(
                        f"job {other_id} is inserting a row with this key into map {self._name}",
                        detail=f"key ({self._keys.show(key)})",
                    )

    def discard(self, job_id: str) -> PreparedRows | None:
        """Forget a job; returns its prepared rows."""
        self.pending.pop(job_id, None)
        job = self.jobs.pop(job_id, None)
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
