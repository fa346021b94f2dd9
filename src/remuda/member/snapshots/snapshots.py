"""Statements about snapshots on the member that runs them.

One statement that writes to the store or to the catalog runs at a time in the cluster; others wait
for their turn (design rule 28), by the turns that atomic writes of a map take.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from remuda.catalog.system_relations import SYS, SYSTEM, SystemRelation
from remuda.config import MemberConfig
from remuda.datatypes.times.datetimetext import parse_timestamp
from remuda.datatypes.timestamp import from_micros, moment, to_micros
from remuda.errors import QueryTimeout, UndefinedObject
from remuda.execution.context import SuppliedRows
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.round import no_answer
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits import Commits
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.sessions.statement import Statement
from remuda.member.sessions.supplied_relations import Supplier
from remuda.member.snapshots.chosen import RestoredMap
from remuda.member.snapshots.cuts import Cuts
from remuda.member.snapshots.log_archive import LogArchive
from remuda.member.snapshots.making import SnapshotMaking
from remuda.member.snapshots.replay import SnapshotReplays
from remuda.member.snapshots.restoring import SnapshotRestoring
from remuda.member.snapshots.rows import SnapshotRows
from remuda.member.snapshots.schedule import SnapshotSchedule
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.member.snapshots.tasks import CREATE, RESTORE, VERIFY, SnapshotTask, SnapshotTasks
from remuda.member.statements.index_service import IndexService
from remuda.member.statements.statements import Statements
from remuda.member.system.system_relations import engine_rows
from remuda.member.system.system_state import SystemState
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.session.answers import Answer
from remuda.session.snapshot_answers import (
    created_answer,
    cut_rows,
    cuts_answer,
    findings_answer,
    gone_answer,
    maps_answer,
    restored_answer,
)
from remuda.snapshot.plans import archive_of, restorable
from remuda.snapshot.store import open_store
from remuda.sql.scope.statements import SnapshotStatement
from remuda.sql.trees.snapshot import (
    CreateSnapshotTree,
    DropSnapshotTree,
    ExpireSnapshotTree,
    RestoreSnapshotTree,
    ShowSnapshotsTree,
    SnapshotTree,
    VerifySnapshotTree,
)
from remuda.storage.format.segment import Identity
from remuda.storage.snapshot import expiring
from remuda.storage.snapshot.archive import WithArchive
from remuda.storage.snapshot.chain import load, snapshot_names
from remuda.storage.snapshot.expiring import ExpirePlan
from remuda.storage.snapshot.object_store import ObjectStore, check_name
from remuda.storage.snapshot.verifying import Level, verify
from remuda.storage.snapshot.witness import Witness, latest, of_archive, of_cuts
from remuda.world import World

Rows: TypeAlias = Callable[[Statement], Awaitable[Iterable[tuple[Any, ...]]]]

TURN: Final = 0
"""In the place of a map's id: no map has it."""


