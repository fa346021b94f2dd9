"""Bulk writes that are prepared on a donor, and how they have ended among the members.

Nothing is decided on a donor. It tells every member that took part what it knows, and adopts what
one of them knows; where nobody knows, and nobody took part, the write stays in doubt and its
partitions do not come back.
"""

from __future__ import annotations

from collections.abc import Callable

from remuda.member.commit_participants import CommitParticipants
from remuda.member.commit_work import OUTCOMES
from remuda.member.core import Core
from remuda.member.turns import coordinator_of
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
        """What a donor knows of a job; the answer is how it has ended here, or PREPARED while it is
        in doubt, or UNKNOWN when this member had no part in it."""
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

    # --- on a donor ---------------------------------------------------------------------------

    def undecided(self) -> list[str]:
        return [taking.participant.job for taking in self._participants.prepared]

    def told(self, job: str) -> control_pb2.DonatedJob:
        """What this donor knows of a job."""
        taking = self._participants.known(job)
        assert taking is not None
        machine = taking.participant
        kept = machine.kept_timestamp
        message = control_pb2.DonatedJob(
            donor=self._core.number,
            job=job,
            state=OUTCOMES[tx.Outcome.PREPARED if kept is None else tx.Outcome.KEPT],
            participants=machine.participants,
        )
        if kept is not None:
            message.commit_timestamp = kept
        return message

    def who_knows(self, job: str) -> list[int]:
        """Members that took part, and the coordinator."""
        taking = self._participants.known(job)
        others = () if taking is None else taking.participant.participants
        return sorted({*others, coordinator_of(job)} - {self._core.number})

    def adopt(self, job: str, answer: control_pb2.CommitStatusReply) -> bool:
        """Whether the answer of a member says how the job has ended: then it has so here."""
        if answer.state == _State.COMMITTED:
            self._participants.step(job, tx.Adopted(answer.commit_timestamp))
        elif answer.state == _State.ABORTED:
            self._participants.step(job, tx.Adopted(None))
        else:
            return False
        return True
