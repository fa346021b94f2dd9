"""A member's knowledge of the others' logs: how far each of them is on its member's disk.

Heartbeats say it, and the member notes it in its own log, now and then. When the cluster starts
again from its folders, a log that ends before a record which another member has noted is not the
one that was written: its folder is an older copy, or somebody has cut the log off. A crash cannot
do that, since only what was synced is told.
"""

from __future__ import annotations

from collections.abc import Iterable

from remuda.storage.format.records import HeardLog, LogsHeard

NOTE_EVERY = 3.0
"""Seconds. Records that were acknowledged since the last note can be taken from a log unnoticed."""
GONE_KEPT = 64
"""Of members that are in the view no more, the last ones: their folders may still be needed."""


class HeardLogs:
    """Of one member; ``now`` is in seconds."""

    def __init__(self) -> None:
        self._heard: dict[int, HeardLog] = {}
        self.noted: tuple[HeardLog, ...] = ()
        self._due = float("-inf")

    def restore(self, noted: Iterable[HeardLog]) -> None:
        """The notes in the log of the process before."""
        self.noted = tuple(noted)
        self._heard = {each.member: each for each in self.noted}

    def heard(self, log: HeardLog) -> None:
        """The last word counts."""
        self._heard[log.member] = log

    def changed(self, now: float, members: Iterable[int]) -> LogsHeard | None:
        """The places to note, if any, and not too often. ``members`` are those of the
        view."""
        if now < self._due:
            return None
        gone = sorted(self._heard.keys() - set(members))
        for member in gone[:-GONE_KEPT]:
            del self._heard[member]
        if self._all() == self.noted:
            return None
        self._due = now + NOTE_EVERY
        return self.whole()

    def whole(self) -> LogsHeard | None:
        """All of it, for a log whose beginning goes."""
        self.noted = self._all()
        return LogsHeard(self.noted) if self.noted else None

    def _all(self) -> tuple[HeardLog, ...]:
        return tuple(log for _, log in sorted(self._heard.items()))