class Snapshots(Wing):
    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        peers: Peers,
        membership: Membership,
        commits: Commits,
        catalog: CatalogService,
        state: SystemState,
        tasks: SnapshotTasks,
        statements: Statements,
        indexes: IndexService,
    ) -> None:
        self._core = core
        self._commits = commits
        self._state = state
        self.tasks = tasks
        self.storage = SnapshotStorage(core.config, core.world)
        self.rows = SnapshotRows(core, peers, commits, self.storage)
        self.replays = SnapshotReplays(core, peers, commits, self.storage)
        self.cuts = Cuts(core, peers, commits, self.storage)
        self.archive = LogArchive(core, self.cuts, self.storage)
        self._making = SnapshotMaking(core, membership, state, self.storage, self.rows, self.cuts)
        self.restoring = SnapshotRestoring(
            core,
            state=state,
            catalog=catalog,
            indexes=indexes,
            storage=self.storage,
            rows=self.rows,
            replays=self.replays,
        )
        core.listeners.view.add(self.restoring.on_view)

        statements.answer_by(SnapshotStatement, self.run)
        relations = {
            "snapshots": self._cuts,
            "snapshot_tasks": self._running,
            "restorable": self._restorable,
        }
        for name, rows in relations.items():
            relation = SYSTEM[SYS][name]
            statements.supplies.register(relation.qualified, _supplier(relation, rows))

    def start(self) -> None:
        self.storage.start()
        if self._core.config.log_archive:
            self.archive.start()
        self.restoring.begin()
        schedule = SnapshotSchedule(
            self._core,
            lambda name, increment: self._create(name, increment, lambda: None),
            self._expire_before,
            self._newest,
        )
        schedule.start()

    def routes(self) -> Routes:
        return Routes(
            control={
                RpcType.SNAPSHOT_WRITE: self.rows.on_write,
                RpcType.SNAPSHOT_READ: self.rows.on_read,
                RpcType.SNAPSHOT_REPLAY: self.replays.on_replay,
                **self.cuts.routes(),
            }
        )

    def free(self) -> None:
        self.cuts.close()
        self.archive.close()
        self.storage.close()

    async def run(self, statement: Statement, tree: SnapshotTree) -> Answer:
        """Raises InputError and its kinds, ResourceError of the store, TransientError."""
        try:
            async with asyncio.timeout(statement.timeout):
                return await self._run(statement, tree)
        except TimeoutError:
            raise QueryTimeout(
                f"the statement did not end within {statement.timeout:g} s; nothing is left of it"
            ) from None

    async def _run(self, statement: Statement, tree: SnapshotTree) -> Answer:
        match tree:
            case ShowSnapshotsTree(None):
                return cuts_answer(await self._storage_rows())
            case ShowSnapshotsTree(str(name)):
                return maps_answer(await self.storage.work(lambda store, _: load(store, name)))
            case VerifySnapshotTree():
                with self.tasks.task(VERIFY, tree.name, statement.check) as task:
                    return await self._verify(task, tree)
            case CreateSnapshotTree(name):
                return await self._create(name, tree.increment, statement.check)
            case RestoreSnapshotTree():
                with self.tasks.task(RESTORE, tree.name, statement.check) as task:
                    async with self._turn():
                        maps = await self.restoring.restore(task, tree)
                return restored_answer(map(_restored_row, maps))
            case ExpireSnapshotTree():
                before = from_micros(parse_timestamp(tree.before, zoned=True))
                return await self._expire_before(tree.name, before, dry_run=tree.dry_run)
            case DropSnapshotTree():
                async with self._turn():
                    return await self._drop(tree)
        raise AssertionError("the context managers above pass every error on")

    async def _create(self, name: str, increment: bool, check: Callable[[], None]) -> Answer:
        with self.tasks.task(CREATE, name, check) as task:
            task.increment = increment
            async with self._turn():
                manifest = await self._making.create(task)
                return created_answer(manifest, task.note)
        raise AssertionError("the context managers above pass every error on")

    async def _expire_before(self, name: str, before: int, *, dry_run: bool = False) -> Answer:
        now = self._core.world.clock.wall_micros()

        def plan(store: ObjectStore) -> ExpirePlan:
            chain = load(store, name)
            unfinished = expiring.left_behind(store, chain, now=now)
            return expiring.plan_expire(chain, before=before, unfinished=unfinished)

        async with self._turn():
            return await self._expire(name, plan, dry_run=dry_run)
        raise AssertionError("the context manager above passes every error on")

    async def _newest(self) -> tuple[str, int]:
        """The snapshot that has this cluster's last cut with logs, and the view of that cut; ""
        if there is none."""
        wal = self.cuts.wal
        if wal is None or wal.place is None:
            return "", 0
        cluster = wal.place[1].cluster.hex()
        return await self.storage.work(lambda store, _: _newest_cut(store, cluster))

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        job = self._commits.new_job()
        await self._commits.turn(TURN, job)
        try:
            yield
        finally:
            self._commits.end_turn(TURN, job)

    async def _storage_rows(self) -> list[tuple[Any, ...]]:
        return await self.storage.work(lambda store, _: _all_cuts(store))

    async def _verify(self, task: SnapshotTask, tree: VerifySnapshotTree) -> Answer:
        def progress(done: int, total: int) -> None:  # on the thread of the store
            task.objects, task.objects_total = done, total
            task.check()

        check_name(tree.name)
        now = self._core.world.clock.wall_micros()
        report = await self.storage.work(
            lambda store, key: verify(store, tree.name, Level(tree.level), key, progress, now=now)
        )
        return findings_answer(report)

    async def _expire(self, name: str, make: Any, *, dry_run: bool) -> Answer:
        check_name(name)
        now = self._core.world.clock.wall_micros()

        def expire(store: ObjectStore) -> ExpirePlan:
            plan: ExpirePlan = make(store)
            if not dry_run:
                expiring.carry_out(store, plan)
                expiring.remove_old_files(store, name, now=now)
            return plan

        return gone_answer(await self.storage.work(lambda store, _: expire(store)))

    async def _drop(self, tree: DropSnapshotTree) -> Answer:
        def plan(store: ObjectStore) -> ExpirePlan:
            chain = load(store, tree.name)
            cuts = tree.cuts or (*chain.manifests, *chain.pending(), *chain.lost())
            return expiring.plan_drop(chain, cuts, force=tree.cascade)

        try:
            return await self._expire(tree.name, plan, dry_run=tree.dry_run)
        except UndefinedObject:
            if not tree.if_exists:
                raise
            return gone_answer(ExpirePlan((), (), (), tree.name))

    # --- system relations ---------------------------------------------------------------------

    async def _cuts(self, _statement: Statement) -> Iterable[tuple[Any, ...]]:
        """The rows of sys.snapshots; none where there is no store."""
        return await self._storage_rows() if self.storage.configured else []

    async def _restorable(self, _statement: Statement) -> Iterable[tuple[Any, ...]]:
        """The rows of sys.restorable; between those of a snapshot are gaps."""
        if not self.storage.configured:
            return []
        archive = bool(self._core.config.log_archive)
        return await self.storage.work(lambda store, _: list(_all_ranges(store, archive)))

    async def _running(self, _statement: Statement) -> Iterable[tuple[Any, ...]]:
        """The rows of sys.snapshot_tasks."""
        answers = await self._state.answered()
        rows: list[tuple[Any, ...]] = [
            (
                number, task.kind, task.snapshot, task.cut or None, moment(task.started),
                task.attempt, task.objects, task.objects_total, task.rows, task.bytes,
            )
            for number, state in answers.known.items()
            for task in state.snapshots
        ]  # fmt: skip
        return [*rows, *(no_answer(number, 0, 10, 1) for number in answers.silent)]


