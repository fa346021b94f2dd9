"""The queue of notifications at the member that keeps it: the primary of its one partition.

A follower asks for all commits after a timestamp. The answer reaches up to a timestamp at or below
which nothing can commit any more. The knowledge of a follower therefore never changes, and another
primary goes on where the last one stopped (decision 0029).
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

import numpy as np

from remuda.catalog.notification_queue import is_queue
from remuda.datatypes.schema import MapSchema
from remuda.errors import SchemaChanged, ViewChanged
from remuda.member.base.core import Core
from remuda.member.state.routing import Router
from remuda.rpc.messages import control_pb2
from remuda.storage.chunks.layout import Layouts
from remuda.storage.maps.change_log import NONE, Changes

ROWS_MAX: Final = 64
"""Entries of an answer, besides those of the same commit as the last one."""
WAIT_MAX: Final = 10.0
"""Seconds until an answer without news."""
RELEASED_AFTER: Final = 30.0
"""Seconds after which what nobody reads is not kept in memory."""


class Changelog(Protocol):
    """``member.changes.change_logs``."""

    async def after(self, schema: MapSchema, partition: int, timestamp: int) -> tuple[Changes, int]:
        """The changes of a partition since ``timestamp``, and up to when that is everything.
        Raises ViewChanged, ChangesExpired, UndefinedMap."""

    def release(self, map_id: int) -> None: ...


class NotificationQueue:
    def __init__(self, core: Core, changes: Changelog) -> None:
        self._core = core
        self._changes = changes
        self.readers: dict[asyncio.Future[None], int] = {}
        """Requests that wait for news, with the id of the map."""
        self._releases: asyncio.TimerHandle | None = None

    # --- requests -----------------------------------------------------------------------------

    async def answer(
        self, message: control_pb2.NotificationsRequest
    ) -> control_pb2.NotificationsAnswer:
        """Raises SchemaChanged, ViewChanged, NoLease, ChangesExpired."""
        core = self._core
        now = core.world.clock.monotonic
        until = now() + min(message.wait, WAIT_MAX)
        await core.until_ready()
        view = core.view.number
        schema = core.catalog.find_id(message.map_id)
        if schema is None or not is_queue(schema):
            raise SchemaChanged("the queue of notifications is not known here yet")
        partition = partition_of(schema)
        while True:
            if core.view.number != view or core.view.owners[partition] != core.number:
                raise ViewChanged(f"member {core.number} does not keep the queue of notifications")
            if not message.after:
                core.require_lease()
                return self._made(core.timestamp(), [])
            changes, high = await self._changes.after(schema, partition, message.after)
            core.require_lease()  # what this member calls closed is so while it has its lease
            rows, high = _first(changes, high, schema)
            if rows or now() >= until:
                return self._made(high, rows)
            await self._news(message.map_id, until - now())

    def _made(
        self, until: int, rows: list[control_pb2.NotificationEntry]
    ) -> control_pb2.NotificationsAnswer:
        return control_pb2.NotificationsAnswer(
            context=self._core.context(), until=until, entries=rows
        )

    # --- waiting ------------------------------------------------------------------------------

    async def _news(self, map_id: int, timeout: float) -> None:
        """Return when something was decided, or the time is over."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.readers[told] = map_id
        if self._releases is not None:
            self._releases.cancel()
            self._releases = None
        try:
            await asyncio.wait([told], timeout=max(timeout, 0.0))
        finally:
            self.readers.pop(told, None)
            if not self.readers:
                loop = asyncio.get_running_loop()
                self._releases = loop.call_later(RELEASED_AFTER, self._changes.release, map_id)

    def wake(self, map_id: int) -> None:
        """Readers of the map who wait may go on (``PendingParts.on_lower``)."""
        for told, awaited in list(self.readers.items()):
            if awaited == map_id and not told.done():
                told.set_result(None)

    def look_again(self) -> None:
        """Partitions may have moved."""
        for told in list(self.readers):
            if not told.done():
                told.set_result(None)

    def close(self) -> None:
        if self._releases is not None:
            self._releases.cancel()


def partition_of(schema: MapSchema) -> int:
    return Router(schema).key_partition((0, 0, 0))


def _first(
    changes: Changes, high: int, schema: MapSchema
) -> tuple[list[control_pb2.NotificationEntry], int]:
    """The first entries that have begun, whole commits of them; and up to when these are all."""
    begun = changes.where(changes.new != NONE)
    if len(begun) > ROWS_MAX:
        last = int(begun.times[ROWS_MAX - 1])
        begun, high = begun.where(begun.times <= last), last
    if not len(begun):
        return [], high
    rows = begun.rows(begun.new.astype(np.int64), Layouts(schema))
    _, tags, places, bodies = (column.to_pylist() for column in rows.columns)
    return [
        control_pb2.NotificationEntry(timestamp=at, tag=tag, place=place, body=body)
        for at, tag, place, body in zip(begun.times.tolist(), tags, places, bodies, strict=True)
    ], high
