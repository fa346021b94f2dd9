"""Storms over lists that are read by a secondary index: on the short way and the general one,
beside transactions, single statements and partitions that move. One history judges both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from histories import Append, Read
from sim_network import Fate, Sent
from sim_transaction_works import Lists, Told, rows, values_of
from sim_transactions import BETWEEN, PARTS_MESSAGES, TransactionStorm
from sim_users import running

OTHERS = 1000
"""Entries that nobody asks for: beside so many, the index is worth it."""
BUCKETS = 3
LATE = PARTS_MESSAGES | {"INDEX_READ"}
SPREAD = 45
"""Lists that are in so many partitions that some of them move with every view."""


class IndexedLists(Lists):
    """``clients``: all users of the run, who may tell each other what they have done."""

    name = "indexed"
    buckets = BUCKETS

    def __init__(self, told: Told, clients: Callable[[], Sequence[Any]]) -> None:
        super().__init__(told)
        self.clients = clients
        self.passing = 0.15

    async def prepare(self, client: Any) -> None:
        await super().prepare(client)
        await client.sql(
            f"INSERT INTO lists SELECT i, i, '' FROM generate_series(1000, {OTHERS + 999}) AS g(i)"
        )
        await client.sql("CREATE INDEX lists_b ON lists (b)")

    def _inside(self, bucket: int) -> list[int]:
        return [key for key in range(self.keys) if key % self.buckets == bucket]

    async def _look(
        self, client: Any, done: list[Append | Read], bucket: int | None = None
    ) -> None:
        chance = self.told.random
        text = "SELECT k, v FROM lists WHERE b = ?"
        if chance.random() < 0.3:
            text += " LIMIT 1000"  # no short way has one
        if bucket is None:
            bucket = chance.randrange(self.buckets)
        found = await rows(client, text, bucket)
        keys = self._inside(bucket)
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
        await self._compute(client, chance.randrange(self.keys))

    async def _compute(self, client: Any, key: int) -> None:
        number = self.told.number()

        async def ask(_done: list[Append | Read]) -> None:
            await client.map("lists").compute(key, "v = v || ?", f" {number}")

        await self._noted([Append(key, number)], ask)

    async def _passed_on(self, client: Any, chance: Random) -> None:
        """Another user, whose members have heard nothing of it, looks for what was just done."""
        key = chance.randrange(self.keys)
        await self._compute(client, key)
        other = chance.choice(self.clients())
        bucket = key % self.buckets
        look = self._noted([], lambda done: self._look(other, done, bucket))
        await running(self.told.sim, other, look)

    async def _together(self, client: Any, chance: Random) -> None:
        """Two entries that one index key names, on any owners, in one transaction."""
        keys = chance.sample(self._inside(chance.randrange(self.buckets)), 2)
        number = self.told.number()
        done: list[Append | Read] = [Append(key, number) for key in keys]

        async def ask(_done: list[Append | Read]) -> None:
            async with client.transaction(isolation="serializable") as transaction:
                lists = transaction.map("lists")
                found = {key: (await lists.get(key)) for key in keys}
                await lists.put_all(
                    {key: {"b": each.b, "v": f"{each.v} {number}"} for key, each in found.items()}
                )

        await self._noted(done, ask)

    async def step(self, client: Any, chance: Random) -> None:
        if chance.random() < self.passing:
            await self._passed_on(client, chance)
            return
        draw = chance.random()
        if draw < 0.5:
            await self._noted([], lambda done: self._look(client, done))
        elif draw < 0.7:
            await self._together(client, chance)
        elif draw < 0.9:
            await self._statement(client, chance)
        else:
            await self._transaction(client, chance)


class IndexStorm(TransactionStorm):
    """``dense``: nothing fails, hardly anybody rests, clocks differ, and frames of commits are
    late. ``moving``:
    the same while members join and leave."""

    def __init__(
        self, seed: int, level: str | None = None, *, dense: bool = False, moving: bool = False
    ) -> None:
        super().__init__(seed, level or "serializable")
        self.works = [IndexedLists(self.told, lambda: self.clients)]
        self.asked = 0
        self.dense = dense or moving
        if self.dense:
            self.events, self.lossy = ["join", "leave", "join"] if moving else ["nothing"], True
            self.between = 0.4 if moving else 1.5
            self.skews = (4.0,)
            if moving:
                self.works[0].keys = SPREAD
            self.users, self.pause, self.slow = 6, 0.002, 0.0
        else:
            self.events = [event for event in self.events if event != "nothing"] or ["join"]
            self.pause, self.between = 0.03, BETWEEN / 2

    async def storm(self) -> None:
        self.sim.network.watchers.append(self._watch)
        await super().storm()

    def _fate(self, sent: Sent) -> Fate | None:
        if not self.dense:
            return super()._fate(sent)
        if sent.name == "VIEW_INSTALL" and self.random.random() < 0.5:
            return Fate((self.random.uniform(0, 0.3),))
        if sent.name not in LATE or self.random.random() > 0.2:
            return None
        return Fate((self.random.uniform(0, 0.05),))

    def _watch(self, sent: Sent) -> None:
        self.asked += sent.name == "INDEX_READ"


def quiet(seed: int, level: str | None) -> IndexStorm:
    """Members that hear little of each other do not know how far the clocks of others are."""
    storm = IndexStorm(seed, level, dense=True)
    storm.users = 2
    for work in storm.works:
        assert isinstance(work, IndexedLists)
        work.passing = 0.9
    return storm


def moving(seed: int, level: str | None) -> IndexStorm:
    return IndexStorm(seed, level, moving=True)


def dense(seed: int, level: str | None) -> IndexStorm:
    return IndexStorm(seed, level, dense=True)
