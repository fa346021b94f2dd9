"""Identities and states of transactions, and the messages between their members. Pure.

Names of states are Ignite's. The unit that prepares, commits and is kept by backups is the *part*:
all that a transaction reads and writes in one partition. Members come and go between two messages,
so parts are addressed by partition, and its primary in the current view takes the message.

Names, messages and effects are named tuples: a commit makes some forty of them and looks names up a
hundred times, and dataclasses that are frozen take several times as long for both. Do not compare
messages of two kinds: as tuples, they may be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, Protocol

from remuda.errors import RemudaError

CATALOG: Final = 1 << 30
"""The number of the part that the catalog decides, of a transaction with definitions: it is behind
all partitions, its primary is the coordinator, and the members of the view are its copies."""


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

    __hash__ = object.__hash__
    """By identity, as they are compared. (An enumeration's own one is a call for each look-up.)"""


COMMITTING = (State.PREPARING, State.COMMITTING)
"""Nothing stops the commit any more."""


made = tuple.__new__
"""``made(Vote, (...))`` with all fields takes a third of the time of ``Vote(...)``: for what every
put makes."""


class TransactionId(NamedTuple):
    """``began`` is a hybrid timestamp of the near member, unique there; it orders transactions by
    age."""

    began: int
    near: int

    def __str__(self) -> str:
        return f"{self.near}:{self.began}"


def parse_transaction_id(text: str) -> TransactionId:
    """The id that ``str`` writes. Raises ValueError."""
    near, colon, began = text.partition(":")
    if not (colon and near.isdecimal() and began.isdecimal()):
        raise ValueError(f"{text!r} is not the id of a transaction")
    return TransactionId(int(began), int(near))


class Layout(Protocol):
    """The copies of each partition in a view."""

    @property
    def number(self) -> int: ...

    def primary(self, partition: int, /) -> int | None:
        """None: no member has a copy."""

    def unreachable(self, partition: int, /) -> bool:
        """Whether no member has a copy, and one may come back: parts that are in doubt there stay
        so."""

    def backups(self, partition: int, /) -> tuple[int, ...]:
        """The synchronous ones."""

    def alive(self, member: int, /) -> bool:
        """Whether it is in the view."""


# --- messages -------------------------------------------------------------------------------------


class Prepare(NamedTuple):
    """Near to primary. ``work`` holds, by partition, what the parts read and write; ``partitions``
    are those of the whole transaction. ``one_phase``: there is no other part, or all others are
    prepared, and the primary commits this one. ``companions``: others that are prepared only if the
    receiver keeps them as their backup (``PrepareLast``).
    """

    transaction: TransactionId
    partitions: tuple[int, ...]
    work: Mapping[int, object]
    one_phase: bool = False
    companions: tuple[int, ...] = ()

    def __str__(self) -> str:
        how = " in one phase" if self.one_phase else ""
        return f"prepare {self.transaction} parts {sorted(self.work)}{how}"


class Vote(NamedTuple):
    """Primary to near: the part is prepared at ``timestamp`` on all its copies (``committed``: and
    committed), or refused. ``companions``: other parts of which the sender is a backup, and has
    committed its copy."""

    transaction: TransactionId
    partition: int
    timestamp: int = 0
    committed: bool = False
    refusal: RemudaError | None = None
    companions: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"refuse {self.transaction} part {self.partition}: {self.refusal.message}"
        what = "committed" if self.committed else "prepared"
        return f"{what} {self.transaction} part {self.partition} at {self.timestamp}"


class Finish(NamedTuple):
    """The near member, or one that recovers, to the primary: commit at ``timestamp``, or roll back
    (None). ``copies``: backups that have committed it already; said by the near member to itself
    only."""

    transaction: TransactionId
    partition: int
    timestamp: int | None
    copies: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"finish {self.transaction} part {self.partition} {_end(self.timestamp)}"


class Finished(NamedTuple):
    """The answer, when all copies of the part have finished."""

    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"finished {self.transaction} part {self.partition}"


class BackupPrepare(NamedTuple):
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


class PrepareLast(NamedTuple):
    """Near to the primary of the last part, which is a backup of the others (``companions``, whose
    primary is the near member): keep those, then prepare the last one and commit it in one phase.
    """

    transaction: TransactionId
    partitions: tuple[int, ...]
    partition: int
    work: object
    companions: tuple[BackupPrepare, ...]

    def __str__(self) -> str:
        kept = [keep.partition for keep in self.companions]
        return f"keep {self.transaction} parts {kept}, then commit part {self.partition}"


class KeepAll(NamedTuple):
    """Near to the only backup of all parts, whose primary is the near member: keep them all, and
    commit them at ``timestamp``, in one step. ``work``: by partition."""

    transaction: TransactionId
    timestamp: int
    work: Mapping[int, object]

    def __str__(self) -> str:
        return f"keep {self.transaction} parts {sorted(self.work)} committed at {self.timestamp}"


class KeptAll(NamedTuple):
    transaction: TransactionId
    timestamp: int

    def __str__(self) -> str:
        return f"kept all of {self.transaction} at {self.timestamp}"


class BackupPrepared(NamedTuple):
    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"kept {self.transaction} part {self.partition}"


class BackupRefused(NamedTuple):
    """Backup to primary, instead of ``BackupPrepared``: it has no room for the part, and will never
    keep it."""

    transaction: TransactionId
    partition: int
    refusal: RemudaError

    def __str__(self) -> str:
        return f"not kept {self.transaction} part {self.partition}: {self.refusal.message}"


class BackupFinish(NamedTuple):
    transaction: TransactionId
    partition: int
    timestamp: int | None

    def __str__(self) -> str:
        return f"backup finish {self.transaction} part {self.partition} {_end(self.timestamp)}"


class BackupFinished(NamedTuple):
    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"backup finished {self.transaction} part {self.partition}"


class BackupEnded(NamedTuple):
    """Backup to primary, instead of ``BackupPrepared``: an earlier primary has ended the part."""

    transaction: TransactionId
    partition: int
    timestamp: int | None

    def __str__(self) -> str:
        return f"backup ended {self.transaction} part {self.partition} {_end(self.timestamp)}"


class BackupForget(NamedTuple):
    """Primary to backup, of a near member that is lost: nobody can ask for the part any more."""

    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"backup forget {self.transaction} part {self.partition}"


class Inquire(NamedTuple):
    """When the near member is lost, primary to primary: what of this part? A member that has not
    prepared it never will. Also backup to primary, of their own part."""

    transaction: TransactionId
    partition: int
    asking: int
    """The partition that wants to know."""

    def __str__(self) -> str:
        return f"inquire {self.transaction} part {self.partition} for part {self.asking}"


class Told(NamedTuple):
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
    | PrepareLast
    | KeepAll
    | KeptAll
    | Vote
    | Finish
    | Finished
    | BackupPrepare
    | BackupPrepared
    | BackupRefused
    | BackupFinish
    | BackupFinished
    | BackupEnded
    | BackupForget
    | Inquire
    | Told
)


