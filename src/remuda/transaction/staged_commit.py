"""Staged two-phase commit: rows staged on several members appear together or not at all.

Pure: one ``Coordinator`` per commit, one ``Participant`` per commit and member; both are functions
of their events. The shell in ``member.commits`` carries out the effects.

The normal course: the coordinator asks every participant to prepare; each validates what is staged
there, takes a prepare timestamp from its clock and registers it in one atomic step, and votes. The
commit timestamp is the largest prepare timestamp, so that a reader at T that waits for what is
prepared at or below T never misses a commit at or below T (design rules 4 and 15). A refusal, or a
participant lost before it voted, aborts everywhere. Every message may be lost, repeated or late:
questions are asked again, answers are the same again.

When the coordinator is lost (it never comes back: a restarted process is another member), the
participants decide among themselves, after Skeen's cooperative termination: whoever asks or is
asked takes no decision from the old coordinator any more (the fence), everyone asks everyone, and
the commit stands if and only if one of them has committed. The user is answered only after
every live participant has finished, so an abort by survivors contradicts no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from remuda.errors import JobAborted, MemberUnavailable, RemudaError

RESEND_AFTER: Final = 2.0
"""Seconds without an answer after which a question is asked again."""


class Outcome(Enum):
    """What a participant says about a commit when the coordinator is lost."""

    UNKNOWN = "unknown"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


# --- events ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """To the coordinator: start."""


@dataclass(frozen=True, slots=True)
class Voted:
    """To the coordinator: a participant is prepared."""

    member: int
    timestamp: int
    rows: int


@dataclass(frozen=True, slots=True)
class Refused:
    """To the coordinator: a participant cannot commit."""

    member: int
    error: RemudaError


@dataclass(frozen=True, slots=True)
class Finished:
    """To the coordinator: a participant has carried out the decision, or had decided otherwise."""

    member: int
    contradicts: bool = False


@dataclass(frozen=True, slots=True)
class MemberLost:
    """To both: a member has left the cluster for good."""

    member: int
    cause: str


@dataclass(frozen=True, slots=True)
class PrepareAsked:
    """To a participant. ``participants`` includes the participant itself."""

    coordinator: int
    participants: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PreparedHere:
    """To a participant: the answer to ``PrepareHere``, in the same instant."""

    timestamp: int
    rows: int


@dataclass(frozen=True, slots=True)
class RefusedHere:
    """To a participant: the other answer to ``PrepareHere``."""

    error: RemudaError


@dataclass(frozen=True, slots=True)
class FinishAsked:
    """To a participant: the decision; ``timestamp`` None = abort."""

    timestamp: int | None


@dataclass(frozen=True, slots=True)
class StatusAsked:
    """To both: another participant has lost the coordinator. ``lost`` are all members that it
    knows to be lost: the one who is asked takes nothing from them any more either, or it could
    still learn of a commit from a dead member after it has answered "prepared"."""

    member: int
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusTold:
    """To a participant: what another one knows, in answer to the question of ``round``."""

    member: int
    outcome: Outcome
    timestamp: int | None
    round: int


@dataclass(frozen=True, slots=True)
class Tick:
    """To both: time has passed."""


Event: TypeAlias = (
    Begin
    | Voted
    | Refused
    | Finished
    | MemberLost
    | PrepareAsked
    | PreparedHere
    | RefusedHere
    | FinishAsked
    | StatusAsked
    | StatusTold
    | Tick
)


# --- effects ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskPrepare:
    member: int


@dataclass(frozen=True, slots=True)
class AskFinish:
    member: int
    timestamp: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """The coordinator tells the user; exactly one of the fields is set."""

    rows: int | None
    error: RemudaError | None


@dataclass(frozen=True, slots=True)
class PrepareHere:
    """Validate the staged rows, take a timestamp and register it, and step with the result."""


@dataclass(frozen=True, slots=True)
class ResolveHere:
    """Make the rows visible at ``timestamp``, or free them (None)."""

    timestamp: int | None


@dataclass(frozen=True, slots=True)
class TellVote:
    timestamp: int
    rows: int


@dataclass(frozen=True, slots=True)
class TellRefusal:
    error: RemudaError


@dataclass(frozen=True, slots=True)
class TellFinished:
    """``contradicts``: the participants had given the coordinator up and decided otherwise."""

    contradicts: bool = False


@dataclass(frozen=True, slots=True)
class AskStatus:
    member: int
    round: int
    lost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TellStatus:
    member: int
    outcome: Outcome
    timestamp: int | None


Effect: TypeAlias = (
    AskPrepare
    | AskFinish
    | Report
    | PrepareHere
    | ResolveHere
    | TellVote
    | TellRefusal
    | TellFinished
    | AskStatus
    | TellStatus
)


class CoordinatorPhase(Enum):
    NEW = "new"
    PREPARING = "preparing"
    FINISHING = "finishing"
    DONE = "done"


class Coordinator:
    """Drives one commit over ``participants`` (member numbers, at least one)."""

    def __init__(self, job: str, participants: tuple[int, ...]) -> None:
        assert participants, "a commit has participants"
        self.job = job
        self.participants = tuple(sorted(set(participants)))
        self.phase = CoordinatorPhase.NEW
        self.commit_timestamp: int | None = None
        self.error: RemudaError | None = None
        self.rows = 0
        self._votes: dict[int, Voted] = {}
        self._waiting: set[int] = set()
        self._asked_at = 0.0

    @property
    def committed(self) -> bool:
        return self.commit_timestamp is not None

    def step(self, now: float, event: Event) -> list[Effect]:
        match event:
            case Begin() if self.phase is CoordinatorPhase.NEW:
                self.phase = CoordinatorPhase.PREPARING
                self._waiting = set(self.participants)
                self._asked_at = now
                return [AskPrepare(member) for member in self.participants]
            case Voted(member) if self.phase is CoordinatorPhase.PREPARING:
                return self._voted(now, member, event)
            case Refused(_, error) if self.phase is CoordinatorPhase.PREPARING:
                return self._decide(now, error)
            case Finished(member, contradicts) if self.phase is CoordinatorPhase.FINISHING:
                if contradicts and self.error is None:
                    self.error = JobAborted(
                        f"member {member} had aborted job {self.job} before it was told to commit",
                        detail="The members had lost this coordinator for a while.",
                    )
                return self._finished(member)
            case MemberLost(member, cause):
                return self._lost(now, member, cause)
            case StatusAsked(member):
                return self._status(now, member)
            case Tick():
                return self._tick(now)
            case _:
                return []

    def _voted(self, now: float, member: int, vote: Voted) -> list[Effect]:
        self._votes[member] = vote
        self._waiting.discard(member)
        if self._waiting:
            return []
        self.commit_timestamp = max(vote.timestamp for vote in self._votes.values())
        self.rows = sum(vote.rows for vote in self._votes.values())
        return self._decide(now, None)

    def _decide(self, now: float, error: RemudaError | None) -> list[Effect]:
        self.error = error
        self.phase = CoordinatorPhase.FINISHING
        self._waiting = set(self.participants)
        self._asked_at = now
        return [AskFinish(member, self.commit_timestamp) for member in self.participants]

    def _finished(self, member: int) -> list[Effect]:
        self._waiting.discard(member)
        if self._waiting:
            return []
        self.phase = CoordinatorPhase.DONE
        return [Report(self.rows if self.committed else None, self.error)]

    def _lost(self, now: float, member: int, cause: str) -> list[Effect]:
        if member not in self.participants:
            return []
        if self.phase is CoordinatorPhase.PREPARING:
            error = MemberUnavailable(
                f"member {member} was lost while it prepared the commit: {cause}",
                member=str(member),
            )
            effects = self._decide(now, error)
            return [
                effect
                for effect in effects
                if not (isinstance(effect, AskFinish) and effect.member == member)
            ] + self._finished(member)
        if self.phase is CoordinatorPhase.FINISHING:
            return self._finished(member)
        return []

    def _status(self, now: float, member: int) -> list[Effect]:
        """A participant gave this coordinator up: what is not decided yet, is aborted."""
        effects: list[Effect] = []
        if self.phase in {CoordinatorPhase.NEW, CoordinatorPhase.PREPARING}:
            error = JobAborted(f"member {member} lost the connection while the commit was prepared")
            effects = self._decide(now, error)
        outcome = Outcome.COMMITTED if self.committed else Outcome.ABORTED
        return [*effects, TellStatus(member, outcome, self.commit_timestamp)]

    def _tick(self, now: float) -> list[Effect]:
        if now - self._asked_at < RESEND_AFTER:
            return []
        self._asked_at = now
        if self.phase is CoordinatorPhase.PREPARING:
            return [AskPrepare(member) for member in sorted(self._waiting)]
        if self.phase is CoordinatorPhase.FINISHING:
            return [AskFinish(member, self.commit_timestamp) for member in sorted(self._waiting)]
        return []


class ParticipantPhase(Enum):
    STAGING = "staging"
    PREPARED = "prepared"
    DECIDING = "deciding"
    """Prepared, without a coordinator: asks the other participants."""
    COMMITTED = "committed"
    ABORTED = "aborted"


class Participant:
    """One member's side of one commit."""

    def __init__(self, member: int, job: str) -> None:
        self.member = member
        self.job = job
        self.phase = ParticipantPhase.STAGING
        self.coordinator: int | None = None
        self.participants: tuple[int, ...] = ()
        self.prepare_timestamp = 0
        self.commit_timestamp: int | None = None
        self.rows = 0
        self._refusal: RemudaError | None = None
        self._waiting: set[int] = set()
        self._lost: set[int] = set()
        self._round = 0
        self._asked_at = 0.0

    @property
    def decided(self) -> bool:
        return self.phase in {ParticipantPhase.COMMITTED, ParticipantPhase.ABORTED}

    def step(self, now: float, event: Event) -> list[Effect]:
        match event:
            case PrepareAsked(coordinator, participants):
                return self._prepare(coordinator, participants)
            case PreparedHere(timestamp, rows):
                self.phase = ParticipantPhase.PREPARED
                self.prepare_timestamp, self.rows = timestamp, rows
                return [TellVote(timestamp, rows)]
            case RefusedHere(error):
                self._refusal = error
                return [*self._resolve(None), TellRefusal(error)]
            case FinishAsked(timestamp):
                return self._finish(timestamp)
            case MemberLost(member):
                return self._member_lost(now, member)
            case StatusAsked(member, lost):
                self._lost.update(lost)
                return self._status(now, member)
            case StatusTold():
                return self._told(event)
            case Tick():
                return self._tick(now)
            case _:
                return []

    def _prepare(self, coordinator: int, participants: tuple[int, ...]) -> list[Effect]:
        match self.phase:
            case ParticipantPhase.STAGING:
                self.coordinator, self.participants = coordinator, participants
                if coordinator in self._lost:
                    return self._resolve(None)
                return [PrepareHere()]
            case ParticipantPhase.ABORTED:
                return [TellRefusal(self._refusal or JobAborted(f"job {self.job} was aborted"))]
            case _:
                return [TellVote(self.prepare_timestamp, self.rows)]

    def _finish(self, timestamp: int | None) -> list[Effect]:
        match self.phase:
            case ParticipantPhase.PREPARED:
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
        self._waiting.clear()
        return [ResolveHere(timestamp)]

    def _member_lost(self, now: float, member: int) -> list[Effect]:
        """While the participants decide, every loss starts a new round of questions: the lost one
        may have committed and have told others, after these answered us."""
        self._lost.add(member)
        if self.phase is ParticipantPhase.DECIDING:
            return self._decide_ourselves(now)
        if member == self.coordinator and self.phase is ParticipantPhase.PREPARED:
            return self._decide_ourselves(now)
        return []

    def _decide_ourselves(self, now: float) -> list[Effect]:
        self.phase = ParticipantPhase.DECIDING
        asked = {*self.participants, self.coordinator} - {self.member, None} - self._lost
        self._waiting = {member for member in asked if member is not None}
        self._round += 1
        if not self._waiting:
            return self._resolve(None)
        return self._ask(now)

    def _ask(self, now: float) -> list[Effect]:
        self._asked_at = now
        lost = tuple(sorted(self._lost))
        return [AskStatus(member, self._round, lost) for member in sorted(self._waiting)]

    def _status(self, now: float, member: int) -> list[Effect]:
        effects: list[Effect] = []
        match self.phase:
            case ParticipantPhase.STAGING:
                effects = self._resolve(None)
                outcome = Outcome.UNKNOWN
            case ParticipantPhase.PREPARED:
                effects = self._decide_ourselves(now)
                outcome = Outcome.PREPARED
            case ParticipantPhase.DECIDING:
                outcome = Outcome.PREPARED
            case ParticipantPhase.COMMITTED:
                outcome = Outcome.COMMITTED
            case ParticipantPhase.ABORTED:
                outcome = Outcome.ABORTED
        return [TellStatus(member, outcome, self.commit_timestamp), *effects]

    def _told(self, told: StatusTold) -> list[Effect]:
        if self.phase is not ParticipantPhase.DECIDING or told.member in self._lost:
            return []
        if told.outcome is Outcome.COMMITTED:
            return self._resolve(told.timestamp)
        if told.outcome in {Outcome.ABORTED, Outcome.UNKNOWN}:
            return self._resolve(None)
        if told.round == self._round:
            self._waiting.discard(told.member)
        return [] if self._waiting else self._resolve(None)

    def _tick(self, now: float) -> list[Effect]:
        if self.phase is not ParticipantPhase.DECIDING or now - self._asked_at < RESEND_AFTER:
            return []
        return self._ask(now)
