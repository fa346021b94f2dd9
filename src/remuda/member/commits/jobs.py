"""Staged jobs: rows that many tasks write to many members; they appear together or not at all.

The member that got JOB_BEGIN coordinates the job; its number is the prefix of its id. A member
that gets rows of a job it has not heard of asks the coordinator about it, and keeps telling it that
rows still arrive; a job without any traffic for ``JOB_IDLE_TIMEOUT`` is aborted everywhere.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import pyarrow as pa

from remuda.catalog.users import Role
from remuda.datatypes.conformance import of_keys
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    InsufficientPrivilege,
    JobAborted,
    JobInterrupted,
    LimitExceeded,
    MemberUnavailable,
    PartitionsUnreachable,
    RemudaError,
    TypeMismatch,
    UndefinedStatement,
    ViewChanged,
)
from remuda.limits import JOB_IDLE_TIMEOUT
from remuda.member.base.core import Call, Core, to_its_end
from remuda.member.base.forwarding import Forwarding
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Calls, Routes, Wing
from remuda.member.commits.commits import Commits, Work, rows_missing
from remuda.member.commits.job_rows import Frame, JobRows
from remuda.member.commits.turns import coordinator_of
from remuda.member.commits.writes import owners
from remuda.member.state.lifetimes import refuse_bulk, refuse_bulk_removal, refuse_lifetime
from remuda.member.state.log import fields
from remuda.rpc import arrow_stream, codec
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.staged_commit import ParticipantPhase

log = logging.getLogger(__name__)

JOBS_MAX = 1000
ENDED_KEPT = 10_000
ENDED_SIZE = 300
"""Bytes of the name of a job and of how it ended."""
TOUCH_EVERY = JOB_IDLE_TIMEOUT / 10
_STATES = {
    ParticipantPhase.STAGING: user_pb2.JOB_UNKNOWN,
    ParticipantPhase.COMMITTED: user_pb2.JOB_COMMITTED,
    ParticipantPhase.ABORTED: user_pb2.JOB_ABORTED,
}
_ID = re.compile(r"[1-9][0-9]*-[0-9a-f]{24}")


@dataclass
class Job:
    """A job that this member coordinates."""

    id: str
    schema: MapSchema
    overwrite: bool
    label: str
    touched: float
    insert_only: bool = False
    user: str = ""
    """The user that began it; "" where members know no users."""
    commit: asyncio.Task[int] | None = None


class Jobs(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        commits: Commits,
        forwarding: Forwarding,
        rows: JobRows,
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._forwarding = forwarding
        self._rows = rows
        self._pauses = rows.pauses
        rows.on_arrival.append(self._arrives)
        self._jobs: dict[str, Job] = {}
        self._ended: OrderedDict[str, int | RemudaError] = OrderedDict()
        core.room.counts(lambda: ENDED_SIZE * len(self._ended))
        self._heard: dict[str, float] = {}
        """Jobs that rows arrive for here: when their coordinator last heard of it."""
        self._writers: dict[str, str] = {}
        """Of these: whom the coordinator has let write."""
        self._arrived: dict[str, dict[tuple[str, bool], dict[int, int]]] = {}
        """The rows that clients have sent here: job -> task, removal -> sequence -> rows. (The rows
        may be elsewhere.)"""

    def routes(self) -> Routes:
        calls: Calls = {
            RpcType.JOB_BEGIN: self.on_begin,
            RpcType.JOB_WRITE: self.on_write,
            RpcType.JOB_TASK_END: self.on_task_end,
            RpcType.JOB_COMMIT: self.on_commit,
            RpcType.JOB_ABORT: self.on_abort,
            RpcType.JOB_OUTCOME: self.on_outcome,
        }
        return Routes(calls=calls, control={ControlType.JOB_TOUCH: self.on_touch})

    def gauges(self) -> dict[str, int]:
        return {"jobs": self.count}

    # --- the coordinator ----------------------------------------------------------------------

    def on_begin(self, call: Call) -> None:
        message = user_pb2.JobBegin.FromString(call.pbody)
        core = self._core
        if not message.HasField("job"):  # one that has its id is named after this member
            core.departure.require_staying()
        schema = core.schema(message.map)
        if message.HasField("job") and self._begun_elsewhere(call, message.job):
            return
        refuse_bulk(schema, "bulk writes")
        if message.overwrite:
            refuse_bulk_removal(schema, "bulk overwrites")
        core.require_all_reached()
        if len(self._jobs) >= JOBS_MAX:
            raise LimitExceeded(f"member {core.number} coordinates {JOBS_MAX} jobs already")
        job = Job(
            message.job or self._commits.new_job(),
            schema,
            message.overwrite,
            message.label,
            self._now(),
            insert_only=message.insert_only,
            user=call.user,
        )
        self._jobs[job.id] = job
        log.info("job begun", extra=fields(job=job.id, map=schema.name, label=job.label))
        call.reply(RpcType.JOB_BEGIN, self._handle(job))

    def _begun_elsewhere(self, call: Call, job: str) -> bool:
        """A job whose id its client has made up: begun already, or for another member. Raises
        JobAborted when it has ended."""
        if not _ID.fullmatch(job):
            raise JobAborted(f"{job!r} is not the id of a job")
        if self._elsewhere(call, job):
            return True
        known = self._jobs.get(job)
        if known is None or known.commit is not None:
            if known is not None or job in self._ended:
                raise self._gone(job)
            return False
        self._require_owner(known, call.user)
        known.touched = self._now()
        call.reply(RpcType.JOB_BEGIN, self._handle(known))
        return True

    def on_outcome(self, call: Call) -> None:
        """This member's knowledge of the end of a job, also long afterwards."""
        job = user_pb2.JobOutcomeRequest.FromString(call.pbody).job
        call.reply(RpcType.JOB_OUTCOME, user_pb2.JobOutcome(state=self._state_of(job)))

    def _state_of(self, job: str) -> user_pb2.JobState:
        if isinstance(self._ended.get(job), int) or self._core.wal.committed_job(job):
            return user_pb2.JOB_COMMITTED
        if job in self._jobs:
            return user_pb2.JOB_OPEN
        taking = self._commits.participants.known(job)
        phase = ParticipantPhase.STAGING if taking is None else taking.participant.phase
        # Rows that are staged here say nothing: their coordinator does, or is lost.
        return _STATES.get(phase, user_pb2.JOB_OPEN)

    def _handle(self, job: Job) -> user_pb2.JobHandle:
        return user_pb2.JobHandle(job=job.id, schema=codec.encode_schema(job.schema))

    def on_commit(self, call: Call) -> None:
        message = user_pb2.JobCommit.FromString(call.pbody)
        if self._elsewhere(call, message.job):
            return
        job = self._jobs.get(message.job)
        if job is None:
            self._answer_ended(call, message.job)
            return
        self._require_owner(job, call.user)
        if job.commit is None:
            job.commit = asyncio.get_running_loop().create_task(self._commit(job, message))
        self._core.serve(call, self._await_commit(call, job.commit))

    async def _await_commit(self, call: Call, commit: asyncio.Task[int]) -> None:
        count = await to_its_end(commit, "the commit of a job")
        call.reply(RpcType.JOB_COMMIT, user_pb2.Count(count=count, context=self._core.context()))

    def _answer_ended(self, call: Call, job: str) -> None:
        ended = self._ended.get(job)
        if ended is None:
            raise UndefinedStatement(f"job {job} is not known", hint="It may have expired.")
        if isinstance(ended, RemudaError):
            raise copy(ended)
        call.reply(RpcType.JOB_COMMIT, user_pb2.Count(count=ended, context=self._core.context()))

    async def _commit(self, job: Job, message: user_pb2.JobCommit) -> int:
        core = self._core
        named = {member for task in message.tasks for member in task.members}
        expected = None
        if not job.schema.replicated and all(task.HasField("rows") for task in message.tasks):
            expected = sum({task.task: task.rows for task in message.tasks}.values())
        work = Work(
            job=job.id,
            schema=job.schema,
            tasks=tuple(task.task for task in message.tasks),
            overwrite=job.overwrite,
            insert_only=job.insert_only,
            ttl=message.ttl if message.HasField("ttl") else None,
            unique=bool(job.schema.uniques),
            references=bool(job.schema.foreign_keys),
        )
        try:
            refuse_lifetime(job.schema, work.ttl)
            core.store(job.schema.map_id, job.schema.version)
            if job.schema.replicated:
                self._require_on_all(job, message)
            elif expected is None:  # nobody would see that rows are missing
                for number in named:
                    core.require_alive(number)
            participants = await self._participants(job)
            rows = 0
            if participants:
                rows = await self._commits.commit(work, participants, expected=expected)
            elif expected:
                raise rows_missing(job.id, expected, 0)
        except (ViewChanged, MemberUnavailable) as error:
            if not error.retryable or isinstance(error, PartitionsUnreachable):
                self._end(job, error)
                raise
            # A client that asks again would hear of a job that has ended.
            interrupted = self._interrupted(job, error)
            self._end(job, interrupted)
            raise interrupted from error
        except RemudaError as error:
            self._end(job, error)
            raise
        finally:
            if not job.schema.replicated:
                self._pauses.resume(job.id)
        if job.schema.replicated:
            rows //= len(participants)
        self._end(job, rows, done=participants)
        return rows

    def _interrupted(self, job: Job, cause: RemudaError) -> JobInterrupted:
        return JobInterrupted(
            f"job {job.id} was aborted: {cause.message}",
            detail="It was rolled back: nothing of it took effect.",
            hint="Write the rows again.",
            member=cause.member,
        )

    def end_open(self, error: RemudaError) -> None:
        """Roll back the jobs that are not being committed. ``error`` says why; a client that asks
        for one of them hears JobInterrupted."""
        for job in list(self._jobs.values()):
            if job.commit is None:
                self._end(job, self._interrupted(job, error))

    def _require_on_all(self, job: Job, message: user_pb2.JobCommit) -> None:
        """Every member of now has the rows of every task; those that have left do not matter.
        Raises JobAborted."""
        for task in message.tasks:
            for member in self._core.view.members:
                if task.members and member.number not in task.members:
                    raise JobInterrupted(
                        f"job {job.id} was aborted: {member} has joined since rows of it were "
                        f'written to the replicated map "{job.schema.name}"',
                        hint="Write the rows again.",
                    )

    async def _participants(self, job: Job) -> tuple[int, ...]:
        """The primaries of what the job has staged; nothing of it changes hands from now on."""
        everybody = tuple(member.number for member in self._core.view.members)
        if job.schema.replicated:
            return everybody
        writers = await self._pauses.pause(job.id)
        if job.overwrite:
            return everybody
        if job.schema.uniques and writers:
            self._core.require_all_reached()
            return tuple(sorted({*writers, *owners(self._core.view)}))
        return writers

    def _end(self, job: Job, outcome: int | RemudaError, done: tuple[int, ...] = ()) -> None:
        """Remember how the job ended, and free what members hold that did not take part. An error
        is remembered as a copy without a traceback, whose frames hold the job."""
        self._jobs.pop(job.id, None)
        self._ended[job.id] = copy(outcome)
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)
        self._commits.drop(
            job.id, [m.number for m in self._core.view.members if m.number not in done]
        )
        log.info(
            "job ended",
            extra=fields(
                job=job.id,
                map=job.schema.name,
                **({"rows": outcome} if isinstance(outcome, int) else {"error": outcome.message}),
            ),
        )

    def on_abort(self, call: Call) -> None:
        """Aborting twice, or after a commit, does nothing."""
        message = user_pb2.JobAbort.FromString(call.pbody)
        if self._elsewhere(call, message.job):
            return
        job = self._jobs.get(message.job)
        if job is not None and job.commit is None:
            self._require_owner(job, call.user)
            self._end(job, JobAborted(f"job {job.id} was aborted by its owner"))
        call.reply(RpcType.JOB_ABORT, common_pb2.Ack(ok=True))

    def _require_owner(self, job: Job, user: str) -> None:
        """Raises InsufficientPrivilege: a job is for who began it, as long as he may write, and for
        administrators."""
        access = self._core.access
        if access.active and user:
            if not access.owns(user, job.user):
                raise InsufficientPrivilege(f'job {job.id} is not one of user "{user}"')
            access.require(user, Role.WRITE, job.schema.name)

    def _elsewhere(self, call: Call, job: str) -> bool:
        coordinator = coordinator_of(job)
        if coordinator == self._core.number:
            return False
        self._core.require_alive(coordinator)
        self._forwarding.pass_on(call, coordinator)
        return True

    def on_touch(self, request: Request) -> None:
        """Another member has rows of a job of ours."""
        message = control_pb2.JobTouch.FromString(request.pbody)
        self._core.observe_peer(message.context)
        job = self._jobs.get(message.job)
        if job is None:
            gone = self._gone(message.job)
            raise (
                gone if isinstance(gone, JobAborted) else JobAborted(f"job {message.job} has ended")
            )
        self._require_owner(job, message.user)
        if message.active:
            job.touched = self._now()
        request.reply(ControlType.JOB_TOUCH, self._handle(job))

    # --- the members that hold rows -----------------------------------------------------------

    def on_write(self, call: Call) -> None:
        self._core.wal.require_room()
        message = user_pb2.JobWrite.FromString(call.pbody)
        coordinator = coordinator_of(message.job)
        if coordinator == self._core.number:
            job = self._jobs.get(message.job)
            if job is None:
                raise self._gone(message.job)
            self._require_owner(job, call.user)
            job.touched = self._now()
            self._stage(call, message, job.schema)
            return
        heard = self._heard.get(message.job)
        known = self._writers.get(message.job) == call.user
        if known and heard is not None and self._now() - heard < TOUCH_EVERY:
            self._stage(call, message, self._commits.schema_of(message.job))
        else:
            self._core.serve(call, self._write_after_touch(call, message, coordinator))

    def _gone(self, job: str) -> RemudaError:
        ended = self._ended.get(job)
        if isinstance(ended, RemudaError):
            return copy(ended)
        return JobAborted(f"job {job} has ended and takes no more rows")

    async def _write_after_touch(
        self, call: Call, message: user_pb2.JobWrite, coordinator: int
    ) -> None:
        schema = await self._touch(message.job, coordinator, active=True, user=call.user)
        if schema.replicated:
            self._stage_here(call, message, schema)
        else:
            await self._stage_everywhere(call, message, schema)
        self._heard[message.job] = self._now()
        self._writers[message.job] = call.user

    async def _touch(
        self, job: str, coordinator: int, *, active: bool, user: str = ""
    ) -> MapSchema:
        """Tell the coordinator; the map of the job. Raises JobAborted when the job has ended."""
        touch = control_pb2.JobTouch(
            context=self._core.context(), job=job, active=active, user=user
        )
        reply = await self._peers.request(coordinator, ControlType.JOB_TOUCH, touch)
        return codec.decode_schema(user_pb2.JobHandle.FromString(reply.pbody).schema)

    async def _check(self, job: str) -> None:
        """Rows of the job lie here and none have come for a while: has it ended elsewhere?"""
        try:
            await self._touch(job, coordinator_of(job), active=False)
        except JobAborted:
            self._heard.pop(job, None)
            self._writers.pop(job, None)
            taking = self._commits.participants.known(job)
            if taking is not None and taking.participant.phase is ParticipantPhase.STAGING:
                self._commits.drop(job, [self._core.number])

    def _stage(self, call: Call, message: user_pb2.JobWrite, schema: MapSchema) -> None:
        if message.removal:
            refuse_bulk_removal(schema, "bulk deletes")
        if schema.replicated:
            self._stage_here(call, message, schema)
        else:
            self._core.serve(call, self._stage_everywhere(call, message, schema))

    async def _stage_everywhere(
        self, call: Call, message: user_pb2.JobWrite, schema: MapSchema
    ) -> None:
        """On every copy, wherever they are by now: acknowledged rows are on all of them."""
        core, job = self._core, message.job
        schema = core.store(schema.map_id, schema.version).schema
        self._commits.staging(job, schema).lasting = True
        of_job = self._arrived.setdefault(job, {})
        arrived = of_job.setdefault((message.task, message.removal), {})
        rows = 0
        for index, batch in enumerate(self._batches(call, message, schema)):
            # Several batches of one request get sequence numbers of their own.
            sequence = message.sequence * 2**20 + index
            if sequence in arrived:
                continue
            frame = Frame(job, message.task, core.number, sequence, message.removal)
            await self._rows.take(schema, frame, batch)
            if sequence not in arrived:
                arrived[sequence] = batch.num_rows
                rows += batch.num_rows
        answer = user_pb2.Count(count=rows, context=core.context())
        core.wal.after(lambda: call.reply(RpcType.JOB_WRITE, answer))

    def _stage_here(self, call: Call, message: user_pb2.JobWrite, schema: MapSchema) -> None:
        """Rows of a replicated map, which its writers send to every member."""
        store = self._core.store(schema.map_id, schema.version)
        self._commits.staging(message.job, store.schema).lasting = True
        rows = 0
        stage = store.stage_removals if message.removal else store.stage
        note = self._core.wal.staged_keys if message.removal else self._core.wal.staged
        for index, batch in enumerate(self._batches(call, message, store.schema)):
            self._core.room.admit_rows(store.schema, batch, primary=True, removal=message.removal)
            fresh = stage(message.job, message.task, message.sequence * 2**20 + index, batch)
            if fresh:
                note(message.job, message.task, store.schema, batch, backup=False)
            rows += fresh
        answer = user_pb2.Count(count=rows, context=self._core.context())
        self._core.wal.after(lambda: call.reply(RpcType.JOB_WRITE, answer))

    def _batches(
        self, call: Call, message: user_pb2.JobWrite, schema: MapSchema
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a request; of those that are to be removed only the key counts."""
        for batch in arrow_stream.decode(call.dbody):
            if message.removal:
                if batch.num_columns != len(schema.key):
                    raise TypeMismatch(f'map "{schema.name}": the keys are not those of the map')
                yield of_keys(batch.columns, schema)
            else:
                yield self._core.constraints.entered(batch, schema)

    def on_task_end(self, call: Call) -> None:
        """The writer says how many rows it sent here; a difference fails the task."""
        message = user_pb2.JobTaskEnd.FromString(call.pbody)
        schema = self._commits.schema_of(message.job) if message.rows else None
        rows = 0
        if schema is not None and schema.replicated:
            store = self._core.store(schema.map_id, schema.version)
            rows = store.staged_rows(message.job, message.task, removals=message.removal)
        elif schema is not None:
            of_job = self._arrived.get(message.job, {})
            rows = sum(of_job.get((message.task, message.removal), {}).values())
        if rows != message.rows:
            raise JobAborted(
                f"task {message.task} of job {message.job} sent {message.rows} rows to member "
                f"{self._core.number}, which has {rows}"
            )
        call.reply(RpcType.JOB_TASK_END, user_pb2.Count(count=rows, context=self._core.context()))

    # --- upkeep -------------------------------------------------------------------------------

    def expire(self) -> None:
        """Abort what has been idle for too long; called now and then."""
        now = self._now()
        for job in list(self._jobs.values()):
            if job.commit is None and now - job.touched > JOB_IDLE_TIMEOUT:
                idle = JobAborted(f"job {job.id} was idle for {JOB_IDLE_TIMEOUT:.0f} s")
                self._end(job, idle)
        for job_id, heard in list(self._heard.items()):
            if not self._commits.is_staging(job_id):
                del self._heard[job_id]
                self._writers.pop(job_id, None)
            elif now - heard > 2 * TOUCH_EVERY:
                self._core.spawn(self._check(job_id), f"check of job {job_id}")

        for job_id in list(self._arrived):
            if not self._commits.is_staging(job_id):
                del self._arrived[job_id]

    def _arrives(self, job: str) -> None:
        """Rows of a job come from other members: if it has ended, somebody must notice."""
        if coordinator_of(job) != self._core.number:
            self._heard.setdefault(job, self._now())

    def map_dropped(self, map_id: int) -> None:
        for job in list(self._jobs.values()):
            if job.schema.map_id == map_id and job.commit is None:
                self._end(job, JobAborted(f'map "{job.schema.name}" was dropped'))

    def close(self) -> None:
        """The member stops: nobody will end what it has begun."""
        self._jobs.clear()

    def _now(self) -> float:
        return self._core.world.clock.monotonic()

    @property
    def count(self) -> int:
        return len(self._jobs)
