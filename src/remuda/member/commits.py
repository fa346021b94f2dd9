"""The shell around ``transaction.staged_commit``: atomic writes over several members."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import PhysicalValue
from remuda.errors import JobAborted, RemudaError
from remuda.limits import PARTITIONS
from remuda.member.core import Core, attempt
from remuda.member.log import fields
from remuda.member.offload import Offload
from remuda.member.peers import Peers
from remuda.member.turns import Turns, coordinator_of
from remuda.rpc import codec
from remuda.rpc.connection import Reply
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction import staged_commit as tx

log = logging.getLogger(__name__)

DECIDED_KEPT = 10_000
TICK = 0.5

_OUTCOMES = {
    tx.Outcome.UNKNOWN: control_pb2.CommitStatusReply.UNKNOWN,
    tx.Outcome.PREPARED: control_pb2.CommitStatusReply.PREPARED,
    tx.Outcome.COMMITTED: control_pb2.CommitStatusReply.COMMITTED,
    tx.Outcome.ABORTED: control_pb2.CommitStatusReply.ABORTED,
}
_TOLD = {state: outcome for outcome, state in _OUTCOMES.items()}


@dataclass(frozen=True)
class Work:
    """What a commit does: rows of the named tasks, and keys to remove."""

    job: str
    schema: MapSchema
    tasks: tuple[str, ...]
    overwrite: bool = False
    insert_only: bool = False
    removed_keys: tuple[tuple[PhysicalValue, ...], ...] = ()
    unchanged_since: int | None = None
    """The read timestamp of the statement: later changes of the same keys refuse the commit."""


@dataclass
class Leading:
    """A commit that this member coordinates."""

    work: Work
    coordinator: tx.Coordinator
    done: asyncio.Future[int]


@dataclass
class Taking:
    """A commit that this member takes part in."""

    participant: tx.Participant
    work: Work | None = None
    votes: list[Request] = field(default_factory=list)
    finishes: list[Request] = field(default_factory=list)
    asked: dict[int, list[Request]] = field(default_factory=dict)


def _as_sent(schema: MapSchema, version: int) -> MapSchema:
    """The schema of a job's map, with the version that its rows were made for: if the map has
    another one now, the job is refused when it is validated."""
    return schema if schema.version == version else replace(schema, version=version)


class Commits:
    def __init__(self, core: Core, peers: Peers, offload: Offload) -> None:
        self._core = core
        self._peers = peers
        self._offload = offload
        self._ahead: dict[str, list[Callable[[], None]]] = {}
        """Jobs whose next step is being worked out off the loop, and what comes after."""
        self._turns = Turns()
        self._leading: dict[str, Leading] = {}
        self._taking: dict[str, Taking] = {}
        self._decided: OrderedDict[str, Taking] = OrderedDict()
        self._settled: dict[int, list[Callable[[], None]]] = {}
        self._ticker: asyncio.Task[None] | None = None
        self.on_resolved: list[Callable[[int], None]] = []
        """Called with the map id after a prepared write was decided here."""

    # --- waiting for prepared writes ----------------------------------------------------------

    def busy(self, map_id: int, at: int = FOREVER) -> bool:
        """Whether a write of the map is prepared here at or below ``at`` and not decided."""
        store = self._core.stores.get(map_id)
        return store is not None and store.pending_at_or_below(at)

    def when_settled(self, map_id: int, action: Callable[[], None]) -> None:
        """Call ``action`` after the next decision (then ask ``busy`` again)."""
        self._settled.setdefault(map_id, []).append(action)

    async def settled(self, map_id: int, at: int = FOREVER) -> None:
        while self.busy(map_id, at):
            event = asyncio.Event()
            self.when_settled(map_id, event.set)
            await event.wait()

    # --- coordinator --------------------------------------------------------------------------

    def new_job(self) -> str:
        return f"{self._core.number}-{self._core.world.chance.bits(96):024x}"

    async def turn(self, map_id: int, job: str) -> None:
        """Wait for this job's turn to write the map atomically; ``end_turn`` gives it on."""
        try:
            await self._take_turn(map_id, job)
        except BaseException:
            self.end_turn(map_id, job)
            raise

    async def _take_turn(self, map_id: int, job: str) -> None:
        home = self._home(map_id)
        if home == self._core.number:
            event = asyncio.Event()
            self._turns.take(map_id, job, event.set)
            await event.wait()
            return
        message = control_pb2.CommitTurn(context=self._core.context(), map_id=map_id, job=job)
        reply = await self._peers.request(home, RpcType.COMMIT_TURN, message, timeout=600.0)
        self._core.observe(common_pb2.Context.FromString(reply.pbody))

    def end_turn(self, map_id: int, job: str) -> None:
        home = self._home(map_id)
        if home == self._core.number:
            self._turns.end(map_id, job)
            return
        message = control_pb2.CommitTurn(context=self._core.context(), map_id=map_id, job=job)

        def again(reply: Reply | RemudaError) -> None:
            if isinstance(reply, RemudaError) and home not in self._core.lost:
                loop = asyncio.get_running_loop()
                loop.call_later(TICK, lambda: self.end_turn(map_id, job))

        if not self._core.stopping:
            self._peers.request_nowait(home, RpcType.COMMIT_TURN_END, message, (), again)

    def _home(self, map_id: int) -> int:
        home = self._core.view.owners[map_id % PARTITIONS]
        return home if home not in self._core.lost else self._core.coordinator

    async def commit(self, work: Work, participants: Sequence[int]) -> int:
        """Wait for the turn and commit what is staged. The number of rows, summed over the
        participants. Raises what a participant refused with, or MemberUnavailable. Goes on to its
        end when the caller is cancelled."""
        return await asyncio.shield(asyncio.ensure_future(self._commit(work, participants)))

    async def _commit(self, work: Work, participants: Sequence[int]) -> int:
        for number in participants:
            self._core.require_alive(number)
        await self.turn(work.schema.map_id, work.job)
        try:
            return await self.commit_in_turn(work, participants)
        finally:
            self.end_turn(work.schema.map_id, work.job)

    async def commit_in_turn(self, work: Work, participants: Sequence[int]) -> int:
        """The same for a caller that holds the turn."""
        for number in participants:
            self._core.require_alive(number)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        leading = Leading(work, tx.Coordinator(work.job, tuple(participants)), done)
        self._leading[work.job] = leading
        self._lead(leading, tx.Begin())
        self._start_ticking()
        return await done

    def _lead(self, leading: Leading, event: tx.Event) -> None:
        now = self._core.world.clock.monotonic()
        for effect in leading.coordinator.step(now, event):
            match effect:
                case tx.AskPrepare(member):
                    self._ask_prepare(leading, member)
                case tx.AskFinish(member, timestamp):
                    self._ask_finish(leading, member, timestamp)
                case tx.Report(rows, error):
                    self._leading.pop(leading.work.job, None)
                    if leading.done.done():
                        continue
                    if error is not None:
                        leading.done.set_exception(error)
                    else:
                        leading.done.set_result(rows or 0)

    def _ask_prepare(self, leading: Leading, member: int) -> None:
        work = leading.work
        message = control_pb2.CommitPrepare(
            context=self._core.context(),
            job=work.job,
            overwrite=work.overwrite,
            map_id=work.schema.map_id,
            schema_version=work.schema.version,
            insert_only=work.insert_only,
            participants=leading.coordinator.participants,
        )
        if work.unchanged_since is not None:
            message.unchanged_since = work.unchanged_since
        for task in work.tasks:
            message.tasks.add(task=task)
        for key in work.removed_keys:
            codec.fill_row(message.removed_keys.add(), key)

        def voted(reply: Reply | RemudaError) -> None:
            if isinstance(reply, RemudaError):
                if not reply.retryable:
                    self._lead(leading, tx.Refused(member, reply))
                return  # asked again by the tick, unless the member is lost
            self._vote(leading, member, control_pb2.CommitPrepared.FromString(reply.pbody))

        if member == self._core.number:
            self._prepare_here(message, lambda vote: self._vote(leading, member, vote))
        else:
            self._peers.request_nowait(member, RpcType.COMMIT_PREPARE, message, (), voted)

    def _vote(self, leading: Leading, member: int, vote: control_pb2.CommitPrepared) -> None:
        try:
            self._core.observe(vote.context)
            self._core.observe_clock(vote.prepare_timestamp)
        except RemudaError as error:
            self._lead(leading, tx.Refused(member, error))
            return
        if vote.HasField("refusal"):
            self._lead(leading, tx.Refused(member, codec.decode_error(vote.refusal)))
        else:
            self._lead(leading, tx.Voted(member, vote.prepare_timestamp, vote.rows))

    def _ask_finish(self, leading: Leading, member: int, timestamp: int | None) -> None:
        if timestamp is not None:
            self._core.clock.observe(timestamp)

        def finished(reply: Reply | RemudaError) -> None:
            if not isinstance(reply, RemudaError):
                agrees = common_pb2.Ack.FromString(reply.pbody).ok
                self._lead(leading, tx.Finished(member, not agrees))

        if member == self._core.number:
            self._finish_here(
                leading.work.job,
                timestamp,
                lambda agrees: self._lead(leading, tx.Finished(member, not agrees)),
            )
            return
        message = control_pb2.CommitFinish(context=self._core.context(), job=leading.work.job)
        if timestamp is not None:
            message.commit_timestamp = timestamp
        self._peers.request_nowait(member, RpcType.COMMIT_FINISH, message, (), finished)

    def drop(self, job: str, members: Sequence[int]) -> None:
        """Free what is staged for a job that will not commit on these members."""
        for member in members:
            if member == self._core.number:
                self._finish_here(job, None, lambda _agrees: None)
            else:
                self._drop_there(job, member)

    def _drop_there(self, job: str, member: int) -> None:
        """Again and again until it is heard: nobody else would free the rows."""
        if member in self._core.lost or self._core.stopping:
            return
        loop = asyncio.get_running_loop()
        again = loop.call_later(tx.RESEND_AFTER, lambda: self._drop_there(job, member))

        def answered(reply: Reply | RemudaError) -> None:
            if not isinstance(reply, RemudaError):
                again.cancel()

        message = control_pb2.CommitFinish(context=self._core.context(), job=job)
        self._peers.request_nowait(member, RpcType.COMMIT_FINISH, message, (), answered)

    # --- participant --------------------------------------------------------------------------

    def staging(self, job: str, schema: MapSchema) -> Taking:
        """Rows of the job arrive here. Raises JobAborted when the job has ended."""
        taking = self._find(job)
        if taking.participant.decided:
            raise JobAborted(f"job {job} has ended")
        if taking.work is None:
            taking.work = Work(job, schema, ())
        return taking

    def schema_of(self, job: str) -> MapSchema:
        """The map that rows of the job go into here. Raises JobAborted when it has ended."""
        taking = self._taking.get(job)
        if taking is None or taking.work is None:
            raise JobAborted(f"job {job} has ended or has no rows here")
        return taking.work.schema

    def is_staging(self, job: str) -> bool:
        """Whether rows of the job lie here, not yet committed or freed."""
        return job in self._taking

    def _find(self, job: str) -> Taking:
        taking = self._taking.get(job) or self._decided.get(job)
        if taking is None:
            taking = self._taking[job] = Taking(tx.Participant(self._core.number, job))
        return taking

    def on_prepare(self, request: Request) -> None:
        message = control_pb2.CommitPrepare.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._prepare_here(message, lambda vote: request.reply(RpcType.COMMIT_PREPARE, vote))

    def _prepare_here(
        self,
        message: control_pb2.CommitPrepare,
        reply: Callable[[control_pb2.CommitPrepared], None],
    ) -> None:
        taking = self._find(message.job)
        if not taking.participant.decided and (taking.work is None or not taking.work.tasks):
            store = self._core.stores.get(message.map_id)
            if store is not None:
                taking.work = Work(
                    job=message.job,
                    schema=_as_sent(store.schema, message.schema_version),
                    tasks=tuple(task.task for task in message.tasks),
                    overwrite=message.overwrite,
                    insert_only=message.insert_only,
                    removed_keys=tuple(codec.decode_row(key) for key in message.removed_keys),
                    unchanged_since=message.unchanged_since
                    if message.HasField("unchanged_since")
                    else None,
                )
        self._work_ahead(message.job, lambda: self._vote_here(message, reply))

    def _vote_here(
        self,
        message: control_pb2.CommitPrepare,
        reply: Callable[[control_pb2.CommitPrepared], None],
    ) -> None:
        asked = tx.PrepareAsked(coordinator_of(message.job), tuple(message.participants))
        for effect in self._take(self._find(message.job), asked):
            match effect:
                case tx.TellVote(timestamp, rows):
                    reply(
                        control_pb2.CommitPrepared(
                            context=self._core.context(), prepare_timestamp=timestamp, rows=rows
                        )
                    )
                case tx.TellRefusal(error):
                    refusal = codec.encode_error(error)
                    reply(control_pb2.CommitPrepared(context=self._core.context(), refusal=refusal))

    def _work_ahead(self, job: str, then: Callable[[], None]) -> None:
        """Do the heavy part of the job's next step off the loop, then call ``then``. Nothing is
        decided by it: whatever happens meanwhile, an abort among others, happens at once.
        """
        waiting = self._ahead.get(job)
        if waiting is not None:
            waiting.append(then)
            return
        taking = self._taking.get(job)
        work = None if taking is None else taking.work
        store = None if work is None else self._core.stores.get(work.schema.map_id)
        if work is None or store is None:
            then()
            return
        piece = store.ahead(job, work.tasks, overwrite=work.overwrite)
        if piece is None:
            then()
            return
        self._ahead[job] = [then]

        def done() -> None:
            for action in self._ahead.pop(job):
                action()

        self._offload(piece, done)

    def on_finish(self, request: Request) -> None:
        message = control_pb2.CommitFinish.FromString(request.pbody)
        self._core.observe(message.context)
        timestamp = message.commit_timestamp if message.HasField("commit_timestamp") else None
        if timestamp is not None:
            self._core.observe_clock(timestamp)
        self._finish_here(
            message.job,
            timestamp,
            lambda agrees: request.reply(RpcType.ACK, common_pb2.Ack(ok=agrees)),
        )

    def _finish_here(self, job: str, timestamp: int | None, reply: Callable[[bool], None]) -> None:
        """``reply`` is told whether this member's outcome is the one that it was asked for."""

        def finish() -> None:
            for effect in self._take(self._find(job), tx.FinishAsked(timestamp)):
                if isinstance(effect, tx.TellFinished):
                    reply(not effect.contradicts)

        if timestamp is None:
            finish()
        else:
            self._work_ahead(job, finish)

    def on_status(self, request: Request) -> None:
        """Another participant has lost the coordinator."""
        message = control_pb2.CommitStatus.FromString(request.pbody)
        self._core.observe(message.context)
        asked = tx.StatusAsked(message.context.sender, tuple(message.lost))
        leading = self._leading.get(message.job)
        if leading is not None:
            now = self._core.world.clock.monotonic()
            told = leading.coordinator.step(now, asked)
            for effect in told:
                if isinstance(effect, tx.AskFinish):
                    self._ask_finish(leading, effect.member, effect.timestamp)
        else:
            told = self._take(self._find(message.job), asked)
        for effect in told:
            if isinstance(effect, tx.TellStatus):
                answer = control_pb2.CommitStatusReply(
                    context=self._core.context(), state=_OUTCOMES[effect.outcome]
                )
                if effect.timestamp is not None:
                    answer.commit_timestamp = effect.timestamp
                request.reply(RpcType.COMMIT_STATUS, answer)

    def _take(self, taking: Taking, event: tx.Event) -> list[tx.Effect]:
        """Step a participant and carry out what concerns this member; the answers remain."""
        now = self._core.world.clock.monotonic()
        steps = deque(taking.participant.step(now, event))
        answers: list[tx.Effect] = []
        while steps:
            effect = steps.popleft()
            match effect:
                case tx.PrepareHere():
                    steps.extend(taking.participant.step(now, self._validate(taking)))
                case tx.ResolveHere(timestamp):
                    self._resolve(taking, timestamp)
                case tx.AskStatus():
                    self._ask_status(taking, effect)
                case _:
                    answers.append(effect)
        return answers

    def _validate(self, taking: Taking) -> tx.Event:
        """Validate, take the prepare timestamp and register it, in one step of the loop."""
        work = taking.work
        if work is None:
            return tx.RefusedHere(JobAborted("the map of the job does not exist any more"))
        try:
            store = self._core.store(work.schema.map_id, work.schema.version)
            if store.pending_at_or_below(FOREVER):
                raise JobAborted(f'another write of map "{work.schema.name}" is being committed')
            rows = store.prepare(
                work.job,
                work.tasks,
                overwrite=work.overwrite,
                insert_only=work.insert_only,
                unchanged_since=work.unchanged_since,
            )
            timestamp = self._core.timestamp()
            store.mark_prepared(work.job, timestamp)
        except RemudaError as error:
            return tx.RefusedHere(error)
        if work.removed_keys:
            rows += sum(store.get(key, timestamp) is not None for key in work.removed_keys)
        return tx.PreparedHere(timestamp, rows)

    def _resolve(self, taking: Taking, timestamp: int | None) -> None:
        job = taking.participant.job
        self._taking.pop(job, None)
        work, taking.work = taking.work, None
        self._decided[job] = taking
        if len(self._decided) > DECIDED_KEPT:
            self._decided.popitem(last=False)
        if work is None:
            return
        map_id = work.schema.map_id
        store = self._core.stores.get(map_id)
        if store is not None:
            if timestamp is not None:
                self._core.clock.observe(timestamp)
                for key in work.removed_keys:
                    store.remove(key, timestamp)
            store.resolve(job, timestamp)
        for action in self._settled.pop(map_id, []):
            asyncio.get_running_loop().call_soon(action)
        for listener in self.on_resolved:
            listener(map_id)

    def _ask_status(self, taking: Taking, ask: tx.AskStatus) -> None:
        message = control_pb2.CommitStatus(
            context=self._core.context(), job=taking.participant.job, lost=ask.lost
        )

        def told(reply: Reply | RemudaError) -> None:
            if isinstance(reply, RemudaError):
                return  # asked again, unless the member is lost
            answer = control_pb2.CommitStatusReply.FromString(reply.pbody)
            timestamp = answer.commit_timestamp if answer.HasField("commit_timestamp") else None
            if timestamp is not None:
                self._core.observe_clock(timestamp)
            outcome = _TOLD[answer.state]
            self._take(taking, tx.StatusTold(ask.member, outcome, timestamp, ask.round))

        self._peers.request_nowait(ask.member, RpcType.COMMIT_STATUS, message, (), told)
        self._start_ticking()

    # --- turns --------------------------------------------------------------------------------

    def on_turn(self, request: Request) -> None:
        message = control_pb2.CommitTurn.FromString(request.pbody)
        self._core.observe_member(message.context)

        def granted() -> None:
            if request.channel.closed:
                self._turns.end(message.map_id, message.job)
            else:
                request.reply(RpcType.COMMIT_TURN, self._core.context())

        self._turns.take(message.map_id, message.job, granted)

    def on_turn_end(self, request: Request) -> None:
        message = control_pb2.CommitTurn.FromString(request.pbody)
        self._turns.end(message.map_id, message.job)
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    # --- events -------------------------------------------------------------------------------

    def member_lost(self, number: int, cause: str) -> None:
        self._turns.member_lost(number)
        for leading in list(self._leading.values()):
            self._lead(leading, tx.MemberLost(number, cause))
        for job, taking in list(self._taking.items()):
            if taking.participant.phase is tx.ParticipantPhase.STAGING:
                if coordinator_of(job) == number:
                    log.warning("job aborted: its coordinator is lost", extra=fields(job=job))
                    self._take(taking, tx.FinishAsked(None))
            else:
                self._take(taking, tx.MemberLost(number, cause))

    def map_dropped(self, map_id: int) -> None:
        for taking in list(self._taking.values()):
            staging = taking.participant.phase is tx.ParticipantPhase.STAGING
            if staging and taking.work is not None and taking.work.schema.map_id == map_id:
                self._take(taking, tx.FinishAsked(None))

    def _start_ticking(self) -> None:
        if self._ticker is None:
            self._ticker = self._core.spawn(self._tick(), "commit checks")

    async def _tick(self) -> None:
        while self._leading or any(
            taking.participant.phase is tx.ParticipantPhase.DECIDING
            for taking in self._taking.values()
        ):
            await asyncio.sleep(TICK)
            for leading in list(self._leading.values()):
                attempt("commit check", partial(self._lead, leading, tx.Tick()))
            for taking in list(self._taking.values()):
                attempt("commit check", partial(self._take, taking, tx.Tick()))
        self._ticker = None

    def gauges(self) -> dict[str, int]:
        prepared = sum(
            taking.participant.phase is not tx.ParticipantPhase.STAGING
            for taking in self._taking.values()
        )
        return {
            "commits": len(self._leading),
            "prepared": prepared,
            "staging": len(self._taking) - prepared,
            "turns": len(self._turns),
            "settling": sum(len(actions) for actions in self._settled.values()),
        }

    def close(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
