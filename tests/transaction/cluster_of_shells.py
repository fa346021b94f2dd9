"""A cluster of the members' real transaction shells over real stores, in one thread from one seed.

Real: ``Transactions`` and ``SmallWrites`` with everything below (wire form, locks, validation,
admission), clocks, stores of rows. Simulated: the network (delay, reordering, loss, repetition),
views (a lost or wrongly suspected member is dropped, the others learn of it at different times),
and copies: each partition has a store of its own, so that a promotion needs no move. What clients
saw is judged by ``histories``; in the end all copies must have the same versions of all rows, and
nothing may be left of any transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from random import Random
from typing import Any

from histories import Anomaly, Append, Outcome, Read, Transaction, anomalies
from sim_loop import Node, SimulatedLoop
from sim_network import SimulatedNetwork
from sim_world import simulated_world

from remuda.cluster.replicas import balanced, without
from remuda.config import MemberConfig
from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import MemberGivenUp, OutcomeUnknown, RemudaError
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import Key, ReadSet, Row, Scan, Write
from remuda.member.transactions.small_writes import SmallWrite, SmallWrites
from remuda.member.transactions.transactions import Transactions
from remuda.plan.expression import Call, ColumnRef, Literal
from remuda.storage.maps.map_store import MapStore

TROUBLE = 20.0
CALM = 45.0
MAP = 7
KEYS = tuple(range(1, 9))
OTHERS = (101, 102, 103)
"""Keys that come and go: no lists, but all copies must have the same versions of them."""
BUCKETS = 2
BUCKET_ID = 11
"""The column id of ``bucket`` in predicates."""

SCHEMA = MapSchema(
    "lists",
    (
        Column("id", sql.BIGINT, nullable=False, id=1),
        Column("bucket", sql.BIGINT, id=2),
        Column("list", sql.VARCHAR, id=3),
    ),
    ("id",),
    ("id",),
    map_id=MAP,
)
ROUTER = Router(SCHEMA)
PARTITION = {key: ROUTER.key_partition((key,)) for key in (*KEYS, *OTHERS)}


class Violation(AssertionError):
    pass


def row_of(key: int, values: tuple[int, ...]) -> Row:
    return (key, key % BUCKETS, " ".join(map(str, values)))


def values_of(row: Row | None) -> tuple[int, ...]:
    return tuple(int(value) for value in str(row[2]).split()) if row is not None else ()


@dataclass
class Message:
    """What ``on_messages`` needs of a request."""

    pbody: bytes


class Wires:
    """``Peers`` of one member."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster, self.number = cluster, number

    def send_control(self, to: int, _rpc_type: int, body: Any) -> None:
        self.cluster.transmit(self.number, to, body.SerializeToString())


