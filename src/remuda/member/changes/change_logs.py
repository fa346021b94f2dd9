"""The changes of the partitions that this member is the primary of, from its stores.

A position is a timestamp up to which a reader knows everything of a partition. Later changes lie in
the versions of the map (``storage.maps.change_log``), as far back as the store keeps them: ten
seconds, or as the map's option ``change_retention`` says. Partitions come with their history. Where
one comes back to a member that was its primary before, the changes before it was given away lie
there still, and those since then come with it; the timestamp of the handover, at which all its rows
end and begin, shows that nothing has happened (``datatypes.timestamp.HANDOVER_MARK``). So a reader
who goes to the new primary with the position that the old one gave it misses nothing and hears
nothing twice.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER, from_micros, to_micros
from remuda.errors import ChangesExpired, UndefinedMap, ViewChanged
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.storage.chunks.chunk import Flags, Times
from remuda.storage.maps.change_log import ChangeLog, Changes, Place, Scan, joined
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import EVERY_PARTITION

KEPT = from_micros(10_000_000)
"""As long as that the stores keep versions, at least (``member.VERSIONS_KEPT``)."""
ROWS_HERE = 20_000
"""So many rows may be looked at on the loop."""
BLOCK = 8192
WANTED_FOR = 5.0
"""Seconds for which a reader who reads page by page is believed to go on."""
EVERYTHING = (1 << 64) - 1
NOT_ASKED = -1
EVERY_ROW = 1 << 60


class Positions:
    """How far a reader knows each partition: everything at or below ``times``; where ``hashes`` is
    not ``EVERYTHING``, of ``times`` itself only the changes up to that hash."""

    def __init__(self) -> None:
        self.times = np.full(PARTITIONS, NOT_ASKED, dtype=np.int64)
        self.hashes = np.full(PARTITIONS, EVERYTHING, dtype=np.uint64)

    def set(self, partitions: Iterable[int], timestamp: int, hash_: int = EVERYTHING) -> None:
        where = list(partitions)
        self.times[where] = timestamp
        self.hashes[where] = hash_

    @property
    def asked(self) -> Flags:
        found: Flags = self.times != NOT_ASKED
        return found

    @property
    def complete(self) -> Times:
        """Everything at or below is known."""
        return np.where(self.hashes == EVERYTHING, self.times, self.times - 1)

    def advance(self, high: int) -> None:
        """Everything at or below ``high`` is known now."""
        behind = self.asked & (self.times <= high)
        self.times[behind] = high
        self.hashes[behind] = EVERYTHING

    @property
    def start(self) -> Place:
        """Everything before this place in the order of changes, and at it, is known."""
        begin = self.complete + 1
        time = int(begin[self.asked].min())
        partition = int(np.flatnonzero(self.asked & (begin == time))[0])
        if self.hashes[partition] == EVERYTHING:
            return time, partition - 1, EVERYTHING
        return time, partition, int(self.hashes[partition])

    def new(self, changes: Changes) -> Changes:
        """Those of ``changes`` that the reader does not know."""
        if not len(changes):
            return changes
        known = self.times[changes.partitions]
        fresh = changes.times > known
        here = (changes.times == known) & (changes.hashes > self.hashes[changes.partitions])
        return changes.where((fresh | here) & (known != NOT_ASKED))


@dataclass(frozen=True, slots=True)
class News:
    """``changes`` that a reader does not know, in order, up to ``end``: a place, or, when it is
    None, everything at or below the timestamp ``high``."""

    changes: Changes
    high: int
    end: Place | None


class ChangeLogs:
    def __init__(self, core: Core, offload: Offload, on_found: Callable[[int], None]) -> None:
        """``on_found`` is called with a map id when something has happened to the map."""
        self._core = core
        self._offload = offload
        self._on_found = on_found
        self._logs: dict[int, ChangeLog] = {}
        self._wanted: dict[int, tuple[int, float]] = {}
        """By map id: the lowest position that was read from lately, and when (monotonic)."""
        self._advancing: set[int] = set()
        """Maps that a read is looking at; others take what it finds."""
        self._floors: dict[int, Times] = {}
        """By map id, and partition: before this, its changes did not come with it."""

    # --- reading ------------------------------------------------------------------------------

    async def advance(self, map_id: int) -> bool:
        """Take in what has happened to a map that somebody reads; whether anything has. A log that
        the store cannot continue is dropped."""
        log, store = self._logs.get(map_id), self._core.stores.get(map_id)
        if log is None or store is None:
            return False
        closed = self._closed(store)
        if closed is None or closed <= log.high:
            return False
        if log.high < store.floors.history:
            # Nobody has read for longer than changes are kept: what ended after the log and before
            # the floor is gone. A reader that stopped there must hear that, and a new log begins.
            self.release(map_id)
            self._on_found(map_id)
            return True
        scan = await self._ran(log.ahead(store.extraction(EVERY_PARTITION), closed))
        found = log.take(scan)
        log.forget(min(closed - KEPT, self._wanted_of(map_id)))
        if found:
            self._on_found(map_id)
        return found

    def _wanted_of(self, map_id: int) -> int:
        """From where on slow readers still need the log."""
        start, at = self._wanted.get(map_id, (FOREVER, 0.0))
        return start if self._core.world.clock.monotonic() - at < WANTED_FOR else FOREVER

    def _want(self, map_id: int, start: int) -> None:
        if start <= self._wanted_of(map_id):
            self._wanted[map_id] = start, self._core.world.clock.monotonic()

    async def read(self, map_id: int, name: str, positions: Positions, rows: int) -> News:
        """The changes that a reader with ``positions`` does not know yet: more than ``rows``
        changes, if there are so many. Raises UndefinedMap, ViewChanged (this member is not the
        primary of a partition), ChangesExpired."""
        start = self._start(map_id, name, positions)
        self._want(map_id, start)
        log = self._logs.get(map_id)
        if log is None:
            # Above what is closed, the log would pass over what commits there yet, for all readers.
            store = self._core.stores[map_id]
            closed = self._closed(store)
            settled = self._kept(store, positions) if closed is None else closed
            log = self._logs[map_id] = ChangeLog(min(start, settled))
        if start < log.low:
            pinned = self._core.stores[map_id].extraction(EVERY_PARTITION)
            log.take(await self._ran(log.behind(pinned, start)))
        if map_id not in self._advancing:
            self._advancing.add(map_id)
            try:
                await self.advance(map_id)
            finally:
                self._advancing.discard(map_id)
        # Partitions may have moved meanwhile.
        if self._logs.get(map_id) is not log or self._start(map_id, name, positions) < log.low:
            return News(joined([]), 0, positions.start)
        return self._news(log, positions, start, rows)

    async def after(self, schema: MapSchema, partition: int, timestamp: int) -> tuple[Changes, int]:
        """The changes of one partition of a map since ``timestamp``, and up to when that is
        everything. Raises as ``read``."""
        positions = Positions()
        positions.set((partition,), timestamp)
        news = await self.read(schema.map_id, schema.name, positions, EVERY_ROW)
        return news.changes, max(news.high, timestamp)

    def release(self, map_id: int) -> None:
        """Nobody reads the map any more."""
        self._logs.pop(map_id, None)
        self._wanted.pop(map_id, None)

    def _start(self, map_id: int, name: str, positions: Positions) -> int:
        """From where on the log must reach."""
        store = self._core.stores.get(map_id)
        if store is None:
            raise UndefinedMap(f'map "{name}" was dropped')
        self._require_primary(map_id, store, positions)
        start = int(positions.complete[positions.asked].min())
        kept, log = self._kept(store, positions), self._logs.get(map_id)
        if start < kept and (log is None or start < log.low):
            raise expired(name, start, kept)
        return start

    async def _ran(self, scan: Scan) -> Scan:
        """Many rows are looked at on another thread."""
        return scan.run() if scan.rows <= ROWS_HERE else await self._offload.result(scan.run)

    def _news(self, log: ChangeLog, positions: Positions, start: int, rows: int) -> News:
        place, parts, count = positions.start, [], 0
        for period in log.since(start):
            at = period.after(place)
            while at < len(period):
                stop = period.whole(at + max(BLOCK, rows))
                fresh = positions.new(period.slice(at, stop))
                parts.append(fresh)
                count += len(fresh)
                at = stop
                if count > rows:
                    return News(joined(parts), log.high, period.place(stop - 1))
        return News(joined(parts), log.high, None)

    def kept_since(self, map_id: int, positions: Positions) -> int:
        """All changes of the partitions that were asked for after this timestamp are here."""
        store = self._core.stores.get(map_id)
        return 0 if store is None else self._kept(store, positions)

    def _closed(self, store: MapStore) -> int | None:
        """A timestamp at or below which nothing of the map can commit any more; None: a bulk write
        is being committed."""
        at = min(self._core.timestamp(), store.awaited - 1)
        return None if store.pending_at_or_below(at) else at

    def _require_primary(self, map_id: int, store: MapStore, positions: Positions) -> None:
        core = self._core
        if store.schema.replicated:
            return
        here = core.primary_here
        if here is None:
            here = frozenset(core.view.partitions_of(core.number))
        here -= core.unmoved.get(map_id, frozenset())
        for partition in np.flatnonzero(positions.asked).tolist():
            if partition not in here:
                raise ViewChanged(
                    f"member {core.number} is not the primary of partition {partition}",
                    hint="Ask the member that the newest view names.",
                )

    def _kept(self, store: MapStore, positions: Positions) -> int:
        """All changes of the partitions that were asked for after it are in the store."""
        map_id, kept = store.schema.map_id, store.floors.history
        floors = self._floors.get(map_id)
        if floors is not None:
            kept = max(kept, int(floors[positions.asked].max()))
        return kept

    # --- partitions that move -----------------------------------------------------------------

    def on_moved(
        self, source: MapStore, target: MapStore, partitions: frozenset[int], cuts: Times
    ) -> None:
        """Partitions are about to leave the backup store ``source`` for ``target``, where nothing
        of them begins before ``cuts``, by partition (0: everything stays as it is)."""
        map_id = target.schema.map_id
        self._logs.pop(map_id, None)  # it has not seen what is below its end and comes now
        floors = self._floors.setdefault(map_id, np.zeros(PARTITIONS, np.int64))
        moved = sorted(partitions)
        before = cuts[moved]  # which the target has, if it has anything
        floors[moved] = np.where(
            (before == 0) | (source.floor > before), source.floor, floors[moved]
        )

    def on_dropped(self, map_id: int) -> None:
        self._logs.pop(map_id, None)
        self._floors.pop(map_id, None)

    def gauges(self) -> dict[str, int]:
        return {"change_logs": len(self._logs)}


def expired(name: str, start: int, kept: int) -> ChangesExpired:
    return ChangesExpired(
        f'the changes of map "{name}" since {moment(start)} are not kept any more',
        detail=f"They are there since {moment(kept)} (timestamp {kept}).",
        hint="Read the map again and go on from there (a stream: begin a new one with a snapshot). "
        f"Keep them for longer: ALTER TABLE {name} SET (change_retention = '1 d').",
    )


def moment(timestamp: int) -> str:
    """For people."""
    found = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=to_micros(timestamp))
    return found.isoformat(sep=" ", timespec="microseconds")
