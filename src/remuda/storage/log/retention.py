"""Which segments of a log must stay, and where. Pure.

A segment is needed for recovery while a record at or above the checkpoint's ``replay_from`` is in
it, and for snapshots until the increments that rest on it are stored. One that is needed for
snapshots alone goes to the archive, which may be a slower disk; one that nobody needs goes away.
"""

from __future__ import annotations

from dataclasses import dataclass

from remuda.storage.log.index import LogIndex


@dataclass(frozen=True, slots=True)
class Retention:
    """Segment numbers."""

    keep: tuple[int, ...]
    archive: tuple[int, ...]
    remove: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"keep {len(self.keep)} segments, archive {len(self.archive)},"
            f" remove {len(self.remove)}"
        )


def retire(index: LogIndex, *, stored: int | None, snapshots: bool) -> Retention:
    """``index``: of all segments that are complete, without the one being written. ``stored``: the
    version of the last cut whose base or increment is in the object store, manifest and all;
    ``snapshots``: whether there are any, so that increments must stay possible. Segments go in
    order: nothing is removed behind one that stays."""
    checkpoint = index.checkpoint()
    replay_from = checkpoint.replay_from if checkpoint is not None else 0
    wanted = _wanted(index, stored) if snapshots else None
    keep: list[int] = []
    archive: list[int] = []
    remove: list[int] = []
    for summary in index.summaries:
        if keep or summary.last >= replay_from:
            keep.append(summary.number)
        elif archive or (wanted is not None and summary.last >= wanted):
            archive.append(summary.number)
        else:
            remove.append(summary.number)
    return Retention(tuple(keep), tuple(archive), tuple(remove))


def _wanted(index: LogIndex, stored: int | None) -> int:
    """The lowest sequence of the increments still to come."""
    cut = None if stored is None else index.cut(stored)
    return 0 if cut is None else cut.needs
