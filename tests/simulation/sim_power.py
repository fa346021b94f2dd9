"""Losses of power of whole simulated clusters: users work as in ``sim_transactions``, then all
machines lose power (or some of them earlier, or processes are killed), in the middle of an
operation of a disk, of a message, or at any time. What was written and not synced is kept in any
part. Members start again in any order, users go on, and what all of them were told is judged as one
history: every acknowledged write is there, none half.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import Any
from unittest import mock

import sim_world
from sim_cluster import FAST, Simulation, Violation, played, simulation
from sim_log_disk import LogDisk
from sim_loop import CURRENT
from sim_network import Sent
from sim_transaction_works import LEVELS, WORKS, Registers, Told, Work, rows
from sim_users import connected, running, users_of

from remuda.config import MemberConfig
from remuda.errors import PartitionsLost, RemudaError
from remuda.execution.pool import Pool
from remuda.member.base import offload
from remuda.member.journal import checkpoint as wal_checkpoint
from remuda.member.membership import recovery
from remuda.rpc.connection import ChannelKind
from remuda.storage.log.files import open_log

PATIENCE = 200.0
"""Seconds within which a cluster has started again, and what is asked has an answer."""
STAGGER = 8.0
"""Seconds within which members end that do not end at once: others may go on without them."""
LIFE = 0.5
"""Seconds of work, at most, before the first machine ends."""
COMING = (0.0, 0.1, 3.0, 12.0)
"""Seconds after which members come back: after the last of these, others may have gone on."""
DISK_WORK = (0.0, 0.001, 0.01)
"""Seconds that a piece of work off the loop waits for its turn, at most."""


class Bulk(Work):
    """Bulk writes of many rows that bear one number: all of them or none, and never an older one
    than was acknowledged."""

    name = "bulk"
    groups = 2
    rows = 6

    async def prepare(self, client: Any) -> None:
        end = " REPLICATED" if self.told.random.random() < 0.3 else ""
        await client.sql(f"CREATE TABLE bulk (id BIGINT PRIMARY KEY, v BIGINT NOT NULL){end}")
        self.done: Counter[int] = Counter()
        self.asked: Counter[int] = Counter()
        self.busy: set[int] = set()

    async def step(self, client: Any, chance: Random) -> None:
        group = chance.randrange(self.groups)
        if group in self.busy:  # numbers of a group come one after the other
            return await self.look(client)
        self.busy.add(group)
        self.asked[group] = number = self.asked[group] + 1
        first = group * self.rows
        try:
            await client.sql(
                f"SINK INTO bulk SELECT {first} + i, {number} "
                f"FROM generate_series(0, {self.rows - 1}) AS g(i)"
            )
            self.done[group] = number
            self.well()
        finally:
            self.busy.discard(group)
        return None

    async def look(self, client: Any) -> None:
        known = self.done.copy()
        found: dict[int, set[int]] = {}
        counted: Counter[int] = Counter()
        for key, value in await rows(client, "SELECT id, v FROM bulk"):
            found.setdefault(key // self.rows, set()).add(value)
            counted[key // self.rows] += 1
        for group in range(self.groups):
            values = found.get(group, {0})
            whole = not found.get(group) or counted[group] == self.rows
            if len(values) > 1 or not whole:
                self.wrong.append(f"group {group} has {counted[group]} rows of {values}")
            elif not known[group] <= max(values) <= self.asked[group]:
                self.wrong.append(
                    f"group {group} has {values}; {known[group]} of {self.asked[group]} were done"
                )

    async def finish(self, client: Any) -> None:
        await self.look(client)


class Definitions(Work):
    """Tables, columns and indexes that were acknowledged are there."""

    name = "definitions"

    async def prepare(self, client: Any) -> None:
        self.known: list[str] = []
        self.made = 0

    async def step(self, client: Any, chance: Random) -> None:
        self.made += 1
        name = f"d{self.made}"
        await client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT)")
        self.known.append(f"SELECT id, v FROM {name}")
        await client.sql(f"ALTER TABLE {name} ADD COLUMN w BIGINT")
        self.known.append(f"SELECT w FROM {name}")
        self.well()

    async def finish(self, client: Any) -> None:
        for text in self.known:
            try:
                await rows(client, text)
            except RemudaError as error:
                if error.retryable:
                    raise
                self.wrong.append(f"{text}: {error!r}")


POWER_WORKS = (*WORKS, Registers, Bulk, Bulk, Definitions)


class SlowPool(Pool):
    """Work off the loop takes its turn later, as on a thread: who does not wait is ahead of it."""

    def __init__(self, threads: int, workers: Any, name: str = "", later: Any = None) -> None:
        loop, chance = asyncio.get_running_loop(), workers.random
        longest = chance.choice(DISK_WORK)
        self._free = loop.time()

        def soon(work: Any) -> None:  # one after the other
            self._free = max(self._free, loop.time()) + chance.uniform(0, longest)
            loop.call_at(self._free, work)

        super().__init__(0, workers, name, soon)


class PowerStorm:
    """``machines``: disks by name. A process's name is that of its machine, and which one it is."""

    def __init__(self, seed: int) -> None:
        chance = self.random = Random(f"{seed}/power")
        self.size = chance.choice((1, 2, 2, 3, 3, 3, 4))
        self.backups = min(self.size - 1, chance.choice((0, 1, 1, 2)))
        self.cuts = chance.choice((1, 1, 2, 3))
        self.users = chance.choice((2, 3))
        self.told = Told(chance.choice(LEVELS), Random(f"{seed}/works"))
        kinds = dict.fromkeys(chance.choice(POWER_WORKS) for _ in range(2))
        self.works: list[Work] = [kind(self.told) for kind in kinds]
        self.machines: dict[str, LogDisk] = {}
        self.lost_power: dict[str, bool] = {}
        """Of those that are down: whether by a loss of power, or only their process."""
        self.down = asyncio.Event()
        self.life = 0
        self.recovered = 0
        """Cuts in the middle of a start."""
        self.ends: Counter[str] = self.told.ends

    # ---- the run ----

    def run(self, seed: int) -> Simulation:
        chance = self.random
        with ExitStack() as patches:
            patch = partial(mock.patch.object)
            patches.enter_context(patch(sim_world, "SimulatedDisk", self._disk))
            patches.enter_context(patch(offload, "Pool", SlowPool))
            patches.enter_context(patch(wal_checkpoint, "LOOK_EVERY", 0.05))
            size = chance.choice((3000, None))
            if size:
                opened = partial(open_log, segment_size=size)
                patches.enter_context(patch(recovery, "open_log", opened))
            settings: dict[str, Any] = {
                "backups": self.backups,
                "data_dir": "/data",
                "checkpoint_size": chance.choice((2000, 20_000, 10**9)),
            }
            self.settings = {"cluster_size": self.size, **FAST, **settings}
            sim = self.sim = self.told.sim = patches.enter_context(
                simulation(seed, self.size, **settings)
            )
            patches.enter_context(users_of(sim))
            sim.note(f"{settings}, {self.told.level}, {[work.name for work in self.works]}")
            self._run()
        return sim

    def _run(self) -> None:
        sim = self.sim
        sim.form()
        sim.complete(self._prepare())
        for _ in range(self.cuts):
            self.down = asyncio.Event()
            sim.complete(self._life())
            while not self._started_again():
                self.recovered += 1
        sim.complete(self._last_look())
        for work in self.works:
            sim.violations += [f"{work.name}: {text}" for text in work.judge()]
        sim.loop.problems = [text for text in sim.loop.problems if "PowerCut" not in text]
        sim.settle(60.0)
        sim.verdict()

    def _disk(self, random: Random, files: Any) -> LogDisk:
        machine = CURRENT.get().name.partition(".")[0]
        if machine not in self.machines:
            self.machines[machine] = LogDisk(random, files)
        return self.machines[machine]

    async def _prepare(self) -> None:
        client = await connected(self.sim, "first")
        for work in self.works:
            await self._inside(client, work.prepare(client))
        await self._inside(client, client.close())

    # ---- one life of the cluster ----

    async def _life(self) -> None:
        """Users work until all machines are down."""
        sim, chance = self.sim, self.random
        self.life += 1
        clients = [await connected(sim, f"u{n}.{self.life}") for n in range(self.users)]
        self._arrange_the_end()
        users = [running(sim, each, self._user(n, each)) for n, each in enumerate(clients)]
        await self.down.wait()
        await asyncio.sleep(chance.uniform(0, 0.01))  # what was under way may still arrive
        for user in users:
            user.cancel()
        await asyncio.gather(*users, return_exceptions=True)
        for client in clients:
            sim.network.kill(client.node, silently=False)

    async def _user(self, number: int, client: Any) -> None:
        chance = Random(f"{self.sim.seed}/user {number} of {self.life}")
        while True:
            work = chance.choice(self.works)
            try:
                await work.step(client, chance)
            except RemudaError as error:
                self.ends[f"{work.name} {type(error).__name__}"] += 1
                excused = isinstance(error, PartitionsLost) and self.lost_power
                if not (error.retryable or error.may_have_run or excused):
                    self.sim.violations.append(f"u{number}, {work.name}: {error!r}")
            await asyncio.sleep(chance.uniform(0, 0.02))

    def _arrange_the_end(self) -> None:
        sim, chance = self.sim, self.random
        cut = partial(self._cut, self.life)
        manner = chance.choice(("disk", "disk", "frame", "time"))
        if manner == "disk":
            disk = self.machines[chance.choice(sorted(self.machines))]
            disk.on_cut = cut
            disk.power_cut = chance.randrange(2, 100)
        elif manner == "frame":
            left = [chance.randrange(1, 150)]

            def watch(sent: Sent) -> None:
                left[0] -= sent.name != "HEARTBEAT"
                if left[0] == 0:
                    sim.loop.call_soon(cut, context=sim.director.context)

            sim.network.watchers.append(watch)
        sim.loop.call_later(chance.uniform(0.0, LIFE), cut, context=sim.director.context)

    def _cut(self, life: int) -> None:
        """All at once, or some first."""
        if self.lost_power or life != self.life:
            return
        chance = self.random
        names = sorted(self.machines)
        if len(names) > 1 and chance.random() < 0.3:
            chance.shuffle(names)
            later = names[chance.randrange(1, len(names)) :]
            for name in names[: -len(later)]:
                self._end(name, power=chance.random() < 0.7)
            for name in later:
                delay, power = chance.uniform(0, STAGGER), chance.random() < 0.7
                self.sim.loop.call_later(
                    delay, self._end, name, power, context=self.sim.director.context
                )
        else:
            for name in names:
                self._end(name, power=True)

    def _end(self, machine: str, power: bool) -> None:
        if machine in self.lost_power:
            return
        self.sim.note(f"{machine} {'loses power' if power else 'is killed'}")
        self.lost_power[machine] = power
        disk = self.machines[machine]
        disk.turn_off()
        for node in [member.node for member in self.sim.made]:  # type: ignore[attr-defined]
            if node.alive and node.name.partition(".")[0] == machine:
                self.sim.network.kill(node, silently=power and self.random.random() < 0.3)
        if len(self.lost_power) == len(self.machines):
            self.down.set()

    # ---- the next one ----

    def _started_again(self) -> bool:
        """False: the power went again meanwhile."""
        sim = self.sim
        for name, disk in self.machines.items():
            disk.turn_on(lost_power=self.lost_power[name])
            disk.on_cut = lambda: None
        self.lost_power = {}
        sim.members.clear()
        sim.nodes.clear()
        sim.network.watchers[:] = sim.network.watchers[:1]
        self.down = asyncio.Event()
        self._arrange_the_start()
        order = self._order()
        self.life += 1
        sim.note(f"start again: {order}")
        first = sim._member(f"{order[0]}.{self.life}", MemberConfig(**self.settings))
        starts = [(first, sim._start(first, 0.0))]
        listening = lambda: ChannelKind.DATA in first._servers or self.down.is_set()  # noqa: E731
        if not sim.loop.run(lambda: listening() or starts[0][1].done(), PATIENCE):
            raise Violation("the first member does not listen")
        if not self.down.is_set():
            if starts[0][1].done():
                starts[0][1].result()
            join = first.addresses()["control"]
            config = MemberConfig(join=join, **self.settings)
            for name in order[1:]:
                member = sim._member(f"{name}.{self.life}", config)
                starts.append((member, sim._start(member, self._coming(name))))
        done = lambda: self.down.is_set() or all(start.done() for _, start in starts)  # noqa: E731
        if not sim.loop.run(done, PATIENCE):
            raise Violation("the cluster did not start again")
        for disk in self.machines.values():
            disk.power_cut = None
        if self.down.is_set():
            return False
        for member, start in starts:
            start.result()
            sim._known(member)
        return True

    def _arrange_the_start(self) -> None:
        chance = self.random
        if self.recovered < 2 and chance.random() < 0.3:
            disk = self.machines[chance.choice(sorted(self.machines))]
            disk.on_cut = partial(self._all_end, "in the middle of a start")
            disk.power_cut = chance.randrange(1, 25)

    def _order(self) -> list[str]:
        order = sorted(self.machines)
        self.random.shuffle(order)
        return order

    def _coming(self, _machine: str) -> float:
        return self.random.choice(COMING)

    def _all_end(self, when: str) -> None:
        self.sim.note(f"power cut {when}")
        for name in sorted(self.machines):
            self._end(name, power=True)

    # ---- the end ----

    async def _inside(self, client: Any, work: Any) -> Any:
        return await asyncio.shield(running(self.sim, client, work))

    async def _last_look(self) -> None:
        client = await connected(self.sim, "last")
        for work in self.works:
            await self._inside(client, self._look(work, client))
        await self._inside(client, client.close())

    async def _look(self, work: Work, client: Any) -> None:
        deadline = self.sim.loop.now + PATIENCE
        while True:
            try:
                return await work.finish(client)
            except RemudaError as error:
                self.sim.note(f"{work.name}, last look: {error!r}")
                if not error.retryable or self.sim.loop.now > deadline:
                    raise
                await asyncio.sleep(0.3)


def run_seed(seed: int) -> PowerStorm:
    return played(seed, PowerStorm(seed))
