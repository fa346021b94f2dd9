"""The work of a staged commit, in memory and in messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View
from remuda.errors import RemudaError
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging.pieces import NO_ROWS, Counts
from remuda.transaction import staged_commit as tx


@dataclass(frozen=True)
class Work:
    """The work of a commit: rows of the named tasks, and keys to remove."""

    job: str
    schema: MapSchema
    tasks: tuple[str, ...]
    overwrite: bool = False
    insert_only: bool = False
    removed_keys: tuple[tuple[PhysicalValue, ...], ...] = ()
    """Of replicated maps only."""
    unchanged_since: int | None = None
    """The read timestamp of the statement: later changes of the same keys refuse the commit."""
    ttl: int | None = None
    """How long the rows live from the commit on, in microseconds; 0: for ever; None: as the map
    says."""
    unique: bool = False
    """It may write values of unique indexes: all primaries of the map take part, and compare."""
    references: bool = False
    """Its rows may name rows of other maps, for which the primaries look before it is decided."""

    @property
    def checked(self) -> bool:
        """Whether primaries look at the rows of others once all have voted."""
        return self.unique or self.references


DECIDED_SIZE = 1500
"""Bytes of a ``Taking`` that has ended, where it is remembered."""


@dataclass(slots=True)
class Taking:
    """A commit that this member takes part in."""

    participant: tx.Participant
    work: Work | None = None
    expected: Counts = field(default_factory=lambda: NO_ROWS)
    """Rows by partition that it must have as a backup, says who coordinates."""
    lasting: bool = False
    """A job of a client that sends its rows once: nobody would write them again by himself."""
    written: Counts = field(default_factory=lambda: NO_ROWS)
    """Rows by partition that it has as their primary."""
    writes_values: bool = False
    """Values of unique indexes are written, here or elsewhere."""

    def end(self) -> Work | None:
        """It is decided: only the participant is needed from now on. Returns the work. A
        coordinator that commits has heard this vote, and does not look at a repeated one."""
        work, self.work = self.work, None
        self.expected = self.written = NO_ROWS
        return work


OUTCOMES = {
    tx.Outcome.UNKNOWN: control_pb2.CommitStatusReply.UNKNOWN,
    tx.Outcome.PREPARED: control_pb2.CommitStatusReply.PREPARED,
    tx.Outcome.KEPT: control_pb2.CommitStatusReply.KEPT,
    tx.Outcome.COMMITTED: control_pb2.CommitStatusReply.COMMITTED,
    tx.Outcome.ABORTED: control_pb2.CommitStatusReply.ABORTED,
}
TOLD = {state: outcome for outcome, state in OUTCOMES.items()}


def parts_written(
    view: View, work: Work, primaries: Collection[int], partitions: Collection[int] | None
) -> tx.Parts:
    """The copies of what a job writes: of these partitions, or (None) of all that ``primaries``
    have. Empty when nothing of it has a backup, and for replicated maps, which every member
    prepares."""
    if work.schema.replicated:
        return ()
    if partitions is None:
        rows = {row for row in view.replicas if row and row[0] in primaries}
    else:
        rows = {view.replicas[partition] for partition in partitions}
    return tuple(sorted(rows)) if any(len(row) > 1 for row in rows) else ()


def prepare_message(
    context: common_pb2.Context, work: Work, coordinator: tx.Coordinator
) -> control_pb2.CommitPrepare:
    message = control_pb2.CommitPrepare(
        context=context,
        job=work.job,
        overwrite=work.overwrite,
        map_id=work.schema.map_id,
        schema_version=work.schema.version,
        insert_only=work.insert_only,
        participants=coordinator.participants,
        unique=work.unique,
    )
    if work.unchanged_since is not None:
        message.unchanged_since = work.unchanged_since
    ttl = work.schema.options.ttl if work.ttl is None else work.ttl
    if ttl:
        message.ttl = ttl
    for task in work.tasks:
        message.tasks.add(task=task)
    for key in work.removed_keys:
        codec.fill_row(message.removed_keys.add(), key)
    for copies in coordinator.parts:
        message.parts.add(copies=copies)
    return message


def read_work(message: control_pb2.CommitPrepare, schema: MapSchema) -> Work:
    """``schema`` is that of the map now; the job keeps the version that its rows were made for: if
    the map has another one, the job is refused when it is validated."""
    if schema.version != message.schema_version:
        schema = replace(schema, version=message.schema_version)
    return Work(
        job=message.job,
        schema=schema,
        tasks=tuple(task.task for task in message.tasks),
        overwrite=message.overwrite,
        insert_only=message.insert_only,
        removed_keys=tuple(codec.decode_row(key) for key in message.removed_keys),
        unchanged_since=message.unchanged_since if message.HasField("unchanged_since") else None,
        ttl=message.ttl,
        unique=message.unique,
    )


def read_parts(message: control_pb2.CommitPrepare) -> tx.Parts:
    return tuple(tuple(part.copies) for part in message.parts)


def rows_message(counts: Counts) -> control_pb2.PartitionRows:
    there = np.flatnonzero(counts)
    return control_pb2.PartitionRows(partitions=there.tolist(), rows=counts[there].tolist())


def read_rows(message: control_pb2.PartitionRows) -> Counts:
    counts = NO_ROWS.copy()
    counts[message.partitions] = message.rows
    return counts


def stores_of(work: Work | None, stores: Mapping[int, MapStore]) -> list[MapStore]:
    """The one that a job writes into, if it is there."""
    store = None if work is None else stores.get(work.schema.map_id)
    return [] if store is None else [store]


def end_in(copies: Iterable[MapStore], taking: Taking, timestamp: int | None) -> None:
    """The job is decided."""
    for store in copies:
        store.resolve(taking.participant.job, timestamp, values=taking.writes_values)


def refused(error: RemudaError) -> tx.RefusedHere:
    """The refusal is remembered: as a copy without a traceback, whose frames hold the rows."""
    return tx.RefusedHere(copy(error))
