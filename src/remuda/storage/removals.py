"""Keys of rows that jobs will remove when they commit: staged and unseen, as the rows that they
write are (``storage.staging``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from remuda.errors import JobAborted
from remuda.storage.keys import Hashes, KeyRule
from remuda.storage.staging import PreparedRows, Staged, arrange


@dataclass(slots=True)
class _Job:
    """Batches by (task, sequence); in order from ``prepare`` on."""

    keys: KeyRule
    """Of the schema that the keys were staged with."""
    batches: dict[tuple[str, int], Staged] = field(default_factory=dict)
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
            sum(batch.nbytes + hashes.nbytes for batch, hashes in job.batches.values())
            + (0 if job.order is None else job.order.nbytes)
            for job in self._jobs.values()
        )

    def stage(self, job_id: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep rows of which only the key columns count; 0 when this sequence was here before."""
        job = self._jobs.setdefault(job_id, _Job(self.keys))
        if job.closed:
            raise JobAborted(f"job {job_id} is being committed and removes no more rows")
        if (task, sequence) in job.batches:
            return 0
        job.batches[task, sequence] = batch, job.keys.hashes(batch)
        rows: int = batch.num_rows
        return rows

    def rows(self, job_id: str) -> int:
        job = self._jobs.get(job_id)
        if job is None:
            return 0
        if job.order is not None:
            return job.order.rows
        return sum(batch.num_rows for batch, _ in job.batches.values())

    def prepared(self, job_id: str) -> PreparedRows | None:
        """What ``keep`` has been given."""
        job = self._jobs.get(job_id)
        return None if job is None else job.order

    def matched(self, job_id: str) -> bool:
        """Whether stored versions have been found ahead."""
        order = self.prepared(job_id)
        return order is not None and order.found[1] is not None

    def staged_rows(self, job_id: str, task: str) -> int:
        """Keys that one task has brought."""
        job = self._jobs.get(job_id)
        batches = {} if job is None else job.batches
        return sum(batch.num_rows for (of, _), (batch, _) in batches.items() if of == task)

    def close(self, job_id: str, tasks: Collection[str]) -> list[Staged]:
        """The keys of the accepted tasks; the job takes no more, all others are dropped."""
        job = self._jobs.get(job_id)
        if job is None:
            return []
        job.closed = True
        job.batches = {place: job.batches[place] for place in job.batches if place[0] in tasks}
        return list(job.batches.values())

    def keys_of(self, job_id: str) -> KeyRule:
        """How the keys of a job are taken."""
        job = self._jobs.get(job_id)
        return self.keys if job is None else job.keys

    def arranged(self, staged: Sequence[Staged], keys: KeyRule) -> PreparedRows:
        """Any thread: it reads nothing but its arguments."""
        hashes: Hashes = np.concatenate([hashes for _, hashes in staged])
        return arrange(keys, [batch for batch, _ in staged], hashes, np.argsort(hashes))

    def keep(self, job_id: str, order: PreparedRows) -> None:
        """Keep what ``arranged`` made of a job, if there still is one."""
        job = self._jobs.get(job_id)
        if job is not None:
            job.order = order
            job.batches = {}

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
