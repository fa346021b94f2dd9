"""The rows of one map on one member: versioned, columnar, with a key index (design D3, rule 19).

A row version exists from its ``begin`` to its ``end`` timestamp; the versions of one key never
overlap. Writers may come out of timestamp order (a staged job commits at a timestamp below that of
a later put): a version that is placed late ends where the next one begins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import array_to_values
from remuda.errors import (
    InternalError,
    SchemaChanged,
    SerializationFailure,
    SnapshotTooOld,
    UniqueViolation,
)
from remuda.storage.ahead import Ahead, Work, matches
from remuda.storage.chunk import OFFSET_BITS, OFFSET_MASK, Chunk, Flags, Offsets, Row, Times
from remuda.storage.chunk_table import ChunkTable, TableView
from remuda.storage.index_set import IndexSet
from remuda.storage.key_index import (
    DELTA_ENTRIES_MAX,
    NOWHERE,
    RUNS_MAX,
    KeyIndex,
)
from remuda.storage.keys import Key, KeyRule
from remuda.storage.late_rows import end_at_removals, end_before_later_versions
from remuda.storage.layout import Layouts, reads_as
from remuda.storage.removals import Removals
from remuda.storage.scan import ScanCursor, partition_flags, shown
from remuda.storage.staging import Match, PreparedRows, Staging, arrange
from remuda.storage.statistics import STALE_SHARE, MapStatistics, take_statistics
from remuda.storage.upkeep import Upkeep

REWRITES_MET_MAX = 100
"""So often a lookup on another thread starts again because upkeep was faster."""
OLDER_SCHEMAS_MAX = 16
"""So many earlier schemas of a map stay readable, for queries that were planned with them."""
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
        self._readable = {schema.version: Layouts(schema)}
        """The schemas under which the map can be read now, by version."""
        self.rows = 0
        """Rows that exist now (not closed)."""
        self._keys = KeyRule(schema)
        self._layouts = self._readable[schema.version]
        self._table = ChunkTable(schema)
        self._index = KeyIndex()
        self.indexes = IndexSet(self._layouts, self._table, self._pin)
        self._staging = Staging(schema.name, self._keys)
        self._removals = Removals(self._keys)
        self._upkeep = Upkeep(self._table, self._index, self._keys)
        self._ahead = Ahead(self._keys, self._table, self._index, self._staging, self._removals)
        self._latest = 0
        self._changes = 0
        self._statistics: MapStatistics | None = None

    @property
    def bytes(self) -> int:
        """Estimated memory: rows of all versions, index, staged rows."""
        staged = self._staging.nbytes + self._removals.nbytes
        return self._table.nbytes + self._index.nbytes + self.indexes.nbytes + staged

    # --- the schema ---

    def alter(self, schema: MapSchema) -> None:
        """Take another schema of the map over: rows of it are stored from now on. No stored row is
        touched; reads convert what is older (``storage.layout``). Jobs that are prepared keep the
        schema that they were staged with.
        """
        older = [
            layouts
            for layouts in [*self._readable.values()][-OLDER_SCHEMAS_MAX:]
            if reads_as(schema, layouts.schema)
        ]
        self.schema = schema
        self._keys = KeyRule(schema)
        self._staging.keys = self._removals.keys = self._keys
        self._upkeep.keys = self._ahead.keys = self._keys
        self._table.alter(schema)
        self._layouts = Layouts(schema)
        self._readable = {each.schema.version: each for each in (*older, self._layouts)}
        self.indexes.define(self._layouts)
        self._statistics = None

    def define_indexes(self, schema: MapSchema) -> None:
        """Take the indexes of ``schema`` over, which is the newest one otherwise."""
        self.schema = schema
        self._layouts = self._readable[schema.version] = Layouts(schema)
        self.indexes.define(self._layouts)

    def reads(self, version: int) -> bool:
        """Whether the map can be read under this version of its schema. Any thread."""
        return version in self._readable

    def _as(self, version: int) -> Layouts:
        """How to read the map under a version (0: the newest). Raises SchemaChanged."""
        layouts = self._readable.get(version) if version else self._layouts
        if layouts is None:
            raise SchemaChanged(f'map "{self.schema.name}" was altered')
        return layouts

    # --- single rows ---

    def get(self, key: Key, at: int, version: int = 0) -> Row | None:
        """The row of ``key`` that exists at ``at``, in a version of the schema that ``reads``
        allows (0: the newest)."""
        layouts = self._as(version)
        if at < self._upkeep.floor:
            self._refuse_old(at)
        slot = self._locate(self._keys.hash(key), key, at)
        while slot != NOWHERE:
            chunk = self._table.by_number.get(slot >> OFFSET_BITS)
            if chunk is not None:
                return layouts.row(chunk, slot & OFFSET_MASK)
            slot = self._locate(self._keys.hash(key), key, at)  # rewritten just now
        return None

    def put(self, row: Row, timestamp: int) -> Row | None:
        """Insert or replace the row of its key from ``timestamp`` on; returns the replaced row."""
        replaced = self._put(row, timestamp)
        return None if replaced is None else self._layouts.row(*replaced)

    def set(self, row: Row, timestamp: int) -> bool:
        """The same, but only tells whether there was a row (which it costs time to read)."""
        return self._put(row, timestamp) is not None

    def _put(self, row: Row, timestamp: int) -> tuple[Chunk, int] | None:
        """Insert or replace a row; returns where the replaced one is."""
        keys, index = self._keys, self._index
        key = keys.of(row)
        key_hash = keys.hash(key)
        if timestamp < self._latest:
            end = self._next_begin(key_hash, key, timestamp)
        else:
            end = FOREVER
            self._latest = timestamp
        slot = self._locate(key_hash, key, timestamp)
        replaced = None
        if slot != NOWHERE:
            chunk = self._table.by_number[slot >> OFFSET_BITS]
            offset = slot & OFFSET_MASK
            replaced = chunk, offset
            old_end = self._end_of(chunk, offset)
            if old_end == FOREVER:
                self.rows -= 1
            elif old_end < end:
                end = old_end
            chunk.close(offset, timestamp)
        slot = self._table.append(row, keys.partition(row, key_hash), timestamp)
        if end == FOREVER:
            self.rows += 1
        else:
            self._table.by_number[slot >> OFFSET_BITS].close(slot & OFFSET_MASK, end)
        if index.delta.setdefault(key_hash, slot) == slot:
            index.delta_entries += 1
        else:
            index.add(key_hash, slot)
        if index.delta_entries > DELTA_ENTRIES_MAX:
            index.freeze()
        self._changes += 1
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
        slot = self._locate(key_hash, key, timestamp)
        if slot == NOWHERE:
            self._staging.note_removal(key_hash, key, timestamp)
            return None
        chunk = self._table.by_number[slot >> OFFSET_BITS]
        offset = slot & OFFSET_MASK
        self._close(chunk, offset, timestamp)
        self._changes += 1
        return chunk, offset

    def _locate(self, key_hash: int, key: Key, at: int) -> int:
        """The slot of the version of ``key`` that exists at ``at``, or ``NOWHERE``."""
        for _ in range(REWRITES_MET_MAX):
            try:
                return self._search(key_hash, key, at)
            except KeyError:  # on another thread: its chunk has been rewritten just now
                continue
        raise InternalError(f"the index of map {self.schema.name} points to a chunk that is gone")

    def _search(self, key_hash: int, key: Key, at: int) -> int:
        index = self._index
        entry = index.delta.get(key_hash)
        if entry is not None:
            for slot in (entry,) if isinstance(entry, int) else reversed(entry):
                if self._is_version(slot, key, at):
                    return slot
        by_number = self._table.by_number
        exact = self._keys.exact
        for run in reversed(index.runs):  # `Run.find` and `_is_version` written out: the hot path
            if run.until <= at:
                continue
            directory, hashes = run.directory, run.hash_view
            bucket = key_hash >> run.shift
            stop = directory[bucket + 1]
            position = bisect_left(hashes, key_hash, directory[bucket], stop)
            while position < stop and hashes[position] == key_hash:
                slot = run.slot_view[position]
                position += 1
                if slot == NOWHERE:
                    continue
                chunk = by_number[slot >> OFFSET_BITS]
                offset = slot & OFFSET_MASK
                begins, ends = chunk.begin_view, chunk.end_view
                if (
                    (chunk.begin if begins is None else begins[offset]) <= at
                    and (chunk.end if ends is None else ends[offset]) > at
                    and (exact or self._keys.holds(chunk, offset, key))
                ):
                    return slot
        return NOWHERE

    def _is_version(self, slot: int, key: Key, at: int) -> bool:
        """Whether the row at ``slot`` exists at ``at`` and has this key (its hash does match)."""
        chunk = self._table.by_number[slot >> OFFSET_BITS]
        offset = slot & OFFSET_MASK
        begins, ends = chunk.begin_view, chunk.end_view
        return (
            (chunk.begin if begins is None else begins[offset]) <= at
            and (chunk.end if ends is None else ends[offset]) > at
            and (self._keys.exact or self._keys.holds(chunk, offset, key))
        )

    def _next_begin(self, key_hash: int, key: Key, timestamp: int) -> int:
        """Where the first version of ``key`` after ``timestamp`` begins."""
        begin = FOREVER
        for slot in self._index.slots(key_hash):
            chunk = self._table.by_number[slot >> OFFSET_BITS]
            offset = slot & OFFSET_MASK
            found = chunk.begin if chunk.begin_view is None else chunk.begin_view[offset]
            if timestamp < found < begin and (
                self._keys.exact or self._keys.holds(chunk, offset, key)
            ):
                begin = found
        return begin

    def _end_of(self, chunk: Chunk, offset: int) -> int:
        return chunk.end if chunk.end_view is None else chunk.end_view[offset]

    def _close(self, chunk: Chunk, offset: int, timestamp: int) -> None:
        if self._end_of(chunk, offset) == FOREVER:
            self.rows -= 1
        chunk.close(offset, timestamp)

    def _refuse_old(self, at: int) -> None:
        raise SnapshotTooOld(
            f"map {self.schema.name} no longer has the versions of timestamp {at}",
            detail=f"the oldest that can be read is {self._upkeep.floor}",
        )

    # --- many rows ---

    def upsert_batch(self, batch: pa.RecordBatch, timestamp: int) -> None:
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
                self._put(row, timestamp)
            return
        hashes = self._keys.hashes(batch)
        order = np.argsort(hashes)
        ordered = hashes[order]
        repeats = [row for row, _ in self._keys.repeats(self._keys.columns(batch), ordered, order)]
        if repeats:
            unique = np.ones(batch.num_rows, dtype=np.bool_)
            unique[repeats] = False
            self.upsert_batch(batch.filter(pa.array(unique)), timestamp)
            return
        self._install(arrange(self._keys, [batch], hashes, order), timestamp)

    def _install(self, rows: PreparedRows, timestamp: int) -> None:
        """Make prepared rows visible from ``timestamp`` on."""
        if rows.rows or rows.overwrite:
            self._changes += rows.rows
        ends = self._place(rows, timestamp) if rows.rows else None
        if rows.overwrite:
            if timestamp >= self._latest:
                self._index.end_all(timestamp)
            self._close_all(timestamp)
            self._staging.note_overwrite(timestamp)
        self._latest = max(self._latest, timestamp)
        if not rows.rows:
            return
        number = self._table.take_numbers(len(rows.batches))
        rows.run.slots += number << OFFSET_BITS
        first = 0
        for batch in rows.batches:
            stop = first + batch.num_rows
            part_ends = None if ends is None else ends[first:stop].copy()
            partitions = rows.partitions[first:stop]
            chunk = self._table.sealed(
                number, batch, partitions, timestamp, part_ends, rows.keys.schema
            )
            self.rows += chunk.length - chunk.closed
            number += 1
            first = stop
        self._table.replace(())
        self._index.add_run(rows.run)
        if self._index.live_runs > RUNS_MAX and not self._ahead.holds:
            self._upkeep.finish_merges()

    def _place(self, rows: PreparedRows, timestamp: int) -> Times | None:
        """Close what the rows replace; returns where they end themselves (None = all live on)."""
        late = timestamp < self._latest
        if rows.overwrite and not late:
            return None  # it replaces all rows there are
        ends = np.full(rows.rows, FOREVER, dtype=np.int64) if late else None
        for chunk, matched, offsets in self._matches(rows):
            if ends is not None:
                end_before_later_versions(ends, chunk, offsets, matched, timestamp)
            self._close_existing(chunk, offsets, timestamp)
        if ends is None:
            return None
        end_at_removals(ends, rows, timestamp)
        return ends if (ends != FOREVER).any() else None

    def _matches(self, rows: PreparedRows) -> Iterable[Match]:
        """The stored versions of the rows' keys, found ahead or now."""
        stamp, found = rows.found
        if found is not None and stamp == self._index.stamp:
            return found
        self._index.freeze()
        return matches(self._keys, self._table, self._index.runs, rows)

    def _close_existing(self, chunk: Chunk, offsets: Offsets, timestamp: int) -> None:
        """Close at ``timestamp`` those of the rows that exist then."""
        begins, row_ends = chunk.begins_of(offsets), chunk.ends_of(offsets)
        exists: Flags | bool = (begins <= timestamp) & (row_ends > timestamp)
        if exists is not True and not isinstance(exists, np.ndarray):
            exists = bool(exists)
        if exists is False:
            return
        chosen = offsets if exists is True else offsets[exists]
        if len(chosen):
            self.rows -= chunk.close_many(chosen, timestamp)

    def _close_all(self, timestamp: int) -> None:
        """Close every row that exists at ``timestamp``."""
        for chunk in self._table.snapshot():
            mask = shown(chunk, chunk.length, timestamp, None)
            if mask is True and chunk.closed == 0 and chunk.tuples is None:
                self.rows -= chunk.close_all(timestamp)
                self._changes += chunk.length
            elif mask is not False:
                offsets = np.arange(chunk.length) if mask is True else np.flatnonzero(mask)
                if len(offsets):
                    self.rows -= chunk.close_many(offsets, timestamp)
                    self._changes += len(offsets)

    # --- staged rows ---

    def stage(self, job: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep rows of a job's task unseen; returns their number, 0 for a repeated ``sequence``."""
        return self._staging.stage(job, task, sequence, batch)

    def stage_removals(self, job: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep keys of rows that the job removes; of ``batch`` only the key columns count."""
        return self._removals.stage(job, task, sequence, batch)

    def staged_rows(self, job: str, task: str) -> int:
        return self._staging.staged_rows(job, task)

    def prepare(
        self,
        job: str,
        tasks: Collection[str],
        *,
        overwrite: bool,
        insert_only: bool,
        unchanged_since: int | None = None,
    ) -> int:
        """Validate the rows of the accepted tasks and drop all others; returns the number of rows.

        Raises ``UniqueViolation`` when two rows have one key, or with ``insert_only`` when a key
        exists that the job does not remove, or is in another prepared job;
        ``SerializationFailure`` when a row that the job removes (or writes, if it removes none) was
        changed after ``unchanged_since``. The caller then registers the job with ``mark_prepared``
        in the same step.
        """
        prepared = self._staging.prepare(job, tasks, overwrite=overwrite)
        removed = self._removals.prepare(job)
        if unchanged_since is not None:
            self._refuse_changed(removed or prepared, unchanged_since)
        if insert_only and not overwrite:
            self._staging.refuse_pending(job, prepared)
            self._refuse_existing(prepared, removed)
        return prepared.rows

    def _refuse_existing(self, rows: PreparedRows, removed: PreparedRows | None) -> None:
        for chunk, matched, offsets in self._matches(rows):
            taken = np.broadcast_to(chunk.ends_of(offsets) == FOREVER, offsets.shape)
            if not taken.any():
                continue
            chosen = matched[taken] if removed is not None else matched[taken][:1]
            keys = self._keys.keys_of(rows.key_columns(), chosen.tolist())
            if removed is not None:
                gone = removed.keys_with(rows.hashes)
                keys = [key for key in keys if key not in gone]
            if keys:
                raise UniqueViolation(
                    f"a row with this key exists in map {self.schema.name}",
                    detail=f"key ({self._keys.show(keys[0])})",
                )

    def _refuse_changed(self, rows: PreparedRows, since: int) -> None:
        """Raise when a version of one of the keys has begun or ended after ``since``."""
        for chunk, _, offsets in self._matches(rows):
            begins = np.broadcast_to(np.asarray(chunk.begins_of(offsets)), offsets.shape)
            ends = np.broadcast_to(np.asarray(chunk.ends_of(offsets)), offsets.shape)
            if ((begins > since) | ((ends > since) & (ends < FOREVER))).any():
                raise SerializationFailure(
                    f"rows of map {self.schema.name} were changed by others while a statement "
                    "was about to change them",
                    hint="Run the statement again.",
                )

    def ahead(self, job: str, tasks: Collection[str], *, overwrite: bool) -> Work | None:
        """The heavy part of the next ``prepare`` or ``resolve`` of a job; None: it is not heavy, or
        done already.

        Call the result on another thread, and the result of that on the loop again. Upkeep of the
        map rests meanwhile. Both steps are right without it too, only slower.
        """
        return self._ahead.work(job, tasks, overwrite=overwrite)

    def mark_prepared(self, job: str, prepare_timestamp: int) -> None:
        """From now on readers at or above ``prepare_timestamp`` wait for the job's outcome."""
        staged = self._staging.jobs.get(job)
        if staged is None or staged.prepared is None:
            raise InternalError(f"job {job} of map {self.schema.name} has not been prepared")
        self._staging.mark(job, prepare_timestamp)

    def resolve(self, job: str, commit_timestamp: int | None) -> int:
        """Commit (rows visible at once) or abort (None); returns the rows. Unknown jobs give 0."""
        removed = self._removals.discard(job)
        rows = self._staging.discard(job)
        try:
            if rows is None or commit_timestamp is None:
                return 0
            if removed is not None:
                for chunk, _, offsets in self._matches(removed):
                    self._close_existing(chunk, offsets, commit_timestamp)
                self._changes += removed.rows
            self._install(rows, commit_timestamp)
            return rows.rows
        finally:
            self._staging.settle()  # not before: other threads read meanwhile

    def pending_at_or_below(self, at: int) -> bool:
        """Whether a prepared job may still commit at or below ``at``: readers wait while it is
        so. Any thread.
        """
        unsettled_from = self._staging.unsettled_from
        return unsettled_from is not None and unsettled_from <= at

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
        view, layouts = self._pin(at, version)
        return ScanCursor(view.chunks, view.tail, at, positions, partitions, layouts)

    def _pin(self, at: int, version: int) -> tuple[TableView, Layouts]:
        layouts = self._as(version)
        view = self._table.view  # first: what is collected after this line is still in it
        if at < self._upkeep.floor:
            self._refuse_old(at)
        return view, layouts

    def size(self, at: int, partitions: frozenset[int] | None = None) -> int:
        """The number of rows at ``at``."""
        if at < self._upkeep.floor:
            self._refuse_old(at)
        if partitions is None and at >= self._latest:
            return self.rows
        wanted = partition_flags(partitions)
        total = 0
        for chunk in self._table.snapshot():
            mask = shown(chunk, chunk.length, at, wanted)
            if mask is True:
                total += chunk.length
            elif mask is not False:
                total += int(np.count_nonzero(mask))
        return total

    def statistics(self) -> MapStatistics:
        """Statistics, kept until more than a tenth of the rows has changed."""
        work = self.statistics_work()
        if work is not None:
            self.keep_statistics(work())
        assert self._statistics is not None
        return self._statistics

    @property
    def kept_statistics(self) -> MapStatistics:
        """What ``statistics`` gave last, however old; taken now if it never did."""
        return self._statistics or self.statistics()

    def statistics_work(self) -> Callable[[], MapStatistics] | None:
        """What takes the statistics anew, on any thread, for ``keep_statistics``; None when those
        kept are good."""
        known = self._statistics
        if known is not None and self._changes <= STALE_SHARE * known.rows:
            return None
        self._changes = 0
        pinned = (self._layouts, list(self._table.snapshot()), self.rows, self.bytes)
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
        if self._ahead.holds:
            return indexing
        if self._staging.unsettled_from is not None:
            horizon = min(horizon, self._staging.unsettled_from - 1)
        return self._upkeep.step(horizon) or indexing

    @property
    def freed(self) -> int:
        """Bytes of rows dropped since the map was made (estimated)."""
        return self._upkeep.freed + self._staging.freed
