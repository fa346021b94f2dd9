"""What each segment of a log holds, by reading all of it: what members remember must agree.

``needs`` is the lowest sequence that matters for what follows a place in the log: a commit above a
timestamp may rest on rows that were prepared or staged long before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from remuda.storage.format import records as log
from remuda.storage.log.reader import LogReader

RECENT_UNITS: Final = 100_000
"""Commits remembered with their first record. Of older ones ``needs`` is the log's beginning."""


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


def index_of(reader: LogReader) -> tuple[LogIndex, IndexBuilder]:
    """Of a whole log, and a builder that goes on behind it."""
    builder, found = IndexBuilder(0), list[SegmentSummary]()
    current, first, last = 0, 0, 0
    for entry in reader.entries(0, reader.tail()):
        if entry.segment != current:
            if current:
                found.append(builder.seal(current, first, last))
            current, first = entry.segment, entry.sequence
        builder.floor = builder.floor or entry.sequence
        builder.observe(entry.sequence, entry.record)
        last = entry.sequence
    if current:
        found.append(builder.seal(current, first, last))
    return LogIndex(found), builder
