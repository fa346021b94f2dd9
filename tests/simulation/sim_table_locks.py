"""Storms of LOCK TABLE in all modes beside writers that do not lock, while members fail (decision
0094).

* Two transactions never hold modes of one table that exclude each other. A transaction holds a mode
  from the answer that gives it until a write that then commits was sent.
* A transaction that has a mode that excludes writers, reads a number and writes the next one, loses
  nobody's update, whatever its isolation: its commit fails if somebody else has written.
* Transactions that lock tables in circles, or wait long, end with an error, and all locks are free
  in the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from sim_network import Fate, Sent
from sim_transaction_works import Told, Work, failed, rows
from sim_transactions import TransactionStorm

from remuda.errors import DeadlockDetected, LockNotAvailable

TABLES = ("one", "other")
KEYS = 2
WEAK = ("ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE")
STRONG = (
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)
EXCLUDING_WRITERS = STRONG[1:]
FAULTS = ("crash", "crash", "split", "join", "leave", "break_", "silence", "nothing")


@dataclass(frozen=True)
class TableHold:
    table: str
    mode: str
    begin: float
    end: float

    def clashes(self, other: TableHold) -> bool:
        apart = self.end <= other.begin or other.end <= self.begin
        both_share = self.mode == other.mode == "SHARE"
        return self.table == other.table and not both_share and not apart


class TableLocks(Work):
    name = "table locks"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.holds: list[TableHold] = []
        self.circles = 0
        self.refused = 0
        self.added: Counter[tuple[str, int]] = Counter()
        """By table and key: how often it was raised by one, for certain."""
        self.unknown: Counter[tuple[str, int]] = Counter()
        self.found: dict[tuple[str, int], int] = {}

    async def prepare(self, client: Any) -> None:
        for table in TABLES:
            await client.sql(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)")
            await client.sql(
                f"INSERT INTO {table} SELECT i, 0 FROM generate_series(1, {KEYS}) g(i)"
            )
            await client.sql(f"INSERT INTO {table} SELECT i, 0 FROM generate_series(100, 299) g(i)")

    async def step(self, client: Any, chance: Random) -> None:
        if chance.random() < 0.3:
            await self._plain(client, chance)
            return
        try:
            await self._locked(client, chance)
        except DeadlockDetected:
            self.circles += 1
        except LockNotAvailable:
            self.refused += 1

    async def _plain(self, client: Any, chance: Random) -> None:
        """A writer that does not lock."""
        table, key = chance.choice(TABLES), chance.randint(1, KEYS)
        await self._counted(
            [(table, key)], client.sql(f"UPDATE {table} SET n = n + 1 WHERE id = {key}")
        )

    async def _counted(self, raised: list[tuple[str, int]], work: Any) -> None:
        try:
            await work
        except BaseException as error:
            if not failed(error):
                self.unknown.update(raised)
            raise
        self.added.update(raised)

    async def _locked(self, client: Any, chance: Random) -> None:
        """Lock both tables in any order, or one of them; those that exclude writers write."""
        tables = chance.sample(TABLES, chance.choice((1, 2, 2)))
        modes = {table: chance.choice((*WEAK, *STRONG, *STRONG)) for table in tables}
        key, nowait = chance.randint(1, KEYS), " NOWAIT" * (chance.random() < 0.2)
        begins: dict[str, float] = {}
        raised: list[tuple[str, int]] = []
        end = 0.0
        transaction = client.transaction(isolation=self.told.isolation)
        await transaction.begin()
        try:
            for table, mode in modes.items():
                await rows(transaction, f"LOCK TABLE {table} IN {mode} MODE{nowait}")
                begins[table] = self.told.now()
                await asyncio.sleep(chance.random() * 0.2)
            for table, mode in modes.items():
                if mode in EXCLUDING_WRITERS:
                    [(number,)] = await rows(transaction, f"SELECT n FROM {table} WHERE id = {key}")
                    await asyncio.sleep(chance.random() * 0.1)
                    text = f"UPDATE {table} SET n = {number + 1} WHERE id = {key}"
                    await rows(transaction, text)
                    raised.append((table, key))
            end = self.told.now()
            if not raised:  # a commit that a member without a lease refuses
                other = chance.randint(100, 299)
                await rows(transaction, f"UPDATE {tables[0]} SET n = n + 1 WHERE id = {other}")
        except BaseException:
            await transaction.rollback()
            raise
        await self._counted(raised, transaction.commit())
        for table, mode in modes.items():
            if mode in STRONG:
                self.holds.append(TableHold(table, mode, begins[table], end))
        self.well()

    async def finish(self, client: Any) -> None:
        """Every lock is free again."""
        async with client.transaction() as transaction:
            for table in TABLES:
                await rows(transaction, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        for table in TABLES:
            found = await rows(client, f"SELECT id, n FROM {table} WHERE id <= {KEYS}")
            self.found.update({(table, key): number for key, number in found})

    def judge(self) -> list[str]:
        for place, hold in enumerate(self.holds):
            for other in self.holds[:place]:
                if hold.clashes(other):
                    self.wrong.append(f"{hold} and {other} exclude each other")
        for where, number in self.found.items():
            least, most = self.added[where], self.added[where] + self.unknown[where]
            if not least <= number <= most:
                self.wrong.append(f"{where} was raised {least} to {most} times, and is {number}")
        return self.wrong[:5]


class TableLockStorm(TransactionStorm):
    def __init__(self, seed: int, level: str | None = None) -> None:
        chance = Random(f"{seed}/table locks")
        levels = ("read committed", "read committed", "repeatable read", "serializable")
        super().__init__(seed, level or chance.choice(levels))
        self.works = [TableLocks(self.told)]
        self.users, self.pause = 5, 0.1
        self.events = [chance.choice(FAULTS) for _ in range(2)]

    def _fate(self, sent: Sent) -> Fate | None:
        if sent.name != "ADVISORY_CLAIM":
            return super()._fate(sent)
        return Fate((self.random.uniform(0, 3.0),)) if self.random.random() < 0.1 else None
