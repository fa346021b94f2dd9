"""``ChangeRanges``: the changes of a map between two places in their order, any number of times.

Changes have one order on every member: timestamp, partition, hash of the key. So one place says how
far a whole map has been read, and the changes between two places are always the same, whichever
members have the partitions by then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.client.asynchronous.listener import subscription_name
from remuda.client.core.core import Core
from remuda.client.core.tries import Tries
from remuda.client.requests import requests
from remuda.client.requests.change_batches import changed_batch, until
from remuda.client.requests.feeds import FeedPage, FeedPositions, FeedQuery, Place, changes_read
from remuda.client.values.predicate import quote
from remuda.errors import SnapshotTooOld, TransientError
from remuda.limits import CHANGES_STREAM_ROWS, PARTITIONS

LINGER = 0.02
"""Seconds for which a member may wait for a change when it is asked whether there is any."""
PENDING = 0.005
"""Seconds until a member is asked again whose last commits are not decided."""
REPEATS = 1000
"""As often as needed, for as long as a request may take."""
_Order = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16], npt.NDArray[np.uint64]]


class ChangeRanges:
    """Of the map ``name``, which has the id ``map_id`` (0: whichever has the name now). Errors:
    ChangesExpired, UndefinedMap, InsufficientPrivilege, and those of a lost cluster."""

    def __init__(self, core: Core, name: str, map_id: int = 0) -> None:
        self._core = core
        self.map_id = map_id
        text = f"SELECT * FROM {quote(name)}"  # noqa: S608 (quoted)
        self._rows = FeedQuery(subscription_name(), "stream", text, (), (), arrow=True)
        self._keys = replace(self._rows, name=subscription_name(), keys_only=True)

    async def now(self) -> int:
        """A timestamp above all commits that have been acknowledged."""
        found = await self._core.call(None, requests.cluster_info(self._core.clock), read=True)
        return found.clock

    async def earliest(self) -> int:
        """All changes after this timestamp are kept, for now."""
        positions, kept = FeedPositions(await self.now()), 0
        async for page in self._pages(self._keys, positions, (positions.low, None, 0), 1):
            kept = max(kept, page.kept_since)
        return kept

    async def changed(self, start: Place) -> bool:
        """Whether there is any change after a place; waits for one, a moment."""
        found, end = False, (await self.now(), None, 0)
        positions = FeedPositions.after(start)
        async for page in self._pages(self._keys, positions, end, 1, LINGER):
            found = found or bool(page.batches)
            if found:
                break
        return found

    async def place_after(self, start: Place, limit: int) -> tuple[Place, int]:
        """The place of the ``limit``-th change after ``start``, or, when there are not so many, one
        at or above all of them; and how many changes lie between."""
        end: Place = (await self.now(), None, 0)
        parts: list[_Order] = []
        for partitions in self._by_owner(range(PARTITIONS)):
            count, positions = 0, FeedPositions.after(start, partitions)
            async for page in self._pages(self._keys, positions, end, limit + 1):
                for batch in page.batches:
                    inside = until(batch, end)
                    parts.append(tuple(inside.column(i).to_numpy() for i in (1, 2, 3)))
                    count += inside.num_rows
                if count > limit:
                    break
        if not parts:
            return end, 0
        times, places, hashes = (np.concatenate([part[i] for part in parts]) for i in range(3))
        if len(times) <= limit:
            return end, len(times)
        last = np.lexsort((hashes, places, times))[limit - 1]
        return (int(times[last]), int(places[last]), int(hashes[last])), limit

    async def read(
        self, start: Place, end: Place, partitions: Sequence[int], rows: int = CHANGES_STREAM_ROWS
    ) -> AsyncGenerator[pa.RecordBatch]:
        """The changes of some partitions after ``start``, up to and with ``end``; those of each key
        in their order."""
        positions = FeedPositions.after(start, partitions)
        async for page in self._pages(self._rows, positions, end, rows):
            for batch in page.batches:
                inside = until(batch, end)
                if inside.num_rows:
                    yield changed_batch(inside, page)

    # --- inside -------------------------------------------------------------------------------

    async def _pages(
        self, query: FeedQuery, positions: FeedPositions, end: Place, rows: int, wait: float = 0.0
    ) -> AsyncGenerator[FeedPage]:
        """Ask the primaries, one after the other, until all partitions have reached ``end``."""
        core, tries = self._core, self._tries()
        while behind := positions.before(end):
            partitions = next(iter(self._by_owner(behind)))
            call = changes_read(
                query,
                positions,
                partitions,
                wait,
                min(rows, CHANGES_STREAM_ROWS),
                self.map_id,
                core.clock,
                core.view.number,
            )
            try:
                port = await core.reachable(core.view.owners[partitions[0]])
                page = await port.call(call, core.deadline())
            except SnapshotTooOld:
                raise
            except TransientError as error:
                await tries.after(error)
                continue
            tries, self.map_id = self._tries(), page.map_id
            positions.advance(partitions, page)
            yield page
            if not page.batches and any(p in partitions for p in positions.before(end)):
                await core.ports.pause(PENDING)

    def _tries(self) -> Tries:
        return self._core.tries(REPEATS, reads=True)

    def _by_owner(self, partitions: Sequence[int] | range) -> list[list[int]]:
        owners = self._core.view.owners
        found: dict[int, list[int]] = {}
        for partition in partitions:
            found.setdefault(owners[partition], []).append(partition)
        return list(found.values())
