"""Storms over a cluster that makes snapshots: what each holds must be one moment that clients could
have seen (assertions A1 to A5, A7 and A8 of a consistent cut).

Clients do what leaves a trace of every order that counts. Money moves between accounts (a part of a
transaction alone changes the sum); writes of many rows bear one number; and each client of a chain
copies what the one before it has written, so a value whose origin is not in the snapshot is seen.
The history that is compared with is the clients' own: what was acknowledged before a snapshot was
asked for, and what was asked for before it was there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

import sim_world
from sim_cluster import Simulation, played, simulation
from sim_log_disk import LogDisk

from remuda.errors import (
    DuplicateObject,
    RemudaError,
    ResourceError,
    TransientError,
    UndefinedObject,
)
from remuda.member.snapshots import making as snapshot_making
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.storage.snapshot.chain import load

CHAIN = 4
ACCOUNTS = 12
GROUPS = 3
ROWS = 10
NAME = "s"
KINDS = ("", " INCREMENT", " INCREMENT", "", " INCREMENT")
"""What is asked for, one after the other; without logs, bases."""


@dataclass
class SharedStore:
    """An object store in memory; ``failing`` is how likely it refuses."""

    random: Random
    objects: dict[str, bytes] = field(default_factory=dict)
    failing: float = 0.0

    def _fail(self) -> None:
        if self.failing and self.random.random() < self.failing:
            raise ResourceError("the store does not answer")

    def put(self, key: str, data: bytes) -> None:
        self._fail()
        if key in self.objects:
            raise DuplicateObject(f"object {key} exists already")
        self.objects[key] = data

    def get(self, key: str) -> bytes:
        if key not in self.objects:
            raise UndefinedObject(f"there is no object {key}")
        return self.objects[key]

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


@dataclass
class Counts:
    """What a writer has been acknowledged, and what it has asked for."""

    done: int = 0
    asked: int = 0


@dataclass
class Bounds:
    """Of a snapshot: each counter's ``done`` when it was asked for, and ``asked`` when it was
    there."""

    low: dict[str, int]
    high: dict[str, int]


class SnapshotStorm:
    def __init__(self, seed: int) -> None:
        self.random = Random(f"{seed}/snapshots")
        self.size = self.random.choice((1, 2, 3))
        self.crashing = self.size == 3 and self.random.random() < 0.5
        self.logged = self.random.random() < 0.6
        """The members keep logs, and most snapshots are increments."""
        self.store = SharedStore(Random(f"{seed}/store"))
        self.counts: dict[str, Counts] = {}
        self.bounds: dict[int, Bounds] = {}
        self.ends: Counter[str] = Counter()
        self.working = True

    def run(self, seed: int) -> Simulation:
        with ExitStack() as patches:
            patches.enter_context(
                mock.patch.object(SnapshotStorage, "_store", lambda _self: self.store)
            )
            # More objects than rows deserve, so that much happens between two of them.
            patches.enter_context(mock.patch.object(snapshot_making, "OBJECT_ROWS", 8))
            patches.enter_context(mock.patch.object(sim_world, "SimulatedDisk", LogDisk))
            settings = {"data_dir": "/data", "checkpoint_size": 20_000} if self.logged else {}
            with simulation(seed, self.size, backups=1, snapshot_store="shared", **settings) as sim:
                self.sim = sim
                sim.work = self.random.choice((0.0, 0.0005))
                sim.skew_max = self.random.choice((0.0, 0.5, 4.0))
                sim.network.slow = self.random.choice((0.0, 0.02))
                sim.note(f"{self.size} members, crashing {self.crashing}, logged {self.logged}")
                sim.form()
                sim.complete(self.storm())
                sim.settle(60.0)
                sim.verdict()
            with simulation(seed, self.random.choice((1, 2)), snapshot_store="shared") as sim:
                self.sim = sim  # another cluster, of another size
                sim.form()
                sim.complete(self.elsewhere())
                sim.settle(60.0)
                sim.verdict()
        return sim

    # ---- the storm ----

    async def storm(self) -> None:
        sim, chance = self.sim, self.random
        client = await sim.client(1)
        for text in (
            "CREATE TABLE accounts (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)",
            "CREATE TABLE chain (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)",
            "CREATE TABLE bulk (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)",
            f"INSERT INTO accounts SELECT i, 100 FROM generate_series(1, {ACCOUNTS}) AS g(i)",
            f"INSERT INTO chain SELECT i, 0 FROM generate_series(0, {CHAIN - 1}) AS g(i)",
            f"INSERT INTO bulk SELECT i, 0 FROM generate_series(0, {GROUPS * ROWS - 1}) AS g(i)",
        ):
            await client.run(text)
        client.channel.close()
        work = [sim.loop.create_task(self.move()) for _ in range(2)]
        work += [sim.loop.create_task(self.copy(link)) for link in range(CHAIN)]
        work += [sim.loop.create_task(self.replace(group)) for group in range(GROUPS)]
        work += self.trouble()
        for kind in KINDS if self.logged else KINDS[:1] * 3:
            await asyncio.sleep(chance.uniform(0, 0.5))
            self.store.failing = chance.choice((0.0, 0.0, 0.02))
            await self.make(kind)
        self.working = False
        await asyncio.gather(*work)
        self.store.failing = 0.0
        await asyncio.sleep(30.0)  # until the others have taken over
        await self.look()

    def trouble(self) -> list[asyncio.Task[None]]:
        """Begin what happens to the members: one may crash."""
        if self.crashing:
            self.sim.loop.call_later(self.random.uniform(0, 2.0), self.crash)
        return []

    def crash(self) -> None:
        self.sim.crash(self.random.choice(sorted(self.sim.live())), silently=False)

    async def ask(self, action: Any) -> Any:
        """What a client gets from some member; None for an error that may be."""
        sim = self.sim
        number = self.random.choice(sorted(sim.live()))
        try:
            async with asyncio.timeout(300.0):
                client = await sim.client(number)
                try:
                    return await action(client)
                finally:
                    client.channel.close()
        except TimeoutError:
            sim.violations.append(f"no end within 300 s on member {number}")
        except (TransientError, ResourceError) as error:
            sim.note(f"member {number}: {error!r}")
            self.ends[type(error).__name__] += 1
        except RemudaError as error:
            sim.violations.append(f"member {number}: {error!r}")
        return None

    async def sql(self, text: str) -> Any:
        return await self.ask(lambda client: client.run(text))

    async def move(self) -> None:
        """Money, by one statement or by two puts of a transaction's size."""
        chance = self.random
        while self.working:
            a, b = chance.sample(range(1, ACCOUNTS + 1), 2)
            await self.sql(
                f"UPDATE accounts SET v = v + CASE id WHEN {a} THEN 1 ELSE -1 END "
                f"WHERE id IN ({a}, {b})"
            )
            await asyncio.sleep(chance.uniform(0, 0.2))

    async def copy(self, link: int) -> None:
        """The first link counts; each other one puts what it has read of the one before."""
        counts = self.counts[f"chain {link}"] = Counts()
        while self.working:
            if link == 0:
                value: int | None = counts.asked + 1
            else:
                rows = await self.sql(f"SELECT v FROM chain WHERE id = {link - 1}")
                value = rows[0][0] if rows else None
            if value is not None and value >= counts.asked:
                counts.asked = value

                async def put(client: Any, value: int = value) -> bool:
                    schema = await client.schema("chain")
                    await client.put(schema, link, value, *[None] * (len(schema.columns) - 2))
                    return True

                if await self.ask(put):
                    counts.done = value
                    self.ends["put"] += 1
            await asyncio.sleep(self.random.uniform(0, 0.1))

    async def replace(self, group: int) -> None:
        """All rows of a group get the next number."""
        counts = self.counts[f"bulk {group}"] = Counts()
        while self.working:
            counts.asked += 1
            number = counts.asked
            text = (
                f"SINK INTO bulk (id, v) SELECT {group * ROWS} + i, {number} "
                f"FROM generate_series(0, {ROWS - 1}) AS g(i)"
            )
            if await self.sql(text) is not None:
                counts.done = number
                self.ends["replace"] += 1
            await asyncio.sleep(self.random.uniform(0, 0.2))

    async def make(self, kind: str) -> None:
        low = {name: counts.done for name, counts in self.counts.items()}
        rows = await self.sql(f"CREATE SNAPSHOT {NAME}{kind}")
        if rows:
            self.ends[rows[0][2]] += 1
            high = {name: counts.asked for name, counts in self.counts.items()}
            self.bounds[rows[0][1]] = Bounds(low, high)
            self.ends["snapshot"] += 1
            self.sim.note(f"cut {rows[0][1]} made")

    # ---- judging ----

    async def look(self) -> None:
        """Every cut that is in the store, also those whose maker has not heard of it."""
        known = load(self.store, NAME) if self.store.keys(f"{NAME}/") else None
        there = set(known.manifests) if known is not None else set()
        if not self.bounds.keys() <= there:
            self.sim.violations.append(f"cuts {self.bounds.keys() - there} are gone")
        before: dict[str, int] = {}
        for cut in sorted(there):
            found = await self.sql(f"VERIFY SNAPSHOT {NAME}")
            if found:
                self.sim.violations.append(f"verify: {found}")
            before = await self.restored(cut, before)

    async def elsewhere(self) -> None:
        for cut in sorted(self.bounds):
            await self.restored(cut, {})

    async def restored(self, cut: int, before: dict[str, int]) -> dict[str, int]:
        """Restore a cut and judge it; the counters in it."""
        prefix = f"c{cut}_"
        if await self.sql(f"RESTORE SNAPSHOT {NAME} CUT {cut} PREFIX '{prefix}'") is None:
            self.sim.violations.append(f"cut {cut} was not restored")
            return before
        self.ends["restore"] += 1
        wrong = self.sim.violations
        [(total, count)] = await self.sql(f"SELECT sum(v), count(*) FROM {prefix}accounts")
        if (total, count) != (100 * ACCOUNTS, ACCOUNTS):
            wrong.append(f"cut {cut}: {total} on {count} accounts")
        chain = dict(await self.sql(f"SELECT id, v FROM {prefix}chain"))
        if chain.keys() != set(range(CHAIN)):
            wrong.append(f"cut {cut}: the chain is {chain}")
            return before
        if any(chain[link] < chain[link + 1] for link in range(CHAIN - 1)):
            wrong.append(f"cut {cut}: copies without their origin: {chain}")
        found = {f"chain {link}": value for link, value in chain.items()}
        for group in range(GROUPS):
            rows = await self.sql(
                f"SELECT DISTINCT v FROM {prefix}bulk WHERE id / {ROWS} = {group}"
            )
            if len(rows) != 1:
                wrong.append(f"cut {cut}: group {group} has {rows}")
                return before
            found[f"bulk {group}"] = rows[0][0]
        bounds = self.bounds.get(cut)
        for name, value in found.items():
            if value < before.get(name, 0):
                wrong.append(f"cut {cut}: {name} goes back to {value} from {before[name]}")
            if bounds is not None and not (
                bounds.low.get(name, 0) <= value <= bounds.high.get(name, value)
            ):
                wrong.append(
                    f"cut {cut}: {name} is {value}, not {bounds.low[name]} to {bounds.high[name]}"
                )
        return found


