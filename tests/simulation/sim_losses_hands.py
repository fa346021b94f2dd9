"""What operators do, and what transactions do that wait for each other's locks: the part of
``sim_losses`` whose messages nothing else sends."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from sim_cluster import Simulation
from sim_transaction_works import rows
from sim_users import connected, running

from remuda.errors import QueryCanceled, TransientError, UndefinedObject, WrongState
from remuda.query.wire import decode_query_id

LONG = 7.0
"""Seconds in which a query without progress is asked after (``QUERY_SUSPECT_AFTER``)."""
LOCK_TIMEOUT = 0.8
"""Seconds that a transaction waits for a lock before it asks who has it."""
KEYS = 6
LOCKING = {"concurrency": "pessimistic", "isolation": "repeatable read"}
LOOKS = ("sys.clients", "sys.locks", "sys.transactions", "sys.statement_statistics",
         "sys.query_profiles")  # fmt: skip


class Hands:
    """``leaver``: the member that is drained, of which none of the clients here relies."""

    def __init__(self, sim: Simulation, chance: Random, leaver: int) -> None:
        self._sim = sim
        self._chance = chance
        self._leaver = leaver
        self._others: list[Any] = []
        self._numbers = 0

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE held (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
        await client.sql(f"INSERT INTO held SELECT i, 0 FROM generate_series(1, {KEYS}) AS g(i)")
        self._others = [await connected(self._sim, f"other{number}") for number in range(2)]

    async def close(self) -> None:
        for other in self._others:
            await asyncio.shield(running(self._sim, other, other.close()))

    # ---- statements ----

    async def cancel(self, client: Any) -> None:
        """A statement is cancelled, or its connection ended, while its client takes no page."""
        self._numbers += 1
        sim, chance = self._sim, self._chance
        number = chance.choice(sorted(sim.live().keys() - {self._leaver}))
        raw = await sim.client(number, f"reader{self._numbers}")
        raw.patience = 100.0
        try:
            pid = (await raw.run("SELECT pg_backend_pid()"))[0][0]
            result = await raw.start("SELECT a.s, b.s FROM t a, t b", page_rows=2)
            await result.first.wait()
            await asyncio.sleep(LONG if chance.random() < 0.3 else chance.uniform(0.0, 0.2))
            name = decode_query_id(result.handle)
            hand = chance.choice((f"CANCEL QUERY '{name}'", f"SELECT pg_cancel_backend({pid})",
                                  f"SELECT pg_terminate_backend({pid})"))  # fmt: skip
            try:
                await client.sql(hand)
            except UndefinedObject:
                if not result.done.is_set():  # a loss may have ended it before
                    raise
            await result.done.wait()
            if not isinstance(result.error, QueryCanceled | TransientError) and (
                "terminate" not in hand
            ):
                sim.violations.append(f"{hand}: {result.error!r}")
        finally:
            raw.channel.close()

    async def look(self, client: Any) -> None:
        for name in LOOKS:
            await rows(client, f"SELECT count(*) FROM {name}")

    # ---- locks ----

    async def wait(self, client: Any) -> None:
        """A transaction waits for a lock until it is refused, or until its holder is cancelled."""
        key, other = self._chance.randrange(KEYS) + 1, self._others[0]
        waiting: asyncio.Task[None] | None = None
        try:
            async with client.transaction(**LOCKING) as holder:
                await _update(holder, key)
                waiting = running(self._sim, other, self._wait_for(other, key))
                await asyncio.sleep(self._chance.uniform(0.1, 2 * LOCK_TIMEOUT))
                await client.sql(f"CANCEL TRANSACTION '{holder.id}'")
        except QueryCanceled as error:
            self._sim.note(f"holding a lock: {error!r}")
        finally:
            if waiting is not None:
                await asyncio.shield(waiting)

    async def _wait_for(self, client: Any, key: int) -> None:
        try:
            async with client.transaction(**LOCKING) as transaction:
                await _update(transaction, key)
        except TransientError as error:
            self._sim.note(f"waiting for a lock: {error!r}")

    async def meet(self, client: Any) -> None:
        """Two transactions wait for each other: one of them gives way."""
        keys, other = self._chance.sample(range(1, KEYS + 1), 2), self._others[1]
        both = asyncio.Barrier(2)

        async def one(own: Any, first: int, second: int) -> None:
            try:
                async with own.transaction(**LOCKING) as transaction:
                    await _update(transaction, first)
                    async with asyncio.timeout(5.0):
                        await both.wait()
                    await _update(transaction, second)
            except (TransientError, TimeoutError) as error:
                self._sim.note(f"in a circle: {error!r}")

        theirs = running(self._sim, other, one(other, *reversed(keys)))
        await one(client, *keys)
        await asyncio.shield(theirs)

    # ---- drain ----

    async def drain(self, client: Any) -> None:
        """Order the member to leave until it has."""
        sim, number = self._sim, self._leaver
        member = sim.members[number]
        left: list[asyncio.Task[None]] = []

        def leave() -> None:
            left.append(sim.loop.create_task(sim.leave(number), context=sim.director.context))

        member.core.departure.on_drain.append(leave)
        while not left:
            try:
                await asyncio.shield(
                    running(sim, client, client.sql(f"ALTER CLUSTER DRAIN MEMBER {number}"))
                )
            except (TransientError, WrongState) as error:
                sim.note(f"a drain: {error!r}")
        await left[0]
        if len(left) > 1:
            sim.violations.append(f"member {number} was drained {len(left)} times")


async def _update(transaction: Any, key: int) -> None:
    await transaction.sql("UPDATE held SET v = v + 1 WHERE id = ?", key)
