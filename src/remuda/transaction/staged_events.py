"""The events and effects of the machines of ``transaction.staged_commit``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from remuda.errors import JobInterrupted, RemudaError


class Outcome(Enum):
    """A participant's word about a commit when the coordinator is lost."""

    UNKNOWN = "unknown"
    PREPARED = "prepared"
    KEPT = "kept"
    """Asked to keep a backup, after all primaries had voted."""
    COMMITTED = "committed"
    ABORTED = "aborted"


Parts: TypeAlias = tuple[tuple[int, ...], ...]
"""The copies of each part that is written: the primary, then backups. Empty: there are none."""


def keepers_of(parts: Parts) -> frozenset[int]:
    """The members that keep a backup of a part."""
    return frozenset(member for copies in parts for member in copies[1:])


def rows_missing(job: str, expected: int, staged: int) -> JobInterrupted:
    """Not all rows of a job are where they should be."""
    return JobInterrupted(
        f"job {job} was aborted: its tasks wrote {expected} rows, and the members have {staged}",
        detail="Members were lost, or partitions were moved, while rows were written.",
        hint="Write the rows again.",
    )


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
    staged: int = 0
    """Rows to write and keys to remove."""


@dataclass(frozen=True, slots=True)
class Checked:
    """To the coordinator: no row of a participant has values of a unique index that others have."""

    member: int


@dataclass(frozen=True, slots=True)
class Kept:
    """To the coordinator: a participant keeps its backups."""

    member: int


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
    """To a participant. ``participants`` includes the participant itself, and all that ``parts``
    names."""

    coordinator: int
    participants: tuple[int, ...]
    parts: Parts = ()


@dataclass(frozen=True, slots=True)
class CheckAsked:
    """To a participant: all primaries have voted, so nobody else writes the map anywhere. Do its
    rows agree with the unique indexes of the map at ``timestamp``?"""

    timestamp: int


@dataclass(frozen=True, slots=True)
class CheckedHere:
    """To a participant: how a ``CheckHere`` has ended, later."""

    error: RemudaError | None


@dataclass(frozen=True, slots=True)
class KeepAsked:
    """To a participant with backups: all primaries have voted, the commit would be at
    ``timestamp``."""

    coordinator: int
    participants: tuple[int, ...]
    parts: Parts
    timestamp: int


@dataclass(frozen=True, slots=True)
class KeptHere:
    """To a participant: the answer to ``KeepHere``, in the same instant."""


@dataclass(frozen=True, slots=True)
class PreparedHere:
    """To a participant: the answer to ``PrepareHere``, in the same instant."""

    timestamp: int
    rows: int


@dataclass(frozen=True, slots=True)
class RefusedHere:
    """To a participant: the other answer to ``PrepareHere`` and ``KeepHere``."""

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
class Awaiting:
    """To a participant, with every view: members that views have dropped, and whose copies of
    partitions may come back."""

    members: frozenset[int]


@dataclass(frozen=True, slots=True)
class DonorTold:
    """To a participant: the word of a donor, a former member that was chosen to bring back its
    copy. All members of the view know who was chosen."""

    member: int
    outcome: Outcome
    timestamp: int | None


@dataclass(frozen=True, slots=True)
class Adopted:
    """To a participant on a donor: how the members have decided."""

    timestamp: int | None


@dataclass(frozen=True, slots=True)
class StatusTold:
    """To a participant: the knowledge of another one, in answer to the question of ``round``."""

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
    | Checked
    | Kept
    | Refused
    | Finished
    | MemberLost
    | PrepareAsked
    | PreparedHere
    | CheckAsked
    | CheckedHere
    | KeepAsked
    | KeptHere
    | RefusedHere
    | FinishAsked
    | StatusAsked
    | StatusTold
    | Awaiting
    | DonorTold
    | Adopted
    | Tick
)


# --- effects ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskPrepare:
    member: int


@dataclass(frozen=True, slots=True)
class AskCheck:
    member: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class AskKeep:
    member: int
    timestamp: int


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
class CheckHere:
    """Compare the staged rows with each other, and with the rows at ``timestamp`` that the job does
    not write or remove, and step with the result, which may come later."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class KeepHere:
    """See that all rows of the backups are here, register them, and step with the result."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class ResolveHere:
    """Make the rows visible at ``timestamp``, or free them (None)."""

    timestamp: int | None


@dataclass(frozen=True, slots=True)
class TellVote:
    timestamp: int
    rows: int


@dataclass(frozen=True, slots=True)
class TellChecked:
    pass


@dataclass(frozen=True, slots=True)
class TellKept:
    pass


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
    | AskCheck
    | AskKeep
    | AskFinish
    | Report
    | PrepareHere
    | CheckHere
    | KeepHere
    | ResolveHere
    | TellVote
    | TellChecked
    | TellKept
    | TellRefusal
    | TellFinished
    | AskStatus
    | TellStatus
)
