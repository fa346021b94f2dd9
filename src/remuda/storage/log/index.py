"""What each segment of a log holds, so that cuts, checkpoints and moments are found without
reading it.

A summary lies beside its segment and is only ever a shortcut: one that is missing or damaged is
made again from the segment.

``needs`` is the lowest sequence that matters for what follows a place in the log: a commit above a
timestamp may rest on rows that were prepared or staged long before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import google_crc32c

from remuda.errors import DataCorrupted
from remuda.formats import LOG_SUMMARY
from remuda.storage.format import records as log
from remuda.storage.format.fields import INTEGER, FieldReader, composed, several

RECENT_UNITS: Final = 100_000
"""Commits remembered with their first record. Of older ones ``needs`` is the log's beginning."""

_MAGIC: Final = b"REMUDIDX"
_HEAD: Final = len(_MAGIC) + 1
"""The byte behind the magic is the format."""


@dataclass(frozen=True, slots=True)
class CutEntry:
    """A finished cut: the sequences of its records, and what the next increment begins with."""

    version: int
    timestamp: int
    start: int
    finish: int
    needs: int


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """``sequence`` is that of the record itself."""

    sequence: int
    timestamp: int
    replay_from: int


@dataclass(frozen=True, slots=True)
class MoveEntry:
    """A partition that came to this member at ``timestamp``, by the record ``sequence``."""

    sequence: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """``lowest`` and ``highest`` commit timestamps (0: no commit); ``closed``: no commit at or
    below it follows the segment; ``moves``: partitions that came; ``gaps``: sequences of those that
    came without their rows.
    Cuts and checkpoints stand with the segment of their last record."""

    number: int
    first: int
    last: int
    lowest: int
    highest: int
    closed: int
    cuts: tuple[CutEntry, ...]
    checkpoints: tuple[CheckpointEntry, ...]
    moves: tuple[MoveEntry, ...]
    gaps: tuple[int, ...]

    def __str__(self) -> str:
        cuts = ", ".join(str(cut.version) for cut in self.cuts) or "none"
        return f"segment {self.number}: records {self.first} to {self.last}, cuts {cuts}"


_SUMMARY: Final = composed(
    SegmentSummary,
    number=INTEGER,
    first=INTEGER,
    last=INTEGER,
    lowest=INTEGER,
    highest=INTEGER,
    closed=INTEGER,
    cuts=several(
        composed(
            CutEntry,
            version=INTEGER,
            timestamp=INTEGER,
            start=INTEGER,
            finish=INTEGER,
            needs=INTEGER,
        )
    ),
    checkpoints=several(
        composed(CheckpointEntry, sequence=INTEGER, timestamp=INTEGER, replay_from=INTEGER)
    ),
    moves=several(composed(MoveEntry, sequence=INTEGER, timestamp=INTEGER)),
    gaps=several(INTEGER),
)


def encode_summary(summary: SegmentSummary) -> bytes:
    out: list[bytes] = [_MAGIC, bytes((LOG_SUMMARY.number,))]
    _SUMMARY.write(out, summary)
    data = b"".join(out)
    checksum: int = google_crc32c.value(data)
    return data + checksum.to_bytes(4, "little")


def decode_summary(data: bytes) -> SegmentSummary:
    """Raises ``DataCorrupted`` or ``UnknownFormat``: make it again from the segment."""
    body, checksum = data[:-4], data[-4:]
    if not body.startswith(_MAGIC) or google_crc32c.value(body).to_bytes(4, "little") != checksum:
        raise DataCorrupted("the summary of a segment is damaged")
    LOG_SUMMARY.check(body[len(_MAGIC)] if len(body) >= _HEAD else 0)
    source = FieldReader(body, _HEAD)
    summary: SegmentSummary = _SUMMARY.read(source)
    source.finish()
    return summary


@dataclass(slots=True)
class _Cut:
    timestamp: int
    start: int
    needs: int