class AlteringSnapshotStorm(SnapshotStorm):
    """Members keep logs, and maps are altered while snapshots are made: the logs of a cut have rows
    of several versions of their maps."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.logged, self.size = True, max(self.size, 2)
        self.alters = Random(f"{seed}/alters")
        self.altered: set[str] = set()

    async def make(self, kind: str) -> None:
        chance = self.alters
        names = chance.sample(("accounts", "chain", "bulk"), chance.choice((0, 1, 1, 2)))
        edits = [self.alter(name, chance.uniform(0.0, 0.1)) for name in names]
        await asyncio.gather(super().make(kind), *edits)

    async def alter(self, name: str, after: float) -> None:
        await asyncio.sleep(after)
        there = name in self.altered
        edit = "DROP COLUMN IF EXISTS x" if there else "ADD COLUMN IF NOT EXISTS x INTEGER"
        if await self.sql(f"ALTER TABLE {name} {edit}") is not None:
            self.altered ^= {name}
            self.ends["alter"] += 1


class MovingSnapshotStorm(SnapshotStorm):
    """Members join and leave while snapshots are made, so partitions change their places between
    two objects of a snapshot, and between the steps of a cut."""

    MEMBERS_MAX = 5

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.size, self.crashing = 3, False
        self.moves = Random(f"{seed}/moves")
        self.views = 0

    def trouble(self) -> list[asyncio.Task[None]]:
        return [self.sim.loop.create_task(self.come_and_go())]

    async def make(self, kind: str) -> None:
        """And restore it, while partitions move: the rows must all be found."""
        await super().make(kind)
        if self.bounds:
            cut = max(self.bounds)
            text = f"RESTORE SNAPSHOT {NAME} CUT {cut} PREFIX 'moving{self.sim.loop.now:.6f}_'"
            if await self.sql(text) is not None:
                self.ends["restore while moving"] += 1

    async def come_and_go(self) -> None:
        sim, chance = self.sim, self.moves
        while self.working:
            await asyncio.sleep(chance.uniform(0.1, 1.0))
            live = sorted(sim.live())
            leaves = len(live) >= self.MEMBERS_MAX or (len(live) > 2 and chance.random() < 0.5)
            try:
                if leaves:
                    await sim.leave(chance.choice(live))
                else:
                    await sim.join(chance.choice(live))
            except TransientError as error:  # two at once: the later one may be refused
                sim.note(f"no {'leave' if leaves else 'join'}: {error!r}")
        self.views = max(member.core.view.number for member in sim.live().values())


def run_seed(seed: int, storm: type[SnapshotStorm] = SnapshotStorm) -> SnapshotStorm:
    return played(seed, storm(seed))
