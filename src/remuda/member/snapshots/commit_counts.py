"""Counts the rows that parts of transactions commit between two cuts while a member notes them in
its log, so that an increment need not read the log again to count them. Pure.

Jobs are not counted: their records name rows that came earlier, and perhaps to another partition.
The counts of a stretch only tell that a job has committed in it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from remuda.storage.format import records as log
from remuda.storage.log.tally import Tally

STRETCHES_MAX: Final = 32
"""Stretches between cuts that are kept: those of snapshots with several names take turns."""

_Changed = dict[tuple[int, bool], int]
"""Changes by map id, rows apart from removed entries."""


class _Noted(NamedTuple):
    """A commit while a cut is made. ``changed`` None: its changes were noted before the counts
    began."""

    timestamp: int
    partition: int
    changed: _Changed | None


class PartCounts(NamedTuple):
    """``jobs``: a job may have committed as well."""

    tallies: dict[int, Tally]
    jobs: bool


@dataclass(slots=True)
class _Counts:
    """Of the commits above timestamp ``above``."""

    above: int
    changes: Counter[tuple[int, int, bool]] = field(default_factory=Counter)
    """By partition and map id, rows apart from removed entries."""
    jobs: bool = False
    whole: bool = True

    def add(self, partition: int, changed: _Changed | None) -> None:
        if changed is None:
            self.whole = False
            return
        for (map_id, removed), count in changed.items():
            self.changes[partition, map_id, removed] += count

    def add_jobs(self) -> None:
        self.jobs = True

    def joined(self, later: _Counts) -> _Counts:
        return replace(
            self,
            changes=self.changes + later.changes,
            jobs=self.jobs or later.jobs,
            whole=self.whole and later.whole,
        )


class CommitCounts:
    """It is told of every record from the first question for a clock on. The commits of a stretch
    are those above the timestamp of one cut, up to that of the next, whatever their place in the
    log: between the question and the finish commits are kept one by one, for only the cut's
    timestamp tells to which side of it they belong."""

    def __init__(self) -> None:
        self._prepared: dict[log.PartId, _Changed] = {}
        self._cutting: list[_Noted] | None = None
        self._jobs: list[int] = []
        """Commit timestamps of jobs since the question."""
        self._now: _Counts | None = None
        """Since the last cut; None before the first one, whose stretch has no beginning."""
        self._past: deque[tuple[int, _Counts]] = deque(maxlen=STRETCHES_MAX)
        """Stretches, with the timestamps of the cuts at which they end."""

    def noted(self, _sequence: int, record: log.Record) -> None:
        """A record of the member's log, in the step in which it is noted."""
        match record:
            case log.Prepared(part=part, changes=changes):
                self._prepared[part] = _counted(changes)
            case log.Committed(part=part, timestamp=timestamp, changes=changes):
                before = self._prepared.pop(part, None)
                changed = before if changes is None else _counted(changes)
                if self._cutting is not None:
                    self._cutting.append(_Noted(timestamp, part.partition, changed))
                elif self._now is not None and timestamp > self._now.above:
                    self._now.add(part.partition, changed)
            case log.RolledBack(part=part):
                self._prepared.pop(part, None)
            case log.JobCommitted(timestamp=timestamp):
                if self._cutting is not None:
                    self._jobs.append(timestamp)
                elif self._now is not None:
                    self._now.add_jobs()
            case _:
                pass

    def asked(self) -> None:
        """The clock was asked for: a cut may begin, whose timestamp is above all commits noted so
        far."""
        if self._cutting is None:
            self._cutting = []

    def finished(self, timestamp: int, open_parts: Collection[log.PartId]) -> None:
        """The cut at ``timestamp`` is finished. ``open_parts``: those that may still end."""
        before, self._now = self._now, _Counts(timestamp)
        if before is not None:
            self._settle(before, timestamp)
            self._past.append((timestamp, before))
        self.given_up()
        let_go = self._prepared.keys() - set(open_parts)
        for part in let_go:  # their partitions have left, and no record says how they end
            del self._prepared[part]

    def given_up(self) -> None:
        """No cut is under way: counts that were kept apart belong to the stretch since the last
        one."""
        if self._now is not None:
            self._settle(self._now, None)
        self._cutting = None
        self._jobs.clear()

    def _settle(self, counts: _Counts, timestamp: int | None) -> None:
        """Add the commits that were kept apart, up to ``timestamp``."""
        for each in self._cutting or ():
            if each.timestamp > counts.above and (timestamp is None or each.timestamp <= timestamp):
                counts.add(each.partition, each.changed)
        if any(timestamp is None or at <= timestamp for at in self._jobs):
            counts.add_jobs()

    def between(self, above: int, timestamp: int, partitions: Collection[int]) -> PartCounts | None:
        """By map id, of the parts in ``partitions``, between two cuts; None where that is not
        known: a cut is from before this process, or from too long ago."""
        found = self._stretch(above, timestamp)
        if found is None or not found.whole:
            return None
        put: Counter[int] = Counter()
        removed: Counter[int] = Counter()
        for (partition, map_id, is_removed), count in found.changes.items():
            if partition in partitions:
                (removed if is_removed else put)[map_id] += count
        tallies = {each: Tally(put[each], removed[each]) for each in put.keys() | removed.keys()}
        return PartCounts(tallies, found.jobs)

    def _stretch(self, above: int, timestamp: int) -> _Counts | None:
        found: _Counts | None = None
        for end, counts in self._past:
            if counts.above == above:
                found = counts
            elif found is not None:
                found = found.joined(counts)
            if end == timestamp:
                return found
        return None


def _counted(changes: Iterable[log.Change]) -> _Changed:
    found: _Changed = {}
    for change in changes:
        key = change.map_id, change.row is None
        found[key] = found.get(key, 0) + 1
    return found
