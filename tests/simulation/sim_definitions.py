"""Definitions through every member while coordinators of the catalog are lost between two messages
of a change, members do not reach each other for a moment, stand still, join and leave.

Each definition makes one object of a new name, and nobody drops any. Whatever happened,

* an object whose client was told that it is there is in every catalog of that version or a later
  one, on every member;
* no two members ever install different catalogs under one version;
* in the end, all members have the same catalog.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from sim_cluster import FAST, Simulation, pbody, simulation
from sim_network import LOST, Fate, Sent

from remuda.catalog.catalog import Catalog
from remuda.errors import DuplicateMap, DuplicateObject, DuplicateSchema, RemudaError
from remuda.rpc.frame import REQUEST
from remuda.rpc.messages import control_pb2
from remuda.snapshot.catalog import encode_catalog

BEAT = float(FAST["heartbeat_timeout"])
REPAIR = 3 * BEAT
"""Seconds after the last fault within which all have the same catalog."""
KINDS = ("schema", "view", "table", "column", "type")


def definition(kind: str, name: str) -> str:
    return {
        "schema": f"CREATE SCHEMA {name}",
        "view": f"CREATE VIEW {name} AS SELECT 1 AS one",
        "table": f"CREATE TABLE {name} (id INT PRIMARY KEY)",
        "column": f"ALTER TABLE base ADD COLUMN {name} INT",
        "type": f"CREATE TYPE {name} AS ENUM ('a')",
    }[kind]


def names_in(catalog: Catalog) -> frozenset[str]:
    base = catalog.find("base")
    return frozenset(
        [
            *catalog.names(),
            *catalog.view_names(),
            *catalog.namespace_names,
            *(enum.local for enum in catalog.types),
            *(column.name for column in (base.columns if base else ())),
        ]
    )


class Definitions:
    """What clients were told, and which catalogs members had."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.installed: dict[int, tuple[bytes, int]] = {}
        """By version: the catalog, and the member that had it first."""
        self.names: dict[int, frozenset[str]] = {}
        self.told: dict[str, int] = {}
        """Names of objects, with a version that had them when their client was told."""
        self.ends: Counter[str] = Counter()
        self._watched: set[int] = set()
        self._count = 0

    def watch(self) -> None:
        """Whatever a member installs from now on is looked at."""
        for number, member in self.sim.members.items():
            if number not in self._watched:
                self._watched.add(number)
                member.core.listeners.installed.add(partial(self._installed, number))

    def _installed(self, number: int) -> None:
        catalog = self.sim.members[number].core.catalog
        text = encode_catalog(catalog).SerializeToString(deterministic=True)
        known, first = self.installed.setdefault(catalog.version, (text, number))
        self.names.setdefault(catalog.version, names_in(catalog))
        if known != text:
            self.sim.violations.append(
                f"members {first} and {number} have had different catalogs of version"
                f" {catalog.version}"
            )
        lacking = self._lacking(catalog)
        if lacking:
            self.sim.violations.append(
                f"member {number} has version {catalog.version} without {lacking}"
            )

    def _lacking(self, catalog: Catalog) -> list[str]:
        there = names_in(catalog)
        return [n for n, at in self.told.items() if at <= catalog.version and n not in there]

    async def define(self, client: Any, kind: str) -> bool:
        """Whether the client was told that it is done."""
        self._count += 1
        name = f"{kind[0]}{self._count}"
        error: RemudaError | None = None
        try:
            await client.run(definition(kind, name))
        except RemudaError as found:
            error = found
        self.sim.note(f"{name} by {client.number}: {error!r}")
        self.ends[type(error).__name__] += 1
        if isinstance(error, (DuplicateMap, DuplicateSchema, DuplicateObject)):
            self.sim.violations.append(f"the first definition of {name} got {error!r}")
        if error is None:
            catalog = self.sim.members[client.number].core.catalog
            self.told[name] = catalog.version
            if name not in names_in(catalog):
                self.sim.violations.append(f"{name} is told, and not there")
        return error is None

    def judge(self) -> None:
        """At the end, when all can reach each other."""
        sim = self.sim
        catalogs = {n: member.core.catalog for n, member in sim.live().items()}
        texts = {encode_catalog(c).SerializeToString(deterministic=True) for c in catalogs.values()}
        if len(texts) != 1:
            versions = {n: catalog.version for n, catalog in catalogs.items()}
            sim.violations.append(f"the members have different catalogs: versions {versions}")
        for number, catalog in catalogs.items():
            if lacking := self._lacking(catalog):
                sim.violations.append(f"member {number} lacks {lacking} in the end")


def of_catalog(sent: Sent) -> bool:
    return sent.name.startswith("CATALOG_")


def kind_of(sent: Sent) -> str:
    """Of a request about the catalog."""
    if sent.mode != REQUEST or not of_catalog(sent):
        return ""
    if sent.name == "CATALOG_INSTALL":
        return "install"
    if sent.name != "CATALOG_VOTE":
        return ""
    asked = control_pb2.CatalogVote.FromString(pbody(sent))
    return control_pb2.CatalogVote.Kind.Name(asked.kind).lower()


