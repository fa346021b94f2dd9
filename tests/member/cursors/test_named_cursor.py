"""Positions of cursors against the definitions of the SQL standard: 0 stands before the first row,
n + 1 behind the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import BIGINT
from remuda.errors import CursorScansForward, DivisionByZero, RemudaError, WrongState
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.stored_rows import StoredRows
from remuda.member.cursors.named_cursor import About, NamedCursor
from remuda.session.shape import ResultShape
from remuda.sql.trees.cursors import Direction

Step = tuple[Direction, int | None, bool]
SHAPE = ResultShape([Column("id", BIGINT)])
STEPS = st.tuples(
    st.sampled_from(Direction), st.one_of(st.none(), st.integers(-7, 7)), st.booleans()
).filter(lambda step: step[1] is not None or step[0] in (Direction.FORWARD, Direction.BACKWARD))


class Pages:
    """The rows 1, 2, ... of a query in pages of these sizes; then ``error``, if there is one."""

    def __init__(self, sizes: Sequence[int], error: RemudaError | None = None) -> None:
        self._sizes = list(sizes)
        self._error = error
        self.read = 0
        self.closed = False

    async def next(self) -> pa.RecordBatch | None:
        assert not self.closed
        if not self._sizes:
            if self._error is not None:
                raise self._error
            return None
        first, size = self.read + 1, self._sizes.pop(0)
        self.read += size
        return pa.record_batch([pa.array(range(first, first + size), pa.int64())], ["0"])

    def close(self) -> None:
        self.closed = True


def opened(pages: Pages, *, scroll: bool) -> NamedCursor:
    about = About("c", "DECLARE c ...", 0, hold=False, binary=False, scroll=scroll)

    def stored() -> StoredRows:
        return StoredRows([BIGINT], Reservation(MemoryAccount(1 << 20, None, None), "a cursor"))

    return NamedCursor(about, SHAPE, pages, stored)


class Model:
    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.place = 0

    def _at(self, place: int) -> list[int]:
        self.place = min(max(place, 0), self.rows + 1)
        return [self.place] if 1 <= self.place <= self.rows else []

    def step(self, direction: Direction, count: int | None) -> list[int]:
        if direction is Direction.ABSOLUTE:
            assert count is not None
            return self._at(count if count >= 0 else self.rows + 1 + count)
        if direction is Direction.RELATIVE or count == 0:
            assert count is not None
            return self._at(self.place + count)
        forward = direction is Direction.FORWARD
        if count is not None and count < 0:
            forward, count = not forward, -count
        passed = self.rows + 1 if count is None else count
        if forward:
            found = [*range(self.place + 1, min(self.place + passed, self.rows) + 1)]
        else:
            found = [*range(self.place - 1, max(self.place - passed, 1) - 1, -1)]
        self._at(self.place + passed if forward else self.place - passed)
        return found


async def fetched(cursor: NamedCursor, direction: Direction, count: int | None) -> list[int]:
    found: list[int] = []

    async def take(rows: pa.RecordBatch) -> None:
        found.extend(rows.column(0).to_pylist())

    assert await cursor.fetch(direction, count, take) == len(found)
    return found


@given(st.lists(st.integers(0, 4), max_size=4), st.lists(STEPS, max_size=12), st.integers(0, 12))
def test_every_sequence_of_steps(sizes: list[int], steps: list[Step], kept_at: int) -> None:
    """With the rest of the rows read ahead, as at a commit, before one of the steps."""

    async def scenario() -> None:
        cursor, model = opened(pages := Pages(sizes), scroll=True), Model(sum(sizes))
        for place, (direction, count, moves) in enumerate(steps):
            if place == kept_at:
                await cursor.keep_all()
                assert pages.closed
            wanted = model.step(direction, count)
            if moves:
                assert await cursor.fetch(direction, count, None) == len(wanted)
            else:
                assert await fetched(cursor, direction, count) == wanted
        cursor.close()

    asyncio.run(scenario())


@given(
    st.lists(st.integers(0, 4), max_size=4),
    st.lists(st.one_of(st.none(), st.integers(1, 7)), max_size=6),
    st.integers(0, 6),
)
def test_forwards_only(sizes: list[int], counts: list[int | None], kept_at: int) -> None:
    async def scenario() -> None:
        cursor, model = opened(Pages(sizes), scroll=False), Model(sum(sizes))
        for place, count in enumerate(counts):
            if place == kept_at:
                await cursor.keep_all()
            wanted = model.step(Direction.FORWARD, count)
            assert await fetched(cursor, Direction.FORWARD, count) == wanted
        with pytest.raises(CursorScansForward):
            await cursor.fetch(Direction.BACKWARD, 1, None)
        with pytest.raises(WrongState, match='portal "c" cannot be run'):
            await fetched(cursor, Direction.FORWARD, 1)

    asyncio.run(scenario())


def test_the_query_runs_no_further_than_rows_are_wanted() -> None:
    async def scenario() -> None:
        for scroll in (False, True):
            cursor = opened(pages := Pages([3] * 1000), scroll=scroll)
            assert await fetched(cursor, Direction.FORWARD, 4) == [1, 2, 3, 4]
            assert pages.read == 6
            cursor.close()
            assert pages.closed

    asyncio.run(scenario())


def test_a_cursor_that_has_failed_gives_no_rows() -> None:
    async def scenario() -> None:
        for scroll in (False, True):
            cursor = opened(Pages([2], DivisionByZero("division by zero")), scroll=scroll)
            assert await fetched(cursor, Direction.FORWARD, 1) == [1]
            with pytest.raises(DivisionByZero):
                await fetched(cursor, Direction.FORWARD, 5)
            for again in (fetched(cursor, Direction.FORWARD, 1), cursor.keep_all()):
                with pytest.raises(WrongState, match='portal "c" cannot be run'):
                    await again

    asyncio.run(scenario())
