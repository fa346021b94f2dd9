"""Keys of rows that jobs will remove when they commit: staged and unseen, as the rows that they
write are (``storage.staging.staging``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from remuda.errors import JobAborted
from remuda.storage.chunks.hash_order import hash_order
from remuda.storage.chunks.keys import Hashes, KeyRule
from remuda.storage.staging.pieces import Piece, shown
from remuda.storage.staging.staging import PreparedRows, arrange


@dataclass(slots=True)
class _Job:
    """Keys by task and sequence; in order from ``prepare`` on."""

    keys: KeyRule
    """Of the schema that the keys were staged with."""
    tasks: dict[str, dict[int, Piece]] = field(default_factory=dict)
    closed: bool = False
    """The job is being committed: no more keys."""
    order: PreparedRows | None = None


class Removals:
    """The removals of all jobs of one map on one member."""

    def __init__(self, keys: KeyRule) -> None:
        self.keys = keys
        """Of the newest schema."""
        self._jobs: dict[str, _Job] = {}

    @property
    def nbytes(self) -> int:
        return sum(
            sum(piece.nbytes for pieces in job.tasks.values() for piece in pieces.values())
            + (0 if job.order is None else job.order.nbytes)
            for job in self._jobs.values()
        )

    def stage(self, job_id: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep rows of which only the key columns count; 0 when this sequence was here before."""
        job = self._jobs.setdefault(job_id, _Job(self.keys))
        if job.closed:
            raise JobAborted(f"job {job_id} is being committed and removes no more rows")
        pieces = job.tasks.setdefault(task, {})
        if sequence in pieces:
            return 0
        pieces[sequence] = Piece(batch, job.keys.hashes(batch))
        rows: int = batch.num_rows
        return rows

    def rows(self, job_id: str) -> int:
        job = self._jobs.get(job_id)
        if job is None:
            return 0
        if job.order is not None:
            return job.order.rows
        return sum(
            piece.batch.num_rows for pieces in job.tasks.values() for piece in pieces.values()
        )

    def prepared(self, job_id: str) -> PreparedRows | None:
        """The arguments of ``keep``."""
        job = self._jobs.get(job_id)
        return None if job is None else job.order

    def matched(self, job_id: str) -> bool:
        """Whether stored versions have been found ahead."""
        order = self.prepared(job_id)
        return order is not None and order.found[1] is not None

    def staged_rows(self, job_id: str, task: str) -> int:
        """Keys that one task has brought."""
        job = self._jobs.get(job_id)
        pieces = {} if job is None else job.tasks.get(task, {})
        return sum(piece.batch.num_rows for piece in pieces.values())

    def pieces(self, job_id: str, task: str, keys: KeyRule) -> dict[int, Piece]:
        """The staged rows of a task, to be changed; made if need be."""
        return self._jobs.setdefault(job_id, _Job(keys)).tasks.setdefault(task, {})

    def has(self, job_id: str) -> bool:
        return job_id in self._jobs

    def closed(self, job_id: str) -> bool:
        """Whether the job is being committed."""
        job = self._jobs.get(job_id)
        return job is not None and job.closed

    def open_pieces(self) -> Iterator[tuple[str, KeyRule, str, dict[int, Piece]]]:
        """Of all jobs that are still written: job, its keys, task, and the staged rows."""
        for job_id, job in self._jobs.items():
            if not job.closed:
                for task, pieces in job.tasks.items():
                    yield job_id, job.keys, task, pieces

    def close(self, job_id: str, tasks: Collection[str]) -> list[Piece]:
        """The keys of the accepted tasks; the job takes no more, all others are dropped."""
        job = self._jobs.get(job_id)
        if job is None:
            return []
        job.closed = True
        job.tasks = {task: job.tasks[task] for task in job.tasks if task in tasks}
        return [piece for pieces in job.tasks.values() for piece in pieces.values()]

    def keys_of(self, job_id: str) -> KeyRule:
        """How the keys of a job are taken."""
        job = self._jobs.get(job_id)
        return self.keys if job is None else job.keys

    def arranged(self, staged: Sequence[Piece], keys: KeyRule) -> PreparedRows:
        """Any thread: it reads nothing but its arguments."""
        rows = shown(staged, keys)
        none: Hashes = np.empty(0, dtype=np.uint64)
        hashes: Hashes = np.concatenate([none, *(piece.hashes for piece in rows)])
        return arrange(keys, [piece.batch for piece in rows], hashes, hash_order(hashes))

    def keep(self, job_id: str, order: PreparedRows) -> None:
        """Keep what ``arranged`` made of a job, if there still is one."""
        job = self._jobs.get(job_id)
        if job is not None:
            job.order = order
            job.tasks = {}

    def prepare(self, job_id: str, tasks: Collection[str]) -> PreparedRows | None:
        """The keys of the accepted tasks in the order of their hashes; None when the job removes
        nothing. Idempotent."""
        job = self._jobs.get(job_id)
        if job is None:
            return None
        if job.order is None:
            staged = self.close(job_id, tasks)
            if not staged:
                del self._jobs[job_id]
                return None
            self.keep(job_id, self.arranged(staged, job.keys))
        return job.order

    def discard(self, job_id: str) -> PreparedRows | None:
        """Forget a job; returns what ``prepare`` returned."""
        job = self._jobs.pop(job_id, None)
        return None if job is None else job.order
