"""Writing the log: group commit over segments. Pure; ``log.files`` carries the operations out.

::

    append(record)          gives the record its sequence and keeps it in memory
    step()                  everything kept, as one ``Flush`` of operations; none while one is out
    on_flushed()            it is carried out: its records are acknowledged

While a flush is out, records gather for the next one, so a slow disk makes larger groups and not
more syncs. Nobody may be told of a record, and no other member may rely on it, before
``acknowledged`` has reached its sequence.

The sync mode says how much an acknowledgement promises: ``fsync`` survives the loss of power,
``os`` the end of the process (the operating system has the bytes; segments are synced when they are
full, and records that ask for it at once), ``none`` also only that, and nothing is ever synced.

A flush that failed ends the log: after a failed fsync nobody knows what is on the disk, and trying
again may claim what is lost. The member must stop and recover from its log like one that crashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from remuda.errors import LimitExceeded, RemudaError, ResourceError
from remuda.limits import LOG_GROUP_SIZE, LOG_RECORD_SIZE_MAX, LOG_SEGMENT_SIZE
from remuda.storage.format.committed import encode_committed
from remuda.storage.format.record_codec import COMMITTED, encode_apart
from remuda.storage.format.records import Closed, Committed, Record
from remuda.storage.format.segment import (
    FRAME_OVERHEAD,
    HEADER_SIZE,
    Identity,
    SegmentHeader,
    encode_frame,
    encode_front,
    frame_checksum,
)


class SyncMode(Enum):
    FSYNC = "fsync"
    OS = "os"
    NONE = "none"


# --- operations -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateSegment:
    """A new file that begins with ``header``; one of that number does not exist."""

    segment: int
    header: bytes


@dataclass(frozen=True, slots=True)
class AppendTo:
    """``rest`` follows ``data``: both, or nothing."""

    segment: int
    data: bytes
    rest: bytes = b""

    @property
    def size(self) -> int:
        return len(self.data) + len(self.rest)


@dataclass(frozen=True, slots=True)
class SyncSegment:
    """The file's bytes are on the disk afterwards."""

    segment: int


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """The names of the files are."""


Operation: TypeAlias = CreateSegment | AppendTo | SyncSegment | SyncFolder


@dataclass(frozen=True, slots=True)
class Flush:
    """Operations to be carried out in this order; the first that fails ends it. Records up to
    ``last`` are then written, those up to ``synced`` on the disk."""

    operations: tuple[Operation, ...]
    last: int
    synced: int
    size: int = 0
    """Bytes of records."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a log goes on: the number of the last segment (0: there is none), the sequence of the
    last record, and the checksum of its frame."""

    segment: int = 0
    sequence: int = 0
    checksum: int = 0


