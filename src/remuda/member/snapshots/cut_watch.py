"""The notes of a member on its log between the question for its clock and the end of its part in a
cut. Nothing is read again from the disk: a cut costs what has happened while it was made, however
long the log is."""

from __future__ import annotations

from remuda.member.journal.writer import MemberWal, part_id
from remuda.storage.format import records as log


class CutWatch:
    """Begins with what is open in the log, and is told of every record from there on."""

    def __init__(self, wal: MemberWal) -> None:
        self._firsts: dict[log.Unit, int] = {}
        """The first record of what was open, or has begun since."""
        self._firsts.update(wal.open_jobs.items())
        self._firsts.update((part_id(address), at) for address, at in wal.prepared.items())
        self._commits: dict[log.Unit, tuple[int, int]] = {}
        """Sequence and timestamp."""

    def noted(self, sequence: int, record: log.Record) -> None:
        match record:
            case log.Committed(part=unit, timestamp=at) | log.JobCommitted(job=unit, timestamp=at):
                self._firsts.setdefault(unit, sequence)
                self._commits[unit] = sequence, at
            case (
                log.Prepared(part=unit)
                | log.StagedRows(job=unit)
                | log.StagedKeys(job=unit)
                | log.JobPrepared(job=unit)
            ):
                self._firsts.setdefault(unit, sequence)
            case _:
                pass

    def sides(self, start: int, timestamp: int) -> tuple[frozenset[log.Unit], frozenset[log.Unit]]:
        """BEFORE, the commits behind record ``start`` that belong to the cut; AFTER, earlier ones
        that do not."""
        commits = self._commits.items()
        before = {unit for unit, (at, commit) in commits if at > start and commit <= timestamp}
        after = {unit for unit, (at, commit) in commits if at < start and commit > timestamp}
        return frozenset(before), frozenset(after)

    def lowest(self, after: frozenset[log.Unit], limit: int) -> int:
        """The first record of these commits; ``limit`` when it is lower."""
        return min([limit, *(self._firsts[unit] for unit in after)])


def first_open(wal: MemberWal, limit: int) -> int:
    """The first record of anything that is open in the log now; ``limit`` when it is lower."""
    return min([limit, *wal.prepared.values(), *wal.open_jobs.values()])
