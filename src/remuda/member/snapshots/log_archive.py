"""A member's part in the log archive: every ``log_archive_every`` seconds it closes its log, begins
another segment, and puts what is complete into the archive. The lowest member notes changes of the
catalog there as well, and gives up what nobody needs any more.

Closing: a timestamp above all that was committed here is taken, whatever is prepared at or below it
is waited for, and a record says that the log has everything up to there (decision 0033).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final

from remuda.errors import DataCorrupted, DuplicateObject, RemudaError
from remuda.member.base.core import Core
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.journal.writer import MemberWal
from remuda.member.snapshots.cuts import Cuts
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.member.state.log import fields
from remuda.snapshot.catalog import catalog_text
from remuda.storage.format.headline import sha256
from remuda.storage.format.manifest import Manifest
from remuda.storage.format.records import Closed
from remuda.storage.format.sealing import ObjectKey, seal, unseal
from remuda.storage.format.segment import decode_header
from remuda.storage.log.files import LogFiles
from remuda.storage.snapshot import archive
from remuda.storage.snapshot.archive import Archive, ArchivedCatalog, ArchivedSegment
from remuda.storage.snapshot.chain import load, snapshot_names
from remuda.storage.snapshot.object_store import ObjectStore, remove_unfinished

log = logging.getLogger(__name__)

IDLE_TURNS: Final = 10
"""A log in which nothing is written is closed every so many times only."""
RETIRE_EVERY: Final = 600.0
"""Seconds between two looks at what may go: they read all manifests."""
UNFINISHED_AFTER: Final = 24 * 3600 * 1_000_000
"""Microseconds: nobody writes a segment for so long."""


@dataclass(frozen=True)
class Closing:
    timestamp: int
    view: int


class LogArchive:
    """Of a member with ``log_archive``."""

    def __init__(self, core: Core, cuts: Cuts, storage: SnapshotStorage) -> None:
        self._core = core
        self._cuts = cuts
        self._storage = storage
        self._offload = Offload(core.world.workers, "archive")
        self._found: Archive | None = None
        self._closings: dict[int, Closing] = {}
        """By the sequence of the record that closes the log; until it is in the archive."""
        self._catalogs: dict[int, ArchivedCatalog] = {}
        """Noted since the last turn."""
        self._last = 0
        self._idle = 0
        self._due = 0.0

    def start(self) -> None:
        """The first view is there, and the log has begun."""
        wal = self._cuts.wal
        if wal is None:
            return
        self._offload.start(Hop(asyncio.get_running_loop()))
        wal.archived = 0
        wal.catalog_noted = self._catalog_noted
        self._core.spawn(self._run(wal), "log archive")

    def close(self) -> None:
        self._offload.close()

    def _catalog_noted(self, timestamp: int) -> None:
        catalog = self._core.catalog
        self._catalogs[catalog.version] = ArchivedCatalog(
            catalog.version, timestamp, catalog_text(catalog)
        )

    async def _run(self, wal: MemberWal) -> None:
        while True:
            await asyncio.sleep(self._core.config.log_archive_every)
            try:
                await self.turn()
            except RemudaError as error:
                wal.archive_failures += 1
                log.error(
                    "the log archive cannot be written; tried again",
                    extra=fields(error=error.message, detail=error.detail or ""),
                )

    async def turn(self) -> None:
        """Close the log and archive it. Raises ResourceError, DuplicateObject, DataCorrupted."""
        wal = self._cuts.wal
        if wal is None or not self._core.ready:
            return
        await self._close(wal)
        await self._offload.result(partial(self._archive, wal, self._core.coordinator))
        if self._core.coordinator == self._core.number:
            now = self._core.world.clock.monotonic()
            if now >= self._due:
                self._due = now + RETIRE_EVERY
                await self._offload.result(self._retire)

    async def _close(self, wal: MemberWal) -> None:
        group = wal.group
        assert group is not None
        if group.writer.last <= self._last + 1 and self._idle < IDLE_TURNS:  # perhaps a mark
            self._idle += 1
            return
        self._idle = 0
        core, view = self._core, self._core.view.number
        timestamp = core.timestamp()
        await self._cuts.settled(timestamp)
        if core.view.number != view:
            return  # the next turn closes it in the new one
        sequence = wal.append(Closed(timestamp), sync=True)
        self._closings[sequence] = Closing(timestamp, view)
        await wal.safe()
        group.writer.roll()
        self._last = wal.append(Closed(0))  # begins another segment
        await wal.safe()

    # --- on the thread ------------------------------------------------------------------------

    def _opened(self, wal: MemberWal) -> tuple[Archive, ObjectKey | None]:
        store, key = self._storage.open_archive()
        if self._found is None:
            assert wal.place is not None
            self._found = Archive(store, wal.place[1].cluster.hex())
        return self._found, key

    def _archive(self, wal: MemberWal, coordinator: int) -> None:
        """Complete segments that are not there yet, the oldest first."""
        found, key = self._opened(wal)
        found.read()
        assert wal.place is not None
        folder, identity = wal.place
        files = LogFiles(self._core.world.disk, folder)
        there = {
            each.number
            for each in found.segments
            if each.log == (identity.member.hex(), wal.generation)
        }
        for number, follower in pairwise(files.numbers()):
            first = decode_header(files.head(number)).first
            last = decode_header(files.head(follower)).first - 1
            if number not in there:
                finish = max((at for at in self._closings if first <= at <= last), default=0)
                closing = self._closings.get(finish, Closing(0, 0))
                note = ArchivedSegment(
                    cluster=found.cluster,
                    identity=identity.member.hex(),
                    generation=wal.generation,
                    member=self._core.number,
                    number=number,
                    first=first,
                    last=last,
                    size=0,
                    sha256="",
                    view=closing.view,
                    closed=closing.timestamp,
                    finish=finish,
                    archived=self._core.world.clock.wall_micros(),
                )
                wal.archive_bytes += _put(found.store, key, note, files.read(number))
            self._closings = {at: each for at, each in self._closings.items() if at > last}
            wal.archived = last
        if coordinator == self._core.number:
            self._put_catalogs(found)

    def _put_catalogs(self, found: Archive) -> None:
        for version, each in sorted(self._catalogs.items()):
            if version not in found.catalog_versions():
                found.store.put(
                    archive.catalog_key(found.cluster, version), archive.encode_note(each)
                )
            self._catalogs.pop(version, None)

    def _retire(self) -> None:
        """The pieces that no snapshot needs, and those that are too old or too many."""
        found, config = self._found, self._core.config
        if found is None:
            return
        found.read()
        keep, now = config.log_archive_keep, self._core.world.clock.wall_micros()
        gone = archive.expired(
            found.segments,
            self._manifests(),
            before=now - int(keep * 1e6) if keep else 0,
            size=config.log_archive_size,
        )
        archive.remove(found.store, gone)
        remove_unfinished(found.store, "", before=now - UNFINISHED_AFTER)
        if gone:
            log.info("log archive: segments given up", extra=fields(segments=len(gone)))

    def _manifests(self) -> Iterable[Manifest]:
        """Of all cuts that can be restored."""
        if not self._storage.configured:
            return []
        store, _ = self._storage.open()
        chains = [load(store, name) for name in snapshot_names(store)]
        if any(chain.damaged or chain.lost() for chain in chains):
            return []  # nobody knows what these need
        return [state.manifest for chain in chains for state in chain.states() if not state.problem]


def _put(store: ObjectStore, key: ObjectKey | None, note: ArchivedSegment, data: bytes) -> int:
    """The segment, then its note. One that is there from a turn that was interrupted is taken as
    it is. Raises DuplicateObject when it holds something else."""
    path = note.object.key
    stored = seal(key, path, data)
    try:
        store.put(path, stored)
    except DuplicateObject:
        stored = store.get(path)
        try:
            same = unseal(key, path, stored) == data
        except DataCorrupted:
            same = False
        if not same:
            raise
    complete = replace(note, size=len(stored), sha256=sha256(stored))
    store.delete(note.note)  # one that is damaged
    store.put(note.note, archive.encode_note(complete))
    return len(stored)
