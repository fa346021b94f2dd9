"""When new rows end. Rows that are stored late, at a timestamp below that of what has been done to
their keys since, end where the next version begins, or where their key was removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from remuda.datatypes.timestamp import EXPIRY_MARK, FOREVER, expiry
from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK, Chunk, Offsets, Times
from remuda.storage.chunks.keys import Key, KeyRule
from remuda.storage.staging.staging import PreparedRows


def next_begin(
    chunks: Mapping[int, Chunk],
    slots: Iterable[int],
    keys: KeyRule,
    key: Key,
    timestamp: int,
) -> int:
    """Where the first version of ``key`` after ``timestamp`` begins, among those at ``slots`` (of
    its hash). Those that end before they begin were taken back: no reader sees them."""
    begin = FOREVER
    for slot in slots:
        chunk, offset = chunks[slot >> OFFSET_BITS], slot & OFFSET_MASK
        found = chunk.begin if chunk.begin_view is None else chunk.begin_view[offset]
        if timestamp < found < begin and (keys.exact or keys.holds(chunk, offset, key)):
            end = chunk.end if chunk.end_view is None else chunk.end_view[offset]
            if found <= end:
                begin = found
    return begin


def own_ends(rows: PreparedRows, timestamp: int) -> Times | None:
    """Where the rows end by themselves when they begin at ``timestamp``; None: they live on. Those
    that are over already end where they begin."""
    if rows.ends is not None:
        return np.maximum(rows.ends, timestamp)
    until = expiry(timestamp, rows.ttl)
    return None if until == FOREVER else np.full(rows.rows, until, dtype=np.int64)


def end_at_removals(ends: Times, rows: PreparedRows, timestamp: int) -> None:
    """The removals of these keys, absent as they were, while the rows were pending."""
    cleared = [other for other in rows.cleared if other > timestamp]
    if cleared:
        np.minimum(ends, min(cleared), out=ends)
    later = [removal for removal in rows.removals if removal[2] > timestamp]
    if not later:
        return
    columns = rows.key_columns()
    for key_hash, key, removed in later:
        low = int(np.searchsorted(rows.hashes, np.uint64(key_hash)))
        high = int(np.searchsorted(rows.hashes, np.uint64(key_hash), side="right"))
        candidates = rows.order[low:high].tolist()
        for row, other in zip(candidates, rows.keys.keys_of(columns, candidates), strict=True):
            if rows.keys.exact or other == key:
                ends[row] = min(int(ends[row]), removed)


def end_before_later_versions(
    ends: Times, chunk: Chunk, offsets: Offsets, rows: Offsets, timestamp: int
) -> None:
    """Lower the ends of late rows to where versions of the same keys begin or end after them."""
    begins = np.broadcast_to(np.asarray(chunk.begins_of(offsets)), offsets.shape)
    row_ends = np.broadcast_to(np.asarray(chunk.ends_of(offsets)), offsets.shape)
    ended = (row_ends > timestamp) & (row_ends & EXPIRY_MARK != EXPIRY_MARK)
    later = (begins > timestamp) & (begins <= row_ends)  # else it was taken back
    bounds = np.where(later, begins, np.where(ended, row_ends, FOREVER))
    np.minimum.at(ends, rows, bounds)
