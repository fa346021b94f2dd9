"""A storm: statements from many clients beside writes, while things break."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from sim_client import Client, Result
from sim_cluster import Simulation, simulation
from sim_network import LOST, QUERY_MESSAGES, Fate, Sent
from sim_queries import Question, Tables

from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    MemberUnavailable,
    NotServed,
    QueryCanceled,
    QueryTimeout,
    RemudaError,
    TransientError,
)

STORM = 3.0
"""Seconds during which statements begin and things break."""
REFUSED_MAX = 3
"""So many statements may come at a moment when a busy member has no lease, though nothing fails."""
PATIENCE = 400.0
"""Seconds after which every statement must have ended."""
FAULTS = ("calm", "calm", "slow", "frames", "breaks", "silence", "crash", "crash", "everything")


class Storm:
    def __init__(self, seed: int) -> None:
        self.random = Random(f"{seed}/storm")
        chance = self.random
        self.faults = chance.choice(FAULTS)
        self.size = (
            chance.choice((1, 2, 3, 3, 4)) if self.faults == "calm" else chance.randint(2, 4)
        )
        self.tables = Tables(Random(f"{seed}/tables"))
        self.statements = chance.randint(3, 10)
        self.settings: dict[str, Any] = {
            "batch_rows": chance.choice((0, 1, 3, 7)),
            "window": chance.choice((0, 0, 3000)),
        }
        self.ends: list[str] = []
        self.refused = 0
        self.works: tuple[float, ...] = (0.0, 0.0005, 0.004)
        """Seconds at most that pass between two looks at a clock."""
        self.span = STORM
        """Seconds within which all statements begin."""
        self.patiences: tuple[float, ...] = (0.1, 1.0)
        """Seconds that a slow client takes for a page."""
        self.sim: Simulation

    def has(self, fault: str) -> bool:
        return self.faults in (fault, "everything")

    # ---- the run ----

    def run(self, sim: Simulation) -> None:
        self.sim = sim
        chance = self.random
        sim.skew_max = chance.choice((0.0, 0.5))
        sim.work = chance.choice(self.works)
        if self.size > 3:  # time passes for all while one computes: heartbeats must come in time
            sim.work = min(sim.work, 0.002)
        sim.network.splits = chance.random() < 0.5
        sim.network.buffer_max = chance.choice((None, None, 2000))
        sim.note(f"storm of {self.faults}, {self.size} members, {self.settings}")
        sim.form(late=chance.choice((0.0, 2.0)))
        sim.complete(self.load())
        work = sim.director.context.run(sim.loop.create_task, self.storm())
        if not sim.loop.run(work.done, PATIENCE):
            raise AssertionError(
                f"seed {sim.seed}: not every statement has ended: {self.open()}\n{sim.useful_log()}"
            )
        work.result()
        sim.settle()
        sim.stop()

    def open(self) -> list[str]:
        return sorted(self.asked - set(self.ended))

    async def load(self) -> None:
        client = await self.sim.client(1, "loader")
        for text in self.tables.definitions():
            await client.run(text)
        client.channel.close()

    async def storm(self) -> None:
        chance, sim = self.random, self.sim
        self.asked: set[str] = set()
        self.ended: list[str] = []
        self._arrange_faults()
        work: list[asyncio.Task[None]] = []
        for number in range(self.statements):
            pause = chance.uniform(0, self.span)
            work.append(sim.loop.create_task(self.after(pause, self.ask(f"s{number}"))))
        for number in range(chance.randint(0, 3)):
            pause = chance.uniform(0, STORM)
            work.append(sim.loop.create_task(self.after(pause, self.commit(f"w{number}"))))
        for number in range(chance.randint(0, 3)):
            pause = chance.uniform(0, STORM)
            work.append(sim.loop.create_task(self.after(pause, self.put(f"p{number}"))))
        await asyncio.sleep(STORM)
        self._end_faults()
        await asyncio.gather(*work)

    async def after(self, pause: float, work) -> None:
        await asyncio.sleep(pause)
        await work

    # ---- faults ----

    def _arrange_faults(self) -> None:
        sim, chance = self.sim, self.random
        if self.has("slow"):
            sim.network.slow = 0.05
        if self.has("frames"):
            sim.network.rules.append(self._frame_fate)
        if self.has("breaks"):
            for _ in range(chance.randint(1, 3)):
                self._at_some_frame(self._break)
        if self.has("silence"):
            for _ in range(chance.randint(1, 2)):
                self._at_some_frame(self._silence)
        if self.has("crash"):
            self._at_some_frame(self._crash)

    def _end_faults(self) -> None:
        self.sim.network.rules.clear()
        self.sim.network.slow = 0.0

    def _frame_fate(self, sent: Sent) -> Fate | None:
        if sent.name not in QUERY_MESSAGES:
            return None
        draw = self.random.random()
        if draw < 0.02:
            return LOST
        if draw < 0.05:
            return Fate((0.0, self.random.uniform(0, 0.1)))
        if draw < 0.15:
            return Fate((self.random.uniform(0, 0.5),))
        return None

    def _at_some_frame(self, action) -> None:
        """``action`` at a random step: when the n-th frame from now is sent, or by the clock."""
        sim, left = self.sim, [self.random.choice((1, 5, 20, 60, 150, 300))]

        def watch(sent: Sent) -> None:
            if sent.name != "HEARTBEAT":
                left[0] -= 1
                if left[0] == 0:
                    sim.loop.call_soon(self._inside_storm, action, context=sim.director.context)

        sim.network.watchers.append(watch)

    def _inside_storm(self, action) -> None:
        action()

    def _two(self) -> tuple[Any, Any]:
        one, other = self.random.sample(sorted(self.sim.nodes), 2)
        return self.sim.nodes[one], self.sim.nodes[other]

    def _break(self) -> None:
        one, other = self._two()
        kind = self.random.choice(("data", "data", "control"))
        count = self.sim.network.break_connections(one, other, kind)
        self.sim.note(f"BREAK of {count} {kind} connections {one} - {other}")

    def _silence(self) -> None:
        one, other = self._two()
        seconds = self.random.choice((0.5, 2.0, 30.0))
        self.sim.note(f"SILENCE of {seconds} s from {one} to {other}")
        self.sim.network.silence(one, other, seconds)

    def _crash(self) -> None:
        if len(self.sim.live()) > 1:
            victim = self.random.choice(sorted(self.sim.live()))
            self.sim.crash(victim, silently=self.random.random() < 0.3)

    # ---- statements ----

    async def connected(self, name: str) -> Client | None:
        member = self.random.choice(sorted(self.sim.members))
        try:
            async with asyncio.timeout(20.0):
                return await self.sim.client(member, name)
        except (TransientError, TimeoutError) as error:
            self.sim.note(f"{name} cannot connect to member {member}: {error!r}")
            if member in self.sim.live() and self.faults == "calm":
                raise
            return None

    async def ask(self, name: str) -> None:
        client = await self.connected(name)
        if client is None:
            return
        chance, sim = self.random, self.sim
        manner = chance.choice(("plain", "plain", "plain", "cancel", "timeout", "leave", "slow"))
        options: dict[str, Any] = {}
        if chance.random() < 0.5:
            options["page_rows"] = chance.choice((1, 5))
        if manner == "timeout":
            options["timeout"] = chance.choice((0.001, 0.02, 0.5))
        if manner == "slow":
            client.patience = chance.choice(self.patiences)
        question = self.tables.question()
        sim.note(f"{name} asks member {client.number} {manner} {options}: {question.text}")
        self.asked.add(name)
        try:
            result = await client.start(question.text, **options)
            if manner in ("cancel", "leave"):
                sim.loop.create_task(self._interrupt(client, result, manner, name))
            await result.done.wait()
        except RemudaError as error:
            result = Result()
            result.end(error)
        self.ended.append(name)
        self._judge(name, client, question, manner, result)
        client.channel.close()

    async def _interrupt(self, client: Client, result: Result, manner: str, name: str) -> None:
        if self.random.random() < 0.5:
            await result.first.wait()
        else:
            await asyncio.sleep(self.random.choice((0.0, 0.003, 0.01, 0.05)))
        if result.done.is_set() or client.channel.closed:
            return
        self.sim.note(f"{name}: {manner}")
        if manner == "leave":
            client.channel._transport.abort()
            return
        other = await self.connected(f"{name}x")
        if other is not None:
            if other.number != client.number:  # only the coordinating member knows the query
                other.channel.close()
                other = client
            try:
                await other.cancel(result)
            except TransientError as error:
                self.sim.note(f"{name}: the cancel failed: {error!r}")
            if other is not client:
                other.channel.close()

    def _judge(
        self, name: str, client: Client, question: Question, manner: str, result: Result
    ) -> None:
        sim, error = self.sim, result.error
        what = f"{len(result.rows)} rows" if error is None else repr(error)
        sim.note(f"{name} ended: {what}")
        self.ends.append(f"{name} {type(error).__name__}")
        problem = ""
        if result.ends > 1:
            problem = f"ended {result.ends} times"
        elif error is None:
            if question.error is not None:
                problem = f"gave rows instead of {question.error.__name__}"
            elif not question.right(result.rows):
                problem = f"wrong rows: {result.rows[:20]}"
        elif question.error is not None and isinstance(error, question.error):
            return
        elif not self._excused(client, manner, error):
            problem = f"unexpected {error!r}"
        if problem:
            sim.violations.append(f"{name} ({question.text}): {problem}")

    def _excused(self, client: Client, manner: str, error: RemudaError) -> bool:
        """Whether the run gives a reason for this error."""
        if not isinstance(error, TransientError) or not error.message:
            return False
        if isinstance(error, NotServed):  # nothing was done: a client asks again; but not for ever
            self.refused += 1
            return self.refused <= REFUSED_MAX or self.faults not in ("calm", "slow")
        if isinstance(error, QueryCanceled):
            return manner == "cancel"
        if isinstance(error, QueryTimeout):
            return manner == "timeout" or self.faults not in ("calm", "slow")
        if isinstance(error, ConnectionBroken | ConnectionRefused):
            lost = self.has("frames") and "got lost" in error.message
            return lost or manner == "leave" or self.has("crash") or self.has("silence")
        if isinstance(error, MemberUnavailable) and not (error.member or "stopping" in str(error)):
            return False
        return self.faults != "calm" and self.faults != "slow"

    # ---- writes ----

    async def commit(self, name: str) -> None:
        await self._write(name, self.tables.commits, "UPDATE c SET v = v + 1")

    async def put(self, name: str) -> None:
        await self._write(name, self.tables.puts, None)

    async def _write(self, name: str, writes, text: str | None) -> None:
        client = await self.connected(name)
        if client is None:
            return
        sim = self.sim
        sim.note(f"{name} asks member {client.number}: {text or 'put'}")
        self.asked.add(name)
        try:
            if text is None:
                schema = await client.schema("p")
                writes.begun += 1
                await client.put(schema, writes.begun, 1)
            else:
                writes.begun += 1
                await client.run(text)
            writes.done += 1
            sim.note(f"{name} done")
        except RemudaError as error:
            sim.note(f"{name} ended: {error!r}")
            if not self._excused(client, "plain", error):
                sim.violations.append(f"{name}: {error!r}")
        self.ended.append(name)
        client.channel.close()


def run_storm(seed: int, storm: Storm) -> str:
    """The log of a run. Raises Violation with the seed and what is useful of the log."""
    with simulation(seed, storm.size, **storm.settings) as sim:
        storm.run(sim)
        sim.verdict()
        return sim.log()


def run_seed(seed: int) -> tuple[str, Storm]:
    storm = Storm(seed)
    return run_storm(seed, storm), storm
