"""Storms of members (design rules 13 and 14): they crash, are cut off from the others and heal,
join and leave, while clients read and write.

Whatever happens, each view is one view, and no two members serve the same partition at a time. In
the end the members that are left agree on a view, serve, and keep nothing.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from sim_cluster import FAST, Simulation, Violation, played, simulation

from remuda.errors import RemudaError, TransientError
from remuda.member.member import Member

STORM = 20.0
"""Seconds of faults."""
CALM = 40.0
"""Seconds after which all must agree."""
LOOK = 0.02
"""Seconds between two looks at who serves what."""
MEMBERS_MAX = 6


class ViewStorm:
    def __init__(self, seed: int, backups: int | None = None) -> None:
        self.random = Random(f"{seed}/views")
        chance = self.random
        self.size = chance.choice((2, 3, 3, 4, 5))
        self.backups = chance.choice((0, 1)) if backups is None else backups
        self.views: dict[int, Any] = {}
        self.gone: set[int] = set()
        """Crashed, or told to leave."""
        self.events: list[str] = []
        self.ends: list[str] = []

    def run(self, seed: int) -> Simulation:
        with simulation(seed, self.size, backups=self.backups) as sim:
            self.sim = sim
            sim.note(f"storm of {self.size} members, {self.backups} backups")
            sim.form()
            for member in sim.members.values():
                self.watch(member)
            sim.complete(self.storm())
            sim.complete(self.calm())
            sim.settle(60.0)
            sim.verdict()
        return sim

    # ---- what must always hold ----

    def watch(self, member: Member) -> None:
        self.see(member.core.view)
        member.core.listeners.view.add(lambda _, view: self.see(view))

    def see(self, view: Any) -> None:
        if self.views.setdefault(view.number, view) != view:
            self.sim.violations.append(f"two views {view.number}: {view} and {self.views}")

    async def look(self) -> None:
        """No partition has two primaries that serve."""
        while True:
            serving: dict[int, int] = {}
            for number, member in self.sim.live().items():
                readiness = member.core.readiness
                if readiness.partly:
                    had = set(member.core.view.partitions_of(number))
                    for partition in sorted(had - (readiness.taken if readiness.holds else set())):
                        other = serving.setdefault(partition, number)
                        if other != number:
                            self.sim.violations.append(
                                f"members {other} and {number} serve partition {partition}"
                            )
                            return
            await asyncio.sleep(LOOK)

    # ---- the storm ----

    async def storm(self) -> None:
        sim, chance = self.sim, self.random
        looking = sim.loop.create_task(self.look())
        await self.once(1, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        faults = [
            sim.loop.create_task(self.after(chance.uniform(0, STORM), chance.choice(FAULTS)))
            for _ in range(chance.randint(1, 5))
        ]
        work = [
            sim.loop.create_task(self.after(chance.uniform(0, STORM), self.ask)) for _ in range(12)
        ]
        await asyncio.gather(*faults, *work)
        await asyncio.sleep(CALM)
        looking.cancel()

    async def after(self, pause: float, action: Any) -> None:
        await asyncio.sleep(pause)
        await (action(self) if action in FAULTS else action())

    def staying(self) -> list[int]:
        return sorted(self.sim.live().keys() - self.gone)

    async def crash(self) -> None:
        if len(self.staying()) > 1:
            victim = self.random.choice(self.staying())
            self.gone.add(victim)
            self.events.append("crash")
            self.sim.crash(victim, silently=self.random.random() < 0.4)

    async def split(self) -> None:
        members = self.staying()
        some = set(self.random.sample(members, self.random.randint(1, max(1, len(members) // 2))))
        self.events.append("split")
        self.sim.split(some, self.random.choice((0.5, 2.0, 6.0, 15.0)))

    async def join(self) -> None:
        if len(self.staying()) < MEMBERS_MAX:
            self.events.append("join")
            try:
                self.watch(await self.sim.join(self.random.choice(self.staying())))
            except TransientError as error:
                self.sim.note(f"a process could not join: {error!r}")

    async def leave(self) -> None:
        if len(self.staying()) > 1:
            number = self.random.choice(self.staying())
            self.gone.add(number)
            self.events.append("leave")
            await self.sim.leave(number)

    # ---- clients ----

    async def ask(self) -> None:
        chance = self.random
        text = chance.choice(
            (
                f"INSERT INTO t VALUES ({chance.randint(1, 50)}, 1)",
                f"SELECT v FROM t WHERE id = {chance.randint(1, 50)}",
                "SELECT count(*) FROM t",
                "UPDATE t SET v = v + 1",
                "SELECT count(*) FROM sys.members",
            )
        )
        await self.once(chance.choice(sorted(self.sim.members)), text)

    async def once(self, number: int, text: str) -> None:
        try:
            async with asyncio.timeout(120.0):
                client = await self.sim.client(number)
                try:
                    await client.run(text)
                finally:
                    client.channel.close()
        except TimeoutError:
            live = number in self.sim.live() and number not in self.gone
            if live and self.sim.nodes[number].alive:
                self.sim.violations.append(f"no end within 120 s on member {number}: {text}")
        except RemudaError as error:
            self.sim.note(f"member {number}, {text}: {error!r}")
            self.ends.append(type(error).__name__)
        else:
            self.ends.append("well")

    # ---- the end ----

    async def calm(self) -> None:
        sim = self.sim
        last = self.views[max(self.views)]
        live = {n: m for n, m in sim.live().items() if n not in self.gone}
        here = [n for n in last.by_number if n in live]
        if 2 * len(here) <= len(last.members):
            for number in here:
                if live[number].core.ready:
                    raise Violation(f"member {number} serves without a majority")
            return
        for number, member in live.items():
            core = member.core
            if core.view != last:
                raise Violation(f"member {number} is in view {core.view.number}, not {last.number}")
            if core.readiness.holds.keys() - {"minimum_members"} or not core.ready:
                raise Violation(f"member {number} is not ready: {core.readiness.holds}")
        if len(here) != len(last.members):
            raise Violation(f"{last} has members that are gone: {here} are left")
        await self.once(here[0], "CREATE TABLE after (id INT PRIMARY KEY)")
        for number in here:
            if live[number].core.catalog.find("after") is None:
                raise Violation(f"member {number} did not get the catalog")


FAULTS = (ViewStorm.crash, ViewStorm.split, ViewStorm.split, ViewStorm.join, ViewStorm.leave)


def run_seed(seed: int, backups: int | None = None) -> ViewStorm:
    assert FAST["heartbeat_timeout"] < CALM / 4, "losses are noticed within the calm"
    return played(seed, ViewStorm(seed, backups))
