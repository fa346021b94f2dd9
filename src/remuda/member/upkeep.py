"""Upkeep of what a member stores, in slices between requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from remuda.datatypes.timestamp import from_micros
from remuda.member.base.core import Core, attempt, bug
from remuda.member.base.memory_return import MemoryReturn
from remuda.member.base.offload import Offload
from remuda.member.base.wing import Wing
from remuda.member.changes.change_retention import ChangeRetention

INTERVAL = 0.05
QUIET_AFTER = 1.0
"""Seconds without work and without a change of a store, after which the upkeep rests."""
QUIET_LOOKS = 2.0
"""Seconds between two looks then."""
VERSIONS_KEPT = from_micros(10_000_000)
"""Versions of the last ten seconds are kept for readers on other members."""
EXPIRY_INTERVAL = 5.0


class Upkeep(Wing):
    """``oldest_reads`` are asked for the timestamps that somebody still reads, ``expire_jobs`` is
    called every ``EXPIRY_INTERVAL`` seconds."""

    def __init__(
        self,
        core: Core,
        offload: Offload,
        retention: ChangeRetention,
        *,
        oldest_reads: Sequence[Callable[[], int | None]],
        expire_jobs: Callable[[], object],
    ) -> None:
        self._core = core
        self._memory = MemoryReturn(core, offload)
        self._retention = retention
        self._oldest_reads = oldest_reads
        self._expire_jobs = expire_jobs
        self._seen, self._changed_at = 0, 0.0
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = self._core.spawn(self.run(), "upkeep")

    def close(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def run(self) -> None:
        """Until it is cancelled. One slice takes a few milliseconds."""
        core, loop = self._core, asyncio.get_running_loop()
        expiry = loop.time() + EXPIRY_INTERVAL
        while True:
            more = await self._slices()
            attempt("return of memory", self._memory.check)
            attempt("measuring of what is stored", core.room.look)
            if loop.time() >= expiry:
                attempt("expiry of jobs", self._expire_jobs)
                expiry = loop.time() + EXPIRY_INTERVAL
            if more:
                await asyncio.sleep(0.001)
            elif not self._quiet(loop.time()) or await self._rest(loop.time() + QUIET_LOOKS):
                await asyncio.sleep(INTERVAL)

    async def _rest(self, until: float) -> bool:
        """Whether something has begun; versions get old without that."""
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            if await self._core.pulse.rest():
                return True
        return False

    def _quiet(self, now: float) -> bool:
        core = self._core
        stores = (*core.stores.values(), *core.backup_stores.values())
        seen = sum([store.changes for store in stores], core.room.stored.held)
        if seen != self._seen:
            self._seen, self._changed_at = seen, now
        return now - self._changed_at >= QUIET_AFTER

    async def _slices(self) -> bool:
        """One of each store; whether there is more to do. Nothing here names a store between two
        calls: that would keep the rows of a map that was dropped."""
        core, more, horizon = self._core, False, self.horizon()
        for map_id, store in [*core.stores.items(), *core.backup_stores.items()]:
            try:
                more = store.maintain(self._retention.horizon(store, horizon)) or more
            except Exception as error:  # noqa: BLE001 (one map's upkeep must not end all others')
                bug(error, f"upkeep of map {map_id}")
            await asyncio.sleep(0)
        return more

    def horizon(self) -> int:
        """Nobody reads below it any more."""
        now = from_micros(self._core.world.clock.wall_micros()) - VERSIONS_KEPT
        reads = [oldest() for oldest in self._oldest_reads]
        return min(now, *(read for read in reads if read is not None), now)
