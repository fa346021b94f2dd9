"""The records of a log: one class each, with a compact text.

A *unit* commits as a whole in one place: a part of a transaction (its work in one partition), or a
job of bulk rows on one member. Rows and keys are packed by whoever writes the log, as the column
types of ``(map_id, schema_version)`` say; bulk rows are Arrow IPC streams. The log looks into
neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

Blob: TypeAlias = bytes | pa.Buffer
"""Rows that were just encoded, or have come in a frame, are in a buffer and are written as they
are; rows that were read are bytes."""


@dataclass(frozen=True, slots=True, order=True)
class PartId:
    """``began`` and ``near`` identify the transaction, as in ``transaction.states``."""

    began: int
    near: int
    partition: int

    def __str__(self) -> str:
        return f"{self.near}:{self.began}/{self.partition}"

    @property
    def transaction(self) -> tuple[int, int]:
        return self.began, self.near


Unit: TypeAlias = PartId | str
"""A part, or the id of a job."""


@dataclass(frozen=True, slots=True)
class Change:
    """One key's new row; None: it was removed."""

    map_id: int
    schema_version: int
    key: bytes
    row: bytes | None

    def __str__(self) -> str:
        sign = "-" if self.row is None else "="
        return f"map {self.map_id} {sign}{self.key.hex()}"


# --- transactions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """The part may commit at ``timestamp`` or later; ``partitions`` are those of the whole
    transaction. ``work``: the keys that it has read and locked, as the commit protocol wants them
    back.
    """

    part: PartId
    timestamp: int
    partitions: tuple[int, ...]
    work: bytes
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return (
            f"prepared {self.part} at {self.timestamp}, of {len(self.partitions)} parts,"
            f" {len(self.changes)} changes"
        )


@dataclass(frozen=True, slots=True)
class Committed:
    """``changes`` None: those that were prepared."""

    part: PartId
    timestamp: int
    partitions: tuple[int, ...]
    changes: tuple[Change, ...] | None = None

    def __str__(self) -> str:
        what = "as prepared" if self.changes is None else f"{len(self.changes)} changes"
        return f"committed {self.part} at {self.timestamp}, {what}"


@dataclass(frozen=True, slots=True)
class RolledBack:
    part: PartId

    def __str__(self) -> str:
        return f"rolled back {self.part}"


# --- jobs of bulk rows ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows that a task of a job has sent, as an Arrow IPC stream; nobody sees them yet."""

    job: str
    task: str
    number: int
    map_id: int
    schema_version: int
    rows: Blob

    def __str__(self) -> str:
        return f"staged {self.job} task {self.task} #{self.number}, {len(self.rows)} bytes"


@dataclass(frozen=True, slots=True)
class StagedKeys:
    """Keys of rows that the job removes, as an Arrow IPC stream of the key columns."""

    job: str
    task: str
    number: int
    map_id: int
    schema_version: int
    keys: Blob

    def __str__(self) -> str:
        return f"staged {self.job} task {self.task} #{self.number}, {len(self.keys)} bytes of keys"


@dataclass(frozen=True, slots=True)
class JobPrepared:
    """The rows of the accepted ``tasks`` may commit at ``timestamp`` or later; ``overwrite``: in
    place of all rows of the map. ``participants`` are members."""

    job: str
    timestamp: int
    map_id: int
    tasks: tuple[str, ...]
    overwrite: bool
    participants: tuple[int, ...]
    ttl: int = 0
    """The rows live for so many microseconds from the commit on; 0: for ever."""

    def __str__(self) -> str:
        how = " overwriting" if self.overwrite else ""
        return f"prepared job {self.job} at {self.timestamp}, {len(self.tasks)} tasks{how}"


@dataclass(frozen=True, slots=True)
class JobCommitted:
    """``entry``: the job-status entry that appears with the rows (design rule 22)."""

    job: str
    timestamp: int
    entry: bytes = b""

    def __str__(self) -> str:
        return f"committed job {self.job} at {self.timestamp}"


