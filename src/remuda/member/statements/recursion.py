"""Recursive CTEs: evaluated at the initiator before the query that reads them, semi-naive.

The base gives the first rows; then the step is run again and again, each time over the rows that
came last, until it gives none. All of it reads one timestamp. If one fragment of the initiator runs
the step, it runs all rounds (``execution.operators.rounds``); else each round is a query.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from remuda.datatypes.sql import BIGINT
from remuda.execution.context import SuppliedRows
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.rounds import NewRows, Rounds, WorkingTable, beyond_rounds
from remuda.execution.stored_rows import StoredRows
from remuda.plan.physical import Site
from remuda.plan.sequence_calls import SequenceCall
from remuda.session.planning import PlannedQuery, PlannedRecursion, PlannedSupply

ITERATIONS_MAX: Final = 100_000

Tables: TypeAlias = dict[str, SuppliedRows]
Run: TypeAlias = Callable[[PlannedQuery, Tables, Rounds | None], AsyncGenerator[pa.RecordBatch]]
"""Runs a query over relations, once or in rounds, and hands out its pages in engine form."""
Numbered: TypeAlias = Callable[
    [tuple[SequenceCall, ...], pa.RecordBatch], Awaitable[pa.RecordBatch]
]
"""Makes calls of sequences for each row of a page: the page with their results."""


class Evaluation:
    """Makes the relations that one statement needs; each is made once."""

    def __init__(
        self,
        run: Run,
        known: Callable[[str], Awaitable[SuppliedRows]],
        numbered: Numbered,
        check: Callable[[], None],
        memory: MemoryAccount,
    ) -> None:
        """``known`` gives the rows of a relation by name, ``check`` raises when the statement is
        not wanted any more, ``memory`` bounds what all relations together hold."""
        self._numbered = numbered
        self._run = run
        self._known = known
        self._check = check
        self._memory = memory
        self._kept: list[StoredRows | WorkingTable | Reservation] = []

    def close(self) -> None:
        """Free all relations."""
        for kept in self._kept:
            if isinstance(kept, Reservation):
                kept.clear()
            else:
                kept.close()
        self._kept = []

    def _stored(self, recursion: PlannedRecursion, held: Reservation) -> StoredRows:
        types = [column.type for column in recursion.base.columns]
        rows = StoredRows([*types, *(BIGINT for _ in recursion.calls)], held.beside())
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
            await self._gather(recursion.base, tables, held, (found,), calls=recursion.calls)
            return found
        stable = [inner for inner in step.supplied if not inner.mentions(recursion.working)]
        await self.fill(stable, tables)
        held = Reservation(self._memory, f'recursive query "{recursion.name}"')
        self._kept.append(held)
        rows = _new_rows(recursion)
        found, latest = self._stored(recursion, held), self._stored(recursion, held)
        await self._gather(recursion.base, tables, held, (found, latest), rows)
        changing = {inner.relation for inner in step.supplied if inner not in stable}
        if latest and _runs_in_rounds(step) and changing == {recursion.working}:
            working = WorkingTable(recursion.working, latest)
            rounds = Rounds(
                recursion.name, working, rows, found.rows, supply.enough, ITERATIONS_MAX
            )
            self._kept.append(working)
            inner = {**tables, recursion.working: working}
            await self._gather(step, inner, held, (found,), rounds=rounds)
            return found
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
            await self._gather(step, inner, held, (found, latest), rows)
            before.close()
            self._kept.remove(before)
        raise beyond_rounds(recursion.name, ITERATIONS_MAX)

    async def _gather(
        self,
        query: PlannedQuery,
        tables: Tables,
        held: Reservation,
        stores: Sequence[StoredRows],
        new: NewRows | None = None,
        *,
        rounds: Rounds | None = None,
        calls: tuple[SequenceCall, ...] = (),
    ) -> None:
        """Store the rows of the query, with the results of ``calls`` for each row. With ``new``,
        rows that were there before are left out."""
        async with contextlib.aclosing(self._run(query, tables, rounds)) as pages:
            async for page in pages:
                fresh = page if new is None else new.of(page)
                if calls and fresh.num_rows:
                    fresh = await self._numbered(calls, fresh)
                if fresh.num_rows:
                    if new is not None:
                        held.grow(new.growth())
                    for store in stores:
                        store.add(fresh)


def _new_rows(recursion: PlannedRecursion) -> NewRows:
    return NewRows([column.type for column in recursion.base.columns], recursion.distinct)


def _runs_in_rounds(step: PlannedQuery) -> bool:
    """Whether one fragment of the initiator runs all of it, so that it need not be started again
    for each round: nothing is exchanged, and nothing is stored for several readers."""
    fragments = step.plan.fragments
    return len(fragments) == 1 and fragments[0].site is Site.INITIATOR
