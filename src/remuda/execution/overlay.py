"""The uncommitted writes of a transaction, laid over the maps that its queries read.

The write set of a transaction goes with the start of each of its queries to the members that take
part. There it hides the stored rows of the keys that were written, and adds the rows that were
written, wherever a plan reads a map: scans, scans by index (in order or not), lookups by key, and
matches of an index join. Every member adds only the rows that it would store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.hashes.keyhash import hash_arrays
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.errors import SerializationFailure
from remuda.execution.arrays import Indices
from remuda.execution.context import Cursor, ScanOf, Sources, TableCursor
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.indexes.access import Access, Probe, spans_of
from remuda.storage.indexes.keys import NULL_WORD, Bound, KeyForm
from remuda.storage.indexes.scan import values_to_batch
from remuda.transaction.own_writes import canonical_key

Key: TypeAlias = tuple[PhysicalValue, ...]
Row: TypeAlias = tuple[PhysicalValue, ...]
IndexForm: TypeAlias = Callable[[int, int], KeyForm]
"""(map id, id of a SORTED or HASH index) -> the form of its keys."""


@dataclass(frozen=True)
class MapWrites:
    """The writes to one map, by key: the row, None for one that was removed. Keys and rows
    are of ``schema``; NaN in a key is one object (``own_writes.canonical_key``)."""

    schema: MapSchema
    rows: Mapping[Key, Row | None]


class Layer:
    """The writes of one map as one member sees them. Immutable; any thread."""

    def __init__(self, writes: MapWrites, owns: Collection[int]) -> None:
        """``owns``: the partitions whose rows this member adds, if the map is partitioned."""
        schema = self.schema = writes.schema
        self._rule = KeyRule(schema)
        self.by_key = writes.rows
        hashes: list[int] = []
        self._mine: list[tuple[Key, Row, int]] = []
        for key, row in writes.rows.items():
            key_hash = self._rule.hash(key)
            hashes.append(key_hash)
            if row is not None:
                partition = self._rule.partition(row, key_hash)
                if schema.replicated or partition in owns:
                    self._mine.append((key, row, partition))
        self._hashes = np.array(sorted(hashes), dtype=np.uint64)

    @cached_property
    def _partition_of(self) -> dict[Key, int]:
        """Of the rows that this member adds, by key."""
        return {key: partition for key, _, partition in self._mine}

    def row(self, key: Key, partitions: frozenset[int] | None) -> Row | None:
        """Of ``rows``, the one with a key that was written."""
        partition = self._partition_of.get(key)
        if partition is None or not (partitions is None or partition in partitions):
            return None
        return self.by_key[key]

    def rows(self, partitions: frozenset[int] | None) -> list[Row]:
        """Those that this member adds, of some partitions (None: of all)."""
        return [
            row for _, row, partition in self._mine if partitions is None or partition in partitions
        ]

    def widened(self, of: ScanOf) -> tuple[ScanOf, list[int]]:
        """``of`` with the columns of the key, and the places of these among its columns.

        Raises SerializationFailure when the map has another form than when it was written."""
        if of.schema_version and of.schema_version != self.schema.version:
            raise altered(self.schema.name)
        positions = list(of.positions)
        places = [_place(positions, position) for position in self.schema.key_positions]
        return (
            ScanOf(of.map_id, of.schema_version, of.at, positions, of.partitions),
            places,
        )

    def stored(self, batch: pa.RecordBatch, places: Sequence[int]) -> npt.NDArray[np.bool_] | None:
        """Which rows were not written by the transaction; None: all. ``places`` of the key."""
        columns = [batch.column(place) for place in places]
        types = [self.schema.columns[p].type for p in self.schema.key_positions]
        hashes = hash_arrays(columns, types)
        suspects = np.flatnonzero(np.isin(hashes, self._hashes))
        if not len(suspects):
            return None
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        if self._rule.exact:
            kept[suspects] = False
            return kept
        rows = suspects.tolist()
        for row, key in zip(rows, self._rule.keys_of(columns, rows), strict=True):
            if key in self.by_key:
                kept[row] = False
        return kept


def altered(name: str) -> SerializationFailure:
    return SerializationFailure(
        f'map "{name}" was altered by others since the transaction wrote to it',
        hint="Roll back, and run the transaction again.",
    )


class OverlaidSources:
    """``Sources`` with the writes of a transaction laid over some of the maps."""

    def __init__(self, base: Sources, layers: Mapping[int, Layer], form: IndexForm) -> None:
        self._base = base
        self._layers = layers
        self._form = form

    def ready(self, map_id: int, at: int) -> bool:
        return self._base.ready(map_id, at)

    def scan(self, of: ScanOf) -> TableCursor:
        layer = self._layers.get(of.map_id)
        if layer is None:
            return self._base.scan(of)
        wide, places = layer.widened(of)
        added = _batches(layer.rows(of.partitions), layer.schema, of.positions)
        return _SharedCursor(self._base.scan(wide), layer, places, len(of.positions), added)

    def counter(self, map_id: int) -> Callable[[int], None]:
        return self._base.counter(map_id)

    def index_scan(self, of: ScanOf, access: Access) -> Cursor:
        """All rows that were written are candidates: the filter of the scan decides."""
        layer = self._layers.get(of.map_id)
        if layer is None:
            return self._base.index_scan(of, access)
        wide, places = layer.widened(of)
        base = self._base.index_scan(wide, access)
        added = _batches(layer.rows(of.partitions), layer.schema, of.positions)
        return _Cursor(base, layer, places, len(of.positions), added)

    def ordered_scan(self, of: ScanOf, probe: Probe, descending: bool) -> Cursor:
        layer = self._layers.get(of.map_id)
        if layer is None:
            return self._base.ordered_scan(of, probe, descending)
        form = self._form(of.map_id, probe.index)
        wide, places = layer.widened(of)
        positions = list(wide.positions)
        ordered_by = [_place(positions, position) for position in form.positions]
        wide = ScanOf(of.map_id, of.schema_version, of.at, positions, of.partitions)
        spans = spans_of(form, probe.choices)
        found: list[tuple[Bound, Row]] = []
        for row in layer.rows(of.partitions):
            key = form.key([row[position] for position in form.positions])
            if any(low <= key < high for low, high in spans):  # type: ignore[operator]
                found.append((key, row))
        found.sort(key=lambda entry: entry[0], reverse=descending)
        added = _batches([row for _, row in found], layer.schema, positions)
        rows = added[0] if added else None
        base = self._base.ordered_scan(wide, probe, descending)
        stored = _Cursor(base, layer, places, len(positions), [])
        keys = [key for key, _ in found]
        width = len(of.positions)
        return _MergingCursor(stored, form, ordered_by, (keys, rows), descending, width)

    def index_match(
        self, of: ScanOf, index_id: int, columns: Sequence[pa.Array]
    ) -> tuple[pa.RecordBatch, Indices] | None:
        layer = self._layers.get(of.map_id)
        if layer is None:
            return self._base.index_match(of, index_id, columns)
        wide, places = layer.widened(of)
        width = len(of.positions)
        batches: list[pa.RecordBatch] = []
        numbers: list[Indices] = []
        found = self._base.index_match(wide, index_id, columns)
        if found is not None:
            batch, order = found
            kept = layer.stored(batch, places)
            if kept is not None:
                batch, order = batch.filter(pa.array(kept)), order[kept]
            if batch.num_rows:
                batches.append(_narrow(batch, width))
                numbers.append(order)
        form = self._form(of.map_id, index_id)
        rows, matched = _matches(layer.rows(of.partitions), form, columns)
        batches += _batches(rows, layer.schema, of.positions)
        if matched:
            numbers.append(np.array(matched, dtype=np.int64))
        if not batches:
            return None
        return _joined(batches), np.concatenate(numbers)

    def lookup(
        self,
        map_id: int,
        schema_version: int,
        at: int,
        keys: Sequence[Key],
        partitions: frozenset[int] | None = None,
    ) -> list[Row | None]:
        layer = self._layers.get(map_id)
        if layer is None:
            return self._base.lookup(map_id, schema_version, at, keys, partitions)
        if schema_version != layer.schema.version:
            raise altered(layer.schema.name)
        canonical = [canonical_key(key) for key in keys]
        other = [key for key, same in zip(keys, canonical, strict=True) if same not in layer.by_key]
        stored = iter(
            self._base.lookup(map_id, schema_version, at, other, partitions) if other else ()
        )
        return [
            next(stored) if key not in layer.by_key else layer.row(key, partitions)
            for key in canonical
        ]


class _Cursor:
    """The rows of ``base`` that were not written, then those that were. ``width``: so many columns
    are wanted; those behind them are the key's."""

    def __init__(
        self,
        base: Cursor,
        layer: Layer,
        places: Sequence[int],
        width: int,
        added: list[pa.RecordBatch],
    ) -> None:
        self._base = base
        self._layer = layer
        self._places = places
        self._width = width
        self._added = added
        """Shared by the cursors of several instances: each batch is given out once."""

    def next(self) -> pa.RecordBatch | None:
        while (batch := self._base.next()) is not None:
            kept = self._layer.stored(batch, self._places)
            if kept is not None:
                batch = batch.filter(pa.array(kept))
            if batch.num_rows:
                return _narrow(batch, self._width)
        try:
            return self._added.pop()  # one step of the interpreter: nobody else gets it
        except IndexError:
            return None

    def close(self) -> None:
        self._base.close()


