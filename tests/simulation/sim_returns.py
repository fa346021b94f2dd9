"""Rolling restarts of whole simulated clusters whose members return with their folders
(``return_within``): users write all the time, members leave one after the other and come back, some
of them are killed while another one is away, or while it gets what has changed.

What all users were told is judged as one history, and in the end all copies of each partition are
alike, whether they were made of former copies or not.
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
from sim_transaction_works import Bank, Registers, Told, Work, rows
from sim_users import connected, running, users_of

from remuda.config import MemberConfig
from remuda.errors import RemudaError, SerializationFailure, TransientError
from remuda.member.member import Member
from remuda.member.membership.former_copies import FormerCopies
from remuda.storage.maps.map_store import MapStore

PATIENCE = 120.0
"""Seconds within which a member is back, and all copies are in place."""
AWAY = (0.0, 0.2, 2.0)
"""Seconds that a process is away, at most."""
SETTLED = 2.0
"""Seconds after the last write until all copies have it."""


class Entries(Work):
    """Many entries, each of which one request at a time puts, removes or updates: most of them do
    not change while a member is away, and some are gone when it is back."""

    name = "entries"
    keys = 120

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE entries (id BIGINT PRIMARY KEY, v BIGINT)")
        await client.sql(
            f"INSERT INTO entries SELECT i, 0 FROM generate_series(0, {self.keys - 1}) AS g(i)"
        )
        self.known: dict[int, set[int | None]] = {key: {0} for key in range(self.keys)}
        """What an entry may be; None: it is not there."""
        self.busy: set[int] = set()

    async def step(self, client: Any, chance: Random) -> None:
        key = chance.randrange(self.keys)
        if key in self.busy:
            return
        self.busy.add(key)
        before, number = self.known[key], self.told.number()
        entries, draw = client.map("entries"), chance.random()
        after: set[int | None] = {number}
        try:
            if draw < 0.4:
                await entries.put(key, {"v": number})
            elif draw < 0.7:
                after = {None}
                await entries.remove(key)
            else:
                after = {value if value is None else number for value in before}
                await client.sql("UPDATE entries SET v = ? WHERE id = ?", number, key)
        except RemudaError as error:
            if error.may_have_run:
                self.known[key] = before | after
            raise
        else:
            self.known[key] = after
            self.well()
        finally:
            self.busy.discard(key)

    async def finish(self, client: Any) -> None:
        found = dict(await rows(client, "SELECT id, v FROM entries"))
        for key, values in self.known.items():
            if found.get(key) not in values:
                self.wrong.append(f"entry {key} is {found.get(key)}, not one of {values}")


class ReturnStorm:
    """``machines``: disks by name. A process's name is that of its machine, and which one it is."""

    def __init__(self, seed: int) -> None:
        chance = self.random = Random(f"{seed}/returns")
        self.kills = chance.random() < 0.5
        self.size = 4 if self.kills else 3
        self.backups = 2 if self.kills else 1
        self.rounds = chance.choice((2, 3))
        self.told = Told("serializable", Random(f"{seed}/works"))
        self.works: list[Work] = [Entries(self.told)]
        self.works += [kind(self.told) for kind in chance.sample((Bank, Registers), 1)]
        self.machines: dict[str, LogDisk] = {}
        self.here: dict[str, Member] = {}
        """The member of each machine, if one runs."""
        self.working = True
        self.lives = 0
        self.killed = 0
        self.compared = 0
        """Maps of which a former copy has served."""
        self.ends: Counter[str] = self.told.ends

    # ---- the run ----

    def run(self, seed: int) -> Simulation:
        with ExitStack() as patches:
            patch = mock.patch.object
            patches.enter_context(patch(sim_world, "SimulatedDisk", self._disk))
            original = FormerCopies.end

            def served(copies: FormerCopies, transfer: str, map_id: int) -> None:
                self.compared += 1
                original(copies, transfer, map_id)

            patches.enter_context(patch(FormerCopies, "end", served))
            settings: dict[str, Any] = {
                "backups": self.backups,
                "data_dir": "/data",
                "return_within": self.random.choice((30.0, 30.0, 1.0)),
                "leave_timeout": 20.0,
            }
            self.settings = {"cluster_size": self.size, **FAST, **settings}
            sim = self.sim = self.told.sim = patches.enter_context(
                simulation(seed, self.size, **settings)
            )
            patches.enter_context(users_of(sim))
            sim.note(f"{self.size} members, {settings}, {[work.name for work in self.works]}")
            sim.form()
            for member in sim.members.values():
                self.here[member.node.name] = member  # type: ignore[attr-defined]
            sim.complete(self._storm())
            for work in self.works:
                sim.violations += [f"{work.name}: {text}" for text in work.judge()]
            sim.settle(60.0)
            sim.verdict()
        return sim

    def _disk(self, random: Random, files: Any) -> LogDisk:
        machine = CURRENT.get().name.partition(".")[0]
        if machine not in self.machines:
            self.machines[machine] = LogDisk(random, files)
        return self.machines[machine]

    async def _storm(self) -> None:
        sim, chance = self.sim, self.random
        client = await connected(sim, "first")
        for work in self.works:
            await self._inside(client, work.prepare(client))
        clients = [client, await connected(sim, "second")]
        users = [running(sim, each, self._user(n, each)) for n, each in enumerate(clients)]
        await self._complete()
        names = sorted(self.here)
        chance.shuffle(names)
        for place in range(self.rounds):
            await self._restart(names[place % len(names)])
        self.working = False  # to cancel a user would leave a write of which nobody knows the end
        await asyncio.gather(*users)
        await asyncio.sleep(SETTLED)
        await self._complete()
        self._compare()
        for work in self.works:
            await self._inside(client, work.finish(client))
        for each in clients:
            await self._inside(each, each.close())

    async def _inside(self, client: Any, work: Any) -> Any:
        return await asyncio.shield(running(self.sim, client, work))

    async def _user(self, number: int, client: Any) -> None:
        chance = Random(f"{self.sim.seed}/user {number}")
        while self.working:
            work = chance.choice(self.works)
            try:
                await work.step(client, chance)
            except RemudaError as error:
                self.ends[f"{work.name} {type(error).__name__}"] += 1
                conflict = isinstance(error, SerializationFailure)  # of the two users
                if not conflict and not (self.killed and (error.retryable or error.may_have_run)):
                    self.sim.violations.append(f"u{number}, {work.name}: {error!r}")
            await asyncio.sleep(chance.uniform(0, 0.05))

    # ---- one restart ----

    async def _restart(self, name: str) -> None:
        """A member leaves and comes back; another one may be killed meanwhile."""
        sim, chance = self.sim, self.random
        member = self.here.pop(name)
        await sim.leave(member.core.number)
        self._end(name, member)
        victim = ""
        when = chance.choice(("away", "returning")) if self.kills and not self.killed else ""
        if when == "away":
            await asyncio.sleep(chance.uniform(0, 1.0))
            victim = self._kill()
        await asyncio.sleep(chance.uniform(0, chance.choice(AWAY)))
        starting = asyncio.ensure_future(self._come_back(name))
        if when == "returning":
            await asyncio.sleep(chance.uniform(0, 2.0))
            victim = self._kill()
        await starting
        if victim:
            await self._come_back(victim)
        await self._complete()

    def _kill(self) -> str:
        name = self.random.choice(sorted(self.here))
        member = self.here.pop(name)
        self.killed += 1
        self.machines[name].turn_off()
        self.sim.crash(member.core.number, silently=self.random.random() < 0.3)
        self._end(name, member, lost_power=self.random.random() < 0.5)
        return name

    def _end(self, name: str, member: Member, *, lost_power: bool = False) -> None:
        """The process has ended; its disk is there for the next one."""
        if member.node.alive:  # type: ignore[attr-defined]
            self.sim.network.kill(member.node, silently=False)  # type: ignore[attr-defined]
        self.machines[name].turn_on(lost_power=lost_power)

    async def _come_back(self, name: str) -> None:
        sim = self.sim
        deadline = sim.loop.now + PATIENCE
        while True:
            self.lives += 1
            through = self.here[self.random.choice(sorted(self.here))]
            config = MemberConfig(join=through.addresses()["control"], **self.settings)
            member = sim._member(f"{name}.{self.lives}", config)
            sim.note(f"{name} comes back through member {through.core.number}")
            try:
                await asyncio.shield(sim._start(member, 0.0))
            except TransientError as error:
                sim.note(f"{name} could not join: {error!r}")
                self._end(name, member)
                if sim.loop.now > deadline:
                    raise
                await asyncio.sleep(1.0)
            else:
                sim._known(member)
                self.here[name] = member
                return

    # ---- what must be true ----

    async def _complete(self) -> None:
        """All members agree on a view, and every partition is where it belongs."""
        deadline = self.sim.loop.now + PATIENCE
        while not self._placed():
            if self.sim.loop.now > deadline:
                raise Violation("copies are not where they belong")
            await asyncio.sleep(0.1)

    def _placed(self) -> bool:
        members = list(self.here.values())
        views = [member.core.view for member in members]
        return (
            len({view.number for view in views}) == 1
            and len(views[0].members) == len(members) == self.size
            and all(m.core.ready and not any(m.core.unmoved.values()) for m in members)
            and not any(m.giving.progress()["partitions_to_place"] for m in members)
        )

    def _compare(self) -> None:
        """All copies of each partition have the versions that readers may still see."""
        cores = {member.core.number: member.core for member in self.here.values()}
        view = next(iter(cores.values())).view
        for work in self.works:
            map_id = next(iter(cores.values())).catalog.get(work.name).map_id
            for partition, (primary, *backups) in enumerate(view.replicas):
                mine = cores[primary].stores[map_id]
                for backup in backups:
                    theirs = cores[backup].backup_store(map_id)
                    # Each member collects what its own floor allows, and refuses reads below.
                    floor = max(mine.floor, theirs.floor)
                    seen = partial(versions, partition=partition, floor=floor)
                    if seen(mine) != seen(theirs):
                        self.sim.violations.append(
                            f"{work.name}: partition {partition} differs on members {primary} and "
                            f"{backup}: {seen(mine)}, {seen(theirs)}"
                        )


def versions(store: MapStore, *, partition: int, floor: int) -> list[tuple[Any, ...]]:
    """What lives for now or ended above ``floor``, with begins and ends."""
    found: list[tuple[Any, ...]] = []
    for each in store.extraction(frozenset({partition})).versions():
        values = [tuple(row.values()) for row in each.batch.to_pylist()]
        found += zip(each.begins.tolist(), each.ends.tolist(), values, strict=True)
    return sorted((version for version in found if version[1] > floor), key=repr)


def run_seed(seed: int) -> ReturnStorm:
    return played(seed, ReturnStorm(seed))
