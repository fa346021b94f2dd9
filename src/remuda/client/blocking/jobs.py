"""Staged bulk writes: the rows of all tasks appear together or not at all.

A *job* is begun by one process (a Spark driver, ``Map.put_all`` of a table), written by any number
of tasks in any number of processes, and committed with the list of the task attempts that count::

    job = client.begin_job("flights")
    writer = job.target.writer("0:0")         # job.target is small and picklable
    writer.write(batch)                        # engine-form record batches
    task = writer.finish()                     # travels back to the driver
    job.commit([task])

Rows of a writer that never finished, or whose task is not named by the commit, are dropped by the
members.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from remuda.client.operations.job_writer import JobTarget, JobWriter
from remuda.client.requests.requests import JobTask
from remuda.datatypes.schema import MapSchema
from remuda.errors import RemudaError

__all__ = ["Job", "JobTarget", "JobTask", "JobWriter"]


class JobClient(Protocol):
    """The client that has begun the job, and ends it."""

    def commit_job(self, job: str, tasks: Iterable[JobTask]) -> int: ...

    def abort_job(self, job: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Job:
    """A staged job as its beginner holds it. As a context manager it aborts unless committed."""

    client: JobClient
    id: str
    schema: MapSchema
    target: JobTarget

    def writer(self, task: str) -> JobWriter:
        """A writer in this process; ``task`` is ``"partition:attempt"`` and unique in the job."""
        return self.target.writer(task)

    def write(self, batches: Iterable[pa.RecordBatch], task: str = "0:0") -> JobTask:
        """Write engine-form batches as one task; errors as ``JobWriter.write``."""
        with self.writer(task) as writer:
            for batch in batches:
                writer.write(batch)
            return writer.finish()

    def commit(self, tasks: Iterable[JobTask]) -> int:
        """Make the rows of ``tasks`` visible at one timestamp; the number of rows.

        Errors as ``Client.commit_job``.
        """
        return self.client.commit_job(self.id, tasks)

    def abort(self) -> None:
        """Drop every staged row of this job. Aborting twice, or after a commit, does nothing."""
        self.client.abort_job(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            with contextlib.suppress(RemudaError):  # what broke the block may be why this fails
                self.abort()
