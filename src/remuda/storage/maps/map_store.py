"""The rows of one map on one member: versioned, columnar, with a key index (design D3, rule 19).

A row version exists from its ``begin`` to its ``end`` timestamp; the versions of one key never
overlap. Writers may come out of timestamp order (a staged job commits at a timestamp below that of
a later put): a version that is placed late ends where the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER, ended_by_write, expiry
from remuda.datatypes.values import array_to_values
from remuda.storage.chunks.chunk import OFFSET_BITS, OFFSET_MASK, Chunk, Row, Times
from remuda.storage.chunks.chunk_table import ChunkTable, RowTimes
from remuda.storage.chunks.closing import close_everything, close_existing
from remuda.storage.chunks.hash_order import hash_order
from remuda.storage.chunks.key_index import (
    DELTA_ENTRIES_MAX,
    NOWHERE,
    RUNS_MAX,
    KeyIndex,
    KeyLookup,
)
from remuda.storage.chunks.keys import Key, KeyRule
from remuda.storage.chunks.readable import ReadableSchemas
from remuda.storage.chunks.scan import ScanCursor, count_shown
from remuda.storage.chunks.upkeep import Upkeep
from remuda.storage.indexes.index_set import IndexSet
from remuda.storage.indexes.secondary_index import Pinned
from remuda.storage.maps import transfer
from remuda.storage.maps.accesses import Accesses
from remuda.storage.maps.counters import MapCounters
from remuda.storage.maps.pinning import Pinning
from remuda.storage.maps.statistics import STALE_SHARE, MapStatistics, take_statistics
from remuda.storage.maps.transfer import ALWAYS, Arrival, Extraction, Versions
from remuda.storage.maps.unique_values import JobValues, offsets_by_chunk
from remuda.storage.staging import late_rows, validation
from remuda.storage.staging.frames import StagedFrames
from remuda.storage.staging.pieces import Counts, by_partition
from remuda.storage.staging.precomputed import Ahead, Work, matches
from remuda.storage.staging.removals import Removals
from remuda.storage.staging.staging import Match, PreparedRows, Staging, arrange

TINY_BATCH_ROWS = 64
"""Bulk batches of up to this many rows are put row by row: no chunk, no run."""


class MapStore:
    """One map on one member. Only the event loop writes, and only it calls anything but:

    * ``get`` and ``scan``, which any thread may call for a timestamp at or below which the map does
      not change any more (nothing is pending there, the clock is past it, upkeep's horizon is not).
      They read what the loop replaces as a whole (``ChunkTable.view``, ``KeyIndex.runs``), see the
      two classes;
    * ``pending_at_or_below``, which any thread may call;
    * the function that ``ahead`` returns.
    """

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema
        self._readable = ReadableSchemas(schema)
        self.rows = 0
        """Rows that nothing has ended: those that end by themselves are counted by ``size``."""
        self.awaited = FOREVER
        """The lowest prepare timestamp of a single write that is not decided yet and lies outside
        of this store; its owner sets it (``pending_at_or_below``)."""
        self._keys = KeyRule(schema)
        self._layouts = self._readable.newest
        self._table = ChunkTable(schema)
        self._index = KeyIndex()
        self.lookup = KeyLookup(self._keys, self._table, self._index)
        self._staging = Staging(schema.name, self._keys)
        self._removals = Removals(self._keys)
        self._upkeep = Upkeep(self._table, self._index, self._keys)
        self.floors = self._upkeep.floors
        self._pinning = Pinning(self._readable, self._table, self._upkeep)
        self.indexes = IndexSet(self._layouts, self._table, self._pinning.pin)
        self.frames = StagedFrames(self._staging, self._removals)
        self._ahead = Ahead(self._keys, self._table, self._index, self._staging, self._removals)
        self.kept_from = FOREVER
        """Upkeep leaves what ended after it: a transfer has told others the state of then."""
        self.resting = 0
        """Upkeep changes nothing while it is not 0: a transfer reads chunks once more."""
        self.mixed_until = 0
        """Below it, rows may be here, too, whose partitions are (or were then) served elsewhere."""
        self.bulk_at = self.taken_over_at = 0
        """When a job wrote unique values, and when this took partitions over: search again then."""
        self.expiring = False
        """Whether there are, or were, rows that end by themselves."""
        self.counted = (0, 0)  # see storage.expiring_rows
        self.counters = MapCounters()
        self.accesses: Accesses | None = None  # see member.map_eviction
        self._latest = self._counted = self.changes = 0  # changes: of rows, here, so far
        self._statistics: MapStatistics | None = None

    @property
    def bytes(self) -> int:
        """Estimated memory: rows of all versions, indexes, staged rows, times of accesses."""
        kept = self._table.nbytes + self._index.nbytes + self.indexes.nbytes + self.frames.nbytes
        return kept if self.accesses is None else kept + self.accesses.nbytes

    # --- the schema ---

    def alter(self, schema: MapSchema) -> None:
        """Take another schema of the map over: rows of it are stored from now on. No stored row is
        touched; reads convert what is older (``storage.chunks.layout``). Jobs that are prepared
        keep the schema that they were staged with.
        """
        self.schema = schema
        self._keys = KeyRule(schema)
        self._staging.keys = self._removals.keys = self._keys
        self._upkeep.keys = self._ahead.keys = self.lookup.keys = self._keys
        self._table.alter(schema)
        self._layouts = self._readable.alter(schema)
        self.indexes.define(self._layouts)
        self._statistics = None

    def define_indexes(self, schema: MapSchema) -> None:
        """Take indexes and options of ``schema`` over, which is the newest one otherwise."""
        self.schema = schema
        self._layouts = self._readable.define_indexes(schema)
        self.indexes.define(self._layouts)

    def reads(self, version: int) -> bool:
        """Whether the map can be read under this version of its schema. Any thread."""
        return self._readable.has(version)

    # --- single rows ---

    def get(self, key: Key, at: int, version: int = 0) -> Row | None:
        """The row of ``key`` that exists at ``at``, in a version of the schema that ``reads``
        allows (0: the newest)."""
        layouts = self._readable.under(version) if version else self._readable.newest
        if at < self.floors.reads:
            raise validation.too_old(self.schema, at, self.floor)
        key_hash = self._keys.hash(key)
        try:
            slot = self.lookup.search(key_hash, key, at)
        except KeyError:  # on another thread: its chunk has been rewritten just now
            slot = self.lookup.locate(key_hash, key, at)
        while slot != NOWHERE:
            chunk = self._table.by_number.get(slot >> OFFSET_BITS)
            if chunk is not None:
                if chunk.schema is layouts.schema:
                    return chunk.row(slot & OFFSET_MASK)
                return layouts.row(chunk, slot & OFFSET_MASK)
            slot = self.lookup.locate(key_hash, key, at)  # rewritten just now
        return None

    def count_reads(self, keys: Sequence[Key], found: Sequence[object | None], at: int) -> None:
        """Somebody has used the entries of ``keys`` at ``at``; ``found``: None where there is
        none. On the loop only."""
        self.counters.get(len(found), found.count(None), at)
        if self.accesses is not None:
            self.accesses.touch_all(keys, found, at)

    def has(self, key: Key, at: int) -> bool:
        """Whether a row of ``key`` exists at ``at``. On the loop only."""
        if at < self.floors.reads:
            raise validation.too_old(self.schema, at, self.floor)
        return self.lookup.search(self._keys.hash(key), key, at) != NOWHERE

    def put(self, row: Row, timestamp: int, until: int = FOREVER) -> Row | None:
        """Insert or replace the row of its key, from then on; returns the replaced row."""
        replaced = self.write(self._keys.of(row), row, timestamp, until)
        return None if replaced is None else self._layouts.row(*replaced)

    def set(self, row: Row, timestamp: int, until: int = FOREVER) -> bool:
        """The same, but only tells whether there was a row (which it costs time to read)."""
        return self.write(self._keys.of(row), row, timestamp, until) is not None

    def write(
        self, key: Key, row: Row, timestamp: int, until: int, partition: int | None = None
    ) -> tuple[Chunk, int] | None:
        """Insert or replace the row of a key; returns where the replaced one is. ``partition`` is
        that of the row, where it is known."""
        keys, index = self._keys, self._index
        key_hash = keys.hash(key)
        end = until
        if timestamp < self._latest:
            slots = index.slots(key_hash)
            end = min(end, late_rows.next_begin(self._table.by_number, slots, keys, key, timestamp))
        else:
            self._latest = timestamp
        slot = self.lookup.search(key_hash, key, timestamp)  # on the loop: no chunk goes meanwhile
        replaced = None
        if slot != NOWHERE:
            chunk = self._table.by_number[slot >> OFFSET_BITS]
            offset = slot & OFFSET_MASK
            replaced = chunk, offset
            ends = chunk.end_view
            old_end = chunk.end if ends is None else ends[offset]
            if old_end == FOREVER:
                self.rows -= 1
            elif old_end < end and ended_by_write(old_end):
                end = old_end
            chunk.close(offset, timestamp)
        if partition is None:
            partition = keys.partition(row, key_hash)
        tail = self._table.tail
        if tail.length == len(tail.partitions):
            self._table.next_tail()
            tail = self._table.tail
        slot = tail.append(row, partition, timestamp)
        if end == FOREVER:
            self.rows += 1
        else:
            tail.close(slot & OFFSET_MASK, end)
            self.expiring = self.expiring or end == until
        if index.delta.setdefault(key_hash, slot) == slot:
            index.delta_entries += 1
        else:
            index.add(key_hash, slot)
        if index.delta_entries > DELTA_ENTRIES_MAX:
            index.freeze()
        self.changes += 1
        return replaced

    def remove(self, key: Key, timestamp: int) -> Row | None:
        """End the row of ``key`` at ``timestamp``; returns it."""
        removed = self._remove(key, timestamp)
        return None if removed is None else self._layouts.row(*removed)

    def discard(self, key: Key, timestamp: int) -> bool:
        """The same, but only tells whether there was a row."""
        return self._remove(key, timestamp) is not None

    def _remove(self, key: Key, timestamp: int) -> tuple[Chunk, int] | None:
        key_hash = self._keys.hash(key)
        self._latest = max(self._latest, timestamp)
        slot = self.lookup.locate(key_hash, key, timestamp)
        if slot == NOWHERE:
            self._staging.note_removal(key_hash, key, timestamp)
            return None
        chunk = self._table.by_number[slot >> OFFSET_BITS]
        offset = slot & OFFSET_MASK
        self.set_end(chunk, offset, timestamp)
        self.changes += 1
        return chunk, offset

    def changed_after(self, key: Key, timestamp: int, now: int) -> bool:
        """Whether a version of ``key`` began or ended after ``timestamp``; of those that end by
        themselves only what ends until ``now``."""
        slots, chunks = self._index.slots(self._keys.hash(key)), self._table.by_number
        back = self.floors.returned
        return validation.key_changed(chunks, slots, self._keys, key, timestamp, now, back)

    def _end_of(self, chunk: Chunk, offset: int) -> int:
        return chunk.end if chunk.end_view is None else chunk.end_view[offset]

    def set_end(self, chunk: Chunk, offset: int, end: int) -> None:
        """Let a row end then, sooner or later than it would (``FOREVER``: never)."""
        self.rows += (end == FOREVER) - (self._end_of(chunk, offset) == FOREVER)
        if end == FOREVER:
            chunk.reopen(offset)
        else:
            chunk.close(offset, end)

    # --- many rows ---

    def upsert_batch(self, batch: pa.RecordBatch, timestamp: int, ttl: int = 0) -> None:
        """Insert or replace the rows of an engine-form batch; of rows with equal keys the last
        counts.

        Raises ``TypeMismatch`` or ``NotNullViolation``, and then stores nothing.
        """
        self._keys.check(batch)
        if batch.num_rows <= TINY_BATCH_ROWS:
            columns = [
                array_to_values(array, column.type)
                for array, column in zip(batch.columns, self.schema.columns, strict=True)
            ]
            for row in zip(*columns, strict=True):
                self.set(row, timestamp, expiry(timestamp, ttl))
            return
        hashes = self._keys.hashes(batch)
        order = hash_order(hashes)
        ordered = hashes[order]
        repeats = [row for row, _ in self._keys.repeats(self._keys.columns(batch), ordered, order)]
        if repeats:
            unique = np.ones(batch.num_rows, dtype=np.bool_)
            unique[repeats] = False
            self.upsert_batch(batch.filter(pa.array(unique)), timestamp, ttl)
            return
        arranged = arrange(self._keys, [batch], hashes, order)
        arranged.ttl = ttl
        self._install(arranged, timestamp)

    def _install(self, rows: PreparedRows, timestamp: int) -> None:
        """Make prepared rows visible from ``timestamp`` on."""
        self.changes += rows.rows
        ends = self._place(rows, timestamp) if rows.rows else None
        if rows.overwrite:
            if timestamp > self._latest:
                self._index.end_all(timestamp)
            closed = close_everything(self._table.snapshot(), timestamp)
            self.rows -= closed
            self.changes += closed
            self._staging.note_overwrite(timestamp)
        self._latest = max(self._latest, timestamp)
        if not rows.rows:
            return
        self._store_rows(rows, (timestamp, ends, None))

    def _store_rows(self, rows: PreparedRows, times: RowTimes) -> None:
        """Make chunks and index entries of prepared rows."""
        number = self._table.take_numbers(len(rows.batches))
        rows.run.slots += number << OFFSET_BITS
        schema = rows.keys.schema
        for chunk in self._table.seal_all(number, rows.batches, rows.partitions, times, schema):
            self.rows += chunk.length - chunk.closed
        self._table.replace(())
        self._index.add_run(rows.run)
        if self._index.live_runs > RUNS_MAX and not self._ahead.holds:
            self._upkeep.finish_merges()

    def _place(self, rows: PreparedRows, timestamp: int) -> Times | None:
        """Close what the rows replace; returns where they end themselves (None = all live on)."""
        late, ends = timestamp < self._latest, late_rows.own_ends(rows, timestamp)
        self.expiring = self.expiring or (ends is not None and transfer.expire(ends))
        if rows.overwrite and not late:  # it replaces all rows there are
            return ends
        if late and ends is None:
            ends = np.full(rows.rows, FOREVER, dtype=np.int64)
        for chunk, matched, offsets in self._matches(rows):
            if late and ends is not None:
                late_rows.end_before_later_versions(ends, chunk, offsets, matched, timestamp)
            self.rows -= close_existing(chunk, offsets, timestamp)
        if ends is None:
            return None
        late_rows.end_at_removals(ends, rows, timestamp)
        return ends if (ends != FOREVER).any() else None

    def _matches(self, rows: PreparedRows) -> Iterable[Match]:
        """The stored versions of the rows' keys, found ahead or now."""
        stamp, found = rows.found
        if found is not None and stamp == self._index.stamp:
            return found
        self._index.freeze()
        return matches(self._keys, self._table, self._index.runs, rows)

    # --- staged rows ---

    def stage(self, job: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep rows of a job's task unseen; returns their number, 0 for a repeated ``sequence``."""
        return self._staging.stage(job, task, sequence, batch)

    def stage_removals(self, job: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """The same of keys of rows that the job removes: only the key columns count."""
        return self._removals.stage(job, task, sequence, batch)

    def staged_rows(self, job: str, task: str, *, removals: bool = False) -> int:
        return (self._removals if removals else self._staging).staged_rows(job, task)

    def prepare(
        self,
        job: str,
        tasks: Collection[str],
        *,
        overwrite: bool,
        insert_only: bool,
        distinct: bool = False,
        unchanged_since: int | None = None,
        ttl: int = 0,
        now: int = FOREVER - 1,
    ) -> int:
        """Validate the rows of the accepted tasks and drop all others; returns the number of rows
        (``distinct``: and of ``validation.removed_once``). ``mark_prepared`` is to follow, at once.

        Raises ``UniqueViolation`` when two rows have one key, or with ``insert_only`` when a key is
        there ``now`` that the job does not remove, or in another prepared job;
        ``SerializationFailure`` when a row that the job removes (or writes, if it removes none) was
        changed after ``unchanged_since``.
        """
        prepared = self._staging.prepare(job, tasks, overwrite=overwrite)
        prepared.ttl = ttl
        removed = self._removals.prepare(job, tasks)
        if unchanged_since is not None:
            rows = self._matches(removed or prepared)
            validation.refuse_changed(rows, self._keys, unchanged_since, self.floors, now)
        if insert_only and not overwrite:
            self._staging.refuse_pending(job, prepared)
            validation.refuse_existing(self._matches(prepared), self._keys, prepared, removed, now)
        return prepared.rows + (validation.removed_once(prepared, removed) if distinct else 0)

    def written(self, job: str) -> Counts:
        """Rows and removals of a prepared job, by partition."""
        prepared = self._staging.prepared_rows(job), self._removals.prepared(job)
        return by_partition(rows.partitions for rows in prepared if rows is not None)

    def job_values(
        self, job: str, at: int, partitions: frozenset[int] | None, removed: Iterable[Key]
    ) -> JobValues:
        """Values of unique indexes that a prepared job writes, and the rows of ``partitions`` that
        it leaves: all but those that it writes or removes, as ``removed`` are. On the loop."""
        rows = self._staging.prepared_rows(job)
        assert rows is not None, "it is prepared"
        replaced = None
        if not rows.overwrite:
            gone = self._removals.prepared(job)
            matched = [*self._matches(rows), *(() if gone is None else self._matches(gone))]
            slots = [self.lookup.search(self._keys.hash(key), key, at) for key in removed]
            replaced = offsets_by_chunk(matched, [slot for slot in slots if slot != NOWHERE])
        pinned = Pinned(self._table.view, self._layouts)
        newest = max(at, self._latest)
        return JobValues(rows, pinned, self.indexes.by_id, replaced, partitions, newest)

    def ahead(self, job: str, tasks: Collection[str], *, overwrite: bool) -> Work | None:
        """The heavy part of the next ``prepare`` or ``resolve`` of a job; None: it is not heavy, or
        done already.

        Call the result on another thread, and the result of that on the loop again. Upkeep of the
        map rests meanwhile. Both steps are right without it too, only slower."""
        return self._ahead.work(job, tasks, overwrite=overwrite)

    def mark_prepared(self, job: str, prepare_timestamp: int) -> None:
        """From now on readers at or above ``prepare_timestamp`` wait for the job's outcome."""
        self._staging.mark(job, prepare_timestamp)

    def resolve(self, job: str, commit_timestamp: int | None, *, values: bool = False) -> int:
        """Commit (rows visible at once) or abort (None); returns the rows. Unknown jobs give 0.
        ``values``: somewhere it writes values of unique indexes."""
        if values and commit_timestamp is not None:
            self.bulk_at = max(self.bulk_at, commit_timestamp)
        removed = self._removals.discard(job)
        rows = self._staging.discard(job)
        try:
            if rows is None or commit_timestamp is None:
                return 0
            if removed is not None:
                for chunk, _, offsets in self._matches(removed):
                    self.rows -= close_existing(chunk, offsets, commit_timestamp)
                self.changes += removed.rows
            self._install(rows, commit_timestamp)
            return rows.rows
        finally:
            self._staging.settle()  # not before: other threads read meanwhile

    @property
    def job_pending(self) -> bool:
        """Whether a job of the map is prepared and not decided."""
        return bool(self._staging.pending)

    def pending_at_or_below(self, at: int) -> bool:
        """Whether a prepared job or single write may still commit at or below ``at``: readers wait
        while it is so. Any thread."""
        if self.awaited <= at and self.awaited != FOREVER:
            return True
        unsettled_from = self._staging.unsettled_from
        return unsettled_from is not None and unsettled_from <= at

    # --- transfers, see storage.transfer ---

    @property
    def floor(self) -> int:
        """Versions from before it can no longer be read."""
        return self.floors.reads

    def raise_floor(self, at: int) -> None:
        self._upkeep.floors.lift(at)

    def extraction(
        self, partitions: frozenset[int], low: int = ALWAYS, high: int = FOREVER - 1
    ) -> Extraction:
        """The versions of some partitions that began or ended after ``low``, and not after
        ``high``."""
        returned = self.floors.returned
        return Extraction(self._table.view, self._layouts, partitions, low, high, returned)

    def refreshed(self, extraction: Extraction) -> tuple[Times, list[Versions]]:
        """See ``Extraction.refreshed``."""
        return extraction.refreshed(self._table.view)

    def arrival(self, versions: Sequence[Versions]) -> Arrival:
        """Put versions in order for ``install`` or ``end_versions``. Any thread."""
        return transfer.arrival(self._keys, versions)

    def install(self, arrived: Arrival) -> None:
        """Store versions that are not here yet, with their begins and ends."""
        begins, ends = arrived.begins, arrived.ends
        row_ends = ends if (ends != FOREVER).any() else None
        self._store_rows(arrived.rows, (begins, row_ends, arrived.origins))
        self._latest = max(self._latest, int(begins.max()), transfer.last_write(ends))
        self.expiring = self.expiring or transfer.expire(ends)
        self._counted -= len(begins)  # changes that were made elsewhere

    def end_versions(self, arrived: Arrival, low: int) -> None:
        """Let the versions of these keys that exist at ``low`` end where ``arrived`` says."""
        for chunk, matched, offsets in self._matches(arrived.rows):
            there = np.broadcast_to(
                (chunk.begins_of(offsets) <= low) & (chunk.ends_of(offsets) > low), offsets.shape
            )
            if there.any():
                ends = arrived.ends[matched[there]]
                self.rows -= chunk.close_each(offsets[there], ends)
                self._latest = max(self._latest, transfer.last_write(ends))

    def last_ends_of(self, partitions: frozenset[int]) -> Times:
        """By partition, when the last row of it ended; 0: none has."""
        return transfer.last_ends(self._table.snapshot(), partitions)

    def close_partitions(self, partitions: frozenset[int], at: int) -> None:
        """Another member serves the partitions from ``at`` on; readers below it go on here."""
        self.rows -= transfer.close(self._table.snapshot(), partitions, at)
        self._latest = max(self._latest, at)
        self.mixed_until = max(self.mixed_until, at)

    def come_back(self, arrived: Arrival, cuts: Times) -> None:
        """Store versions of partitions that this store serves from now on, and may have had until
        ``cuts`` (``last_ends_of``): see ``chunks.handovers``."""
        arrived.begin_after(cuts)
        self.install(arrived)
        if arrived.origins is not None:
            self.floors.came_back(cuts)

    def discard_partitions(self, partitions: frozenset[int]) -> None:
        """Nobody reads these partitions here, at whatever timestamp."""
        self.rows -= transfer.discard(self._table.snapshot(), partitions)

    # --- reading many ---

    def scan(
        self,
        at: int,
        positions: Sequence[int],
        partitions: frozenset[int] | None = None,
        version: int = 0,
    ) -> ScanCursor:
        """The rows at ``at`` of some partitions (None = all), projected to columns by position in a
        version of the schema that ``reads`` allows (0: the newest)."""
        view, layouts = self._pinning.pin(at, version)
        return ScanCursor(view.chunks, view.tail, at, positions, partitions, layouts)

    def size(self, at: int, partitions: frozenset[int] | None = None) -> int:
        """The number of rows at ``at``."""
        if at < self._upkeep.floor:
            raise validation.too_old(self.schema, at, self.floor)
        if partitions is None and at >= self._latest and not self.expiring:
            return self.rows
        return count_shown(self._table.snapshot(), at, partitions)

    @property
    def seen(self) -> int:
        """A timestamp until now, the last at which something was written or dropped."""
        return max(self._latest, self._upkeep.floor)

    def statistics(self) -> MapStatistics:
        """Statistics, kept until more than a tenth of the rows has changed."""
        if (work := self.statistics_work()) is not None:
            self.keep_statistics(work())
        assert self._statistics is not None
        return self._statistics

    @property
    def kept_statistics(self) -> MapStatistics:
        """The last result of ``statistics``, however old; taken now if there is none."""
        return self._statistics or self.statistics()

    def statistics_work(self) -> Callable[[], MapStatistics] | None:
        """The work that takes the statistics anew, on any thread, for ``keep_statistics``; None
        when those kept are good."""
        known = self._statistics
        if known is not None and self.changes - self._counted <= STALE_SHARE * known.rows:
            return None
        self._counted = self.changes
        chunks = list(self._table.snapshot())
        at = self.seen if self.expiring else FOREVER - 1
        pinned = (self._layouts, chunks, self.size(at), self.bytes, at)
        return lambda: take_statistics(*pinned)

    def keep_statistics(self, taken: MapStatistics) -> None:
        """``statistics`` gives ``taken`` from now on, unless the map was altered meanwhile."""
        if taken.schema.columns == self.schema.columns:
            self._statistics = taken

    # --- upkeep ---

    def maintain(self, horizon: int) -> bool:
        """One slice of upkeep (a few ms); True = there is more to do.

        No reader asks for a timestamp below ``horizon`` any more; such reads raise
        ``SnapshotTooOld`` once versions have been collected.
        """
        indexing = self.indexes.step()
        if self._ahead.holds or self.resting:
            return indexing
        horizon = min(horizon, self.kept_from)
        if self._staging.unsettled_from is not None:
            horizon = min(horizon, self._staging.unsettled_from - 1)
        return self._upkeep.step(horizon) or indexing

    @property
    def freed(self) -> int:
        """Bytes of rows dropped since the map was made (estimated)."""
        return self._upkeep.freed + self._staging.freed