class Member:
    def __init__(self, cluster: Cluster, number: int, view: View) -> None:
        self.cluster, self.number = cluster, number
        self.node = Node(f"m{number}", member=True)
        self.serving = True
        """It has its lease: false from before others may be promoted."""
        self.stores: dict[int, MapStore] = {}
        self.node.context.run(self._make, view)

    def _make(self, view: View) -> None:
        cluster = self.cluster
        skew = cluster.random.uniform(-0.2, 0.2)
        world = simulated_world(cluster.network, f"{cluster.seed}/{self.number}", skew=skew)
        self.core = Core(MemberConfig(), world, str(self.number))
        self.core.number, self.core.view = self.number, view
        self.core.stores[MAP] = MapStore(SCHEMA)
        self.core.copy_of = self.copy_of  # type: ignore[method-assign]
        self.transactions = Transactions(self.core, Wires(cluster, self.number))  # type: ignore[arg-type]
        self.small = SmallWrites(self.core, self.transactions)

    def start(self) -> None:
        self.transactions.start()

    @property
    def alive(self) -> bool:
        return self.node.alive

    def copy_of(self, _map_id: int, partition: int) -> MapStore:
        if partition not in self.stores:
            self.stores[partition] = MapStore(SCHEMA)
        return self.stores[partition]

    def receive(self, frame: bytes) -> None:
        with contextlib.suppress(MemberGivenUp):
            self.transactions.shell.on_messages(Message(frame))  # type: ignore[arg-type]

    def install(self, view: View) -> None:
        before, self.core.view = self.core.view, view
        for number in before.by_number.keys() - view.by_number.keys():
            self.core.lost[number] = "simulated"
        self.transactions.on_view(before, view)

    async def read(self, keys: list[int], at: int) -> dict[int, tuple[int, ...]]:
        """As a get or a scan does: wait for what is undecided at or below ``at``."""
        core = self.core
        core.observe_clock(at)
        wanted = [(key,) for key in keys]
        store = core.stores[MAP]
        while store.pending_at_or_below(at) and (
            key := self.transactions.awaited_key(MAP, wanted, at)
        ):
            event = asyncio.Event()
            self.transactions.pending.when_readable(MAP, key, event.set)
            await event.wait()
        found = {}
        for key in keys:
            if not self.serving or core.view.owners[PARTITION[key]] != self.number:
                raise Lost
            found[key] = values_of(self.copy_of(MAP, PARTITION[key]).get((key,), at))
        return found

    def versions(self, partition: int) -> list[tuple[Any, ...]]:
        found = []
        for some in self.copy_of(MAP, partition).extraction(frozenset({partition})).versions():
            rows = [tuple(row.values()) for row in some.batch.to_pylist()]
            found += list(zip(rows, some.begins.tolist(), some.ends.tolist(), strict=True))
        return sorted(found, key=lambda version: (version[0][0], version[1]))


class Lost(Exception):
    """The member that was asked is gone, or is not the primary any more."""


@dataclass(eq=False)
class Client:
    number: int
    began: float
    operations: list[Append | Read] = field(default_factory=list)
    outcome: Outcome = Outcome.ABORTED
    ended: float = float("inf")


