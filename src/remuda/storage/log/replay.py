"""Replay: a log is applied to an image (design rule 26). Pure: entries in, steps to apply out.

An image (a checkpoint, or the base of a snapshot) holds every commit at or below its timestamp, so
only commits *above* that are applied to it, up to the goal:

``ToEnd``     all of them: a member that starts again
``ToMoment``  those at or below a timestamp, where the log covers it
``ToCut``     those that the cut's records say: logged before Start but for AFTER, or between Start
              and Finish in BEFORE. Their timestamps must say the same, or the log is not trusted.

A cut is taken from the log of each partition's primary in the cut's view (``answers_for``): a
backup may hear of a commit below the cut after its own Finish. Primaries that were promoted since
the image have logged as backups what came before.

Steps come in the order of the log. Steps of different partitions may be applied in parallel; those
of a job concern every partition, those of the catalog all that follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from remuda.datatypes.timestamp import FOREVER
from remuda.errors import DataCorrupted, InputError
from remuda.storage.format import records as log
from remuda.storage.log.reader import Entry

# --- goals ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToEnd:
    def __str__(self) -> str:
        return "the end of the log"


@dataclass(frozen=True, slots=True)
class ToMoment:
    """``finish``: the sequence of the record that says that nothing at or below it is missing; 0:
    the first that says so is believed."""

    timestamp: int
    finish: int = 0

    def __str__(self) -> str:
        return f"moment {self.timestamp}"


@dataclass(frozen=True, slots=True)
class ToCut:
    """``start`` and ``finish`` are sequences of one log. ``limit``: only what was committed at or
    below it, which makes the cut a moment between two cuts."""

    version: int
    timestamp: int
    start: int
    finish: int
    before: frozenset[log.Unit]
    after: frozenset[log.Unit]
    limit: int = FOREVER

    def __str__(self) -> str:
        return f"cut {self.version} at {self.timestamp}"


Goal: TypeAlias = ToEnd | ToMoment | ToCut


def find_cut(entries: Iterable[Entry], version: int) -> ToCut | None:
    """The goal that is cut ``version`` in this log; None when it was not finished there."""
    start: tuple[int, int] | None = None
    for entry in entries:
        match entry.record:
            case log.CutStart(version=started, timestamp=timestamp) if started == version:
                start = (entry.sequence, timestamp)
            case log.CutFinish(version=finished, before=before, after=after) if (
                finished == version and start is not None
            ):
                return ToCut(version, start[1], start[0], entry.sequence, before, after)
    return None


def last_cut(entries: Iterable[Entry]) -> int:
    """The version of the newest cut that was finished in this log; 0: there is none."""
    started = newest = 0
    for entry in entries:
        match entry.record:
            case log.CutStart(version=version):
                started = version
            case log.CutFinish(version=version) if version == started:
                newest = max(newest, version)
            case _:
                pass
    return newest


Staged: TypeAlias = log.StagedRows | log.StagedKeys
"""The rows that a job writes, and those that it removes."""

# --- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartCommit:
    """The changes of one partition become visible at ``timestamp``."""

    sequence: int
    part: log.PartId
    timestamp: int
    partitions: tuple[int, ...]
    changes: tuple[log.Change, ...]

    def __str__(self) -> str:
        return f"{self.part} at {self.timestamp}, {len(self.changes)} changes"


@dataclass(frozen=True, slots=True)
class JobCommit:
    """The rows of a job do, by accepted task and number."""

    sequence: int
    job: str
    timestamp: int
    map_id: int
    overwrite: bool
    participants: tuple[int, ...]
    rows: tuple[Staged, ...]
    entry: bytes
    ttl: int = 0

    def __str__(self) -> str:
        return f"job {self.job} at {self.timestamp}, {len(self.rows)} batches"


Step: TypeAlias = (
    PartCommit
    | JobCommit
    | log.CatalogChanged
    | log.PartitionTaken
    | log.CopiedRows
    | log.PartitionReady
    | log.PartitionLeft
)


@dataclass(frozen=True, slots=True)
class JobInDoubt:
    prepared: log.JobPrepared
    rows: tuple[Staged, ...]


@dataclass(frozen=True, slots=True)
class Ending:
    """The rest when the entries are over: parts and jobs that are prepared and not ended, jobs
    that have rows and are not prepared (nobody was promised these), ``closed`` (no commit at or
    below it is missing), the highest timestamp seen (clocks start above it), the last cut version
    and the last view."""

    in_doubt: tuple[log.Prepared, ...]
    jobs_in_doubt: tuple[JobInDoubt, ...]
    staged: tuple[str, ...]
    closed: int
    highest: int
    cut_version: int
    view: int


@dataclass(slots=True)
class Replay:
    """Over an image at timestamp ``above``, towards ``goal``; ``answers_for``: the partitions whose
    parts are wanted (None: all). ``sparse``: entries of other parts may be left out, since the
    reader has seen that no record is missing."""

    above: int
    goal: Goal
    answers_for: Collection[int] | None = None
    sparse: bool = False
    _last: int | None = None
    _prepared: dict[log.PartId, log.Prepared] = field(default_factory=dict)
    _rows: dict[str, dict[tuple[str, int], Staged]] = field(default_factory=dict)
    _jobs: dict[str, log.JobPrepared] = field(default_factory=dict)
    _closed: int = 0
    _highest: int = 0
    _cut_version: int = 0
    _cut_timestamp: dict[int, int] = field(default_factory=dict)
    _view: int = 0

    @property
    def done(self) -> bool:
        """Nothing that follows can matter."""
        match self.goal:
            case ToCut(finish=finish):
                return self._last is not None and self._last >= finish
            case ToMoment(finish=finish) if finish:
                return self._last is not None and self._last >= finish
            case ToMoment(timestamp):
                return self._closed >= timestamp
            case _:
                return False

    def on_entry(self, entry: Entry) -> Step | None:
        """The changes to apply for it. Raises ``DataCorrupted`` for an entry that cannot follow."""
        if self._last is not None and entry.sequence != self._last + 1 and not self.sparse:
            raise DataCorrupted(f"record {entry.sequence} of the log follows record {self._last}")
        self._last = entry.sequence
        match entry.record:
            case log.Committed() as committed:
                return self._commit(entry.sequence, committed)
            case log.JobCommitted() as committed:
                return self._commit_job(entry.sequence, committed)
            case log.CatalogChanged(timestamp=timestamp) as changed:
                self._highest = max(self._highest, timestamp)
                return changed if self._is_wanted(entry.sequence, timestamp, None) else None
            case (
                log.PartitionTaken(view=view)
                | log.CopiedRows(view=view)
                | log.PartitionReady(view=view)
                | log.PartitionLeft(view=view)
            ) as moved:
                return self._move(view, moved)
            case record:
                self._note(record)
                return None

    def finish(self) -> Ending:
        """Raises ``InputError`` when the log does not reach the goal."""
        if not isinstance(self.goal, ToEnd) and not self.done:
            raise InputError(
                f"the log does not reach {self.goal}",
                detail=f"it covers what was committed at or below {self._closed}",
            )
        jobs = [JobInDoubt(prepared, self._accepted(prepared)) for prepared in self._jobs.values()]
        return Ending(
            tuple(self._prepared.values()),
            tuple(jobs),
            tuple(sorted(self._rows.keys() - self._jobs.keys())),
            self._closed,
            self._highest,
            self._cut_version,
            self._view,
        )

    # --- records ---

    def _note(self, record: log.Record) -> None:
        match record:
            case log.Prepared(part=part, timestamp=timestamp):
                self._prepared[part] = record  # anew, after a change of primaries
                self._highest = max(self._highest, timestamp)
            case log.RolledBack(part=part):
                self._prepared.pop(part, None)
            case (
                log.StagedRows(job=job, task=task, number=number)
                | log.StagedKeys(job=job, task=task, number=number)
            ):
                self._rows.setdefault(job, {}).setdefault((task, number), record)
            case log.JobPrepared(job=job, timestamp=timestamp):
                self._jobs[job] = record
                self._highest = max(self._highest, timestamp)
            case log.JobRolledBack(job=job):
                self._jobs.pop(job, None)
                self._rows.pop(job, None)
            case log.CutStart(version, timestamp):
                self._cut_version = max(self._cut_version, version)
                self._cut_timestamp = {version: timestamp}
                self._highest = max(self._highest, timestamp)
            case log.CutFinish(version=version):
                self._close(self._cut_timestamp.get(version, 0))
            case log.Closed(timestamp) | log.Stopped(timestamp):
                self._close(timestamp)
            case log.Checkpoint(timestamp=timestamp):
                self._close(timestamp)
            case log.LogsHeard():
                pass  # of no use to who applies this log
            case _:
                raise AssertionError(f"{record} is handled elsewhere")

    def _close(self, timestamp: int) -> None:
        self._closed = max(self._closed, timestamp)
        self._highest = max(self._highest, timestamp)

    def _move(
        self,
        view: int,
        moved: log.PartitionTaken | log.CopiedRows | log.PartitionReady | log.PartitionLeft,
    ) -> Step | None:
        self._view = max(self._view, view)
        if self.answers_for is not None and moved.partition not in self.answers_for:
            return None
        wanted = self.goal.limit if isinstance(self.goal, ToCut) else FOREVER
        if isinstance(moved, log.PartitionTaken) and moved.timestamp > wanted:
            raise InputError(
                f"partition {moved.partition} came to this log at {moved.timestamp}, and its state"
                f" at {wanted} is not in it",
                hint="Restore to an earlier cut, or to a moment from then on.",
            )
        return moved

    def _commit(self, sequence: int, record: log.Committed) -> PartCommit | None:
        prepared = self._prepared.pop(record.part, None)
        self._highest = max(self._highest, record.timestamp)
        if not self._is_wanted(sequence, record.timestamp, record.part):
            return None
        changes = record.changes
        if changes is None:
            if prepared is None:
                raise DataCorrupted(
                    f"record {sequence} of the log commits {record.part}, whose changes are not"
                    " in the log",
                    hint="Replay from an earlier record: the checkpoint's, or the cut's.",
                )
            changes = prepared.changes
        return PartCommit(sequence, record.part, record.timestamp, record.partitions, changes)

    def _commit_job(self, sequence: int, record: log.JobCommitted) -> JobCommit | None:
        prepared = self._jobs.pop(record.job, None)
        rows = () if prepared is None else self._accepted(prepared)
        self._rows.pop(record.job, None)
        self._highest = max(self._highest, record.timestamp)
        if not self._is_wanted(sequence, record.timestamp, record.job):
            return None
        if prepared is None:
            raise DataCorrupted(
                f"record {sequence} of the log commits job {record.job}, which was not prepared"
                " in the log",
                hint="Replay from an earlier record: the checkpoint's, or the cut's.",
            )
        return JobCommit(
            sequence,
            record.job,
            record.timestamp,
            prepared.map_id,
            prepared.overwrite,
            prepared.participants,
            rows,
            record.entry,
            prepared.ttl,
        )

    def _accepted(self, prepared: log.JobPrepared) -> tuple[Staged, ...]:
        by_task: dict[str, list[Staged]] = {}
        for (task, _), rows in sorted(self._rows.get(prepared.job, {}).items()):
            by_task.setdefault(task, []).append(rows)
        tasks = dict.fromkeys(prepared.tasks)
        return tuple([rows for task in tasks for rows in by_task.get(task, ())])

    def _is_wanted(self, sequence: int, timestamp: int, unit: log.Unit | None) -> bool:
        part = unit if isinstance(unit, log.PartId) else None
        if part and self.answers_for is not None and part.partition not in self.answers_for:
            return False
        match self.goal:
            case ToMoment(moment):
                return self.above < timestamp <= moment
            case ToCut() as cut:
                inside = sequence < cut.finish and timestamp <= cut.timestamp
                if part is not None and sequence < cut.finish:
                    self._check_sides(cut, sequence, timestamp, part)
                return inside and self.above < timestamp <= cut.limit
            case _:
                return timestamp > self.above

    @staticmethod
    def _check_sides(cut: ToCut, sequence: int, timestamp: int, part: log.PartId) -> None:
        said = part not in cut.after if sequence < cut.start else part in cut.before
        if said != (timestamp <= cut.timestamp):
            raise DataCorrupted(
                f"{cut} and record {sequence} of the log disagree on {part}, committed at"
                f" {timestamp}"
            )