def _supplier(relation: SystemRelation, rows: Rows) -> Supplier:
    async def supply(statement: Statement) -> SuppliedRows:
        return engine_rows(relation, list(await rows(statement)))

    return supply


def _restored_row(each: RestoredMap) -> tuple[str, str, int, int, int]:
    size = sum(wanted.size for wanted in each.objects)
    return each.schema.name, each.name, each.rows, len(each.objects), size


def _all_ranges(store: ObjectStore, archive: bool) -> Iterator[tuple[Any, ...]]:
    for name in snapshot_names(store):
        known = load(store, name)
        for each in restorable(known, archive_of(store, known) if archive else None):
            yield name, moment(to_micros(each.start)), moment(to_micros(each.stop))


def _newest_cut(store: ObjectStore, cluster: str) -> tuple[str, int]:
    cuts = [each for name in snapshot_names(store) for each in load(store, name).manifests.values()]
    mine = [each for each in cuts if each.logs and each.cluster == cluster]
    newest = max(mine, key=lambda each: each.timestamp, default=None)
    return ("", 0) if newest is None else (newest.name, newest.view)


def _all_cuts(store: ObjectStore) -> list[tuple[Any, ...]]:
    return [row for name in snapshot_names(store) for row in cut_rows(load(store, name))]


def witness_of(config: MemberConfig, world: World, log: Identity) -> Witness | None:
    """The last record of a log that the store of snapshots or the archive names; None: neither
    does. On a thread. Raises ResourceError where they cannot be read."""
    found: list[Witness | None] = []
    if config.snapshot_store:
        store = open_store(config.snapshot_store, world)
        found.append(of_cuts(store, log.member.hex()))
    if config.log_archive:
        place = open_store(config.log_archive, world, "log_archive")
        archive = WithArchive(place, place)
        found.append(of_archive(archive, log.cluster.hex(), log.member.hex()))
    return latest(found)