class StormOfDefinitions:
    """``size`` members; of three only one is ever lost."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"{seed}/definitions")
        self.size = self.random.choice((3, 5, 5))
        self.working = True
        self.crashes = 0
        self.done: Definitions

    def run(self) -> Definitions:
        with simulation(self.seed, self.size, backups=1) as sim:
            self.sim = sim
            sim.form()
            self.done = Definitions(sim)
            self.done.watch()
            sim.complete(self._all())
            sim.settle()
            self.done.judge()
            sim.verdict()
        return self.done

    async def _all(self) -> None:
        sim = self.sim
        first = await sim.client(1)
        await first.run("CREATE TABLE base (id INT PRIMARY KEY)")
        users = [asyncio.ensure_future(self._user(number)) for number in list(sim.members)]
        for _ in range(self.random.choice((2, 3, 4))):
            await asyncio.sleep(self.random.uniform(0.2, 2.5))
            await self._fault()
            self.done.watch()
        sim.network.rules.clear()
        await asyncio.sleep(REPAIR)
        self.working = False
        await asyncio.wait(users)
        await asyncio.sleep(REPAIR)

    async def _user(self, number: int) -> None:
        chance = Random(f"{self.seed}/user {number}")
        client: Any = None
        while self.working and self.sim.nodes[number].alive:
            await asyncio.sleep(chance.uniform(0.0, 1.6))
            if client is None or client.channel.closed:
                client = None
                with suppress(RemudaError, OSError, TimeoutError):
                    client = await asyncio.wait_for(self.sim.client(number), 5.0)
            if client is not None:
                await self.done.define(client, chance.choice(KINDS))

    # ---- faults ----

    async def _fault(self) -> None:
        chance, live = self.random, sorted(self.sim.live())
        kinds = ["reset", "freeze", "late", "lost", "rivals", "rivals"]
        if self.crashes < (1 if self.size == 3 else 2) and len(live) > 2:
            kinds += ["crash", "crash", "crash", "crash", "split"]
        if len(live) < 6:
            kinds.append("join")
        kind = chance.choice(kinds)
        self.sim.note(f"fault: {kind}")
        await getattr(self, f"_{kind}")(live)

    async def _reset(self, live: list[int]) -> None:
        one, other = self.random.sample(live, 2)
        seconds = self.random.uniform(0.3, 2.0)
        self.sim.note(f"members {one} and {other} do not reach each other for {seconds:.2f} s")
        self.sim.network.reset(self.sim.nodes[one], [self.sim.nodes[other]], seconds)

    async def _freeze(self, live: list[int]) -> None:
        node = self.sim.nodes[self.random.choice(live)]
        node.frozen = True
        await asyncio.sleep(self.random.uniform(0.1, 0.9) * BEAT)
        self.sim.loop.thaw(node)

    async def _late(self, _live: list[int]) -> None:
        """Some messages about the catalog take seconds."""
        chance = self.random

        def rule(sent: Sent) -> Fate | None:
            if of_catalog(sent) and chance.random() < 0.3:
                return Fate((chance.uniform(0.1, 2.0),))
            return None

        self.sim.network.rules.append(rule)

    async def _lost(self, _live: list[int]) -> None:
        """The connections of some messages about the catalog break with them."""
        sim, chance = self.sim, self.random

        def rule(sent: Sent) -> Fate | None:
            if not of_catalog(sent) or chance.random() > 0.15:
                return None
            ends = {str(node): node for node in sim.nodes.values()}
            one, other = ends.get(sent.sender), ends.get(sent.receiver)
            if one is not None and other is not None:
                sim.loop.call_soon(sim.network.break_connections, one, other, "control")
            return LOST

        sim.network.rules.append(rule)

    async def _crash(self, live: list[int]) -> None:
        """The coordinator is lost in the middle of a change: its last messages of one kind reach
        only a few members, and the next coordinator may not reach these."""
        sim, chance, coordinator = self.sim, self.random, live[0]
        node, others = sim.nodes[coordinator], live[1:]
        kind = chance.choice(("promise", "accept", "accept", "install", "install"))
        few = chance.sample(others, chance.randint(1, max(1, len(others) // 2)))
        reached = {str(sim.nodes[number]) for number in few}
        gone = asyncio.Event()
        sim.note(f"the last {kind} of member {coordinator} reaches {few}")

        def rule(sent: Sent) -> Fate | None:
            if sent.sender != str(node):
                return None
            if gone.is_set() or kind_of(sent) == kind:
                if not gone.is_set():
                    gone.set()
                    sim.loop.call_later(0.004, partial(sim.crash, coordinator))
                return None if sent.receiver in reached and kind_of(sent) == kind else LOST
            return None

        sim.network.rules.insert(0, rule)
        with suppress(TimeoutError):
            await asyncio.wait_for(gone.wait(), 3.0)
            await asyncio.sleep(0.005)
        sim.network.rules.remove(rule)
        if not node.alive:
            self.crashes += 1
            if chance.random() < 0.7 and few[0] != others[0]:
                sim.network.reset(sim.nodes[others[0]], [sim.nodes[n] for n in few], 1.5)

    async def _rivals(self, live: list[int]) -> None:
        """The two lowest members do not reach each other, so both coordinate, and what they and the
        others say about the catalog is late."""
        sim, chance = self.sim, self.random

        def rule(sent: Sent) -> Fate | None:
            late = kind_of(sent) in ("promise", "accept") and chance.random() < 0.6
            return Fate((chance.uniform(0.02, 0.6),)) if late else None

        sim.network.rules.append(rule)
        sim.network.reset(sim.nodes[live[0]], [sim.nodes[live[1]]], chance.uniform(0.5, 2.0))

    async def _split(self, live: list[int]) -> None:
        """The coordinator, and perhaps another member, are alone for a while."""
        some = {live[0], self.random.choice(live)} if len(live) > 3 else {live[0]}
        self.sim.split(some, self.random.uniform(0.3, 1.5) * BEAT)

    async def _join(self, live: list[int]) -> None:
        with suppress(RemudaError):
            await self.sim.join(live[-1])