class LogWriter:
    """Appends to the log of ``identity`` behind ``end``, in a new segment: bytes that a crashed
    process may still have on their way to the old one can do no harm.

    ``acknowledged``: the highest sequence for which the sync mode's promise holds; ``durable``: the
    highest that is known to be on the disk."""

    def __init__(
        self,
        identity: Identity,
        end: LogEnd,
        mode: SyncMode,
        *,
        segment_size: int = LOG_SEGMENT_SIZE,
    ) -> None:
        self.mode = mode
        self.acknowledged = self.durable = self.last = end.sequence
        self.segment = end.segment
        self.failure: RemudaError | None = None
        self._identity = identity
        self._segment_size = segment_size
        self._checksum = end.checksum
        self._begun = False
        self._salt = 0
        self._size = 0
        self._written = end.sequence
        self._waiting: list[tuple[int, bytes, bytes, bool]] = []
        """Kind, payload in two parts, and whether to sync, of the records behind ``_written``. (A
        class of its own costs as much as all else that is done with a short record here.)"""
        self._out: Flush | None = None
        self._roll = False
        self._told = end.sequence
        """The highest place that written frames have told as durable."""

    def append(self, record: Record, *, sync: bool = False) -> int:
        """The record's sequence. ``sync``: on the disk in mode ``os``, too, before it is
        acknowledged. Raises ``LimitExceeded`` for a record too large, and ``ResourceError`` when
        the log has failed."""
        if self.failure is not None:
            raise ResourceError(
                "the log has failed and takes no more records",
                detail=str(self.failure),
                hint="Restart the member; it recovers from what is on the disk.",
            ) from self.failure
        if type(record) is Committed:  # nearly all are
            kind, payload, rest = COMMITTED, encode_committed(record), b""
        else:
            kind, payload, rest = encode_apart(record)
        size = len(payload) + len(rest)
        if size > LOG_RECORD_SIZE_MAX:
            raise LimitExceeded(
                f"a record of the log has {size} bytes; at most {LOG_RECORD_SIZE_MAX} go"
            )
        self._waiting.append((kind, payload, rest, sync))
        self.last = sequence = self.last + 1
        return sequence

    def roll(self) -> None:
        """The next record begins another segment (after a cut, say: the old one is complete)."""
        self._roll = True

    def idle_mark(self, timestamp: int) -> int | None:
        """With nothing else to write, tell once that all before is durable; a flipped bit at the
        very end is then no torn tail. ``timestamp`` as in ``Closed``."""
        if self._waiting or self._out is not None or self._told >= self.durable:
            return None
        if self.failure is not None or self.durable < self.last:
            return None
        sequence = self.append(Closed(timestamp))
        self._told = sequence  # not again for the mark itself
        return sequence

    def step(self) -> Flush | None:
        """The work that is due now, if any."""
        if self._out is not None or not self._waiting or self.failure is not None:
            return None
        operations: list[Operation] = []
        group: list[bytes] = []
        size, synced, asked = 0, self.durable, False
        salt, sequence, room = self._salt, self._written, self._room()
        for kind, payload, rest, sync in self._waiting:
            needed = FRAME_OVERHEAD + len(payload) + len(rest)
            if size and size + needed > LOG_GROUP_SIZE:
                break
            if needed > room:
                if group:
                    self._end_group(operations, group)
                    group = []
                operations += self._next_segment(sequence + 1)
                salt, synced = self._salt, synced if self.mode is SyncMode.NONE else sequence
                room = max(self._segment_size - HEADER_SIZE, needed)  # if alone, of any size
            sequence += 1
            if rest:
                group.append(encode_front(salt, sequence, synced, kind, payload, rest))
                self._end_group(operations, group, rest)
                group = []
            else:
                group.append(encode_frame(salt, sequence, synced, kind, payload))
            size += needed
            room -= needed
            asked = asked or sync
        if group:
            self._end_group(operations, group)
        del self._waiting[: sequence - self._written]
        self._written = sequence
        self._told = max(self._told, synced)
        if self.mode is SyncMode.FSYNC or (asked and self.mode is SyncMode.OS):
            operations.append(SyncSegment(self.segment))
            synced = sequence
        self._out = Flush(tuple(operations), sequence, synced, size)
        return self._out

    def _end_group(
        self, operations: list[Operation], group: list[bytes], rest: bytes = b""
    ) -> None:
        appended = AppendTo(self.segment, b"".join(group), rest)
        operations.append(appended)
        self._size += appended.size
        self._checksum = frame_checksum(group[-1])

    def on_flushed(self) -> None:
        """The flush that is out has been carried out."""
        assert self._out is not None
        flush, self._out = self._out, None
        self.durable = max(self.durable, flush.synced)
        self.acknowledged = flush.last

    def on_failed(self, failure: RemudaError) -> None:
        """It has not, or not known to be: everything that is not acknowledged is in doubt."""
        self.failure = failure
        self._out = None
        self._waiting.clear()

    def _room(self) -> int:
        """Bytes that still go into the segment. (It is never only a header between two steps.)"""
        return self._segment_size - self._size if self._begun and not self._roll else 0

    def _next_segment(self, first: int) -> list[Operation]:
        """The old segment is on the disk before the new one is, and that before any of its records:
        so only the last segment can be torn."""
        operations: list[Operation] = []
        synced = self.mode is not SyncMode.NONE
        if synced and self._begun:
            operations.append(SyncSegment(self.segment))
        self.segment += 1
        header = SegmentHeader(self._identity, self.segment, first, self._checksum)
        self._salt, self._size = header.checksum, HEADER_SIZE
        self._begun, self._roll = True, False
        operations.append(CreateSegment(self.segment, header.encode()))
        if synced:
            operations += (SyncSegment(self.segment), SyncFolder())
        return operations
