"""Staged two-phase commit: rows staged on several members appear together or not at all.

Pure: one ``Coordinator`` per commit (``transaction.staged_coordinator``), one ``Participant`` per
commit and member; both are functions of their events. The shell in ``member.commits.commits``
carries out the effects.

The normal course: the coordinator asks every participant to prepare; each validates what is staged
there, takes a prepare timestamp from its clock and registers it in one atomic step, and votes. The
commit timestamp is the largest prepare timestamp, so that a reader at T that waits for what is
prepared at or below T never misses a commit at or below T (design rules 4 and 15). A refusal, or a
participant lost before it voted, aborts everywhere. Every message may be lost, repeated or late:
questions are asked again, answers are the same again.

Rows may have *backups*: every copy of a part takes part. The primaries (the first copy of each
part) prepare; when all have voted, the commit timestamp is known, and the backups are asked to keep
their copies under it; the commit is decided when all have. So a backup that keeps proves that
nobody refused.

Rows of a map with unique indexes are *checked* in between: once every primary of the map has voted,
nothing else is written to it anywhere, so each participant can compare its rows with those of all
others. One that finds a value twice refuses.

When the coordinator is lost (it never comes back: a restarted process is another member), the
participants decide among themselves, after Skeen's cooperative termination: a member that asks or
is asked takes no decision from the old coordinator any more (the fence), and everyone asks
everyone. The commit stands if one of them has committed. It also stands if nobody has aborted, all
backups that are left keep it, and a copy of every part is left: a lost primary may have committed,
and shown it to readers. Otherwise it is aborted: then no backup has committed that could be left,
and the coordinator, which answers the user only after every live participant has finished, has told
nobody of a commit.

While a part has no copy left and a lost member may bring one back, nothing is decided: that member
may have committed. The views say whose copy is waited for, and all members ask the same ones
(``Awaiting``, ``DonorTold``).

Members know the same others to be lost, as far as it matters: each question carries the lost ones
that the asking member knows, whose answers then count no more for the one who is asked either, and
every loss starts the questions again.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from remuda.errors import JobAborted, RemudaError
from remuda.transaction.staged_coordinator import RESEND_AFTER, Coordinator, CoordinatorPhase
from remuda.transaction.staged_events import (
    Adopted,
    AskCheck,
    AskFinish,
    AskKeep,
    AskPrepare,
    AskStatus,
    Awaiting,
    Begin,
    CheckAsked,
    Checked,
    CheckedHere,
    CheckHere,
    DonorTold,
    Effect,
    Event,
    FinishAsked,
    Finished,
    KeepAsked,
    KeepHere,
    Kept,
    KeptHere,
    MemberLost,
    Outcome,
    Parts,
    PrepareAsked,
    PreparedHere,
    PrepareHere,
    Refused,
    RefusedHere,
    Report,
    ResolveHere,
    StatusAsked,
    StatusTold,
    TellChecked,
    TellFinished,
    TellKept,
    TellRefusal,
    TellStatus,
    TellVote,
    Tick,
    Voted,
    keepers_of,
    rows_missing,
)

__all__ = [
    "RESEND_AFTER",
    "Adopted",
    "AskCheck",
    "AskFinish",
    "AskKeep",
    "AskPrepare",
    "AskStatus",
    "Awaiting",
    "Begin",
    "CheckAsked",
    "CheckHere",
    "Checked",
    "CheckedHere",
    "Coordinator",
    "CoordinatorPhase",
    "DonorTold",
    "Effect",
    "Event",
    "FinishAsked",
    "Finished",
    "KeepAsked",
    "KeepHere",
    "Kept",
    "KeptHere",
    "MemberLost",
    "Outcome",
    "Participant",
    "ParticipantPhase",
    "Parts",
    "PrepareAsked",
    "PrepareHere",
    "PreparedHere",
    "Refused",
    "RefusedHere",
    "Report",
    "ResolveHere",
    "StatusAsked",
    "StatusTold",
    "TellChecked",
    "TellFinished",
    "TellKept",
    "TellRefusal",
    "TellStatus",
    "TellVote",
    "Tick",
    "Voted",
    "keepers_of",
    "rows_missing",
]


class ParticipantPhase(Enum):
    STAGING = "staging"
    PREPARED = "prepared"
    KEPT = "kept"
    DECIDING = "deciding"
    """Prepared or kept, without a coordinator: asks the other participants."""
    COMMITTED = "committed"
    ABORTED = "aborted"


_NOBODY: Final[frozenset[int]] = frozenset()
"""Shared: an empty set takes 216 bytes."""


class Participant:
    """One member's side of one commit. Members remember thousands that have ended, so it is small
    when it is decided."""

    __slots__ = (
        "_asked_at",
        "_awaited",
        "_donors",
        "_lost",
        "_refusal",
        "_round",
        "_told",
        "commit_timestamp",
        "coordinator",
        "job",
        "kept_timestamp",
        "member",
        "participants",
        "parts",
        "phase",
        "prepare_timestamp",
        "rows",
    )

    def __init__(self, member: int, job: str) -> None:
        self.member = member
        self.job = job
        self.phase = ParticipantPhase.STAGING
        self.coordinator: int | None = None
        self.participants: tuple[int, ...] = ()
        self.parts: Parts = ()
        self.prepare_timestamp = 0
        self.kept_timestamp: int | None = None
        """The future commit timestamp, known to those who keep backups."""
        self.commit_timestamp: int | None = None
        self.rows = 0
        self._refusal: RemudaError | None = None
        self._told: dict[int, StatusTold] = {}
        """The answers of this round."""
        self._lost = _NOBODY
        self._awaited = _NOBODY
        self._donors: dict[int, DonorTold] = {}
        self._round = 0
        self._asked_at = 0.0

    @property
    def decided(self) -> bool:
        return self.phase in {ParticipantPhase.COMMITTED, ParticipantPhase.ABORTED}

    @property
    def awaits_a_copy(self) -> bool:
        """Whether it is in doubt until a copy comes back, or its loss is accepted."""
        return self.phase is ParticipantPhase.DECIDING and self._waits_for_a_copy()

    @property
    def lowest_timestamp(self) -> int:
        """The job that was prepared here may commit at this timestamp or later."""
        return min(filter(None, (self.prepare_timestamp, self.kept_timestamp)), default=0)

    @property
    def primaries(self) -> tuple[int, ...]:
        """The participants that are the primary of something that is written."""
        return tuple(sorted({copies[0] for copies in self.parts})) or self.participants

    @property
    def outcome(self) -> tuple[Outcome, int | None]:
        """The state of this member once it was asked to prepare or keep, and the commit
        timestamp."""
        match self.phase:
            case ParticipantPhase.COMMITTED:
                return Outcome.COMMITTED, self.commit_timestamp
            case ParticipantPhase.ABORTED:
                return Outcome.ABORTED, None
            case _ if self.kept_timestamp is None:
                return Outcome.PREPARED, None
            case _:
                return Outcome.KEPT, self.kept_timestamp

    def step(self, now: float, event: Event) -> list[Effect]:
        match event:
            case PrepareAsked():
                return self._prepare(event)
            case PreparedHere(timestamp, rows):
                self.phase = ParticipantPhase.PREPARED
                self.prepare_timestamp, self.rows = timestamp, rows
                return [TellVote(timestamp, rows)]
            case CheckAsked() | CheckedHere():
                return self._check(event)
            case KeepAsked():
                return self._keep(event)
            case KeptHere():
                self.phase = ParticipantPhase.KEPT
                return [TellKept()]
            case RefusedHere(error):
                self._refusal = error
                return [*self._resolve(None), TellRefusal(error)]
            case FinishAsked(timestamp):
                return self._finish(timestamp)
            case MemberLost(member):
                return self._member_lost(now, member)
            case StatusAsked(member, lost):
                return self._status(now, member, lost)
            case StatusTold():
                return self._take_answer(event)
            case Tick():
                return self._tick(now)
            case _:
                return self._about_copies(event)

    def _about_copies(self, event: Event) -> list[Effect]:
        """Events of copies that may come back."""
        match event:
            case Awaiting(members):
                self._awaited = members
                return self._conclude()
            case DonorTold():
                return self._donor_told(event)
            case Adopted(timestamp) if not self.decided:
                return self._resolve(timestamp)
            case _:
                return []

    def _prepare(self, asked: PrepareAsked) -> list[Effect]:
        match self.phase:
            case ParticipantPhase.STAGING:
                self.coordinator, self.participants = asked.coordinator, asked.participants
                self.parts = asked.parts
                if asked.coordinator in self._lost:
                    return self._resolve(None)
                return [PrepareHere()]
            case ParticipantPhase.ABORTED:
                return [self._tell_refusal()]
            case _:
                return [TellVote(self.prepare_timestamp, self.rows)]

    def _check(self, event: CheckAsked | CheckedHere) -> list[Effect]:
        """Nothing is decided by a refusal: the coordinator may have heard of a check of this member
        before, and gone on."""
        if self.phase is ParticipantPhase.ABORTED and isinstance(event, CheckAsked):
            return [self._tell_refusal()]
        if self.phase is not ParticipantPhase.PREPARED:
            return []  # decided, or fenced: the coordinator knows by now, or is lost
        if isinstance(event, CheckAsked):
            return [CheckHere(event.timestamp)]
        return [TellChecked() if event.error is None else TellRefusal(event.error)]

    def _keep(self, asked: KeepAsked) -> list[Effect]:
        match self.phase:
            case ParticipantPhase.STAGING | ParticipantPhase.PREPARED:
                self.coordinator, self.participants = asked.coordinator, asked.participants
                self.parts = asked.parts
                if asked.coordinator in self._lost:
                    return self._resolve(None)
                self.kept_timestamp = asked.timestamp
                return [KeepHere(asked.timestamp)]
            case ParticipantPhase.KEPT | ParticipantPhase.COMMITTED:
                return [TellKept()]
            case ParticipantPhase.ABORTED:
                return [self._tell_refusal()]
            case _:
                return []  # fenced

    def _tell_refusal(self) -> Effect:
        return TellRefusal(self._refusal or JobAborted(f"job {self.job} was aborted"))

    def _finish(self, timestamp: int | None) -> list[Effect]:
        match self.phase:
            case ParticipantPhase.PREPARED | ParticipantPhase.KEPT:
                return [*self._resolve(timestamp), TellFinished()]
            case ParticipantPhase.STAGING if timestamp is None:
                return [*self._resolve(None), TellFinished()]
            case ParticipantPhase.COMMITTED | ParticipantPhase.ABORTED:
                return [TellFinished(contradicts=timestamp != self.commit_timestamp)]
            case _:
                # Fenced: the decision now belongs to the participants. (A commit of what was never
                # prepared here cannot come from a correct coordinator.)
                return []

    def _resolve(self, timestamp: int | None) -> list[Effect]:
        self.commit_timestamp = timestamp
        self.phase = ParticipantPhase.ABORTED if timestamp is None else ParticipantPhase.COMMITTED
        self._told.clear()
        return [ResolveHere(timestamp)]

    # --- without a coordinator ------------------------------------------------------------------

    @property
    def _promised(self) -> bool:
        """It has said yes, and obeys the coordinator."""
        return self.phase in {ParticipantPhase.PREPARED, ParticipantPhase.KEPT}

    def _member_lost(self, now: float, member: int) -> list[Effect]:
        """While the participants decide, every loss starts a new round of questions: the lost one
        may have committed and have told others, after these answered us."""
        self._lost |= {member}
        if self.phase is ParticipantPhase.DECIDING:
            return self._decide_ourselves(now)
        if member == self.coordinator and self._promised:
            return self._decide_ourselves(now)
        return []

    def _others(self) -> set[int]:
        """The members that must answer."""
        asked = {*self.participants, self.coordinator} - {self.member, None} - self._lost
        return {member for member in asked if member is not None}

    def _decide_ourselves(self, now: float) -> list[Effect]:
        self.phase = ParticipantPhase.DECIDING
        self._told.clear()
        self._round += 1
        return self._conclude() if not self._others() else self._ask(now)

    def _ask(self, now: float) -> list[Effect]:
        self._asked_at = now
        lost = tuple(sorted(self._lost))
        waiting = self._others() - self._told.keys()
        return [AskStatus(member, self._round, lost) for member in sorted(waiting)]

    def _status(self, now: float, member: int, lost: tuple[int, ...]) -> list[Effect]:
        """Answers that go out before anything else: an answer must not tell of its own effects."""
        news = not self._lost.issuperset(lost)
        self._lost = self._lost.union(lost)
        effects: list[Effect] = []
        match self.phase:
            case ParticipantPhase.STAGING:
                effects = self._resolve(None)
                outcome = Outcome.UNKNOWN
            case ParticipantPhase.COMMITTED:
                outcome = Outcome.COMMITTED
            case ParticipantPhase.ABORTED:
                outcome = Outcome.ABORTED
            case _:
                outcome = Outcome.PREPARED if self.kept_timestamp is None else Outcome.KEPT
                if news or self._promised:
                    effects = self._decide_ourselves(now)
        timestamp = self.kept_timestamp if outcome is Outcome.KEPT else self.commit_timestamp
        if outcome is Outcome.UNKNOWN:
            timestamp = None
        return [TellStatus(member, outcome, timestamp), *effects]

    def _take_answer(self, told: StatusTold) -> list[Effect]:
        if self.phase is not ParticipantPhase.DECIDING or told.member in self._lost:
            return []
        if told.outcome is Outcome.COMMITTED:
            return self._resolve(told.timestamp)
        if told.outcome in {Outcome.ABORTED, Outcome.UNKNOWN}:
            return self._resolve(None)
        if told.round == self._round:
            self._told[told.member] = told
        return self._conclude()

    def _donor_told(self, told: DonorTold) -> list[Effect]:
        if self.decided or self.phase is ParticipantPhase.STAGING:
            return []
        if told.outcome is Outcome.COMMITTED:
            return self._resolve(told.timestamp)
        if told.outcome in {Outcome.ABORTED, Outcome.UNKNOWN}:
            return self._resolve(None)
        if self._promised:
            return []  # its coordinator decides
        self._donors[told.member] = told
        return self._conclude()

    def _conclude(self) -> list[Effect]:
        """Decide, if all have answered that must, and nobody is waited for."""
        if self.phase is not ParticipantPhase.DECIDING or self._others() - self._told.keys():
            return []
        return [] if self._waits_for_a_copy() else self._resolve(self._verdict())

    def _waits_for_a_copy(self) -> bool:
        """Whether a part has no copy left, and one may come back."""
        left = {self.member, *self._told, *self._donors}
        parts = self.parts or tuple((member,) for member in self.participants)
        return any(
            not left.intersection(copies) and not self._awaited.isdisjoint(copies)
            for copies in parts
        )

    def _verdict(self) -> int | None:
        """All that are left have answered, and none of them has decided: the commit timestamp, or
        None to abort."""
        answers: list[StatusTold | DonorTold] = [*self._told.values(), *self._donors.values()]
        kept = {told.member: told.timestamp for told in answers if told.outcome is Outcome.KEPT}
        if self.kept_timestamp is not None:
            kept[self.member] = self.kept_timestamp
        left = {self.member, *self._told, *self._donors}
        keepers = keepers_of(self.parts) & left
        complete = all(any(copy in left for copy in copies) for copies in self.parts)
        if not keepers or not complete or not keepers <= kept.keys():
            return None
        return kept[min(keepers)]

    def _tick(self, now: float) -> list[Effect]:
        if self.phase is not ParticipantPhase.DECIDING or now - self._asked_at < RESEND_AFTER:
            return []
        return self._ask(now)
