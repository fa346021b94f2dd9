"""Writes one task of a staged job: rows go straight to their owners, several frames under way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from remuda.client import requests
from remuda.client.arrow_stream import encode_stream, pieces
from remuda.client.deadline import NEVER, Deadline
from remuda.client.ports import REQUEST_TIMEOUT, Conversation, MemberPort
from remuda.client.requests import Call, JobTask
from remuda.client.routing import Router
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import null_in, of_keys
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.violations import null_value
from remuda.errors import (
    ConnectionBroken,
    InternalError,
    QueryTimeout,
    TypeMismatch,
)
from remuda.limits import ENCODED_BATCH_SIZE_MAX

if TYPE_CHECKING:
    from remuda.client.job_writer import JobTarget

FRAME_SIZE = ENCODED_BATCH_SIZE_MAX * 3 // 4
"""Rows are gathered per member until they make a frame of about this size. Each costs members
some milliseconds of Python, whatever is in it."""
FRAMES_IN_FLIGHT = 4
"""Unanswered frames per member: with FRAME_SIZE, the bound of a writer's memory per member."""


class JobWriter:
    """Sends engine-form batches of one task attempt to their owners. One writer at a time.

    ``write`` waits when FRAMES_IN_FLIGHT frames of a member are unanswered. A refusal or a lost
    connection raises from ``write`` or ``finish``; the attempt is then useless, and its rows are
    dropped by the members when the job ends.
    """

    def __init__(
        self,
        target: JobTarget,
        task: str,
        member: Callable[[int], MemberPort],
        deadline: Deadline = NEVER,
    ) -> None:
        """``member``: the connections to a member, by its number. ``deadline``: of all its rows."""
        self.target = target
        self.task = task
        self.rows = 0
        self._member = member
        self._deadline = deadline
        self._schema = engine_schema(target.schema)
        self._router = Router(target.schema, target.view)
        self._ports: dict[int, MemberPort] = {}
        self._links: dict[tuple[int, bool], _Link] = {}
        """By member, and whether it takes keys of entries to be removed."""

    async def write(self, batch: pa.RecordBatch) -> None:
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
            await (await self._link(member)).add(part)

    async def remove(self, batch: pa.RecordBatch) -> None:
        """Route and send keys of entries that the commit is to remove: engine-form batches of the
        key columns, in their order. TypeMismatch, NotNullViolation."""
        schema = self.target.schema
        if batch.num_columns != len(schema.key):
            raise TypeMismatch(f'map "{schema.name}": the keys are not those of the map')
        rows = of_keys(batch.columns, schema)
        for position in schema.key_positions:
            if rows.column(position).null_count:
                raise null_value(schema, schema.columns[position])
        self.rows += batch.num_rows
        for member, part in self._router.split(rows):
            link = await self._link(member, removal=True)
            await link.add(part.select(list(schema.key_positions)))

    async def finish(self) -> JobTask:
        """Send the rest, wait for every answer, and close. The result goes to ``commit``."""
        for link in self._links.values():
            await link.flush()
        for link in self._links.values():
            await link.settle()  # members take the frames of a task in any order: count them last
        for link in self._links.values():
            await link.end()
        for link in self._links.values():
            await link.settle()
            link.release()
        members = {member for member, _ in self._links}
        return JobTask(self.task, tuple(sorted(members)), self.rows)

    def close(self) -> None:
        """Give up at once. Does nothing after ``finish``."""
        for link in self._links.values():
            link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _link(self, member: int, *, removal: bool = False) -> _Link:
        link = self._links.get((member, removal))
        if link is None:
            if member not in self._ports:
                self._ports[member] = self._member(member)
            port = self._ports[member]
            talk, ends = await port.converse(self._deadline), self._deadline
            link = _Link(port, talk, self.target, self.task, ends, removal=removal)
            self._links[member, removal] = link
        return link


def check_not_null(schema: MapSchema, batch: pa.RecordBatch) -> None:
    """NotNullViolation when a NOT NULL column of an engine-form batch holds a NULL."""
    for column, array in zip(schema.columns, batch.columns, strict=True):
        if not column.nullable and array.null_count:
            raise null_in(schema, column, batch)


class _Link:
    """The rows of one task for one member: gathered, framed, numbered, answered."""

    def __init__(
        self,
        port: MemberPort,
        talk: Conversation,
        target: JobTarget,
        task: str,
        deadline: Deadline,
        *,
        removal: bool,
    ) -> None:
        self._port = port
        self._talk: Conversation | None = talk
        self._job = target.job
        self._task = task
        self._deadline = deadline
        self._removal = removal
        whole = engine_schema(target.schema)
        places = target.schema.key_positions
        self._schema = pa.schema([whole.field(i) for i in places]) if removal else whole
        self._sequence = itertools.count()
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_size = 0
        self._rows = 0
        self._unanswered = 0

    async def add(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        for piece in pieces(batch, FRAME_SIZE):
            size = piece.nbytes
            if self._gathered and self._gathered_size + size > FRAME_SIZE:
                await self.flush()
            self._gathered.append(piece)
            self._gathered_size += size

    async def flush(self) -> None:
        if not self._gathered:
            return
        batches = _as_one(self._schema, self._gathered)
        self._gathered, self._gathered_size = [], 0
        dbody = encode_stream(self._schema, batches)
        sequence = next(self._sequence)
        await self._send(
            requests.job_write(self._job, self._task, sequence, dbody, removal=self._removal)
        )

    async def end(self) -> None:
        """Say how many rows there were: the member fails the task when it counts differently."""
        await self._send(
            requests.job_task_end(self._job, self._task, self._rows, removal=self._removal)
        )

    async def settle(self) -> None:
        """Wait until every frame is answered."""
        while self._unanswered:
            await self._receive()

    def release(self) -> None:
        """All is answered: others may have the connection."""
        if self._talk is not None:
            talk, self._talk = self._talk, None
            talk.release()

    def close(self) -> None:
        if self._talk is not None:
            talk, self._talk = self._talk, None
            talk.abandon()

    async def _send(self, call: Call[int]) -> None:
        while self._unanswered >= FRAMES_IN_FLIGHT:
            await self._receive()
        try:
            await self._open().send(call.rpc_type, call.body, call.dbody, self._deadline)
        except (ConnectionBroken, QueryTimeout) as error:
            raise self._port.broken(error, self._deadline.seconds) from error
        self._unanswered += 1

    async def _receive(self) -> None:
        try:
            incoming = await self._open().receive(self._deadline.left(REQUEST_TIMEOUT))
        except (ConnectionBroken, QueryTimeout) as error:
            waited = self._deadline.seconds if self._deadline.passed else REQUEST_TIMEOUT
            raise self._port.broken(error, waited) from error
        if incoming.error is not None:
            raise incoming.error
        self._unanswered -= 1

    def _open(self) -> Conversation:
        if self._talk is None:
            raise InternalError("the job writer is closed")
        return self._talk


def _as_one(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The gathered pieces as one batch: members store fewer, larger chunks."""
    found: list[pa.RecordBatch] = (
        pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    )
    return found
