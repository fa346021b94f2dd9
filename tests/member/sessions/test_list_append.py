"""Transactions of several clients over three members append to lists and read them, by map
operations and by SQL; the history is judged for strict serializability (``histories``)."""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import remuda.aio
from remuda.errors import SerializationFailure, TransientError, UniqueViolation

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "transaction"))
import histories
from histories import Append, Outcome, Read, Transaction

pytestmark = pytest.mark.cluster

KEYS = 6
WORKERS = 6
EACH = 15


@dataclass
class Items:
    items: str


def values(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",")) if text else ()


async def read(tx: Any, chance: random.Random, key: int) -> str | None:
    how = chance.randrange(3)
    if how == 0:
        found = await tx.map("lists", Items).get(key)
        return None if found is None else found.items
    text = "SELECT items FROM lists WHERE id = ?" if how == 1 else (
        "SELECT items FROM lists WHERE id + 0 = ?"
    )  # fmt: skip
    rows = await (await tx.sql(text, key)).fetchall()
    return rows[0][0] if rows else None


async def append(tx: Any, chance: random.Random, key: int, value: int) -> Read:
    """The whole list is read, and stored with the value behind it."""
    before = await read(tx, chance, key)
    after = f"{before},{value}" if before else str(value)
    if chance.randrange(2):
        await tx.map("lists", Items).put(key, Items(after))
    elif before is None:
        await tx.sql("INSERT INTO lists VALUES (?, ?)", key, after)
    else:
        await tx.sql("UPDATE lists SET items = ? WHERE id = ?", after, key)
    return Read(key, values(before))


class Worker:
    def __init__(self, client: Any, seed: int, number: int, isolation: str) -> None:
        self.client = client
        self.isolation = isolation
        self.chance = random.Random(f"{seed} {number}")
        self.next = number * 1_000_000
        self.history: list[Transaction] = []

    async def run(self) -> None:
        for _ in range(EACH):
            await self.one()

    async def one(self) -> None:
        chance, done = self.chance, list[Append | Read]()
        began = asyncio.get_running_loop().time()
        outcome = Outcome.COMMITTED
        try:
            async with self.client.transaction(isolation=self.isolation) as tx:
                for _ in range(chance.randint(1, 4)):
                    key = chance.randrange(KEYS)
                    if chance.random() < 0.5:
                        done.append(Read(key, values(await read(tx, chance, key))))
                    else:
                        self.next += 1
                        done.append(await append(tx, chance, key, self.next))
                        done.append(Append(key, self.next))
        except (SerializationFailure, UniqueViolation):  # the latter below SERIALIZABLE
            outcome = Outcome.ABORTED
        except TransientError:
            outcome = Outcome.UNKNOWN
        ended = asyncio.get_running_loop().time()
        self.history.append(Transaction(tuple(done), outcome, began, ended))


def history_of(in_cluster: Any, seed: int, isolation: str) -> list[Transaction]:
    history: list[Transaction] = []

    async def scenario(cluster: Any) -> None:
        addresses = [member.addresses()["user"] for member in cluster.members]
        async with remuda.aio.connect(addresses) as client:
            await client.sql("CREATE TABLE lists (id INT PRIMARY KEY, items VARCHAR)")
            workers = [Worker(client, seed, n, isolation) for n in range(1, WORKERS + 1)]
            await asyncio.gather(*(worker.run() for worker in workers))
        for worker in workers:
            history.extend(worker.history)
        await cluster.idle()

    in_cluster(scenario, 3, heartbeat_timeout=60.0)
    return history


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_histories_are_strictly_serializable(in_cluster: Any, seed: int) -> None:
    history = history_of(in_cluster, seed, "serializable")
    found = histories.anomalies(history)
    assert not found, "\n".join(map(str, found))
    outcomes = [transaction.outcome for transaction in history]
    assert outcomes.count(Outcome.COMMITTED) > WORKERS
    assert Outcome.UNKNOWN not in outcomes
    assert Outcome.ABORTED in outcomes, "without conflicts there is nothing to judge"


def test_weaker_levels_are_told_from_it(in_cluster: Any) -> None:
    """Reads that nobody checks: the same judge finds what READ COMMITTED allows."""
    assert histories.anomalies(history_of(in_cluster, 3, "read committed"))
