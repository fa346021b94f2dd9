"""How many rows a log commits between two cuts. Pure.

The log is replayed as a restore does it, so a commit counts for the cut that it belongs to,
whatever its place in the log. Rows of a job are counted when they are read, and not kept: to count
a bulk load must not take its memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from remuda.storage.format import records as log
from remuda.storage.log.reader import Entry
from remuda.storage.log.replay import JobCommit, PartCommit, Replay, Staged, ToCut


class Tally(NamedTuple):
    """Rows that were written, one as often as it was, and entries that were removed."""

    put: int
    removed: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of one log between two cuts: the commits of ``cut`` above timestamp ``above``, that
    of the cut before, in ``partitions`` (as ``MemberLog`` has them). ``needs``: the first record
    that they rest on."""

    needs: int
    above: int
    cut: ToCut
    partitions: frozenset[int]


def tally(
    stretch: Stretch, entries: Iterable[Entry], rows_in: Callable[[Staged], int]
) -> dict[int, Tally]:
    """By map id. ``entries``: from ``stretch.needs`` on, perhaps without the parts of other
    partitions; ``rows_in``: how many rows or keys of a staged record count. Raises DataCorrupted,
    and InputError when the log ends before the cut."""
    replay = Replay(stretch.above, stretch.cut, stretch.partitions, sparse=True)
    sizes: dict[tuple[str, str, int], int] = {}
    put: Counter[int] = Counter()
    removed: Counter[int] = Counter()
    for entry in entries:
        record = entry.record
        if isinstance(record, Staged):
            sizes[record.job, record.task, record.number] = rows_in(record)
            step = replay.on_entry(entry._replace(record=_emptied(record)))
        else:
            step = replay.on_entry(entry)
        match step:
            case PartCommit(changes=changes):
                for change in changes:
                    (removed if change.row is None else put)[change.map_id] += 1
            case JobCommit(map_id=map_id, rows=rows):
                for each in rows:
                    into = put if isinstance(each, log.StagedRows) else removed
                    into[map_id] += sizes[each.job, each.task, each.number]
            case _:
                pass
        if replay.done:
            break
    replay.finish()
    return {each: Tally(put[each], removed[each]) for each in put.keys() | removed.keys()}


def _emptied(record: Staged) -> Staged:
    if isinstance(record, log.StagedRows):
        return replace(record, rows=b"")
    return replace(record, keys=b"")
