"""Cuts at the moments that count: each schedule is the one under which a rule of cuts decides, and
without the rule the restored cut is wrong. (Storms meet them only now and then.)"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import sim_world
from sim_cluster import Simulation, simulation
from sim_log_disk import LogDisk
from sim_loop import Node
from sim_network import Fate, Sent
from sim_snapshots import SharedStore
from sim_users import running, users_of

import remuda.aio
from remuda.datatypes.timestamp import FOREVER
from remuda.member.base.core import Core
from remuda.member.snapshots.cut_watch import CutWatch
from remuda.member.snapshots.cuts import Cuts
from remuda.member.snapshots.making import SnapshotMaking
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.member.state.routing import Router
from remuda.rpc.messages import control_pb2
from remuda.storage.log.replay import Replay, ToCut
from remuda.storage.maps.map_store import MapStore

LATE = 0.4
AHEAD = 0.3
"""Seconds."""


class Stage:
    """Three members, and an account with 100 on each of them."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.keys: dict[int, int] = {}
        self.clients: dict[int, Any] = {}

    async def load(self) -> None:
        for number in self.sim.members:
            self.clients[number] = await self.sim.client(number)
        run = self.clients[1].run
        await run("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)")
        core = self.sim.members[1].core
        [schema] = core.catalog.maps
        partition = Router(schema).key_partition
        for key in range(1000):
            self.keys.setdefault(core.view.owners[partition((key,))], key)
        rows = ", ".join(f"({key}, 100)" for key in self.keys.values())
        await run(f"INSERT INTO t VALUES {rows}")
        await run("CREATE SNAPSHOT s")

    def late(self, number: int, name: str, *, after: int = 0) -> asyncio.Event:
        """Requests of this name to a member take their time, but for the first ones; tells when
        one does."""
        node, left = str(self.sim.nodes[number]), [after]
        sent_late = asyncio.Event()

        def fate(sent: Sent) -> Fate | None:
            if (sent.receiver, sent.name, sent.mode) != (node, name, 0):
                return None
            left[0] -= 1
            if left[0] >= 0:
                return None
            sent_late.set()
            return Fate((LATE,))

        self.sim.network.rules.append(fate)
        return sent_late

    def begun(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.sim.loop.create_task(work)

    async def transaction(self, member: int, *others: int) -> Any:
        """Open on ``member``, with 1 more on its account and 1 less on another one; and its
        client, which knows nobody else's clock."""
        sim = self.sim
        info = sim.members[member].info
        node = Node(f"user of {member}")
        address = f"{info.host}:{info.user_port}"

        async def begin() -> Any:
            client = await remuda.aio.connect([address], connect_timeout=2.0, request_timeout=20.0)
            client.node = node
            while True:
                tx = client.transaction(isolation="read committed")
                await tx.begin()
                if tx.core.held.member == member:
                    break
                await tx.rollback()
            for number, value in zip((member, *others), (101, 99), strict=True):
                await tx.map("t").put(self.keys[number], {"v": value})
            return client, tx

        client, tx = await asyncio.shield(node.context.run(sim.loop.create_task, begin()))
        return lambda: running(sim, client, tx.commit())

    async def move(self, coordinator: int, one: int, other: int) -> None:
        """1 from an account to another, in one transaction."""
        a, b = self.keys[one], self.keys[other]
        await self.clients[coordinator].run(
            f"UPDATE t SET v = v + CASE id WHEN {a} THEN 1 ELSE -1 END WHERE id IN ({a}, {b})"
        )

    async def cut(self) -> dict[int, int]:
        """Make an increment and restore it: what is there of each member's account."""
        [made] = await self.clients[1].run("CREATE SNAPSHOT s INCREMENT")
        self.sim.network.rules.clear()
        assert made[2] == "increment", made
        return await self.restored(made[1])

    async def restored(self, cut: int) -> dict[int, int]:
        await self.clients[3].run(f"RESTORE SNAPSHOT s CUT {cut} PREFIX 'c{cut}_'")
        found = dict(await self.clients[2].run(f"SELECT id, v FROM c{cut}_t"))
        return {number: found[key] for number, key in self.keys.items()}


Schedule = Callable[[Stage], Awaitable[None]]


def play(schedule: Schedule, backups: int = 0) -> None:
    store = SharedStore(Random(1))
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(SnapshotStorage, "_store", lambda _self: store))
        patches.enter_context(mock.patch.object(sim_world, "SimulatedDisk", LogDisk))
        sim = patches.enter_context(
            simulation(1, 3, backups=backups, data_dir="/data", snapshot_store="shared")
        )
        patches.enter_context(users_of(sim))
        sim.form()
        stage = Stage(sim)
        sim.complete(stage.load())
        sim.complete(schedule(stage))  # type: ignore[arg-type]
        sim.settle(60.0)
        sim.verdict()


