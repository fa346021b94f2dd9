"""The object store of snapshots as a member's settings name it, and the thread on which it is read
and written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from remuda.config import MemberConfig
from remuda.errors import NotSupported
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.snapshot.store import open_store, read_key
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.snapshot.archive import WithArchive
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.world import World

T = TypeVar("T")


class SnapshotStorage:
    """Store and key are looked at when they are first needed: a member whose store cannot be
    reached serves everything else."""

    def __init__(self, config: MemberConfig, world: World) -> None:
        self._config = config
        self._world = world
        self._offload = Offload(world.workers, "snapshots")
        self._found: tuple[ObjectStore, ObjectKey | None] | None = None
        self._found_archive: tuple[ObjectStore, ObjectKey | None] | None = None

    def start(self) -> None:
        self._offload.start(Hop(asyncio.get_running_loop()))

    def close(self) -> None:
        self._offload.close()

    @property
    def configured(self) -> bool:
        return bool(self._config.snapshot_store)

    async def work(self, work: Callable[[ObjectStore, ObjectKey | None], T]) -> T:
        """The result or the error of ``work``, on the thread. Raises NotSupported without a
        store."""

        def run() -> T:
            return work(*self.open())

        return await self._offload.result(run)

    async def aside(self, work: Callable[[], T]) -> T:
        """The result or the error of ``work``, on the thread, without the store."""
        return await self._offload.result(work)

    def open(self) -> tuple[ObjectStore, ObjectKey | None]:
        """The store, with the archive if there is one, and the key. Raises NotSupported without a
        store. On a thread."""
        if self._found is None:
            store = self._store()
            if self._config.log_archive:
                store = WithArchive(store, self._archive())
            self._found = store, self._key()
        return self._found

    def open_archive(self) -> tuple[ObjectStore, ObjectKey | None]:
        """The archive of logs alone, and the key. On a thread."""
        if self._found_archive is None:
            place = self._archive()
            self._found_archive = WithArchive(place, place), self._key()
        return self._found_archive

    def _archive(self) -> ObjectStore:
        return open_store(self._config.log_archive, self._world, "log_archive")

    def _store(self) -> ObjectStore:
        place = self._config.snapshot_store
        if not place:
            raise NotSupported(
                "this cluster has no place for snapshots",
                hint="Start its members with the setting snapshot_store: a folder that all of them"
                " share, or a URL such as s3://bucket/path.",
            )
        return open_store(place, self._world)

    def _key(self) -> ObjectKey | None:
        name = self._config.snapshot_key_file
        if not name:
            return None
        return read_key(name, self._world)
