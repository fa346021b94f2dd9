"""``NearMap``: a map of which this client keeps entries that it has read."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from remuda.client.asynchronous.feed import Ends, Feed
from remuda.client.asynchronous.handle import AGAIN
from remuda.client.asynchronous.listener import subscription_name
from remuda.client.asynchronous.map import K, Map, V
from remuda.client.binding import Binding
from remuda.client.core import Core
from remuda.client.feed_requests import FeedPage, FeedQuery
from remuda.client.near_cache import NearCache, NearCacheStatistics, NearEntries
from remuda.client.objects import PhysicalRow
from remuda.client.predicate import quote
from remuda.datatypes.keyhash import hasher
from remuda.datatypes.schema import MapSchema
from remuda.errors import LimitExceeded, RemudaError, TransientError

BEGIN_AGAIN = 5.0
"""Seconds after which a feed that has failed is begun again."""
_POLLS_PER_STALENESS = 4
"""A confirmation counts from when it was asked for: it must be much younger than the bound."""


class Invalidation:
    """The feed of a near cache, on an event loop."""

    def __init__(self, core: Core, schema: MapSchema, entries: NearEntries) -> None:
        self._entries = entries
        keys = ", ".join(map(quote, schema.key))
        query = FeedQuery(
            subscription_name(),
            "near cache",
            f"SELECT {keys} FROM {quote(schema.name)}",  # noqa: S608  (quoted)
            (),
            (),
            keys_only=True,
        )
        ends = Ends(
            gap=lambda _: entries.reset(),
            failed=self._failed,
            answered=self._answered,
            interrupted=entries.reset,
        )
        wait = entries.options.max_staleness / _POLLS_PER_STALENESS
        self._feed = Feed(core, query, None, self._on_page, lambda: True, ends, wait)
        self.failed = False

    async def begin(self) -> Invalidation:
        try:
            await self._feed.open()
        except BaseException:
            await self._feed.close()
            raise
        self._feed.start()
        return self

    async def close(self) -> None:
        await self._feed.close()
        self._entries.reset()

    def _on_page(self, page: FeedPage) -> None:
        self._entries.changed(change.hash for change in page.changes)

    def _answered(self) -> None:
        self._entries.confirmed(self._feed.position, self._feed.confirmed)

    def _failed(self, _error: RemudaError) -> None:
        self.failed = True
        self._entries.reset()


Launch = Callable[[MapSchema, NearEntries], Coroutine[Any, Any, Invalidation]]


class NearMap(Map[K, V]):
    """A ``Map`` whose ``get`` and ``get_all`` look into the memory of this client first.

    What they give was the newest value at most ``NearCache.max_staleness`` seconds ago; members
    tell of changes within milliseconds. What this client has written is read at once. In
    transactions, and while the members cannot be heard, they go to the members.
    """

    def __init__(  # noqa: PLR0917 (a map, and its cache)
        self,
        core: Core,
        name: str,
        value_type: type | None,
        key_type: type | None,
        near_cache: NearCache,
        launch: Launch | None = None,
    ) -> None:
        super().__init__(core, name, value_type, key_type)
        self._entries = NearEntries(near_cache)
        self._launch = launch or self._launched
        self._invalidation: Invalidation | None = None
        self._begun_for: int | None = None
        self._next_try = 0.0
        self._hash: tuple[int, Callable[[PhysicalRow], int]] | None = None
        """Of the keys of a map, by its id."""
        self._begin_lock = core.ports.lock()

    @property
    def near_cache_statistics(self) -> NearCacheStatistics:
        """Hits, misses and the like since the handle was made."""
        return self._entries.statistics

    async def get(self, key: Any, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        if self._passed_over():
            return await super().get(key, default)
        binding = await self._bound_now()
        physical = binding.codec.key(key)
        await self._listening(binding.schema)
        row = await self._row(binding, physical)
        if row is None:
            return default
        return (self._binding or binding).codec.value(row)

    async def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """The values of those of ``keys`` that exist, by key, in the order given."""
        wanted = list(keys)
        if self._passed_over():
            return await super().get_all(wanted)
        binding = await self._bound_now()
        await self._listening(binding.schema)
        found: dict[Any, Any] = {}
        missing = []
        for key in wanted:
            row = self._find(binding, binding.codec.key(key))
            if row is None:
                missing.append(key)
            else:
                found[key] = binding.codec.value(row)
        if missing:
            found |= await super().get_all(missing)
        return {key: found[key] for key in wanted if key in found}

    async def close(self) -> None:
        """Forget the entries, and hear of changes no more. A get begins anew."""
        invalidation, self._invalidation = self._invalidation, None
        self._begun_for = None
        if invalidation is not None:
            await invalidation.close()

    # --- inside -------------------------------------------------------------------------------

    def _passed_over(self) -> bool:
        return self._core.in_transaction or self._core.held is not None

    async def _row(self, binding: Binding, key: PhysicalRow) -> PhysicalRow | None:
        row = self._find(binding, key)
        if row is not None:
            return row
        read = self._entries.begin(self._hashed(binding.schema, key))
        try:
            row = await binding.get(key)
        except AGAIN as error:
            # Sent again in another view, perhaps for another schema: not kept.
            read.stale = True
            _, row = await self._read_again(error, lambda b: b.get(key))
        finally:
            self._entries.end(read, key, row, binding.schema.version, time.monotonic())
        return row

    def _find(self, binding: Binding, key: PhysicalRow) -> PhysicalRow | None:
        schema = binding.schema
        written = self._core.written_to(schema.name)
        hash_ = self._hashed(schema, key)
        return self._entries.find(hash_, key, schema.version, time.monotonic(), written)

    def _hashed(self, schema: MapSchema, key: PhysicalRow) -> int:
        if self._hash is None or self._hash[0] != schema.map_id:
            types = [schema.columns[place].type for place in schema.key_positions]
            self._hash = schema.map_id, hasher(types)
        return self._hash[1](key)

    async def _listening(self, schema: MapSchema) -> None:
        """Hear of changes of the map; if that is not possible just now, the cache stays empty."""
        if self._is_listening(schema):
            return
        now = time.monotonic()
        if now < self._next_try:
            return
        async with self._begin_lock:
            if self._is_listening(schema) or now < self._next_try:
                return
            self._next_try = now + BEGIN_AGAIN
            await self.close()
            try:
                self._invalidation = await self._launch(schema, self._entries)
                self._begun_for, self._next_try = schema.map_id, 0.0
            except (TransientError, LimitExceeded):
                return

    def _is_listening(self, schema: MapSchema) -> bool:
        found = self._invalidation
        return found is not None and not found.failed and self._begun_for == schema.map_id

    async def _launched(self, schema: MapSchema, entries: NearEntries) -> Invalidation:
        return await Invalidation(self._core, schema, entries).begin()
