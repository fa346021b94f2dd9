"""The shell around ``transaction.staged_commit``: atomic writes over several members. This is the
coordinator's side; that of members with rows of a commit is in ``member.commits.participants``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from remuda.datatypes.view import NOBODY, View
from remuda.errors import OutcomeUnknown, RemudaError, ViewChanged
from remuda.member.base.core import Core, attempt, nothing_done, to_its_end
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits_in_doubt import CommitsInDoubt
from remuda.member.commits.job_checks import JobChecks
from remuda.member.commits.participants import CommitParticipants
from remuda.member.commits.staged_rows import RowsOfMember, stage_and_prepare, stage_here
from remuda.member.commits.turn_shell import CommitTurns
from remuda.member.state.commit_work import (
    Work,
    parts_written,
    prepare_message,
    read_rows,
    rows_message,
)
from remuda.member.state.routing import backed_up
from remuda.rpc import codec
from remuda.rpc.connection import Reply
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.staging.pieces import Counts
from remuda.transaction import staged_commit as tx
from remuda.transaction.staged_commit import rows_missing

__all__ = ["Commits", "Work", "rows_missing"]

TICK = 0.5
UNDECIDED_WAIT = 30.0
"""Seconds after which a commit of a member without a majority is answered: its outcome is not known
before the others are back, and they may never be."""


@dataclass
class Leading:
    """A commit that this member coordinates."""

    work: Work
    coordinator: tx.Coordinator
    done: asyncio.Future[int]
    partitions: frozenset[int] | None
    """The partitions that are written; None: all that the primaries have may be."""
    began: float
    """Monotonic seconds."""
    written: dict[int, Counts] = field(default_factory=dict)
    """Rows by partition, as each primary says."""
    rows: dict[int, RowsOfMember] = field(default_factory=dict)
    """The data that primaries get with the question whether they can commit, until they have
    voted."""


class Commits(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        offload: Offload,
        *,
        small_writes: Callable[[int], Awaitable[None]],
        undecided: Callable[[int], bool],
    ) -> None:
        """``small_writes`` and ``undecided``: see ``CommitParticipants``."""
        self._core = core
        self._peers = peers
        self._leading: dict[str, Leading] = {}
        self._ticker: asyncio.Task[None] | None = None
        self.turns = CommitTurns(core, peers)
        self.participants = here = CommitParticipants(
            core, peers, offload, small_writes=small_writes, undecided=undecided
        )
        self.in_doubt = CommitsInDoubt(core, here, self._leading.__contains__)
        self.turn, self.end_turn = self.turns.turn, self.turns.end_turn
        self.busy, self.when_settled, self.settled = here.busy, here.when_settled, here.settled
        self.wake, self.readers = here.wake, here.readers
        self.staging, self.schema_of, self.is_staging = (
            here.staging,
            here.schema_of,
            here.is_staging,
        )
        self.checks = JobChecks(core, peers, offload, here)
        self.on_prepare, self.on_keep, self.on_finish = (
            here.on_prepare,
            here.on_keep,
            here.on_finish,
        )
        self.map_dropped = here.map_dropped

    def routes(self) -> Routes:
        return Routes(
            control={
                RpcType.COMMIT_PREPARE: self.on_prepare,
                RpcType.COMMIT_KEEP: self.on_keep,
                RpcType.COMMIT_FINISH: self.on_finish,
                RpcType.COMMIT_STATUS: self.on_status,
                **self.checks.routes(),
                **self.turns.routes(),
            }
        )

    # --- committing ---------------------------------------------------------------------------

    def new_job(self) -> str:
        return f"{self._core.number}-{self._core.world.chance.bits(96):024x}"

    async def commit(
        self,
        work: Work,
        primaries: Sequence[int],
        partitions: Collection[int] | None = None,
        expected: int | None = None,
        rows: Sequence[RowsOfMember] = (),
    ) -> int:
        """Wait for the turn and commit what is staged on ``primaries`` (for a replicated map: on
        all that take part) and their backups; ``partitions`` are those that may be written, if not
        all; ``expected``: so many rows and removals there must be; ``rows`` of primaries are not
        staged yet, and go to them with the first question. The number of rows, summed over
        the primaries. Raises what a participant refused with, or MemberUnavailable. Goes on to its
        end when the caller is cancelled."""
        commit = asyncio.ensure_future(self._commit(work, primaries, partitions, expected, rows))
        return await to_its_end(commit, f'the commit of a write of map "{work.schema.name}"')

    async def _commit(
        self,
        work: Work,
        primaries: Sequence[int],
        partitions: Collection[int] | None,
        expected: int | None,
        rows: Sequence[RowsOfMember],
    ) -> int:
        with nothing_done:
            for number in primaries:
                self._core.require_reached(number)
            await self.turn(work.schema.map_id, work.job)
        try:
            return await self.commit_in_turn(work, primaries, partitions, expected, rows)
        finally:
            self.end_turn(work.schema.map_id, work.job)

    async def commit_in_turn(
        self,
        work: Work,
        primaries: Sequence[int],
        partitions: Collection[int] | None = None,
        expected: int | None = None,
        rows: Sequence[RowsOfMember] = (),
    ) -> int:
        """The same for a caller that holds the turn."""
        chosen = None if partitions is None else frozenset(partitions)
        if _leaves_rows(self._core.view, work, primaries):
            raise _moved(work)
        parts = parts_written(self._core.view, work, primaries, chosen)
        coordinator = tx.Coordinator(
            work.job, tuple(primaries), parts, expected, checked=work.checked
        )
        with nothing_done:
            for number in coordinator.participants:
                self._core.require_reached(number)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        leading = Leading(work, coordinator, done, chosen, self._core.world.clock.monotonic())
        leading.rows.update((each.share.member, each) for each in rows)
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
                case tx.AskCheck(member, timestamp):
                    self._ask_check(leading, member, timestamp)
                case tx.AskKeep(member, timestamp):
                    self._ask_keep(leading, member, timestamp)
                case tx.AskFinish(member, timestamp):
                    self._ask_finish(leading, member, timestamp)
                case tx.Report(rows, error):
                    self._leading.pop(leading.work.job, None)
                    self.in_doubt.ended(leading.work.job, leading.coordinator.commit_timestamp)
                    if leading.done.done():
                        continue
                    if error is not None:
                        leading.done.set_exception(error)
                    else:
                        leading.done.set_result(rows or 0)

    def _ask_prepare(self, leading: Leading, member: int) -> None:
        core, here, rows = self._core, self.participants, leading.rows.get(member)
        asked = prepare_message(core.context(), leading.work, leading.coordinator)

        def voted(reply: Reply | RemudaError) -> None:
            if isinstance(reply, RemudaError):
                if not reply.transient:
                    self._lead(leading, tx.Refused(member, reply))
                return  # asked again by the tick, unless the member is lost
            self._vote(leading, member, control_pb2.CommitPrepared.FromString(reply.pbody))

        if member == core.number:
            vote = partial(self._vote, leading, member)
            if rows is None:
                here.prepare_here(asked, vote)
            else:
                stage = partial(stage_here, core, here, rows.message(core), rows.share.batch)
                stage_and_prepare(core, here, asked, stage, vote)
        elif rows is None:
            self._peers.request_nowait(member, RpcType.COMMIT_PREPARE, asked, (), voted)
        else:
            message, body = rows.message(core), rows.encoded()
            message.prepare.CopyFrom(asked)
            self._peers.request_nowait(member, RpcType.STAGE_ROWS, message, [body], voted)

    def _vote(self, leading: Leading, member: int, vote: control_pb2.CommitPrepared) -> None:
        try:
            self._core.observe(vote.context)
            self._core.observe_clock(vote.prepare_timestamp)
        except RemudaError as error:
            self._lead(leading, tx.Refused(member, error))
            return
        if vote.context.view > self._core.view.number:
            # The rows may have other copies there: this member must see that view first, and see
            # whether it goes on (``view_installed``). Then it asks again.
            return
        if vote.HasField("refusal"):
            self._lead(leading, tx.Refused(member, codec.decode_error(vote.refusal)))
        else:
            leading.rows.pop(member, None)
            written = leading.written[member] = read_rows(vote.written)
            staged = int(written.sum())
            self._lead(leading, tx.Voted(member, vote.prepare_timestamp, vote.rows, staged))

    def _ask_check(self, leading: Leading, member: int, timestamp: int) -> None:
        work = leading.work
        message = control_pb2.CommitCheck(
            context=self._core.context(),
            job=work.job,
            commit_timestamp=timestamp,
            members=() if work.schema.replicated else leading.coordinator.primaries,
        )

        def checked(answer: control_pb2.CommitPrepared) -> None:
            self._answered(leading, member, answer, tx.Checked(member))

        if member == self._core.number:
            self.checks.check_here(message, checked)
        else:
            heard = partial(self._heard, leading, member, checked)
            self._peers.request_nowait(member, RpcType.COMMIT_CHECK, message, (), heard)

    def _heard(
        self,
        leading: Leading,
        member: int,
        answered: Callable[[control_pb2.CommitPrepared], None],
        reply: Reply | RemudaError,
    ) -> None:
        if not isinstance(reply, RemudaError):
            answered(control_pb2.CommitPrepared.FromString(reply.pbody))
        elif not reply.transient:
            self._lead(leading, tx.Refused(member, reply))

    def _answered(
        self, leading: Leading, member: int, answer: control_pb2.CommitPrepared, agreed: tx.Event
    ) -> None:
        if answer.context.view > self._core.view.number:
            return  # as votes: others may serve, or write, what this member does not know of
        if answer.HasField("refusal"):
            self._lead(leading, tx.Refused(member, codec.decode_error(answer.refusal)))
        else:
            self._lead(leading, agreed)

    def _ask_keep(self, leading: Leading, member: int, timestamp: int) -> None:
        message = prepare_message(self._core.context(), leading.work, leading.coordinator)
        message.commit_timestamp = timestamp
        kept_there = backed_up(self._core.view.replicas, member)
        written = np.add.reduce(list(leading.written.values()))
        message.kept.CopyFrom(rows_message(np.where(kept_there, written, 0)))

        def kept(answer: control_pb2.CommitPrepared) -> None:
            self._answered(leading, member, answer, tx.Kept(member))

        if member == self._core.number:
            self.participants.keep_here(message, kept)
        else:
            heard = partial(self._heard, leading, member, kept)
            self._peers.request_nowait(member, RpcType.COMMIT_KEEP, message, (), heard)

    def _ask_finish(self, leading: Leading, member: int, timestamp: int | None) -> None:
        if timestamp is not None:
            self._core.clock.observe(timestamp)
            self._core.wal.job_decided(leading.work, timestamp)

        def finished(reply: Reply | RemudaError) -> None:
            if not isinstance(reply, RemudaError):
                agrees = common_pb2.Ack.FromString(reply.pbody).ok
                self._lead(leading, tx.Finished(member, not agrees))

        if member == self._core.number:
            finish_here = partial(
                self.participants.finish_here,
                leading.work.job,
                timestamp,
                lambda agrees: self._lead(leading, tx.Finished(member, not agrees)),
            )
            self._core.wal.after(finish_here)
            return
        message = control_pb2.CommitFinish(context=self._core.context(), job=leading.work.job)
        if timestamp is not None:
            message.commit_timestamp = timestamp
        self._core.wal.after(
            lambda: self._peers.request_nowait(member, RpcType.COMMIT_FINISH, message, (), finished)
        )

    def on_status(self, request: Request) -> None:
        """A participant has lost the coordinator of a commit."""
        message = control_pb2.CommitStatus.FromString(request.pbody)
        leading = self._leading.get(message.job)
        if leading is None:
            self.participants.on_status(request)
            return
        self._core.observe(message.context)
        now = self._core.world.clock.monotonic()
        asked = tx.StatusAsked(message.context.sender, tuple(message.lost))
        told = leading.coordinator.step(now, asked)
        for effect in told:
            if isinstance(effect, tx.AskFinish):
                self._ask_finish(leading, effect.member, effect.timestamp)
        self.participants.tell_status(request, told)

    # --- giving up ----------------------------------------------------------------------------

    def drop(self, job: str, members: Collection[int]) -> None:
        """Free what is staged for a job that will not commit on these members. A commit of it that
        is under way (whoever waits for it may have been told that nobody knows) ends by itself."""
        leading = self._leading.get(job)
        busy = () if leading is None else leading.coordinator.participants
        for member in members:
            if member in busy:
                continue
            if member == self._core.number:
                self.participants.finish_here(job, None, lambda _agrees: None)
            else:
                self._drop_there(job, member)

    def _drop_there(self, job: str, member: int) -> None:
        """Nobody else would free the rows."""
        self._peers.tell(
            member,
            RpcType.COMMIT_FINISH,
            lambda: control_pb2.CommitFinish(context=self._core.context(), job=job),
        )

    # --- events -------------------------------------------------------------------------------

    def on_view(self, before: View, view: View) -> None:
        self.participants.awaiting(view.awaited)
        for number in sorted(before.by_number.keys() - view.by_number.keys()):
            self._member_dropped(number, self._core.lost[number])
        self._look_at_copies(view)

    def _member_dropped(self, number: int, cause: str) -> None:
        self.turns.member_lost(number)
        for leading in list(self._leading.values()):
            self._lead(leading, tx.MemberLost(number, cause))
        self.participants.member_lost(number, cause)

    def _look_at_copies(self, view: View) -> None:
        """A commit whose rows have other copies now cannot be kept by all of them."""
        for leading in list(self._leading.values()):
            coordinator = leading.coordinator
            primaries = coordinator.primaries
            parts = parts_written(view, leading.work, primaries, leading.partitions)
            if parts != coordinator.parts or _leaves_rows(view, leading.work, primaries):
                self._lead(leading, tx.Refused(primaries[0], _moved(leading.work)))
            else:
                coordinator.ask_soon()

    def _start_ticking(self) -> None:
        if self._ticker is None:
            self._ticker = self._core.spawn(self._tick(), "commit checks")

    async def _tick(self) -> None:
        while self._leading:
            await asyncio.sleep(TICK)
            for leading in list(self._leading.values()):
                attempt("commit check", partial(self._check, leading))
        self._ticker = None

    def _check(self, leading: Leading) -> None:
        self._lead(leading, tx.Tick())
        core = self._core
        late = core.world.clock.monotonic() - leading.began > UNDECIDED_WAIT
        if late and core.readiness.hopeless and not leading.done.done():
            name = leading.work.schema.name
            leading.done.set_exception(
                OutcomeUnknown(
                    f'it is not known whether a write of map "{name}" has taken effect: member '
                    f"{core.number} cannot reach a majority of the members any more",
                    hint="Read the rows, then write again if need be.",
                    member=str(core.number),
                )
            )

    def gauges(self) -> dict[str, int]:
        return {
            "commits": len(self._leading),
            "turns": len(self.turns),
            **self.participants.gauges(),
        }

    def close(self) -> None:
        self.participants.close()
        if self._ticker is not None:
            self._ticker.cancel()


def _leaves_rows(view: View, work: Work, primaries: Collection[int]) -> bool:
    """Whether a write that replaces everything, or compares its rows with all others, would not
    reach all rows of the map."""
    if not (work.overwrite or work.unique) or work.schema.replicated:
        return False
    return not set(view.owners) - {NOBODY} <= set(primaries)


def _moved(work: Work) -> ViewChanged:
    return ViewChanged(
        f'partitions of map "{work.schema.name}" were moved while the commit was prepared',
        hint="Try again.",
    )
