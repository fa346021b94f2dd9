"""Members that stand still, as after SIGSTOP: they take connections and bytes, and answer nothing.

Clients whose requests have a timeout hear within it, and one heartbeat timeout more, how each has
ended. What the error says must be true once the member goes on: of a request that "has not run"
nothing may be there, neither then nor later.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from sim_cluster import FAST, Simulation, simulation
from sim_users import connected, running, users_of

from remuda.errors import OutcomeUnknown, RemudaError, TransientError

BEAT = float(FAST["heartbeat_timeout"])
CLIENTS = 4
GRACE = 0.1
"""Seconds that messages are under way."""


class FrozenRun:
    """Half of the runs thaw the member before it is dropped, the others after it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"{seed}/frozen")
        self.long = seed % 2 == 1
        self.working = True
        self.number = 0
        self.done: set[int] = set()
        self.never: set[int] = set()
        self.ends: Counter[str] = Counter()
        self.longest = 0.0

    def run(self) -> Simulation:
        with simulation(self.seed, 3, backups=1) as sim, users_of(sim):
            self.sim = sim
            sim.form()
            sim.complete(self.all())
            sim.settle(60.0)
            sim.verdict()
        return sim

    async def all(self) -> None:
        sim = self.sim
        clients = [await connected(sim, f"u{number}") for number in range(CLIENTS)]
        await self._inside(clients[0], self._prepare(clients[0]))
        tasks = [running(sim, client, self.user(client)) for client in clients]
        await asyncio.sleep(self.random.uniform(0.2, 0.6))
        victim = self.random.choice((1, 2, 3))
        node = sim.nodes[victim]
        sim.note(f"member {victim} stands still")
        node.frozen = True
        await asyncio.sleep(self.random.uniform(1.0, 2.0) * BEAT if self.long else 0.6 * BEAT)
        sim.note(f"member {victim} goes on")
        sim.loop.thaw(node)
        await asyncio.sleep(2 * BEAT)
        self.working = False
        await asyncio.gather(*tasks)
        await self._inside(clients[0], self._judge(clients[0]))
        for client in clients:
            await client.close()

    async def _inside(self, client: Any, work: Any) -> None:
        await asyncio.shield(running(self.sim, client, work))

    async def _prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, mate BIGINT)")
        await client.sql("INSERT INTO t SELECT i, i FROM generate_series(-50, -1) AS g(i)")

    async def user(self, client: Any) -> None:
        chance = Random(f"{self.seed}/{client.node}")
        while self.working:
            timeout = chance.choice((0.3, 1.0, 2.0))
            hasty = client.with_timeout(timeout)
            if chance.random() < 0.4:
                await self._timed("read", timeout, lambda owner=hasty: self._read(owner, chance))
            else:
                await self._write(hasty, timeout, chance)
            await asyncio.sleep(chance.uniform(0.0, 0.5))

    async def _timed(
        self, name: str, timeout: float, work: Callable[[], Awaitable[Any]]
    ) -> RemudaError | None:
        began = self.sim.loop.now
        error: RemudaError | None = None
        try:
            await work()
        except RemudaError as found:
            error = found
        took = self.sim.loop.now - began
        self.longest = max(self.longest, took - timeout)
        self.ends[f"{name} {type(error).__name__}"] += 1
        wrong = self.sim.violations
        if took > timeout + BEAT + GRACE:
            wrong.append(f"{name} with a timeout of {timeout:g} s took {took:.2f} s: {error!r}")
        if error is not None:
            self.sim.note(f"{name} after {took:.2f} s: {error!r}")
            if not isinstance(error, TransientError):
                wrong.append(f"{name}: {error!r}")
            if error.retryable and error.may_have_run:
                wrong.append(f"{name}: may have run, and is to be tried again: {error!r}")
            if isinstance(error, OutcomeUnknown) and not error.may_have_run:
                wrong.append(f"{name}: {error!r} knows that it has not run")
            if name == "read" and not error.retryable:
                wrong.append(f"a read is not to be tried again: {error!r}")
        return error

    async def _read(self, client: Any, chance: Random) -> None:
        if chance.random() < 0.5:
            await client.map("t").get(chance.randrange(-50, 0))
        else:
            cursor = await client.sql("SELECT sum(id), count(*) FROM t WHERE id < 0")
            [row] = [tuple(row) async for row in cursor]
            if row != (-1275, 50):
                self.sim.violations.append(f"a sum was {row}")

    async def _write(self, client: Any, timeout: float, chance: Random) -> None:
        self.number += 3
        one, other = self.number, self.number + 1
        name, ask = chance.choice(tuple(self._writes(client, one, other).items()))
        error = await self._timed(name, timeout, ask)
        keys = {one} if name == "put" else {one, other}
        if error is None:
            self.done |= keys
        elif not error.may_have_run:
            self.never |= keys

    def _writes(self, client: Any, one: int, other: int) -> dict[str, Callable[[], Awaitable[Any]]]:
        async def commit() -> None:
            transaction = client.transaction()
            try:
                await transaction.begin()
                for key in (one, other):
                    await transaction.map("t").put(key, {"mate": one})
            except RemudaError as error:
                raise error.knowing(may_have_run=False) from error
            await transaction.commit()

        return {
            "put": lambda: client.map("t").put(one, {"mate": one}),
            "statement": lambda: client.sql(f"INSERT INTO t VALUES ({one}, {one}), ({other}, 0)"),
            "bulk": lambda: client.sql(
                f"INSERT INTO t SELECT i, i FROM generate_series({one}, {other}) AS g(i)"
            ),
            "commit": commit,
        }

    async def _judge(self, client: Any) -> None:
        cursor = await client.sql("SELECT id FROM t WHERE id > 0")
        there = {row[0] async for row in cursor}
        for text, keys in (
            ("acknowledged, and not there", self.done - there),
            ("said not to have run, and there", self.never & there),
        ):
            if keys:
                self.sim.violations.append(f"{text}: {sorted(keys)}")


def run_frozen(seed: int) -> FrozenRun:
    run = FrozenRun(seed)
    run.run()
    return run
