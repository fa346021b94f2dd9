"""Writes one task of a staged job: rows go straight to their owners, several frames under way."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from remuda.client import requests
from remuda.client.arrow_stream import encode_stream, pieces
from remuda.client.connections import REQUEST_TIMEOUT, Pool, member_name
from remuda.client.requests import Call, JobTask
from remuda.client.routing import Router
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import (
    ConnectionBroken,
    InternalError,
    NotNullViolation,
    QueryTimeout,
    TypeMismatch,
)
from remuda.limits import ENCODED_BATCH_SIZE_MAX
from remuda.rpc.blocking import BlockingChannel

FRAME_SIZE = ENCODED_BATCH_SIZE_MAX // 2
"""Rows are gathered per member until they make a frame of about this size."""
FRAMES_IN_FLIGHT = 4
"""Unanswered frames per member: with FRAME_SIZE, the bound of a writer's memory per member."""


@dataclass(frozen=True, slots=True)
class JobTarget:
    """Where a job's rows go. Small and picklable: made by the driver, used by its tasks."""

    job: str
    schema: MapSchema
    view: View

    def writer(self, task: str) -> JobWriter:
        """A writer for one task attempt; connects when the first rows come."""
        return JobWriter(self, task)


class JobWriter:
    """Sends engine-form batches of one task attempt to their owners. One thread at a time.

    ``write`` blocks when FRAMES_IN_FLIGHT frames of a member are unanswered. A refusal or a lost
    connection raises from ``write`` or ``finish``; the attempt is then useless, and its rows are
    dropped by the members when the job ends.
    """

    def __init__(self, target: JobTarget, task: str) -> None:
        self.target = target
        self.task = task
        self.rows = 0
        self._schema = engine_schema(target.schema)
        self._router = Router(target.schema, target.view)
        self._links: dict[int, _Link] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Route and send the rows of an engine-form batch. TypeMismatch, NotNullViolation."""
        if batch.schema.types != self._schema.types:
            raise TypeMismatch(
                f'rows for map "{self.target.schema.name}" are not in the engine\'s form: '
                f"expected {self._schema}, found {batch.schema}"
            )
        batch = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        check_not_null(self.target.schema, batch)
        self.rows += batch.num_rows
        for member, part in self._router.split(batch):
            self._link(member).add(part)

    def finish(self) -> JobTask:
        """Send the rest, wait for every answer, and close. The result goes to ``commit``."""
        for link in self._links.values():
            link.flush()
        for link in self._links.values():
            link.settle()  # members may take the frames of a task in any order: count them last
        for link in self._links.values():
            link.end()
        for link in self._links.values():
            link.settle()
            link.close()
        return JobTask(self.task, tuple(sorted(self._links)), self.rows)

    def close(self) -> None:
        """Give up: close the connections at once. Does nothing after ``finish``."""
        for link in self._links.values():
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _link(self, member: int) -> _Link:
        link = self._links.get(member)
        if link is None:
            info = self.target.view.by_number[member]
            name = member_name(member, info.host, info.user_port)
            pool = Pool(name, info.host, info.user_port, application="job writer")
            link = self._links[member] = _Link(pool, self.target.job, self.task, self._schema)
        return link


def check_not_null(schema: MapSchema, batch: pa.RecordBatch) -> None:
    """NotNullViolation when a NOT NULL column of an engine-form batch holds a NULL."""
    for column, array in zip(schema.columns, batch.columns, strict=True):
        if not column.nullable and array.null_count:
            raise NotNullViolation(
                f'map "{schema.name}", field "{column.name}": NULL in a NOT NULL column'
            )


class _Link:
    """The rows of one task for one member: gathered, framed, numbered, answered."""

    def __init__(self, pool: Pool, job: str, task: str, schema: pa.Schema) -> None:
        self._pool = pool
        self._job = job
        self._task = task
        self._schema = schema
        self._channel: BlockingChannel | None = pool.take()
        self._sequence = itertools.count()
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_size = 0
        self._rows = 0
        self._unanswered = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        for piece in pieces(batch, FRAME_SIZE):
            size = piece.nbytes
            if self._gathered and self._gathered_size + size > FRAME_SIZE:
                self.flush()
            self._gathered.append(piece)
            self._gathered_size += size

    def flush(self) -> None:
        if not self._gathered:
            return
        batches = _as_one(self._schema, self._gathered)
        self._gathered, self._gathered_size = [], 0
        dbody = encode_stream(self._schema, batches)
        self._send(requests.job_write(self._job, self._task, next(self._sequence), dbody))

    def end(self) -> None:
        """Say how many rows there were: the member fails the task when it counts differently."""
        self._send(requests.job_task_end(self._job, self._task, self._rows))

    def settle(self) -> None:
        """Wait until every frame is answered."""
        while self._unanswered:
            self._receive()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _send(self, call: Call[int]) -> None:
        while self._unanswered >= FRAMES_IN_FLIGHT:
            self._receive()
        try:
            self._open().send_request(call.rpc_type, call.body, call.dbody)
        except ConnectionBroken as error:
            raise self._pool.broken(error) from error
        self._unanswered += 1

    def _receive(self) -> None:
        try:
            incoming = self._open().receive(REQUEST_TIMEOUT)
        except (ConnectionBroken, QueryTimeout) as error:
            raise self._pool.broken(error) from error
        if incoming.error is not None:
            raise incoming.error
        self._unanswered -= 1

    def _open(self) -> BlockingChannel:
        if self._channel is None:
            raise InternalError("the job writer is closed")
        return self._channel


def _as_one(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The gathered pieces as one batch: members store fewer, larger chunks."""
    found: list[pa.RecordBatch] = (
        pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    )
    return found
