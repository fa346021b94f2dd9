"""A whole cluster of real members in one thread, from one seed."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
from asyncio import events
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar
from unittest import mock

from sim_client import Client
from sim_loop import CURRENT, Node, SimulatedLoop
from sim_network import Sent, SimulatedNetwork
from sim_world import SimulatedDisk, SimulatedPool, simulated_world

import remuda.execution.exchange.window as window_module
import remuda.member.queries.short_plans as short_plans_module
import remuda.member.rooms as rooms_module
import remuda.query.registry as registry_module
from remuda.config import MemberConfig
from remuda.errors import RemudaError
from remuda.execution.memory import MemoryAccount
from remuda.limits import QUERY_CHECK_INTERVAL
from remuda.member import upkeep
from remuda.member.member import Member
from remuda.query.wire import decode_query_id
from remuda.rpc.connection import ChannelKind
from remuda.rpc.frame import FrameReader
from remuda.rpc.messages import control_pb2

LASTING = ("channels", "clients", "cached_plans", "log_bytes", "log_groups", "log_records",
           "log_durable", "log_checkpoint")  # fmt: skip
"""Gauges of what an idle member may have."""
COMMITS = ("Commits._commit", "Jobs._commit")
"""Tasks that wait for the end of a bulk write: a member that others have dropped hears of none."""
UNDECIDED = (
    "queries",
    "staging",
    "prepared",
    "turns",
    "commits",
    "committing",
    "parts",
    "copies_incoming",
    "copies_outgoing",
    "settling",
    "key_locks",
    "part_waits",
    "advisory_locks",  # of a transaction whose commit is in doubt
)
"""What nobody ends on a member that stops (the process ends), or that has no majority."""
BACKGROUND = {"Core._guarded", "Member.start"}


FAST = {"heartbeat_interval": 0.5, "heartbeat_timeout": 3.0, "workers": 0}


class Violation(AssertionError):
    """Something happened that never may."""


class Capture(logging.Handler):
    """Warnings go to the run's log; errors are violations."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(logging.WARNING)
        self.simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        simulation = self.simulation
        if simulation.loop.closed:
            return
        cause = getattr(record, "fields", None) or getattr(record, "error", "")
        text = f"{CURRENT.get()}: {record.getMessage()} {cause}".rstrip()
        simulation.note(f"log {record.levelname.lower()} {text}")
        if record.levelno >= logging.ERROR and "given this member up" not in text:
            problem = record.exc_info[1] if record.exc_info else ""
            simulation.violations.append(f"logged an error: {text}: {problem!r}")


