"""When the entries of a map were used last, for maps that let go of entries that nobody uses.

A write counts as a use; its time is that of the row (its begin). Reads by key are noted here, in
memory of the primary only: where the primary changes, the clock starts again (``started``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from remuda.datatypes.timestamp import from_micros
from remuda.storage.chunks.keys import Key

HALF_LIFE: Final = from_micros(60_000_000)
"""How often an entry was used counts half after this time."""
ENTRY_SIZE: Final = 260
COUNT_SIZE: Final = 120
"""Bytes, estimated: a key, when it was used, its place in a dictionary; how often it was used."""


class Accesses:
    """Times are timestamps. ``counts`` is kept only where it matters."""

    __slots__ = ("counting", "counts", "last", "started")

    def __init__(self, started: int, *, counting: bool) -> None:
        self.started = started
        """Nothing is known of what was before."""
        self.counting = counting
        self.last: dict[Key, int] = {}
        self.counts: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self.last)

    @property
    def nbytes(self) -> int:
        """Estimated memory."""
        return ENTRY_SIZE * len(self.last) + COUNT_SIZE * len(self.counts)

    def touch(self, key: Key, at: int) -> None:
        if self.counting:
            self.counts[key] = 1.0 + self.frequency(key, at, at)
        self.last[key] = at

    def touch_all(self, keys: Sequence[Key], found: Sequence[object | None], at: int) -> None:
        """Those of the keys for which something was found."""
        for key, row in zip(keys, found, strict=True):
            if row is not None:
                self.touch(key, at)

    def used(self, key: Key, begin: int) -> int:
        """When an entry that was written at ``begin`` was used last."""
        return max(begin, self.started, self.last.get(key, 0))

    def frequency(self, key: Key, begin: int, at: int) -> float:
        """How often it was used, lately more than long ago; the write counts as one use."""
        last = self.last.get(key)
        if last is None:
            return math.exp2(-max(0, at - begin) / HALF_LIFE)
        return self.counts.get(key, 0.0) * math.exp2(-max(0, at - last) / HALF_LIFE)

    def forget(self, key: Key) -> None:
        self.last.pop(key, None)
        self.counts.pop(key, None)
