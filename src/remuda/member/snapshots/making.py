"""CREATE SNAPSHOT: a base of all maps at one timestamp, while transactions run.

The member that runs the statement chooses a timestamp T above the clocks of all others (design rule
15), keeps every member from collecting versions that T needs, and asks each primary for its rows at
T, one object after the other, with rests between. The manifest is written last. Nothing waits for
the snapshot, and the snapshot waits only for writes that were prepared at or below T.

Another view, a lost member or an altered map in between ends the attempt: its objects are taken
away, and another one begins.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    DuplicateObject,
    InputError,
    PartitionsLost,
    RemudaError,
    ResourceError,
    TransientError,
    ViewChanged,
)
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.membership.membership import Membership
from remuda.member.snapshots.cuts import Cut, Cuts, all_keep_logs
from remuda.member.snapshots.increment_counts import changed_maps
from remuda.member.snapshots.rows import SnapshotRows
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.member.snapshots.tasks import SnapshotTask
from remuda.member.state.log import fields
from remuda.member.system.system_state import SystemState
from remuda.rpc.messages import control_pb2
from remuda.snapshot.catalog import catalog_text, read_catalog
from remuda.storage.format.manifest import DataObject, Manifest, MapEntry, MemberLog
from remuda.storage.snapshot import writing
from remuda.storage.snapshot.object_store import ObjectStore, check_name
from remuda.storage.snapshot.trunk import Trunk, extended, trunk_of

log = logging.getLogger(__name__)

ATTEMPTS = 10
PAUSE = 0.5
"""Seconds before the second attempt, and so much more before each further one."""
OBJECT_ROWS = 512 * 1024
"""About, of one object: a group of partitions."""
OBJECT_BYTES = 64 * 1024 * 1024
THROTTLE = 0.25
"""Seconds of rest for each second that a member has worked."""


@dataclass(frozen=True)
class Piece:
    """An object to be made by ``member``."""

    member: int
    schema: MapSchema
    group: int
    partitions: tuple[int, ...]


class SnapshotMaking:
    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        membership: Membership,
        state: SystemState,
        storage: SnapshotStorage,
        rows: SnapshotRows,
        cuts: Cuts,
    ) -> None:
        self._core = core
        self._membership = membership
        self._state = state
        self._storage = storage
        self._rows = rows
        self._cuts = cuts
        self._trunk: Trunk | None = None
        """Of the last snapshot that was made here."""

    async def create(self, task: SnapshotTask) -> Manifest:
        """Raises InputError for the name, what the store raises, and TransientError when every
        attempt has failed."""
        check_name(task.snapshot)
        for attempt in range(1, ATTEMPTS + 1):
            task.attempt = attempt
            task.check()
            try:
                return await self._attempt(task)
            except PartitionsLost:
                raise
            except TransientError as error:
                task.check()
                log.info(
                    "snapshot: the attempt failed",
                    extra=fields(snapshot=task.snapshot, attempt=attempt, cause=error.message),
                )
                if attempt == ATTEMPTS:
                    raise TransientError(
                        f"snapshot {task.snapshot} could not be made in {ATTEMPTS} attempts",
                        detail=f"the last one failed: {error.message}",
                        hint="Nothing is left of it. Try again when the cluster is at rest.",
                    ) from error
            finally:
                task.reads_at = None
            await asyncio.sleep(PAUSE * attempt)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, task: SnapshotTask) -> Manifest:
        core, name = self._core, task.snapshot
        core.require_all_alive()
        await core.until_ready()
        view = core.view
        clocks = await self._cuts.clocks()
        floor = max([task.cut, *(answer.version for answer in clocks.values())])
        now = core.world.clock.wall_micros()
        before, decided = self._trunk, core.catalog.decided
        known, version = await self._storage.work(
            lambda store, _: _begin(store, name, floor, now, before)
        )
        task.cut = version
        try:
            if all_keep_logs(clocks):
                manifest = await self._with_logs(task, clocks, known)
            else:
                self._refuse_increment(task)
                manifest = await self._base(task, await self._timestamp(task))
            if core.view.number != view.number:
                raise ViewChanged("the members changed while a snapshot was made")
            if core.catalog.decided != decided:
                # The rows of its tables may be above the timestamp, and the tables in the manifest.
                raise TransientError(
                    "a transaction with definitions has committed while a snapshot was made"
                )
            task.check()
            manifest, digest = await self._storage.work(
                lambda store, key: _finish(
                    store, manifest if key is None else replace(manifest, key=key.id)
                )
            )
        except BaseException:
            await asyncio.shield(self._abandon(name, version))
            raise
        self._trunk = extended(known, manifest, digest)
        log.info(
            "snapshot made",
            extra=fields(
                snapshot=name, cut=version, rows=task.rows, bytes=task.bytes, note=task.note
            ),
        )
        return manifest

    def _refuse_increment(self, task: SnapshotTask) -> None:
        if task.increment:
            raise InputError(
                "an increment needs the logs of all members, and not every one keeps one",
                hint="Start the members with the setting data_dir, or make a base: CREATE SNAPSHOT"
                f" {task.snapshot}.",
            )

    async def _with_logs(
        self, task: SnapshotTask, clocks: dict[int, control_pb2.CutClock], known: Trunk | None
    ) -> Manifest:
        """A cut, and then its increment, or a base at its timestamp."""
        task.reads_at = min(answer.clock for answer in clocks.values())
        cut = await self._cuts.take(task.cut, clocks)
        task.reads_at = cut.timestamp
        catalog = self._up_to_date(cut.catalog_version)
        logs = self._logs(cut)
        task.note = ""
        parent = self._parent(known, cut, catalog) if task.increment else ""
        if isinstance(parent, str):
            task.note = parent
            return replace(await self._base(task, cut.timestamp), logs=logs, cluster=cut.cluster)
        assert known is not None
        task.begin(len(logs))
        try:
            stored = await self._cuts.store(parent, cut, logs)
        except InputError as error:  # a log does not reach back: what was restorable must stay so
            task.note = _gap_behind(parent, str(error))
            await self._storage.work(
                lambda store, _: writing.remove_spare_segments(store, task.snapshot, task.cut)
            )
            return replace(await self._base(task, cut.timestamp), logs=logs, cluster=cut.cluster)
        for part in stored.values():
            rows = sum(tally.put for tally in (part.changes or {}).values())
            task.done(rows, sum(each.size for each in part.segments))
        manifest = self._manifest(task.snapshot, task.cut, cut.timestamp, catalog, [])
        return replace(
            manifest,
            maps=(),
            logs=tuple(replace(each, segments=stored[each.member].segments) for each in logs),
            cluster=cut.cluster,
            is_base=False,
            parent=parent.version,
            parent_sha256=known.digest,
            changes=changed_maps(catalog.shown, [part.changes for part in stored.values()]),
        )

    def _logs(self, cut: Cut) -> tuple[MemberLog, ...]:
        """One log speaks for the replicated maps: that of the lowest member."""
        view, first = self._core.view, min(each.member for each in cut.members)
        return tuple(
            MemberLog(
                each.member,
                each.identity,
                (
                    *view.partitions_of(each.member),
                    *([PARTITIONS + each.member] if each.member == first else []),
                ),
                each.start,
                each.finish,
                each.needs,
            )
            for each in cut.members
        )

    def _up_to_date(self, version: int) -> Catalog:
        """The catalog here, which a manifest may name if ``version`` is the newest one under which
        any member may have written at or below its timestamp. Raises TransientError."""
        catalog = self._core.catalog
        if catalog.version < version:
            raise TransientError(
                f"a change of the catalog (version {version}) was on its way to member"
                f" {self._core.number}"
            )
        return catalog

    def _parent(self, known: Trunk | None, cut: Cut, catalog: Catalog) -> Manifest | str:
        """The cut that an increment can rest on, or why a base is due. Partitions must not have
        moved since, nor may maps have been altered: the log has rows as they were."""
        if known is None:
            return "it is the first cut"
        parent = known.manifest
        if known.problem:
            return _gap_behind(parent, f"cut {parent.version} cannot be restored")
        if not parent.logs:
            return _gap_behind(parent, f"the members kept no logs at cut {parent.version}")
        same_logs = {(log.member, log.identity) for log in parent.logs} == {
            (each.member, each.identity) for each in cut.members
        }
        same_view = parent.view == self._core.view.number and parent.cluster == cut.cluster
        if not (same_logs and same_view):
            return _gap_behind(
                parent,
                f"members have come or gone, or partitions have moved, since cut {parent.version}",
            )
        before = {schema.map_id: schema.version for schema in read_catalog(parent.catalog).maps}
        for schema in catalog.shown.maps:
            if before.get(schema.map_id, 1) != schema.version:
                return _gap_behind(
                    parent, f'map "{schema.name}" was altered since cut {parent.version}'
                )
        return parent

    async def _base(self, task: SnapshotTask, timestamp: int) -> Manifest:
        states = await self._state.all()
        # It has every map that has rows at T.
        catalog = self._up_to_date(max(each.catalog_version for each in states.values()))
        pieces = self._pieces(catalog, _sizes(states))
        task.begin(len(pieces))
        data = await self._write_all(task, pieces, timestamp)
        return self._manifest(task.snapshot, task.cut, timestamp, catalog, data)

    async def _abandon(self, name: str, version: int) -> None:
        """What cannot be taken away now has no manifest, and goes with the next EXPIRE or DROP."""
        try:
            await self._storage.work(lambda store, _: writing.abandon(store, name, version))
        except RemudaError as error:
            log.warning(
                "objects of a failed snapshot are left",
                extra=fields(snapshot=name, cut=version, error=error.message),
            )

    async def _timestamp(self, task: SnapshotTask) -> int:
        core = self._core
        # From now on versions are kept here; the others hear of it within a second or two, and keep
        # those of the last ten seconds anyway.
        task.reads_at = core.timestamp()
        others = tuple(number for number in core.live_members() if number != core.number)
        if others:
            await self._membership.clocks(others)
        timestamp = task.reads_at = core.timestamp()
        core.require_lease()
        return timestamp

    def _pieces(
        self, catalog: Catalog, sizes: dict[tuple[int, int], tuple[int, int]]
    ) -> list[Piece]:
        view = self._core.view
        found: list[Piece] = []
        for schema in catalog.shown.maps:
            if schema.replicated:
                found.append(Piece(self._core.number, schema, 0, tuple(range(PARTITIONS))))
                continue
            for member in view.primaries:
                partitions = view.partitions_of(member)
                rows, size = sizes.get((member, schema.map_id), (0, 0))
                count = max(1, rows // OBJECT_ROWS, size // OBJECT_BYTES)
                each = -(-len(partitions) // min(count, len(partitions)))
                for start in range(0, len(partitions), each):
                    group = partitions[start : start + each]
                    found.append(Piece(member, schema, group[0], group))
        return found

    async def _write_all(
        self, task: SnapshotTask, pieces: Sequence[Piece], timestamp: int
    ) -> list[DataObject]:
        """Each member makes one object at a time, all members at once."""
        members = sorted({piece.member for piece in pieces})
        works = [
            asyncio.ensure_future(
                self._write_member(task, [p for p in pieces if p.member == member], timestamp)
            )
            for member in members
        ]
        try:
            found = await asyncio.gather(*works)
        finally:
            for work in works:
                work.cancel()
            # What still runs must not put objects after they have been taken away.
            await asyncio.gather(*works, return_exceptions=True)
        return [each for part in found for each in part]

    async def _write_member(
        self, task: SnapshotTask, pieces: Sequence[Piece], timestamp: int
    ) -> list[DataObject]:
        found: list[DataObject] = []
        clock = self._core.world.clock
        for piece in pieces:
            task.check()
            began = clock.monotonic()
            message = control_pb2.SnapshotWrite(
                context=self._core.context(),
                snapshot=task.snapshot,
                cut=task.cut,
                map_id=piece.schema.map_id,
                schema_version=piece.schema.version,
                group=piece.group,
                partitions=piece.partitions,
                at=timestamp,
            )
            made = await self._rows.write(piece.member, message)
            task.done(made.rows, made.size)
            if made.key:
                found.append(_data_object(made, piece))
            await asyncio.sleep(min((clock.monotonic() - began) * THROTTLE, 1.0))
        return found

    def _manifest(
        self, name: str, version: int, timestamp: int, catalog: Catalog, data: list[DataObject]
    ) -> Manifest:
        core = self._core
        rows = {schema.map_id: 0 for schema in catalog.shown.maps}
        for each in data:
            rows[each.map_id] += each.rows
        return Manifest(
            name=name,
            version=version,
            timestamp=timestamp,
            created=core.world.clock.wall_micros(),
            cluster=hashlib.sha256(core.config.cluster.encode()).hexdigest()[:32],
            view=core.view.number,
            catalog=catalog_text(catalog, core.former_schemas.lately(catalog.shown.maps)),
            logs=(),
            maps=tuple(MapEntry(s.map_id, s.name, rows[s.map_id]) for s in catalog.shown.maps),
            data=tuple(sorted(data, key=lambda each: each.key)),
            is_base=True,
        )


def _gap_behind(parent: Manifest, why: str) -> str:
    return (
        f"{why}; moments between cut {parent.version} and this one may be a gap"
        " (sys.restorable tells)"
    )


def _sizes(
    states: Mapping[int, control_pb2.SystemState],
) -> dict[tuple[int, int], tuple[int, int]]:
    """Rows and bytes by member and map, about."""
    return {
        (number, part.map_id): (part.rows, part.bytes)
        for number, state in states.items()
        for part in state.maps
    }


def _data_object(made: control_pb2.SnapshotWritten, piece: Piece) -> DataObject:
    schema = piece.schema
    return DataObject(
        made.key,
        made.sha256,
        made.size,
        made.rows,
        schema.map_id,
        schema.version,
        piece.partitions,
    )


def _begin(
    store: ObjectStore, name: str, highest: int, now: int, before: Trunk | None
) -> tuple[Trunk | None, int]:
    """What there is, and the number of the new cut, which is noted as begun. It is above all that
    were tried: a member may still be putting an object of an attempt that was given up. Raises
    TransientError when another maker of the snapshot has just taken the number."""
    known, tried = trunk_of(store, name, before)
    version = max(tried, highest) + 1
    try:
        writing.begin(store, name, version, now)
    except DuplicateObject as error:
        raise TransientError(
            f"another statement has begun cut {version} of snapshot {name}", detail=error.message
        ) from error
    return known, version


def _finish(store: ObjectStore, manifest: Manifest) -> tuple[Manifest, str]:
    """With the SHA-256 of the manifest. Raises ResourceError when objects that members have made
    are not there."""
    folder = writing.data_folder(manifest.name, manifest.version)
    there = set(store.keys(folder)) if manifest.data else set()
    missing = sorted(each.key for each in manifest.data if each.key not in there)
    if missing:
        raise ResourceError(
            f"object {missing[0]} of the snapshot is not in the store",
            detail=f"{len(missing)} of {len(manifest.data)} objects are missing",
            hint="All members must have the same folder as their snapshot_store.",
        )
    return manifest, writing.finish(store, manifest)
