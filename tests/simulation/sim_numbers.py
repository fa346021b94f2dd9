"""Storms of statements that take numbers of sequences (decision 0081), while members fail and
partitions move.

No number of a sequence is given out twice. ``setval`` always sets a number above all before it: a
call that begins when it has ended gets a higher one. With CACHE 1 the same holds for a call that
begins when another one has ended.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

from sim_network import Fate, Sent
from sim_transaction_works import Told, Work, failed, rows
from sim_transactions import TransactionStorm

from remuda.errors import RemudaError

JUMP = 1_000_000
SEQUENCES = {"plain": 1, "kept": 10}
"""Names, and their CACHE."""
NUMBER_MESSAGES = frozenset({"SEQUENCE", "SEQUENCE_VOID"})


class Numbers(Work):
    name = "numbers"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.given: dict[str, list[int]] = {name: [] for name in (*SEQUENCES, "rows")}
        self.least = dict.fromkeys(self.given, 0)
        """What a call that begins now may get at least."""
        self.jumps = 0
        self.setting = asyncio.Lock()

    async def prepare(self, client: Any) -> None:
        for name, cache in SEQUENCES.items():
            await client.sql(f"CREATE SEQUENCE {name} CACHE {cache}")
        await client.sql("CREATE TABLE rows (id BIGSERIAL PRIMARY KEY, v BIGINT)")

    async def step(self, client: Any, chance: Random) -> None:
        draw = chance.random()
        name = chance.choice(list(self.given))
        if draw < 0.1 and not self.setting.locked():
            async with self.setting:
                await self._set(client, chance, name)
        elif name == "rows":
            await self._insert(client, chance.choice((1, 1, 2, 5)))
        else:
            wanted = chance.choice((1, 1, 1, 4, 30))
            text = f"SELECT nextval('{name}') FROM generate_series(1, {wanted})"
            await self._take(client, name, text)

    async def _insert(self, client: Any, wanted: int) -> None:
        values = ", ".join(["(1)"] * wanted)
        await self._take(client, "rows", f"INSERT INTO rows (v) VALUES {values} RETURNING id")

    async def _take(self, client: Any, name: str, text: str) -> None:
        least = self.least[name]
        found = [row[0] for row in await rows(client, text)]
        self.given[name] += found
        if min(found) <= least:
            self.wrong.append(f"{name} gave {found} to a call that began after {least}")
        if name != "kept":
            self.least[name] = max(self.least[name], *found)
        self.well()

    async def _set(self, client: Any, chance: Random, name: str) -> None:
        sequence = "rows_id_seq" if name == "rows" else name
        self.jumps += 1
        value = self.jumps * JUMP
        if chance.random() < 0.5:
            text = f"SELECT setval('{sequence}', {value})"
        else:
            text = f"ALTER SEQUENCE {sequence} RESTART WITH {value + 1}"
        try:
            await (await client.sql(text)).fetchall()
        except RemudaError as error:
            if not failed(error):
                self.told.ends["numbers unknown"] += 1
            raise
        self.least[name] = max(self.least[name], value)
        self.told.ends["numbers set"] += 1

    async def finish(self, client: Any) -> None:
        for name in SEQUENCES:
            await self._take(client, name, f"SELECT nextval('{name}')")
        stored = [row[0] for row in await rows(client, "SELECT id FROM rows")]
        gone = set(self.given["rows"]) - set(stored)
        if gone:
            self.wrong.append(f"rows {sorted(gone)[:5]} were told and are not there")

    def judge(self) -> list[str]:
        for name, given in self.given.items():
            twice = [number for number, times in Counter(given).items() if times > 1]
            if twice:
                self.wrong.append(f"{name} gave out {sorted(twice)[:5]} twice")
        return [f"numbers: {each}" for each in self.wrong[:5]]


FAULTS = ("crash", "crash", "split", "join", "leave", "break", "silence")


class NumberStorm(TransactionStorm):
    """``dense``: nothing fails, and frames are late."""

    def __init__(self, seed: int, level: str | None = None, *, dense: bool = False) -> None:
        super().__init__(seed, level or "serializable")
        self.dense = dense
        self.works = [Numbers(self.told)]
        self.asked = 0
        chance = Random(f"{seed}/numbers")
        self.users, self.pause = 5, 0.02
        if dense:
            self.events, self.lossy, self.between, self.slow = ["nothing"], True, 0.7, 0.0
        else:
            self.events = [chance.choice(FAULTS) for _ in range(2)]

    async def storm(self) -> None:
        self.sim.network.watchers.append(self._watch)
        await super().storm()

    def _watch(self, sent: Sent) -> None:
        self.asked += sent.name == "SEQUENCE" and sent.mode == 0

    def _fate(self, sent: Sent) -> Fate | None:
        if sent.name not in NUMBER_MESSAGES:
            return None if self.dense else super()._fate(sent)
        if self.random.random() > 0.2:
            return None
        return Fate((self.random.uniform(0, 0.05 if self.dense else 0.3),))


def dense(seed: int, level: str | None) -> NumberStorm:
    return NumberStorm(seed, level, dense=True)
