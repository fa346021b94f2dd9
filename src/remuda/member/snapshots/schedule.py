"""Snapshots that members make by themselves: on a schedule, and when the members have changed. The
lowest member makes them.

On a schedule: one every so many seconds, under one name. Where members keep logs these are
increments, with a base now and then, so that no restore has to go through too many; otherwise each
is a base. One that fails is logged, the next comes at its time.

When the members have changed: neither increments nor the archive of logs go on from a cut of
another view, and commits from then on are in a gap until there is a cut of this one. So the
snapshot that has the last cut gets another, as soon as all copies are in their places.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from remuda.cluster import movement
from remuda.datatypes.timestamp import from_micros
from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.state.log import fields

log = logging.getLogger(__name__)

NAME: Final = "scheduled"
BASE_EVERY: Final = 100
"""So many cuts have one base."""
LOOK_EVERY: Final = 2.0
"""Seconds between two looks at the view; one that is the same twice is at rest."""
LOOK_EVERY_MAX: Final = 300.0
"""The same after failures: each attempt may read every row, and fill a disk that is full."""


class SnapshotSchedule:
    def __init__(
        self,
        core: Core,
        make: Callable[[str, bool], Awaitable[object]],
        expire: Callable[[str, int], Awaitable[object]],
        newest: Callable[[], Awaitable[tuple[str, int]]],
    ) -> None:
        """``make(name, increment)`` makes a cut; ``expire(name, before)`` gives old ones up;
        ``newest()`` gives the snapshot that has the last cut with logs, and the view of that."""
        self._core = core
        self._make = make
        self._expire = expire
        self._newest = newest
        self._made = 0

    def start(self) -> None:
        config = self._core.config
        if config.snapshot_every:
            self._core.spawn(self._run(), "scheduled snapshots")
        moments = config.snapshot_every or config.log_archive
        if config.snapshot_store and moments and self._core.wal.active:
            self._core.spawn(self._follow(), "snapshots after a change of the members")

    @property
    def _is_mine(self) -> bool:
        return self._core.ready and self._core.coordinator == self._core.number

    async def _run(self) -> None:
        config, clock = self._core.config, self._core.world.clock
        due = clock.monotonic() + config.snapshot_every
        while True:
            await asyncio.sleep(max(0.0, due - clock.monotonic()))
            due = max(due + config.snapshot_every, clock.monotonic())  # late ones are left out
            if self._is_mine:
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

    # --- when the members have changed ----------------------------------------------------------

    async def _follow(self) -> None:
        seen = covered = 0
        pause = LOOK_EVERY
        while True:
            await asyncio.sleep(pause)
            view, seen_before = self._core.view.number, seen
            seen = view
            if view != seen_before:
                pause = LOOK_EVERY
            if view in {covered, 0} or view != seen_before or not self._is_mine:
                continue
            if movement.progress(self._core.view, self._core.config.backups + 1)[
                "partitions_to_place"
            ]:
                continue  # every move is a view more
            try:
                name, of_view = await self._newest()
                if name and of_view != view:
                    log.info("snapshot: the members have changed", extra=fields(snapshot=name))
                    await self._make(name, True)
                covered, pause = view, LOOK_EVERY
            except RemudaError as error:
                pause = min(2 * pause, LOOK_EVERY_MAX)
                log.warning(
                    "snapshot after a change of the members failed; tried again",
                    extra=fields(cause=str(error)),
                )
