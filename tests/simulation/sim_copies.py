"""Storms over a cluster with backups: members crash one after the other, with repair between them,
and join, while clients write and read (design rules 16, 20 and 22).

No acknowledged write is lost, each write of many rows is there as a whole or not at all, for every
reader, and in the end all copies of a partition are equal.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

from sim_cluster import Simulation, Violation, played, simulation

from remuda.cluster import movement
from remuda.datatypes.values import array_to_values
from remuda.errors import RemudaError, TransientError
from remuda.member.state.routing import Router
from remuda.storage.maps.map_store import MapStore

REPAIR = 90.0
"""Seconds within which a loss is repaired."""
BETWEEN = 3.0
"""Seconds of work between two events."""
ROWS = 40


class CopyStorm:
    def __init__(self, seed: int) -> None:
        self.random = Random(f"{seed}/copies")
        self.size = self.random.choice((3, 3, 4))
        self.copies = 2
        self.events = [
            self.random.choice(("crash", "crash", "join")) for _ in range(self.random.randint(1, 3))
        ]
        self.batches: dict[int, str] = {}
        """What has become of the batch with this number: asked, done."""
        self.puts: dict[int, tuple[int, set[int]]] = {}
        """By key: the last acknowledged value, and those that may have come after it."""
        self.victim = 0
        self.ends: Counter[str] = Counter()
        self.served = 0
        """No lost member can have read at a higher timestamp."""
        self.working = True

    def run(self, seed: int) -> Simulation:
        with simulation(seed, self.size, backups=self.copies - 1) as sim:
            self.sim = sim
            sim.work = self.random.choice((0.0, 0.0005))
            sim.skew_max = self.random.choice((0.0, 0.5, 4.0))
            sim.network.slow = self.random.choice((0.0, 0.0, 0.02))
            sim.note(f"{self.size} members, {self.events}")
            sim.form()
            sim.complete(self.storm())
            sim.settle(60.0)
            sim.verdict()
        return sim

    async def storm(self) -> None:
        sim, chance = self.sim, self.random
        client = await sim.client(1)
        await client.run("CREATE TABLE m (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
        await client.run("CREATE TABLE p (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
        await client.run("CREATE TABLE r (id BIGINT PRIMARY KEY, v BIGINT NOT NULL) REPLICATED")
        await client.run("INSERT INTO r SELECT i, i FROM generate_series(1, 50) AS g(i)")
        client.channel.close()
        work = [sim.loop.create_task(self.write_batches(n)) for n in range(2)]
        work += [sim.loop.create_task(self.put(n)) for n in range(2)]
        work += [sim.loop.create_task(self.read()) for _ in range(2)]
        for event in self.events:
            await asyncio.sleep(chance.uniform(0, BETWEEN))
            if event == "join" or len(sim.live()) < 3:
                await sim.join(chance.choice(sorted(sim.live())))
            else:
                self.kill()
            await self.repaired()
        self.working = False
        await asyncio.gather(*work)
        await self.repaired()
        await self.look()

    def kill(self) -> None:
        """At a random step: when the n-th frame of a commit or of a copy from now is sent."""
        sim = self.sim
        victim = self.random.choice(sorted(sim.live()))
        silently = self.random.random() < 0.3
        left = [self.random.choice((1, 2, 5, 9, 20))]

        def crash() -> None:
            self.served = max(self.served, sim.members[victim].core.clock.last)
            sim.crash(victim, silently=silently)

        def watch(sent: Any) -> None:
            if sent.name.startswith(("COMMIT", "STAGE", "PARTS")):
                left[0] -= 1
                if left[0] == 0:
                    sim.loop.call_soon(crash, context=sim.director.context)

        sim.network.watchers.append(watch)
        self.victim = victim

    async def repaired(self) -> None:
        deadline = self.sim.loop.now + REPAIR
        await asyncio.sleep(0.5)
        late = [n for n, m in self.sim.live().items() if m.core.ready and self.behind(m)]
        while not self.placed():
            late += [n for n, m in self.sim.live().items() if m.core.ready and self.behind(m)]
            if self.sim.loop.now > deadline:
                states = [
                    f"{n}: view {m.core.view.number}, holds {m.core.readiness.holds}, "
                    f"{m.giving.progress()}, {m.giving.gauges()}, unmoved {m.core.unmoved}"
                    for n, m in self.sim.live().items()
                ]
                raise Violation("not repaired:\n" + "\n".join(states))
            await asyncio.sleep(0.1)
        if late:
            self.sim.violations.append(f"{set(late)} serve below what a lost member has served")

    def behind(self, member: Any) -> bool:
        """Whether a promoted member has a clock below that of a member that is lost."""
        gone = self.victim and self.victim not in member.core.view.by_number
        return bool(gone) and member.core.clock.last <= self.served

    def placed(self) -> bool:
        live = self.sim.live()
        view = max((m.core.view for m in live.values()), key=lambda view: view.number)
        if self.victim and self.sim.nodes[self.victim].alive:
            return False
        return (
            all(m.core.view.number == view.number and m.core.ready for m in live.values())
            and view.by_number.keys() == live.keys()
            and not any(m.giving.gauges()["copies_outgoing"] for m in live.values())
            and movement.progress(view, self.copies)["partitions_to_place"] == 0
        )

    # ---- clients ----

    async def ask(self, action: Any) -> Any:
        """What a client gets from some member; None for an error that may be."""
        sim = self.sim
        number = self.random.choice(sorted(sim.live()))
        try:
            async with asyncio.timeout(120.0):
                client = await sim.client(number)
                try:
                    return await action(client)
                finally:
                    client.channel.close()
        except TimeoutError:
            sim.violations.append(f"no end within 120 s on member {number}")
        except TransientError as error:
            sim.note(f"member {number}: {error!r}")
            self.ends[type(error).__name__] += 1
        except RemudaError as error:
            sim.violations.append(f"member {number}: {error!r}")
        return None

    async def write_batches(self, writer: int) -> None:
        while self.working:
            number = len(self.batches)
            self.batches[number] = "asked"
            text = (
                f"INSERT INTO m SELECT {number * ROWS} + i, {number} "
                f"FROM generate_series(0, {ROWS - 1}) AS g(i)"
            )
            if await self.ask(lambda client, text=text: client.run(text)) is not None:
                self.batches[number] = "done"
                self.ends["batch"] += 1
                self.sim.note(f"batch {number} done")
            await asyncio.sleep(self.random.uniform(0, 0.3))

    async def put(self, writer: int) -> None:
        value = 0
        while self.working:
            value += 1
            key = self.random.randrange(30) * 2 + writer
            known, later = self.puts.get(key, (0, set()))
            self.puts[key] = (known, {*later, value})

            async def send(client: Any, key: int = key, value: int = value) -> bool:
                await client.put(await client.schema("p"), key, value)
                return True

            if await self.ask(send):
                self.puts[key] = (value, set())
                self.ends["put"] += 1
            await asyncio.sleep(self.random.uniform(0, 0.2))

    async def read(self) -> None:
        while self.working:
            done = {number for number, state in self.batches.items() if state == "done"}
            known = {key: value for key, (value, _) in self.puts.items()}
            text = "SELECT v, count(*) FROM m GROUP BY v"
            rows = await self.ask(lambda client, text=text: client.run(text))
            if rows is not None:
                self.judge(dict(rows), done)
            key = self.random.choice(sorted(known)) if known else 0
            text = f"SELECT v FROM p WHERE id = {key}"
            rows = await self.ask(lambda client, text=text: client.run(text))
            if rows is not None and (rows[0][0] if rows else 0) < known.get(key, 0):
                self.sim.violations.append(f"key {key}: {rows}, acknowledged was {known[key]}")
            await asyncio.sleep(self.random.uniform(0, 0.2))

    def judge(self, seen: dict[int, int], done: set[int]) -> None:
        self.ends["read"] += 1
        if not done <= seen.keys():
            self.sim.violations.append(f"acknowledged batches are gone: {done - seen.keys()}")
        torn = {number: count for number, count in seen.items() if count != ROWS}
        if torn:
            self.sim.violations.append(f"torn batches: {torn}")

    # ---- the end ----

    async def look(self) -> None:
        seen = await self.ask(lambda c: c.run("SELECT v, count(*) FROM m GROUP BY v"))
        self.judge(dict(seen), {n for n, state in self.batches.items() if state == "done"})
        rows = dict(await self.ask(lambda c: c.run("SELECT id, v FROM p")))
        for key, (value, later) in self.puts.items():
            if rows.get(key, 0) not in {value, *later}:
                self.sim.violations.append(f"key {key} is {rows.get(key)}, not {value} or {later}")
        for member in self.sim.live().values():
            for map_id, store in member.core.stores.items():
                if store.schema.replicated:
                    if sum(map(len, rows_in(store).values())) != 50:
                        self.sim.violations.append(f"replicated: {rows_in(store)}")
                else:
                    self.compare(map_id)

    def compare(self, map_id: int) -> None:
        """Every backup has what its primary has, and nobody has anything else."""
        live = self.sim.live()
        everything: dict[int, list[Any]] = {}
        for number, member in live.items():
            rows = rows_in(member.core.stores[map_id])
            if not rows.keys() <= set(member.core.view.partitions_of(number)):
                self.sim.violations.append(f"member {number} has rows of others' partitions")
            everything |= rows
        for number, member in live.items():
            backup = rows_in(member.core.backup_stores.get(map_id))
            kept = member.core.view.backed_up_by(number)
            if not backup.keys() <= set(kept):
                self.sim.violations.append(f"member {number} keeps backups of others' partitions")
            for partition in kept:
                if backup.get(partition) != everything.get(partition):
                    self.sim.violations.append(
                        f"member {number}, partition {partition}: {backup.get(partition)} is no "
                        f"copy of {everything.get(partition)}"
                    )


def rows_in(store: MapStore | None) -> dict[int, list[Any]]:
    """The rows that exist now, by partition."""
    found: dict[int, list[Any]] = {}
    if store is None:
        return found
    router, places = Router(store.schema), store.schema.partition_positions
    cursor = store.scan(2**62, range(len(store.schema.columns)))
    while (batch := cursor.next()) is not None:
        columns = [
            array_to_values(array, column.type)
            for array, column in zip(batch.columns, store.schema.columns, strict=True)
        ]
        for row in zip(*columns, strict=True):
            partition = router.partition([row[place] for place in places])
            found.setdefault(partition, []).append(row)
    return {partition: sorted(rows) for partition, rows in found.items()}


def run_seed(seed: int) -> CopyStorm:
    return played(seed, CopyStorm(seed))
