"""Reading a log: every record in order, or the place where the log is damaged.

A crash may leave three things behind, and only at the very end: a segment that was never begun, a
frame that was written in part, and whole frames behind such a hole (a disk may write what has not
been synced in any order). Nobody was promised any of these, and they are cut off. Everything else
is damage and is refused with its place: a bad frame in an earlier segment, one in the last segment
behind which a frame says that it was on the disk, or of which nothing is missing (``torn_tail``), a
missing or foreign segment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from remuda.errors import DataCorrupted, UnknownFormat
from remuda.storage.format.record_codec import decode_record, kinds_of, partition_of
from remuda.storage.format.records import Record
from remuda.storage.format.segment import (
    HEADER_SIZE,
    Frame,
    Identity,
    SegmentHeader,
    decode_header,
    next_frame,
    read_frame,
    read_front,
)
from remuda.storage.log.torn_tail import changed, end_of_bytes
from remuda.storage.log.writer import LogEnd

FIRST_RECORD = 1
"""Its sequence: a reader of a log from here reads all that was ever in it."""
_RESTORE = "Restore the member from its copies or from a snapshot; the log is left as it is."


class SegmentSource(Protocol):
    """Where segments are, by number."""

    def numbers(self) -> list[int]:
        """Ascending."""

    def read(self, number: int) -> bytes: ...

    @property
    def sector(self) -> int:
        """How many bytes the disk below writes as a whole, at least."""

    def head(self, number: int) -> bytes:
        """The first ``HEADER_SIZE`` bytes, or as many as there are."""

    def name(self, number: int) -> str:
        """For people."""


class Entry(NamedTuple):
    """A record and where it stands."""

    sequence: int
    segment: int
    offset: int
    record: Record

    def __str__(self) -> str:
        return f"{self.sequence} [{self.segment}+{self.offset}] {self.record}"


@dataclass(frozen=True, slots=True)
class Tail:
    """How a log ends. Segment ``segment`` is to be cut to ``keep`` bytes, ``unborn`` ones are to be
    removed; ``lost`` bytes go by that, not counting zeros at the end, where nothing was written."""

    end: LogEnd
    segment: int
    keep: int
    lost: int
    unborn: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.lost:
            return f"the log ends after record {self.end.sequence}, whole"
        return (
            f"the log ends after record {self.end.sequence}: {self.lost} bytes behind it,"
            f" at {self.keep} of segment {self.segment}, were never acknowledged and are cut off"
        )


class LogReader:
    """Reads the log of ``identity``."""

    def __init__(self, source: SegmentSource, identity: Identity) -> None:
        self.source = source
        self.identity = identity

    def tail(self) -> Tail:
        """Raises ``DataCorrupted``. Looks at the last segment only (two, if it was not begun)."""
        numbers = self.source.numbers()
        unborn: tuple[int, ...] = ()
        lost = 0
        while numbers:
            number = numbers[-1]
            data = self.source.read(number)
            if _is_unborn(data) and not unborn:
                unborn, lost = (number,), len(data)
                numbers.pop()
                continue
            header = self._header(number, data)
            end, keep = self._scan_last(header, data)
            if unborn and keep < len(data):
                raise self._damage(number, keep, end.sequence + 1, "a segment follows")
            return Tail(end, number, keep, lost + max(end_of_bytes(data) - keep, 0), unborn)
        return Tail(LogEnd(), 0, 0, lost, unborn)

    def entries(
        self,
        start: int = 0,
        tail: Tail | None = None,
        partitions: Collection[int] | None = None,
    ) -> Iterator[Entry]:
        """The records from sequence ``start`` on, up to ``tail``; without those of parts in other
        ``partitions``, if there are any. Raises ``DataCorrupted`` where the log is damaged, and
        when it begins behind ``start``."""
        tail = tail or self.tail()
        numbers = [number for number in self.source.numbers() if number not in tail.unborn]
        if not numbers and start > FIRST_RECORD:
            raise DataCorrupted(
                f"the log of {self.identity} has no segments, and record {start} is needed",
                hint=_RESTORE,
            )
        before: LogEnd | None = None
        for number in self._from(numbers, start):
            data = self.source.read(number)
            header = self._header(number, data)
            self._check_chain(header, before)
            if before is None and 0 < start < header.first:
                raise DataCorrupted(
                    f"the log of {self.identity} begins with record {header.first}, and record"
                    f" {start} is needed",
                    detail=f"its first segment is {self.source.name(number)}",
                    hint="Put the earlier segments back, or restore from a snapshot.",
                )
            stop = tail.keep if number == tail.segment else len(data)
            sequence, checksum = header.first - 1, header.previous
            for frame in self._frames(header, data, stop):
                sequence, checksum = frame.sequence, frame.checksum
                if sequence >= start and (partitions is None or _is_in(frame, partitions)):
                    yield self._entry(number, frame)
            before = LogEnd(number, sequence, checksum)

    def entries_of(
        self, start: int, kinds: Collection[type[Record]], tail: Tail | None = None
    ) -> Iterator[Entry]:
        """Those of some kinds, in order: all other frames are passed over unread. A segment that is
        damaged is read up to the damage, and no error is raised: a caller that relies on the log
        reads its ``entries`` as well. Raises ``DataCorrupted`` for a damaged header."""
        tail = tail or self.tail()
        numbers = [number for number in self.source.numbers() if number not in tail.unborn]
        wanted = kinds_of(kinds)
        for number in self._from(numbers, start):
            data = self.source.read(number)
            salt = self._header(number, data).checksum
            stop = tail.keep if number == tail.segment else len(data)
            offset = HEADER_SIZE
            while offset < stop and (front := read_front(data, offset)) is not None:
                if front.kind in wanted and front.sequence >= start:
                    frame = read_frame(data, offset, salt)
                    if frame is None:
                        break
                    yield self._entry(number, frame)
                offset += front.whole

    # --- one segment ---

    def _header(self, number: int, data: bytes) -> SegmentHeader:
        try:
            header = decode_header(data)
        except DataCorrupted as problem:
            raise self._damage(number, 0, None, problem.message) from problem
        except UnknownFormat as problem:
            raise self._unknown(number, problem) from problem
        if header.identity != self.identity:
            raise self._damage(number, 0, None, f"it is the log of {header.identity}")
        if header.number != number:
            raise self._damage(number, 0, None, f"it is segment {header.number}")
        return header

    def _frames(self, header: SegmentHeader, data: bytes, stop: int) -> Iterator[Frame]:
        """All frames up to ``stop``, without a gap."""
        offset, sequence, salt = HEADER_SIZE, header.first, header.checksum
        while offset < stop:
            frame = read_frame(data, offset, salt)
            if frame is None or frame.sequence != sequence:
                why = "its bytes are not those that were written"
                raise self._damage(header.number, offset, sequence, why)
            yield frame
            offset, sequence = frame.end, sequence + 1

    def _scan_last(self, header: SegmentHeader, data: bytes) -> tuple[LogEnd, int]:
        """Where the last segment ends, and how many of its bytes are good."""
        offset, sequence, salt = HEADER_SIZE, header.first, header.checksum
        checksum = header.previous
        while (frame := read_frame(data, offset, salt)) is not None:
            if frame.sequence != sequence:
                raise self._damage(
                    header.number, offset, sequence, f"record {frame.sequence} is there"
                )
            offset, sequence, checksum = frame.end, sequence + 1, frame.checksum
        behind = offset
        following: int | None = None
        while (later := next_frame(data, behind, salt)) is not None:
            if later.sequence >= sequence and later.durable >= sequence:
                why = f"record {later.sequence} behind it says that it was on the disk"
                raise self._damage(header.number, offset, sequence, why)
            if following is None and later.sequence > sequence:
                following = later.offset
            behind = later.end
        if offset < len(data):
            sector = self.source.sector
            why = changed(data, offset, following, sequence, salt=salt, sector=sector)
            if why:
                raise self._changed(header.number, offset, sequence, why)
        return LogEnd(header.number, sequence - 1, checksum), offset

    def _changed(self, number: int, offset: int, sequence: int, why: str) -> DataCorrupted:
        path = self.source.name(number)
        return DataCorrupted(
            f"the log is damaged at its end: segment {number}, offset {offset}, record {sequence}",
            detail=f"{path}: {why}; a crash does not leave that",
            hint=f"{_RESTORE} To give up record {sequence} and all that follows, cut {path} to"
            f" {offset} bytes.",
        )

    def _entry(self, number: int, frame: Frame) -> Entry:
        try:
            record = decode_record(frame.kind, frame.payload)
        except DataCorrupted as problem:
            raise self._damage(number, frame.offset, frame.sequence, problem.message) from problem
        except UnknownFormat as problem:
            raise self._unknown(number, problem) from problem
        return Entry(frame.sequence, number, frame.offset, record)

    def _unknown(self, number: int, problem: UnknownFormat) -> UnknownFormat:
        return UnknownFormat(f"{self.source.name(number)}: {problem.message}", hint=problem.hint)

    # --- between segments ---

    def _from(self, numbers: list[int], start: int) -> list[int]:
        """The segments that may hold records from ``start`` on."""
        first = len(numbers) - 1
        while first > 0:
            header = self._header(numbers[first], self.source.head(numbers[first]))
            if header.first <= start:
                break
            first -= 1
        return numbers[max(first, 0) :]

    def _check_chain(self, header: SegmentHeader, before: LogEnd | None) -> None:
        if before is None:
            return
        if header.number != before.segment + 1:
            missing = self.source.name(before.segment + 1)
            raise DataCorrupted(f"a segment of the log is missing: {missing}", hint=_RESTORE)
        if header.first != before.sequence + 1:
            why = f"it begins with record {header.first}, the one before ends with"
            raise self._damage(header.number, 0, header.first, f"{why} {before.sequence}")
        if header.previous != before.checksum:
            raise self._damage(header.number, 0, header.first, "it follows another segment")

    def _damage(self, number: int, offset: int, sequence: int | None, why: str) -> DataCorrupted:
        what = "" if sequence is None else f", record {sequence}"
        return DataCorrupted(
            f"the log is damaged: segment {number}, offset {offset}{what}",
            detail=f"{self.source.name(number)}: {why}",
            hint=_RESTORE,
        )


def _is_in(frame: Frame, partitions: Collection[int]) -> bool:
    """Whether a record is of a part in one of the partitions, or of no part."""
    partition = partition_of(frame.kind, frame.payload)
    return partition is None or partition in partitions


def _is_unborn(data: bytes) -> bool:
    """Whether a crash may have left this before the header was on the disk: a header in part, and
    nothing behind it."""
    try:
        decode_header(data)
    except DataCorrupted:
        return not data[HEADER_SIZE:].strip(b"\0")
    except UnknownFormat:  # whole, and not ours to remove
        return False
    return False
