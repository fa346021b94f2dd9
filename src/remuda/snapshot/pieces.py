"""A cut in pieces that can be worked on apart from each other, wherever the store can be reached:
an object of its base, or, behind increments, some partitions of one member's log. Blocking.

All pieces together have the rows that a restore of the cut would have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    DataCorrupted,
    DuplicateObject,
    InputError,
    ResourceError,
    UndefinedMap,
)
from remuda.limits import PARTITIONS
from remuda.rpc.messages import control_pb2
from remuda.snapshot.catalog import read_catalog
from remuda.snapshot.replay import partitions_of, stores_of
from remuda.snapshot.rows import read_rows, write_rows
from remuda.sql.text.suggest import did_you_mean
from remuda.storage.format.manifest import DataObject, Manifest, MapEntry, MemberLog
from remuda.storage.format.rows_object import decode_rows
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, EVERY_PARTITION
from remuda.storage.snapshot import writing
from remuda.storage.snapshot.chain import Chain, load, load_if_there
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import RestorePlan, fetch

GROUPS_PER_ATTEMPT: Final = 1000
"""Numbers of objects of one attempt at a piece: another attempt has others."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Either an object of the base, or ``partitions`` of the log ``identity``."""

    object: DataObject | None = None
    identity: str = ""
    partitions: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.object is not None:
            return f"object {self.object.key}"
        return f"{len(self.partitions)} partitions of log {self.identity}"


def catalog_of(path: RestorePlan) -> Catalog:
    """The catalog of the cut as users see it. Raises DataCorrupted."""
    return read_catalog(path.catalog).shown


def chosen_maps(path: RestorePlan, names: Collection[str] | None) -> list[MapSchema]:
    """The maps of these names, or all. Raises UndefinedMap."""
    maps = {schema.name: schema for schema in catalog_of(path).maps}
    for name in names or ():
        if name not in maps:
            cut = path.cut
            raise UndefinedMap(
                f'cut {cut.version} of snapshot {cut.name} has no map "{name}"',
                hint=did_you_mean(name, list(maps)),
            )
    return [schema for name, schema in sorted(maps.items()) if names is None or name in names]