@dataclass(frozen=True, slots=True)
class JobRolledBack:
    job: str

    def __str__(self) -> str:
        return f"rolled back job {self.job}"


# --- the catalog ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CatalogChanged:
    """``edits`` lead to catalog ``version``; ``text`` is the statement, for people."""

    version: int
    timestamp: int
    edits: bytes
    text: str

    def __str__(self) -> str:
        return f"catalog {self.version} at {self.timestamp}: {self.text}"


# --- cuts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CutStart:
    version: int
    timestamp: int

    def __str__(self) -> str:
        return f"cut {self.version} at {self.timestamp} starts"


@dataclass(frozen=True, slots=True)
class CutFinish:
    """``before``: committed since Start, of the cut; ``after``: committed earlier, not of it."""

    version: int
    before: frozenset[Unit]
    after: frozenset[Unit]

    def __str__(self) -> str:
        return f"cut {self.version} finishes, before {len(self.before)}, after {len(self.after)}"


# --- partitions that come and go ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionTaken:
    """This member begins to receive a copy of a partition. The rows that it had of it are void."""

    view: int
    partition: int
    timestamp: int

    def __str__(self) -> str:
        return f"partition {self.partition} taken in view {self.view} at {self.timestamp}"


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows that came with a partition: an Arrow IPC stream with begin and end timestamps."""

    view: int
    partition: int
    map_id: int
    schema_version: int
    rows: Blob

    def __str__(self) -> str:
        return f"partition {self.partition} map {self.map_id}, {len(self.rows)} bytes copied"


@dataclass(frozen=True, slots=True)
class PartitionReady:
    """The copy is whole. ``logged`` False: its rows are not in this log, so no increment can reach
    across this place, and a new base is due."""

    view: int
    partition: int
    logged: bool

    def __str__(self) -> str:
        how = "" if self.logged else ", its rows not logged"
        return f"partition {self.partition} ready in view {self.view}{how}"


@dataclass(frozen=True, slots=True)
class PartitionLeft:
    """This member keeps no copy any more."""

    view: int
    partition: int

    def __str__(self) -> str:
        return f"partition {self.partition} left in view {self.view}"


# --- the log itself -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``image`` (a manifest with this SHA-256) holds every commit at or below ``timestamp``.
    Replay begins at the record ``replay_from`` and applies commits above ``timestamp``."""

    number: int
    timestamp: int
    replay_from: int
    image: str
    digest: bytes

    def __str__(self) -> str:
        return f"checkpoint {self.number} at {self.timestamp}, replay from {self.replay_from}"


@dataclass(frozen=True, slots=True)
class Closed:
    """No record below this one is missing, and no commit at or below ``timestamp`` follows."""

    timestamp: int

    def __str__(self) -> str:
        return f"closed {self.timestamp}"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The member has ended by itself; nothing follows in this run."""

    timestamp: int

    def __str__(self) -> str:
        return f"stopped at {self.timestamp}"


@dataclass(frozen=True, slots=True)
class HeardLog:
    """The log ``identity`` of ``member`` was on its disk up to record ``sequence``."""

    member: int
    identity: bytes
    sequence: int

    def __str__(self) -> str:
        return f"{self.member}:{self.sequence}"


@dataclass(frozen=True, slots=True)
class LogsHeard:
    """All that the member has heard of the logs of others: an earlier one is void."""

    logs: tuple[HeardLog, ...]

    def __str__(self) -> str:
        return "logs of others reach " + ", ".join(str(each) for each in self.logs)


Record: TypeAlias = (
    Prepared
    | Committed
    | RolledBack
    | StagedRows
    | StagedKeys
    | JobPrepared
    | JobCommitted
    | JobRolledBack
    | CatalogChanged
    | CutStart
    | CutFinish
    | PartitionTaken
    | CopiedRows
    | PartitionReady
    | PartitionLeft
    | Checkpoint
    | Closed
    | Stopped
    | LogsHeard
)
