"""The stores of a member as its log makes them: an image, and every record behind it, applied in
the order in which the changes were made. Rows of copies that a later record of the
log gives up are left out (``VoidCopies``), so a replay takes time in proportion to the log.

The stores of a map are one store here: the view that comes later tells which partitions the member
serves and which it backs up. Parts and jobs that are prepared and not ended remain. The ends of
parts are remembered while others may ask about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.datatypes.conformance import of_keys
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER, expiry
from remuda.errors import DataCorrupted, RemudaError, UnknownFormat
from remuda.limits import PARTITIONS
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.snapshot.catalog import decode_catalog as read_state
from remuda.snapshot.log_rows import Packings, decode_batches
from remuda.storage.chunks.layout import Layout
from remuda.storage.format import records as log
from remuda.storage.log.reader import Entry
from remuda.storage.log.void_copies import VoidCopies
from remuda.storage.maps import transfer
from remuda.storage.maps.map_store import MapStore
from remuda.storage.staging.row_ends import ends_of, with_ends, without_ends

TASK = "replayed"
Staged = log.StagedRows | log.StagedKeys


def decode_catalog(state: bytes) -> Catalog:
    return read_state(control_pb2.CatalogState.FromString(state))


def former_schemas(state: bytes) -> list[MapSchema]:
    """The earlier versions of its maps that a state of the catalog names."""
    message = control_pb2.CatalogState.FromString(state)
    return [codec.decode_schema(schema) for schema in message.former_maps]


class OpenParts:
    """Parts that are prepared and not ended."""

    def __init__(self) -> None:
        self._by_partition: dict[int, dict[log.PartId, log.Prepared]] = {}

    def add(self, prepared: log.Prepared) -> None:
        self._by_partition.setdefault(prepared.part.partition, {})[prepared.part] = prepared

    def get(self, part: log.PartId) -> log.Prepared | None:
        return self._by_partition.get(part.partition, {}).get(part)

    def pop(self, part: log.PartId) -> log.Prepared | None:
        """The part has ended; None: it was not prepared here."""
        return self._by_partition.get(part.partition, {}).pop(part, None)

    def drop(self, place: int) -> None:
        """A copy is void. Only those of partitions have parts: from ``PARTITIONS`` on, the place of
        a copy is a replicated map, and the partition of a part is a member."""
        if place < PARTITIONS:
            self._by_partition.pop(place, None)

    def clear(self) -> None:
        self._by_partition.clear()

    def __iter__(self) -> Iterator[log.Prepared]:
        return chain.from_iterable(parts.values() for parts in self._by_partition.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_partition.values()))


@dataclass
class Restored:
    """A member's data, as far as its log goes."""

    catalog: Catalog = field(default_factory=Catalog)
    catalog_state: bytes = b""
    stores: dict[int, MapStore] = field(default_factory=dict)
    packings: Packings = field(default_factory=Packings)
    parts: OpenParts = field(default_factory=OpenParts)
    jobs: dict[str, log.JobPrepared] = field(default_factory=dict)
    """Prepared and not ended."""
    staged: dict[str, list[Staged]] = field(default_factory=dict)
    ends: dict[log.PartId, int | None] = field(default_factory=dict)
    """Of parts of several partitions: commit timestamps; None: rolled back."""
    job_ends: dict[str, int] = field(default_factory=dict)
    floors: dict[int, int] = field(default_factory=dict)
    """By map id: of maps whose changes are kept, since when they are here."""
    clock: int = 0
    replicated: bool = False
    """It has whole copies of the replicated maps."""
    left: set[int] = field(default_factory=set)
    """Partitions that were given up and have not come again, whatever the last view says: the
    member may have ended between its log and its folder."""
    heard: tuple[log.HeardLog, ...] = ()
    """The last notes about the logs of others."""
    checkpoint: int = 0
    sequence: int = 0
    """Where the image ends."""
    rows: int = 0
    """That were applied."""
    void: VoidCopies = field(default_factory=VoidCopies)
    """Rows of these copies are not applied."""


def replay(made: Restored, entries: Iterable[Entry]) -> None:
    """Apply the log. Raises DataCorrupted with the record that cannot be applied."""
    for entry in entries:
        try:
            if entry.sequence < made.sequence:
                _note_earlier(made, entry.record)
            else:
                _apply(made, entry.sequence, entry.record)
        except (DataCorrupted, UnknownFormat):
            raise
        except RemudaError as error:
            raise DataCorrupted(
                f"record {entry.sequence} of the log cannot be applied: {error.message}",
                detail=str(entry.record),
            ) from error


