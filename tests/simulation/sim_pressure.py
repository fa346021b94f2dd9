"""Storms with too little of something: memory, disk, turns, trust.

Several instances of each fragment, operators that spill into files of a disk that is full now and
then, queries that wait for memory while members go, members and clients that show who they are.
"""

from __future__ import annotations

import asyncio
import functools
from contextlib import ExitStack
from pathlib import Path
from random import Random
from unittest import mock

from sim_client import Client
from sim_cluster import Simulation, pbody
from sim_network import Sent
from sim_queries import Question, Rows, Tables, same
from sim_storm import Storm, run_storm

import remuda.member.base.passwords as passwords_module
from remuda.catalog.passwords import ITERATIONS_MIN, hashed
from remuda.catalog.users import ALL, Role, Users, encode_users
from remuda.errors import (
    AuthenticationFailed,
    DiskFull,
    OutOfMemory,
    QueryTimeout,
    RemudaError,
    TransientError,
)
from remuda.rpc.messages import control_pb2

KINDS = ("instances", "spill", "full disk", "admission", "secured", "all")
USER, PASSWORD = "ann", "correct horse"
SECRET, USERS = Path("/secret"), Path("/users.json")


@functools.cache
def users_file() -> bytes:
    user = Users().added(USER, hashed(PASSWORD, bytes(16), ITERATIONS_MIN), replace_it=False)
    return encode_users(user.granted(USER, Role.ADMIN, ALL))


