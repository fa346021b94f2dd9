"""Storms of open transactions over whole simulated clusters: the product's clients begin, read,
write, set savepoints, suspend, commit, by map operations and SQL together, at every level, while
members crash, are cut off, join and leave, and frames of commits are lost, repeated and overtaken.

What is asked and how it is judged is in ``sim_transaction_works``. Afterwards nothing may be left:
no lock, no part, no session, no byte.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from sim_cluster import Simulation, Violation, played, simulation
from sim_network import LOST, Fate, Sent
from sim_transaction_works import LEVELS, WORKS, Told, Work
from sim_users import connected, running, users_of

from remuda.cluster import movement
from remuda.errors import RemudaError, TransientError

REPAIR = 90.0
"""Seconds within which a loss is repaired."""
BETWEEN = 2.5
"""Seconds of work around an event."""
PAUSE = 0.15
"""Seconds that a user rests, at most."""
PATIENCE = 150.0
"""Seconds within which everything that is asked has an answer."""
EVENTS = ("crash", "crash", "split", "join", "leave", "break", "silence", "nothing")
LOSSES = ("crash", "split")
PARTS_MESSAGES = frozenset({"PARTS"})
MEMBERS_MAX = 5


class TransactionStorm:
    def __init__(self, seed: int, level: str | None = None) -> None:
        chance = self.random = Random(f"{seed}/transactions")
        self.size = chance.choice((3, 3, 4))
        self.backups = chance.choice((1, 1, 1, 2)) if self.size > 3 else 1
        self.level = level or chance.choice(LEVELS)
        self.events = [chance.choice(EVENTS) for _ in range(chance.choice((1, 1, 2)))]
        self.lossy = chance.random() < 0.5
        self.users = chance.choice((3, 4, 5))
        self.pause = PAUSE
        self.between = BETWEEN
        self.slow = chance.choice((0.0, 0.0, 0.01))
        self.skews: tuple[float, ...] = (0.0, 0.5, 4.0)
        self.told = Told(self.level, Random(f"{seed}/works"))
        self.works: list[Work] = [kind(self.told) for kind in WORKS]
        self.working = True
        self.clients: list[Any] = []
        self.gone: set[int] = set()
        self.ends: Counter[str] = self.told.ends

    # ---- the run ----

    def run(self, seed: int) -> Simulation:
        with simulation(seed, self.size, backups=self.backups) as sim, users_of(sim):
            self.sim = self.told.sim = sim
            chance = self.random
            sim.work = chance.choice((0.0, 0.0, 0.0005))
            sim.skew_max = chance.choice(self.skews)
            sim.network.slow = self.slow
            sim.note(
                f"{self.size} members, {self.backups} backups, {self.users} users, {self.level}, "
                f"{self.events}, {'lossy' if self.lossy else 'sound'}"
            )
            sim.form()
            sim.complete(self.storm())
            for work in self.works:
                sim.violations += [f"{work.name}: {text}" for text in work.judge()]
            sim.settle(60.0)
            sim.verdict()
        return sim

    async def storm(self) -> None:
        sim, chance = self.sim, self.random
        self.clients = [await connected(sim, f"u{n}") for n in range(self.users)]
        for work in self.works:
            await self._inside(self.clients[0], work.prepare(self.clients[0]))
        if self.lossy:
            sim.network.rules.append(self._fate)
        users = [
            running(sim, client, self.user(number, client))
            for number, client in enumerate(self.clients)
        ]
        for event in self.events:
            await asyncio.sleep(chance.uniform(0.2, self.between))
            await getattr(self, event)()
            await asyncio.sleep(chance.uniform(0.2, self.between))
            await self.repaired()
        self.working = False
        await asyncio.gather(*users)
        sim.network.rules.clear()
        sim.network.slow = 0.0
        await self.repaired()
        for work in self.works:
            await self._inside(self.clients[-1], self._last(work))
        for client in self.clients:
            await client.close()

    async def _inside(self, client: Any, work: Any) -> Any:
        return await asyncio.shield(running(self.sim, client, work))

    async def _last(self, work: Work) -> None:
        """What is there in the end: everything works again."""
        for _ in range(20):
            try:
                async with asyncio.timeout(PATIENCE):
                    return await work.finish(self.clients[-1])
            except TransientError as error:
                self.sim.note(f"{work.name}, last look: {error!r}")
                await asyncio.sleep(0.3)
        raise Violation(f"{work.name}: the last look had no answer")

    async def user(self, number: int, client: Any) -> None:
        chance = Random(f"{self.sim.seed}/user {number}")
        while self.working:
            work = chance.choice(self.works)
            try:
                async with asyncio.timeout(PATIENCE):
                    await work.step(client, chance)
            except TimeoutError:
                self.sim.violations.append(f"u{number}: {work.name} had no end")
                return
            except RemudaError as error:
                self.ends[f"{work.name} {type(error).__name__}"] += 1
                self.sim.note(f"u{number}, {work.name}: {error!r}")
                if not isinstance(error, TransientError):
                    self.sim.violations.append(f"u{number}, {work.name}: {error!r}")
            await asyncio.sleep(chance.uniform(0, self.pause))

    # ---- faults ----

    def _fate(self, sent: Sent) -> Fate | None:
        """Messages of commits may get lost, come twice, late, and out of order."""
        if sent.name not in PARTS_MESSAGES:
            return None
        draw = self.random.random()
        if draw < 0.03:
            return LOST
        if draw < 0.08:
            return Fate((0.0, self.random.uniform(0, 0.3)))
        if draw < 0.2:
            return Fate((self.random.uniform(0, 0.3),))
        return None

    def _staying(self) -> list[int]:
        """Without members that a split has cut off and the others have dropped: they do not know
        it yet, and are none of the majority that must be left."""
        live = self.sim.live()
        newest = max((m.core.view for m in live.values()), key=lambda view: view.number)
        return sorted((live.keys() & newest.by_number.keys()) - self.gone)

    async def crash(self) -> None:
        """At a random step: when the n-th message of a commit from now on is sent."""
        if len(self._staying()) < 3:
            return await self.join()
        sim, chance = self.sim, self.random
        victim = chance.choice(self._staying())
        silently = chance.random() < 0.3
        left = [chance.choice((1, 2, 5, 9, 20))]
        kinds = chance.choice((("PARTS",), ("PARTS", "COMMIT", "STAGE"), ("COPY", "KEY")))
        self.gone.add(victim)

        def now() -> None:
            sim.crash(victim, silently=silently)

        def watch(sent: Sent) -> None:
            if sent.name.startswith(kinds):
                left[0] -= 1
                if left[0] == 0:
                    context = sim.director.context
                    sim.loop.call_soon(
                        lambda: sim.crash(victim, silently=silently), context=context
                    )

        sim.network.watchers.append(watch)
        await asyncio.sleep(BETWEEN)
        now()
        return None

    async def split(self) -> None:
        members = self._staying()
        if len(members) > 2:
            some = {self.random.choice(members)}
            self.sim.split(some, self.random.choice((0.5, 2.0, 6.0)))

    async def join(self) -> None:
        if len(self._staying()) < MEMBERS_MAX:
            try:
                await self.sim.join(self.random.choice(self._staying()))
            except TransientError as error:
                self.sim.note(f"a process could not join: {error!r}")

    async def leave(self) -> None:
        if len(self._staying()) > 2:
            number = self.random.choice(self._staying())
            self.gone.add(number)
            await self.sim.leave(number)

    def _two(self) -> tuple[Any, Any]:
        one, other = self.random.sample(self._staying(), 2)
        return self.sim.nodes[one], self.sim.nodes[other]

    async def break_(self) -> None:
        for _ in range(3):
            one, other = self._two()
            kind = self.random.choice(("data", "control", "control"))
            self.sim.network.break_connections(one, other, kind)
            self.sim.note(f"BREAK of {kind} connections {one} - {other}")
            await asyncio.sleep(self.random.uniform(0, 0.5))

    async def silence(self) -> None:
        one, other = self._two()
        seconds = self.random.choice((0.3, 1.0, 2.0))
        self.sim.note(f"SILENCE of {seconds} s from {one} to {other}")
        self.sim.network.silence(one, other, seconds)

    async def nothing(self) -> None:
        return

    # ---- afterwards ----

    async def repaired(self) -> None:
        deadline = self.sim.loop.now + REPAIR
        await asyncio.sleep(0.5)
        while not self._placed():
            if self.sim.loop.now > deadline:
                states = [
                    f"{n}: view {m.core.view.number}, holds {m.core.readiness.holds}, "
                    f"{m.giving.progress()}, {m.gauges()}"
                    for n, m in self.sim.live().items()
                ]
                raise Violation("not repaired:\n" + "\n".join(states))
            await asyncio.sleep(0.1)

    def _placed(self) -> bool:
        live = self.sim.live()
        if not live:
            return False
        view = max((m.core.view for m in live.values()), key=lambda view: view.number)
        copies = min(self.backups + 1, len(live))
        return (
            all(m.core.view.number == view.number and m.core.ready for m in live.values())
            and view.by_number.keys() == live.keys()
            and not any(m.giving.gauges()["copies_outgoing"] for m in live.values())
            and movement.progress(view, copies)["partitions_to_place"] == 0
        )


setattr(TransactionStorm, "break", TransactionStorm.break_)


class DenseStorm(TransactionStorm):
    """Nothing fails, but all do the same work, and hardly rest; frames are late now and then: for
    what goes wrong when nobody looks out for others."""

    def __init__(
        self, seed: int, level: str | None = None, work: str = "lists", users: int = 6
    ) -> None:
        super().__init__(seed, level or "serializable")
        self.events = ["nothing"]
        self.lossy, self.users, self.pause, self.slow = False, users, 0.005, 0.004
        self.between = 0.7
        self.works = [each for each in self.works if each.name == work]
        for each in self.works:
            each.keys = 4


def dense(work: str, users: int = 6) -> Callable[[int, str | None], TransactionStorm]:
    return lambda seed, level: DenseStorm(seed, level, work, users)


def run_seed(
    seed: int,
    level: str | None = None,
    kind: Callable[[int, str | None], TransactionStorm] = TransactionStorm,
) -> TransactionStorm:
    return played(seed, kind(seed, level))