def _note_earlier(made: Restored, record: log.Record) -> None:
    """The image has the committed writes; open ones are still to come."""
    match record:
        case (
            log.Prepared()
            | log.StagedRows()
            | log.StagedKeys()
            | log.JobPrepared()
            | log.LogsHeard()
        ):
            _note(made, record)
        case log.Committed(part=part) | log.RolledBack(part=part):
            made.parts.pop(part)
        case log.JobCommitted(job=job) | log.JobRolledBack(job=job):
            made.jobs.pop(job, None)
            made.staged.pop(job, None)
        case log.PartitionTaken(partition=partition) | log.PartitionLeft(partition=partition):
            made.parts.drop(partition)
        case log.CatalogChanged(edits=state):
            made.packings.learn(former_schemas(state))
            made.packings.learn(decode_catalog(state).maps)
        case _:
            pass


def _note(made: Restored, record: log.Record) -> None:
    match record:
        case log.Prepared(timestamp=timestamp):
            made.parts.add(record)
            made.clock = max(made.clock, timestamp)
        case log.StagedRows(job=job) | log.StagedKeys(job=job):
            made.staged.setdefault(job, []).append(record)
        case log.JobPrepared(job=job, timestamp=timestamp):
            made.jobs[job] = record
            made.clock = max(made.clock, timestamp)
        case log.LogsHeard(logs):
            made.heard = logs
        case _:
            raise AssertionError(f"{record} is handled elsewhere")


def _apply(made: Restored, sequence: int, record: log.Record) -> None:
    match record:
        case log.Committed():
            commit_part(made, record, sequence)
        case log.RolledBack(part=part):
            prepared = made.parts.pop(part)
            if prepared is not None and len(prepared.partitions) > 1:
                made.ends[part] = None
        case log.JobCommitted(job=job, timestamp=timestamp):
            commit_job(made, job, timestamp, sequence)
        case log.JobRolledBack(job=job):
            drop_job(made, job)
        case log.CatalogChanged(edits=state, timestamp=timestamp):
            made.clock = max(made.clock, timestamp)
            take_catalog(made, state)
        case log.PartitionTaken(partition=partition, timestamp=timestamp):
            made.clock = max(made.clock, timestamp)
            made.left.discard(partition)
            made.parts.drop(partition)
        case log.PartitionLeft(partition=partition):
            made.left.add(partition)
            made.parts.drop(partition)
        case log.PartitionReady(partition=partition):
            made.left.discard(partition)
            made.replicated = made.replicated or partition == PARTITIONS
        case log.CopiedRows():
            _take_copies(made, record, sequence)
        case log.Closed(timestamp) | log.Stopped(timestamp) | log.Checkpoint(timestamp=timestamp):
            made.clock = max(made.clock, timestamp)
        case log.CutStart(timestamp=timestamp):
            made.clock = max(made.clock, timestamp)
        case log.CutFinish():
            pass
        case _:
            _note(made, record)


# --- parts ----------------------------------------------------------------------------------------


def commit_part(made: Restored, record: log.Committed, sequence: int = FOREVER) -> None:
    """Apply the writes of a part. ``sequence``: where the log commits it; writes that a later
    record voids are left out."""
    prepared = made.parts.pop(record.part)
    made.clock = max(made.clock, record.timestamp)
    if len(record.partitions) > 1:
        made.ends[record.part] = record.timestamp
    changes = record.changes
    if changes is None:
        if prepared is None:
            raise DataCorrupted(f"{record.part} commits, and was not prepared in the log")
        changes = prepared.changes
    for change in changes:
        store = made.stores.get(change.map_id)  # None: the map was dropped later
        if store is not None and not made.void.row_is_void(
            store.schema, record.part.partition, sequence
        ):
            _change(made, store, change, record.timestamp)


def _change(made: Restored, store: MapStore, change: log.Change, timestamp: int) -> None:
    found = made.packings.write(change)
    if found is None:
        raise DataCorrupted(
            f'a row of map "{store.schema.name}" is of version {change.schema_version} of it, which'
            " the log does not tell"
        )
    schema, write = found
    made.rows += 1
    at = max(timestamp, store.floor)  # as when it was applied first
    if write.row is None:
        store.discard(write.key, at)
        return
    row = write.row
    if schema.version != store.schema.version:
        row = Layout(schema, store.schema).row(row)
    until = expiry(timestamp, write.ttl or 0)
    if until > at:
        store.set(row, at, until)
    else:
        store.discard(write.key, at)


