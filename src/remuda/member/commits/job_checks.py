"""UNIQUE and foreign keys in bulk writes: how a member compares the rows of a prepared job with
those of all others (decisions 0085 and 0108).

The coordinator asks each primary of the map once all have voted. Nothing else is written to the map
anywhere from then on, so each reading stays true until the job is decided. Each member asks the
others for the hashes of the values that the job writes there, and looks for them among its own: the
rows of the job, and the stored ones that the job leaves. Where hashes are equal it asks for the
values themselves. For a foreign key it looks for the rows that its own rows of the job name, as
they are at the timestamp of the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from remuda.datatypes.schema import ForeignKey, MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.violations import missing_parent
from remuda.errors import RemudaError, SerializationFailure, TransientError
from remuda.member.base.core import Core, bug
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.commits.participants import CommitParticipants
from remuda.member.commits.unique_comparison import UniqueComparison
from remuda.member.state.commit_work import Taking
from remuda.rpc import arrow_stream, codec
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.chunks.chunk import Offsets
from remuda.storage.chunks.keys import Hashes
from remuda.storage.maps.unique_values import NOTHING, Columns, JobValues, WrittenValues
from remuda.transaction import staged_commit as tx

Answered = Callable[[control_pb2.CommitPrepared], None]
RequireParents = Callable[
    [MapSchema, ForeignKey, Sequence[tuple[PhysicalValue, ...]], int], Awaitable[None]
]
"""See ``ForeignKeyChecks.require_parents``."""

HASHES_SENT: Final = 256 * 1024
"""So many hashes (2 MiB) travel in one message."""
PARENTS_TIMEOUT: Final = 8.0
"""Seconds from the first question on. A transaction that waits behind the job gives up sooner."""
ANSWER_TIMEOUT: Final = 15.0
"""Seconds. If an answer does not come, the next question of the coordinator begins anew, and
finds values that were computed for the one before. A member that is lost ends it at once."""


class _TooLate(Exception):
    """The job is refused with ``error``, which is no reason to ask again."""

    def __init__(self, error: SerializationFailure) -> None:
        self.error = error


class JobChecks:
    """A member's answers to the coordinators of jobs, and to other members that check them."""

    def __init__(
        self, core: Core, peers: Peers, offload: Offload, participants: CommitParticipants
    ) -> None:
        self._core = core
        self._peers = peers
        self._offload = offload
        self._participants = participants
        self._values: dict[str, JobValues] = {}
        """Of jobs that are checked here, or whose values others have asked for."""
        self._require_parents: RequireParents | None = None
        self._began: dict[str, float] = {}
        """Jobs that look for parents, and since when (monotonic seconds)."""
        self._asked: dict[str, list[Answered]] = {}
        """Jobs whose check is under way, with the answers that wait for it."""
        core.listeners.resolved.add(self._resolved)
        core.room.counts(lambda: sum(values.nbytes for values in self._values.values()))

    def find_parents_by(self, require: RequireParents) -> None:
        """``require`` looks for the rows that rows of a job name."""
        self._require_parents = require

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Of the control channel."""
        return {RpcType.COMMIT_CHECK: self.on_check, RpcType.JOB_VALUES: self.on_values}

    # --- the check ------------------------------------------------------------------------------

    def on_check(self, request: Request) -> None:
        message = control_pb2.CommitCheck.FromString(request.pbody)
        self._core.observe_member(message.context)
        self.check_here(message, lambda answer: request.reply(RpcType.COMMIT_CHECK, answer))

    def check_here(self, message: control_pb2.CommitCheck, reply: Answered) -> None:
        """A repeated question joins the check that is under way."""
        job = message.job
        if job in self._asked:
            self._asked[job].append(reply)
            return
        for effect in self._participants.step(job, tx.CheckAsked(message.commit_timestamp)):
            match effect:
                case tx.CheckHere(timestamp):
                    self._core.clock.observe(timestamp)
                    self._asked[job] = [reply]
                    self._core.spawn(self._check(message), f"check of job {job}")
                case tx.TellRefusal():
                    self._tell(effect, [reply])

    async def _check(self, message: control_pb2.CommitCheck) -> None:
        found: RemudaError | None = None
        try:
            await self._compare(message)
        except _TooLate as late:
            self._answer_check(message, late.error)
            return
        except RemudaError as error:
            found = error
        except Exception as error:  # noqa: BLE001 (a task of its own: nobody else would answer)
            found = bug(error, f"the check of job {message.job}")
        if found is not None and found.transient:
            del self._asked[message.job]
            return  # asked again, unless a member is lost
        self._answer_check(message, found)

    def _answer_check(self, message: control_pb2.CommitCheck, found: RemudaError | None) -> None:
        waiting = self._asked.pop(message.job)
        for effect in self._participants.step(message.job, tx.CheckedHere(found)):
            self._tell(effect, waiting)

    def _tell(self, effect: tx.Effect, waiting: Sequence[Answered]) -> None:
        answer = control_pb2.CommitPrepared(context=self._core.context())
        if isinstance(effect, tx.TellRefusal):
            answer.refusal.CopyFrom(codec.encode_error(effect.error))
        for reply in waiting:
            reply(answer)

    async def _compare(self, message: control_pb2.CommitCheck) -> None:
        """Raises UniqueViolation, and transient errors when another member does not answer."""
        job, at = message.job, message.commit_timestamp
        values = self._values_of(job, at)
        taking = self._participants.known(job)
        assert taking is not None, "its values are here"
        others = [number for number in message.members if number != self._core.number]
        for index in values.schema.uniques:
            written = await self._offload.result(partial(_written, values, index.index_id))
            own = _Own(self._core.number, written)
            ask = partial(self._ask, job=job, index_id=index.index_id, commit_timestamp=at)
            found = await asyncio.gather(*(_Elsewhere.of(number, ask) for number in others))
            comparison = UniqueComparison(self._offload, values, written, own, found)
            if await comparison.run():
                taking.writes_values = True
        if values.schema.foreign_keys:
            clock = self._core.world.clock
            began = self._began.setdefault(job, clock.monotonic())
            left = began + PARENTS_TIMEOUT - clock.monotonic()
            await self._find_parents(values, at, max(0.0, left))

    async def _find_parents(self, values: JobValues, at: int, left: float) -> None:
        """``left``: seconds that it may take. Raises ForeignKeyViolation, and _TooLate if parents
        are pending or out of reach for so long that the job may stand in their way itself: another
        job may be looking for parents among its rows."""
        require = self._require_parents
        if require is None:
            raise TransientError(f"member {self._core.number} is starting")
        try:
            async with asyncio.timeout(left):
                for foreign in values.schema.foreign_keys:
                    if foreign.full:
                        mixed = await self._offload.result(partial(values.mixed, foreign.columns))
                        if mixed is not None:
                            parent = foreign.parent
                            raise missing_parent(values.schema, foreign, parent, mixed)
                    named = await self._offload.result(partial(values.named, foreign.columns))
                    await require(values.schema, foreign, named, at)
        except TimeoutError:
            error = SerializationFailure(
                f'a bulk write of "{values.schema.local}" waited too long for the rows that its '
                "foreign keys name: other writes of them are not decided, or members that have "
                "them do not answer",
                hint="Write the rows again.",
            )
            raise _TooLate(error) from None

    def _values_of(self, job: str, at: int) -> JobValues:
        """Raises TransientError when the job is not prepared here (any more)."""
        known = self._values.get(job)
        if known is not None:
            return known
        taking = self._participants.known(job)
        if taking is None or taking.participant.phase not in _READABLE:
            raise TransientError(f"job {job} is not being committed on this member")
        found = self._values[job] = self._read(taking, job, at)
        return found

    def _read(self, taking: Taking, job: str, at: int) -> JobValues:
        core, work = self._core, taking.work
        assert work is not None, "it is prepared"
        store = core.store(work.schema.map_id, work.schema.version)
        mine = frozenset(core.view.partitions_of(core.number))
        served = None if work.schema.replicated else mine
        return store.job_values(job, at, served, work.removed_keys)

    def _resolved(self, _map_id: int) -> None:
        for job in [job for job in self._values if not self._participants.is_staging(job)]:
            del self._values[job]
            self._began.pop(job, None)

    # --- questions of other members -------------------------------------------------------------

    def on_values(self, request: Request) -> None:
        message = control_pb2.JobValues.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._core.serve(request, self._answer(request, message))

    async def _answer(self, request: Request, message: control_pb2.JobValues) -> None:
        values = self._values_of(message.job, message.commit_timestamp)

        def work() -> tuple[int, bytes | memoryview]:
            written = values.written[message.index_id]
            if not message.places:
                part = written.hashes[message.start : message.start + message.count]
                return len(written), part.tobytes()
            batch = written.batch(np.array(message.places, dtype=np.int64))
            return len(written), arrow_stream.encode(batch.schema, [batch])

        count, body = await self._offload.result(work)
        answer = control_pb2.JobValues(context=self._core.context(), count=count)
        request.reply(RpcType.JOB_VALUES, answer, [body])

    async def _ask(self, number: int, **wanted: object) -> tuple[int, memoryview]:
        """How many values a member has, and the body of its answer."""
        message = control_pb2.JobValues(context=self._core.context(), **wanted)  # type: ignore[arg-type]
        reply = await self._peers.request(
            number, RpcType.JOB_VALUES, message, timeout=ANSWER_TIMEOUT
        )
        return control_pb2.JobValues.FromString(reply.pbody).count, memoryview(reply.dbody)


def _written(values: JobValues, index_id: int) -> WrittenValues:
    return values.written[index_id]


_READABLE: Final = {
    tx.ParticipantPhase.PREPARED,
    tx.ParticipantPhase.KEPT,
    tx.ParticipantPhase.DECIDING,
}


Ask = Callable[..., Awaitable[tuple[int, memoryview]]]


@dataclass
class _Own:
    """The values that the job writes on this member."""

    number: int
    written: WrittenValues

    @property
    def hashes(self) -> Hashes:
        return self.written.hashes

    async def columns(self, places: Offsets) -> Columns:
        return self.written.columns(places)


@dataclass
class _Elsewhere:
    """The values that the job writes on another member."""

    number: int
    hashes: Hashes
    ask: Ask

    @classmethod
    async def of(cls, number: int, ask: Ask) -> _Elsewhere:
        parts, there = [NOTHING], 0
        while True:
            count, body = await ask(number, start=there, count=HASHES_SENT)
            parts.append(np.frombuffer(body, dtype=np.uint64))
            there += len(parts[-1])
            if there >= count:
                return cls(number, np.concatenate(parts), ask)

    async def columns(self, places: Offsets) -> Columns:
        if not len(places):
            return []
        _, body = await self.ask(self.number, places=places.tolist())
        (batch,) = arrow_stream.decode(body)
        return list(batch.columns)
