"""Staged bulk writes: the rows of all tasks appear together or not at all.

A *job* is begun by one process (a Spark driver, ``Map.put_all`` of a table), written by any number
of tasks in any number of processes, and committed with the list of the task attempts that count::

    job = await client.begin_job("flights")
    writer = job.writer("0:0")
    await writer.write(batch)                  # engine-form record batches
    task = await writer.finish()
    await job.commit([task])

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

from remuda.client.core.core import Core
from remuda.client.operations.commit import begin_job
from remuda.client.operations.job_writer import JobTarget
from remuda.client.operations.row_writer import JobWriter
from remuda.client.requests.requests import JobTask
from remuda.datatypes.schema import MapSchema
from remuda.errors import RemudaError


class JobClient(Protocol):
    """The client that has begun the job, and ends it."""

    async def commit_job(self, job: str, tasks: Iterable[JobTask]) -> int: ...

    async def abort_job(self, job: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Job:
    """A staged job as its beginner holds it. As a context manager it aborts unless committed."""

    client: JobClient
    id: str
    schema: MapSchema
    target: JobTarget
    _core: Core

    def writer(self, task: str) -> JobWriter:
        """A writer on this loop; ``task`` is ``"partition:attempt"`` and unique in the job."""
        return JobWriter(self.target, task, self._core)

    async def write(self, batches: Iterable[pa.RecordBatch], task: str = "0:0") -> JobTask:
        """Write engine-form batches as one task; errors as ``JobWriter.write``."""
        async with self.writer(task) as writer:
            for batch in batches:
                await writer.write(batch)
            return await writer.finish()

    async def commit(self, tasks: Iterable[JobTask]) -> int:
        """Make the rows of ``tasks`` visible at one timestamp; the number of rows.

        Errors as ``Client.commit_job``.
        """
        return await self.client.commit_job(self.id, tasks)

    async def abort(self) -> None:
        """Drop every staged row of this job. Aborting twice, or after a commit, does nothing."""
        await self.client.abort_job(self.id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            with contextlib.suppress(RemudaError):  # what broke the block may be why this fails
                await self.abort()


async def begin(
    client: JobClient,
    core: Core,
    map_name: str,
    overwrite: bool,
    label: str,
    *,
    insert_only: bool,
    job_id: str | None,
) -> Job:
    """Begin a job that ``client`` ends; arguments and errors as ``Client.begin_job``."""
    job, schema = await begin_job(core, map_name, overwrite, label, insert_only, job_id)
    settings = core.settings
    target = JobTarget(job, schema, core.view, settings.security, core.addresses, settings.timeout)
    return Job(client, job, schema, target, core)