def whole(found: dict[int, int]) -> bool:
    return sum(found.values()) == 100 * len(found)


# --- schedules ------------------------------------------------------------------------------------


async def a_job_is_undecided(stage: Stage) -> None:
    """A member hears late that a bulk write is committed, which another one has done below T."""
    decided = stage.late(2, "COMMIT_FINISH")
    moving = stage.begun(stage.move(1, 1, 2))
    await decided.wait()
    await asyncio.sleep(0.01)
    assert whole(await stage.cut())
    await moving


async def a_transaction_is_undecided(stage: Stage) -> None:
    """The same of a transaction."""
    commit = await stage.transaction(1, 2)
    decided = stage.late(2, "PARTS", after=1)
    moving = commit()
    await decided.wait()
    await asyncio.sleep(0.01)
    assert whole(await stage.cut())
    await moving


async def a_member_begins_late(stage: Stage) -> None:
    """What is committed meanwhile lies above T, and before the start in its log."""
    commit = await stage.transaction(1, 2)
    begun = stage.late(2, "CUT_MARK")
    cutting = stage.begun(stage.cut())
    await begun.wait()
    await asyncio.sleep(0.01)
    await commit()
    await stage.move(1, 1, 2)
    assert whole(await cutting)


async def a_clock_is_ahead(stage: Stage) -> None:
    """What it has acknowledged before the cut is in it."""
    stage.sim.members[2].core.world.clock.skew += AHEAD
    schema = await stage.clients[2].schema("t")
    await stage.clients[2].put(schema, stage.keys[2], 7)
    assert (await stage.cut())[2] == 7


async def clocks_are_behind(stage: Stage) -> None:
    """One member has begun the cut, the other has not: both commit above T, although their clocks
    are behind it. (The coordinator says nothing else to them.)"""
    sim = stage.sim
    commit = await stage.transaction(2, 3)
    sim.members[1].core.world.clock.skew += AHEAD
    sim.network.rules.append(lambda sent: Fate((LATE,)) if sent.name == "HEARTBEAT" else None)
    begun = stage.late(3, "CUT_MARK")
    cutting = stage.begun(stage.cut())
    await begun.wait()
    await asyncio.sleep(0.02)
    await commit()
    assert whole(await cutting)


async def the_maker_has_an_older_catalog(stage: Stage) -> None:
    """Another member writes rows of a newer version of the map, below T. (A backup on the maker
    waits for that version, and then it is none of these moments.)"""
    sim = stage.sim
    late = stage.late(2, "CATALOG_INSTALL")
    altering = stage.begun(stage.clients[1].run("ALTER TABLE t ADD COLUMN w BIGINT DEFAULT 1"))
    await late.wait()
    while sim.members[3].core.catalog.maps[0].version < 2:
        await asyncio.sleep(0.001)
    await stage.clients[3].put(await stage.clients[3].schema("t"), stage.keys[3], 7, 8)
    [made] = await stage.clients[2].run("CREATE SNAPSHOT s INCREMENT")
    await altering
    assert made[2] == "base", made
    assert (await stage.restored(made[1]))[3] == 7


SCHEDULES = (
    the_maker_has_an_older_catalog,
    a_job_is_undecided,
    a_transaction_is_undecided,
    a_member_begins_late,
    a_clock_is_ahead,
    clocks_are_behind,
)


@pytest.mark.parametrize("backups", [pytest.param(0, marks=pytest.mark.soak), 1, 2])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_cuts_are_whole(schedule: Schedule, backups: int) -> None:
    play(schedule, backups)


