"""Storms of staged jobs and atomic statements: all of their rows on every live member, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from unittest import mock

import pyarrow as pa
from sim_client import Client
from sim_cluster import Simulation
from sim_network import LOST, Fate, Sent
from sim_queries import Question, Rows, Tables
from sim_storm import Storm, run_storm

import remuda.member.commits.jobs as jobs_module
from remuda.datatypes.arrow import engine_schema
from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    JobAborted,
    RemudaError,
    TransientError,
    UndefinedStatement,
    UniqueViolation,
)
from remuda.member.state.routing import Router
from remuda.rpc import codec
from remuda.rpc.arrow_stream import encode
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

COMMIT_MESSAGES = ("COMMIT_PREPARE", "COMMIT_FINISH", "COMMIT_STATUS")
"""Requests between members whose loss the commit bears: they are asked again."""
WRONG = -1
"""What no committed row may have: rows of attempts that failed."""


@dataclass
class Batch:
    """The rows of one write: ``size`` keys from ``first`` on, in table m, all with ``number``."""

    number: int
    first: int
    size: int
    done: bool = False
    """It was acknowledged."""
    refused: bool = False
    """It certainly does not exist."""

    @property
    def keys(self) -> range:
        return range(self.first, self.first + self.size)


class JobTables(Tables):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.batches: list[Batch] = []

    def definitions(self) -> list[str]:
        return [*super().definitions(), "CREATE TABLE m (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)",
                "CREATE TABLE o (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)"]  # fmt: skip

    def batch(self, size: int) -> Batch:
        first = self.batches[-1].keys.stop if self.batches else 0
        self.batches.append(Batch(len(self.batches), first, size))
        return self.batches[-1]

    def question(self) -> Question:
        ask = self.random.choice((self.whole, self.whole, self.alike, super().question))
        return ask()

    def whole(self) -> Question:
        """Readers see all rows of a write or none, and those of acknowledged ones."""
        acknowledged = {batch.number for batch in self.batches if batch.done}

        def right(got: Rows) -> bool:
            seen = dict(got)
            return seen.keys() >= acknowledged and all(
                0 <= number < len(self.batches) and count == self.batches[number].size
                for number, count in seen.items()
            )

        return Question("SELECT v, count(*) FROM m GROUP BY v", right)

    def alike(self) -> Question:
        """All rows of the table that jobs overwrite come from one of them."""

        def right(got: Rows) -> bool:
            low, high, count = got[0]
            return low == high and (low is None or count == low + 1)

        return Question("SELECT min(v), max(v), count(*) FROM o", right)


class JobStorm(Storm):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.chance = Random(f"{seed}/jobs")
        # Time passes for all members while one computes: with more, heartbeats would come late.
        self.works = (0.0, 0.0005)
        self.tables: JobTables = JobTables(Random(f"{seed}/tables"))
        self.outcomes: list[str] = []
        """How writes ended."""

    def run(self, sim: Simulation) -> None:
        with ExitStack() as patches:
            for name, seconds in (("JOB_IDLE_TIMEOUT", 20.0), ("TOUCH_EVERY", 2.0)):
                patches.enter_context(mock.patch.object(jobs_module, name, seconds))
            super().run(sim)

    def _arrange_faults(self) -> None:
        super()._arrange_faults()
        chance = self.chance
        if self.has("frames"):
            self.sim.network.rules.append(self._commit_fate)
        makers = (self.job, self.job, self.overwrite, self.insert, self.insert, self.collide)
        for number in range(chance.randint(2, 6)):
            pause, make = chance.uniform(0, 2.0), chance.choice(makers)
            self.writing.append(
                self.sim.loop.create_task(self.after(pause, self.write(f"j{number}", make)))
            )

    async def storm(self) -> None:
        self.writing: list[asyncio.Task[None]] = []
        await super().storm()
        await asyncio.gather(*self.writing)
        await asyncio.sleep(60.0)  # until survivors have decided and idle jobs have expired
        self._look_at_rows()

    def _commit_fate(self, sent: Sent) -> Fate | None:
        if sent.name not in COMMIT_MESSAGES:
            return None
        draw = self.chance.random()
        if draw < 0.1:
            return LOST
        return Fate((self.chance.uniform(0, 0.5),)) if draw < 0.2 else None

    # ---- writes ----

    async def write(self, name: str, make: Callable[[str, Client], object]) -> None:
        client = await self.connected(name)
        if client is None:
            return
        self.asked.add(name)
        self.sim.note(f"{name} at member {client.number}: {make.__name__}")  # type: ignore[attr-defined]
        try:
            what = str(await make(name, client))  # type: ignore[misc]
        except RemudaError as error:
            what = type(error).__name__
            self.sim.note(f"{name} ended: {error!r}")
            if not self._excused(client, "plain", error):
                self.sim.violations.append(f"{name}: {error!r}")
        self.sim.note(f"{name}: {what}")
        self.outcomes.append(what)
        self.ended.append(name)
        client.channel.close()

    def _excused(self, client: Client, manner: str, error: RemudaError) -> bool:
        if self.has("frames") and isinstance(error, JobAborted):
            return True
        if self.has("frames") and isinstance(error, ConnectionBroken):
            return True
        return super()._excused(client, manner, error)

    async def insert(self, name: str, client: Client) -> str:
        batch = self.tables.batch(self.chance.choice((1, 8, 40)))
        rows = ", ".join(f"({key}, {batch.number})" for key in batch.keys)
        await client.run(f"INSERT INTO m VALUES {rows}")
        batch.done = True
        return "inserted"

    async def collide(self, name: str, client: Client) -> str:
        """A statement whose last row exists already, if the batch before it has been written."""
        before = self.tables.batch(2)
        await client.run(f"INSERT INTO m VALUES ({before.first}, {before.number}), "
                         f"({before.first + 1}, {before.number})")  # fmt: skip
        before.done = True
        batch = self.tables.batch(5)
        rows = ", ".join(f"({key}, {batch.number})" for key in batch.keys)
        try:
            await client.run(f"INSERT INTO m VALUES {rows}, ({before.first}, {batch.number})")
        except UniqueViolation:
            batch.refused = True
            return "refused"
        self.sim.violations.append(f"{name}: a key was inserted twice")
        return "inserted"

    async def job(self, name: str, client: Client) -> str:
        batch = self.tables.batch(self.chance.choice((1, 10, 60)))
        keys, number = list(batch.keys), batch.number
        ending = self.chance.choice(("commit", "commit", "commit", "twice", "abort", "leave"))
        job = Job(self, name, client, "m")
        await job.begin()
        middle = len(keys) // 2
        if self.chance.random() < 0.3:
            await job.task("0:0", keys[:middle], WRONG)  # an attempt that failed
        parts = [("0:1", keys[:middle]), ("1:0", keys[middle:])]
        tasks = [await job.task(task, part, number) for task, part in parts]
        if ending in ("abort", "leave"):
            batch.refused = True
            if ending == "abort":
                await job.abort()
            return ending
        if ending == "twice":
            await job.commit_twice(tasks, batch.size)
        else:
            job.check(await job.commit(tasks), batch.size)
        batch.done = True
        return f"committed ({ending})"

    async def overwrite(self, name: str, client: Client) -> str:
        number = self.chance.randrange(40)
        job = Job(self, name, client, "o")
        await job.begin(overwrite=True)
        task = await job.task("0:0", list(range(number + 1)), number)
        job.check(await job.commit([task]), number + 1)
        return "overwritten"

    # ---- the judgement ----

    def _look_at_rows(self) -> None:
        """On the live members themselves: those of lost ones are gone, there are no copies."""
        live = self.sim.live()
        found: dict[int, int] = {}
        o_values: set[int] = set()
        for number, member in live.items():
            at = member.core.timestamp()
            router = Router(member.core.catalog.get("m"))
            store = member.core.stores[member.core.catalog.get("m").map_id]
            for batch in self.tables.batches:
                for key in batch.keys:
                    if member.core.view.owners[router.partition([key])] != number:
                        continue
                    row = store.get((key,), at)
                    found[key] = 0 if row is None else 1
                    if row is not None and batch.number not in row:
                        self.sim.violations.append(f"key {key} of write {batch.number}: {row}")
            other = member.core.stores[member.core.catalog.get("o").map_id]
            o_values |= {row[-1] for key in range(40) if (row := other.get((key,), at)) is not None}
        if len(o_values) > 1:
            self.sim.violations.append(f"rows of several jobs that overwrite: {o_values}")
        for batch in self.tables.batches:
            there = [found[key] for key in batch.keys if key in found]
            if len(set(there)) > 1:
                self.sim.violations.append(f"a part of write {batch.number} is there: {there}")
            if batch.done and not all(there):
                self.sim.violations.append(f"write {batch.number} was acknowledged and is lost")
            if batch.refused and any(there):
                self.sim.violations.append(f"write {batch.number} was refused and is there")


class Job:
    """A staged job by hand: rows go to their owners through connections of the job's own."""

    def __init__(self, storm: JobStorm, name: str, client: Client, table: str) -> None:
        self.storm, self.name, self.client, self.table = storm, name, client, table
        self.clients: dict[int, Client] = {}

    async def begin(self, *, overwrite: bool = False) -> None:
        message = user_pb2.JobBegin(map=self.table, overwrite=overwrite, label=self.name)
        reply = await self.client.channel.request(RpcType.JOB_BEGIN, message)
        handle = user_pb2.JobHandle.FromString(reply.pbody)
        self.id, self.schema = handle.job, codec.decode_schema(handle.schema)

    async def task(self, task: str, keys: list[int], value: int) -> user_pb2.JobTask:
        """Write the rows in two pieces, some of them twice, and end the task."""
        core = self.storm.sim.members[self.client.number].core  # type: ignore[attr-defined]
        members = tuple(member.number for member in core.view.members)
        arrow, limit = engine_schema(self.schema), 60.0
        rows: dict[int, int] = {}
        for sequence, piece in enumerate((keys[::2], keys[1::2])):
            batch = pa.record_batch(self.batch(piece, value), schema=arrow)
            shares, _ = Router(self.schema).shares(batch, core.view, members)
            parts = {each.member: each.batch.slice(0, each.primaries) for each in shares}
            for number, part in parts.items():
                if not part.num_rows:
                    continue
                client = await self.at(number)
                message = user_pb2.JobWrite(job=self.id, task=task, sequence=sequence)
                for _ in range(self.storm.chance.choice((1, 1, 2))):
                    body = [encode(part.schema, [part])]
                    await client.channel.request(RpcType.JOB_WRITE, message, body, limit)
                rows[number] = rows.get(number, 0) + part.num_rows
        for number, count in rows.items():
            end = user_pb2.JobTaskEnd(job=self.id, task=task, rows=count)
            channel = (await self.at(number)).channel
            await channel.request(RpcType.JOB_TASK_END, end, timeout=limit)
        return user_pb2.JobTask(task=task, members=sorted(rows))

    def batch(self, keys: list[int], value: int) -> list[pa.Array]:
        """The columns of rows with these keys."""
        return [pa.array(keys, pa.int64()), pa.array([value] * len(keys), pa.int64())]

    async def at(self, number: int) -> Client:
        if number not in self.clients:
            try:
                async with asyncio.timeout(20.0):
                    client = await self.storm.sim.client(number, f"{self.name}m{number}")
            except TimeoutError:
                raise ConnectionRefused(f"member {number} does not answer") from None
            self.clients[number] = client
        return self.clients[number]

    async def commit(self, tasks: list[user_pb2.JobTask], client: Client | None = None) -> int:
        message = user_pb2.JobCommit(job=self.id, tasks=tasks)
        channel = (client or self.client).channel
        reply = await channel.request(RpcType.JOB_COMMIT, message)
        count: int = user_pb2.Count.FromString(reply.pbody).count
        return count

    async def commit_twice(self, tasks: list[user_pb2.JobTask], size: int) -> None:
        """At once through two members, then again: each answer is the same, or an error that a
        fault explains."""
        other = next(iter(self.clients.values()), self.client)
        ends = await asyncio.gather(
            self.commit(tasks), self.commit(tasks, other), return_exceptions=True
        )
        try:
            ends.append(await self.commit(tasks))
        except RemudaError as error:
            ends.append(error)
        for end in ends:
            if isinstance(end, int):
                self.check(end, size)
            elif not isinstance(end, TransientError | UndefinedStatement):
                raise end
        if not isinstance(ends[0], int):
            raise ends[0]

    def check(self, count: int, wanted: int) -> None:
        if count != wanted:
            self.storm.sim.violations.append(f"{self.name}: {count} rows instead of {wanted}")

    async def abort(self) -> None:
        await self.client.channel.request(RpcType.JOB_ABORT, user_pb2.JobAbort(job=self.id))


def run_seed(seed: int) -> tuple[str, JobStorm]:
    storm = JobStorm(seed)
    return run_storm(seed, storm), storm
