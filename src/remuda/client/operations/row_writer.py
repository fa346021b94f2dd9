"""Writes one task of a staged job: rows go straight to their owners, several frames under way.

Any member takes any rows, and passes them on to the primaries of now. So when a member leaves, or
is not reached any more, what it has not taken goes to another one, and so does all that follows.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict, deque
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import pyarrow as pa

from remuda.client.core.core import Core
from remuda.client.core.routing import Router
from remuda.client.core.tries import LOST, Tries
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.operations.job_frames import FRAMES_IN_FLIGHT, Frame, Gathering, Link
from remuda.client.operations.job_outcome import without_coordinator
from remuda.client.operations.job_target import Target
from remuda.client.requests import requests
from remuda.client.requests.requests import JobTask
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import null_in, of_keys
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.violations import null_value
from remuda.errors import (
    InternalError,
    JobAborted,
    MemberLeaving,
    NotServed,
    PartitionsLost,
    PartitionsUnreachable,
    RemudaError,
    TypeMismatch,
    ViewChanged,
)

_ABSENT = (PartitionsLost, PartitionsUnreachable)


class JobWriter:
    """Sends engine-form batches of one task attempt to their owners. One writer at a time.

    ``write`` waits when FRAMES_IN_FLIGHT frames of a member are unanswered. Frames that a member
    has refused are sent again, for as long as a request may take. Any other error, and a connection
    that is lost while rows are under way, raises from ``write`` or ``finish``; the attempt is then
    useless, and its rows are dropped by the members when the job ends.
    """

    def __init__(
        self, target: Target, task: str, core: Core, deadline: Deadline | None = None
    ) -> None:
        """``core``: of the client that writes. ``deadline``: of all its rows; None: each call takes
        as long as ``with_timeout`` of that client allows."""
        self.target = target
        self.task = task
        self.rows = 0
        self._core = core
        self._whole = deadline
        self._deadline = NEVER
        """Of the call that runs now."""
        self._schema = engine_schema(target.schema)
        self._router: Router | None = None
        self._gathering: dict[tuple[int, bool], Gathering] = {}
        """By owner, and whether they are keys of entries to be removed."""
        self._links: dict[tuple[int, bool], Link] = {}
        """By the member that takes the frames."""
        self._sequences: defaultdict[tuple[int, bool], Iterator[int]] = defaultdict(itertools.count)
        """Of the frames for a member."""
        self._waiting: deque[Frame] = deque()
        """Frames that no member has."""
        self._passed_over: set[int] = set()
        """Members that have left, or could not be reached: others take what is theirs."""
        self._uncounted: set[int] = set()
        """Members that may have taken rows over a connection that has ended."""
        self._refusal: NotServed | None = None
        """Why a member was passed over last."""
        self._stranded: Tries | None = None
        """While every member is passed over."""
        self._closed = False

    async def write(self, batch: pa.RecordBatch) -> None:
        """Route and send the rows of an engine-form batch. TypeMismatch, NotNullViolation."""
        if batch.schema.types != self._schema.types:
            raise TypeMismatch(
                f'rows for map "{self.target.schema.name}" are not in the engine\'s form: '
                f"expected {self._schema}, found {batch.schema}"
            )
        batch = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        check_not_null(self.target.schema.given, batch)
        self._begin()
        await self._add(batch, removal=False)

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
        self._begin()
        await self._add(rows, removal=True)

    async def finish(self) -> JobTask:
        """Send the rest, wait for every answer, and close. The result goes to ``commit``."""
        self._begin()
        for gathering in self._gathering.values():
            if (frame := gathering.take()) is not None:
                self._waiting.append(frame)
        await self._send_waiting()
        await self._settle()  # members take the frames of a task in any order: count them last
        await self._count()
        members = {member for member, _ in self._links}
        for link in self._links.values():
            link.release()
        return JobTask(self.task, tuple(sorted(members)), self.rows)

    def close(self) -> None:
        """Give up at once. Does nothing after ``finish``."""
        self._closed = True
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

    # --- inside -------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A call begins. InternalError when the writer is closed."""
        if self._closed:
            raise InternalError("the job writer is closed")
        core = self._core
        self._deadline = core.lasting(core.deadline()) if self._whole is None else self._whole

    async def _add(self, batch: pa.RecordBatch, *, removal: bool) -> None:
        self.rows += batch.num_rows
        view = self._core.view
        whole = self.target.schema.replicated  # a later joiner would lack rows
        if self._router is None or (self._router.view is not view and not whole):
            self._router = Router(self.target.schema, view)
        for owner, part in self._router.split(batch):
            gathering = self._gathering.get((owner, removal))
            if gathering is None:
                gathering = Gathering(self.target.schema, owner, removal=removal)
                self._gathering[owner, removal] = gathering
            self._waiting.extend(gathering.add(part))
        await self._send_waiting()

    async def _send_waiting(self) -> None:
        while self._waiting:
            frame = self._waiting[0]
            link = await self._link(frame)
            if link is None:  # the next look may find another member, or nobody who needs it
                continue
            if link.unanswered >= FRAMES_IN_FLIGHT:
                await self._receive(link)  # which may end the link
                continue
            self._waiting.popleft()
            try:
                await link.send(frame, self._deadline)
            except NotServed:
                # It has said goodbye, and may have answered other frames before.
                while link is self._links.get((link.member, link.removal)):
                    await self._receive(link)

    async def _settle(self) -> None:
        """Wait until every frame is answered, by whichever member."""
        while link := next((link for link in self._links.values() if link.unanswered), None):
            await self._receive(link)
            await self._send_waiting()

    async def _receive(self, link: Link) -> None:
        try:
            frame, error = await link.receive(self._deadline)
        except NotServed as goodbye:
            await self._left(link, goodbye)
            return
        if error is None:
            self._stranded = None
        elif (refusal := self._refused(link, frame, error)) is not None:
            # Frames that it has taken are answered yet: the link goes on until then.
            await self._pass_over(link.member, refusal)
            self._waiting.append(frame)
        else:
            frame.member = link.member  # it may have passed on a part, and knows which
            await self._again(frame, error)
            self._waiting.append(frame)

    def _refused(self, link: Link, frame: Frame, error: RemudaError) -> NotServed | None:
        """``error`` if the member serves no client any more, and another one may take the frame."""
        if not isinstance(error, MemberLeaving) or self.target.schema.replicated:
            return None
        if error.member != str(link.member):
            return None
        if frame.member is not None:  # a part of it may be staged, and nobody knows which
            raise error
        return error

    async def _link(self, frame: Frame) -> Link | None:
        """The member that is to take the frame. None: look again. Raises if none does for long."""
        member = self._member_for(frame)
        if member is None and self.target.schema.replicated:
            self._waiting.popleft()  # one that has left needs no copy; all others get theirs
            return None
        if member is None:
            await self._return_to_all()
            return None
        link = self._links.get((member, frame.removal))
        if link is not None:
            return link
        try:
            port = self._core.pool(member)
            talk = await port.converse(self._deadline)
        except NotServed as error:
            await self._unreached(frame, member, error)
            return None
        place = member, frame.removal
        link = Link(port, talk, self.target, self.task, *place, self._sequences[place])
        self._links[place] = link
        return link

    def _member_for(self, frame: Frame) -> int | None:
        """Its owner, or else any other member: None if there is none that may be asked."""
        members = self._core.view.by_number
        if self.target.schema.replicated:
            return frame.owner if frame.owner in members else None
        if frame.member is not None:
            return frame.member
        if frame.owner in members and frame.owner not in self._passed_over:
            return frame.owner
        others = sorted(set(members) - self._passed_over)
        return others[frame.owner % len(others)] if others else None

    async def _return_to_all(self) -> None:
        """Every member is passed over: wait, and try them again. Raises why the last one was."""
        assert self._refusal is not None
        self._stranded = self._tries(self._stranded)
        await self._stranded.after(self._refusal)
        self._require_coordinator()
        self._passed_over.clear()

    async def _left(self, link: Link, error: NotServed) -> None:
        """A member serves no client any more. It has not taken what it has not answered."""
        del self._links[link.member, link.removal]
        link.close()
        self._uncounted.add(link.member)
        frames = link.take_unanswered()
        if self.target.schema.replicated:
            for frame in frames:  # until a view says that it has left
                await self._again(frame, error)
        elif any(frame.member is not None for frame in frames):
            raise error  # a part of one may be staged, and nobody knows which
        else:
            await self._pass_over(link.member, error)
        self._waiting.extend(frames)

    async def _unreached(self, frame: Frame, member: int, error: NotServed) -> None:
        """A member takes no connection: nothing was sent to it."""
        if self.target.schema.replicated:
            await self._again(frame, error)
        elif frame.member is not None:
            raise error
        else:
            await self._pass_over(member, error)

    async def _pass_over(self, member: int, error: NotServed) -> None:
        if self._deadline.passed:
            raise error
        self._refusal = error
        self._passed_over.add(member)
        with contextlib.suppress(*LOST):  # the next one that is asked says more
            await self._core.refresh(self._deadline)
        self._require_coordinator()

    async def _again(self, frame: Frame, error: RemudaError) -> None:
        """Wait until the frame may be sent again. Raises ``error`` when it may not."""
        if isinstance(error, LOST) and not isinstance(error, (NotServed, *_ABSENT)):
            # A member between has failed. Each copy takes each row of a frame once.
            error = NotServed(error.message, member=error.member)
        if isinstance(error, JobAborted):  # perhaps because its coordinator has left
            with contextlib.suppress(*LOST):
                await self._core.refresh(self._deadline)
            self._require_coordinator()
        if not isinstance(error, (NotServed, ViewChanged, *_ABSENT)):
            raise error
        frame.tries = self._tries(frame.tries)
        await frame.tries.after(error)
        self._require_coordinator()

    def _require_coordinator(self) -> None:
        """Raises JobInterrupted: without the member that began it, a job cannot be committed."""
        coordinator = requests.job_coordinator(self.target.job)
        if coordinator is not None and coordinator not in self._core.view.by_number:
            raise without_coordinator(self.target.job)

    def _tries(self, before: Tries | None) -> Tries:
        """Those that go on, unless they belong to a former call."""
        if before is not None and before.deadline is self._deadline:
            return before
        return self._core.tries(0, self._deadline)

    async def _count(self) -> None:
        """Have each member compare how many rows it has taken: it fails the task if they differ.
        Where that says nothing (rows were taken over another connection as well, or the member has
        left since), the commit does it: it compares the rows of all. A replicated map has all rows
        on each member, and those that have left count no more."""
        replicated = self.target.schema.replicated
        for key, link in list(self._links.items()):
            if link.member in self._uncounted and not replicated:
                continue
            try:
                await link.end(self._deadline)
            except LOST:
                link.close()
                if replicated:
                    await self._core.refresh(self._deadline)
                    if link.member in self._core.view.by_number:
                        raise
                    del self._links[key]


def check_not_null(schema: MapSchema, batch: pa.RecordBatch) -> None:
    """NotNullViolation when a NOT NULL column of an engine-form batch holds a NULL."""
    for column, array in zip(schema.columns, batch.columns, strict=True):
        if not column.nullable and array.null_count:
            raise null_in(schema, column, batch)
