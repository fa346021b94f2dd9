"""``NearMap``: a map of which this client keeps entries that it has read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from math import inf
from typing import Any

from remuda.client.asynchronous.feed import Ends, Feed
from remuda.client.asynchronous.handle import AGAIN
from remuda.client.asynchronous.listener import subscription_name
from remuda.client.asynchronous.map import K, Map, V
from remuda.client.core.core import Core
from remuda.client.network.deadline import Deadline
from remuda.client.operations.binding import Binding
from remuda.client.operations.near_cache import NearCache, NearCacheStatistics, NearEntries
from remuda.client.requests.feeds import FeedPage, FeedQuery
from remuda.client.values.objects import PhysicalRow
from remuda.client.values.predicate import quote
from remuda.datatypes.hashes.keyhash import hasher
from remuda.datatypes.schema import MapSchema
from remuda.errors import LimitExceeded, NoAnswer, RemudaError, TransientError

BEGIN_AGAIN = 5.0
"""Seconds after which a feed that has failed is begun again."""
BEGIN_TIMEOUT = 5.0
"""Seconds after which a get goes on without a feed; sooner if it has less time itself."""
_POLLS_PER_STALENESS = 4
"""A confirmation counts from when it was asked for: it must be much younger than the bound."""


class Invalidation:
    """The feed of a near cache, on an event loop."""

    def __init__(self, core: Core, schema: MapSchema, entries: NearEntries) -> None:
        self._core = core
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

    async def begin(self, deadline: Deadline) -> Invalidation:
        """Raises TransientError, also when the members have not answered by the deadline."""
        try:
            async with asyncio.timeout(deadline.remaining()):
                await self._feed.open()
        except TimeoutError:
            self._core.ports.later(0.0, self._feed.close)
            raise NoAnswer("the members have not begun to tell changes in time") from None
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


Launch = Callable[[MapSchema, NearEntries, Deadline], Coroutine[Any, Any, Invalidation]]


class NearMap(Map[K, V]):
    """A ``Map`` whose ``get`` and ``get_all`` look into the memory of this client first.

    A value that they give was the newest one at most ``NearCache.max_staleness`` seconds ago;
    members tell of changes within milliseconds. Reads see this client's writes at once. In
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
        deadline = self._core.deadline()
        binding = await self._bound_now(deadline)
        physical = binding.codec.key(key)
        await self._listening(binding.schema, deadline)
        row = await self._row(binding, physical, deadline)
        if row is None:
            return default
        return (self._binding or binding).codec.value(row)

    async def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """The values of those of ``keys`` that exist, by key, in the order given."""
        wanted = list(keys)
        if self._passed_over():
            return await super().get_all(wanted)
        deadline = self._core.deadline()
        binding = await self._bound_now(deadline)
        await self._listening(binding.schema, deadline)
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
        return self._core.in_transaction or self._core.shared.held is not None

    async def _row(
        self, binding: Binding, key: PhysicalRow, deadline: Deadline
    ) -> PhysicalRow | None:
        row = self._find(binding, key)
        if row is not None:
            return row
        read = self._entries.begin(self._hashed(binding.schema, key))
        try:
            row = await binding.get(key, deadline)
        except AGAIN as error:
            # Sent again in another view, perhaps for another schema: not kept.
            read.stale = True
            _, row = await self._read_again(error, deadline, lambda b: b.get(key, deadline))
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

    async def _listening(self, schema: MapSchema, deadline: Deadline) -> None:
        """Hear of changes of the map; if that is not possible just now, the cache stays empty."""
        if self._is_listening(schema):
            return
        now = time.monotonic()
        if now < self._next_try:
            return
        # Half of the time is left for the request itself.
        patience = Deadline(min(BEGIN_TIMEOUT, deadline.left(inf) / 2))
        if not await self._begin_lock.take(patience):
            return
        try:
            if self._is_listening(schema) or now < self._next_try:
                return
            self._next_try = now + BEGIN_AGAIN
            await self.close()
            try:
                self._invalidation = await self._launch(schema, self._entries, patience)
                self._begun_for, self._next_try = schema.map_id, 0.0
            except (TransientError, LimitExceeded):
                return
        finally:
            self._begin_lock.release()

    def _is_listening(self, schema: MapSchema) -> bool:
        found = self._invalidation
        return found is not None and not found.failed and self._begun_for == schema.map_id

    async def _launched(
        self, schema: MapSchema, entries: NearEntries, deadline: Deadline
    ) -> Invalidation:
        return await Invalidation(self._core, schema, entries).begin(deadline)