class Simulation:
    """``with simulation(seed) as sim: sim.complete(work())``."""

    def __init__(self, seed: int, members: int = 3, **settings: Any) -> None:
        self.seed = seed
        self.random = Random(f"{seed}/run")
        self.entries: list[tuple[float, str]] = []
        self.loop = SimulatedLoop(Random(f"{seed}/loop"))
        self.network = SimulatedNetwork(self.loop, Random(f"{seed}/network"), self.note)
        self.director = Node("director")
        self.size = members
        self.settings = settings
        self.members: dict[int, Member] = {}
        self.made: list[Member] = []
        self.nodes: dict[int, Node] = {}
        self.clients: list[Client] = []
        self.joined = 0
        self.violations: list[str] = []
        self.accounts: list[tuple[Node, MemoryAccount]] = []
        self.skew_max = 0.0
        self.work = 0.0
        self.files: dict[Path, bytes] = {}
        """What every member finds on its disk."""
        self.user: tuple[str, str] | None = None
        """Name and password of clients."""
        self.cancels: Counter[Any] = Counter()
        self.checks: dict[tuple[str, str], float] = {}
        self.network.watchers.append(self._watch)

    # ---- the log ----

    def note(self, text: str) -> None:
        self.entries.append((self.loop.now, text))

    def log(self) -> str:
        return "\n".join(f"{time:.6f} {text}" for time, text in self.entries)

    def useful_log(self, lines: int = 60) -> str:
        """What decided the run: everything but frames, and the last frames before the end."""
        shown = [
            (time, text)
            for index, (time, text) in enumerate(self.entries)
            if (" -> " not in text or "LOST" in text or index >= len(self.entries) - lines // 3)
            and not any(word in text for word in ("HEARTBEAT", "closing the", "message refused"))
        ]
        return "\n".join(f"{time:.6f} {text}" for time, text in shown[-lines:])

    def _watch(self, sent: Sent) -> None:
        if sent.name == "QUERY_CANCEL":
            message = control_pb2.QueryCancel.FromString(pbody(sent))
            self.cancels[decode_query_id(message.query_id)] += 1
        elif sent.name == "QUERY_CHECK":
            key = (sent.sender, sent.receiver)
            now = self.loop.now
            if now < self.checks.get(key, -1e9) + QUERY_CHECK_INTERVAL * 0.9:
                self.violations.append(f"two checks within an interval: {sent}")
            self.checks[key] = now

    # ---- life ----

    def complete(self, work: Awaitable[Any], limit: float = 1000.0) -> Any:
        return self.loop.complete(work, self.director, limit)

    def form(self, late: float = 0.0) -> None:
        """Start the members, each up to ``late`` seconds after the first, and wait for the view."""
        settings = {"cluster_size": self.size, **FAST, **self.settings}
        first = self._member("m1", MemberConfig(**settings))
        starts = [self._start(first, 0.0)]
        self.loop.run(lambda: ChannelKind.DATA in first._servers, 10.0)
        seed = first.addresses()["control"]
        others = [
            self._member(f"m{number}", MemberConfig(join=seed, **settings))
            for number in range(2, self.size + 1)
        ]
        starts += [self._start(member, self.random.uniform(0, late)) for member in others]
        if not self.loop.run(lambda: all(start.done() for start in starts), 100.0):
            raise Violation("the cluster did not form")
        for start in starts:
            start.result()
        for member in (first, *others):
            self._known(member)
        self.note("formed " + ", ".join(f"{n}={self.nodes[n]}" for n in sorted(self.nodes)))

    def _known(self, member: Member) -> None:
        self.members[member.core.number] = member
        self.nodes[member.core.number] = member.node  # type: ignore[attr-defined]

    async def join(self, through: int) -> Member:
        """A further process joins by asking a member."""
        self.joined += 1
        seed = self.members[through].addresses()["control"]
        settings = {"cluster_size": self.size, **FAST, **self.settings, "join": seed}
        member = self._member(f"m{self.size + self.joined}", MemberConfig(**settings))
        self.note(f"{member.node} joins through member {through}")  # type: ignore[attr-defined]
        await asyncio.shield(self._start(member, 0.0))
        self._known(member)
        return member

    async def leave(self, number: int) -> None:
        """As a process does when it gets SIGTERM."""
        member = self.members[number]
        self.note(f"member {number} leaves")

        async def go() -> None:
            await member.leave()
            await member.stop()

        await asyncio.shield(member.node.context.run(self.loop.create_task, go()))  # type: ignore[attr-defined]

    def split(self, some: set[int], seconds: float) -> None:
        """Nothing passes between the members ``some`` and the others."""
        self.note(f"SPLIT of {sorted(some)} from the others for {seconds:g} s")
        for one in some & self.nodes.keys():
            for other in self.nodes.keys() - some:
                self.network.silence(self.nodes[one], self.nodes[other], seconds)
                self.network.silence(self.nodes[other], self.nodes[one], seconds)

    def _member(self, name: str, config: MemberConfig) -> Member:
        node = Node(name, member=True)

        def make() -> Member:
            skew = self.random.uniform(-self.skew_max, self.skew_max)
            world = simulated_world(
                self.network, self.seed, skew=skew, work=self.work, files=self.files
            )
            return Member(config, world)

        # Parts of a member ask for the running loop when they are made.
        member: Member = node.context.run(self._inside, make)
        member.node = node  # type: ignore[attr-defined]
        self.made.append(member)
        return member

    def _inside(self, action):
        before = events._get_running_loop()
        events._set_running_loop(self.loop)
        try:
            return action()
        finally:
            events._set_running_loop(before)

    def _start(self, member: Member, delay: float):
        async def begin() -> None:
            await asyncio.sleep(delay)
            await member.start()

        return member.node.context.run(self.loop.create_task, begin())  # type: ignore[attr-defined]

    async def client(
        self, number: int, name: str = "", user: tuple[str, str] | None = None
    ) -> Client:
        """A client process of its own, connected to a member."""
        node = Node(name or f"c{len(self.clients)}")
        info = self.members[number].info
        opening = node.context.run(
            self.loop.create_task,
            Client.open(self.loop, (info.host, info.user_port), user or self.user),
        )
        client: Client = await asyncio.shield(opening)
        client.node = node  # type: ignore[attr-defined]
        client.number = number  # type: ignore[attr-defined]
        self.clients.append(client)
        return client

    def crash(self, number: int, *, silently: bool = False) -> None:
        node = self.nodes[number]
        if node.alive:
            self.note(f"CRASH of member {number} ({node}){' without a word' if silently else ''}")
            self.network.kill(node, silently=silently)

    def live(self) -> dict[int, Member]:
        """Members that are there and that the others have not given up."""
        return {
            number: member
            for number, member in self.members.items()
            if self.nodes[number].alive and not member.core.stopping
        }

    # ---- the end ----

    def held(self) -> list[str]:
        """What is left anywhere: must be empty once clients are gone and time has passed."""
        found: list[str] = []
        for number, member in self.members.items():
            node = self.nodes[number]
            if not node.alive:
                continue
            stopped = member.core.stopping
            gauges = member.gauges()
            if stopped:  # early messages of others' queries end with it, unasked for
                gauges["memory_held"] = member.core.memory.held
            lasting = {*LASTING, "tasks", *(UNDECIDED if stopped or member.core.lost else ())}
            found += [
                f"member {number}: {value} {name}"
                for name, value in gauges.items()
                if value and name not in lasting
            ]
            if not stopped:
                found += self._state(number, member)
            found += self._sockets(number, node, gauges["channels"], stopped)
            tasks = Counter(self.loop.pending(node))
            if member.core.lost:  # heartbeats go on trying
                for name in ("Peer._open", "Peer._attempt"):
                    tasks.pop(name, None)
            if stopped:  # a commit that it coordinated: see UNDECIDED
                for name in (*COMMITS, "Changes._committed.<locals>.in_turn"):
                    tasks.pop(name, None)
            if set(tasks) - BACKGROUND or tasks["Core._guarded"] != member.core.tasks:
                found.append(f"member {number}: tasks {dict(tasks)}")
            disk = member.core.world.disk
            assert isinstance(disk, SimulatedDisk)
            if disk.open_files:
                found.append(f"member {number}: {disk.open_files} spill files")
        for node, account in self.accounts:
            if node.alive and account.held:
                found.append(f"{node}: {account.held} bytes of a statement")
        return found

    def _sockets(self, number: int, node: Node, channels: int, stopped: bool) -> Iterator[str]:
        ends = self.network.open_at(node)
        outgoing = sum(end.outgoing for end in ends)
        if outgoing != (0 if stopped else channels):
            yield f"member {number}: {outgoing} outgoing connections, {channels} channels"
        for end in ends:
            if not end.other.node.alive:
                continue  # of a machine without power: closed after MEMBER_HEARTBEAT_TIMEOUT
            if stopped or end.other.gone or getattr(end.protocol, "closed", False):
                yield f"member {number}: {end.channel} connection with {end.other.node} is left"

    def _state(self, number: int, member: Member) -> Iterator[str]:
        queries = member.queries
        registry = queries._registry
        if len(registry):
            yield f"member {number}: query state: {registry}"
        if registry.early_size:
            yield f"member {number}: {registry.early_size} bytes of early messages"
        if queries._running or queries._initiated:
            yield f"member {number}: {queries.count} queries in the shell"
        reads = (member.statements.oldest_read(), queries.oldest_read())
        if any(read is not None for read in reads):
            yield f"member {number}: a read timestamp is kept"

    def settle(self, limit: float = 150.0) -> None:
        """Faults end, clients go, time passes: then nothing may be left."""
        self.network.rules.clear()
        self.network.slow = 0.0
        for client in self.clients:
            if not client.channel.closed:
                client.node.context.run(client.channel.close)  # type: ignore[attr-defined]
        deadline = self.loop.now + limit
        self.loop.rest(2.0)
        while self.held() and self.loop.now < deadline:
            self.loop.rest(2.0)
        gc.collect(0)
        self.violations += self.held() + self.loop.problems
        if not self._lossy():
            for query, count in self.cancels.items():
                if count > 2 * len(self.members):
                    self.violations.append(f"{count} cancel messages for query {query}")

    def _lossy(self) -> bool:
        return any("LOST" in text or "late" in text for _, text in self.entries)

    def stop(self) -> None:
        """Stop the members as an operator does; they must let everything go."""
        for member in self.live().values():
            self.loop.complete(member.stop(), member.node, 60.0)  # type: ignore[attr-defined]
        self.loop.rest(20.0)
        for number, node in self.nodes.items():
            if node.alive:
                if ends := self.network.open_at(node):
                    self.violations.append(f"member {number} stopped with {len(ends)} sockets")
                if tasks := self.loop.pending(node):
                    self.violations.append(f"member {number} stopped with tasks {tasks}")

    def close(self) -> None:
        """Nothing runs any more. What was to run on nodes that died is let go here, and not when
        the collector comes by in a later run."""
        self.loop.close()
        for member in self.made:
            for work in member.core._tasks.values():
                with suppress(BaseException):
                    member.node.context.run(work.close)  # type: ignore[attr-defined]

    def verdict(self) -> None:
        if self.violations:
            shown = "\n".join(dict.fromkeys(self.violations))
            raise Violation(f"seed {self.seed}:\n{shown}\n--- log\n{self.useful_log()}")


def pbody(sent: Sent) -> bytes:
    reader, left = FrameReader(), memoryview(sent.frame)
    while True:
        view = reader.room
        count = min(len(view), len(left))  # a frame may be larger than what is read at once
        view[:count] = left[:count]
        left = left[count:]
        if found := reader.received(count):
            return found[0].pbody


RUNS_PER_COLLECTION = 20
"""A run that is over leaves some 10 MB of objects in circles. The tests collect all generations so
seldom (``tests/conftest.py``) that hundreds of runs would be garbage at a time."""
_RUNS = itertools.count(1)


@contextmanager
def simulation(
    seed: int, members: int = 3, *, window: int = 0, short: int | None = None, **settings: Any
):
    """A cluster to be; ``window`` makes the windows of streams so small (bytes), ``short`` are the
    rows of a plan that neither waits for memory nor for a thread."""
    if next(_RUNS) % RUNS_PER_COLLECTION == 0:
        gc.collect()
    sim = Simulation(seed, members, **settings)
    original = MemoryAccount.__init__

    def counted(self: MemoryAccount, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        sim.accounts.append((CURRENT.get(), self))

    handler = Capture(sim)
    logger = logging.getLogger("remuda")
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    with ExitStack() as patches:
        patches.callback(setattr, logger, "propagate", propagate)
        patches.callback(logger.removeHandler, handler)
        patch = mock.patch.object
        patches.enter_context(patch(MemoryAccount, "__init__", counted))
        patches.enter_context(patch(upkeep, "INTERVAL", 0.5))
        patches.enter_context(patch(registry_module, "CANCELLED_SURROGATE_TTL", 20.0))
        patches.enter_context(patch(rooms_module, "Pool", SimulatedPool))
        if short is not None:
            patches.enter_context(patch(short_plans_module, "INLINE_ROWS", short))
        if window:
            patches.enter_context(patch(window_module, "WINDOW_MIN", window))
            patches.enter_context(patch(window_module, "STREAM_WINDOW_SIZE", window))
        try:
            yield sim
        except RemudaError as error:
            raise Violation(f"seed {seed}: {error!r}\n--- log\n{sim.useful_log()}") from error
        finally:
            sim.close()


class Storm(Protocol):
    """A simulation with a scenario of its own, which ``run`` plays."""

    sim: Simulation

    def run(self, seed: int) -> None: ...


S = TypeVar("S", bound=Storm)


@contextmanager
def explained(name: str, storm: Any) -> Iterator[None]:
    """What fails inside becomes a Violation with ``name`` and what is useful of the log."""
    try:
        yield
    except (AssertionError, RemudaError) as problem:
        if "--- log" in str(problem):
            raise
        told = problem if isinstance(problem, Violation) else repr(problem)
        raise Violation(f"{name}: {told}\n--- log\n{storm.sim.useful_log()}") from problem


def played(seed: int, storm: S) -> S:
    """Play the scenario of a seed. Raises Violation with the seed and what is useful of the log."""
    with explained(f"seed {seed}", storm):
        storm.run(seed)
    return storm
