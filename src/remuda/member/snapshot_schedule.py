"""Snapshots on a schedule: the lowest member makes one every so many seconds, under one name.

Where members keep logs these are increments, with a base now and then, so that no restore has to go
through too many; otherwise each is a base. One that fails is logged, the next comes at its time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from remuda.datatypes.timestamp import from_micros
from remuda.errors import RemudaError
from remuda.member.core import Core
from remuda.member.log import fields

log = logging.getLogger(__name__)

NAME: Final = "scheduled"
BASE_EVERY: Final = 100
"""So many cuts have one base."""


class SnapshotSchedule:
    def __init__(
        self,
        core: Core,
        make: Callable[[str, bool], Awaitable[object]],
        expire: Callable[[str, int], Awaitable[object]],
    ) -> None:
        """``make(name, increment)`` makes a cut; ``expire(name, before)`` gives old ones up."""
        self._core = core
        self._make = make
        self._expire = expire
        self._made = 0

    def start(self) -> None:
        if self._core.config.snapshot_every:
            self._core.spawn(self._run(), "scheduled snapshots")

    async def _run(self) -> None:
        config, clock = self._core.config, self._core.world.clock
        due = clock.monotonic() + config.snapshot_every
        while True:
            await asyncio.sleep(max(0.0, due - clock.monotonic()))
            due = max(due + config.snapshot_every, clock.monotonic())  # late ones are left out
            if self._core.ready and self._core.coordinator == self._core.number:
                await self._one()

    async def _one(self) -> None:
        config = self._core.config
        increment = self._core.wal.active and self._made % BASE_EVERY != 0
        try:
            await self._make(NAME, increment)
            self._made += 1
            if config.snapshot_keep:
                now = self._core.world.clock.wall_micros()
                await self._expire(NAME, from_micros(now - int(config.snapshot_keep * 1e6)))
        except RemudaError as error:
            log.warning("scheduled snapshot failed", extra=fields(cause=str(error)))
