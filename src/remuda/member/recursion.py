"""Recursive CTEs: evaluated at the initiator before the query that reads them, semi-naive.

The base gives the first rows; then the step is run again and again, each time over the rows that
came last, until it gives none. All of it reads one timestamp.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.errors import LimitExceeded
from remuda.execution.context import SuppliedRows
from remuda.execution.group_keys import GroupKeys
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.stored_rows import StoredRows
from remuda.session.planning import PlannedQuery, PlannedRecursion, PlannedSupply

ITERATIONS_MAX: Final = 100_000

Tables: TypeAlias = dict[str, SuppliedRows]
Run: TypeAlias = Callable[[PlannedQuery, Tables], AsyncGenerator[pa.RecordBatch]]
"""Runs a query over relations, and hands out its pages in engine form."""


class Evaluation:
    """Makes the relations that one statement needs; each is made once."""

    def __init__(
        self,
        run: Run,
        known: Callable[[str], Awaitable[SuppliedRows]],
        check: Callable[[], None],
        memory: MemoryAccount,
    ) -> None:
        """``known`` gives the rows of a relation by name, ``check`` raises when the statement is
        not wanted any more, ``memory`` bounds what all relations together hold."""
        self._run = run
        self._known = known
        self._check = check
        self._memory = memory
        self._kept: list[StoredRows | Reservation] = []

    def close(self) -> None:
        """Free all relations."""
        for kept in self._kept:
            if isinstance(kept, StoredRows):
                kept.close()
            else:
                kept.clear()
        self._kept = []

    def _stored(self, recursion: PlannedRecursion, held: Reservation) -> StoredRows:
        rows = StoredRows([column.type for column in recursion.base.columns], held.beside())
        self._kept.append(rows)
        return rows

    async def fill(self, needed: Iterable[PlannedSupply], tables: Tables) -> None:
        for supply in needed:
            if supply.relation in tables:
                continue
            if supply.recursion is None:
                tables[supply.relation] = await self._known(supply.relation)
            else:
                tables[supply.relation] = await self._recursive(supply, supply.recursion, tables)

    async def _recursive(
        self, supply: PlannedSupply, recursion: PlannedRecursion, tables: Tables
    ) -> SuppliedRows:
        await self.fill(recursion.base.supplied, tables)
        step = recursion.step
        if step is None:
            held = Reservation(self._memory, f'query "{recursion.name}"')
            found = self._stored(recursion, held)
            await self._gather(recursion.base, tables, _Rows(recursion), held, (found,))
            return found
        stable = [inner for inner in step.supplied if not inner.mentions(recursion.working)]
        await self.fill(stable, tables)
        held = Reservation(self._memory, f'recursive query "{recursion.name}"')
        self._kept.append(held)
        rows = _Rows(recursion)
        found, latest = self._stored(recursion, held), self._stored(recursion, held)
        await self._gather(recursion.base, tables, rows, held, (found, latest))
        for _ in range(ITERATIONS_MAX):
            if not latest:
                return found
            if supply.enough is not None and found.rows >= supply.enough:
                return found
            # A query may end without ever giving the loop a turn.
            await asyncio.sleep(0)
            self._check()
            inner = {**tables, recursion.working: latest}
            await self.fill(step.supplied, inner)
            before, latest = latest, self._stored(recursion, held)
            await self._gather(step, inner, rows, held, (found, latest))
            before.close()
            self._kept.remove(before)
        raise LimitExceeded(
            f'recursive query "{recursion.name}" did not end within {ITERATIONS_MAX} iterations',
            hint="Its recursive term must come to give no rows: limit it with a condition, "
            "or write UNION instead of UNION ALL to leave out rows that came before.",
        )

    async def _gather(
        self,
        query: PlannedQuery,
        tables: Tables,
        rows: _Rows,
        held: Reservation,
        stores: Sequence[StoredRows],
    ) -> None:
        """Store what the query gives, without what was there before."""
        async with contextlib.aclosing(self._run(query, tables)) as pages:
            async for page in pages:
                fresh = rows.new(page)
                if fresh.num_rows:
                    held.grow(rows.growth())
                    for store in stores:
                        store.add(fresh)


class _Rows:
    """Tells new rows from those that came before, if that matters."""

    def __init__(self, recursion: PlannedRecursion) -> None:
        columns = recursion.base.columns
        self._seen = GroupKeys([c.type for c in columns]) if recursion.distinct else None
        self._seen_null = False
        self._size = 0

    def new(self, page: pa.RecordBatch) -> pa.RecordBatch:
        if self._seen is None or not page.num_rows:
            return page
        before = self._seen.count
        ids = np.asarray(self._seen.encode(page.columns))
        found, firsts = np.unique(ids, return_index=True)
        new = found > before
        if len(found) and found[0] == 0:  # a lone NULL
            new[0], self._seen_null = not self._seen_null, True
        fresh = np.sort(firsts[new])
        return page if len(fresh) == page.num_rows else page.take(pa.array(fresh))

    def growth(self) -> int:
        """Bytes that telling them apart has come to take since the last time."""
        if self._seen is None:
            return 0
        before, self._size = self._size, max(self._size, self._seen.bytes)
        return self._size - before