# --- mutations ------------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def _waits_for(patch: Patch, undecided: Callable[[MapStore, int], bool]) -> None:
    def pending(self: Cuts, timestamp: int) -> int | None:
        stores = self._core.stores.items()
        return next((number for number, store in stores if undecided(store, timestamp)), None)

    patch.setattr(Cuts, "_pending", pending)


def the_finish_does_not_wait(patch: Patch) -> None:
    _waits_for(patch, lambda _store, _at: False)


def only_transactions_are_collected(patch: Patch) -> None:
    _waits_for(patch, lambda store, at: store.awaited <= at and store.awaited != FOREVER)


def only_jobs_are_collected(patch: Patch) -> None:
    def undecided(store: MapStore, at: int) -> bool:
        begin = store._staging.unsettled_from
        return begin is not None and begin <= at

    _waits_for(patch, undecided)


def _sides(patch: Patch, choose: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    original = CutWatch.sides
    patch.setattr(CutWatch, "sides", lambda *arguments: choose(*original(*arguments)))


def the_place_in_the_log_decides(patch: Patch) -> None:
    """Whether the member had begun the cut when it noted the commit, and not T."""
    original = Replay._is_wanted

    def wanted(self: Replay, sequence: int, timestamp: int, unit: Any) -> bool:
        if isinstance(self.goal, ToCut):
            return sequence < self.goal.start and timestamp > self.above
        return original(self, sequence, timestamp, unit)

    patch.setattr(Replay, "_is_wanted", wanted)


def what_belongs_to_it_is_not_noted(patch: Patch) -> None:
    _sides(patch, lambda _before, after: (frozenset(), after))


def what_does_not_is_not_noted(patch: Patch) -> None:
    _sides(patch, lambda before, _after: (before, frozenset()))


def the_coordinators_clock_decides(patch: Patch) -> None:
    original = Cuts.take

    async def take(self: Cuts, version: int, clocks: dict[int, Any]) -> Any:
        for answer in clocks.values():
            answer.clock = clocks[self._core.number].clock
        return await original(self, version, clocks)

    patch.setattr(Cuts, "take", take)


def clocks_stay_behind_the_cut(patch: Patch) -> None:
    """Neither T nor the message that bears it moves them."""
    marks: set[int] = set()
    original = Core.observe_clock

    def observe_clock(self: Core, clock: int) -> None:
        if clock not in marks:
            original(self, clock)

    def on_mark(self: Cuts, request: Any) -> None:
        message = control_pb2.CutMark.FromString(request.pbody)
        marks.add(message.timestamp)
        self._repeated.serve(request, partial(self._mark, message))

    patch.setattr(Core, "observe_clock", observe_clock)
    patch.setattr(Cuts, "on_mark", on_mark)


def the_makers_catalog_counts(patch: Patch) -> None:
    patch.setattr(SnapshotMaking, "_up_to_date", lambda self, _version: self._core.catalog)


MUTATIONS: tuple[tuple[Callable[[Patch], None], Schedule], ...] = (
    (the_finish_does_not_wait, a_job_is_undecided),
    (the_finish_does_not_wait, a_transaction_is_undecided),
    (only_transactions_are_collected, a_job_is_undecided),
    (only_jobs_are_collected, a_transaction_is_undecided),
    (the_place_in_the_log_decides, a_job_is_undecided),
    (the_place_in_the_log_decides, a_transaction_is_undecided),
    (what_belongs_to_it_is_not_noted, a_transaction_is_undecided),
    (what_does_not_is_not_noted, a_member_begins_late),
    (the_coordinators_clock_decides, a_clock_is_ahead),
    (clocks_stay_behind_the_cut, clocks_are_behind),
    (the_makers_catalog_counts, the_maker_has_an_older_catalog),
)


@pytest.mark.parametrize(("mutation", "schedule"), MUTATIONS)
def test_without_a_rule_a_cut_is_wrong(
    mutation: Callable[[Patch], None], schedule: Schedule, monkeypatch: Patch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(AssertionError):
        play(schedule)
