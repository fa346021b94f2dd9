"""Storms of transactions that take advisory locks (decision 0087), while members fail.

Two holders of a lock that exclude each other are never seen. Somebody holds a lock from the
answer that gives it until a write of the transaction that then commits was sent: a member whose
lease is over commits nothing, so its clients may lose their locks before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from sim_network import Fate, Sent
from sim_transaction_works import Told, Work, rows
from sim_transactions import TransactionStorm

KEYS = 2
MESSAGES = frozenset({"ADVISORY_CLAIM", "ADVISORY_HELD"})


@dataclass(frozen=True)
class Hold:
    key: int
    shared: bool
    begin: float
    end: float

    def clashes(self, other: Hold) -> bool:
        apart = self.end <= other.begin or other.end <= self.begin
        return self.key == other.key and not (self.shared and other.shared) and not apart


class Advisory(Work):
    name = "advisory"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.holds: list[Hold] = []
        self.tried = 0

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE held (id BIGINT PRIMARY KEY, k BIGINT)")

    async def step(self, client: Any, chance: Random) -> None:
        key, shared = chance.randrange(KEYS), chance.random() < 0.3
        tries = chance.random() < 0.3
        function = f"pg_{'try_' * tries}advisory_xact_lock{'_shared' * shared}"
        async with client.transaction() as transaction:
            found = await rows(transaction, f"SELECT {function}({key})")
            begin = self.told.now()
            if found == [(False,)]:
                self.tried += 1
                return
            await asyncio.sleep(chance.random() * 0.3)
            end = self.told.now()
            number = self.told.number()
            await rows(transaction, f"INSERT INTO held VALUES ({number}, {key})")
        self.holds.append(Hold(key, shared, begin, end))
        self.well()

    async def finish(self, client: Any) -> None:
        """Every lock is free again."""
        async with client.transaction() as transaction:
            for key in range(KEYS):
                await rows(transaction, f"SELECT pg_advisory_xact_lock({key})")

    def judge(self) -> list[str]:
        for place, hold in enumerate(self.holds):
            for other in self.holds[:place]:
                if hold.clashes(other):
                    self.wrong.append(f"{hold} and {other} exclude each other")
        return [f"advisory: {each}" for each in self.wrong[:5]]


FAULTS = ("crash", "crash", "crash", "split", "join", "leave", "break", "silence")


class AdvisoryStorm(TransactionStorm):
    def __init__(self, seed: int, level: str | None = None) -> None:
        super().__init__(seed, level or "serializable")
        self.works = [Advisory(self.told)]
        chance = Random(f"{seed}/advisory")
        self.users, self.pause = 5, 0.02
        self.events = [chance.choice(FAULTS) for _ in range(3)]

    def _fate(self, sent: Sent) -> Fate | None:
        if sent.name not in MESSAGES:
            return super()._fate(sent)
        if self.random.random() > 0.3:
            return None
        # So late that it is sent once more.
        return Fate((self.random.uniform(0, 3.0),))
