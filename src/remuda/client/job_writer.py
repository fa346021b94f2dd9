"""``JobWriter``: writes one task of a staged job, and ``JobTarget``: where its rows go."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from remuda.client.asynchronous import job_writer as asynchronous
from remuda.client.connections import BlockingPorts, Pool
from remuda.client.driving import finish
from remuda.client.login import NO_SECURITY, Security
from remuda.client.ports import Settings
from remuda.client.requests import JobTask
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View


@dataclass(frozen=True, slots=True)
class JobTarget:
    """Where a job's rows go. Small and picklable: made by the driver, used by its tasks."""

    job: str
    schema: MapSchema
    view: View
    security: Security = NO_SECURITY

    def writer(self, task: str) -> JobWriter:
        """A writer for one task attempt; connects when the first rows come."""
        return JobWriter(self, task)


class JobWriter:
    """Sends engine-form batches of one task attempt to their owners. One thread at a time.

    ``write`` blocks when several frames of a member are unanswered. A refusal or a lost connection
    raises from ``write`` or ``finish``; the attempt is then useless, and its rows are dropped by
    the members when the job ends.
    """

    def __init__(self, target: JobTarget, task: str) -> None:
        self.target = target
        self.task = task
        self._pools: dict[int, Pool] = {}
        self._writer = asynchronous.JobWriter(target, task, self._pool)

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
        for pool in self._pools.values():
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _pool(self, member: int) -> Pool:
        info = self.target.view.by_number[member]
        settings = Settings(application="job writer", security=self.target.security)
        pool = self._pools[member] = BlockingPorts().member(
            member, info.host, info.user_port, settings
        )
        return pool
