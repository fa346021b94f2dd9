"""Scans with slow readers while partitions move: members join and leave, and now and then one
crashes, while pages of a scan are on their way (design rule 20).

Every scan reads one state of the map, whole: each row once, all rows as one UPDATE has left them.
Or it ends with one transient error.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

from sim_client import Client, Result
from sim_cluster import Simulation, played, simulation

from remuda.errors import RemudaError, TransientError

ROWS = 200
TEXT = "x" * 60
SCANS = (
    "SELECT id, v, s FROM t",
    "SELECT id, v, s FROM t ORDER BY id",
    "SELECT a.id, a.v, a.s FROM t a JOIN t b ON a.id = b.id AND a.v = b.v",
)
PATIENCE = (0.0, 0.05, 0.4)
"""Seconds that a reader takes for a page."""
LIMIT = 400.0


class MovingStorm:
    def __init__(self, seed: int) -> None:
        self.random = Random(f"{seed}/moving")
        chance = self.random
        self.size = chance.choice((2, 3))
        self.events = chance.choices(("join", "leave", "crash"), (4, 3, 1), k=chance.randint(2, 3))
        self.settings: dict[str, Any] = {
            "backups": 1,
            "batch_rows": chance.choice((0, 7)),
            "window": chance.choice((0, 3000)),
        }
        self.ends: Counter[str] = Counter()
        self.rounds = 0
        self.moved = 0
        """Scans that gave rows in more than one view."""
        self.working = True

    def run(self, seed: int) -> Simulation:
        with simulation(seed, self.size, **self.settings) as sim:
            self.sim = sim
            sim.work = self.random.choice((0.0, 0.0005))
            sim.note(f"{self.size} members, {self.events}, {self.settings}")
            sim.form()
            sim.complete(self.storm(), LIMIT)
            sim.settle(120.0)
            sim.verdict()
        return sim

    async def storm(self) -> None:
        sim, chance = self.sim, self.random
        client = await sim.client(1)
        await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, s TEXT)")
        await client.run(
            f"INSERT INTO t SELECT i, 0, '{TEXT}' FROM generate_series(1, {ROWS}) AS g(i)"
        )
        client.channel.close()
        work = [sim.loop.create_task(self.read(number)) for number in range(3)]
        work.append(sim.loop.create_task(self.write()))
        for event in self.events:
            await asyncio.sleep(chance.uniform(0.5, 2.0))
            await self.happen(event)
        await asyncio.sleep(1.0)
        self.working = False
        await asyncio.gather(*work)

    async def happen(self, event: str) -> None:
        sim, chance = self.sim, self.random
        live = sorted(sim.live())
        if event == "join" or len(live) < 3:
            await sim.join(chance.choice(live))
        elif event == "leave":
            await sim.leave(chance.choice(live))
        else:
            sim.crash(chance.choice(live))
            await asyncio.sleep(12.0)  # the copies are made again

    async def client(self) -> Client | None:
        live = sorted(self.sim.live())
        try:
            return await self.sim.client(self.random.choice(live))
        except RemudaError:
            await asyncio.sleep(0.1)
            return None

    # ---- writes ----

    async def write(self) -> None:
        while self.working:
            client = await self.client()
            if client is None:
                continue
            try:
                await client.run("UPDATE t SET v = v + 1")
                self.rounds += 1
            except TransientError as error:
                self.sim.note(f"update: {error!r}")
            except RemudaError as error:
                self.sim.violations.append(f"an update: {error!r}")
            client.channel.close()
            await asyncio.sleep(self.random.uniform(0.1, 0.6))

    # ---- scans ----

    async def read(self, number: int) -> None:
        chance = self.random
        while self.working:
            client = await self.client()
            if client is None:
                continue
            client.patience = chance.choice(PATIENCE)
            text = chance.choice(SCANS)
            before = self.views()
            try:
                result = await client.start(text, page_rows=chance.choice((20, 100)))
                async with asyncio.timeout(LIMIT):
                    await result.done.wait()
            except RemudaError as error:  # not even accepted
                self.judge(number, text, Result(error=error, ends=1))
            else:
                self.judge(number, text, result)
                self.moved += result.error is None and self.views() != before
            client.channel.close()
            await asyncio.sleep(chance.uniform(0.0, 0.1))

    def views(self) -> int:
        return max(member.core.view.number for member in self.sim.live().values())

    def judge(self, number: int, text: str, result: Result) -> None:
        sim = self.sim
        name = f"reader {number} ({text})"
        self.ends[type(result.error).__name__] += 1
        if result.ends != 1:
            sim.violations.append(f"{name}: ended {result.ends} times")
        if result.error is not None:
            sim.note(f"{name}: {result.error!r} after {len(result.rows)} rows")
            if not isinstance(result.error, TransientError):
                sim.violations.append(f"{name}: {result.error!r}")
            return
        ids = [row[0] for row in result.rows]
        if sorted(ids) != list(range(1, ROWS + 1)):
            counted = Counter(ids)
            twice = sum(count > 1 for count in counted.values())
            sim.violations.append(f"{name}: {ROWS - len(counted)} rows missing, {twice} repeated")
        if "ORDER" in text and ids != sorted(ids):
            sim.violations.append(f"{name}: not in order")
        if len({row[1] for row in result.rows}) > 1:
            sim.violations.append(f"{name}: rows of several updates")


def run_seed(seed: int) -> MovingStorm:
    return played(seed, MovingStorm(seed))