@dataclass(slots=True)
class IndexBuilder:
    """Observes the records of a log in order, from sequence ``floor`` on."""

    floor: int
    _open: dict[log.Unit, int] = field(default_factory=dict)
    _recent: OrderedDict[log.Unit, tuple[int, int]] = field(default_factory=OrderedDict)
    _dropped: int = 0
    """The highest commit timestamp among units that are no longer remembered."""
    _cuts: dict[int, _Cut] = field(default_factory=dict)
    _timestamps: list[int] = field(default_factory=list)
    _closed: int = 0
    _ended: list[CutEntry] = field(default_factory=list)
    _checkpoints: list[CheckpointEntry] = field(default_factory=list)
    _moves: list[MoveEntry] = field(default_factory=list)
    _gaps: list[int] = field(default_factory=list)

    def observe(self, sequence: int, record: log.Record) -> None:
        match record:
            case (
                log.Prepared(part=unit)
                | log.StagedRows(job=unit)
                | log.StagedKeys(job=unit)
                | log.JobPrepared(job=unit)
            ):
                self._open.setdefault(unit, sequence)
            case (
                log.Committed(part=unit, timestamp=timestamp)
                | log.JobCommitted(job=unit, timestamp=timestamp)
            ):
                self._commit(unit, sequence, timestamp)
            case log.RolledBack(part=unit) | log.JobRolledBack(job=unit):
                self._open.pop(unit, None)
            case log.CutStart(version, timestamp):
                needs = min(self._open.values(), default=sequence)
                self._cuts = {version: _Cut(timestamp, sequence, min(needs, sequence))}
            case log.CutFinish(version=version, after=after):
                self._finish_cut(version, sequence, after)
            case log.Checkpoint(timestamp=timestamp, replay_from=replay_from):
                self._checkpoints.append(CheckpointEntry(sequence, timestamp, replay_from))
                self._closed = max(self._closed, timestamp)
            case log.PartitionTaken(timestamp=timestamp):
                self._moves.append(MoveEntry(sequence, timestamp))
            case log.PartitionReady(logged=False):
                self._gaps.append(sequence)
            case log.Closed(timestamp) | log.Stopped(timestamp):
                self._closed = max(self._closed, timestamp)
            case _:
                pass

    def replay_from(self, timestamp: int, sequence: int) -> int:
        """For a checkpoint at ``timestamp`` whose record will be ``sequence``: the lowest sequence
        that a commit above it rests on."""
        if self._dropped > timestamp:
            return self.floor
        lowest = min(self._open.values(), default=sequence)
        above = [first for first, at in self._recent.values() if at > timestamp]
        cuts = [cut.start for cut in self._cuts.values()]
        return min([lowest, sequence, *above, *cuts])

    def seal(self, number: int, first: int, last: int) -> SegmentSummary:
        """The summary of what was observed since the last one."""
        summary = SegmentSummary(
            number,
            first,
            last,
            min(self._timestamps, default=0),
            max(self._timestamps, default=0),
            self._closed,
            tuple(self._ended),
            tuple(self._checkpoints),
            tuple(self._moves),
            tuple(self._gaps),
        )
        self._timestamps, self._ended, self._checkpoints = [], [], []
        self._moves, self._gaps = [], []
        return summary

    def _commit(self, unit: log.Unit, sequence: int, timestamp: int) -> None:
        self._timestamps.append(timestamp)
        self._recent[unit] = (self._open.pop(unit, sequence), timestamp)
        if len(self._recent) > RECENT_UNITS:
            _, (_, at) = self._recent.popitem(last=False)
            self._dropped = max(self._dropped, at)

    def _finish_cut(self, version: int, sequence: int, after: Iterable[log.Unit]) -> None:
        cut = self._cuts.pop(version, None)
        if cut is None:
            return  # its start lies before what was observed: it cannot be reached from here
        firsts = [self._recent.get(unit, (self.floor, 0))[0] for unit in after]
        needs = min([cut.needs, *firsts])
        self._ended.append(CutEntry(version, cut.timestamp, cut.start, sequence, needs))
        self._closed = max(self._closed, cut.timestamp)


class LogIndex:
    """The summaries of consecutive segments, in order."""

    def __init__(self, summaries: Sequence[SegmentSummary]) -> None:
        self.summaries = tuple(summaries)
        self._cuts = {cut.version: cut for each in summaries for cut in each.cuts}

    def cut(self, version: int) -> CutEntry | None:
        return self._cuts.get(version)

    def checkpoint(self) -> CheckpointEntry | None:
        """The last one."""
        found = [each for summary in self.summaries for each in summary.checkpoints]
        return found[-1] if found else None

    def segments(self, start: int, stop: int) -> list[SegmentSummary]:
        """Those that hold the records from ``start`` to ``stop``, both included."""
        return [each for each in self.summaries if each.last >= start and each.first <= stop]

    @property
    def closed(self) -> int:
        """No commit at or below it can be missing."""
        return max((each.closed for each in self.summaries), default=0)
