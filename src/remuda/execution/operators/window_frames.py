"""Partitions, peers and frames of sorted rows, as arrays of row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from remuda.execution.arrays import Data, Indices, Mask, validity_mask
from remuda.execution.batch import Batch
from remuda.execution.operators.input import unify
from remuda.execution.operators.ordering import BoundKey, codes
from remuda.execution.operators.window_calls import BoundFrame, BoundLimit
from remuda.plan.windows import BoundKind, Exclusion, FrameUnit


@dataclass(frozen=True, slots=True)
class Segments:
    """Of every row (arrays of ``rows`` items): its partition, the first row of that and the row
    after its last; the number of its group of peers. Of every partition, and of every group of
    peers: its first row, and the row after its last."""

    rows: int
    partition: Indices
    first: Indices
    end: Indices
    starts: Indices
    ends: Indices
    peer: Indices
    peer_starts: Indices
    peer_ends: Indices

    @property
    def peer_first(self) -> Indices:
        """Of every row, its first peer."""
        return self.peer_starts[self.peer]

    @property
    def peer_end(self) -> Indices:
        """Of every row, the row after its last peer."""
        return self.peer_ends[self.peer]


def segments(rows: int, partition: Sequence[Data], order: Sequence[Data]) -> Segments:
    """Of ``rows`` > 0 sorted rows; the arguments are the codes of their keys."""
    new_partition = np.zeros(rows, np.bool_)
    new_partition[0] = True
    _mark_changes(new_partition, partition)
    new_peer = new_partition.copy()
    _mark_changes(new_peer, order)
    number, starts, ends = _numbered(new_partition)
    peer, peer_starts, peer_ends = _numbered(new_peer)
    return Segments(
        rows, number, starts[number], ends[number], starts, ends, peer, peer_starts, peer_ends
    )


def _mark_changes(marks: Mask, parts: Sequence[Data]) -> None:
    for part in parts:
        marks[1:] |= part[1:] != part[:-1]


def _numbered(marks: Mask) -> tuple[Indices, Indices, Indices]:
    starts = np.flatnonzero(marks)
    return np.cumsum(marks, dtype=np.int64) - 1, starts, np.append(starts[1:], len(marks))


@dataclass(frozen=True, slots=True)
class Frames:
    """The frame of every row: rows ``start`` to ``end`` (exclusive), then those of ``more`` parts
    behind it, where rows in between are left out."""

    found: Segments
    start: Indices
    end: Indices
    more: tuple[tuple[Indices, Indices], ...] = ()

    @property
    def parts(self) -> tuple[tuple[Indices, Indices], ...]:
        return ((self.start, self.end), *self.more)

    def place(self, number: Indices) -> Indices:
        """Of every frame, its row of this number, from 0; -1 where it has none."""
        rows = np.full(self.found.rows, -1)
        for start, end in self.parts:
            size = end - start
            rows = np.where((rows < 0) & (number >= 0) & (number < size), start + number, rows)
            number = number - size
        return rows

    def size(self) -> Indices:
        """Of every frame, the number of its rows."""
        return sum((end - start for start, end in self.more), self.end - self.start)


def frames_of(frame: BoundFrame, found: Segments, batch: Batch) -> Frames:
    """The frames of all rows, without what they exclude."""
    start, end = _frame_rows(frame, found, batch)
    here = np.arange(found.rows)
    match frame.exclude:
        case Exclusion.NO_OTHERS:
            return Frames(found, start, end)
        case Exclusion.CURRENT_ROW:
            holes = (here, here + 1)
        case Exclusion.GROUP | Exclusion.TIES:
            holes = (found.peer_first, found.peer_end)
    first = np.clip(holes[0], start, end)
    last = np.clip(holes[1], start, end)
    if frame.exclude is Exclusion.TIES:
        own = (np.clip(here, start, end), np.clip(here + 1, start, end))
        return Frames(found, start, first, (own, (last, end)))
    return Frames(found, start, first, ((last, end),))


def _frame_rows(frame: BoundFrame, found: Segments, batch: Batch) -> tuple[Indices, Indices]:
    """(first row, row after the last) of the frame of every row; both equal if it is empty."""
    match frame.unit:
        case FrameUnit.ROWS:
            start, end = _by_rows(frame.start, found, 0), _by_rows(frame.end, found, 1)
        case FrameUnit.GROUPS:
            start = _by_groups(frame.start, found, last=False)
            end = _by_groups(frame.end, found, last=True)
        case FrameUnit.RANGE:
            start = _by_values(frame, frame.start, found, batch, last=False)
            end = _by_values(frame, frame.end, found, batch, last=True)
    return start, np.maximum(start, end)


def _by_rows(bound: BoundLimit, found: Segments, after: int) -> Indices:
    """``after``: 1 for the row after the bound."""
    here = np.arange(after, found.rows + after)
    offset = min(bound.offset, found.rows)
    match bound.kind:
        case BoundKind.UNBOUNDED_PRECEDING:
            return found.first
        case BoundKind.UNBOUNDED_FOLLOWING:
            return found.end
        case BoundKind.PRECEDING:
            here = here - offset
        case BoundKind.FOLLOWING:
            here = here + offset
        case BoundKind.CURRENT_ROW:
            pass
    return np.clip(here, found.first, found.end)


def _by_groups(bound: BoundLimit, found: Segments, *, last: bool) -> Indices:
    """``last``: the row after the group, else its first row."""
    offset = min(bound.offset, found.rows)
    match bound.kind:
        case BoundKind.UNBOUNDED_PRECEDING:
            return found.first
        case BoundKind.UNBOUNDED_FOLLOWING:
            return found.end
        case BoundKind.PRECEDING:
            group = found.peer - offset
        case BoundKind.FOLLOWING:
            group = found.peer + offset
        case BoundKind.CURRENT_ROW:
            group = found.peer
    lowest, highest = found.peer[found.first], found.peer[found.end - 1]
    edges = found.peer_ends if last else found.peer_starts
    rows = edges[np.clip(group, lowest, highest)]
    rows = np.where(group < lowest, found.first, rows)
    return np.where(group > highest, found.end, rows)


def _by_values(
    frame: BoundFrame, bound: BoundLimit, found: Segments, batch: Batch, *, last: bool
) -> Indices:
    match bound.kind:
        case BoundKind.UNBOUNDED_PRECEDING:
            return found.first
        case BoundKind.UNBOUNDED_FOLLOWING:
            return found.end
        case BoundKind.CURRENT_ROW:
            return found.peer_end if last else found.peer_first
    assert frame.key is not None
    assert frame.values is not None
    assert bound.limit is not None
    key, limit = frame.values(batch), bound.limit(batch)
    place = _search(key, limit, frame.key, found, "right" if last else "left")
    valid = validity_mask(key)
    if valid is None:
        return place
    # NULL is at no distance from anything but NULL.
    return np.where(valid, place, found.peer_end if last else found.peer_first)


def _search(key: pa.Array, limit: pa.Array, order: BoundKey, found: Segments, side: str) -> Indices:
    """Where the limit of each row belongs in the key column of the row's partition: values become
    ranks, and a rank and its partition one number, so that one search serves all partitions."""
    rows = found.rows
    both = codes(unify([key, limit], order.type), order)[-1]
    values, ranks = np.unique(both, return_inverse=True)
    ranks = ranks.astype(np.int64) + 1
    valid = validity_mask(key)
    if valid is not None:
        ranks[:rows][~valid] = 0 if order.nulls_first else len(values) + 1
    size = len(values) + 2
    keys = found.partition * size + ranks[:rows]
    limits = found.partition * size + ranks[rows:]
    return np.searchsorted(keys, limits, "right" if side == "right" else "left").astype(np.int64)