class PressureTables(Tables):
    """More rows, and questions whose operators hold them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        chance = self.random
        count = chance.choice((40, 150, 300))
        texts = [f"{n:03}" + "x" * chance.randint(0, 40) for n in range(count)]
        self.t = [
            (n, chance.randint(0, 5), chance.randint(-9, 9), text) for n, text in enumerate(texts)
        ]

    def question(self) -> Question:
        if self.random.random() < 0.5:
            return super().question()
        return self.random.choice((self.distinct, self.window, self.texts, self.self_join,
                                   self.outside, self.stored, self.nested))()  # fmt: skip

    def distinct(self) -> Question:
        rows = [(len({s[-5:] for *_, s in self.t}), len({v for _, _, v, _ in self.t}))]
        text = "SELECT count(DISTINCT right(s, 5)), count(DISTINCT v) FROM t"
        return Question(text, same(rows))

    def window(self) -> Question:
        rows: Rows = []
        for g in {g for _, g, _, _ in self.t}:
            total = 0
            for n, v in [(n, v) for n, h, v, _ in self.t if h == g]:
                total += v
                rows.append((n, total))
        return Question("SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) FROM t", same(rows))

    def texts(self) -> Question:
        rows = sorted(((s, n) for n, _, _, s in self.t), reverse=True)
        return Question("SELECT s, id FROM t ORDER BY s DESC", lambda got: got == rows)

    def self_join(self) -> Question:
        rows = [(n, s) for n, _, _, s in self.t]
        text = "SELECT a.id, b.s FROM t a JOIN t b ON a.s = b.s AND a.v = b.v"
        return Question(text, same(rows))

    def outside(self) -> Question:
        rows = [(n, s) for n, g, _, s in self.t if g % 2]
        text = "SELECT id, s FROM t EXCEPT SELECT id, s FROM t WHERE g % 2 = 0"
        return Question(text, same(rows))

    def stored(self) -> Question:
        rows = [(len(self.t), sum(n for n, *_ in self.t))]
        text = (
            "WITH c AS MATERIALIZED (SELECT id, s FROM t) "
            "SELECT count(*), sum(x.id) FROM c x JOIN c y ON x.s = y.s"
        )
        return Question(text, same(rows))

    def nested(self) -> Question:
        rows = [(sum(n > m for n, *_ in self.t for m, *_ in self.u),)]
        return Question("SELECT count(*) FROM t, u WHERE t.id > u.id", same(rows))


class PressureStorm(Storm):
    def __init__(self, seed: int, kind: str = "") -> None:
        super().__init__(seed)
        chance = self.chance = Random(f"{seed}/pressure")
        self.kind = kind or chance.choice(KINDS)
        self.tables = PressureTables(Random(f"{seed}/tables"))
        self.settings["short"] = chance.choice((0, 0, 100))
        self.spilled = self.waited = self.multiplied = self.refused = 0
        """What the storm has seen: spill files, queries that waited, queries with several instances
        of a fragment, wrong passwords."""
        # Many instances look at their clocks often: heartbeats must come in time all the same.
        self.works = (0.0, 0.0001)
        self.patiences = (0.02, 0.1)  # there may be 1,500 pages
        if self.under("instances"):
            self.settings |= {"workers": chance.choice((2, 3)), "parallel_rows": 1}
            self.settings["parallel_scans"] = chance.choice(("chunks", "partitions"))
        if self.under("spill", "full disk"):
            self.settings["statement_memory"] = chance.choice((12_000, 20_000, 60_000))
        if self.under("admission"):
            self.statements = chance.randint(8, 20)
            self.span = 0.05
            self.settings["member_memory"] = chance.choice((12_000, 20_000, 40_000))
            self.settings["admission_timeout"] = chance.choice((0.05, 0.5, 5.0))
            self.settings["short"] = 0
        if self.under("secured"):
            self.settings |= {"secret_file": str(SECRET), "users_file": str(USERS)}

    def under(self, *kinds: str) -> bool:
        return self.kind in (*kinds, "all")

    def run(self, sim: Simulation) -> None:
        if self.under("secured"):
            sim.files = {SECRET: b"a secret of the cluster", USERS: users_file()}
            sim.user = (USER, PASSWORD)
        with ExitStack() as patches:
            # What nobody's password is compared with is the same on every member.
            cached = functools.cache(passwords_module.hashed)
            patches.enter_context(mock.patch.object(passwords_module, "hashed", cached))
            sim.note(f"pressure: {self.kind}")
            super().run(sim)
        self.spilled = sum(
            len(member.core.world.disk.scratches)  # type: ignore[attr-defined]
            for member in sim.members.values()
        )

    def _arrange_faults(self) -> None:
        super()._arrange_faults()
        sim, chance = self.sim, self.chance
        sim.network.watchers.append(self._look_at_start)
        if self.under("full disk"):
            self._fill(chance.choice((0.01, 0.1, 1.0)))
        if self.under("admission"):
            sim.loop.create_task(self._look_at_queues())
        if self.under("secured"):
            for number in range(chance.randint(1, 3)):
                pause = chance.uniform(0, 2.0)
                sim.loop.create_task(self.after(pause, self.intrude(f"i{number}")))

    def _end_faults(self) -> None:
        super()._end_faults()
        self._fill(0.0)

    def _fill(self, likely: float) -> None:
        for member in self.sim.members.values():
            member.core.world.disk.full = likely  # type: ignore[attr-defined]

    def _look_at_start(self, sent: Sent) -> None:
        if sent.name == "QUERY_START":
            message = control_pb2.QueryStart.FromString(pbody(sent))
            self.multiplied += any(site.instances > 1 for site in message.sites)

    async def _look_at_queues(self) -> None:
        for _ in range(1500):
            await asyncio.sleep(0.002)
            waiting = sum(m.gauges()["queued"] for m in self.sim.live().values())
            self.waited = max(self.waited, waiting)

    async def intrude(self, name: str) -> None:
        sim = self.sim
        member = self.chance.choice(sorted(sim.members))
        user = self.chance.choice((USER, "nobody"))
        try:
            async with asyncio.timeout(20.0):
                await sim.client(member, name, (user, "wrong"))
        except AuthenticationFailed:
            self.refused += 1
        except (TransientError, TimeoutError) as error:
            if self.faults == "calm":
                sim.violations.append(f"{name}: {error!r}")
        else:
            sim.violations.append(f"{name} came in with a wrong password")

    def _excused(self, client: Client, manner: str, error: RemudaError) -> bool:
        if isinstance(error, OutOfMemory):
            return self.under("spill", "full disk", "admission") and bool(error.hint)
        if isinstance(error, DiskFull):
            return self.under("full disk")
        if isinstance(error, QueryTimeout) and manner == "timeout":
            return True
        return super()._excused(client, manner, error)


def run_seed(seed: int, kind: str = "") -> tuple[str, PressureStorm]:
    storm = PressureStorm(seed, kind)
    return run_storm(seed, storm), storm