def pieces_of(path: RestorePlan, maps: Collection[int], count: int) -> list[Piece]:
    """About ``count`` of them, or one for each object of a base."""
    if not path.from_logs:
        return [Piece(object=each) for each in path.base.data if each.map_id in maps]
    logs = path.cut.logs
    found: list[Piece] = []
    for log in logs:
        places = log.partitions
        size = max(1, -(-len(places) // max(1, -(-count // len(logs)))))
        found += [
            Piece(identity=log.identity, partitions=places[start : start + size])
            for start in range(0, len(places), size)
        ]
    return found


# --- reading --------------------------------------------------------------------------------------


def rows_of(
    store: ObjectStore,
    key: ObjectKey | None,
    path: RestorePlan,
    piece: Piece,
    maps: Sequence[MapSchema],
) -> Iterator[tuple[MapSchema, pa.RecordBatch]]:
    """The rows of the wanted maps in a piece, in the engine's form. Raises DataCorrupted."""
    if piece.object is not None:
        for schema in maps:
            if schema.map_id == piece.object.map_id:
                for rows in read_rows(store, key, piece.object, schema):
                    yield schema, rows.batch
        return
    log = _log_of(path, piece)
    held = stores_of(store, key, path, log, {schema.map_id for schema in maps})
    moment = path.target.moment
    for schema in maps:
        if schema.map_id in held:
            partitions = EVERY_PARTITION if schema.replicated else partitions_of(log)
            for versions in held[schema.map_id].extraction(partitions, ALWAYS, moment).versions():
                there = versions.ends > moment
                if there.any():
                    yield schema, versions.batch.filter(pa.array(there))


def _log_of(path: RestorePlan, piece: Piece) -> MemberLog:
    log = path.cut.log_of(piece.identity)
    if log is None:
        raise DataCorrupted(f"cut {path.cut.version} has no log {piece.identity}")
    return replace(log, partitions=piece.partitions)


# --- a new base -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewBase:
    """Where the rows of a cut become a base: cut ``version`` of snapshot ``name``."""

    name: str
    version: int


def begin_base(
    store: ObjectStore, chain: Chain, path: RestorePlan, into: str, now: int = 0
) -> NewBase:
    """Claim a cut of snapshot ``into``; ``now`` in microseconds since 1970. The same snapshot gets
    a base at the end of its chain, on which further increments rest; so nobody else may be adding a
    cut, and ``path`` must lead to the last one. Raises InputError, DuplicateObject."""
    if into != chain.name:
        known, tried = load_if_there(store, into)
        if known is not None:
            raise DuplicateObject(
                f"there is a snapshot {into} already",
                hint="Name a new one, or compact the snapshot in its own place.",
            )
        version = max(path.cut.version, tried + 1)
        writing.begin(store, into, version, now)
        return NewBase(into, version)
    last = max(chain.manifests)
    at_cut = path.archived is None and path.target.moment == path.cut.timestamp
    if path.cut.version != last or not at_cut:
        raise InputError(
            f"only the last cut of snapshot {into} can become a base in its place: cut {last}",
            hint="Compact into a snapshot of another name.",
        )
    if not path.from_logs:
        raise InputError(
            f"cut {path.cut.version} of snapshot {into} is a base already: there is nothing to do"
        )
    made = NewBase(into, chain.highest + 1)
    _refuse_others(chain, made)
    writing.begin(store, into, made.version, now)
    try:
        _refuse_others(load(store, into), made)
    except BaseException:
        writing.abandon(store, into, made.version)
        raise
    return made


def _refuse_others(chain: Chain, made: NewBase) -> None:
    """A cut that is later in time must not get an earlier number."""
    others = [version for version in chain.pending() if version < made.version]
    newer = [version for version in chain.manifests if version >= made.version]
    if others or newer:
        first = min([*others, *newer])
        raise InputError(
            f"cut {first} of snapshot {made.name} is being made",
            hint="Compact when it is there, or into a snapshot of another name. If who made it was"
            f" killed: DROP SNAPSHOT {made.name} CUT {first}.",
        )


@dataclass(frozen=True, slots=True)
class BaseWriter:
    """Writes the objects of pieces. ``attempt``: another number for each time that a piece is
    tried."""

    store: ObjectStore
    key: ObjectKey | None
    path: RestorePlan
    made: NewBase
    attempt: int

    def write(self, piece: Piece) -> list[DataObject]:
        """Raises DataCorrupted, DuplicateObject."""
        if piece.object is not None:
            return [self._copied(piece.object)]
        log = _log_of(self.path, piece)
        schemas = {schema.map_id: schema for schema in catalog_of(self.path).maps}
        held = stores_of(self.store, self.key, self.path, log, schemas.keys())
        found = [self._written(schemas[map_id], each, log) for map_id, each in sorted(held.items())]
        return [each for each in found if each is not None]

    def _copied(self, each: DataObject) -> DataObject:
        table = decode_rows(fetch(self.store, each, self.key))
        return writing.put_rows(
            self.store,
            self.made.name,
            self.made.version,
            map_id=each.map_id,
            schema_version=each.schema_version,
            group=self._group(min(each.partitions)),
            partitions=each.partitions,
            batches=table.to_batches(),
            schema=table.schema,
            key=self.key,
        )

    def _written(self, schema: MapSchema, held: MapStore, log: MemberLog) -> DataObject | None:
        partitions = sorted(range(PARTITIONS) if schema.replicated else partitions_of(log))
        if not partitions:
            return None
        moment = self.path.target.moment
        message = control_pb2.SnapshotWrite(
            snapshot=self.made.name,
            cut=self.made.version,
            map_id=schema.map_id,
            schema_version=schema.version,
            group=self._group(partitions[0]),
            partitions=partitions,
            at=moment,
        )
        wanted = EVERY_PARTITION if schema.replicated else frozenset(partitions)
        extraction = held.extraction(wanted, ALWAYS, moment)
        extraction.later_ends = True
        return write_rows(self.store, self.key, message, extraction)

    def _group(self, first: int) -> int:
        return GROUPS_PER_ATTEMPT * self.attempt + first


def finish_base(
    store: ObjectStore,
    path: RestorePlan,
    made: NewBase,
    objects: Sequence[DataObject],
    *,
    now: int,
    key: ObjectKey | None,
) -> Manifest:
    """Make the new base visible, and take away what attempts that do not count have left. ``now``:
    microseconds since 1970. Raises ResourceError when an object is not there."""
    prefix = f"{made.name}/data-{made.version:0{writing.VERSION_DIGITS}}/"
    there = set(store.keys(prefix))
    named = {each.key for each in objects}
    if named - there:
        raise ResourceError(
            f"object {min(named - there)} of the new base is not in the store",
            hint="All machines of Spark must reach the same store.",
        )
    rows = dict.fromkeys((schema.map_id for schema in catalog_of(path).maps), 0)
    for each in objects:
        rows[each.map_id] += each.rows
    cut, same = path.cut, made.name == path.cut.name
    manifest = Manifest(
        name=made.name,
        version=made.version,
        timestamp=path.target.moment,
        created=now,
        cluster=cut.cluster,
        view=cut.view,
        catalog=path.catalog,
        # What follows in the same snapshot goes on from the cut's place in the logs.
        logs=tuple(replace(log, segments=(), moved=0) for log in cut.logs) if same else (),
        maps=tuple(_entries(path, rows)),
        data=tuple(sorted(objects, key=lambda each: each.key)),
        is_base=True,
        key="" if key is None else key.id,
    )
    writing.finish(store, manifest)
    for spare in there - named:
        store.delete(spare)
    return manifest


def _entries(path: RestorePlan, rows: Mapping[int, int]) -> Iterator[MapEntry]:
    for schema in catalog_of(path).maps:
        yield MapEntry(schema.map_id, schema.name, rows[schema.map_id])
