"""The shell around ``transaction.staged_commit.Participant``: staged commits on a member that has
rows of them, as the primary of their partitions, as a backup, or both."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection
from functools import partial

import numpy as np
import numpy.typing as npt

from remuda.datatypes.schema import MapSchema
from remuda.errors import JobAborted, RemudaError, ViewChanged
from remuda.member.base.core import Core, attempt
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.commits.prepared_writes import PreparedWrites
from remuda.member.commits.turns import coordinator_of, require_coordinator
from remuda.member.state.commit_work import (
    DECIDED_SIZE,
    OUTCOMES,
    TOLD,
    Taking,
    Work,
    end_in,
    read_parts,
    read_rows,
    read_work,
    refused,
    rows_message,
    stores_of,
)
from remuda.member.state.log import fields
from remuda.member.state.routing import copies_of
from remuda.rpc import codec
from remuda.rpc.connection import Reply
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging.pieces import NO_ROWS
from remuda.transaction import staged_commit as tx

log = logging.getLogger(__name__)

DECIDED_KEPT = 10_000
TICK = 0.5
HELD_MAX = 10.0
"""Seconds that a commit waits for partitions that are held while they move."""

Answered = Callable[[control_pb2.CommitPrepared], None]


class CommitParticipants:
    def __init__(
        self,
        core: Core,
        peers: Peers,
        offload: Offload,
        *,
        small_writes: Callable[[int], Awaitable[None]],
        undecided: Callable[[int], bool],
    ) -> None:
        """``small_writes`` returns when no small write of a map is pending; the caller prepares at
        once. ``undecided`` tells whether small writes, or transactions that have read or written
        the map, are pending."""
        self._core = core
        self._peers = peers
        self._offload = offload
        self._ahead: dict[str, list[Callable[[], None]]] = {}
        """Jobs whose next step is being worked out off the loop, and the steps after it."""
        self._taking: dict[str, Taking] = {}
        self._decided: OrderedDict[str, Taking] = OrderedDict()
        self._writes = writes = PreparedWrites(core)
        self.busy, self.when_settled, self.settled = (
            writes.busy,
            writes.when_settled,
            writes.settled,
        )
        self.next_decision = writes.next_decision
        self.wake, self.readers = writes.wake, writes.readers
        self.hold, self.release = writes.hold, writes.release
        self._ticker: asyncio.Task[None] | None = None
        self._small_writes = small_writes
        self._undecided = undecided
        self._awaited: frozenset[int] = frozenset()
        """Members that views have dropped, and whose copies of partitions may come back."""
        core.room.counts(lambda: DECIDED_SIZE * len(self._decided))

    def prepared_without(self, map_id: int, member: int) -> bool:
        """Whether a job of the map is prepared here in which ``member`` takes no part."""
        return any(
            taking.participant.phase is not tx.ParticipantPhase.STAGING
            and taking.work is not None
            and taking.work.schema.map_id == map_id
            and member not in taking.participant.participants
            for taking in self._taking.values()
        )

    # --- staging ------------------------------------------------------------------------------

    def staging(self, job: str, schema: MapSchema) -> Taking:
        """Rows of the job arrive here. Raises JobAborted when the job has ended, or nobody would
        ever end it."""
        require_coordinator(job, self._core.view)
        taking = self._find(job)
        if taking.participant.decided:
            raise JobAborted(f"job {job} has ended")
        if taking.work is None:
            taking.work = Work(job, schema, ())
            self._await(taking)
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

    def known(self, job: str) -> Taking | None:
        return self._taking.get(job) or self._decided.get(job)

    def asked(self, job: str) -> bool:
        """Whether this member was asked to prepare the job, or it has ended here."""
        taking = self.known(job)
        if taking is None:
            return False
        begun = taking.participant.phase is tx.ParticipantPhase.STAGING
        return not begun or (taking.work is not None and bool(taking.work.tasks))

    def _find(self, job: str) -> Taking:
        taking = self._taking.get(job) or self._decided.get(job)
        if taking is None:
            coordinator_of(job)  # raises JobAborted for what is not the id of a job
            self._core.pulse.wake()  # its rows are to be arranged, and sealed in the end
            taking = self._taking[job] = Taking(tx.Participant(self._core.number, job))
        return taking

    def _await(self, taking: Taking) -> None:
        """Copies of replicated maps never come back."""
        if taking.work is not None and not taking.work.schema.replicated:
            self._take(taking, tx.Awaiting(self._awaited))

    # --- preparing and keeping ----------------------------------------------------------------

    def on_prepare(self, request: Request) -> None:
        message = control_pb2.CommitPrepare.FromString(request.pbody)
        self._core.observe_member(message.context)
        self.prepare_here(message, lambda vote: request.reply(RpcType.COMMIT_PREPARE, vote))

    def prepare_here(self, message: control_pb2.CommitPrepare, reply: Answered) -> None:
        reply = self._when_safe(reply)
        taking = self._find(message.job)
        self._take_work(taking, message)
        if taking.participant.phase is not tx.ParticipantPhase.STAGING:
            self._vote(message, reply)  # again
            return
        then = partial(self._when_quiet, message, reply)
        self._work_ahead(message.job, stores_of(taking.work, self._core.stores), then)

    def _when_safe(self, reply: Answered) -> Answered:
        """An answer is in the log by then."""
        return lambda answer: self._core.wal.after(partial(reply, answer))

    def _take_work(self, taking: Taking, message: control_pb2.CommitPrepare) -> None:
        if not taking.participant.decided and (taking.work is None or not taking.work.tasks):
            store = self._core.stores.get(message.map_id)
            if store is not None:
                taking.work = read_work(message, store.schema)
                self._await(taking)

    def _when_quiet(self, message: control_pb2.CommitPrepare, reply: Answered) -> None:
        """Vote in the step in which nothing of the map is held or pending, and this member may
        serve."""
        core, map_id = self._core, message.map_id
        if core.ready and not self._writes.held(map_id) and not self._undecided(map_id):
            self._vote(message, reply)
            return
        core.spawn(self._vote_when_quiet(message, reply), f"prepare of job {message.job}")

    async def _vote_when_quiet(self, message: control_pb2.CommitPrepare, reply: Answered) -> None:
        core, map_id = self._core, message.map_id
        try:
            async with asyncio.timeout(HELD_MAX):
                while True:
                    await core.until_ready()
                    await self._writes.while_held(map_id)
                    await self._small_writes(map_id)
                    if core.ready and not self._writes.held(map_id):
                        break
        except TimeoutError:
            refusal: RemudaError = ViewChanged(
                f"partitions that job {message.job} writes are being moved", hint="Try again."
            )
        except RemudaError as error:
            refusal = error
        else:
            self._vote(message, reply)
            return
        taking = self._find(message.job)
        if taking.participant.phase is tx.ParticipantPhase.STAGING:
            encoded = codec.encode_error(refusal)
            reply(control_pb2.CommitPrepared(context=core.context(), refusal=encoded))
        else:
            self._vote(message, reply)

    def _vote(self, message: control_pb2.CommitPrepare, reply: Answered) -> None:
        asked = tx.PrepareAsked(
            coordinator_of(message.job), tuple(message.participants), read_parts(message)
        )
        taking = self._find(message.job)
        for effect in self._take(taking, asked):
            match effect:
                case tx.TellVote(timestamp, rows):
                    reply(
                        control_pb2.CommitPrepared(
                            context=self._core.context(),
                            prepare_timestamp=timestamp,
                            rows=rows,
                            written=rows_message(taking.written),
                        )
                    )
                case tx.TellRefusal(error):
                    refusal = codec.encode_error(error)
                    reply(control_pb2.CommitPrepared(context=self._core.context(), refusal=refusal))

    def on_keep(self, request: Request) -> None:
        message = control_pb2.CommitPrepare.FromString(request.pbody)
        self._core.observe_member(message.context)
        self.keep_here(message, lambda vote: request.reply(RpcType.COMMIT_KEEP, vote))

    def keep_here(self, message: control_pb2.CommitPrepare, reply: Answered) -> None:
        self._core.observe_clock(message.commit_timestamp)
        reply = self._when_safe(reply)
        taking = self._find(message.job)
        self._take_work(taking, message)
        if taking.participant.phase in {
            tx.ParticipantPhase.STAGING,
            tx.ParticipantPhase.PREPARED,
        }:
            taking.expected = read_rows(message.kept)
        asked = tx.KeepAsked(
            coordinator_of(message.job),
            tuple(message.participants),
            read_parts(message),
            message.commit_timestamp,
        )

        def keep() -> None:
            for effect in self._take(self._find(message.job), asked):
                match effect:
                    case tx.TellKept():
                        reply(control_pb2.CommitPrepared(context=self._core.context()))
                    case tx.TellRefusal(error):
                        refusal = codec.encode_error(error)
                        reply(
                            control_pb2.CommitPrepared(
                                context=self._core.context(), refusal=refusal
                            )
                        )

        self._work_ahead(message.job, stores_of(taking.work, self._core.backup_stores), keep)

    # --- work off the loop --------------------------------------------------------------------

    def _work_ahead(self, job: str, stores: Collection[MapStore], then: Callable[[], None]) -> None:
        """Do the heavy part of the job's next step off the loop, then call ``then``. Nothing is
        decided by it: all that happens meanwhile, an abort among others, happens at once.
        """
        waiting = self._ahead.get(job)
        if waiting is not None:
            waiting.append(then)
            return
        taking = self._taking.get(job)
        work = None if taking is None else taking.work
        if work is None:
            then()
            return
        found = [store.ahead(job, work.tasks, overwrite=work.overwrite) for store in stores]
        pieces = [piece for piece in found if piece is not None]
        if not pieces:
            then()
            return
        self._ahead[job] = [then]

        def work_all() -> Callable[[], None]:
            results = [piece() for piece in pieces]

            def take_over() -> None:
                for result in results:
                    result()

            return take_over

        def done() -> None:
            for action in self._ahead.pop(job):
                action()

        self._offload(work_all, done)

    # --- the decision -------------------------------------------------------------------------

    def on_finish(self, request: Request) -> None:
        message = control_pb2.CommitFinish.FromString(request.pbody)
        self._core.observe(message.context)
        timestamp = message.commit_timestamp if message.HasField("commit_timestamp") else None
        if timestamp is not None:
            self._core.observe_clock(timestamp)
        self.finish_here(
            message.job,
            timestamp,
            lambda agrees: request.reply(RpcType.ACK, common_pb2.Ack(ok=agrees)),
        )

    def finish_here(self, job: str, timestamp: int | None, reply: Callable[[bool], None]) -> None:
        """``reply`` is told whether this member's outcome is the one that it was asked for."""

        def finish() -> None:
            for effect in self._take(self._find(job), tx.FinishAsked(timestamp)):
                if isinstance(effect, tx.TellFinished):
                    self._core.wal.after(partial(reply, not effect.contradicts))

        taking = self._taking.get(job)
        if timestamp is None or taking is None:
            finish()
        else:
            work, core = taking.work, self._core
            stores = stores_of(work, core.stores) + stores_of(work, core.backup_stores)
            self._work_ahead(job, stores, finish)

    def on_status(self, request: Request) -> None:
        """Another participant has lost the coordinator, which is not this member."""
        message = control_pb2.CommitStatus.FromString(request.pbody)
        self._core.observe(message.context)
        asked = tx.StatusAsked(message.context.sender, tuple(message.lost))
        self.tell_status(request, self._take(self._find(message.job), asked))

    def tell_status(self, request: Request, told: list[tx.Effect]) -> None:
        for effect in told:
            if isinstance(effect, tx.TellStatus):
                answer = control_pb2.CommitStatusReply(
                    context=self._core.context(), state=OUTCOMES[effect.outcome]
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
                case tx.KeepHere(timestamp):
                    steps.extend(taking.participant.step(now, self._keep(taking, timestamp)))
                case tx.ResolveHere(timestamp):
                    self._resolve(taking, timestamp)
                case tx.AskStatus():
                    self._ask_status(taking, effect)
                case _:
                    answers.append(effect)
        return answers

    def _validate(self, taking: Taking) -> tx.Event:
        """Validate, take the prepare timestamp and register it, in one step of the loop."""
        work, core = taking.work, self._core
        if work is None:
            return tx.RefusedHere(JobAborted("the map of the job does not exist any more"))
        try:
            core.require_lease()
            core.wal.require_room()
            store = core.store(work.schema.map_id, work.schema.version)
            self._require_every_copy(taking, work)
            if store.job_pending:
                core.require_decidable(work.schema.map_id)
                # Turns exclude that, but for a moment in which members differ on who gives them.
                raise ViewChanged(
                    f'another write of map "{work.schema.name}" is being committed',
                    hint="Try again.",
                )
            rows = store.prepare(
                work.job,
                work.tasks,
                overwrite=work.overwrite,
                insert_only=work.insert_only,
                distinct=taking.lasting,
                unchanged_since=work.unchanged_since,
                ttl=work.ttl or 0,
                now=core.timestamp(),
            )
            taking.written = NO_ROWS if work.schema.replicated else store.written(work.job)
            self._require_primary(work, np.flatnonzero(taking.written))
            timestamp = core.timestamp()
            store.mark_prepared(work.job, timestamp)
            core.wal.job_prepared(work, timestamp, taking.participant.primaries, backup=False)
        except RemudaError as error:
            return refused(error)
        if work.removed_keys:
            rows += sum(store.get(key, timestamp) is not None for key in work.removed_keys)
        return tx.PreparedHere(timestamp, rows)

    def _require_every_copy(self, taking: Taking, work: Work) -> None:
        """Raises ViewChanged for a replicated map when a member of the view takes no part: it has
        joined since, or was suspected for a while."""
        members = self._core.view.by_number.keys()
        if work.schema.replicated and not members <= set(taking.participant.participants):
            raise ViewChanged(
                f'not all members take part in a write of replicated map "{work.schema.name}"',
                hint="Write the rows again.",
            )

    def _require_primary(self, work: Work, partitions: npt.NDArray[np.intp]) -> None:
        """Raises ViewChanged when rows were staged here that belong elsewhere by now."""
        core = self._core
        if (copies_of(core.view.replicas)[0][partitions] != core.number).any():
            raise ViewChanged(
                f'partitions of map "{work.schema.name}" were moved while rows were written',
                hint="Write the rows again.",
            )

    def _keep(self, taking: Taking, timestamp: int) -> tx.Event:
        """See that all rows are here, and register them, in one step of the loop."""
        work, core = taking.work, self._core
        if work is None:
            return tx.RefusedHere(JobAborted("the map of the job does not exist any more"))
        try:
            core.store(work.schema.map_id, work.schema.version)
            store = core.backup_store(work.schema.map_id)
            store.prepare(
                work.job,
                work.tasks,
                overwrite=work.overwrite,
                insert_only=False,
                ttl=work.ttl or 0,
            )
            if not np.array_equal(store.written(work.job), taking.expected):
                raise ViewChanged(
                    f'copies of map "{work.schema.name}" were moved while rows were written',
                    detail=f"member {core.number} does not have all rows of job {work.job}",
                    hint="Write the rows again.",
                )
            core.clock.observe(timestamp)
            store.mark_prepared(work.job, timestamp)
            core.wal.job_prepared(work, timestamp, taking.participant.primaries, backup=True)
        except RemudaError as error:
            return refused(error)
        return tx.KeptHere()

    def _resolve(self, taking: Taking, timestamp: int | None) -> None:
        job = taking.participant.job
        self._taking.pop(job, None)
        work = taking.end()
        self._decided[job] = taking
        # While copies may come back, nothing is forgotten: they ask how what they have has ended.
        while len(self._decided) > DECIDED_KEPT and not self._awaited:
            self._decided.popitem(last=False)
        if work is None:
            return
        map_id = work.schema.map_id
        if timestamp is not None:
            self._core.clock.observe(timestamp)
            if (store := self._core.stores.get(map_id)) is not None:
                for key in work.removed_keys:
                    store.discard(key, timestamp)
        end_in(self._core.copies_of(map_id), taking, timestamp)
        self._core.wal.job_ended(job, timestamp)
        self.wake(map_id)
        self._core.listeners.resolved.tell(map_id)

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
            outcome = TOLD[answer.state]
            self._take(taking, tx.StatusTold(ask.member, outcome, timestamp, ask.round))

        self._peers.request_nowait(ask.member, RpcType.COMMIT_STATUS, message, (), told)
        self._start_ticking()

    # --- events -------------------------------------------------------------------------------

    def step(self, job: str, event: tx.Event) -> list[tx.Effect]:
        """Step the participant of a job, which may be new. Returns its answers."""
        return self._take(self._find(job), event)

    @property
    def prepared(self) -> list[Taking]:
        """The jobs that are prepared or kept here, and not decided."""
        begun = tx.ParticipantPhase.STAGING
        return [each for each in self._taking.values() if each.participant.phase is not begun]

    def member_lost(self, number: int, cause: str) -> None:
        for job, taking in list(self._taking.items()):
            if taking.participant.phase is tx.ParticipantPhase.STAGING:
                if coordinator_of(job) == number:
                    log.warning("job aborted: its coordinator is lost", extra=fields(job=job))
                    self._take(taking, tx.FinishAsked(None))
            else:
                self._take(taking, tx.MemberLost(number, cause))

    def awaiting(self, members: frozenset[int]) -> None:
        """A view says whose copies of partitions may come back: before ``member_lost`` of it."""
        if members == self._awaited:
            return
        self._awaited = members
        for taking in list(self._taking.values()):
            self._await(taking)

    @property
    def in_doubt(self) -> bool:
        """Whether a commit waits for a copy that may come back."""
        deciding = tx.ParticipantPhase.DECIDING
        return bool(self._awaited) and any(t.participant.phase is deciding for t in self.prepared)

    def map_dropped(self, map_id: int) -> None:
        for taking in list(self._taking.values()):
            staging = taking.participant.phase is tx.ParticipantPhase.STAGING
            if staging and taking.work is not None and taking.work.schema.map_id == map_id:
                self._take(taking, tx.FinishAsked(None))
        self.wake(map_id)  # nobody waits for a decision that finds no stores

    def _start_ticking(self) -> None:
        if self._ticker is None:
            self._ticker = self._core.spawn(self._tick(), "commit checks")

    async def _tick(self) -> None:
        while any(t.participant.phase is tx.ParticipantPhase.DECIDING for t in self.prepared):
            await asyncio.sleep(TICK)
            for taking in list(self._taking.values()):
                attempt("commit check", partial(self._take, taking, tx.Tick()))
        self._ticker = None

    def gauges(self) -> dict[str, int]:
        prepared = len(self.prepared)
        return {
            "prepared": prepared,
            "staging": len(self._taking) - prepared,
            "settling": self._writes.waiting,
        }

    def close(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
