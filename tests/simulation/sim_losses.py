"""One message between members is lost, of any kind, while everything that members do goes on: puts,
transactions, statements, bulk writes, definitions, snapshots with cuts, a join and a leave.

A run without a loss counts the frames of each kind (``Kinds`` finds them: nobody lists them). A run
with the same seed then loses one of them, the request or its answer, in one of two ways. DROP: the
frame is gone and its connection lives, as if the receiver had forgotten it. BREAK: its connection
is reset, as on a real network, and what was behind it is gone too. Afterwards every request must
have ended soon, and everything must work and be complete: partitions move, nothing is held.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
import sim_world
from sim_cluster import Violation, explained, pbody, simulation
from sim_jobs import Job
from sim_log_disk import LogDisk
from sim_losses_hands import LOCK_TIMEOUT, Hands
from sim_network import LOST, MODES, Fate, Sent
from sim_snapshots import SharedStore
from sim_transaction_works import Bank, Counters, Elements, Lists, Told, Work
from sim_users import connected, running, users_of

from remuda.cluster import movement
from remuda.errors import RemudaError, TransientError
from remuda.member.sessions import session as transaction_session
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.rpc.messages import control_pb2, user_pb2

MEMBERS = 3
PATIENCE = 15.0
"""Seconds within which every request has an answer, and within which all is repaired: five
heartbeat timeouts of the simulation."""
UNANSWERED = 65.0
"""The same where an answer never comes over a connection that lives, which TCP does not do: the
member that asked has a timeout of its own."""
LEAVES = 2
"""The member that leaves."""
ROWS = 40
RESTORED = ("t", "bulk", "r", "counters")
"""The maps of a snapshot."""
PAUSE = 0.4
"""Seconds that a client rests between two requests, at most."""


REPEATED = ("MOVES_PAUSE", "COMMIT_", "KEY_LOCK", "KEY_UNLOCK", "JOIN", "MEET")
"""Requests that are sent again until they are answered."""
SHORT = ("END_WORK", "DRAIN", "ACTIVITY", "KEY_LOCK ask")
"""Requests of people, who do not wait long for an answer."""


class Loss(Enum):
    DROP = "drop"
    BREAK = "break"


class Kinds:
    """Names frames by what they carry: the type of the message, what an envelope holds, and whether
    it is the request or its answer."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str, int, bool], str] = {}

    def of(self, sent: Sent) -> list[str]:
        if MODES[sent.mode] in ("ping", "pong"):
            return [MODES[sent.mode]]
        data = sent.name in DATA_ONLY
        if MODES[sent.mode] == "request":
            names = _content(sent)
            if sent.identifier:
                self._asked[sent.sender, sent.receiver, sent.identifier, data] = names[0]
            return names
        asked = self._asked.get((sent.receiver, sent.sender, sent.identifier, data), sent.name)
        return [f"{asked}, answer" if MODES[sent.mode] == "response" else f"{asked}, failure"]


DATA_ONLY = frozenset({"REQ_RECORD_BATCH", "DATA_ACK_WITH_CREDIT"})


def _content(sent: Sent) -> list[str]:
    if sent.name == "PARTS":
        parts = control_pb2.PartMessages.FromString(pbody(sent)).messages
        kinds = sorted({control_pb2.PartMessage.Kind.Name(part.kind) for part in parts})
        return [f"PARTS {kind}" for kind in kinds] or ["PARTS without parts"]
    if sent.name == "AGREE":
        kind = control_pb2.Agreement.FromString(pbody(sent)).kind
        return [f"AGREE {control_pb2.Agreement.Kind.Name(kind)}"]
    if sent.name == "FORWARD":
        kind = control_pb2.Forward.FromString(pbody(sent)).rpc_type
        return [f"FORWARD {user_pb2.RpcType.Name(kind)}"]
    if sent.name == "MOVES_PAUSE":
        over = control_pb2.MovesPause.FromString(pbody(sent)).over
        return ["MOVES_PAUSE over" if over else "MOVES_PAUSE"]
    if sent.name == "KEY_LOCK" and control_pb2.KeyLock.FromString(pbody(sent)).ask:
        return ["KEY_LOCK ask"]
    return [sent.name]


