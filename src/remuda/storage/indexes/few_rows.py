"""The few rows that a secondary index names, value by value: no batch, no cursor, on the loop."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from remuda.datatypes.timestamp import ended_by_write
from remuda.storage.chunks.chunk import Chunk, Row
from remuda.storage.chunks.layout import Layouts


class Declined(IntEnum):
    """Why rows are not given. The numbers travel (``IndexRows.declined``)."""

    CROWDED = 1
    """There are many."""
    UNCOVERED = 2
    """The index does not cover all rows now."""
    NEWER = 3
    """Some have changed after the timestamp, or may change at it."""
    UNREADY = 4
    """The member does not serve all of its partitions now."""


def rows_at(
    versions: Sequence[tuple[Chunk, int]], at: int, positions: tuple[int, ...], layouts: Layouts
) -> list[Row]:
    """Those of some versions that exist at ``at``."""
    values_at, version = layouts.values_at, layouts.schema.version
    found: list[Row] = []
    for chunk, offset in versions:
        begins, ends = chunk.begin_view, chunk.end_view
        if (
            (chunk.begin if begins is None else begins[offset])
            <= at
            < (chunk.end if ends is None else ends[offset])
        ):
            if chunk.schema.version == version:
                found.append(chunk.values_at(offset, positions))
            else:
                found.append(values_at(chunk, offset, positions))
    return found


def changed_after(versions: Sequence[tuple[Chunk, int]], at: int, now: int) -> bool:
    """Whether one of some versions began or ended after ``at``, or ends by itself until ``now``."""
    for chunk, offset in versions:
        begins, ends = chunk.begin_view, chunk.end_view
        begin = chunk.begin if begins is None else begins[offset]
        end = chunk.end if ends is None else ends[offset]
        later = begin > at or (at < end and (end <= now or ended_by_write(end)))
        if later and begin < end:
            return True
    return False
