"""``client.snapshots`` on an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from remuda.client.operations.snapshots import (
    Maps,
    Rows,
    create_text,
    drop_text,
    expire_text,
    quoted,
    restorable_text,
    restore_text,
    verify_text,
)
from remuda.client.values.row import Row


class Snapshots:
    """``remuda.client.operations.snapshots.Snapshots``, to be awaited: the methods are the same."""

    def __init__(self, rows: Callable[[str], Awaitable[Rows]]) -> None:
        self._rows = rows

    async def create(self, name: str, *, increment: bool = False) -> Row:
        return (await self._rows(create_text(name, increment=increment)))[0]

    async def list(self) -> Rows:
        return await self._rows("SHOW SNAPSHOTS")

    async def describe(self, name: str) -> Rows:
        return await self._rows(f"SHOW SNAPSHOT {quoted(name)}")

    async def restorable(self, name: str) -> Rows:
        return await self._rows(restorable_text(name))

    async def verify(self, name: str, level: int = 3) -> Rows:
        return await self._rows(verify_text(name, level))

    async def restore(
        self,
        name: str,
        *,
        cut: int | None = None,
        maps: Maps | None = None,
        prefix: str = "",
        moment: datetime | None = None,
        dry_run: bool = False,
    ) -> Rows:
        text = restore_text(name, cut, maps, prefix, moment=moment, dry_run=dry_run)
        return await self._rows(text)

    async def expire(self, name: str, before: datetime, *, dry_run: bool = False) -> Rows:
        return await self._rows(expire_text(name, before, dry_run=dry_run))

    async def drop(
        self,
        name: str,
        *cuts: int,
        if_exists: bool = False,
        cascade: bool = False,
        dry_run: bool = False,
    ) -> Rows:
        text = drop_text(name, cuts, if_exists=if_exists, cascade=cascade, dry_run=dry_run)
        return await self._rows(text)
