"""Storms of children that are written beside deletes of their parents (decision 0108), while
members fail and partitions move. No reader ever sees a child without its parent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
from sim_transaction_works import Told, Work, rows
from sim_transactions import TransactionStorm

from remuda.datatypes.arrow import engine_schema
from remuda.errors import ForeignKeyViolation, RemudaError, UniqueViolation

Maker: TypeAlias = Callable[[Any, Random, int], Awaitable[None]]

PARENTS = 3
FAULTS = ("crash", "crash", "split", "join", "leave", "break")
ORPHANS = "SELECT c.k, c.p FROM c LEFT JOIN p ON p.k = c.p WHERE c.p IS NOT NULL AND p.k IS NULL"
ORPHANS_BY_VALUE = (
    "SELECT d.k, d.u FROM d LEFT JOIN p ON p.u = d.u WHERE d.u IS NOT NULL AND p.u IS NULL"
)
ORPHANS_THAT_FOLLOW = (
    "SELECT e.k, e.u FROM e LEFT JOIN p ON p.u = e.u WHERE e.u IS NOT NULL AND p.u IS NULL"
)


class Families(Work):
    """Parents ``p``, children ``c`` by the primary key, children ``d`` by a unique value, and
    children ``e`` that follow it."""

    name: ClassVar[str] = "families"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.children = 0
        self.looks = 0

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE p (k BIGINT PRIMARY KEY, u BIGINT UNIQUE, n BIGINT)")
        await client.sql("CREATE TABLE c (k BIGINT PRIMARY KEY, p BIGINT REFERENCES p)")
        await client.sql("CREATE TABLE d (k BIGINT PRIMARY KEY, u BIGINT REFERENCES p (u))")
        await client.sql(
            "CREATE TABLE e (k BIGINT PRIMARY KEY, "
            "u BIGINT REFERENCES p (u) ON DELETE CASCADE ON UPDATE CASCADE)"
        )

    async def step(self, client: Any, chance: Random) -> None:
        if chance.random() < 0.15:
            await self._look(client)
            return
        make = chance.choice(self.makers)
        what = make.__name__.strip("_")
        try:
            await make(client, chance, chance.randrange(PARENTS))
        except (ForeignKeyViolation, UniqueViolation):
            self.told.ends[f"{what} refused"] += 1
        else:
            self.told.ends[f"{what} done"] += 1
            self.well()

    @property
    def makers(self) -> tuple[Maker, ...]:
        return (
            self._child, self._child, self._child, self._put_child, self._child_by_value,
            self._child_that_follows, self._child_that_follows, self._move_child,
            self._in_transaction, self._in_transaction, self._parent,
            self._parent, self._delete, self._delete, self._remove, self._forget, self._touch,
            self._new_value,
        )  # fmt: skip

    def _next(self) -> int:
        self.children += 1
        return self.children

    async def _child(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("INSERT INTO c VALUES (?, ?)", self._next(), parent)

    async def _put_child(self, client: Any, _chance: Random, parent: int) -> None:
        await client.map("c").put(self._next(), {"p": parent})

    async def _child_by_value(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("INSERT INTO d VALUES (?, ?)", self._next(), parent * 10)

    async def _child_that_follows(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("INSERT INTO e VALUES (?, ?)", self._next(), parent * 10)

    async def _move_child(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("UPDATE c SET p = ? WHERE k % 5 = 0", parent)

    async def _in_transaction(self, client: Any, chance: Random, parent: int) -> None:
        """A child and the touch of a parent; or a parent goes with its children."""
        tx = client.transaction(**self.told.options)
        committing = False
        try:
            await tx.begin()
            if chance.random() < 0.5:
                await tx.sql("INSERT INTO c VALUES (?, ?)", self._next(), parent)
                await tx.map("c").put(self._next(), {"p": (parent + 1) % PARENTS})
            else:
                await tx.sql("DELETE FROM c WHERE p = ?", parent)
                await tx.sql("DELETE FROM d WHERE u = ?", parent * 10)
                await tx.sql("DELETE FROM p WHERE k = ?", parent)
            committing = True
            await tx.commit()
        except RemudaError:
            if not committing and tx.id:
                await tx.rollback()
            raise

    async def _parent(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("INSERT INTO p VALUES (?, ?, 0)", parent, parent * 10)

    async def _delete(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("DELETE FROM p WHERE k = ?", parent)

    async def _remove(self, client: Any, _chance: Random, parent: int) -> None:
        await client.map("p").remove(parent)

    async def _forget(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("DELETE FROM c WHERE p = ?", parent)
        await client.sql("DELETE FROM d WHERE u = ?", parent * 10)

    async def _touch(self, client: Any, _chance: Random, parent: int) -> None:
        await client.sql("UPDATE p SET n = n + 1 WHERE k = ?", parent)

    async def _new_value(self, client: Any, _chance: Random, parent: int) -> None:
        """There and back."""
        await client.sql("UPDATE p SET u = u + 1 WHERE k = ? AND u = ?", parent, parent * 10)
        await client.sql("UPDATE p SET u = u - 1 WHERE k = ? AND u > ?", parent, parent * 10)

    async def _look(self, client: Any) -> None:
        for text in (ORPHANS, ORPHANS_BY_VALUE, ORPHANS_THAT_FOLLOW):
            found = await rows(client, text)
            if found:
                self.wrong.append(f"children without parents: {found}")
        self.looks += 1
        self.well()

    async def finish(self, client: Any) -> None:
        await self._look(client)

    def judge(self) -> list[str]:
        return self.wrong[:5]


class LoadedFamilies(Families):
    """Children come in bulk, too, and in transactions that leave the look for their parents to the
    commit."""

    async def prepare(self, client: Any) -> None:
        await super().prepare(client)
        await client.sql("ALTER TABLE d ALTER CONSTRAINT d_u_fkey DEFERRABLE INITIALLY DEFERRED")

    @property
    def makers(self) -> tuple[Maker, ...]:
        more = self._load, self._load, self._load, self._load_by_value, self._deferred
        return (*super().makers, *more, *more)

    async def _load(self, client: Any, chance: Random, parent: int) -> None:
        await self._loaded(client, "c", [parent, *([None] * 3), chance.randrange(PARENTS)])

    async def _load_by_value(self, client: Any, _chance: Random, parent: int) -> None:
        await self._loaded(client, "d", [parent * 10] * 3)

    async def _loaded(self, client: Any, table: str, parents: list[int | None]) -> None:
        job = await client.begin_job(table)
        schema = engine_schema(job.schema)
        columns = [[self._next() for _ in parents], parents]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        try:
            tasks = [await job.write([pa.record_batch(arrays, schema=schema)])]
        except RemudaError:
            await job.abort()
            raise
        await job.commit(tasks)

    async def _deferred(self, client: Any, chance: Random, parent: int) -> None:
        """A child before its parent, or a parent that goes before its child does."""
        tx = client.transaction(**self.told.options)
        committing = False
        try:
            await tx.begin()
            if chance.random() < 0.5:
                await tx.sql("INSERT INTO d VALUES (?, ?)", self._next(), parent * 10)
                if chance.random() < 0.5:
                    await tx.sql("INSERT INTO p VALUES (?, ?, 0)", parent, parent * 10)
            else:
                await tx.sql("DELETE FROM c WHERE p = ?", parent)
                await tx.sql("DELETE FROM p WHERE k = ?", parent)
                if chance.random() < 0.8:
                    await tx.sql("DELETE FROM d WHERE u = ?", parent * 10)
            committing = True
            await tx.commit()
        except RemudaError:
            if not committing and tx.id:
                await tx.rollback()
            raise


class ForeignKeyStorm(TransactionStorm):
    """``dense``: nothing fails, hardly anybody rests, and frames are late. ``loads``: see
    ``LoadedFamilies``."""

    def __init__(
        self, seed: int, level: str | None = None, *, dense: bool = False, loads: bool = False
    ) -> None:
        super().__init__(seed, level or "serializable")
        self.dense = dense
        self.works = [LoadedFamilies(self.told) if loads else Families(self.told)]
        chance = Random(f"{seed}/families")
        if dense:
            self.events, self.lossy, self.between = ["nothing"], True, 6.0
            self.users, self.pause, self.slow = 6, 0.01, 0.0
        else:
            self.events = [chance.choice(FAULTS) for _ in range(2)]
            self.users, self.pause = 5, 0.05


def dense(seed: int, level: str | None) -> ForeignKeyStorm:
    return ForeignKeyStorm(seed, level, dense=True)


def dense_loads(seed: int, level: str | None) -> ForeignKeyStorm:
    return ForeignKeyStorm(seed, level, dense=True, loads=True)


def loads(seed: int, level: str | None) -> ForeignKeyStorm:
    return ForeignKeyStorm(seed, level, loads=True)
