"""Losses of power under load: the disk of all members is copied in the middle of operations, with
what clients had been told by then. Each copy is torn as a power cut would, members start again on
it, and everything that was told must be there: every acknowledged statement as a whole, the one
that was under way as a whole or not at all."""

from __future__ import annotations

import asyncio
import threading
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from logged import logged_cluster, on_disk, sim_disk
from tests.member.conftest import TestClient
from transacting import Session

from remuda.errors import RemudaError, SerializationFailure

KEYS = 12
TURNS = 20
FOLDERS = [Path("/disk/a"), Path("/disk/b")]
State = dict[int, int]


@dataclass
class Writer:
    """One client, its own keys. ``acknowledged``, then perhaps ``under_way``."""

    base: int
    random: Random
    acknowledged: State = field(default_factory=dict)
    under_way: State | None = None
    done: int = 0

    def next(self) -> tuple[list[str], State]:
        """Statements of one transaction (or a single one), and what they lead to."""
        state, random = dict(self.acknowledged), self.random
        keys = [self.base + random.randrange(KEYS) for _ in range(random.choice([1, 1, 3]))]
        value = self.done * 1000 + self.base
        what = random.choice(["merge", "merge", "delete", "update", "transaction"])
        if what == "merge":
            state |= dict.fromkeys(keys, value)
            rows = ", ".join(f"({key}, {value})" for key in dict.fromkeys(keys))
            put = "ON CONFLICT (id) DO UPDATE SET x = excluded.x"
            return [f"INSERT INTO t VALUES {rows} {put}"], state
        listed = ", ".join(map(str, keys))
        if what == "delete":
            return [f"DELETE FROM t WHERE id IN ({listed})"], {
                key: x for key, x in state.items() if key not in keys
            }
        changed = {key: x + 1 if key in keys else x for key, x in state.items()}
        update = f"UPDATE t SET x = x + 1 WHERE id IN ({listed})"
        if what == "update":
            return [update], changed
        key = self.base + random.randrange(KEYS)
        changed[key] = value
        insert = f"INSERT INTO t VALUES ({key}, {value}) ON CONFLICT (id) DO UPDATE SET x = {value}"
        return ["BEGIN", update, insert, "COMMIT"], changed

    async def work(self, client: TestClient) -> None:
        session = Session(client)
        while True:
            statements, state = self.next()
            self.under_way = state
            self.done += 1
            try:
                for text in statements:
                    await session.sql(text)
            except SerializationFailure:  # for certain nothing of it
                self.under_way = None
                continue
            self.acknowledged, self.under_way = state, None


@dataclass
class Moment:
    disk: Any
    told: list[tuple[State, State | None]]
    done: int


class Camera(sim_disk.SimulatedDisk):  # type: ignore[misc, name-defined]
    """Takes pictures of itself in the middle of operations."""

    def __init__(self, random: Random, chance: float) -> None:
        super().__init__(random)
        self.chance = chance
        self.writers: list[Writer] = []
        self.moments: list[Moment] = []
        self.lock_all = threading.RLock()
        self.wanted = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        """While it is set, each operation of a thread lets it turn first, as a disk that takes its
        time does: who does not wait for the disk is then ahead of it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        grain = self.random.choice(sim_disk.GRAINS)
        plain = sim_disk.SimulatedDisk(Random(self.random.random()), grain)
        for name in ("names_now", "names_stored", "changes", "folders"):
            setattr(plain, name, deepcopy(getattr(self, name), memo))
        return plain

    def _operation(self) -> None:
        if self.loop is not None and threading.current_thread() is not threading.main_thread():
            turned = threading.Event()
            self.loop.call_soon_threadsafe(_turn, self.loop, turned, TURNS)
            turned.wait(1)  # at most: a loop that joins the thread turns no more
        with self.lock_all:
            super()._operation()
            if len(self.moments) < self.wanted and self.random.random() < self.chance:
                # What was told before is what must be there: read first.
                told = [(dict(w.acknowledged), w.under_way) for w in self.writers]
                done = sum(writer.done for writer in self.writers)
                self.moments.append(Moment(deepcopy(self), told, done))


def _turn(loop: asyncio.AbstractEventLoop, turned: threading.Event, left: int) -> None:
    if left:
        loop.call_soon(_turn, loop, turned, left - 1)
    else:
        turned.set()


async def record(seed: int, moments: int, **settings: Any) -> list[Moment]:
    random = Random(seed)
    disk = Camera(random, chance=0.04)
    async with logged_cluster(FOLDERS, on_disk(disk), **settings) as cluster:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT)")
        disk.writers = [Writer(1000 * n, Random(f"{seed}/{n}")) for n in (1, 2, 3)]
        disk.wanted, disk.loop = moments, asyncio.get_running_loop()
        works = [
            asyncio.ensure_future(writer.work(await cluster.client(1 + place % len(FOLDERS))))
            for place, writer in enumerate(disk.writers)
        ]
        while len(disk.moments) < moments and not any(work.done() for work in works):
            await asyncio.sleep(0.005)
        disk.loop = None
        for work in works:
            if work.done():
                work.result()
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
    return disk.moments


async def judge(moment: Moment, **settings: Any) -> str:
    """What is wrong after a start from what the loss of power has left; "": nothing."""
    moment.disk.lose_power()
    try:
        async with logged_cluster(
            FOLDERS, on_disk(moment.disk), join_timeout=3.0, **settings
        ) as cluster:
            client = await cluster.client()
            rows = dict(await client.sql("SELECT id, x FROM t"))
    except RemudaError as error:
        return f"no start: {error}"
    for number, (acknowledged, under_way) in enumerate(moment.told, 1):
        found = {key: x for key, x in rows.items() if key // 1000 == number}
        if found not in (acknowledged, under_way):
            return f"after {moment.done}: writer {number} has {found}, was told {acknowledged}"
    return ""


async def losses(seed: int, moments: int, *, first: bool = False, **settings: Any) -> list[str]:
    """What is wrong after each moment, or after the first one after which anything is."""
    found: list[str] = []
    for moment in await record(seed, moments, **settings):
        wrong = await judge(moment, **settings)
        if wrong:
            found.append(wrong)
            if first:
                break
    return found
