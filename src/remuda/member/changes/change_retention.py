"""How long the stores keep versions so that changes can be read again: the options
``change_retention`` and ``change_retention_bytes`` of maps.

Every copy keeps them, so a backup that becomes the primary knows what the primary knew.
"""

from __future__ import annotations

import numpy as np

from remuda.datatypes.timestamp import from_micros
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import EVERY_PARTITION

LOOK_EVERY = 1.0
"""Seconds between two looks at how much is kept."""


class ChangeRetention:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._sizes: dict[tuple[int, bool], tuple[float, int]] = {}
        """By map id, and whether it is the store of backups: when it was looked at last (monotonic
        seconds), and the timestamp up to which versions must go."""

    def horizon(self, store: MapStore, reads: int) -> int:
        """Versions of the store that ended at or before it may go; nobody reads below ``reads``."""
        options = store.schema.options
        if not options.change_retention:
            return reads
        now = from_micros(self._core.world.clock.wall_micros())
        low = now - from_micros(options.change_retention)
        if options.change_retention_bytes and low < reads:
            low = max(low, self._by_size(store, options.change_retention_bytes, low))
        return min(max(low, 0), reads)

    def _by_size(self, store: MapStore, limit: int, low: int) -> int:
        core, schema = self._core, store.schema
        now = core.world.clock.monotonic()
        backup = core.backup_stores.get(schema.map_id) is store
        key = schema.map_id, backup
        looked, found = self._sizes.get(key, (-LOOK_EVERY, 0))
        if now - looked >= LOOK_EVERY:
            found = crowded_until(
                store, int(limit * self._share(store, backup)), low, core.clock.last
            )
            self._sizes[key] = now, found
        return found

    def _share(self, store: MapStore, backup: bool) -> float:
        view, here = self._core.view, self._core.number
        if store.schema.replicated:
            return 1.0
        partitions = view.backed_up_by(here) if backup else view.partitions_of(here)
        return len(partitions) / PARTITIONS

    def dropped(self, map_id: int) -> None:
        for backup in (False, True):
            self._sizes.pop((map_id, backup), None)


def crowded_until(store: MapStore, limit: int, low: int, now: int) -> int:
    """Versions that ended at or before this timestamp must go, so that ended versions take
    ``limit`` bytes at most (estimated); those that ended at or before ``low`` go anyway."""
    ends, sizes = [], []
    for chunk, count in store.extraction(EVERY_PARTITION).chunks:
        if not count or chunk.first_end > now:
            continue
        found = np.full(count, chunk.end) if chunk.ends is None else chunk.ends[:count]
        found = found[(found > low) & (found <= now)]
        ends.append(found)
        sizes.append(np.full(len(found), chunk.nbytes / count))
    if not ends:
        return 0
    all_ends, all_sizes = np.concatenate(ends), np.concatenate(sizes)
    if all_sizes.sum() <= limit:
        return 0
    order = np.argsort(all_ends)[::-1]
    fits = int(np.searchsorted(np.cumsum(all_sizes[order]), limit, side="right"))
    return int(all_ends[order[fits]])