# --- jobs -----------------------------------------------------------------------------------------


def commit_job(made: Restored, job: str, timestamp: int, sequence: int = FOREVER) -> None:
    """Apply the rows of its accepted tasks. ``sequence``: as for ``commit_part``."""
    prepared, staged = made.jobs.pop(job, None), made.staged.pop(job, [])
    made.clock = max(made.clock, timestamp)
    made.job_ends[job] = timestamp
    store = None if prepared is None else made.stores.get(prepared.map_id)
    if prepared is None or store is None:
        return  # only the coordinator's word, or the map was dropped
    accepted = [each for each in staged if each.task in prepared.tasks]
    for number, each in enumerate(accepted):
        if isinstance(each, log.StagedKeys):
            for keys in decode_batches(each.keys)[0]:
                whole = _kept(made, of_keys(keys.columns, store.schema), store, sequence)
                store.stage_removals(job, TASK, number, whole)
                made.rows += whole.num_rows
        else:
            for batch in decode_batches(each.rows)[0]:
                rows = _of_now(made, batch, store, each.schema_version)
                rows = _kept(made, rows, store, sequence)
                store.stage(job, TASK, number, rows)
                made.rows += rows.num_rows
    store.prepare(job, (TASK,), overwrite=prepared.overwrite, insert_only=False, ttl=prepared.ttl)
    store.mark_prepared(job, timestamp)
    store.resolve(job, timestamp)


def _kept(made: Restored, batch: pa.RecordBatch, store: MapStore, sequence: int) -> pa.RecordBatch:
    """The rows that no record after ``sequence`` voids."""
    kept = made.void.kept(store.schema, batch, sequence)
    return batch if kept is None else batch.filter(pa.array(kept))


def drop_job(made: Restored, job: str) -> None:
    made.jobs.pop(job, None)
    made.staged.pop(job, None)


def _of_now(made: Restored, batch: pa.RecordBatch, store: MapStore, version: int) -> pa.RecordBatch:
    if version == store.schema.version:
        return batch
    packing = made.packings.of(store.schema.map_id, version)
    if packing is None:
        raise DataCorrupted(
            f'rows of map "{store.schema.name}" are of version {version} of it, which the log does'
            " not tell"
        )
    layout, columns = Layout(packing.schema, store.schema), len(packing.schema.columns)
    rows = layout.batch(without_ends(batch, columns), range(len(store.schema.columns)))
    return with_ends(rows, ends_of([batch], columns))


# --- catalog and copies ---------------------------------------------------------------------------


def take_catalog(made: Restored, state: bytes) -> None:
    if not state:
        return
    catalog = decode_catalog(state)
    if catalog.version < made.catalog.version:
        return
    made.catalog, made.catalog_state = catalog, state
    made.packings.learn(former_schemas(state))
    made.packings.learn(catalog.maps)
    for map_id in [map_id for map_id in made.stores if catalog.find_id(map_id) is None]:
        del made.stores[map_id]
    for schema in catalog.maps:
        _take_schema(made, schema)


def _take_schema(made: Restored, schema: MapSchema) -> None:
    store = made.stores.get(schema.map_id)
    if store is None:
        made.stores[schema.map_id] = MapStore(schema)
    elif store.schema.version < schema.version:
        store.alter(schema)
    elif store.schema != schema:
        store.define_indexes(schema)


def _take_copies(made: Restored, record: log.CopiedRows, sequence: int) -> None:
    store = made.stores.get(record.map_id)
    if store is None:
        return
    batches, (low, floor) = decode_batches(record.rows)
    store.raise_floor(floor)
    for batch in batches:
        packing = made.packings.of(record.map_id, record.schema_version)
        if packing is None:
            raise DataCorrupted(f"copied rows are of an unknown version of map {record.map_id}")
        versions = transfer.from_wire(batch, packing.schema)
        columns = _of_now(made, versions.batch, store, record.schema_version)
        versions = transfer.Versions(store.schema, columns, versions.begins, versions.ends)
        kept = made.void.kept(store.schema, columns, sequence)
        if kept is not None:
            versions = versions.where(kept)
        fresh, ended = transfer.split(versions, low)
        if ended is not None:
            store.end_versions(store.arrival([ended]), low)
        if fresh is not None:
            store.install(store.arrival([fresh]))
            made.rows += fresh.rows