ToNear = Vote | Finished | KeptAll | Told
"""Messages to the near member of a transaction. (``Told``, if it has asked itself.)"""


class GivenPart(NamedTuple):
    """A donor's knowledge of a part, for the member that gets its copy of the partition. ``state``
    is PREPARED, COMMITTED or ROLLED_BACK; ``timestamp`` that of its commit, or of its preparation.
    """

    transaction: TransactionId
    partition: int
    state: State
    partitions: tuple[int, ...]
    timestamp: int
    work: object
    one_phase: bool


# --- effects --------------------------------------------------------------------------------------


class Send(NamedTuple):
    to: int
    message: Message

    def __str__(self) -> str:
        return f"to {self.to}: {self.message}"


class PrepareHere(NamedTuple):
    """Validate the part, take a prepare timestamp and register the part as pending with it, in one
    step that nothing interrupts; then step with ``PreparedHere`` or ``RefusedHere``."""

    transaction: TransactionId
    partition: int
    work: object

    def __str__(self) -> str:
        return f"prepare here {self.transaction} part {self.partition}"


class KeepHere(NamedTuple):
    """On a backup: register the part as pending at ``timestamp``, without a question."""

    transaction: TransactionId
    partition: int
    timestamp: int
    work: object

    def __str__(self) -> str:
        return f"keep here {self.transaction} part {self.partition} at {self.timestamp}"


class ResolveHere(NamedTuple):
    """Make the part's writes visible at ``timestamp``, or drop them (None). The keys that it has
    read are not locked any more; those that it has written are locked until ``SettledHere`` if it
    commits.

    ``partitions``: those of the whole transaction; none: this copy of the partition is void,
    however the part ends. The shell that carries this out may not ask the machine: it may have
    forgotten the part in the same step."""

    transaction: TransactionId
    partition: int
    timestamp: int | None
    partitions: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"resolve here {self.transaction} part {self.partition} {_end(self.timestamp)}"


class SettledHere(NamedTuple):
    """The part has committed on all its copies (on a backup: on this one): writes of the same keys
    may follow, whatever the order in which messages reach the backups."""

    transaction: TransactionId
    partition: int

    def __str__(self) -> str:
        return f"settled here {self.transaction} part {self.partition}"


class HoldHere(NamedTuple):
    """Of a part that has committed: this member has become its primary, and some backup may not
    have its writes yet. No other writes of its keys until ``SettledHere``."""

    transaction: TransactionId
    partition: int
    work: object

    def __str__(self) -> str:
        return f"hold here {self.transaction} part {self.partition}"


class Report(NamedTuple):
    """On the near member, once: COMMITTED at ``timestamp``, ROLLED_BACK for ``cause``, or UNKNOWN
    (this member was dropped from the cluster, and the others decide)."""

    transaction: TransactionId
    state: State
    timestamp: int = 0
    cause: RemudaError | None = None

    def __str__(self) -> str:
        return f"report {self.transaction} {self.state.value}"


class DecideHere(NamedTuple):
    """On the near member, once: all other parts are prepared, so the catalog may commit the
    transaction at ``timestamp``, by one edit; then ``Near.on_catalog``."""

    transaction: TransactionId
    timestamp: int

    def __str__(self) -> str:
        return f"the catalog may commit {self.transaction} at {self.timestamp}"


Effect = Send | PrepareHere | KeepHere | ResolveHere | SettledHere | HoldHere | Report | DecideHere


def _end(timestamp: int | None) -> str:
    return "rolled back" if timestamp is None else f"committed at {timestamp}"
