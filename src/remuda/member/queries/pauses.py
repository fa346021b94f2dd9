"""Test pauses: places where a statement stops until RESUME_PAUSED_QUERY.

The setting ``test_pauses`` names them. They are for tests of clients and of cancelling; a statement
that pauses still obeys its timeout, a cancel, and the end of its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from remuda.errors import QueryTimeout


class Pauses:
    """Those of one statement. ``release`` opens all of them, also those not reached yet."""

    def __init__(self, places: Iterable[str]) -> None:
        self._places = frozenset(places)
        self._released = asyncio.Event()

    def holds(self, place: str) -> bool:
        return place in self._places and not self._released.is_set()

    async def at(self, place: str, timeout: float | None) -> None:
        """Wait here, if it is one of the places. Raises QueryTimeout after ``timeout`` seconds."""
        if not self.holds(place):
            return
        try:
            async with asyncio.timeout(timeout):
                await self._released.wait()
        except TimeoutError:
            raise QueryTimeout(
                f"the statement paused at {place} and was not resumed within {timeout:g} s"
            ) from None

    def release(self) -> None:
        self._released.set()
