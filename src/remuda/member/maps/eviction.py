"""Entries that go by themselves, though their time is not over: those that nobody has used for
``max_idle``, and those that have no room in a map with a limit.

Each member looks after the entries that it is the primary of. Entries that go are removed by small
writes (``member.transactions.small_writes``), each decided under the lock of its key: backups,
indexes and readers see an ordinary removal, and an entry that was used a moment ago stays. Locked
keys are left alone.

The victims when a map is full: of a random sample the entries that were used longest ago (LRU) or
most seldom (LFU, where uses count less as they get older). A sample is as good as an order of all
entries for the choice, and costs nothing at each access. Source: Redis, "Key eviction"
(approximated LRU with samples of 5); O'Neil et al. for why frequency needs ageing.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from remuda.catalog.catalog import Catalog
from remuda.datatypes.map_options import Eviction
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import from_micros
from remuda.datatypes.view import View
from remuda.errors import RemudaError
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core, bug
from remuda.member.base.wing import Wing
from remuda.member.state.transaction_sets import Key, Row
from remuda.member.transactions.small_writes import SmallWrite, SmallWrites
from remuda.member.transactions.transactions import Transactions
from remuda.storage.maps.accesses import Accesses
from remuda.storage.maps.candidates import Candidate, bytes_per_row, sampled, written_before
from remuda.storage.maps.entry_version import entry_version
from remuda.storage.maps.expiring_rows import end_of
from remuda.storage.maps.map_store import MapStore

log = logging.getLogger(__name__)

INTERVAL: Final = 0.1
"""Seconds between two looks at the maps: a map is above its limit for about so long."""
IDLE_SHARE: Final = 4
"""Idle entries go after ``max_idle`` and at most this part of it more (or ``IDLE_SWEEP_MAX``)."""
IDLE_SWEEP_MAX: Final = 30.0
SAMPLE: Final = 5
"""Of so many entries one goes."""
SAMPLE_ROWS: Final = 1024
REMOVAL_KEYS: Final = 256
REMOVALS_AT_ONCE: Final = 16
PAUSE: Final = 0.001
"""After so many writes have been begun (in one or two milliseconds), others have their turn."""
PARTITIONS_SPARE: Final = 1.25
REMOVAL_WAIT: Final = 1.0
"""Seconds; a removal that takes longer (its partition is being moved) goes on behind our back."""
UNUSED_KEPT: Final = 1024

Still = Callable[[Key, int], bool]
"""Whether the entry of a key that was written at this timestamp is still to go."""


@dataclass(slots=True)
class _Watched:
    """A map with options that say that entries go, and when its idle ones are looked for next."""

    schema: MapSchema
    sweep_at: float = 0.0


class MapEviction(Wing):
    def __init__(self, core: Core, transactions: Transactions, writes: SmallWrites) -> None:
        self._core = core
        self._transactions = transactions
        self._writes = writes
        self._catalog: Catalog | None = None
        self._watched: dict[int, _Watched] = {}
        self._looking = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self._generator = np.random.default_rng(core.world.chance.bits(64))

    def start(self) -> None:
        self._running = self._core.spawn(self.run(), "eviction")

    def close(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def run(self) -> None:
        """For as long as the member lives."""
        while True:
            if self._watched:
                await asyncio.sleep(INTERVAL)
            else:
                await self._core.pulse.next_beat()
            if self._core.catalog is not self._catalog:
                self._look_up()
            if self._watched and self._core.ready:
                await self.round()

    async def round(self) -> None:
        """One look at all maps."""
        async with self._looking:
            await self._round()

    async def _round(self) -> None:
        if self._core.catalog is not self._catalog:
            self._look_up()
        for watched in list(self._watched.values()):
            store = self._core.stores.get(watched.schema.map_id)
            if store is None or store.accesses is None:
                continue
            try:
                await self._look_at(watched, store, store.accesses)
            except RemudaError as error:
                log.debug("eviction from map %s: %s", watched.schema.name, error.message)
            except Exception as error:  # noqa: BLE001 (one map must not end all others')
                bug(error, f"eviction from map {watched.schema.name}")

    def _look_up(self) -> None:
        """The options of the maps may have changed."""
        core = self._core
        self._catalog = core.catalog
        maps = {s.map_id: s for s in core.catalog.maps if s.options.watched}
        known, self._watched = self._watched, {}
        for map_id, schema in maps.items():
            before = known.get(map_id)
            self._watched[map_id] = _Watched(schema, before.sweep_at if before else 0.0)
        for map_id, store in core.stores.items():
            wanted = maps.get(map_id)
            if wanted is None:
                store.accesses = None
                continue
            counting = wanted.options.eviction is Eviction.LFU
            if store.accesses is None or store.accesses.counting is not counting:
                store.accesses = Accesses(core.timestamp(), counting=counting)

    def on_view(self, before: View, after: View) -> None:
        """Nobody here knows when the entries that have come were used."""
        mine = self._core.number
        if set(after.partitions_of(mine)) <= set(before.partitions_of(mine)):
            return
        for store in self._core.stores.values():
            if store.accesses is not None:
                store.accesses.started = self._core.timestamp()

    async def _look_at(self, watched: _Watched, store: MapStore, accesses: Accesses) -> None:
        options, now = watched.schema.options, self._core.world.clock.monotonic()
        if options.max_idle and now >= watched.sweep_at:
            pause = options.max_idle / 1_000_000 / IDLE_SHARE
            watched.sweep_at = now + min(max(pause, INTERVAL), IDLE_SWEEP_MAX)
            await self._remove_idle(store, accesses, from_micros(options.max_idle))
        if options.eviction is not Eviction.NONE:
            await self._make_room(watched.schema, store, accesses)
        await self._forget_unused(store, accesses)

    # --- idle entries -------------------------------------------------------------------------

    async def _remove_idle(self, store: MapStore, accesses: Accesses, idle: int) -> None:
        at = self._core.timestamp()
        limit = at - idle
        if accesses.started >= limit:
            return

        def still(key: Key, begin: int) -> bool:
            return accesses.used(key, begin) < self._core.clock.last - idle

        for candidates in written_before(store, limit, at):
            unused = [c for c in candidates if accesses.used(c.key, c.begin) < limit]
            store.counters.idle += await self._remove(store, unused, still)
            await asyncio.sleep(0)

    # --- limits -------------------------------------------------------------------------------

    def _excess(self, schema: MapSchema, store: MapStore) -> int:
        """How many entries too many there are here."""
        rows = store.size(self._core.timestamp())
        if not rows:
            return 0
        options = schema.options
        share = len(self._core.view.partitions_of(self._core.number)) / PARTITIONS
        room = rows
        if options.max_entries:
            room = min(room, math.ceil(options.max_entries * share))
        if options.max_bytes:
            room = min(room, int(options.max_bytes * share / bytes_per_row(store)))
        return rows - room

    async def _make_room(self, schema: MapSchema, store: MapStore, accesses: Accesses) -> None:
        excess = self._excess(schema, store)
        while excess > 0:
            at = self._core.timestamp()
            count = min(SAMPLE * max(excess, SAMPLE), SAMPLE_ROWS)
            some = self._some_partitions(store.size(at), count)
            found = self._free(store, sampled(store, count, at, self._generator, some))
            found.sort(key=lambda c: self._worth(accesses, c, at))
            victims = found[: min(excess, max(1, len(found) // SAMPLE))]
            seen = {c.key: accesses.used(c.key, c.begin) for c in victims}

            def still(key: Key, begin: int, seen: dict[Key, int] = seen) -> bool:
                return accesses.used(key, begin) == seen[key]

            gone = await self._remove(store, victims, still)
            store.counters.evictions += gone
            if not gone:  # locked, moved or used: what is left is looked at the next time
                return
            await asyncio.sleep(0)
            excess = self._excess(schema, store)

    def _some_partitions(self, rows: int, count: int) -> frozenset[int] | None:
        """Random partitions of this member with enough rows for a sample of ``count``; None: all.
        Keys lie in them by chance, so it is as good as one of all rows, and those that go do so in
        few writes."""
        mine = self._core.view.partitions_of(self._core.number)
        wanted = math.ceil(PARTITIONS_SPARE * count * len(mine) / max(1, rows))
        if wanted >= len(mine):
            return None
        return frozenset(self._generator.choice(mine, wanted, replace=False).tolist())

    def _worth(self, accesses: Accesses, candidate: Candidate, at: int) -> tuple[float, int]:
        """Those with the lowest go."""
        used = accesses.used(candidate.key, candidate.begin)
        if not accesses.counting:
            return 0.0, used
        return accesses.frequency(candidate.key, candidate.begin, at), used

    # --- removing -----------------------------------------------------------------------------

    def _free(self, store: MapStore, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Those that no transaction has locked, and no write is about to change."""
        map_id, pending = store.schema.map_id, self._transactions.pending
        locks = self._transactions.locks
        return [
            candidate
            for candidate in candidates
            if pending.holder((map_id, candidate.key), write=True) is None
            and locks.holder((map_id, candidate.key), None, write=True) is None
        ]

    async def _remove(self, store: MapStore, candidates: Sequence[Candidate], still: Still) -> int:
        """The number of entries that have gone."""
        groups: dict[int, list[Key]] = {}
        for candidate in self._free(store, candidates):
            groups.setdefault(candidate.partition, []).append(candidate.key)
        removals: list[asyncio.Future[int]] = []
        for partition, keys in groups.items():
            for start in range(0, len(keys), REMOVAL_KEYS):
                part = keys[start : start + REMOVAL_KEYS]
                removals.append(self._begin_removal(store, partition, part, still))
                if len(removals) % REMOVALS_AT_ONCE == 0:
                    await asyncio.sleep(PAUSE)
        if not removals:
            return 0
        finished, _ = await asyncio.wait(removals, timeout=REMOVAL_WAIT)
        return sum(removal.result() for removal in finished)

    def _begin_removal(
        self, store: MapStore, partition: int, keys: Sequence[Key], still: Still
    ) -> asyncio.Future[int]:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def decide(
            before: list[Row | None],
        ) -> tuple[list[tuple[Key, Row | None]], list[Row | None]]:
            copy = self._core.copy_of(store.schema.map_id, partition)
            at = self._core.timestamp()
            gone: list[tuple[Key, Row | None]] = []
            for key, row in zip(keys, before, strict=True):
                begin = entry_version(copy, key, at) if row is not None else None
                if begin is not None and still(key, begin):
                    gone.append((key, None))
            return gone, [()] * len(gone)

        def answered(answer: list[Row | None] | RemudaError) -> None:
            if done.done():
                return
            if isinstance(answer, RemudaError):
                log.debug("entries stay in map %s: %s", store.schema.name, answer.message)
                done.set_result(0)
                return
            done.set_result(len(answer))

        self._writes.write(SmallWrite(store.schema, partition, keys, decide, answered))
        return done

    async def _forget_unused(self, store: MapStore, accesses: Accesses) -> None:
        """Of entries that have gone otherwise."""
        at = self._core.timestamp()
        if len(accesses) <= UNUSED_KEPT + 2 * store.size(at):
            return
        for number, key in enumerate(list(accesses.last)):
            if end_of(store, key, at) is None:
                accesses.forget(key)
            if number % SAMPLE_ROWS == 0:
                await asyncio.sleep(0)
                at = self._core.timestamp()
