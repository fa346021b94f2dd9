"""Storms over lists that are read by a secondary index: on the short way and the general one,
beside transactions, single statements and partitions that move. One history judges both.
"""

from __future__ import annotations

from random import Random
from typing import Any

from histories import Append, Read
from sim_network import Sent
from sim_transaction_works import Lists, rows, values_of
from sim_transactions import BETWEEN, TransactionStorm

OTHERS = 1000
"""Entries that nobody asks for: beside so many, the index is worth it."""
BUCKETS = 3


class IndexedLists(Lists):
    name = "indexed"
    buckets = BUCKETS

    async def prepare(self, client: Any) -> None:
        await super().prepare(client)
        await client.sql(
            f"INSERT INTO lists SELECT i, i, '' FROM generate_series(1000, {OTHERS + 999}) AS g(i)"
        )
        await client.sql("CREATE INDEX lists_b ON lists (b)")

    async def _look(self, client: Any, done: list[Append | Read]) -> None:
        chance = self.told.random
        text = "SELECT k, v FROM lists WHERE b = ?"
        if chance.random() < 0.3:
            text += " LIMIT 1000"  # no short way has one
        bucket = chance.randrange(self.buckets)
        found = await rows(client, text, bucket)
        keys = [key for key in range(self.keys) if key % self.buckets == bucket]
        if sorted(key for key, _ in found) != keys:
            self.wrong.append(f"the index finds {found} instead of {keys}")
        done += [Read(key, values_of(value)) for key, value in found]

    def judge(self) -> list[str]:
        return self.wrong[:3] + super().judge()

    async def _statement(self, client: Any, chance: Random) -> None:
        """Most change one entry at its owner: the other members do not hear of it."""
        if chance.random() < 0.2:
            await super()._statement(client, chance)
            return
        number, key = self.told.number(), chance.randrange(self.keys)

        async def ask(_done: list[Append | Read]) -> None:
            await client.map("lists").compute(key, "v = v || ?", f" {number}")

        await self._noted([Append(key, number)], ask)

    async def step(self, client: Any, chance: Random) -> None:
        draw = chance.random()
        if draw < 0.6:
            await self._noted([], lambda done: self._look(client, done))
        elif draw < 0.9:
            await self._statement(client, chance)
        else:
            await self._transaction(client, chance)


class IndexStorm(TransactionStorm):
    """``dense``: nothing fails, hardly anybody rests, and frames are late."""

    def __init__(self, seed: int, level: str | None = None, *, dense: bool = False) -> None:
        super().__init__(seed, level or "serializable")
        self.works = [IndexedLists(self.told)]
        self.asked = 0
        if dense:
            self.events, self.lossy, self.between = ["nothing"], False, 1.5
            self.users, self.pause, self.slow = 6, 0.002, 0.0
        else:
            self.events = [event for event in self.events if event != "nothing"] or ["join"]
            self.pause, self.between = 0.03, BETWEEN / 2

    async def storm(self) -> None:
        self.sim.network.watchers.append(self._watch)
        await super().storm()

    def _watch(self, sent: Sent) -> None:
        self.asked += sent.name == "INDEX_READ"


def dense(seed: int, level: str | None) -> IndexStorm:
    return IndexStorm(seed, level, dense=True)
