"""A split of the cluster while clients of both halves hold advisory locks and ask for them.

A client is sure of its lock from the answer that gives it until it sends the last question that was
answered with "you have it". Asked again, a lock that is held costs its member no message: so a
member that the others have given up must not say so once they may give the lock to somebody else.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

from sim_advisory import Hold
from sim_cluster import FAST, Simulation, simulation
from sim_loop import Node
from sim_transaction_works import rows
from sim_users import running, users_of

import remuda.aio
from remuda.errors import RemudaError

BEAT = float(FAST["heartbeat_timeout"])
SIZE = 5
KEYS = 2
LONG = 3 * BEAT
"""Seconds of a split: the majority drops the others and gives their locks to its own clients."""


class LockSplit:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"{seed}/lock splits")
        self.holds: dict[int, list[Hold]] = {number: [] for number in range(1, SIZE + 1)}
        """By member of the client."""
        self.working = True
        self.split_at = 0.0
        self.minority: set[int] = set()

    def run(self) -> LockSplit:
        with simulation(self.seed, SIZE, backups=1) as sim, users_of(sim):
            self.sim = sim
            sim.skew_max = self.random.choice((0.0, 0.5))
            sim.form()
            sim.complete(self._all())
            sim.violations += self._clashes()
            sim.settle(60.0)
            sim.verdict()
        return self

    async def _all(self) -> None:
        sim, chance = self.sim, self.random
        clients = [await self._client(sim, number) for number in sim.members]
        users = [
            running(sim, client, self._user(number, client))
            for number, client in zip(sim.members, clients, strict=True)
        ]
        await asyncio.sleep(chance.uniform(0.5, 1.5))
        # The host of the locks is among the few, or among the many.
        host = 1 if chance.random() < 0.6 else 2
        few = {host, chance.randint(host + 1, SIZE)}
        self.minority, self.split_at = few, sim.loop.now
        sim.split(few, LONG)
        await asyncio.sleep(LONG + BEAT)
        self.working = False
        for user in users:
            user.cancel()
        await asyncio.wait(users)
        for client in clients:
            with suppress(RemudaError, TimeoutError):
                await asyncio.wait_for(client.close(), 5.0)

    async def _client(self, sim: Simulation, number: int) -> Any:
        """One that knows a single member."""
        node, info = Node(f"u{number}"), sim.members[number].info

        async def connect() -> Any:
            address = f"{info.host}:{info.user_port}"
            return await remuda.aio.connect([address], connect_timeout=2.0, request_timeout=2.0)

        client = await asyncio.shield(node.context.run(sim.loop.create_task, connect()))
        client.node = node
        return client

    async def _user(self, number: int, client: Any) -> None:
        chance = Random(f"{self.seed}/user {number}")
        while self.working:
            with suppress(RemudaError, TimeoutError):
                async with asyncio.timeout(2 * BEAT):
                    await self._hold(number, client, chance)
            await asyncio.sleep(chance.uniform(0.0, 0.3))

    async def _hold(self, number: int, client: Any, chance: Random) -> None:
        key, now = chance.randrange(KEYS), self.sim.loop
        question = f"SELECT pg_try_advisory_xact_lock({key})"
        begin = end = 0.0
        try:
            async with client.transaction() as transaction:
                if await rows(transaction, question) != [(True,)]:
                    return
                begin = end = now.now
                for _ in range(chance.choice((1, 3, 30))):
                    await asyncio.sleep(chance.uniform(0.0, 0.4))
                    asked = now.now
                    if await rows(transaction, question) != [(True,)]:
                        return
                    end = asked
        finally:
            if end > begin:
                self.holds[number].append(Hold(key, False, begin, end))

    def _clashes(self) -> list[str]:
        found = [(number, hold) for number, holds in self.holds.items() for hold in holds]
        return [
            f"advisory: member {one}'s {hold} and member {other}'s {late} exclude each other"
            for place, (one, hold) in enumerate(found)
            for other, late in found[:place]
            if hold.clashes(late)
        ]

    @property
    def held_beside_the_split(self) -> int:
        """How often clients of the majority have got a lock while the others were cut off."""
        cut = self.split_at + BEAT, self.split_at + LONG
        return sum(
            cut[0] < hold.begin < cut[1]
            for number, holds in self.holds.items()
            for hold in holds
            if number not in self.minority
        )
