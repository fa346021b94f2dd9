"""How many rows an increment holds: each member counts what its log has of the partitions whose
primary it is, and the member that makes the cut adds that up by map. A member that has noted all
commits of parts since the cut before has counted them (``commit_counts``), and reads only jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.datatypes.conformance import of_keys
from remuda.datatypes.schema import MapSchema
from remuda.limits import PARTITIONS
from remuda.snapshot.log_rows import Packings, decode_batches
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.format import records as log
from remuda.storage.format.manifest import MapChanges
from remuda.storage.format.segment import Identity
from remuda.storage.log.reader import LogReader, SegmentSource, Tail
from remuda.storage.log.replay import Staged
from remuda.storage.log.tally import Stretch, Tally, tally
from remuda.storage.log.writer import LogEnd
from remuda.storage.snapshot.writing import spans_of_increment

_COMPLETE: Final = Tail(LogEnd(), 0, 0, 0)
"""No segment is cut off: those of an increment are complete. The one behind them, whose end changes
while it is read, is not looked at."""

_OF_JOBS: Final = (
    log.StagedRows,
    log.StagedKeys,
    log.JobPrepared,
    log.JobCommitted,
    log.JobRolledBack,
    log.CutStart,
    log.CutFinish,
)


def changes_of(
    stretch: Stretch, source: SegmentSource, identity: Identity, packings: Packings, member: int
) -> dict[int, Tally]:
    """By map id. Raises DataCorrupted for a damaged log, of which no increment can be restored;
    InputError when it does not reach back. Any thread."""
    spans_of_increment(source, stretch.needs, stretch.cut.finish, member=member)
    entries = LogReader(source, identity).entries(stretch.needs, _COMPLETE, stretch.partitions)
    return tally(stretch, entries, lambda record: _rows_in(record, packings, stretch.partitions))


def changes_of_jobs(
    stretch: Stretch, source: SegmentSource, identity: Identity, packings: Packings
) -> dict[int, Tally]:
    """Those of jobs alone, by map id: all other records are passed over unread. Raises InputError
    where the log cannot be read up to the cut. Any thread."""
    entries = LogReader(source, identity).entries_of(stretch.needs, _OF_JOBS, _COMPLETE)
    return tally(stretch, entries, lambda record: _rows_in(record, packings, stretch.partitions))


def with_jobs(parts: Mapping[int, Tally], jobs: Mapping[int, Tally]) -> dict[int, Tally]:
    """The changes of parts and jobs, added up by map id."""
    found = dict(parts)
    for map_id, (put, removed) in jobs.items():
        before = found.get(map_id, Tally(0, 0))
        found[map_id] = Tally(before.put + put, before.removed + removed)
    return found


def _rows_in(record: Staged, packings: Packings, partitions: frozenset[int]) -> int:
    """How many staged rows stand in the partitions: the log has those of backups, too."""
    packing = packings.of(record.map_id, record.schema_version)
    if packing is None:  # the map was dropped: the increment does not restore it
        return 0
    schema = packing.schema
    if schema.replicated:  # one log speaks for all
        speaks = any(place >= PARTITIONS for place in partitions)
        return sum(each.num_rows for each in _batches(record, schema)) if speaks else 0
    keys = KeyRule(schema)
    wanted = np.zeros(PARTITIONS, dtype=np.bool_)
    wanted[[place for place in partitions if place < PARTITIONS]] = True
    places = (keys.partitions(each, keys.hashes(each)) for each in _batches(record, schema))
    return sum(int(np.count_nonzero(wanted[each])) for each in places)


def _batches(record: Staged, schema: MapSchema) -> Iterator[pa.RecordBatch]:
    if isinstance(record, log.StagedRows):
        yield from decode_batches(record.rows)[0]
        return
    for batch in decode_batches(record.keys)[0]:
        yield of_keys(batch.columns, schema)


def changed_maps(
    catalog: Catalog, parts: Iterable[Mapping[int, Tally] | None]
) -> tuple[MapChanges, ...] | None:
    """The counts of all members, of the maps of ``catalog``: one that was dropped meanwhile
    cannot be restored from the increment. None: not every member has counted."""
    put: Counter[int] = Counter()
    removed: Counter[int] = Counter()
    for part in parts:
        if part is None:
            return None
        for map_id, found in part.items():
            put[map_id] += found.put
            removed[map_id] += found.removed
    return tuple(
        MapChanges(schema.map_id, schema.name, put[schema.map_id], removed[schema.map_id])
        for schema in catalog.maps
        if put[schema.map_id] or removed[schema.map_id]
    )
