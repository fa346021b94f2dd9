"""Identities and states of transactions, and what their members say to each other. Pure.

Names of states are Ignite's. The unit that prepares, commits and is kept by backups is the *part*:
what a transaction reads and writes in one partition. Members come and go between two messages, so
parts are addressed by partition, and whoever is its primary in the current view takes the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from remuda.errors import RemudaError


class State(Enum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    PREPARING = "preparing"
    PREPARED = "prepared"
    MARKED_ROLLBACK = "marked rollback"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class TransactionId:
    """``began`` is a hybrid timestamp of the near member, unique there; it orders transactions by
    age."""

    began: int
    near: int

    def __str__(self) -> str:
        return f"{self.near}:{self.began}"


class Layout(Protocol):
    """Who keeps which partition in a view."""

    @property
    def number(self) -> int: ...

    def primary(self, partition: int) -> int | None:
        """None: every copy is lost."""

    def backups(self, partition: int) -> tuple[int, ...]:
        """The synchronous ones."""

    def alive(self, member: int) -> bool:
        """Whether it is in the view."""


# --- messages -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepare:
    """Near to primary. ``work`` holds, by partition, what the parts read and write; ``partitions``
    are those of the whole transaction. ``one_phase``: there is one part, and who takes it commits.
    """

    transaction: TransactionId
    partitions: tuple[int, ...]
    work: Mapping[int, object]
    one_phase: bool = False

    def __str__(self) -> str:
        how = " in one phase" if self.one_phase else ""
        return f"prepare {self.transaction} parts {sorted(self.work)}{how}"


@dataclass(frozen=True, slots=True)
class Vote:
    """Primary to near: the part is prepared at ``timestamp`` on all its copies (``committed``: and
    committed), or refused."""

    transaction: TransactionId
    partition: int
    timestamp: int = 0
    committed: bool = False
    refusal: RemudaError | None = None

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"refuse {self.transaction} part {self.partition}: {self.refusal.message}"
        what = "committed" if self.committed else "prepared"
        return f"{what} {self.transaction} part {self.partition} at {self.timestamp}"


@dataclass(frozen=True, slots=True)
class Finish:
    """Near, or whoever recovers, to primary: commit at ``timestamp``, or roll back (None)."""

    transaction: TransactionId
    partition: int
    timestamp: int | None

    def __str__(self) -> str:
        return f"finish {self.transaction} part {self.partition} {_end(self.timestamp)}"


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer, when all copies of the part have finished."""

    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"finished {self.transaction} part {self.partition}"


@dataclass(frozen=True, slots=True)
class BackupPrepare:
    """Primary to backup: keep the part, prepared at ``timestamp``; with ``one_phase`` commit it."""

    transaction: TransactionId
    partition: int
    timestamp: int
    partitions: tuple[int, ...]
    work: object
    one_phase: bool

    def __str__(self) -> str:
        how = " in one phase" if self.one_phase else ""
        return f"keep {self.transaction} part {self.partition} at {self.timestamp}{how}"


@dataclass(frozen=True, slots=True)
class BackupPrepared:
    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"kept {self.transaction} part {self.partition}"


@dataclass(frozen=True, slots=True)
class BackupFinish:
    transaction: TransactionId
    partition: int
    timestamp: int | None

    def __str__(self) -> str:
        return f"backup finish {self.transaction} part {self.partition} {_end(self.timestamp)}"


@dataclass(frozen=True, slots=True)
class BackupFinished:
    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"backup finished {self.transaction} part {self.partition}"


@dataclass(frozen=True, slots=True)
class BackupEnded:
    """Backup to primary, instead of ``BackupPrepared``: an earlier primary has ended the part."""

    transaction: TransactionId
    partition: int
    timestamp: int | None

    def __str__(self) -> str:
        return f"backup ended {self.transaction} part {self.partition} {_end(self.timestamp)}"


@dataclass(frozen=True, slots=True)
class BackupForget:
    """Primary to backup, of a near member that is lost: nobody can ask for the part any more."""

    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"backup forget {self.transaction} part {self.partition}"


@dataclass(frozen=True, slots=True)
class Inquire:
    """When the near member is lost, primary to primary: what of this part? Whoever has not prepared
    it never will. Also backup to primary, of their own part."""

    transaction: TransactionId
    partition: int
    asking: int
    """The partition that wants to know."""

    def __str__(self) -> str:
        return f"inquire {self.transaction} part {self.partition} for part {self.asking}"


@dataclass(frozen=True, slots=True)
class Told:
    """The answer: PREPARED, COMMITTED or ROLLED_BACK, and the timestamp of the first two; UNKNOWN
    of a partition whose copies are all lost."""

    transaction: TransactionId
    partition: int
    asking: int
    state: State
    timestamp: int

    def __str__(self) -> str:
        return f"told {self.transaction} part {self.partition}: {self.state.value}"


Message = (
    Prepare
    | Vote
    | Finish
    | Finished
    | BackupPrepare
    | BackupPrepared
    | BackupFinish
    | BackupFinished
    | BackupEnded
    | BackupForget
    | Inquire
    | Told
)


# --- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    to: int
    message: Message

    def __str__(self) -> str:
        return f"to {self.to}: {self.message}"


@dataclass(frozen=True, slots=True)
class PrepareHere:
    """Validate the part, take a prepare timestamp and register the part as pending with it, in one
    step that nothing interrupts; then step with ``PreparedHere`` or ``RefusedHere``."""

    transaction: TransactionId
    partition: int
    work: object

    def __str__(self) -> str:
        return f"prepare here {self.transaction} part {self.partition}"


@dataclass(frozen=True, slots=True)
class KeepHere:
    """On a backup: register the part as pending at ``timestamp``, without a question."""

    transaction: TransactionId
    partition: int
    timestamp: int
    work: object

    def __str__(self) -> str:
        return f"keep here {self.transaction} part {self.partition} at {self.timestamp}"


@dataclass(frozen=True, slots=True)
class ResolveHere:
    """Make the part's writes visible at ``timestamp``, or drop them (None). What it has read is not
    locked any more; what it has written, when it commits, until ``SettledHere``."""

    transaction: TransactionId
    partition: int
    timestamp: int | None

    def __str__(self) -> str:
        return f"resolve here {self.transaction} part {self.partition} {_end(self.timestamp)}"


@dataclass(frozen=True, slots=True)
class SettledHere:
    """The part has committed on all its copies (on a backup: on this one): writes of the same keys
    may follow, whatever the order in which messages reach the backups."""

    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"settled here {self.transaction} part {self.partition}"


@dataclass(frozen=True, slots=True)
class HoldHere:
    """Of a part that has committed: this member has become its primary, and some backup may not
    have its writes yet. No other writes of its keys until ``SettledHere``."""

    transaction: TransactionId
    partition: int
    work: object

    def __str__(self) -> str:
        return f"hold here {self.transaction} part {self.partition}"


@dataclass(frozen=True, slots=True)
class Report:
    """On the near member, once: COMMITTED at ``timestamp``, ROLLED_BACK for ``cause``, or UNKNOWN
    (this member was dropped from the cluster, and the others decide)."""

    transaction: TransactionId
    state: State
    timestamp: int = 0
    cause: RemudaError | None = None

    def __str__(self) -> str:
        return f"report {self.transaction} {self.state.value}"


Effect = Send | PrepareHere | KeepHere | ResolveHere | SettledHere | HoldHere | Report


def _end(timestamp: int | None) -> str:
    return "rolled back" if timestamp is None else f"committed at {timestamp}"
