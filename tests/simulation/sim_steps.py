"""A crash between every two steps of a statement: what a cluster does for it are operations of
disks, operations of the object store of snapshots, and messages between members. A first run counts
these; each other run of the same seed ends before one of them, by a loss of power of all machines
or by the loss of the machine whose turn it was. Afterwards

* every member has the same catalog and no map that nobody sees, and the maps are as they were
  before the statement or as they are after it; after it, if the client was told so;
* every cut that the store had and has not given up can be restored; nothing in it is damaged, and
  what was left goes when cuts that were not finished are dropped and EXPIRE runs again;
* the statement can be made again, and then has its effect.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Literal, TypeAlias
from unittest import mock

import sim_world
from sim_cluster import FAST, Simulation, Violation, simulation
from sim_log_disk import LogDisk, sim_disk
from sim_loop import CURRENT
from sim_network import Sent
from sim_power import PATIENCE, PowerStorm, SlowPool
from sim_snapshots import SharedStore
from sim_transaction_works import Told, rows
from sim_users import connected, running, users_of

from remuda.catalog.staged_maps import is_staged
from remuda.errors import RemudaError
from remuda.member.base import offload
from remuda.member.snapshots import making as snapshot_making
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.storage.snapshot.chain import load
from remuda.storage.snapshot.cut_records import mark_version

Manner: TypeAlias = Literal["all", "one"]
State: TypeAlias = dict[str, Any]

NAME = "s"
PREPARED = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)",
    "CREATE TABLE r (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED",
    "CREATE INDEX t_v ON t (v)",
    "CREATE VIEW w AS SELECT id FROM t WHERE v > 3",
    "INSERT INTO t SELECT i, i * 2 FROM generate_series(0, 19) AS g(i)",
    "INSERT INTO r VALUES (1, 1), (2, 2)",
    f"CREATE SNAPSHOT {NAME}",
    "UPDATE t SET v = v + 1 WHERE id < 5",
    f"CREATE SNAPSHOT {NAME} INCREMENT",
    "DELETE FROM t WHERE id = 7",
    f"CREATE SNAPSHOT {NAME}",
)
NOW = "2200-01-01"
PERIODIC = ("HEARTBEAT", "HEARTBEAT_ANSWER")
AFTERWARDS = 0.2
"""Seconds for which steps count after the client was told."""
STATEMENTS = {
    "create": "CREATE TABLE n (id BIGINT PRIMARY KEY, v BIGINT UNIQUE)",
    "create view": "CREATE VIEW n AS SELECT id FROM t",
    "add column": "ALTER TABLE t ADD COLUMN more BIGINT DEFAULT 7",
    "drop column": "ALTER TABLE r DROP COLUMN v",
    "rename": "ALTER TABLE r RENAME TO r2",
    "index": "CREATE UNIQUE INDEX n_v ON t (v)",
    "drop index": "DROP INDEX t_v",
    "drop": "DROP TABLE t CASCADE",
    "restore a base": f"RESTORE SNAPSHOT {NAME} CUT 3 PREFIX 'n_'",
    "restore an increment": f"RESTORE SNAPSHOT {NAME} CUT 2 PREFIX 'n_'",
    "make a base": f"CREATE SNAPSHOT {NAME}",
    "make an increment": f"CREATE SNAPSHOT {NAME} INCREMENT",
    "expire": f"EXPIRE SNAPSHOT {NAME} BEFORE '{NOW}'",
    "drop a cut": f"DROP SNAPSHOT {NAME} CUT 3",
}
SNAPSHOTS = ("make a base", "make an increment", "expire", "drop a cut")
"""These change no map."""


PowerCut = sim_disk.PowerCut


def machine_here() -> str:
    """The machine whose process runs."""
    return CURRENT.get().name.partition(".")[0]


class StepDisk(LogDisk):
    """``step`` is told of each operation before it is done."""

    step: Callable[[str], None] = staticmethod(lambda _machine: None)  # type: ignore[assignment]
    machine = ""

    def _operation(self) -> None:
        if not self.is_off:
            self.step(self.machine)
        super()._operation()


@dataclass
class StepStore(SharedStore):
    """The same of the object store. A process that has ended does nothing in it any more."""

    step: Callable[[], None] = lambda: None

    def put(self, key: str, data: bytes) -> None:
        self.step()
        super().put(key, data)

    def get(self, key: str) -> bytes:
        self.step()
        return super().get(key)

    def delete(self, key: str) -> None:
        self.step()
        super().delete(key)


class StepRun(PowerStorm):
    """``stop``: the step before which it ends; 0: none does."""

    def __init__(self, what: str, stop: int = 0, manner: Manner = "all", size: int = 3) -> None:
        self.what, self.stop, self.manner = what, stop, manner
        self.random = Random(f"{what}/steps")
        self.size, self.backups, self.cuts = size, min(1, size - 1), 1
        self.told = Told("serializable", Random(1))
        self.works = []
        self.machines: dict[str, LogDisk] = {}
        self.lost_power: dict[str, bool] = {}
        self.down = asyncio.Event()
        self.life = self.recovered = 0
        self.ends = self.told.ends
        self.store = StepStore(Random(1), step=self._store_step)
        self.steps: list[str] = []
        """Of the statement."""
        self.counting = False
        self.acknowledged = False
        self.before: State = {}
        self.after: State = {}

    # ---- the run ----

    def run(self, seed: int = 1) -> Simulation:
        with ExitStack() as patches:
            patch = partial(mock.patch.object)
            patches.enter_context(patch(sim_world, "SimulatedDisk", self._disk))
            patches.enter_context(patch(offload, "Pool", SlowPool))
            patches.enter_context(patch(SnapshotStorage, "_store", lambda _self: self.store))
            patches.enter_context(patch(snapshot_making, "OBJECT_ROWS", 8))
            settings: dict[str, Any] = {
                "backups": self.backups,
                "data_dir": "/data",
                "snapshot_store": "shared",
            }
            self.settings = {"cluster_size": self.size, **FAST, **settings}
            sim = self.sim = self.told.sim = patches.enter_context(
                simulation(seed, self.size, **settings)
            )
            patches.enter_context(users_of(sim))
            sim.form()
            sim.network.watchers.append(self._frame_step)
            sim.complete(self._statement())
            if self.manner == "all" and self.lost_power:
                if not self._started_again():
                    raise Violation("it did not start again")
            elif self.lost_power:
                for number, node in sim.nodes.items():
                    if not node.alive:
                        del sim.members[number]
            sim.complete(self._judge())
            sim.loop.problems = [text for text in sim.loop.problems if "PowerCut" not in text]
            sim.settle(60.0)
            sim.verdict()
        return sim

    def _disk(self, random: Random, files: Any) -> LogDisk:
        machine = machine_here()
        if machine not in self.machines:
            self.machines[machine] = disk = StepDisk(random, files)
            disk.machine, disk.step = machine, self._disk_step
        return self.machines[machine]

    def _arrange_the_start(self) -> None: ...

    def _coming(self, _machine: str) -> float:
        return 0.0

    # ---- steps ----

    def _disk_step(self, machine: str) -> None:
        self._step("disk", machine)

    def _store_step(self) -> None:
        machine = machine_here()
        if machine in self.lost_power:
            raise PowerCut
        if machine in self.machines:
            self._step("store", machine)
            if machine in self.lost_power:
                raise PowerCut

    def _frame_step(self, sent: Sent) -> None:
        if self.counting and sent.name not in PERIODIC:
            machine = sent.sender.partition(".")[0]
            self._step(f"frame {sent.name}", machine.partition(" ")[0], soon=True)

    def _step(self, kind: str, machine: str, *, soon: bool = False) -> None:
        if not self.counting or self.lost_power:
            return
        self.steps.append(f"{kind} of {machine}")
        if len(self.steps) != self.stop:
            return
        self.sim.note(f"step {self.stop}: {self.steps[-1]}")
        crash = partial(self._crash, machine)
        if soon:  # not in the middle of what the sender does
            self.sim.loop.call_soon(crash, context=self.sim.director.context)
        else:
            crash()

    def _crash(self, machine: str) -> None:
        if self.manner == "all":
            self._all_end(f"before step {self.stop}")
        else:
            self._end(machine, power=True)

    # ---- the statement ----

    async def _statement(self) -> None:
        client = await connected(self.sim, "first")
        for text in PREPARED:
            await self._inside(client, rows(client, text))
        await asyncio.sleep(1.0)  # copies, marks and upkeep come to rest
        self.before = await self._inside(client, self._state(client))
        self.counting = True
        work = running(self.sim, client, self._carry_out(client))
        down = asyncio.ensure_future(self.down.wait())
        await asyncio.wait([work, down], return_when=asyncio.FIRST_COMPLETED)
        if work.done() and not work.exception():
            self.acknowledged = True
            await asyncio.wait([down], timeout=AFTERWARDS)
        self.counting = False
        down.cancel()
        if work.done():
            error = work.exception()
            if error is not None and not self._may_fail(error):
                raise error
            self.sim.note(f"told: {error!r}")
        else:
            work.cancel()
            await asyncio.wait([work])
        if not self.down.is_set():
            await asyncio.sleep(15.0)  # others take over, and take away what was left
            if not self.lost_power:
                self.after = await self._inside(client, self._state(client))
        self.sim.network.kill(client.node, silently=False)

    async def _carry_out(self, client: Any) -> None:
        await rows(client, STATEMENTS[self.what])

    def _may_fail(self, _error: BaseException) -> bool:
        return bool(self.lost_power)

    async def _state(self, client: Any) -> State:
        """What users see: maps with their columns, indexes and rows, views, cuts."""
        member = next(iter(self.sim.live().values()))
        catalog, found = member.core.catalog, State()
        for schema in catalog.maps:
            if not schema.name.startswith("\x01") and not is_staged(schema):
                columns = [column.name for column in schema.columns]
                indexes = sorted(each.name for each in schema.indexes)
                text = f"SELECT * FROM {schema.name}"
                content = [] if schema.sequence else sorted(await rows(client, text), key=repr)
                found[schema.name] = (columns, indexes, content)
        for view in catalog.views:
            found[view.name] = sorted(await rows(client, f"SELECT * FROM {view.name}"))
        found["cuts"] = sorted(load(self.store, NAME).manifests)
        return found

    # ---- judging ----

    async def _judge(self) -> None:
        if not self.stop:
            self._same_everywhere()
            return
        client = await connected(self.sim, "last")
        self.after = self._reference()
        await self._inside(client, self._again(client))
        await self._inside(client, client.close())

    def _reference(self) -> State:
        """What users see after the statement."""
        return counted(self.what, self.size).after

    async def _again(self, client: Any) -> None:
        await asyncio.sleep(15.0)
        self._same_everywhere()
        found = await self._state(client)
        wrong = self.sim.violations
        if self.what not in SNAPSHOTS:
            possible = [self.after] if self.acknowledged else [self.before, self.after]
            if found not in possible:
                wrong.append(f"{self.what}: {differences(found, possible[-1])}")
        elif not self._cuts_may_be(set(found["cuts"])):
            wrong.append(f"{self.what}: cuts {found['cuts']}, acknowledged {self.acknowledged}")
        await self._store_is_whole(client)
        if found == self.before:
            await self._until_done(partial(self._carry_out, client))
            again = await self._state(client)
            if self.what in SNAPSHOTS:
                self.acknowledged = True
                if not self._cuts_may_be(set(again["cuts"])):
                    wrong.append(f"{self.what} again: cuts {again['cuts']}")
            elif again != self.after:
                wrong.append(f"{self.what} again: {differences(again, self.after)}")

    def _cuts_may_be(self, found: set[int]) -> bool:
        """One that is made may have another number, if it was begun anew. Cuts that are given up go
        one after the other."""
        before, after = set(self.before["cuts"]), set(self.after["cuts"])
        if before < after:
            return (
                before <= found
                and len(found) <= len(after)
                and (not self.acknowledged or len(found) == len(after))
            )
        return found == after if self.acknowledged else after <= found <= before

    def _same_everywhere(self) -> None:
        wrong = self.sim.violations
        live = self.sim.live()
        if len({member.core.catalog for member in live.values()}) > 1:
            wrong.append("members have different catalogs")
        for number, member in live.items():
            known = {schema.map_id for schema in member.core.catalog.maps}
            held = {*member.core.stores, *member.core.backup_stores}
            if held - known:
                wrong.append(f"member {number} has rows of maps {held - known}, which are gone")
            staged = [schema.name for schema in member.core.catalog.maps if is_staged(schema)]
            if staged:
                wrong.append(f"member {number} has {staged}, which nobody sees")

    async def _store_is_whole(self, client: Any) -> None:
        """Cuts that were not finished go, then nothing is found, and nothing is there that no cut
        needs; each cut that stays can be restored."""
        wrong = self.sim.violations
        for place, problem, kind in await rows(client, f"VERIFY SNAPSHOT {NAME}"):
            if kind == "damage" and ".record is missing" not in problem:
                wrong.append(f"damage: {place}: {problem}")
        chain = load(self.store, NAME)
        for version in sorted(set(chain.pending()) - set(chain.manifests)):
            await self._patiently(client, f"DROP SNAPSHOT {NAME} CUT {version}")
        await self._patiently(client, f"EXPIRE SNAPSHOT {NAME} BEFORE '1970-01-02'")
        found = await rows(client, f"VERIFY SNAPSHOT {NAME} LEVEL 3")
        if found:
            wrong.append(f"left: {found}")
        chain = load(self.store, NAME)
        spare = {key for key in chain.spare() if not mark_version(key)}
        if spare or chain.pending():
            wrong.append(f"left in the store: {spare} {chain.pending()}")
        for version in sorted(chain.manifests):
            await self._patiently(client, f"RESTORE SNAPSHOT {NAME} CUT {version} PREFIX 'z_'")
            count = await rows(client, "SELECT count(*) FROM z_t")
            if count != [(20 if version < 3 else 19,)] and self.what != "drop":
                wrong.append(f"cut {version}: {count} rows")
            for name in ("z_t", "z_r", "z_r2"):
                await self._patiently(client, f"DROP TABLE IF EXISTS {name} CASCADE")

    async def _patiently(self, client: Any, text: str) -> None:
        await self._until_done(partial(rows, client, text))

    async def _until_done(self, work: Callable[[], Awaitable[Any]]) -> None:
        deadline = self.sim.loop.now + PATIENCE
        while True:
            try:
                await work()
            except RemudaError as error:
                if not error.retryable or self.sim.loop.now > deadline:
                    raise
                await asyncio.sleep(0.3)
            else:
                return


def differences(found: State, wanted: State) -> str:
    names = [name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)]
    return "; ".join(f"{n}: {found.get(n)!r}, not {wanted.get(n)!r}" for n in sorted(names))


_REFERENCES: dict[tuple[str, int], StepRun] = {}


def counted(what: str, size: int = 3) -> StepRun:
    """A run without a crash."""
    if (what, size) not in _REFERENCES:
        run = StepRun(what, size=size)
        run.run()
        _REFERENCES[what, size] = run
    return _REFERENCES[what, size]


def crash(what: str, stop: int, manner: Manner, size: int = 3) -> StepRun:
    """Raises Violation with the statement, the step and what is useful of the log."""
    counted(what, size)
    made = StepRun(what, stop, manner, size)
    name = f"{what!r}, step {stop}, {manner}, {size} members"
    try:
        made.run()
    except Violation as problem:
        raise Violation(f"{name}: {problem}") from problem
    except RemudaError as error:
        raise Violation(f"{name}: {error!r}\n{made.sim.useful_log()}") from error
    return made


def kinds(run: StepRun) -> Counter[str]:
    return Counter(step.split(" of ")[0] for step in run.steps)
