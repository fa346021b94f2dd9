"""Ending many rows at one timestamp. Each function returns how many rows had no end before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remuda.storage.chunks.chunk import Chunk, Flags, Offsets
from remuda.storage.chunks.scan import shown


def close_existing(chunk: Chunk, offsets: Offsets, timestamp: int) -> int:
    """Close at ``timestamp`` those of the rows that exist then."""
    begins, row_ends = chunk.begins_of(offsets), chunk.ends_of(offsets)
    exists: Flags | bool = (begins <= timestamp) & (row_ends > timestamp)
    if exists is not True and not isinstance(exists, np.ndarray):
        exists = bool(exists)
    if exists is False:
        return 0
    chosen = offsets if exists is True else offsets[exists]
    return chunk.close_many(chosen, timestamp) if len(chosen) else 0


def close_everything(chunks: Sequence[Chunk], timestamp: int) -> int:
    """Close at ``timestamp`` every row that existed before it. A version that begins right then is
    new: it came with a transfer from a member that has carried out the same write already."""
    fresh = 0
    for chunk in chunks:
        mask = shown(chunk, chunk.length, timestamp - 1, None)
        if mask is True and chunk.closed == 0 and chunk.tuples is None:
            fresh += chunk.close_all(timestamp)
        elif mask is not False:
            offsets = np.arange(chunk.length) if mask is True else np.flatnonzero(mask)
            if len(offsets):
                fresh += chunk.close_many(offsets, timestamp)
    return fresh
