"""Bulk writes in doubt on a donor or among the members, and how they have ended.

Nothing is decided on a donor. It tells every member that took part what it knows, and adopts what
one of them knows; where nobody knows, and nobody took part, the write stays in doubt and its
partitions do not come back. A write that has ended on the donor may be in doubt among the members:
its coordinator was cut off, too, before it could tell them. So they say what is prepared there, and
hear of its end before a copy comes back. Without that they would roll back what the copy has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from remuda.member.base.core import Core
from remuda.member.commits.participants import CommitParticipants
from remuda.member.commits.turns import coordinator_of
from remuda.member.state.commit_work import OUTCOMES
from remuda.rpc.messages import control_pb2
from remuda.transaction import staged_commit as tx

_State = control_pb2.CommitStatusReply
State = control_pb2.CommitStatusReply.State


class CommitsInDoubt:
    """``leads``: whether this member coordinates a commit that is under way."""

    def __init__(
        self, core: Core, participants: CommitParticipants, leads: Callable[[str], bool]
    ) -> None:
        self._core = core
        self._participants = participants
        self._leads = leads

    # --- on a member --------------------------------------------------------------------------

    def donor_told(
        self, job: str, told: tx.DonorTold, participants: tuple[int, ...]
    ) -> tuple[State, int | None]:
        """A donor's knowledge of a job; the answer is how it has ended here, or PREPARED while it
        is in doubt, or UNKNOWN when this member had no part in it."""
        known = self._participants.known(job)
        if self._leads(job):
            return _State.PREPARED, None
        if known is None:
            if self._core.number not in participants:
                return _State.UNKNOWN, None
            self._participants.step(job, tx.FinishAsked(None))  # never prepared here: it never is
            return _State.ABORTED, None
        self._participants.step(job, told)
        machine = known.participant
        if machine.phase is tx.ParticipantPhase.STAGING:
            self._participants.step(job, tx.FinishAsked(None))
        if not machine.decided:
            return _State.PREPARED, None
        if machine.commit_timestamp is None:
            return _State.ABORTED, None
        return _State.COMMITTED, machine.commit_timestamp

    def ended(self, job: str, timestamp: int | None) -> None:
        """A commit that this member coordinated has ended: a donor may ask for it."""
        if self._core.view.awaited and self._participants.known(job) is None:
            self._participants.step(job, tx.Adopted(timestamp))

    def note(self, _now: float) -> None:
        """A client that waits for a bulk write that is in doubt asks again, and hears that."""
        lowest = dict[int, int]()
        for taking in self._participants.prepared if self._core.view.awaited else ():
            work, machine = taking.work, taking.participant
            if work is not None and machine.awaits_a_copy:
                map_id, at = work.schema.map_id, machine.lowest_timestamp
                lowest[map_id] = min(at, lowest.get(map_id, at))
        for map_id in self._core.doubts.note("bulk writes", lowest):
            self._participants.wake(map_id)
            self._core.listeners.resolved.tell(map_id)

    # --- on a donor ---------------------------------------------------------------------------

    def undecided(self) -> list[str]:
        return [taking.participant.job for taking in self._participants.prepared]

    def in_doubt_here(self) -> list[str]:
        """The jobs that are prepared on this member, and not decided."""
        return self.undecided()

    def to_tell(self, elsewhere: Collection[str]) -> list[str]:
        """The jobs that the members must hear of: those in doubt here, and those that have ended
        here while they are prepared ``elsewhere``."""
        ended = []
        for job in elsewhere:
            taking = self._participants.known(job)
            if taking is not None and taking.participant.decided:
                ended.append(job)
        return sorted({*self.undecided(), *ended})

    def told(self, job: str) -> control_pb2.DonatedJob:
        """This donor's knowledge of a job."""
        taking = self._participants.known(job)
        assert taking is not None
        machine = taking.participant
        outcome, timestamp = machine.outcome
        message = control_pb2.DonatedJob(
            donor=self._core.number,
            job=job,
            state=OUTCOMES[outcome],
            participants=machine.participants,
        )
        if timestamp is not None:
            message.commit_timestamp = timestamp
        return message

    def who_knows(self, job: str) -> list[int]:
        """Members that took part, and the coordinator."""
        taking = self._participants.known(job)
        others = () if taking is None else taking.participant.participants
        return sorted({*others, coordinator_of(job)} - {self._core.number})

    def adopt(self, job: str, answer: control_pb2.CommitStatusReply) -> None:
        """A member answers how the job has ended, if it knows: then it has so here."""
        if answer.state == _State.COMMITTED:
            self._participants.step(job, tx.Adopted(answer.commit_timestamp))
        elif answer.state == _State.ABORTED:
            self._participants.step(job, tx.Adopted(None))
