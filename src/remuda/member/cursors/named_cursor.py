"""A cursor with a name: its place, and the rows of FETCH and MOVE.

Positions are PostgreSQL's (``DoPortalRunFetch``): before the first row, on a row, or behind the
last one. ``position`` is the number of the row that the cursor stands on, or the number of all
rows behind the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from remuda.errors import CursorScansForward, WrongState
from remuda.execution.stored_rows import StoredRows
from remuda.member.cursors.rows import KeptRows, PageSource, PassingRows
from remuda.session.shape import ResultShape
from remuda.sql.trees.cursors import Direction

Take: TypeAlias = Callable[[pa.RecordBatch], Awaitable[None]]
"""Takes rows to the client, in engine form; returns when it may have more."""


@dataclass(frozen=True, slots=True)
class About:
    """The row of a cursor in pg_cursors. ``created``: microseconds since 1970."""

    name: str
    text: str
    created: int
    hold: bool
    binary: bool
    scroll: bool


class NamedCursor:
    def __init__(
        self,
        about: About,
        shape: ResultShape,
        query: PageSource,
        stored: Callable[[], StoredRows],
    ) -> None:
        """``stored`` makes the place for rows that are kept."""
        self.about = about
        self.shape = shape
        self.depth = 0
        """The number of savepoints that it is younger than."""
        self._query = query
        self._stored = stored
        self._passing = PassingRows(query)
        self._kept = KeptRows(self._passing, stored()) if about.scroll else None
        self._position = 0
        self._at_start = True
        self._at_end = False
        self._failed = False
        self._turn = asyncio.Lock()

    # --- FETCH and MOVE -----------------------------------------------------------------------

    async def fetch(self, direction: Direction, count: int | None, take: Take | None) -> int:
        """Move, and hand the rows to ``take`` (None: MOVE). ``count`` None: all. Returns the number
        of rows. An error fails the cursor. Raises CursorScansForward, WrongState, and the errors of
        its query."""
        async with self._turn:
            if self._failed:
                raise WrongState(f'portal "{self.about.name}" cannot be run')
            self._failed = True  # until it has ended well; it may be cancelled at each await
            found = await self._fetch(direction, count, take)
            self._failed = False
            return found

    async def _fetch(self, direction: Direction, count: int | None, take: Take | None) -> int:
        match direction:
            case Direction.ABSOLUTE:
                return await self._absolute(count or 0, take)
            case Direction.RELATIVE if count:
                await self._run(count > 0, abs(count) - 1, None)
                return await self._run(count > 0, 1, take)
        forward = direction is not Direction.BACKWARD
        if count is not None and count < 0:
            forward, count = not forward, -count
        if count == 0:
            return await self._again(forward, take)
        if take is None and count is None and not forward:
            passed = self._position - (self._position > 0 and not self._at_end)
            self._rewind()
            return passed
        return await self._run(forward, count, take)

    async def _absolute(self, count: int, take: Take | None) -> int:
        if count > 0:
            if count - 1 <= self._position // 2:
                self._rewind()
                await self._run(True, count - 1, None)
            else:
                place = self._position + self._at_end
                await self._run(False, max(0, place - count + 1), None)
                await self._run(True, max(0, count - place - 1), None)
            return await self._run(True, 1, take)
        if count < 0:
            await self._run(True, None, None)
            await self._run(False, -count - 1, None)
            return await self._run(False, 1, take)
        self._rewind()
        return 0

    async def _again(self, forward: bool, take: Take | None) -> int:
        """The row that it stands on, if there is one."""
        on_row = not self._at_start and not self._at_end
        if take is None:
            return int(on_row)
        if not on_row:
            if not forward:
                self._require_scroll()
            return 0
        await self._run(False, 1, None)
        return await self._run(True, 1, take)

    def _rewind(self) -> None:
        if self._at_start and not self._at_end:
            return
        self._require_scroll()
        self._at_start, self._at_end, self._position = True, False, 0

    def _require_scroll(self) -> None:
        if not self.about.scroll:
            raise CursorScansForward(
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )

    async def _run(self, forward: bool, count: int | None, take: Take | None) -> int:
        if count == 0:
            return 0
        return await (self._forward(count, take) if forward else self._backward(count, take))

    async def _forward(self, count: int | None, take: Take | None) -> int:
        if self._at_end:
            return 0
        taken = 0
        while count is None or taken < count:
            left = None if count is None else count - taken
            piece = await self._piece(left)
            if piece is None:
                self._at_end = True
                break
            taken += piece.num_rows
            self._position += piece.num_rows
            self._at_start = False
            if take is not None:
                await take(piece)
        return taken

    async def _piece(self, limit: int | None) -> pa.RecordBatch | None:
        if self._kept is None:
            return await self._passing.piece(limit)
        return await self._kept.forward(self._position, limit)

    async def _backward(self, count: int | None, take: Take | None) -> int:
        self._require_scroll()
        assert self._kept is not None
        if self._at_start:
            return 0
        end = self._position if self._at_end else self._position - 1
        wanted = end if count is None else min(count, end)
        taken = 0
        while take is not None and taken < wanted:
            piece = self._kept.backward(end - taken, wanted - taken)
            taken += piece.num_rows
            await take(piece)
        self._at_end = False
        self._at_start = count is None or wanted < count
        self._position = 0 if self._at_start else end - wanted + 1
        return wanted

    # --- its life -----------------------------------------------------------------------------

    async def keep_all(self) -> None:
        """Read the rest of the query, so that it needs neither the query nor its transaction any
        more. Raises the errors of the query, OutOfMemory, DiskFull, WrongState."""
        async with self._turn:
            if self._failed:
                raise WrongState(f'portal "{self.about.name}" cannot be run')
            if self._kept is None:
                self._kept = KeptRows(self._passing, self._stored(), self._position)
            await self._kept.fill()
            self._query.close()

    def close(self) -> None:
        """Free its rows, and end its query; may be called again."""
        self._failed = True
        self._query.close()
        if self._kept is not None:
            self._kept.close()