class Cluster:
    def __init__(self, seed: int, copies: int | None = None) -> None:
        """``copies``: of each partition; None: as the seed says."""
        self.seed = seed
        self.random = Random(f"{seed}/run")
        self.log: list[str] = []
        self.loop = SimulatedLoop(Random(f"{seed}/loop"))
        self.network = SimulatedNetwork(self.loop, Random(f"{seed}/network"), self.note)
        self.director = Node("director")
        numbers = list(range(1, self.random.randint(2, 4) + 1))
        self.copies = copies or self.random.choice((1, 2, 2, 2, 3))
        table = balanced(((),) * PARTITIONS, numbers, self.copies)
        infos = tuple(MemberInfo(n, str(n), "h", 0, 0, 0) for n in numbers)
        self.views = [View(1, infos, table)]
        self.members = {number: self.make_member(number) for number in numbers}
        self.clients: list[Client] = []
        self.losses = 0

    # what mutations replace
    def make_member(self, number: int) -> Member:
        return Member(self, number, self.views[0])

    def note(self, line: str) -> None:
        self.log.append(f"{self.loop.now - 1000:.3f} {line}")

    @property
    def now(self) -> float:
        return self.loop.now - 1000

    def at(self, delay: float, node: Node, action: Any, *arguments: Any) -> None:
        self.loop.call_later(delay, action, *arguments, context=node.context)

    def delay(self) -> float:
        slow = self.now < TROUBLE and self.random.random() < 0.05
        return self.random.uniform(0.1, 2.0) if slow else self.random.uniform(0.0005, 0.02)

    def transmit(self, sender: int, to: int, frame: bytes) -> None:
        trouble = self.now < TROUBLE
        if not self.members[sender].alive or (trouble and self.random.random() < 0.05):
            return
        for _ in range(2 if trouble and self.random.random() < 0.05 else 1):
            member = self.members[to]
            self.at(self.delay(), member.node, member.receive, frame)

    # --- faults -------------------------------------------------------------------------------

    def lose(self, number: int, crash: bool) -> None:
        """A member crashes, or is only thought to have; either way the next view is without it."""
        last = self.views[-1]
        if len(last.members) == 1 or number not in last.by_number or self.losses >= self.copies - 1:
            return
        self.losses += 1
        member = self.members[number]
        member.serving = False
        if crash:
            member.node.alive = False
        self.note(f"{number} {'crashes' if crash else 'is dropped'}")
        left = tuple(m for m in last.members if m.number != number)
        view = View(last.number + 1, left, without(last.replicas, {number}))
        self.views.append(view)
        delay = self.random.uniform(0.2, 1.5)
        ceiling = max(m.core.clock.last for m in self.members.values())
        for other in last.by_number:
            self.learn(other, view, delay + self.random.uniform(0.0, 1.0), ceiling)

    def learn(self, number: int, view: View, delay: float, ceiling: int) -> None:
        member = self.members[number]

        def install() -> None:
            if member.core.view.number + 1 < view.number:
                self.at(0.1, member.node, install)
                return
            # Rule 16: the promoted one is above everything that the lost one has served.
            member.core.clock.observe(ceiling)
            self.note(f"{number} installs view {view.number}")
            member.install(view)
            for _ in range(4):
                key = self.random.choice(KEYS)
                self.at(self.random.uniform(0.0, 0.3), self.director, self.look_at, key)

        self.at(delay, member.node, install)

    # --- clients ------------------------------------------------------------------------------

    def begin(self) -> None:
        if self.random.random() < 0.6:
            self.at(self.random.uniform(0.0, 0.05), self.director, self.begin)
        alive = [m for m in self.members.values() if m.alive and m.serving]
        near = self.random.choice(alive)
        client = Client(len(self.clients) + 1, self.now)
        self.clients.append(client)
        work = self.random.choice((self.put, self.transaction, self.transaction, self.scan))
        near.node.context.run(self.loop.create_task, self.run_client(client, near, work))
        if self.random.random() < 0.1:
            victim = self.random.choice(alive)
            crash = self.random.random() < 0.6
            self.at(self.random.uniform(0.0, 0.3), self.director, self.lose, victim.number, crash)

    async def run_client(self, client: Client, near: Member, work: Any) -> None:
        try:
            await work(client, near)
            client.outcome = Outcome.COMMITTED
        except OutcomeUnknown:
            client.outcome = Outcome.UNKNOWN
            return
        except (RemudaError, Lost) as error:
            self.note(f"client {client.number} failed: {error!r}")
            if getattr(error, "may_have_run", False) and client.operations:
                client.outcome = Outcome.UNKNOWN
                return
        client.ended = self.now
        if client.outcome is Outcome.COMMITTED and len(client.operations) > 0:
            self.look_soon(client)
        self.note(f"client {client.number} {client.outcome.value}: {client.operations}")

    def touch(self, near: Member, key: int, row: Row | None) -> None:
        """Put or remove one of the other keys; nobody waits for the answer."""
        primary = self.members[near.core.view.owners[PARTITION[key]]]
        write = SmallWrite(
            SCHEMA, PARTITION[key], [(key,)], lambda _: ([((key,), row)], [None]), lambda _: None
        )
        self.at(self.delay(), primary.node, primary.small.write, write)

    async def put(self, client: Client, near: Member) -> None:
        """Read, append and write one key in one step at its primary."""
        other = self.random.choice(OTHERS)
        for _ in range(self.random.randrange(4)):
            row = row_of(other, ()) if self.random.random() < 0.5 else None
            self.touch(near, other, row)
        key = self.random.choice(KEYS)
        client.outcome = Outcome.UNKNOWN
        client.operations = [Append(key, client.number)]
        primary = self.members[near.core.view.owners[PARTITION[key]]]
        seen: list[tuple[int, ...]] = []

        def decide(
            before: list[Row | None],
        ) -> tuple[list[tuple[Key, Row | None]], list[Row | None]]:
            seen.append(values_of(before[0]))
            return [((key,), row_of(key, (*seen[-1], client.number)))], before

        done: asyncio.Future[Any] = self.loop.create_future()

        def ask() -> None:
            primary.small.write(SmallWrite(SCHEMA, PARTITION[key], [(key,)], decide, answer))

        def answer(what: Any) -> None:
            self.at(self.delay(), near.node, lambda: done.done() or done.set_result(what))

        self.at(self.delay(), primary.node, ask)
        answered = await done
        if isinstance(answered, RemudaError):
            client.outcome = Outcome.ABORTED
            raise answered
        client.operations = [Read(key, seen[-1]), Append(key, client.number)]

    def look_soon(self, client: Client) -> None:
        """Somebody else reads one of the keys, at its primary alone."""
        written = [o.key for o in client.operations if isinstance(o, Append)]
        if written and self.random.random() < 0.7:
            self.look_at(self.random.choice(written))
        if written:
            self.query(self.random.choice(written), client.number)

    def look_at(self, key: int) -> None:
        owner = self.members.get(self.views[-1].owners[PARTITION[key]])
        if owner is not None and owner.alive and owner.serving:
            reader = Client(len(self.clients) + 1, self.now + 1e-6)
            self.clients.append(reader)
            looking = self.run_client(reader, owner, lambda c, n: self.look(c, n, key))
            owner.node.context.run(self.loop.create_task, looking)

    def query(self, key: int, answered: int) -> None:
        """A query of its own takes its timestamp from its only participant, and keeps it: it sees
        what was answered before, if not what others have seen before it was answered."""
        near = self.members.get(self.views[-1].owners[PARTITION[key]])
        if near is None or not near.alive or not near.serving:
            return

        async def ask() -> None:
            with contextlib.suppress(Lost, RemudaError):
                found = (await near.read([key], near.core.timestamp()))[key]
                if answered not in found:
                    self.loop.problems.append(f"{answered} was answered, and is not in {found}")

        near.node.context.run(self.loop.create_task, ask())

    async def look(self, client: Client, near: Member, key: int) -> None:
        """As a get does: whoever had to wait reads at a later timestamp than before."""
        at = near.core.timestamp()
        while near.transactions.awaited_key(MAP, [(key,)], at) is not None:
            await near.read([key], at)
            at = near.core.timestamp()
        client.operations = [Read(key, (await near.read([key], at))[key])]

    async def snapshot(self, near: Member, members: set[int]) -> int:
        """Above the clocks of all members, whoever takes part: what has become visible anywhere
        when the transaction begins is below its snapshot."""
        for number in members | near.core.view.by_number.keys():
            other = self.members[number]
            if number != near.number:
                await asyncio.sleep(self.delay())
                if not other.alive or not other.serving:
                    raise Lost
                near.core.observe_clock(other.core.timestamp())
                await asyncio.sleep(self.delay())
        return near.core.timestamp()

    async def ask(self, near: Member, keys: list[int], at: int) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for key in keys:
            primary = self.members[near.core.view.owners[PARTITION[key]]]
            await asyncio.sleep(self.delay())
            if not primary.alive:
                raise Lost
            reading = primary.node.context.run(self.loop.create_task, primary.read([key], at))
            try:
                found |= await asyncio.wait_for(reading, 10.0)
            except TimeoutError as error:
                raise Lost from error
        return found

    async def transaction(self, client: Client, near: Member) -> None:
        keys = self.random.sample(KEYS, self.random.choice((1, 2, 3)))
        appends = [key for key in keys if self.random.random() < 0.7]
        await self._commit(client, near, keys, appends, scans=False)

    async def scan(self, client: Client, near: Member) -> None:
        bucket = self.random.randrange(BUCKETS)
        keys = [key for key in KEYS if key % BUCKETS == bucket]
        appends = self.random.sample(KEYS, self.random.choice((0, 1, 1, 2)))
        read = list(dict.fromkeys([*keys, *appends]))
        await self._commit(client, near, read, appends, scans=True, bucket=bucket)

    async def _commit(
        self,
        client: Client,
        near: Member,
        keys: list[int],
        appends: list[int],
        *,
        scans: bool,
        bucket: int = 0,
    ) -> None:
        owners = {near.core.view.owners[PARTITION[key]] for key in keys}
        at = await self.snapshot(near, owners)
        found = await self.ask(near, keys, at)
        await asyncio.sleep(self.random.uniform(0, 0.05))
        client.operations = [Read(key, found[key]) for key in keys]
        client.operations += [Append(key, client.number) for key in appends]
        writes = [
            Write(MAP, 1, (key,), row_of(key, (*found[key], client.number))) for key in appends
        ]
        if appends and self.random.random() < 0.5:
            other = self.random.choice(OTHERS)
            row = row_of(other, (client.number,)) if self.random.random() < 0.5 else None
            writes.append(Write(MAP, 1, (other,), row))
            for _ in range(3):  # they wait for the key, and follow at once
                delay = self.random.uniform(0.0, 0.1)
                self.at(delay, near.node, self.touch, near, other, None)
        reads = ReadSet(at)
        if scans:
            condition = Call(
                sql.BOOLEAN,
                "=",
                (ColumnRef(sql.BIGINT, BUCKET_ID, "bucket"), Literal(sql.BIGINT, bucket)),
            )
            inside = frozenset(PARTITION[key] for key in KEYS)
            reads.scans.append(Scan(MAP, 1, condition, ((BUCKET_ID, 1),), (), inside))
            reads.keys[MAP] = {(key,) for key in appends}
        else:
            reads.keys[MAP] = {(key,) for key in keys}
        client.outcome = Outcome.UNKNOWN
        try:
            await near.transactions.commit(writes, reads, self.random.choice((0.05, 5.0, 20.0)))
        except OutcomeUnknown:
            raise
        except RemudaError:
            client.outcome = Outcome.ABORTED
            raise

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> None:
        logging.disable(logging.CRITICAL)
        try:
            self._run()
        finally:
            logging.disable(logging.NOTSET)
            self.loop.close()

    def _run(self) -> None:
        for member in self.members.values():
            self.at(0.0, member.node, member.start)
        for _ in range(self.random.randint(20, 60)):
            self.at(self.random.uniform(0.1, TROUBLE), self.director, self.begin)
        self.loop.rest(TROUBLE + CALM)
        self.check()

    def check(self) -> None:
        if self.loop.problems:
            raise Violation(f"{self.loop.problems}")
        view = self.views[-1]
        for number in view.by_number:
            shell = self.members[number].transactions.shell
            if any(shell.gauges().values()):
                raise Violation(f"left on {number}: {shell.gauges()} {shell._parts}")
            if shell.remembered:
                raise Violation(f"not forgotten on {number}: {shell._parts}")
            if self.members[number].core.stores[MAP].awaited != FOREVER:
                raise Violation(f"readers of {number} wait for ever")
        readable: dict[int, tuple[int, ...]] = {}
        for key, partition in PARTITION.items():
            copies = view.replicas[partition]
            found = [self.members[number].versions(partition) for number in copies]
            if any(versions != found[0] for versions in found):
                raise Violation(f"copies of partition {partition} differ: {found}")
            if copies and key in KEYS:
                first = self.members[copies[0]].copy_of(MAP, partition)
                readable[key] = values_of(first.get((key,), FOREVER - 1))
        problems = self.judge(readable)
        if problems:
            raise Violation("; ".join(str(problem) for problem in problems))

    def judge(self, readable: dict[int, tuple[int, ...]]) -> list[Anomaly]:
        history = [
            Transaction(tuple(c.operations), c.outcome, c.began, c.ended) for c in self.clients
        ]
        last = Transaction(tuple(Read(k, v) for k, v in readable.items()), began=1e6, ended=1e6)
        found = anomalies([*history, last], clocks_differ=True)
        return [a for a in found if a.name != "garbage read"]


def run(seed: int, cluster: type[Cluster] = Cluster) -> Cluster:
    found = cluster(seed)
    try:
        found.run()
    except AssertionError as problem:
        tail = "\n".join(found.log[-80:])
        raise Violation(f"seed {seed}: {problem}\n{tail}") from problem
    return found
