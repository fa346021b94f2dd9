"""Frames of a bulk write: rows gathered for one owner, encoded, numbered and answered."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from remuda.client.core.tries import Tries
from remuda.client.network.deadline import Deadline
from remuda.client.network.ports import REQUEST_TIMEOUT, Conversation, MemberPort
from remuda.client.operations.job_target import Target
from remuda.client.requests import requests
from remuda.client.requests.requests import Buffers, Call
from remuda.client.values.arrow_stream import encode_stream, pieces
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    ConnectionBroken,
    InternalError,
    QueryTimeout,
    RemudaError,
)
from remuda.limits import ENCODED_BATCH_SIZE_MAX
from remuda.rpc.request import Incoming

FRAME_SIZE = ENCODED_BATCH_SIZE_MAX * 3 // 4
"""Rows are gathered per member until they make a frame of about this size. Each costs members
some milliseconds of Python, whatever is in it."""
FRAMES_IN_FLIGHT = 4
"""Unanswered frames per member: with FRAME_SIZE, the bound of a writer's memory per member."""


class Frame:
    """Rows that are sent together, and kept until a member has answered.

    ``member`` is set once a member may have staged a part of them: nobody else may take the frame
    then, for only under the number that it has there each copy takes its rows once.
    """

    __slots__ = ("dbody", "member", "owner", "removal", "rows", "sequence", "tries")

    def __init__(self, owner: int, dbody: Buffers, rows: int, *, removal: bool) -> None:
        """``owner``: the member that had the partitions when the rows came."""
        self.owner = owner
        self.dbody = dbody
        self.rows = rows
        self.removal = removal
        self.member: int | None = None
        self.sequence: int | None = None
        """Its number at the member that it was sent to last."""
        self.tries: Tries | None = None
        """Since it was refused."""


class Gathering:
    """Rows of one task for one owner that do not make a frame yet."""

    def __init__(self, schema: MapSchema, owner: int, *, removal: bool) -> None:
        self._owner = owner
        self._removal = removal
        self._key_positions = list(schema.key_positions)
        whole = engine_schema(schema)
        keys = pa.schema([whole.field(i) for i in self._key_positions])
        self._schema = keys if removal else whole
        self._gathered: list[pa.RecordBatch] = []
        self._size = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[Frame]:
        """Frames that are full. ``batch`` has all columns of the map."""
        if self._removal:
            batch = batch.select(self._key_positions)
        for piece in pieces(batch, FRAME_SIZE):
            size = piece.nbytes
            if self._size + size > FRAME_SIZE and (frame := self.take()) is not None:
                yield frame
            self._gathered.append(piece)
            self._size += size

    def take(self) -> Frame | None:
        """The rows that wait, as a frame; None when none wait."""
        if not self._gathered:
            return None
        # As one batch: members store fewer, larger chunks.
        table = pa.Table.from_batches(self._gathered, self._schema).combine_chunks()
        self._gathered, self._size = [], 0
        dbody = encode_stream(self._schema, table.to_batches())
        return Frame(self._owner, dbody, table.num_rows, removal=self._removal)


class Link:
    """The frames of one task that one member takes. The methods that wait raise NotServed when the
    member has said goodbye: then it has not taken what it has not answered."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        port: MemberPort,
        talk: Conversation,
        target: Target,
        task: str,
        member: int,
        removal: bool,
        sequence: Iterator[int],
    ) -> None:
        """``sequence`` numbers the frames of the task for this member, over all its links."""
        self.member = member
        self.removal = removal
        self._port = port
        self._talk: Conversation | None = talk
        self._job = target.job
        self._task = task
        self._sequence = sequence
        self._rows = 0
        self._under_way: dict[int, Frame] = {}
        """By the number under which the answer comes."""

    @property
    def unanswered(self) -> int:
        return len(self._under_way)

    async def send(self, frame: Frame, deadline: Deadline) -> None:
        if frame.member is None or frame.sequence is None:
            frame.sequence = next(self._sequence)
        call = requests.job_write(
            self._job, self._task, frame.sequence, frame.dbody, removal=self.removal
        )
        self._under_way[-1] = frame  # if it is not sent, it is among those that have no answer
        number = await self._send(call, deadline)
        self._under_way[number] = self._under_way.pop(-1)

    async def receive(self, deadline: Deadline) -> tuple[Frame, RemudaError | None]:
        """The next frame that is answered, and how it was refused."""
        incoming = await self._answer(deadline)
        frame = self._under_way.pop(incoming.coordination_id)
        if incoming.error is None:
            self._rows += frame.rows
        return frame, incoming.error

    async def end(self, deadline: Deadline) -> None:
        """Say how many rows there were, when all frames are answered: the member fails the task
        when it counts differently. JobAborted."""
        call = requests.job_task_end(self._job, self._task, self._rows, removal=self.removal)
        await self._send(call, deadline)
        incoming = await self._answer(deadline)
        if incoming.error is not None:
            raise incoming.error

    def take_unanswered(self) -> list[Frame]:
        """The frames that were sent and have no answer, in their order."""
        frames, self._under_way = list(self._under_way.values()), {}
        return frames

    def release(self) -> None:
        """All is answered: others may have the connection."""
        if self._talk is not None:
            talk, self._talk = self._talk, None
            talk.release()

    def close(self) -> None:
        if self._talk is not None:
            talk, self._talk = self._talk, None
            talk.abandon()

    async def _send(self, call: Call[int], deadline: Deadline) -> int:
        try:
            return await self._open().send(call.rpc_type, call.body, call.dbody, deadline)
        except (ConnectionBroken, QueryTimeout) as error:
            raise self._lost(error, deadline) from error

    async def _answer(self, deadline: Deadline) -> Incoming:
        try:
            return await self._open().receive(deadline.left(REQUEST_TIMEOUT))
        except (ConnectionBroken, QueryTimeout) as error:
            raise self._lost(error, deadline) from error

    def _lost(self, error: RemudaError, deadline: Deadline) -> RemudaError:
        waited = deadline.seconds if deadline.passed else REQUEST_TIMEOUT
        return self._port.broken(error, waited)

    def _open(self) -> Conversation:
        if self._talk is None:
            raise InternalError("the job writer is closed")
        return self._talk
