"""``JobWriter``: writes one task of a staged job, and ``JobTarget``, which makes it."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from remuda.client.core.core import Core
from remuda.client.network.connections import BlockingPorts
from remuda.client.network.driving import finish
from remuda.client.network.ports import Settings
from remuda.client.operations import row_writer as asynchronous
from remuda.client.operations.job_target import Target
from remuda.client.requests.requests import JobTask


@dataclass(frozen=True, slots=True)
class JobTarget(Target):
    """The target of a job with a writer for a program without an event loop: made by the driver,
    used by its tasks."""

    def writer(self, task: str) -> JobWriter:
        """A writer for one task attempt; connects when the first rows come."""
        return JobWriter(self, task)


class JobWriter:
    """Sends engine-form batches of one task attempt to their owners. One thread at a time.

    ``write`` blocks when several frames of a member are unanswered. Rows that a leaving member has
    refused go to another one. Any other refusal, and a connection that is lost while rows are under
    way, raises from ``write`` or ``finish``; the attempt is then useless, and its rows are dropped
    by the members when the job ends. Each call ends within the timeout of the target, if any.
    """

    def __init__(self, target: JobTarget, task: str) -> None:
        self.target = target
        self.task = task
        settings = Settings(
            application="job writer", security=target.security, timeout=target.timeout
        )
        self._core = Core(target.addresses, settings, BlockingPorts())
        self._core.members.install(target.view)
        self._writer = asynchronous.JobWriter(target, task, self._core)

    @property
    def rows(self) -> int:
        """Rows that were written so far."""
        return self._writer.rows

    def write(self, batch: pa.RecordBatch) -> None:
        """Route and send the rows of an engine-form batch. TypeMismatch, NotNullViolation."""
        finish(self._writer.write(batch))

    def remove(self, batch: pa.RecordBatch) -> None:
        """Route and send keys of entries that the commit is to remove: engine-form batches of the
        key columns, in their order. TypeMismatch, NotNullViolation."""
        finish(self._writer.remove(batch))

    def finish(self) -> JobTask:
        """Send the rest, wait for every answer, and close. The result goes to ``commit``."""
        task = finish(self._writer.finish())
        self.close()
        return task

    def close(self) -> None:
        """Give up: close the connections at once. Does nothing after ``finish``."""
        self._writer.close()
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
