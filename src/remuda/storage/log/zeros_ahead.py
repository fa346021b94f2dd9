"""How far a segment is filled with zeros ahead of its records. Pure.

A record that is appended makes its file longer, and may need another block of the disk, so the sync
writes the metadata of the file as well: a second wait for the disk on most file systems. Zeros that
were written and synced before the record spare that. A bulk load gains nothing by them: there the
disk is busy with the bytes, and zeros would be as many again.

Zeros take room for a while, so they are never more than the segment has bytes of records.
"""

from __future__ import annotations

from typing import Final

STRETCH_MIN: Final = 4096
"""Bytes: a segment with less than that is not worth a sync of zeros."""
STRETCH_MAX: Final = 1 << 20
GROUPS_MIN: Final = 4
"""A stretch must be long enough for so many groups like the last one."""
BLOCK: Final = 4096
"""Stretches end where a block of the disk does."""


class ZerosAhead:
    """Of the segment that is written, which gets at most ``segment_size`` bytes of small records.
    ``size``: of its file, with the zeros."""

    def __init__(self, segment_size: int) -> None:
        self.size = 0
        self._segment_size = segment_size
        self._group = 0
        self._refused = False

    def target(self, end: int) -> int:
        """The size to which the file is to be extended, if its records end at ``end``; 0: there
        are zeros enough, or they would not pay."""
        stretch = min(end, STRETCH_MAX)
        if self._refused or stretch < max(STRETCH_MIN, self._group * GROUPS_MIN):
            return 0
        if (self.size - end) * 2 > stretch:
            return 0
        found = min(end + stretch + -(end + stretch) % BLOCK, self._segment_size)
        return found if found > self.size else 0

    def on_segment(self, size: int) -> None:
        """Another segment is written; it has ``size`` bytes."""
        self.size = size
        self._group = 0
        self._refused = False

    def on_group(self, size: int, end: int) -> None:
        """``size`` bytes were appended, up to ``end``."""
        self._group = size
        self.size = max(self.size, end)

    def on_extended(self, size: int) -> None:
        self.size = size

    def on_refused(self) -> None:
        """The disk had no room: the records of this segment take it as they come."""
        self._refused = True

    def on_cut(self, end: int) -> None:
        """The zeros are gone."""
        self.size = end
