"""Freed memory goes back to the operating system: the allocators would keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from remuda.limits import MIB
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload

GIVE_BACK_SIZE: Final = 8 * MIB
"""After so much has been freed it is worth the page faults of whoever needs memory next."""
GIVE_BACK_INTERVAL: Final = 2.0


class MemoryReturn:
    def __init__(self, core: Core, offload: Offload) -> None:
        self._core = core
        self._offload = offload
        self._last = 0.0
        self._freed: dict[int, int] = {}
        """Map id -> what its store had freed at the last check."""
        self._due = 0

    def check(self) -> None:
        """Called now and then: give back when the stores have freed much since the last time."""
        core = self._core
        freed = {m: sum(s.freed for s in core.copies_of(m)) for m in core.stores}
        self._due += sum(size - self._freed.get(map_id, 0) for map_id, size in freed.items())
        if self._freed.keys() - freed.keys():
            self._due += GIVE_BACK_SIZE  # a map was dropped
        self._freed = freed
        now = self._core.world.clock.monotonic()
        if self._due >= GIVE_BACK_SIZE and now - self._last >= GIVE_BACK_INTERVAL:
            self._due = 0
            self._last = now
            self._offload(self._give_back, _nothing)

    def _give_back(self) -> Callable[[], None]:
        self._core.world.memory.give_back()
        return _nothing


def _nothing() -> None:
    """There is nothing to do on the loop afterwards."""
