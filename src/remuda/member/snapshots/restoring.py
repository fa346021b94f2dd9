"""RESTORE SNAPSHOT: the maps of a cut, or some of them, in a cluster of any number of members.

The maps are made under names that nobody sees (``catalog.staged_maps``). All members read objects
at once, check them against the manifest, and send the rows to their owners and their backups. When
every row is there and every index is built, one edit of the catalog gives all maps their names:
they appear together or not at all. If anything fails before, the staged maps are dropped again; if
this member is lost, the others drop them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DropMap, Edit, PutMap, PutNamespace, PutView
from remuda.catalog.staged_maps import is_staged, restore_of, staged_name
from remuda.datatypes.map_options import NO_OPTIONS
from remuda.datatypes.schema import (
    PUBLIC,
    MapSchema,
    Namespace,
    ViewDefinition,
)
from remuda.datatypes.view import View
from remuda.errors import (
    DataCorrupted,
    DuplicateMap,
    InputError,
    PartitionsLost,
    RemudaError,
    SchemaChanged,
    TransientError,
)
from remuda.member.base.core import Core
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.snapshots.chosen import RestoredMap, chosen, relinked
from remuda.member.snapshots.replay import SnapshotReplays
from remuda.member.snapshots.rows import SnapshotRows
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.member.snapshots.tasks import SnapshotTask
from remuda.member.state.log import fields
from remuda.member.statements.index_service import IndexService
from remuda.member.system.system_state import SystemState
from remuda.rpc.messages import control_pb2
from remuda.snapshot.catalog import read_catalog
from remuda.snapshot.plans import planned
from remuda.sql.scope.statements import CreateIndexStatement
from remuda.sql.trees.snapshot import RestoreSnapshotTree
from remuda.storage.format.manifest import DataObject, SegmentObject
from remuda.storage.snapshot.restoring import RestorePlan, fetch

log = logging.getLogger(__name__)

EDIT_ATTEMPTS = 50
"""So often a change of the catalog is made again because it has changed meanwhile."""
EDIT_PAUSE = 0.01
READ_ATTEMPTS = 10
"""So often an object is read again after a member was lost, or the view has changed."""
READ_PAUSE = 0.3
COUNT_ATTEMPTS = 200
"""So often the rows are counted again because partitions were moved meanwhile."""
COUNT_PAUSE = 0.1
SWEEP_PAUSE = 1.0
AT_ONCE = 2
"""Objects that a member restores at a time: one is read while another one is committed."""


@dataclass(frozen=True)
class Piece:
    """``work(member)`` has a member do it, and tells how many rows it has written."""

    name: str
    work: Callable[[int], Awaitable[control_pb2.SnapshotWritten]]
    size: int


class SnapshotRestoring:
    def __init__(
        self,
        core: Core,
        *,
        state: SystemState,
        catalog: CatalogService,
        indexes: IndexService,
        storage: SnapshotStorage,
        rows: SnapshotRows,
        replays: SnapshotReplays,
    ) -> None:
        self._core = core
        self._state = state
        self._catalog = catalog
        self._indexes = indexes
        self._storage = storage
        self._rows = rows
        self._replays = replays
        self._running: set[str] = set()
        """The ids of the restores of this member."""
        self._begun = False
        self._sweeping = False
        core.listeners.installed.add(self._look_for_left)

    async def restore(self, task: SnapshotTask, tree: RestoreSnapshotTree) -> list[RestoredMap]:
        """The maps that are there now (with DRY RUN: that would be). Raises InputError,
        UndefinedObject, DuplicateMap, DataCorrupted, TransientError; then the cluster is as it
        was."""
        path = await self._storage.work(
            lambda store, _: planned(store, tree, archive=bool(self._core.config.log_archive))
        )
        task.cut = path.cut.version
        snapshot = read_catalog(path.catalog)
        schemas = snapshot.namespace_names | self._core.catalog.namespace_names
        maps = chosen(path, snapshot, tree, schemas)
        views = snapshot.views if not tree.maps and not tree.prefix else ()
        self._refuse_existing(maps, views)
        if tree.dry_run:
            await self._look(task, path, maps)
            return maps
        restore = f"{self._core.world.chance.bits(64):016x}"
        maps = relinked(maps, restore)
        self._running.add(restore)
        try:
            await self._restore(task, restore, path, maps, views, namespaces=snapshot.namespaces)
        except BaseException:
            await asyncio.shield(self._drop(restore))
            raise
        finally:
            self._running.discard(restore)
        log.info(
            "snapshot restored",
            extra=fields(snapshot=tree.name, cut=task.cut, maps=len(maps), rows=task.rows),
        )
        return maps

    def _refuse_existing(
        self, maps: Sequence[RestoredMap], views: Sequence[ViewDefinition]
    ) -> None:
        catalog = self._core.catalog
        for name in [*(each.name for each in maps), *(view.name for view in views)]:
            if catalog.find(name) is not None or catalog.find_view(name) is not None:
                raise DuplicateMap(
                    f'a map or view of the name "{name}" exists already; nothing was restored',
                    hint="Restore under new names (MAPS map AS name, or PREFIX 'text'), or drop it "
                    "first.",
                )

    async def _look(
        self, task: SnapshotTask, path: RestorePlan, maps: Sequence[RestoredMap]
    ) -> None:
        """Read every object, and check it."""
        data = [wanted for each in maps for wanted in each.objects]
        objects: list[DataObject | SegmentObject] = [*data, *path.segments]
        task.begin(len(objects))
        for wanted in objects:
            task.check()
            await self._look_at(wanted)
            rows = wanted.rows if isinstance(wanted, DataObject) else 0
            task.done(rows, wanted.size)

    async def _look_at(self, wanted: DataObject | SegmentObject) -> None:
        await self._storage.work(lambda store, key: fetch(store, wanted, key))

    async def _restore(
        self,
        task: SnapshotTask,
        restore: str,
        path: RestorePlan,
        maps: list[RestoredMap],
        views: Sequence[ViewDefinition],
        *,
        namespaces: Sequence[Namespace],
    ) -> None:
        core = self._core
        core.require_all_alive()
        await core.until_ready()
        for number, each in enumerate(maps):
            each.staged = staged_name(core.number, restore, number)
        made = [
            PutMap(replace(_fresh(each.schema), name=each.staged, namespace=PUBLIC))
            for each in maps
        ]
        if made:
            await self._edit(lambda _: made)
        if path.from_logs:
            await self._fill_from_logs(task, path, maps)
        else:
            await self._fill(task, maps)
        for each in maps:
            each.passing = task.passing
        await self._check_rows(maps)
        await self._build_indexes(task, maps)
        task.check()
        await self._publish(maps, views, namespaces)

    async def _publish(
        self,
        maps: Sequence[RestoredMap],
        views: Sequence[ViewDefinition],
        namespaces: Sequence[Namespace],
    ) -> None:
        """To its end, also when the statement is cancelled or its time is over meanwhile: the
        change may be on its way, and nobody may hear then that nothing is left of it."""
        edit = asyncio.ensure_future(
            self._edit(lambda catalog: self._published(catalog, maps, views, namespaces))
        )
        try:
            await asyncio.shield(edit)
        except asyncio.CancelledError:
            await edit

    async def _edit(self, edits: Callable[[Catalog], Sequence[Edit]]) -> None:
        """Raises what ``edits`` and the catalog raise."""
        for attempt in range(EDIT_ATTEMPTS):
            catalog = self._core.catalog
            try:
                await self._catalog.edit(edits(catalog), catalog.version)
            except SchemaChanged:
                if attempt == EDIT_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(EDIT_PAUSE * (attempt + 1))
            else:
                return

    def _published(
        self,
        catalog: Catalog,
        maps: Sequence[RestoredMap],
        views: Sequence[ViewDefinition],
        namespaces: Sequence[Namespace],
    ) -> list[Edit]:
        """The schemas that are not there come first, with the comments of the snapshot."""
        self._refuse_existing(maps, views)
        wanted = {each.place.namespace for each in maps} | {view.namespace for view in views}
        missing = wanted - {PUBLIC, *catalog.namespace_names}
        found: list[Edit] = [
            PutNamespace(replace(each, oid=0)) for each in namespaces if each.name in missing
        ]
        for each in maps:
            schema = catalog.find(each.staged)
            if schema is None:
                raise TransientError(f'map "{each.name}" was dropped while it was restored')
            place, keys = each.place, each.schema.foreign_keys
            published = replace(schema, name=each.name, namespace=place.namespace)
            found.append(PutMap(replace(published, foreign_keys=keys)))
        return [*found, *(PutView(replace(view, view_id=0)) for view in views)]

    # --- rows ---------------------------------------------------------------------------------

    async def _fill(self, task: SnapshotTask, maps: Sequence[RestoredMap]) -> None:
        """Object by object."""
        pieces = [
            Piece(wanted.key, partial(self._read, each, wanted), wanted.size)
            for each in maps
            for wanted in each.objects
        ]
        await self._spread(task, pieces, AT_ONCE)

    async def _fill_from_logs(
        self, task: SnapshotTask, path: RestorePlan, maps: Sequence[RestoredMap]
    ) -> None:
        """Log by log, each with the base's rows of its partitions."""
        cut = path.cut
        pieces = [
            Piece(f"log {each.identity}", partial(self._replay, path, each.identity, maps), 0)
            for each in cut.logs
        ]
        await self._spread(task, pieces)
        states = await self._states_at_rest()
        for each in maps:  # how many there are, no manifest says
            each.rows = self._rows_there(states, each)
        if not 0 <= task.rows - sum(each.rows for each in maps) <= task.passing:
            raise DataCorrupted(f"the maps have other than the {task.rows} rows of the replay")

    async def _spread(self, task: SnapshotTask, pieces: Sequence[Piece], at_once: int = 1) -> None:
        """All members work at once, each at so many pieces at a time; the piece of a member that
        fails is done again by another one."""
        task.begin(len(pieces))
        waiting = deque(pieces)
        failed: Counter[str] = Counter()

        async def worker(member: int) -> None:
            while waiting:
                piece = waiting.popleft()
                task.check()
                try:
                    done = await piece.work(member)
                except PartitionsLost:
                    raise
                except TransientError as error:
                    task.check()
                    failed[piece.name] += 1
                    if failed[piece.name] > READ_ATTEMPTS:
                        raise
                    waiting.append(piece)
                    log.info(
                        "restore: a piece is done again",
                        extra=fields(piece=piece.name, member=member, cause=error.message),
                    )
                    if member not in self._core.live_members():
                        return
                    await asyncio.sleep(READ_PAUSE)
                else:
                    task.done(done.rows, piece.size, done.passing)

        while waiting:  # again, if all workers were lost
            members = self._core.live_members()
            await _together([worker(member) for member in members for _ in range(at_once)])

    async def _replay(
        self, path: RestorePlan, identity: str, maps: Sequence[RestoredMap], member: int
    ) -> control_pb2.SnapshotWritten:
        core = self._core
        message = control_pb2.SnapshotReplay(
            context=core.context(),
            snapshot=path.cut.name,
            cut=path.cut.version,
            moment=path.target.moment,
            log_identity=identity,
        )
        if path.archived is not None:
            piece = path.archived.logs[identity]
            message.finish = piece.finish
            for segment in piece.segments:
                message.archived.add(
                    key=segment.key,
                    sha256=segment.sha256,
                    size=segment.size,
                    number=segment.number,
                    first=segment.first,
                    last=segment.last,
                )
        for each in maps:
            schema = self._staged_map(each)
            message.maps.add(
                old_id=each.schema.map_id, map_id=schema.map_id, schema_version=schema.version
            )
        return await self._replays.replay(member, message)

    def _staged_map(self, each: RestoredMap) -> MapSchema:
        schema = self._core.catalog.find(each.staged)
        if schema is None:
            raise InputError(f'map "{each.name}" was dropped while it was restored')
        return schema

    async def _read(
        self, each: RestoredMap, wanted: DataObject, member: int
    ) -> control_pb2.SnapshotWritten:
        core = self._core
        schema = self._staged_map(each)
        message = control_pb2.SnapshotRead(
            context=core.context(),
            object=control_pb2.SnapshotWritten(
                key=wanted.key, sha256=wanted.sha256, size=wanted.size, rows=wanted.rows
            ),
            map_id=schema.map_id,
            schema_version=schema.version,
        )
        return await self._rows.read(member, message)

    async def _check_rows(self, maps: Sequence[RestoredMap]) -> None:
        """Tell how many rows there are now: some may have ended by themselves. Raises unless all
        others have arrived: a member that was lost with the only copy of some takes them along, and
        objects of another snapshot may name keys twice."""
        states = await self._states_at_rest()
        for each in maps:
            rows = self._rows_there(states, each)
            # Idle entries go, and those without room: options may have it so.
            least = 0 if each.schema.options != NO_OPTIONS else each.rows - each.passing
            if not least <= rows <= each.rows:
                raise DataCorrupted(
                    f'map "{each.name}" has {rows} rows after the restore; the manifest says'
                    f" {each.rows}",
                    hint="Nothing was restored. A member may have been lost meanwhile; VERIFY "
                    "SNAPSHOT tells whether the snapshot is whole.",
                )
            each.rows = rows

    async def _states_at_rest(self) -> Collection[control_pb2.SystemState]:
        """The states of all members in one view, while none of them takes rows over: rows that
        change their member between two answers would count twice, or not at all. Raises
        MemberUnavailable, and TransientError when partitions are moved all the time."""
        core = self._core
        for _ in range(COUNT_ATTEMPTS):
            core.require_all_alive()
            view = core.view
            states = (await self._state.all()).values()
            if core.view is view and all(_is_at_rest(state, view) for state in states):
                return states
            await asyncio.sleep(COUNT_PAUSE)
        raise TransientError(
            "partitions were moved whenever the restored rows were counted",
            hint="Nothing was restored. Try again when no member joins or leaves.",
        )

    def _rows_there(self, states: Collection[control_pb2.SystemState], each: RestoredMap) -> int:
        map_id = self._staged_map(each).map_id
        counts = [part.rows for state in states for part in state.maps if part.map_id == map_id]
        return max(counts, default=0) if each.schema.replicated else sum(counts)

    async def _build_indexes(self, task: SnapshotTask, maps: Sequence[RestoredMap]) -> None:
        for each in maps:
            for index in each.schema.indexes:
                schema = self._core.catalog.find(each.staged)
                if schema is None:
                    raise TransientError(f'map "{each.name}" was dropped while it was restored')
                taken = {i.name for other in self._core.catalog.maps for i in other.indexes}
                definition = replace(index, name=_free(index.name, taken), index_id=0, ready=False)
                statement = CreateIndexStatement(schema, definition, exists=False)
                await self._indexes.create(statement, task.check)

    # --- what is left over --------------------------------------------------------------------

    async def _drop(self, restore: str) -> None:
        await self._sweep(lambda _, found: found == restore)

    def on_view(self, _before: View, _view: View) -> None:
        """The lowest member drops what those that were lost have left."""
        self._look_for_left()

    def begin(self) -> None:
        """At the start: the remains of an earlier member of the same number."""
        self._begun = True
        self._look_for_left()

    def _is_left(self, member: int, restore: str) -> bool:
        core = self._core
        if member == core.number:
            return restore not in self._running
        return core.coordinator == core.number and member not in core.view.by_number

    def _look_for_left(self) -> None:
        """Also when the catalog has changed: the edit that makes the maps may be on its way when
        its restore fails, or its member is lost, and appear afterwards."""
        staged = filter(is_staged, self._core.catalog.maps)
        if (
            self._begun
            and not self._sweeping
            and any(self._is_left(*restore_of(s)) for s in staged)
        ):
            self._sweeping = True
            self._core.spawn(self._sweep_left(), "staged maps")

    async def _sweep_left(self) -> None:
        try:
            await self._sweep(self._is_left)
        finally:
            self._sweeping = False

    async def _sweep(self, given_up: Callable[[int, str], bool]) -> None:
        """Drop staged maps, however long it takes."""

        def edits(catalog: Catalog) -> list[Edit]:
            return [
                DropMap(schema.name)
                for schema in catalog.maps
                if is_staged(schema) and given_up(*restore_of(schema))
            ]

        while edits(self._core.catalog) and not self._core.stopping:
            try:
                await self._edit(edits)
            except RemudaError as error:
                log.warning("staged maps are left", extra=fields(error=error.message))
                await asyncio.sleep(SWEEP_PAUSE)


def _is_at_rest(state: control_pb2.SystemState, view: View) -> bool:
    gauges = {gauge.name: gauge.value for gauge in state.gauges}
    return state.context.view == view.number and not gauges["promoting"]


async def _together(works: Sequence[Awaitable[None]]) -> None:
    """Until all have ended; when one raises, the others are cancelled first."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _fresh(schema: MapSchema) -> MapSchema:
    """As a new map: the catalog gives ids; indexes and foreign keys come later."""
    return replace(schema, map_id=0, version=1, indexes=(), foreign_keys=(), children=())


def _free(name: str, taken: set[str]) -> str:
    """The name of an index that is free: names of indexes are those of the whole cluster."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
