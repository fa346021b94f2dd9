"""Waiting for writes of jobs that are prepared in the stores of this member and not decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from remuda.datatypes.timestamp import FOREVER
from remuda.member.base.core import Core


class PreparedWrites:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._settled: dict[int, list[Callable[[], None]]] = {}
        self.readers = self._settled.keys(), self.wake  # see ``PendingParts.on_lower``
        self._holds = 0
        """While it is not 0, nothing of partitioned maps is prepared."""
        self._released: list[asyncio.Future[None]] = []

    @property
    def waiting(self) -> int:
        """Actions that wait for a decision."""
        return sum(len(actions) for actions in self._settled.values())

    def busy(self, map_id: int, at: int = FOREVER - 1) -> bool:
        """Whether a write of the map is prepared here at or below ``at`` and not decided."""
        store = self._core.stores.get(map_id)
        return store is not None and store.pending_at_or_below(at)

    def when_settled(self, map_id: int, action: Callable[[], None]) -> None:
        """Call ``action`` after the next decision (then ask ``busy`` again)."""
        self._settled.setdefault(map_id, []).append(action)

    async def settled(self, map_id: int, at: int = FOREVER - 1) -> None:
        """Raises PartitionsUnreachable when something at or below ``at`` is in doubt."""
        while self.busy(map_id, at):
            self._core.require_decidable(map_id, at)
            await self.next_decision(map_id)

    async def next_decision(self, map_id: int) -> None:
        event = asyncio.Event()
        self.when_settled(map_id, event.set)
        await event.wait()

    def wake(self, map_id: int) -> None:
        """Have those that wait by ``when_settled`` ask again: a write of the map was decided."""
        for action in self._settled.pop(map_id, []):
            asyncio.get_running_loop().call_soon(action)

    async def hold(self) -> None:
        """From now on no job of a partitioned map is prepared here, one of a map that is made
        meanwhile neither; returns when none is pending in any copy. ``release`` must follow, even
        when this call is cancelled."""
        self._holds += 1
        while (map_id := self._pending_map()) is not None:
            await self.next_decision(map_id)

    def _pending_map(self) -> int | None:
        for map_id, store in self._core.stores.items():
            copies = self._core.copies_of(map_id)
            if not store.schema.replicated and any(copy.job_pending for copy in copies):
                return map_id
        return None

    def held(self, map_id: int) -> bool:
        store = self._core.stores.get(map_id)
        return self._holds > 0 and (store is None or not store.schema.replicated)

    def release(self) -> None:
        self._holds -= 1
        released, self._released = self._released, []
        for future in released:
            if not future.done():
                future.set_result(None)

    async def while_held(self, map_id: int) -> None:
        while self.held(map_id):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._released.append(future)
            await future