class _SharedCursor(_Cursor):
    """A scan of several instances."""

    def __init__(
        self,
        base: TableCursor,
        layer: Layer,
        places: Sequence[int],
        width: int,
        added: list[pa.RecordBatch],
    ) -> None:
        super().__init__(base, layer, places, width, added)
        self._table = base

    def share(self) -> _SharedCursor:
        return _SharedCursor(
            self._table.share(), self._layer, self._places, self._width, self._added
        )


class _MergingCursor:
    """Rows in the order of an index, and among them those that were written, which are sorted."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        base: Cursor,
        form: KeyForm,
        places: Sequence[int],
        added: tuple[list[Bound], pa.RecordBatch | None],
        descending: bool,
        width: int,
    ) -> None:
        self._base = base
        self._form = form
        self._places = places
        self._keys, self._rows = added
        self._descending = descending
        self._width = width
        self._next = 0

    def next(self) -> pa.RecordBatch | None:
        batch = self._base.next()
        if batch is None:
            return self._rest()
        keys = _keys_of(self._form, [batch.column(place) for place in self._places])
        stop = self._next
        last = keys[-1]
        while stop < len(self._keys) and self._before(self._keys[stop], last):
            stop += 1
        if stop == self._next or self._rows is None:
            return _narrow(batch, self._width)
        mine = self._rows.slice(self._next, stop - self._next)
        keys += self._keys[self._next : stop]
        self._next = stop
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=self._descending)
        whole = _joined([batch, mine]).take(pa.array(order, pa.int64()))
        return _narrow(whole, self._width)

    def _before(self, key: Bound, other: Bound) -> bool:
        return key >= other if self._descending else key <= other  # type: ignore[operator]

    def _rest(self) -> pa.RecordBatch | None:
        start, self._next = self._next, len(self._keys)
        if self._rows is None or start == len(self._keys):
            return None
        return _narrow(self._rows.slice(start), self._width)

    def close(self) -> None:
        self._base.close()


def _place(positions: list[int], position: int) -> int:
    """Where a column is among those that are read; it is added if need be."""
    if position not in positions:
        positions.append(position)
    return positions.index(position)


def _narrow(batch: pa.RecordBatch, width: int) -> pa.RecordBatch:
    return batch if batch.num_columns == width else batch.select(list(range(width)))


def _batches(
    rows: Sequence[Row], schema: MapSchema, positions: Sequence[int]
) -> list[pa.RecordBatch]:
    """One batch of the rows, or none."""
    if not rows:
        return []
    chosen = [tuple([row[position] for position in positions]) for row in rows]
    return [values_to_batch(chosen, schema, positions)]


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    if not first.num_columns:
        rows = sum(batch.num_rows for batch in batches)
        return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"]).select([])
    arrays = [
        pa.concat_arrays([a if a.type == same[0].type else a.cast(same[0].type) for a in same])
        for same in zip(*(batch.columns for batch in batches), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=first.schema.names)


def _keys_of(form: KeyForm, columns: Sequence[pa.Array]) -> list[Bound]:
    found, nulls = form.keys_of(columns)
    keys: list[Bound] = found.tolist() if isinstance(found, np.ndarray) else found.to_pylist()
    if nulls is not None:
        for row in np.flatnonzero(nulls).tolist():
            keys[row] = NULL_WORD
    return keys


def _matches(
    rows: Sequence[Row], form: KeyForm, columns: Sequence[pa.Array]
) -> tuple[list[Row], list[int]]:
    """The rows whose first indexed columns equal a row of ``columns``, and the number of that."""
    by_key: dict[Bound, list[Row]] = {}
    positions = form.positions[: len(columns)]
    candidates = [row for row in rows if all(row[position] is not None for position in positions)]
    if not candidates:
        return [], []
    arrays = [
        values_to_array([row[position] for row in candidates], type_)
        for position, type_ in zip(positions, form.types, strict=False)
    ]
    for key, row in zip(_keys_of(form, arrays), candidates, strict=True):
        by_key.setdefault(key, []).append(row)
    found: list[Row] = []
    numbers: list[int] = []
    for number, key in enumerate(_keys_of(form, columns)):
        for row in by_key.get(key, ()):
            found.append(row)
            numbers.append(number)
    return found, numbers
