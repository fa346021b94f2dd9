"""The rows of one map on one member: versioned, columnar, with a key index (design D3, rule 19).

A row version exists from its ``begin`` to its ``end`` timestamp; the versions of one key never
overlap. Writers may come out of timestamp order (a staged job commits at a timestamp below that of
a later put): a version that is placed late ends where the next one begins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import array_to_values
from remuda.errors import InternalError, SnapshotTooOld, UniqueViolation
from remuda.storage.chunk import OFFSET_BITS, OFFSET_MASK, Chunk, Flags, Offsets, Row, Times
from remuda.storage.chunk_table import ChunkTable, pieces
from remuda.storage.key_index import DELTA_ENTRIES_MAX, NOWHERE, RUNS_MAX, KeyIndex, Slots
from remuda.storage.keys import Key, KeyRule
from remuda.storage.scan import ScanCursor, partition_flags, shown
from remuda.storage.staging import PreparedRows, Staging, key_columns
from remuda.storage.statistics import STALE_SHARE, MapStatistics, take_statistics
from remuda.storage.upkeep import Upkeep

TINY_BATCH_ROWS = 64
"""Bulk batches of up to this many rows are put row by row: no chunk, no run."""


class MapStore:
    """One map on one member. Event-loop thread only; only ``ScanCursor`` may go to other
    threads.
    """

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema
        self.rows = 0
        """Rows that exist now (not closed)."""
        self._keys = KeyRule(schema)
        self._table = ChunkTable(schema)
        self._index = KeyIndex()
        self._staging = Staging(schema.name, self._keys)
        self._upkeep = Upkeep(self._table, self._index, self._keys)
        self._latest = 0
        self._changes = 0
        self._statistics: MapStatistics | None = None

    @property
    def bytes(self) -> int:
        """Estimated memory: rows of all versions, index, staged rows."""
        return self._table.nbytes + self._index.nbytes + self._staging.nbytes

    # --- single rows ---

    def get(self, key: Key, at: int) -> Row | None:
        """The row of ``key`` that exists at ``at``."""
        if at < self._upkeep.floor:
            self._refuse_old(at)
        slot = self._locate(self._keys.hash(key), key, at)
        if slot == NOWHERE:
            return None
        return self._table.by_number[slot >> OFFSET_BITS].row(slot & OFFSET_MASK)

    def put(self, row: Row, timestamp: int) -> Row | None:
        """Insert or replace the row of its key from ``timestamp`` on; returns the replaced row."""
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
            replaced = chunk.row(offset)
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
        key_hash = self._keys.hash(key)
        self._latest = max(self._latest, timestamp)
        slot = self._locate(key_hash, key, timestamp)
        if slot == NOWHERE:
            self._staging.note_removal(key_hash, key, timestamp)
            return None
        chunk = self._table.by_number[slot >> OFFSET_BITS]
        offset = slot & OFFSET_MASK
        row = chunk.row(offset)
        self._close(chunk, offset, timestamp)
        self._changes += 1
        return row

    def _locate(self, key_hash: int, key: Key, at: int) -> int:
        """The slot of the version of ``key`` that exists at ``at``, or ``NOWHERE``."""
        index = self._index
        entry = index.delta.get(key_hash)
        if entry is not None:
            for slot in (entry,) if isinstance(entry, int) else reversed(entry):
                if self._is_version(slot, key, at):
                    return slot
        by_number = self._table.by_number
        exact = self._keys.exact
        for run in reversed(index.runs):  # `Run.find` and `_is_version` written out: the hot path
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
                    and (ends is None or ends[offset] > at)
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
            and (ends is None or ends[offset] > at)
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
        return FOREVER if chunk.end_view is None else chunk.end_view[offset]

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
                self.put(row, timestamp)
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
        partitions = self._keys.partitions(batch, hashes)
        rows = PreparedRows(pieces([batch]), partitions, ordered, order, overwrite=False)
        self._install(rows, timestamp)

    def _install(self, rows: PreparedRows, timestamp: int) -> None:
        """Make prepared rows visible from ``timestamp`` on."""
        if rows.rows or rows.overwrite:
            self._changes += rows.rows
        ends = self._place(rows, timestamp) if rows.rows else None
        if rows.overwrite:
            self._close_all(timestamp)
            self._staging.note_overwrite(timestamp)
        self._latest = max(self._latest, timestamp)
        if not rows.rows:
            return
        starts = []
        first = 0
        for batch in rows.batches:
            stop = first + batch.num_rows
            part_ends = None if ends is None else ends[first:stop].copy()
            partitions = rows.partitions[first:stop]
            chunk = self._table.add(batch, partitions, timestamp, part_ends)
            self.rows += chunk.length - chunk.closed
            starts.append((chunk.base, batch.num_rows))
            first = stop
        self._index.add_sorted(rows.hashes, _slots(starts, rows.order))
        if len(self._index.runs) > RUNS_MAX:
            self._upkeep.finish_merges()

    def _place(self, rows: PreparedRows, timestamp: int) -> Times | None:
        """Close what the rows replace; returns where they end themselves (None = all live on)."""
        late = timestamp < self._latest
        ends = np.full(rows.rows, FOREVER, dtype=np.int64) if late else None
        columns: list[pa.Array] | None = None
        for found, slots in self._index.match(rows.hashes):
            if columns is None and not self._keys.exact:
                columns = key_columns(rows.batches, self._keys)
            for chunk, indexes, offsets in self._table.groups(slots):
                matched = rows.order[found[indexes]]
                if columns is not None:
                    same = self._keys.equal(chunk, offsets, columns, matched)
                    matched, offsets = matched[same], offsets[same]  # noqa: PLW2901
                if ends is not None:
                    _bound(ends, chunk, offsets, matched, timestamp)
                self._close_existing(chunk, offsets, timestamp)
        if ends is None:
            return None
        self._apply_removals(rows, ends, timestamp)
        return ends if (ends != FOREVER).any() else None

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

    def _apply_removals(self, rows: PreparedRows, ends: Times, timestamp: int) -> None:
        """What removed these keys, absent as they were, while the rows were pending."""
        cleared = [other for other in rows.cleared if other > timestamp]
        if cleared:
            np.minimum(ends, min(cleared), out=ends)
        later = [removal for removal in rows.removals if removal[2] > timestamp]
        if not later:
            return
        columns = rows.key_columns(self._keys)
        for key_hash, key, removed in later:
            low = int(np.searchsorted(rows.hashes, np.uint64(key_hash)))
            high = int(np.searchsorted(rows.hashes, np.uint64(key_hash), side="right"))
            candidates = rows.order[low:high].tolist()
            for row, other in zip(candidates, self._keys.keys_of(columns, candidates), strict=True):
                if self._keys.exact or other == key:
                    ends[row] = min(int(ends[row]), removed)

    def _close_all(self, timestamp: int) -> None:
        """Close every row that exists at ``timestamp``."""
        for chunk in self._table.snapshot():
            mask = shown(chunk, chunk.length, timestamp, None)
            if mask is not False:
                offsets = np.arange(chunk.length) if mask is True else np.flatnonzero(mask)
                if len(offsets):
                    self.rows -= chunk.close_many(offsets, timestamp)
                    self._changes += len(offsets)

    # --- staged rows ---

    def stage(self, job: str, task: str, sequence: int, batch: pa.RecordBatch) -> int:
        """Keep rows of a job's task unseen; returns their number, 0 for a repeated ``sequence``."""
        return self._staging.stage(job, task, sequence, batch)

    def staged_rows(self, job: str, task: str) -> int:
        return self._staging.staged_rows(job, task)

    def prepare(
        self, job: str, tasks: Collection[str], *, overwrite: bool, insert_only: bool
    ) -> int:
        """Validate the rows of the accepted tasks and drop all others; returns the number of rows.

        Raises ``UniqueViolation`` when two rows have one key, or with ``insert_only`` when a key
        exists or is in another prepared job. The caller then registers the job with
        ``mark_prepared`` in the same step.
        """
        prepared = self._staging.prepare(job, tasks, overwrite=overwrite)
        if insert_only and not overwrite:
            self._staging.refuse_pending(job, prepared)
            self._refuse_existing(prepared)
        return prepared.rows

    def _refuse_existing(self, rows: PreparedRows) -> None:
        columns: list[pa.Array] | None = None
        for found, slots in self._index.match(rows.hashes):
            columns = columns or rows.key_columns(self._keys)
            for chunk, indexes, offsets in self._table.groups(slots):
                matched = rows.order[found[indexes]]
                taken = np.broadcast_to(chunk.ends_of(offsets) == FOREVER, offsets.shape)
                if not self._keys.exact and taken.any():
                    taken = taken & self._keys.equal(chunk, offsets, columns, matched)
                if taken.any():
                    row = int(matched[int(np.argmax(taken))])
                    key = self._keys.keys_of(columns, [row])[0]
                    raise UniqueViolation(
                        f"a row with this key exists in map {self.schema.name}",
                        detail=f"key ({self._keys.show(key)})",
                    )

    def mark_prepared(self, job: str, prepare_timestamp: int) -> None:
        """From now on readers at or above ``prepare_timestamp`` wait for the job's outcome."""
        staged = self._staging.jobs.get(job)
        if staged is None or staged.prepared is None:
            raise InternalError(f"job {job} of map {self.schema.name} has not been prepared")
        staged.prepare_timestamp = prepare_timestamp
        self._staging.pending[job] = prepare_timestamp

    install_pending = mark_prepared

    def resolve(self, job: str, commit_timestamp: int | None) -> int:
        """Commit (rows visible at once) or abort (None); returns the rows. Unknown jobs give 0."""
        rows = self._staging.discard(job)
        if rows is None or commit_timestamp is None:
            return 0
        self._install(rows, commit_timestamp)
        return rows.rows

    def pending_at_or_below(self, at: int) -> bool:
        """Whether a prepared job may still commit at or below ``at``: readers wait while it is
        so.
        """
        pending = self._staging.pending
        return bool(pending) and min(pending.values()) <= at

    # --- reading many ---

    def scan(
        self, at: int, positions: Sequence[int], partitions: frozenset[int] | None = None
    ) -> ScanCursor:
        """The rows at ``at`` of some partitions (None = all), projected to columns by position."""
        if at < self._upkeep.floor:
            self._refuse_old(at)
        table = self._table
        return ScanCursor(table.snapshot(), table.tail, at, positions, partitions)

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
        """Sampled statistics, kept until more than a tenth of the rows has changed."""
        known = self._statistics
        if known is None or self._changes > STALE_SHARE * known.rows:
            known = take_statistics(self.schema, self._table.snapshot(), self.rows, self.bytes)
            self._statistics = known
            self._changes = 0
        return known

    # --- upkeep ---

    def maintain(self, horizon: int) -> bool:
        """One slice of upkeep (a few ms); True = there is more to do.

        No reader asks for a timestamp below ``horizon`` any more; such reads raise
        ``SnapshotTooOld`` once versions have been collected.
        """
        pending = self._staging.pending
        if pending:
            horizon = min(horizon, min(pending.values()) - 1)
        return self._upkeep.step(horizon)


def _bound(ends: Times, chunk: Chunk, offsets: Offsets, rows: Offsets, timestamp: int) -> None:
    """Lower the ends of late rows to where versions of the same keys begin or end after them."""
    begins = np.broadcast_to(np.asarray(chunk.begins_of(offsets)), offsets.shape)
    row_ends = np.broadcast_to(np.asarray(chunk.ends_of(offsets)), offsets.shape)
    bounds = np.where(begins > timestamp, begins, np.where(row_ends > timestamp, row_ends, FOREVER))
    np.minimum.at(ends, rows, bounds)


def _slots(starts: list[tuple[int, int]], order: npt.NDArray[np.int64]) -> Slots:
    """The slots of rows in sorted order, for chunks given as (base, rows)."""
    if len(starts) == 1:
        return order + starts[0][0]
    return np.concatenate([np.arange(base, base + rows) for base, rows in starts])[order]
