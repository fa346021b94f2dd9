"""The rows of many keys at once, as columns: no step of Python's for each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.storage.chunks.chunk import Offsets, Row, rows_to_batch
from remuda.storage.chunks.hash_order import hash_order
from remuda.storage.chunks.key_index import KeyIndex, Slots, match_runs
from remuda.storage.chunks.keys import Hashes
from remuda.storage.maps import map_store
from remuda.storage.staging import validation

Places = npt.NDArray[np.int64]

FEW = 8
"""Up to so many rows of a chunk are read one by one: a kernel for each column takes longer."""


def read_batch(
    store: map_store.MapStore, keys: Sequence[pa.Array], at: int
) -> tuple[Places, pa.RecordBatch]:
    """The rows of those of the ``keys`` (their columns, in engine form) that exist at ``at``, under
    the newest schema: the place of each one's key, in order, and the rows. On the loop only. Raises
    SnapshotTooOld."""
    if at < store.floors.reads:
        raise validation.too_old(store.schema, at, store.floor)
    rule, layouts = store._keys, store._layouts  # noqa: SLF001 (a part of the store)
    table = store._table  # noqa: SLF001
    places: list[Places] = []
    batches: list[pa.RecordBatch] = []
    few: list[Row] = []
    few_places: list[int] = []
    hashes = rule.hashes_of(keys)
    for found, slots in _candidates(store._index, hashes, at):  # noqa: SLF001
        for chunk, indexes, offsets in table.groups(slots):
            rows = found[indexes]
            shown = (chunk.begins_of(offsets) <= at) & (chunk.ends_of(offsets) > at)
            if isinstance(shown, np.ndarray):
                rows, offsets = rows[shown], offsets[shown]  # noqa: PLW2901
            elif not shown:
                continue
            if len(rows) and not rule.exact:
                same = rule.equal(chunk, offsets, keys, rows)
                rows, offsets = rows[same], offsets[same]  # noqa: PLW2901
            if len(rows) <= FEW:
                few += [layouts.row(chunk, offset) for offset in offsets.tolist()]
                few_places += rows.tolist()
                continue
            batches.append(layouts.columns(chunk, chunk.length).take(pa.array(offsets)))
            places.append(rows)
    if few or not batches:
        batches.append(rows_to_batch(few, store.schema))
        places.append(np.array(few_places, dtype=np.int64))
    return _in_order(places, batches)


def _candidates(index: KeyIndex, hashes: Hashes, at: int) -> Iterator[tuple[Offsets, Slots]]:
    """Pairs (place of a key, slot of a row with the same hash)."""
    delta = index.delta
    if delta:
        recent = [
            (place, entry)
            for place, key_hash in enumerate(hashes.tolist())
            if (entry := delta.get(key_hash)) is not None
        ]
        pairs = [
            (place, slot)
            for place, entry in recent
            for slot in ((entry,) if isinstance(entry, int) else entry)
        ]
        if pairs:
            both = np.array(pairs, dtype=np.int64)
            yield both[:, 0], both[:, 1]
    order = hash_order(hashes)
    runs = [run for run in index.runs if run.until > at]
    for rows, slots in match_runs(runs, hashes[order]):
        yield order[rows], slots


def _in_order(
    places: Sequence[Places], batches: Sequence[pa.RecordBatch]
) -> tuple[Places, pa.RecordBatch]:
    """The rows in the order of their keys."""
    whole = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    where = np.concatenate(places)
    if (where[1:] > where[:-1]).all():
        return where, whole
    order = np.argsort(where, kind="stable")
    return where[order], whole.take(pa.array(order))