class Theme(Enum):
    """What is under way. All of it at once takes ten times as long as one."""

    TRANSACTIONS = "transactions"
    WRITES = "writes"
    STATEMENTS = "statements"
    SNAPSHOTS = "snapshots"
    HANDS = "hands"


@dataclass
class LossRun:
    """``lost``: of each kind the n-th frame from the moment when everything is under way. A run
    without any only counts."""

    seed: int
    theme: Theme
    lost: Mapping[str, tuple[int, Loss]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    longest: Counter[str] = field(default_factory=Counter)
    """Seconds that a request of each name took, at most."""
    happened: list[str] = field(default_factory=list)
    """The kinds of which a frame was lost: after the first loss a run goes its own way."""

    patience: float = PATIENCE

    def __post_init__(self) -> None:
        self.chance = Random(f"{self.seed}/losses")
        self.working = True
        self.numbers = 0
        self.hands: Hands | None = None

    # ---- the run ----

    def run(self) -> LossRun:
        store = SharedStore(Random(f"{self.seed}/store"))
        with ExitStack() as patches:
            patch = mock.patch.object
            patches.enter_context(patch(SnapshotStorage, "_store", lambda _self: store))
            patches.enter_context(patch(sim_world, "SimulatedDisk", LogDisk))
            patches.enter_context(patch(transaction_session, "LOCK_TIMEOUT", LOCK_TIMEOUT))
            settings: dict[str, Any] = {"backups": 1}
            if self.theme is Theme.SNAPSHOTS:
                settings |= {"data_dir": "/data", "snapshot_store": "shared"}
            if self.theme in {Theme.STATEMENTS, Theme.HANDS}:
                settings |= {"window": 3000}
            with simulation(self.seed, MEMBERS, **settings) as sim, users_of(sim):
                self.sim = sim
                sim.note(f"lost: {self.lost}")
                sim.form()
                sim.complete(self.all())
                sim.settle(PATIENCE)
                sim.verdict()
        return self

    async def all(self) -> None:
        sim = self.sim
        told = Told("serializable", Random(f"{self.seed}/works"), sim=sim)
        locking = Told("pessimistic repeatable read", Random(f"{self.seed}/locking"), sim=sim)
        makers: tuple[Callable[[Any], Awaitable[None]], ...]
        match self.theme:
            case Theme.TRANSACTIONS:
                self.works: list[Work] = [Lists(told), Elements(told), Bank(locking)]
                self.works[-1].accounts = 3  # type: ignore[attr-defined]
                makers = (self.working_on,) * 3
            case Theme.WRITES:
                self.works = [Counters(told)]
                makers = (self.working_on, self.bulk, self.jobs)
            case Theme.STATEMENTS:
                self.works = []
                makers = (self.statements, self.definitions)
            case Theme.SNAPSHOTS:
                self.works = [Counters(told)]
                makers = (self.working_on, self.snapshots)
            case Theme.HANDS:
                self.works = []
                self.hands = Hands(sim, self.chance, LEAVES)
                makers = (self.cancels, self.waits, self.meets)
        self.clients = [await connected(sim, f"u{number}") for number in range(len(makers))]
        first = self.clients[0]
        for work in self.works:
            await asyncio.shield(running(sim, first, work.prepare(first)))
        for text in (
            "CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, s TEXT)",
            f"INSERT INTO t SELECT i, i % 7, 'x' FROM generate_series(1, {ROWS}) AS g(i)",
            "CREATE TABLE bulk (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)",
            "CREATE TABLE r (id BIGINT PRIMARY KEY, v BIGINT) WITH (replicated = true)",
        ):
            await self._inside(first, "prepare", lambda text=text: first.sql(text))
        if self.hands is not None:
            await asyncio.shield(running(sim, first, self.hands.prepare(first)))
        self._watch()
        tasks = [
            running(sim, client, self.busy(client, make))
            for client, make in zip(self.clients, makers, strict=True)
        ]
        await asyncio.sleep(0.3)
        await self._bounded("join", self.joined)
        await asyncio.sleep(0.3)
        await self.repaired("after the join")
        await self._bounded("leave", self.left)
        await asyncio.sleep(0.3)
        self.working = False
        await asyncio.gather(*tasks)
        await self.repaired("in the end")
        # Whatever was lost: everything can be done, once more.
        sim.network.rules.clear()
        for client, make in zip(self.clients, makers, strict=True):
            await asyncio.shield(running(sim, client, self.once(client, make)))
        await self._bounded("a second join", self.joined)
        await self.repaired("after the second join")
        for work in self.works:
            await self._inside(first, work.name, lambda work=work: work.finish(first))
            sim.violations += [f"{work.name}: {text}" for text in work.judge()]
        if self.hands is not None:
            await self.hands.close()
        for client in self.clients:
            await client.close()

    # ---- the loss ----

    def _watch(self) -> None:
        kinds = Kinds()

        def rule(sent: Sent) -> Fate | None:
            for name in kinds.of(sent):
                self.counts[name] += 1
                number, loss = self.lost.get(name, (0, Loss.DROP))
                if number == self.counts[name]:
                    self.happened.append(name)
                    return self._lose(sent, name, loss)
            return None

        self.sim.network.rules.append(rule)

    def _lose(self, sent: Sent, name: str, loss: Loss) -> Fate:
        sim = self.sim
        sim.note(f"LOST ({loss.value}): {sent}")
        if loss is Loss.DROP and sent.identifier and not name.startswith((*REPEATED, *SHORT)):
            self.patience = UNANSWERED
        if loss is Loss.BREAK:
            ends = {node.name: node for node in self._nodes()}

            def reset() -> None:
                for one, other in ((sent.sender, sent.receiver), (sent.receiver, sent.sender)):
                    kind = "data" if sent.name in DATA_ONLY else "control"
                    sim.network.break_connections(ends[one], ends[other], kind)

            sim.loop.call_soon(reset, context=sim.director.context)
        return LOST

    def _nodes(self) -> Iterator[Any]:
        return (member.node for member in self.sim.made)  # type: ignore[attr-defined]

    # ---- work ----

    async def _bounded(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """An answer within the bound, or an error that may be."""
        began = self.sim.loop.now
        try:
            async with asyncio.timeout(2 * UNANSWERED):
                return await work()
        except TimeoutError:
            self.sim.violations.append(f"{name}: no answer")
        except TransientError as error:
            self.sim.note(f"{name}: {error!r}")
            self.ends[f"{name} {type(error).__name__}"] += 1
        except RemudaError as error:
            self.sim.violations.append(f"{name}: {error!r}")
        finally:
            took = self.sim.loop.now - began
            self.longest[name] = max(self.longest[name], took)
            if took > self.patience:
                self.sim.violations.append(f"{name}: took {took:.1f} s")
        return None

    async def _inside(self, client: Any, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        return await asyncio.shield(running(self.sim, client, self._bounded(name, work)))

    async def joined(self) -> None:
        await self.sim.join(min(self.sim.live()))

    async def left(self) -> None:
        if self.hands is not None:
            await self.hands.drain(self.clients[0])
        else:
            await self.sim.leave(LEAVES)

    async def busy(self, client: Any, make: Callable[[Any], Awaitable[None]]) -> None:
        while self.working:
            await make(client)
            await asyncio.sleep(self.chance.uniform(0.0, PAUSE))

    async def once(self, client: Any, make: Callable[[Any], Awaitable[None]]) -> None:
        before = self.ends.copy()
        await make(client)
        if self.ends != before:
            self.sim.violations.append(f"{make.__name__} after the loss: {self.ends - before}")

    async def working_on(self, client: Any) -> None:
        for work in self.works:
            await self._bounded(work.name, lambda work=work: work.step(client, self.chance))

    async def statements(self, client: Any) -> None:
        async def ask() -> None:
            cursor = await client.sql("SELECT a.id, b.id FROM t a JOIN t b ON a.g = b.g")
            found = [tuple(row) async for row in cursor]
            if len(found) != len(set(found)) or len(found) != PAIRS:
                self.sim.violations.append(f"a join gave {len(found)} rows")

        await self._bounded("statement", ask)
        await self._bounded("sys", lambda: client.sql("SELECT count(*) FROM sys.transactions"))

    async def cancels(self, client: Any) -> None:
        assert self.hands is not None
        for act in (self.hands.cancel, self.hands.look):
            await self._bounded(act.__name__, lambda act=act: act(client))

    async def waits(self, client: Any) -> None:
        assert self.hands is not None
        await self._bounded("wait", lambda: self.hands.wait(client))

    async def meets(self, client: Any) -> None:
        assert self.hands is not None
        await self._bounded("meet", lambda: self.hands.meet(client))

    async def bulk(self, client: Any) -> None:
        self.numbers += 1
        first = 100 * self.numbers
        text = f"INSERT INTO bulk SELECT {first} + i, {first} FROM generate_series(0, 39) AS g(i)"
        await self._bounded("bulk", lambda: client.sql(text))
        text = f"INSERT INTO r SELECT {first} + i, {first} FROM generate_series(0, 3) AS g(i)"
        await self._bounded("replicated", lambda: client.sql(text))

    async def jobs(self, client: Any) -> None:
        self.numbers += 1
        first = 100 * self.numbers

        async def write() -> None:
            number = min(self.sim.live())
            raw = await self.sim.client(number, f"j{first}")
            job = Job(SimpleNamespace(sim=self.sim, chance=self.chance), f"j{first}", raw, "bulk")  # type: ignore[arg-type]
            await job.begin()
            try:
                task = await job.task("0:0", list(range(first, first + 20)), first)
                job.check(await job.commit([task]), 20)
            except BaseException:
                with suppress(RemudaError):
                    await job.abort()
                raise
            finally:
                raw.channel.close()

        await self._bounded("job", write)

    async def definitions(self, client: Any) -> None:
        self.numbers += 1
        name = f"d{self.numbers}"
        await asyncio.sleep(PAUSE)
        for text in (
            f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT)",
            f"CREATE INDEX ON {name} (v)",
            f"ANALYZE {name}",
            f"DROP TABLE IF EXISTS {name}",
        ):
            await self._bounded(text.split()[0], lambda text=text: client.sql(text))

    async def snapshots(self, client: Any) -> None:
        self.numbers += 1
        number = self.numbers
        for text in (
            f"CREATE SNAPSHOT s{number}",
            f"CREATE SNAPSHOT s{number} INCREMENT",
            f"RESTORE SNAPSHOT s{number} PREFIX 'back{number}_'",
            # Thousands of maps would fill the members.
            *(f"DROP TABLE IF EXISTS back{number}_{name}" for name in RESTORED),
        ):
            await self._bounded(text.split()[0], lambda text=text: client.sql(text))

    # ---- afterwards ----

    async def repaired(self, when: str) -> None:
        began = self.sim.loop.now
        while not self._placed():
            if self.sim.loop.now > began + self.patience:
                states = [
                    f"{n}: view {m.core.view.number}, holds {m.core.readiness.holds}, "
                    f"{m.giving.progress()}, {m.gauges()}"
                    for n, m in self.sim.live().items()
                ]
                raise Violation(f"not repaired {when}:\n" + "\n".join(states))
            await asyncio.sleep(0.1)
        self.longest[f"repaired {when}"] = self.sim.loop.now - began

    def _placed(self) -> bool:
        live = self.sim.live()
        view = max((m.core.view for m in live.values()), key=lambda view: view.number)
        return (
            all(m.core.view.number == view.number and m.core.ready for m in live.values())
            and view.by_number.keys() == live.keys()
            and not any(m.giving.gauges()["copies_outgoing"] for m in live.values())
            and movement.progress(view, 2)["partitions_to_place"] == 0
        )


PAIRS = sum(1 for a in range(1, ROWS + 1) for b in range(1, ROWS + 1) if a % 7 == b % 7)


def run_loss(
    seed: int, theme: Theme, lost: Mapping[str, tuple[int, Loss]] | None = None
) -> LossRun:
    run = LossRun(seed, theme, lost or {})
    with explained(f"seed {seed}, {run.lost}", run):
        run.run()
    return run
