"""The coordinator's side of a staged commit: see ``transaction.staged_commit``. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Final

from remuda.errors import JobAborted, MemberUnavailable, RemudaError
from remuda.transaction.staged_events import (
    AskCheck,
    AskFinish,
    AskKeep,
    AskPrepare,
    Begin,
    Checked,
    Effect,
    Event,
    Finished,
    Kept,
    MemberLost,
    Outcome,
    Parts,
    Refused,
    Report,
    StatusAsked,
    TellStatus,
    Tick,
    Voted,
    keepers_of,
    rows_missing,
)

RESEND_AFTER: Final = 2.0
"""Seconds without an answer after which a question is asked again."""


class CoordinatorPhase(Enum):
    NEW = "new"
    PREPARING = "preparing"
    CHECKING = "checking"
    KEEPING = "keeping"
    FINISHING = "finishing"
    DONE = "done"


class Coordinator:
    """Drives one commit over ``primaries`` (member numbers, at least one) and the backups that
    ``parts`` names. ``expected``: so many rows the primaries must have between them, if it is
    known: partitions may have changed hands since the rows were staged. ``checked``: the rows are
    compared with others once all have voted. For unique indexes ``primaries`` are all that the map
    has."""

    def __init__(
        self,
        job: str,
        primaries: tuple[int, ...],
        parts: Parts = (),
        expected: int | None = None,
        *,
        checked: bool = False,
    ) -> None:
        assert primaries, "a commit has participants"
        self._expected = expected
        self._compares = checked
        self.job = job
        self.primaries = tuple(sorted(set(primaries)))
        self.parts = parts
        self.keepers = tuple(sorted(keepers_of(parts)))
        self.participants = tuple(sorted({*self.primaries, *self.keepers}))
        self.phase = CoordinatorPhase.NEW
        self.commit_timestamp: int | None = None
        """Set when the commit is decided."""
        self.error: RemudaError | None = None
        self.rows = 0
        self._contradicted = False
        """A participant had committed what is aborted here."""
        self._timestamp = 0
        self._votes: dict[int, Voted] = {}
        self._waiting: set[int] = set()
        self._asked_at = 0.0

    @property
    def committed(self) -> bool:
        return self.commit_timestamp is not None

    def ask_soon(self) -> None:
        """Members that have not answered are asked again at the next tick."""
        self._asked_at = -RESEND_AFTER

    def step(self, now: float, event: Event) -> list[Effect]:
        match event:
            case Begin() if self.phase is CoordinatorPhase.NEW:
                self.phase = CoordinatorPhase.PREPARING
                self._waiting = set(self.primaries)
                self._asked_at = now
                return [AskPrepare(member) for member in self.primaries]
            case Voted(member) if self.phase is CoordinatorPhase.PREPARING:
                return self._voted(now, member, event)
            case Checked(member) if self.phase is CoordinatorPhase.CHECKING:
                return self._checked(now, member)
            case Kept(member) if self.phase is CoordinatorPhase.KEEPING:
                return self._kept(now, member)
            case Refused(_, error) if self._undecided:
                return self._decide(now, error)
            case Finished(member, contradicts) if self.phase is CoordinatorPhase.FINISHING:
                if contradicts:
                    self._contradicted_by(member)
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
        self._timestamp = max(vote.timestamp for vote in self._votes.values())
        self.rows = sum(vote.rows for vote in self._votes.values())
        staged = sum(vote.staged for vote in self._votes.values())
        if self._expected is not None and staged != self._expected:
            return self._decide(now, rows_missing(self.job, self._expected, staged))
        return self._check(now) if self._compares else self._keep(now)

    def _check(self, now: float) -> list[Effect]:
        self.phase = CoordinatorPhase.CHECKING
        self._waiting = set(self.primaries)
        self._asked_at = now
        return [AskCheck(member, self._timestamp) for member in self.primaries]

    def _checked(self, now: float, member: int) -> list[Effect]:
        self._waiting.discard(member)
        return [] if self._waiting else self._keep(now)

    def _keep(self, now: float) -> list[Effect]:
        if not self.keepers:
            return self._commit(now)
        self.phase = CoordinatorPhase.KEEPING
        self._waiting = set(self.keepers)
        self._asked_at = now
        return [AskKeep(keeper, self._timestamp) for keeper in self.keepers]

    def _kept(self, now: float, member: int) -> list[Effect]:
        self._waiting.discard(member)
        return [] if self._waiting else self._commit(now)

    @property
    def _undecided(self) -> bool:
        return self.phase in {
            CoordinatorPhase.PREPARING,
            CoordinatorPhase.CHECKING,
            CoordinatorPhase.KEEPING,
        }

    def _commit(self, now: float) -> list[Effect]:
        self.commit_timestamp = self._timestamp
        return self._decide(now, None)

    def _decide(self, now: float, error: RemudaError | None) -> list[Effect]:
        self.error = error
        self.phase = CoordinatorPhase.FINISHING
        self._waiting = set(self.participants)
        self._asked_at = now
        return [AskFinish(member, self.commit_timestamp) for member in self.participants]

    def _contradicted_by(self, member: int) -> None:
        """The participants have decided otherwise without this coordinator, and may have shown
        readers a part of it."""
        self._contradicted = True
        if self.committed and self.error is None:
            self.error = JobAborted(
                f"member {member} had aborted job {self.job} before it was told to commit",
                detail="The members had lost this coordinator for a while.",
                may_have_run=True,
            )

    def _finished(self, member: int) -> list[Effect]:
        self._waiting.discard(member)
        if self._waiting:
            return []
        self.phase = CoordinatorPhase.DONE
        if self.committed or self.error is None:
            return [Report(self.rows if self.committed else None, self.error)]
        # Only this coordinator could have decided to commit: nothing has taken effect anywhere.
        return [Report(None, self.error.knowing(may_have_run=self._contradicted))]

    def _lost(self, now: float, member: int, cause: str) -> list[Effect]:
        if member not in self.participants:
            return []
        if self._undecided:
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
        """A participant gave this coordinator up, which aborts an undecided commit."""
        effects: list[Effect] = []
        if self.phase is CoordinatorPhase.NEW or self._undecided:
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
        if self.phase is CoordinatorPhase.CHECKING:
            return [AskCheck(member, self._timestamp) for member in sorted(self._waiting)]
        if self.phase is CoordinatorPhase.KEEPING:
            return [AskKeep(member, self._timestamp) for member in sorted(self._waiting)]
        if self.phase is CoordinatorPhase.FINISHING:
            return [AskFinish(member, self.commit_timestamp) for member in sorted(self._waiting)]
        return []
