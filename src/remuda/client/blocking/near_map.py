"""``NearMap``: a map of which a blocking client keeps entries that it has read."""

from __future__ import annotations

import threading

from remuda.client.asynchronous import near_map as asynchronous
from remuda.client.asynchronous.near_map import Invalidation
from remuda.client.blocking.background import Background, background
from remuda.client.blocking.map import K, Map, V
from remuda.client.core.core import Core
from remuda.client.network.deadline import Deadline
from remuda.client.network.driving import finish
from remuda.client.operations.near_cache import NearCache, NearCacheStatistics, NearEntries
from remuda.datatypes.schema import MapSchema


class NearMap(Map[K, V]):
    """A ``Map`` whose ``get`` and ``get_all`` look into the memory of this client first.

    A value that they give was the newest one at most ``NearCache.max_staleness`` seconds ago;
    members tell of changes within milliseconds. Reads see this client's writes at once. In
    transactions, and while the members cannot be heard, they go to the members. Share one handle
    among threads: each has a cache of its own.
    """

    def __init__(
        self,
        core: Core,
        name: str,
        value_type: type | None,
        key_type: type | None,
        near_cache: NearCache,
    ) -> None:
        super().__init__(core, name, value_type, key_type)

        async def launch(
            schema: MapSchema, entries: NearEntries, deadline: Deadline
        ) -> Invalidation:
            there = background(core)
            return there.run(InBackground(there, schema, entries).begin(deadline))

        self._near: asynchronous.NearMap[K, V] = asynchronous.NearMap(
            core, name, value_type, key_type, near_cache, launch
        )
        self._map = self._near

    @property
    def near_cache_statistics(self) -> NearCacheStatistics:
        """Hits, misses and the like since the handle was made."""
        return self._near.near_cache_statistics

    def close(self) -> None:
        """Forget the entries, and hear of changes no more. A get begins anew."""
        finish(self._near.close())


class InBackground(Invalidation):
    """The feed runs on the loop of another thread."""

    def __init__(self, there: Background, schema: MapSchema, entries: NearEntries) -> None:
        super().__init__(there.core, schema, entries)
        self._there = there

    async def close(self) -> None:
        if threading.current_thread() is self._there.thread or self._there.closed:
            return
        self._there.run(super().close())
