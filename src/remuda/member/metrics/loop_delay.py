"""How late the member's event loop is: every request waits at least as long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from remuda.member.metrics.families import Family, Histogram
from remuda.world import Clock

INTERVAL: Final = 0.5
"""Seconds between two looks."""


class LoopDelay:
    """``run`` sleeps again and again, and measures how much later than asked it goes on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._late = Histogram()

    async def run(self) -> None:
        while True:
            asked = self._clock.monotonic()
            await asyncio.sleep(INTERVAL)
            self._late.observe(max(0.0, self._clock.monotonic() - asked - INTERVAL))

    def families(self) -> Iterator[Family]:
        yield Family(
            "remuda_loop_delay_seconds",
            "histogram",
            f"How late the event loop runs a timer, looked at every {INTERVAL:g} s.",
            self._late.samples({}),
        )
