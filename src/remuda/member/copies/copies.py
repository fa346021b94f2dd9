"""The places of rows on this member, as views change them (design rules 16 and 20).

A partition that this member becomes the primary of was backed up here: its rows go from the backup
store to the primary one, exactly as they are; until they are there the member is not ready. A
partition that it gives away is closed at a timestamp H, so that readers below H find it; a
partition that it keeps a backup of moves to the backup store. Rows that a view says nothing of any
more are discarded.
"""

from __future__ import annotations

import asyncio
import logging

from remuda.datatypes.timestamp import handover
from remuda.datatypes.view import View
from remuda.errors import RemudaError
from remuda.limits import CHUNK_ROWS
from remuda.member.base.core import Core, attempt
from remuda.member.base.offload import Offload
from remuda.member.base.wing import Wing
from remuda.member.commits.participants import CommitParticipants
from remuda.member.state.log import fields
from remuda.storage.maps.late_decisions import take_versions
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import Arrival, Extraction, joined

log = logging.getLogger(__name__)

READY_KEY = "promotion"
RETRY_PAUSE = 0.1


class Copies(Wing):
    def __init__(self, core: Core, commits: CommitParticipants, offload: Offload) -> None:
        self._core = core
        self._commits = commits
        self._offload = offload
        self._promoting: asyncio.Task[None] | None = None
        self._handed_over = frozenset[int]()
        """Of what is not moved yet: given by members that live on."""

    def start(self) -> None:
        core = self._core
        if core.primary_here is None:
            core.primary_here = frozenset(core.view.partitions_of(core.number))
        core.room.on_view(core.view, core.number)

    # --- views --------------------------------------------------------------------------------

    def on_view(self, before: View, view: View) -> None:
        core = self._core
        core.room.on_view(view, core.number)
        here = core.primary_here
        if here is None:
            here = frozenset(before.partitions_of(core.number))
        mine = frozenset(view.partitions_of(core.number))
        gained, gone = mine - here, here - mine
        kept = frozenset(view.backed_up_by(core.number))
        core.primary_here = mine
        for map_id in self._partitioned():
            waiting = core.unmoved.get(map_id, frozenset())
            # What it was about to become the primary of, and is not any more, never left the
            # backup store.
            self._give_away(map_id, gone - waiting, kept)
            core.unmoved[map_id] = (waiting & mine) | gained
            stale = (waiting | frozenset(before.backed_up_by(core.number))) - kept - mine
            if stale and map_id in core.backup_stores:
                core.backup_stores[map_id].discard_partitions(stale)
        skipped = view.number > before.number + 1  # in one of these, anybody may have had it
        handed_over = frozenset(p for p in gained if skipped or before.owners[p] in view.by_number)
        self._handed_over = (self._handed_over & mine) | handed_over
        if gained:
            log.info(
                "promoted", extra=fields(partitions=len(gained), handed_over=len(self._handed_over))
            )
            self._promote()

    def _partitioned(self) -> list[int]:
        stores = self._core.stores
        return [map_id for map_id, store in stores.items() if not store.schema.replicated]

    def _give_away(self, map_id: int, gone: frozenset[int], kept: frozenset[int]) -> None:
        """In one step: from now on another member serves them."""
        if not gone:
            return
        core = self._core
        store = core.stores[map_id]
        behind = gone & kept
        if behind:
            attempt("rows of a partition that was given away", lambda: self._demote(map_id, behind))
        at = handover(core.timestamp())
        core.clock.observe(at)
        store.close_partitions(gone, at)

    def _demote(self, map_id: int, partitions: frozenset[int]) -> None:
        """This member keeps a backup of what it was the primary of."""
        source, target = self._core.stores[map_id], self._core.backup_store(map_id)
        target.discard_partitions(partitions)
        target.raise_floor(source.floor)
        # Piece by piece: before they are the target's, rows are there once more.
        for piece in joined(source.extraction(partitions).versions(), CHUNK_ROWS):
            target.install(target.arrival([piece]))

    # --- promotion ----------------------------------------------------------------------------

    def _promote(self) -> None:
        waiting = frozenset[int]().union(*self._core.unmoved.values())
        count = len(waiting)
        self._core.readiness.take(waiting)
        self._core.readiness.hold(
            READY_KEY, f"it takes over the rows of {count} partitions of which it kept backups"
        )
        if self._promoting is None or self._promoting.done():
            self._promoting = self._core.spawn(self._move_all(), "promotion")

    async def _move_all(self) -> None:
        core = self._core
        while any(core.unmoved.values()):
            for map_id in [m for m, waiting in core.unmoved.items() if waiting]:
                try:
                    await self._move(map_id)
                except RemudaError as error:  # tried again: the map may have been dropped
                    log.warning("promotion goes on", extra=fields(map=map_id, error=error.message))
                    await asyncio.sleep(RETRY_PAUSE)
                except Exception:  # a bug: without an end of this the member would never serve
                    log.exception("promotion goes on", extra=fields(map=map_id))
                    await asyncio.sleep(RETRY_PAUSE)
        core.unmoved.clear()
        self._handed_over = frozenset()
        core.readiness.release(READY_KEY)
        log.info("promotion done")
        core.listeners.placed.tell()

    async def _move(self, map_id: int) -> None:
        """Take what is waiting of a map from its backup store to its primary store."""
        core = self._core
        if core.stores.get(map_id) is None:
            core.unmoved.pop(map_id, None)
            return
        if self._handed_over:
            await self._after_the_former()
        source = core.backup_store(map_id)
        while source.job_pending and core.backup_stores.get(map_id) is source:
            await self._commits.next_decision(map_id)
        if core.backup_stores.get(map_id) is not source:
            return  # the map was dropped: no job of it is decided in its stores any more
        target = core.stores[map_id]
        partitions = core.unmoved.get(map_id, frozenset())
        source.resting += 1
        try:
            extraction = source.extraction(partitions)
            arrived = await self._offload.result(lambda: _arranged(extraction, target))
            if core.stores.get(map_id) is not target or source.job_pending:
                return  # dropped, or another job is pending: again
            if core.unmoved.get(map_id) != partitions:
                return  # another view has come: again
            if target.schema.version != extraction.schema.version:
                return  # altered meanwhile: again
            self._install(source, target, extraction, arrived, partitions)
            core.unmoved.pop(map_id)
        finally:
            source.resting -= 1
        self._commits.wake(map_id)

    async def _after_the_former(self) -> None:
        """Those who have given partitions away are in this view: they have closed them, below the
        clock that came with that news. (Or their leases are over.)"""
        readiness = self._core.readiness
        while "takeover" in readiness.holds:
            await asyncio.sleep(RETRY_PAUSE / 10)

    def _install(
        self,
        source: MapStore,
        target: MapStore,
        extraction: Extraction,
        arrived: list[Arrival],
        partitions: frozenset[int],
    ) -> None:
        """In one step of the loop. The rows come with their history; where the target still has
        rows of an earlier time, they begin where those end, and keep their origins. (Each partition
        by itself: others were given away later, and rows that were written to this one meanwhile
        began before that. Of keys with a write that was undecided when its partition was given
        away, each version is looked at: the write may have committed below the cut.)"""
        cuts = target.last_ends_of(partitions)
        self._core.listeners.moved.tell(source, target, partitions, cuts)
        ends, more = source.refreshed(extraction)
        first = 0
        for each in arrived:
            stop = first + len(each.ends)
            each.ends = ends[first:stop]
            target.come_back(each, cuts)
            first = stop
        if more:
            target.come_back(target.arrival(more), cuts)
        keys = self._core.given_away.take_keys(target.schema.map_id, partitions)
        take_versions(target, source, keys, cuts)
        target.floors.lift_reads(source.floor)
        # Jobs may have written unique values to other copies, which this store does not know of.
        target.mixed_until = target.taken_over_at = self._core.timestamp()
        source.discard_partitions(partitions)

    # --- state --------------------------------------------------------------------------------

    def gauges(self) -> dict[str, int]:
        return {"promoting": sum(1 for waiting in self._core.unmoved.values() if waiting)}


def _arranged(extraction: Extraction, target: MapStore) -> list[Arrival]:
    """In order, piece by piece: before they are the target's, rows are there once more."""
    return [target.arrival([piece]) for piece in joined(extraction.versions(), CHUNK_ROWS)]
